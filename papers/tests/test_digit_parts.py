"""Twos by parts: on small digits, claims on cells that break them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from mixfold import GaussianMixture, NestedMixture
from papers import digit_parts
from papers.frame.run import show_nothing
from papers.frame.table import Cell, Table

pytestmark = pytest.mark.slow  # a published table, run small

SMALL = digit_parts.Size(140, (10, 30), {30: (1, 3)}, (2, 4), 1, 8, 8)


@pytest.fixture(scope="module")
def small(digits_folder: Path) -> Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digit_parts, "QUICK", SMALL)
        patch.setattr(digit_parts, "DRAWN", 40)
        return digit_parts.run(digits_folder, True, 0, show_nothing)


def test_every_model_has_its_cells(small: Table) -> None:
    rows = small.rows
    assert [row for row in rows if row in ("d = 10", "d = 30")] == ["d = 10", "d = 30"]
    for row in ("pixels, K = 1", "d = 30, full, K = 3", "d = 30, K = 10, d' = 4",
                "d = 30, two layers, 5 x 2"):  # fmt: skip
        cells = [small.cell(row, column.name) for column in small.columns[1:]]
        assert all(cell is not None and np.isfinite(cell.ours) for cell in cells), row
    assert small.cell("one part of each of 5 groups", "recognised") is not None


def test_the_picture_has_a_panel_for_each_kind_of_figure(small: Table) -> None:
    figure = Figure()
    assert small.draw is not None
    small.draw(figure)
    assert len(figure.axes) == 12


def test_leaves_are_one_mixture(rng: np.random.Generator) -> None:
    X = np.concatenate([rng.normal(m, 1, (60, 2)) for m in (-4, 0, 4)])
    nested = NestedMixture(2, 2, random_state=0).fit(X)
    assert digit_parts.score_leaves(nested, X) == pytest.approx(float(nested.score(X)), abs=1e-9)
    other = NestedMixture(2, 2, random_state=0).fit(2 * X)
    assert abs(digit_parts.score_leaves(other, X) - float(nested.score(X))) > 0.1


def test_a_trace_is_of_plain_steps(rng: np.random.Generator) -> None:
    X = np.concatenate([rng.normal(m, 1, (80, 2)) for m in (-2, 2)])
    model = GaussianMixture(3, random_state=0).fit(X)
    trace = digit_parts.trace_plain_steps(model, X)
    assert len(trace) > 3 and (np.diff(trace) > -1e-9).all()


def test_claims_are_about_the_cells() -> None:
    found = {"d = 30, full, K = 1": digit_parts.Found(1, 1, np.zeros((1, 1)), np.array([1.0, 2.0]))}
    cells = [Cell("d = 10", "e_r", (9.0,)), Cell("d = 30", "e_r", (5.0,))]
    rows = ("full, K = 1", "full, K = 3", "K = 10, d' = 2", "K = 10, d' = 4")
    for row, value in zip((f"d = 30, {row}" for row in rows), (1.0, 2.0, 1.0, 2.0), strict=True):
        cells.append(Cell(row, "log-likelihood", (value,)))
    for row, value in (("d = 30, spherical, K = 10", 70.0), ("d = 30, diag, K = 10", 80.0),
                       ("d = 30, full, K = 10", 90.0), ("one part of each of 5 groups", 30.0),
                       ("one part of each of 8 groups", 50.0)):  # fmt: skip
        cells.append(Cell(row, "covered", (value,)))
    assert all(check.holds for check in digit_parts.check_claims(cells, found, SMALL))
    worse = [replace(c, values=(-c.ours,)) for c in cells]
    falling = {n: replace(f, trace=np.array([2.0, 1.0])) for n, f in found.items()}
    assert not any(check.holds for check in digit_parts.check_claims(worse, falling, SMALL))
