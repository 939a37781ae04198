"""Rows drawn in proportion to a mass."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.contracts import Array, Block
from mixfold.engine.draws import Drawn, draw_rows
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.random import RowKeys
from mixfold.engine.reservoir import Reservoir
from mixfold.engine.sources import open_source


def first_column(block: Block) -> Array:
    return np.asarray(block.X[:, 0] * block.weights())


def test_a_row_is_drawn_in_proportion_to_its_mass() -> None:
    mass = np.array([0.0, 1.0, 2.0, 5.0, 0.0])
    source, n = open_source(mass[:, None]), 4000
    hits = np.zeros(5)
    for seed in range(n):
        drawn = draw_rows(source, ThreadExecutor(1), first_column, 1, RowKeys(seed))
        hits[mass == drawn.X[0, 0]] += 1
    share = mass / mass.sum()
    error = np.sqrt(share * (1 - share) / n)
    assert hits[0] == hits[4] == 0
    assert (np.abs(hits / n - share) <= 6 * error + 1e-12).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_and_threads_do_not_matter(rng: np.random.Generator, n_jobs: int) -> None:
    X, weight = rng.random((5000, 2)), rng.integers(0, 3, 5000).astype(float)
    source = open_source(X, weight=weight)
    drawn = draw_rows(source, ThreadExecutor(n_jobs), first_column, 40, RowKeys(3))
    keys = -np.log(RowKeys(3).uniform(slice(0, 5000))[:, 0])
    with np.errstate(divide="ignore"):
        chosen = np.sort(np.argsort(keys / (X[:, 0] * weight))[:40])
    np.testing.assert_array_equal(drawn.X, X[chosen])
    np.testing.assert_array_equal(drawn.weight, weight[chosen])


def test_fewer_rows_than_wanted_and_none_at_all() -> None:
    source = open_source(np.array([[0.0], [3.0], [0.0], [1.0]]))
    drawn = draw_rows(source, ThreadExecutor(1), first_column, 10, RowKeys(0))
    np.testing.assert_array_equal(drawn.X, [[3.0], [1.0]])
    nothing = draw_rows(
        open_source(np.zeros((4, 1))), ThreadExecutor(1), first_column, 10, RowKeys(0)
    )
    assert nothing.X.shape == (0, 1)


def test_drawn_rows_merge_and_nothing_else() -> None:
    empty = Drawn(Reservoir(3))
    assert (empty + empty).reservoir == empty.zero().reservoir
    with pytest.raises(TypeError, match="subtracted"):
        empty - empty
    with pytest.raises(TypeError, match="scaled"):
        empty.scale(2.0)
