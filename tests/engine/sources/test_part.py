"""Chosen rows of a source are a data set of its own, however the source is cut."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Source
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.engine.sources.part import part_of

N = 2600  # rows of the table


@pytest.fixture
def chosen(rng: np.random.Generator) -> np.ndarray:
    picked = rng.random(N) < 0.2
    picked[300:700] = False  # more than a block without any
    return picked


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _read(source: Source, max_rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The rows that count, and their numbers."""
    blocks = list(source.blocks(max_rows))
    keep = [np.flatnonzero(block.weights() > 0) for block in blocks]
    X = [_dense(block.X)[rows] for block, rows in zip(blocks, keep, strict=True)]
    numbers = [block.start + rows for block, rows in zip(blocks, keep, strict=True)]
    return np.concatenate(X), np.concatenate(numbers)


@pytest.mark.parametrize("max_rows", [None, 97, 10**6])
def test_the_chosen_rows_in_order(
    kind: str, max_rows: int | None, X: np.ndarray, build: Any, chosen: np.ndarray
) -> None:
    part = part_of(open_source(build(kind, X)), chosen)
    assert isinstance(part, Source)
    for _ in range(2):
        rows, numbers = _read(part, max_rows)
        np.testing.assert_array_equal(rows, X[chosen])
        np.testing.assert_array_equal(numbers, np.arange(chosen.sum()))
    assert part.n_samples == chosen.sum()


def test_weights_and_labels_go_along(
    X: np.ndarray, chosen: np.ndarray, rng: np.random.Generator
) -> None:
    weight, y = rng.random(N) + 0.1, rng.integers(-1, 4, N)
    part = part_of(open_source(X, weight=weight, y=y), chosen)
    blocks = list(part.blocks(50))
    assert len(blocks) == N // 50
    assert any(block.weights().sum() == 0 for block in blocks), "no block is without chosen rows"
    seen = [block for block in blocks if block.weights().sum() > 0]
    np.testing.assert_array_equal(np.concatenate([b.weight for b in seen]), weight[chosen])
    np.testing.assert_array_equal(np.concatenate([b.y for b in seen]), y[chosen])


def test_a_sample_does_not_depend_on_the_blocks(X: np.ndarray, chosen: np.ndarray) -> None:
    class Narrow:
        """The same rows in many blocks."""

        def __init__(self) -> None:
            self.whole = part_of(open_source(X), chosen)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.whole, name)

        def blocks(self, max_rows: int | None = None) -> Any:
            return self.whole.blocks(13)

    few, many = (
        draw_pilot(source, ThreadExecutor(1), 40, seed=3)
        for source in (part_of(open_source(X), chosen), Narrow())
    )
    assert few.total_rows == many.total_rows == chosen.sum()
    np.testing.assert_array_equal(few.block.X, many.block.X)
    np.testing.assert_array_equal(few.minimum, np.nanmin(X[chosen], axis=0))


def test_partitions_of_a_collection_cut_elsewhere(X: np.ndarray, chosen: np.ndarray) -> None:
    da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'mixfold[dask]'")
    part: Any = part_of(open_source(da.from_array(X, chunks=(390, 3))), chosen)
    here = list(part.blocks())
    there = []
    for piece in part.partitions():
        cut = pickle.loads(pickle.dumps(piece.cut))
        blocks = list(cut(piece.data.compute()))
        assert len(blocks) == piece.n_blocks
        there += blocks
    for block, other in zip(here, there, strict=True):
        assert block.start == other.start
        np.testing.assert_array_equal(block.X, other.X)
        np.testing.assert_array_equal(block.weights(), other.weights())
    assert not hasattr(part_of(open_source(X), chosen), "partitions")


@pytest.mark.parametrize("chosen", [np.zeros(N, bool), np.zeros((N, 1), bool), np.arange(N)])
def test_a_choice_of_nothing_is_refused(chosen: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"boolean vector with at least one true entry, got"):
        part_of(open_source(np.ones((N, 2))), chosen)
