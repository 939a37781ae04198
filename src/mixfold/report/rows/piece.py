"""Some rows with the model's answers for them, each computed once and only when needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block
from mixfold.engine.sources import open_source
from mixfold.report.capabilities import Ask, Groups


@dataclass(frozen=True, slots=True)
class Questions:
    """What is asked of every row; None where the model has no answer."""

    groups: Groups | None = None
    topics: Ask | None = None
    usualness: Ask | None = None
    rebuilt: Ask | None = None
    chances: Ask | None = None
    predicted: Ask | None = None


class Piece:
    """Rows of positive weight of a block, with their numbers, weights and targets."""

    def __init__(self, block: Block, y: Array | None, questions: Questions) -> None:
        weight = block.weights()
        kept = np.flatnonzero(weight > 0)
        whole = len(kept) == block.n_rows
        self.X: Any = block.X if whole else block.X[kept]
        self.rows: Array = block.start + kept
        self.weight: Array = weight[kept]
        self.y: Array | None = None if y is None else y[kept]
        self._complete = block.complete
        self._ask = questions

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_sparse(self) -> bool:
        return bool(sparse.issparse(self.X))

    @cached_property
    def source(self) -> Any:
        return open_source(self.X, complete=self._complete or None)

    @cached_property
    def seen(self) -> Array | None:
        """Which entries are there (n, D); None if all are."""
        if self.is_sparse or self._complete:
            return None
        return ~np.isnan(self.X)

    @cached_property
    def shares(self) -> Array | None:
        return None if self._ask.groups is None else self._ask.groups.shares(self.source)

    @cached_property
    def topics(self) -> Array | None:
        if self._ask.groups is not None and self._ask.groups.word == "topic":
            return self.shares
        return self._answer(self._ask.topics)

    @cached_property
    def usualness(self) -> Array | None:
        return self._answer(self._ask.usualness)

    @cached_property
    def rebuilt(self) -> Array | None:
        return self._answer(self._ask.rebuilt)

    @cached_property
    def chances(self) -> Array | None:
        return self._answer(self._ask.chances)

    @cached_property
    def predicted(self) -> Array | None:
        return self._answer(self._ask.predicted)

    def _answer(self, ask: Ask | None) -> Array | None:
        return None if ask is None else ask(self.source)
