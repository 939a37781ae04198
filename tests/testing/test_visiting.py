"""The laws of sources and executors, on ours and on broken ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Block
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.sources import open_source
from mixfold.testing import laws
from mixfold.testing.toys import Serial


def _table(n: int = 5000) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(n, 3))
    X[7, 1] = X[n - 9, 2] = np.nan
    return X


@pytest.mark.parametrize("make", [np.array, np.float32, np.asfortranarray, sparse.csr_array])
def test_our_sources(make: Any) -> None:
    laws.source_blocks(open_source(make(_table())))


@pytest.mark.parametrize("executor", [ThreadExecutor(1), ThreadExecutor(2), Serial()])
def test_our_executors(executor: Any) -> None:
    laws.executor_visits(executor, open_source(_table()))


class Altered:
    """A source over another one, with a mistake in its blocks."""

    def __init__(self, mistake: str) -> None:
        self.mistake, self.inner, self.passes = mistake, open_source(_table(300)), 0
        self.n_samples = 299 if mistake == "length" else 300
        self.n_features, self.feature_names = 3, None
        self.dtype = np.dtype(np.float32 if mistake == "dtype" else np.float64)

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        self.passes += 1
        for block in self.inner.blocks(max_rows or 100):
            if self.mistake == "moved" and max_rows == 7:
                block = replace(block, X=block.X[::-1])
            if self.mistake == "start":
                block = replace(block, start=0)
            if self.mistake == "complete":
                block = replace(block, complete=True)
            if self.mistake == "weight":
                block = replace(block, weight=np.ones(block.n_rows + 1))
            if self.mistake == "second pass" and self.passes > 1:
                block = replace(block, X=block.X + 1)
            yield block


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ("moved", "same rows in any blocks"),
        ("second pass", "same rows in any blocks"),
        ("start", "consecutive blocks"),
        ("complete", "complete blocks"),
        ("weight", "sides of a block"),
        ("length", "shape of a source"),
        ("dtype", "dtype of a source"),
    ],
)
def test_broken_sources(mistake: str, named: str) -> None:
    with pytest.raises(AssertionError, match=f"law '{named}'"):
        laws.source_blocks(Altered(mistake))


class Forgetful(Serial):
    """Leaves out the last block."""

    def map_reduce(self, task: Any, source: Any) -> Any:
        blocks = list(source.blocks())[:-1]
        return reduce(lambda a, b: a + b, map(task, blocks))


class Unordered(Serial):
    def map_rows(self, task: Any, source: Any) -> Iterator[Any]:
        return reversed([task(block) for block in source.blocks()])


class Late(Serial):
    def map_rows(self, task: Any, source: Any) -> Iterator[Any]:
        return islice(super().map_rows(task, source), 1, None)


@pytest.mark.parametrize(
    ("executor", "named"),
    [(Forgetful(), "every block once"), (Unordered(), "rows in order"), (Late(), "rows in order")],
)
def test_broken_executors(executor: Any, named: str) -> None:
    source = open_source(_table(20_000))
    assert len(list(source.blocks())) > 2
    with pytest.raises(AssertionError, match=f"law '{named}'"):
        laws.executor_visits(executor, source)
