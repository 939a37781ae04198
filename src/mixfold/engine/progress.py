"""Progress of a fit: a bar in a terminal, plain lines in a log, nothing by default."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from mixfold.math.compilation import COMPILING, told_of_compilation

if TYPE_CHECKING:
    from mixfold.engine.state import Climb


class Progress:
    """Report the passes of a fit.

    Parameters
    ----------
    verbose : int
        0 is silent, 1 shows where the fit stands, 2 every iteration with its time.
    interval : int
        Iterations between two lines of a log.
    """

    def __init__(self, verbose: int, interval: int = 10) -> None:
        self.verbose = verbose
        self.interval = max(1, interval)
        self._status: Any = None
        self._last = -1
        self._began = time.monotonic()
        self._open = ExitStack()
        self._compiled = False

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        if self.verbose and sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("choosing a start ...")
            self._status.start()
        if self.verbose:
            self._open.enter_context(told_of_compilation(self._tell_of_compilation))
        return self

    def _tell_of_compilation(self) -> None:
        if self._status is not None:
            self._status.update(COMPILING)
        elif not self._compiled:
            print(COMPILING, file=sys.stderr, flush=True)
        self._compiled = True

    def __exit__(self, *_: object) -> None:
        self._open.close()
        if self._status is not None:
            self._status.stop()
            self._status = None

    def report(self, restart: int, climb: Climb) -> None:
        if not self.verbose:
            return
        line = describe(restart, climb, time.monotonic() - self._began)
        if self._status is not None:
            self._status.update(line)
        elif self._due(climb):
            print(line, file=sys.stderr, flush=True)

    def say(self, line: str, due: bool) -> None:
        """A line of something else than a climb; in a log only if it is ``due``."""
        if not self.verbose:
            return
        text = f"{line}  {time.monotonic() - self._began:.1f} s"
        if self._status is not None:
            self._status.update(text)
        elif due or self.verbose > 1:
            print(text, file=sys.stderr, flush=True)

    def _due(self, climb: Climb) -> bool:
        if climb.reason:
            self._last = -1
            return True
        every = 1 if self.verbose > 1 else self.interval
        due = climb.n_iter % every == 0 and climb.n_iter != self._last
        if due:
            self._last = climb.n_iter
        return due


def describe(restart: int, climb: Climb, seconds: float) -> str:
    """One line on where a climb stands."""
    mean = climb.objective / climb.weight if climb.weight else float("nan")
    left = climb.remaining / climb.weight if climb.weight else float("inf")
    text = f"start {restart + 1}  iteration {climb.n_iter}  objective per row {mean:.6f}"
    text += f"  still to gain {left:.1e}" if left != float("inf") else ""
    text += f"  {climb.reason}" if climb.reason else ""
    return f"{text}  {seconds:.1f} s"
