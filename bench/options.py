"""What every comparison is told."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """``quick``: small problems; ``one_thread``: leave out what is measured on all cores.

    ``data``: the folder of real data sets, if there is one. ``keep``: a file to which comparisons
    of clusters write their figures as they come, and from which they go on.
    """

    quick: bool = False
    one_thread: bool = False
    data: Path | None = None
    keep: Path | None = None

    @property
    def modes(self) -> list[tuple[str, int | None, str]]:
        """Name, number of threads (None: all cores) and clock of each way to run."""
        one: tuple[str, int | None, str] = ("one thread", 1, "cpu")
        return [one] if self.one_thread else [one, ("all cores", None, "wall")]

    def say(self, text: str) -> None:
        """Progress goes beside the tables, so that they can be redirected."""
        print(text, file=sys.stderr, flush=True)
