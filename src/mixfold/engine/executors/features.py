"""An executor that maps rows where it visits them, rather than where they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mixfold.contracts import Block, Executor, Source, Stats
from mixfold.engine.sources.features import FeatureSource
from mixfold.engine.sources.sizes import block_rows

S = TypeVar("S", bound=Stats)
R = TypeVar("R")


class FeatureExecutor:
    """``executor``, to whose workers the map of a :class:`FeatureSource` is sent with each task."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def map_reduce(self, task: Callable[[Block], S], source: Source) -> S:
        """Sum of ``task(block)`` over the mapped blocks."""
        if isinstance(source, FeatureSource):
            part = block_rows(None, source.n_features)
            summed = _MappedSum(task, source.features, part)
            total: S = self.executor.map_reduce(summed, source.base)
            return total
        return self.executor.map_reduce(task, source)

    def map_rows(self, task: Callable[[Block], R], source: Source) -> Iterator[R]:
        """``task(block)`` of each mapped block, in row order."""
        task, source = _at_the_base(task, source)
        return self.executor.map_rows(task, source)


@dataclass(frozen=True, slots=True)
class _Mapped:
    """A task on mapped rows; picklable."""

    task: Callable[[Block], Any]
    features: Callable[[Any], Any]

    def __call__(self, block: Block) -> Any:
        return self.task(replace(block, X=self.features(block.X)))


@dataclass(frozen=True, slots=True)
class _MappedSum:
    """The sum of a task over the parts of a block: coordinates may be many more than columns."""

    task: Callable[[Block], Any]
    features: Callable[[Any], Any]
    rows: int

    def __call__(self, block: Block) -> Any:
        mapped = _Mapped(self.task, self.features)
        total = None
        for first in range(0, block.n_rows, self.rows):
            part = mapped(block.part(first, min(first + self.rows, block.n_rows)))
            total = part if total is None else total + part
        return total


def _at_the_base(task: Any, source: Source) -> tuple[Any, Source]:
    if isinstance(source, FeatureSource):
        return _Mapped(task, source.features), source.base
    return task, source
