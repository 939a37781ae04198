"""What each document was found to be in the last pass, where the next one begins.

A better start only: it is left behind when a model travels to another process, and dropped where
documents are too many to keep.
"""

from __future__ import annotations

from typing import Any

from mixfold.contracts import Array

# bytes that may be kept
ROOM = 2**30


class Memory:
    """Rows (n, K) by the number of the first one."""

    def __init__(self, room: float = ROOM) -> None:
        self.room = room
        self._rows: dict[int, Array] = {}

    def recall(self, start: int, shape: tuple[int, int]) -> Array | None:
        """A copy of what is known, or None."""
        known = self._rows.get(start)
        return known.copy() if known is not None and known.shape == shape else None

    def keep(self, start: int, rows: Array) -> None:
        known = sum(one.nbytes for first, one in list(self._rows.items()) if first != start)
        if known + rows.nbytes <= self.room:
            self._rows[start] = rows

    def __getstate__(self) -> dict[str, Any]:
        return {"room": self.room, "_rows": {}}
