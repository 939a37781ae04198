"""What every comparison is told."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """``quick``: small problems; ``one_thread``: leave out what is measured on all cores."""

    quick: bool = False
    one_thread: bool = False

    @property
    def modes(self) -> list[tuple[str, int | None, str]]:
        """Name, number of threads (None: all cores) and clock of each way to run."""
        one: tuple[str, int | None, str] = ("one thread", 1, "cpu")
        return [one] if self.one_thread else [one, ("all cores", None, "wall")]

    def say(self, text: str) -> None:
        """Progress goes beside the tables, so that they can be redirected."""
        print(text, file=sys.stderr, flush=True)
