"""The time budget of a fit: when it ends, and what is left of it.

A fit that consists of several makes one :class:`Deadline` when it begins, and gives each of them
``seconds_left`` as its own budget.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self

# what is left of a budget that was used up: a budget is positive, and a fit makes one pass at least
LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock (``at``) at which a fit ends; by default there is none.

    Examples
    --------
    >>> Deadline.after(None).seconds_left is None, Deadline.after(None).has_passed
    (True, False)
    >>> 59 < Deadline.after(60.0).seconds_left <= 60
    True
    >>> OVER.has_passed, OVER.seconds_left
    (True, 1e-09)
    """

    at: float = float("inf")

    @classmethod
    def after(cls, seconds: float | None) -> Self:
        """That of a budget which begins now; None is no limit."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def has_passed(self) -> bool:
        return time.monotonic() >= self.at

    @property
    def seconds_left(self) -> float | None:
        """A budget for what is still to be done: positive, None without a limit."""
        if self.at == float("inf"):
            return None
        return max(self.at - time.monotonic(), LEAST)


# no limit
NEVER = Deadline()
# of a fit that was interrupted: what is left of it gets the least time there is
OVER = Deadline(-float("inf"))
