"""Rows in batches: each row once, the same batches however the source is cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Block
from mixfold.engine import batches
from mixfold.engine.batches import hold_rows, join_blocks, mixed_batches, split_block
from mixfold.engine.sources import open_source

N = 100


class Cut:
    """The rows of a source in blocks of another size."""

    def __init__(self, source: Any, rows: int) -> None:
        self._source, self._rows = source, rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_source"], name)

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        return self._source.blocks(max_rows or self._rows)


def source(kind: str, rows: int = N) -> Any:
    X = np.diag(np.arange(1.0, N + 1))
    labels, weight = np.arange(N) % 3, np.arange(N) + 1.0
    whole = open_source(sparse.csr_array(X) if kind == "sparse" else X, weight=weight, y=labels)
    return Cut(whole, rows)


def numbers(blocks: Any) -> np.ndarray:
    """Which rows came, in their order."""
    return np.concatenate([np.asarray(block.X.sum(axis=1)).ravel() for block in blocks]).astype(int)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("rows", [7, 33, N])
def test_rows_come_once_each_in_random_order(kind: str, rows: int) -> None:
    def visit(seed: int) -> list[Block]:
        rng = np.random.default_rng(seed)
        mixed = mixed_batches(source(kind, rows), 16, 60, rng)
        return [block for batch in mixed for block in batch.blocks()]

    seen = visit(0)
    order = numbers(seen)
    assert sorted(order) == list(range(1, N + 1)) and (np.diff(order) < 0).any()
    assert set(order[:60]) == set(range(1, 61))  # as far as they are held
    np.testing.assert_array_equal(np.concatenate([block.weights() for block in seen]), order)
    np.testing.assert_array_equal(np.concatenate([block.y for block in seen]), (order - 1) % 3)
    np.testing.assert_array_equal(numbers(visit(0)), order)
    assert not np.array_equal(numbers(visit(1)), order)


def test_rows_in_their_own_order() -> None:
    found = list(mixed_batches(source("dense", 7), 16, 60, None))
    assert [batch.n_samples for batch in found] == [16, 16, 16, 12, 16, 16, 8]
    np.testing.assert_array_equal(
        numbers(block for batch in found for block in batch.blocks()), np.arange(1, N + 1)
    )


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_rows_are_held_in_equal_numbers_and_parted_for_threads(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = list(hold_rows(source(kind, 9), 40))
    assert [block.n_rows for block in held] == [40, 40, 20]
    np.testing.assert_array_equal(numbers(held), np.arange(1, N + 1))
    monkeypatch.setattr(batches, "PART", 15)
    parts = split_block(held[0])
    assert [(part.start, part.n_rows) for part in parts] == [(0, 15), (15, 15), (30, 10)]


def test_joined_blocks_know_what_they_lack() -> None:
    one, other = Block(np.ones((2, 1))), Block(np.full((1, 1), np.nan), 2, complete=False)
    joined = join_blocks([one, other])
    assert (joined.n_rows, joined.weight, joined.y, joined.complete) == (3, None, None, False)
    weighed = join_blocks([one, Block(np.ones((1, 1)), 2, None, np.array([3.0]))])
    assert weighed.weight is not None and weighed.weight.tolist() == [1, 1, 3]
    assert join_blocks([other]).start == 0
