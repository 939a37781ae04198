"""The picture of a search shows the numbers of its table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mixfold.plots import plot_search


def search(criterion: str = "bic", best: int = 1, **columns: Any) -> SimpleNamespace:
    """Two kinds of model with one, two and three components."""
    results = {
        "label": ["full"] * 3 + ["diag"] * 3,
        "n_components": np.array([1, 2, 3] * 2),
        "bic": np.array([9.0, 4.0, 1.0, 8.0, 5.0, np.nan]),
        "icl": np.array([9.0, 7.0, 3.0, 8.0, 6.0, np.nan]),
        "held_out": np.array([-3.0, -1.0, -2.0, -4.0, -1.5, -1.6]),
        "held_out_se": np.full(6, 0.1),
        "degenerate": np.array([False, False, True, False, False, False]),
        "bound": np.full(6, np.nan),
    }
    return SimpleNamespace(
        criterion=criterion, best_index_=best, allow_degenerate=False, results_=results | columns
    )


def lines(ax: Axes) -> list[list[list[float]]]:
    return [line.get_xydata().tolist() for line in ax.lines if len(line.get_xydata())]


def ringed(ax: Axes, found: Any, **options: Any) -> tuple[str, int]:
    """Label and number of components of what is ringed in the picture on ``ax``."""
    assert plot_search(found, ax=ax, **options) is ax
    ring = ax.lines[-1] if len(ax.lines[-1].get_xdata()) else ax.lines[-2]
    curves = {curve.lines[0].get_color(): curve.get_label() for curve in ax.containers}
    return curves[ring.get_markeredgecolor()], int(ring.get_xdata()[0])


def texts(ax: Axes) -> list[str]:
    return sorted(text.get_text() for text in ax.get_legend().get_texts())


def test_curves_crosses_and_a_ring() -> None:
    ax = Figure().subplots()
    assert ringed(ax, search()) == ("full", 2)
    full, cross, diag, ring = lines(ax)
    assert full == [[1, 9], [2, 4]]
    assert cross == [[3, 1]]  # lowest of all, and not to be trusted
    assert diag == [[1, 8], [2, 5]]  # what failed has no point
    assert ring == [[2, 4]]
    assert texts(ax) == ["a variance at its floor", "diag", "full"]
    assert ax.get_ylabel() == "BIC (lower is better)"
    assert ax.lines[0].get_color() != ax.lines[2].get_color()


def test_another_criterion_has_a_ring_of_its_own() -> None:
    ax = Figure().subplots()
    assert ringed(ax, search(), criterion="icl") == ("diag", 2)
    assert lines(ax)[-1] == [[2, 6]]


def test_held_out_values_have_bars_and_the_highest_wins() -> None:
    ax = Figure().subplots()
    assert ringed(ax, search("held-out", 1)) == ("full", 2)
    assert lines(ax)[0] == [[1, -3], [2, -1], [3, -2]]  # rows not seen are not deceived
    bars = [c.get_segments() for c in ax.collections]
    np.testing.assert_allclose(bars[0][1], [[2, -1.1], [2, -0.9]])
    assert "higher is better" in ax.get_ylabel()
    assert ringed(Figure().subplots(), search(), criterion="held-out") == ("full", 2)


def test_degenerate_fits_count_where_they_may_or_must() -> None:
    allowed = search(best=2)
    allowed.allow_degenerate = True
    ax = Figure().subplots()
    assert ringed(ax, allowed) == ("full", 3)
    assert lines(ax)[0] == [[1, 9], [2, 4], [3, 1]]
    ax = Figure().subplots()
    ringed(ax, search(best=2, degenerate=np.ones(6, dtype=bool)))
    assert lines(ax)[0] == [[1, 9], [2, 4], [3, 1]]


def test_a_criterion_without_values_or_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="the column 'bound' of results_ is empty"):
        ringed(Figure().subplots(), search(), criterion="bound")
    with pytest.raises(ValueError, match=r"criterion must be one of bic.*got 'dic'"):
        ringed(Figure().subplots(), search(), criterion="dic")
