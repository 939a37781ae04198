"""Some of the rows of another source, chosen one by one: a data set of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Source
from mixfold.engine.sources.dask import DaskSource
from mixfold.engine.sources.features import FeatureSource
from mixfold.engine.sources.partitions import Cut, Partition, Values


class PartSource:
    """The rows of a source at which ``chosen`` is true. Use :func:`part_of`."""

    def __init__(self, source: Source, chosen: Array) -> None:
        self._source = source
        self._chosen = chosen
        self._n_samples = int(np.count_nonzero(chosen))

    @property
    def n_samples(self) -> int:
        """Number of chosen rows."""
        return self._n_samples

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self._source.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns, None where there are none."""
        return self._source.feature_names

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self._source.dtype

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        """The blocks of the source in row order, each with its chosen rows only."""
        return select_rows(self._source.blocks(max_rows), self._chosen)


class DaskPartSource(PartSource):
    """The same of a Dask collection, whose rows stay on the workers that have them."""

    _source: DaskSource

    def partitions(self) -> list[ChosenPartition]:
        """The pieces in row order, for an executor on a cluster."""
        before = 0
        pieces = []
        for partition in self._source.partitions():
            first = partition.cut.start
            mine = self._chosen[first : first + partition.n_rows]
            pieces.append(ChosenPartition(partition, ChosenCut(partition.cut, mine, before)))
            before += int(np.count_nonzero(mine))
        return pieces


@dataclass(frozen=True, slots=True)
class ChosenCut:
    """The cut of a partition, without the rows that are not chosen; picklable.

    ``before`` is the number of rows that are chosen in earlier partitions.
    """

    cut: Cut
    chosen: Array
    before: int

    def __call__(self, values: Values) -> Iterator[Block]:
        return select_rows(self.cut(values), self.chosen, self.cut.start, self.before)


@dataclass(frozen=True, slots=True)
class ChosenPartition:
    """Some rows of a partition."""

    whole: Partition
    cut: ChosenCut

    @property
    def data(self) -> Any:
        """The partition as it is; rows are left out where it is cut into blocks."""
        return self.whole.data

    @property
    def n_blocks(self) -> int:
        """As many as the partition has: none becomes empty."""
        return self.whole.n_blocks


def part_of(source: Source, chosen: Array) -> PartSource | FeatureSource:
    """The rows of a source at which ``chosen`` is true, without a copy of them.

    Rows are numbered among the chosen ones, so that random numbers do not depend on how the source
    is cut.

    Parameters
    ----------
    source : Source
    chosen : bool ndarray of shape (n_samples,)
        At least one is true.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.engine.sources import open_source
    >>> from mixfold.engine.sources.part import part_of
    >>> X = np.arange(10.0)[:, None]
    >>> part = part_of(open_source(X), X[:, 0] % 3 == 1)
    >>> [(block.start, block.X.ravel().tolist()) for block in part.blocks(max_rows=5)]
    [(0, [1.0, 4.0]), (2, [7.0])]
    """
    if chosen.ndim != 1 or chosen.dtype != bool or not chosen.any():
        raise ValueError(
            "chosen must be a boolean vector with at least one true entry, got "
            f"{chosen.dtype} of shape {chosen.shape}"
        )
    if isinstance(source, FeatureSource):  # rows are chosen where they are read
        return FeatureSource(part_of(source.base, chosen), source.features, source.n_features)
    return (DaskPartSource if isinstance(source, DaskSource) else PartSource)(source, chosen)


def select_rows(
    blocks: Iterator[Block], chosen: Array, start: int = 0, before: int = 0
) -> Iterator[Block]:
    """The chosen rows of blocks; ``chosen`` begins at row ``start``, with ``before`` in front.

    A block never becomes empty, so that there are as many of them as announced: where no row is
    chosen, one stays with weight zero.
    """
    for block in blocks:
        first = block.start - start
        rows = np.flatnonzero(chosen[first : first + block.n_rows])
        if rows.size:
            yield _take_rows(block, rows, block.weight, before)
        else:
            yield _take_rows(block, np.zeros(1, np.int64), np.zeros(block.n_rows), before)
        before += rows.size


def _take_rows(block: Block, rows: Array, weight: Array | None, start: int) -> Block:
    return replace(
        block,
        X=block.X[rows],
        start=start,
        y=None if block.y is None else block.y[rows],
        weight=None if weight is None else weight[rows],
    )
