"""The interface of urns: add and remove rows, and score rows without parameters.

An urn holds the rows of one data set and the posteriors of its clusters, in slots. It is the only
thing of a sampler that changes in place: a copy for each row would cost more than the row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mixfold.contracts import Array, Block
from mixfold.families.component import dense_rows
from mixfold.families.conjugate import ConjugateFamily
from mixfold.math.frame import Frame

# entries of a table that is held in memory: 1 GiB
MOST_ENTRIES = 2**27


class Urn(ABC):
    """Clusters of the rows of ``block`` under ``prior``; a slot without rows holds the prior."""

    @abstractmethod
    def __init__(self, family: Any, block: Block, prior: Any, frame: Frame) -> None: ...

    @abstractmethod
    def put(self, row: int, slot: int) -> None:
        """A row sits down."""

    @abstractmethod
    def take(self, row: int, slot: int) -> bool:
        """A row leaves others behind. True if rounding asks for ``clear`` and ``put`` of those."""

    @abstractmethod
    def clear(self, slot: int) -> None:
        """No rows."""

    @abstractmethod
    def score(self, row: int, counts: Array, out: Array) -> None:
        """Add, for each slot with rows, log of the predictive density of a row, but for a constant
        that is the same for all slots and for the prior."""

    @abstractmethod
    def resize(self, n_slots: int) -> None:
        """Room for so many slots; those that exist stay as they are."""

    @abstractmethod
    def gain(self, counts: Array) -> float:
        """sum B(chi_k) - B(chi_0) over the slots with rows: the log evidence but for a constant
        that no partition changes."""


def no_gaps(family: ConjugateFamily, block: Block) -> None:
    """Raise if an entry of a row that counts is missing."""
    if block.complete:
        return
    lacking = np.isnan(dense_rows(block.X)).any(axis=1) & (block.weights() > 0)
    if not lacking.any():
        return
    raise ValueError(
        f"inference='collapsed' with the family {family.name!r} needs every entry, and row "
        f"{block.start + int(np.argmax(lacking))} lacks some: columns that depend on each other "
        "leave no closed form. Use inference='gibbs', which draws the missing entries, or the "
        "family 'diag'"
    )


def dense_table(family: ConjugateFamily, block: Block) -> Array:
    """All rows as an ordinary array of float64, for urns that need them so."""
    rows, columns = block.X.shape
    if issparse(block.X) and rows * columns > MOST_ENTRIES:
        raise ValueError(
            f"inference='collapsed' with the family {family.name!r} holds the rows as a dense "
            f"table of {MOST_ENTRIES} entries at most, got sparse rows of {rows} x {columns}. Use "
            "a family of counts, such as 'poisson' or 'multinomial', or inference='gibbs'"
        )
    return np.ascontiguousarray(dense_rows(block.X), dtype=float)


def add_slots(array: Array, n_slots: int, fill: Any) -> Array:
    """The array with more slots, the new ones all ``fill``."""
    out = np.empty((n_slots, *array.shape[1:]))
    out[: len(array)] = array
    out[len(array) :] = fill
    return out
