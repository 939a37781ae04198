"""Columns and outputs of complete rows side by side: one table, of which PPCA can be asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Block, Source


@dataclass(frozen=True)
class StackedViews:
    """A source of (a x, b y) for rows x with outputs y, all known where the row has a weight.

    Parameters
    ----------
    source : Source
        Its blocks have outputs ``y`` (n, L).
    n_outputs : int
    a, b : float
        Factors of columns and outputs; zero takes a view out without changing the shape.
    """

    source: Source
    n_outputs: int
    a: float = 1.0
    b: float = 1.0

    @property
    def n_samples(self) -> int | None:
        """Number of rows."""
        return self.source.n_samples

    @property
    def n_features(self) -> int:
        """Number of columns and outputs."""
        return self.source.n_features + self.n_outputs

    @property
    def feature_names(self) -> None:
        """None are needed."""
        return None

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64."""
        return np.dtype(np.float64)

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        """The blocks of the source, with wider rows."""
        for block in self.source.blocks(max_rows):
            assert block.y is not None
            # rows of weight zero may lack what they like
            X, y = self.a * block.X.astype(float), self.b * np.nan_to_num(block.y)
            if sparse.issparse(X):
                X = sparse.hstack([X, sparse.csr_array(y)], format="csr")
            else:
                X = np.hstack([X, y])
            yield replace(block, X=X, y=None)
