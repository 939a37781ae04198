"""Documents in memory, with names of their own and of their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixfold.engine.sources.sparse import SparseSource
from mixfold.engine.sources.weights_and_labels import sides_of


class Documents(SparseSource):
    """Sparse counts; ``words`` name the columns and ``documents`` the rows, where known."""

    def __init__(
        self,
        X: Any,
        words: tuple[str, ...] | None = None,
        weights: Any = None,
        documents: Sequence[str] | None = None,
    ) -> None:
        super().__init__(X, sides_of(weights, None, X.shape[0]))
        self._names = words
        self.documents = documents
