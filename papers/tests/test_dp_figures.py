"""Draws of Dirichlet processes have their law; climbs by iteration are those of the formulas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import kstest

from papers import dp_figures
from papers.frame.run import show_nothing
from papers.frame.table import Cell
from papers.shared import variational_mixtures

pytestmark = pytest.mark.slow  # a published table, run small


@pytest.mark.parametrize("rule", dp_figures.DRAW)
def test_a_process_has_as_many_values_as_its_law(rule: str) -> None:
    """Two draws are alike with probability 1 / (1 + alpha); values are those of N(0, 1)."""
    rng = np.random.default_rng(4)
    alpha, n = 3.0, 50
    runs = [dp_figures.DRAW[rule](alpha, n, rng) for _ in range(400)]
    distinct = [len(np.unique(values)) for values in runs]
    mean, spread = dp_figures.compute_distinct(alpha, n)
    assert np.mean(distinct) == pytest.approx(mean, abs=4 * spread / 20)
    assert np.std(distinct) == pytest.approx(spread, rel=0.15)
    alike = np.mean([values[0] == values[1] for values in runs])
    assert alike == pytest.approx(1 / (1 + alpha), abs=0.09)
    assert kstest([values[0] for values in runs], "norm").pvalue > 1e-3


def test_the_law_of_two_draws() -> None:
    mean, spread = dp_figures.compute_distinct(1.0, 2)
    assert (mean, spread) == (pytest.approx(1.5), pytest.approx(0.5))


def test_draws_that_are_too_few_are_told() -> None:
    good = Cell("urn, alpha = 10", "value", (70.0, 69.0, 71.0))
    bad = Cell("urn, alpha = 10", "value", (40.0, 41.0, 42.0))
    assert [check.holds for check in dp_figures.check_draws([good, bad])] == [True, False]


def test_a_climb_ends_where_the_class_ends() -> None:
    X = variational_mixtures.draw_toy(np.random.default_rng(3))
    found = dp_figures.climb(X, variational_mixtures.VBDMA, 1.0, 8, 5)
    assert (np.diff(found.bounds) > -1e-8).all() and (np.diff(found.steps) > 0).all()
    end = variational_mixtures.fit(X, 8, variational_mixtures.VBDMA, 1.0, 0.01, 5)
    assert found.bounds[-1] == pytest.approx(end.bound, abs=1e-3)
    assert found.used[-1] == end.components
    printed = dp_figures.climb(X, variational_mixtures.PRINTED, 1.0, 8, 5)
    assert len(printed.steps) == len(printed.bounds) == len(printed.used)
    assert (np.diff(printed.bounds) > -1e-8).all()


def test_the_table_and_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dp_figures, "QUICK", dp_figures.Size(3, (0, 1, 6)))
    monkeypatch.setattr(dp_figures, "DRAWS", 500)
    table = dp_figures.run(Path(), True, 0, show_nothing)
    assert len(table.cells) == 4 + 3
    assert {check.claim: check.holds for check in table.checks if not check.holds} == {}
    figure = Figure()
    assert table.draw is not None
    table.draw(figure)
    assert sum(len(part.axes) for part in figure.subfigs) == 3 + 6 + 3  # and their twins
