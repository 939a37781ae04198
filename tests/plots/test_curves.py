"""The objective's trace and the criterion's curves show the numbers they were given."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from mixfold.plots import plot_criterion, plot_objective


def test_the_trace_is_the_models_and_repairs_are_marked() -> None:
    events = [SimpleNamespace(iteration=i) for i in (2, 2, -1, 9)]
    model = SimpleNamespace(lower_bounds_=[-5.0, -3.0, -3.5, -2.0], converged_=True, events_=events)
    ax = Figure().subplots()
    assert plot_objective(model, ax=ax) is ax
    line = ax.lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 4])
    np.testing.assert_array_equal(line.get_ydata(), model.lower_bounds_)
    (marks,) = [drawn for drawn in ax.lines if drawn is not line]
    np.testing.assert_array_equal(marks.get_xydata(), [[3, -3.5]])
    assert ax.get_xlabel() == "iteration"


def test_a_fit_that_stopped_early_is_labelled_so() -> None:
    ax = Figure().subplots()
    plot_objective(SimpleNamespace(lower_bounds_=[-1.0], converged_=False, events_=()), ax=ax)
    assert "not converged" in ax.get_xlabel()
    assert len(ax.lines) == 1


def test_an_empty_trace_is_an_error() -> None:
    with pytest.raises(ValueError, match="lower_bounds_ is empty"):
        plot_objective(SimpleNamespace(lower_bounds_=[], converged_=False))


def test_the_lowest_point_of_all_curves_is_ringed() -> None:
    values = {"diag": {2: 8.0, 1: 9.0}, "full": {1: 9.5, 3: 7.0, 2: 4.0}}
    ax = Figure().subplots()
    assert plot_criterion(values, name="ICL", ax=ax) is ax
    diag, full, ring = ax.lines
    np.testing.assert_array_equal(diag.get_xydata(), [[1, 9], [2, 8]])
    np.testing.assert_array_equal(full.get_xydata(), [[1, 9.5], [2, 4], [3, 7]])
    np.testing.assert_array_equal(ring.get_xydata(), [[2, 4]])
    assert ring.get_markeredgecolor() == full.get_color()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["diag", "full"]
    assert ax.get_ylabel().startswith("ICL")


def test_a_single_curve_has_no_legend() -> None:
    ax = Figure().subplots()
    plot_criterion({"full": {1: 2.0, 2: 1.0}}, ax=ax)
    assert ax.get_legend() is None


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(ValueError, match="values is empty"):
        plot_criterion({"full": {}})
