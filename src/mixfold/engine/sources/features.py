"""A source whose rows are mapped to other coordinates, block by block, where they are visited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mixfold.contracts import Block, Source


class FeatureSource:
    """The rows of ``base``, each block through ``features``; visit it by a FeatureExecutor.

    Parameters
    ----------
    base : Source
        Complete rows.
    features : callable
        Rows (n, D) -> coordinates (n, size); picklable.
    size : int
        Number of coordinates.
    """

    def __init__(self, base: Source, features: Callable[[Any], Any], size: int) -> None:
        self.base = base
        self.features = features
        self._size = size

    @property
    def n_samples(self) -> int | None:
        """Number of rows."""
        return self.base.n_samples

    @property
    def n_features(self) -> int:
        """Number of coordinates."""
        return self._size

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Coordinates have no names."""
        return None

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.base.dtype

    def map_block(self, block: Block) -> Block:
        """A block of ``base`` in the coordinates."""
        return replace(block, X=self.features(block.X))

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        """The blocks of ``base``, mapped one after the other."""
        return map(self.map_block, self.base.blocks(max_rows))
