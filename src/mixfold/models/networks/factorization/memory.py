"""Codes of each row from the last pass, where the next pass starts.

A better start only, and what the classifier is fitted to: left behind when a model travels to
another process, and dropped where rows are too many to keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.math.softmax_regression import LabelledRows

# bytes that may be kept, of the last pass and of those that were accepted
ROOM = 2**29


@dataclass(frozen=True, slots=True)
class Remembered:
    """Codes (n, H), the length of the next step of each row (n,) or None, labels and weights."""

    phi: Array
    steps: Array | None
    labels: Array | None
    weight: Array


class CodeMemory:
    """What is remembered of blocks, by the number of their first row.

    Passes at parameters that are not accepted (an extrapolation that failed) leave no trace: each
    begins where the last accepted one, after which there was an update, has ended.
    """

    def __init__(self, room: float = ROOM) -> None:
        self.room = room
        self._blocks: dict[int, Remembered] = {}
        self._fresh: dict[int, Remembered] = {}

    def recall(self, start: int, shape: tuple[int, int]) -> Remembered | None:
        known = self._blocks.get(start)
        return known if known is not None and known.phi.shape == shape else None

    def keep(self, start: int, block: Remembered) -> None:
        others = sum(b.phi.nbytes for first, b in list(self._fresh.items()) if first != start)
        if others + block.phi.nbytes <= self.room:
            self._fresh[start] = block

    def accept(self) -> None:
        """The last pass counts."""
        self._blocks.update(self._fresh)
        self._fresh = {}

    def labelled_rows(self, weight: float) -> list[LabelledRows] | None:
        """The labelled rows, or None if not all rows, of this weight, are remembered here."""
        blocks = [self._blocks[start] for start in sorted(self._blocks)]
        if not np.isclose(sum(b.weight.sum() for b in blocks), weight, rtol=1e-9, atol=0.0):
            return None
        return [_select_labelled(block) for block in blocks if block.labels is not None]

    def __getstate__(self) -> dict[str, Any]:
        return {"room": self.room, "_blocks": {}, "_fresh": {}}


def _select_labelled(block: Remembered) -> LabelledRows:
    assert block.labels is not None
    known = (block.labels >= 0) & (block.weight > 0)
    if known.all():
        return LabelledRows(block.phi, block.labels, block.weight)
    rows = np.flatnonzero(known)
    return LabelledRows(block.phi[rows], block.labels[rows], block.weight[rows])
