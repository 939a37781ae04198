"""Checkpoints: the state of a fit in a file, so that it goes on after a crash."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mixfold import store
from mixfold.contracts import Pilot, record
from mixfold.engine.executors.cluster import ClusterError
from mixfold.engine.moves import Moving
from mixfold.engine.state import Climb
from mixfold.engine.unions import Ended
from mixfold.math.frame import check_frames

KIND = "checkpoint"
# errors of a fit that goes on which say nothing about the file
_NOT_OF_THE_FILE = (OSError, MemoryError, ClusterError, store.ModelFileError)
# at most this share of the time goes into writing
_SHARE = 0.05
# and this many seconds lie between two writes
_LEAST_SECONDS = 0.5


class Standing(Protocol):
    """Where a fit of any kind stands; ``reason`` says why it ended, and is empty before."""

    @property
    def seed(self) -> int: ...

    @property
    def reason(self) -> str: ...


@record
@dataclass(frozen=True, slots=True)
class Progressed:
    """Where a fit stands: the restart under way, its climb, and the best climb that has ended.

    ``moving`` is the move out of a local optimum that the climb follows, if it does; ``ended`` are
    the restarts before it, if they are to be merged.
    """

    seed: int
    restart: int
    climb: Climb | None
    best: Climb | None
    moving: Moving | None = None
    ended: tuple[Ended, ...] = ()

    @property
    def reason(self) -> str:
        return "" if self.best is None else self.best.reason


class Checkpoint:
    """The file of one fit.

    Parameters
    ----------
    path : path-like
        Written atomically; removed when the fit has ended by itself.
    settings : dict
        What must be the same for a fit to go on: parameters of the estimator, as JSON values.

    Attributes
    ----------
    pack : callable, optional
        Turns where a fit stands into what a file can hold, where that is not the same.
    """

    def __init__(self, path: str | Path, settings: dict[str, Any]) -> None:
        self.path = Path(path)
        self.settings = settings
        self.pack: Callable[[Any], Any] | None = None
        self._data = 0
        self._saved: Any = None
        self._looked = False
        self._next = 0.0

    def read(self) -> Any:
        """The state in the file, None if there is no file.

        What a fit that was killed while it wrote has left beside the file is removed.
        """
        if not self._looked:
            self._looked = True
            self._saved = self._read()
        return self._saved

    def seed(self, otherwise: int) -> int:
        """The seed of the stored fit: one that goes on must draw the same numbers."""
        saved = self.read()
        return otherwise if saved is None else int(saved.seed)

    def _read(self) -> Any:
        store.remove_leftovers(self.path)
        if not self.path.exists():
            return None
        tree = store.read(self.path, KIND)
        try:
            check_frames(tree)
        except ValueError as error:
            raise store.ModelFileError(
                self.path, str(error), "delete this checkpoint, or give another path"
            ) from None
        changed = sorted(
            k for k in self.settings if _differ(tree["settings"].get(k), self.settings[k])
        )
        if changed:
            raise ValueError(
                f"checkpoint {str(self.path)!r} belongs to another fit: {', '.join(changed)} "
                "differ. Delete the file, or give another path"
            )
        self._data = tree["data"]
        return tree["progressed"]

    def check(self, saved: Standing | None, pilot: Pilot) -> None:
        """Refuse to go on with other data."""
        self.compare(saved, fingerprint(pilot))

    def compare(self, saved: Standing | None, data: int) -> None:
        """The same, of data that are told apart by a number."""
        if saved is not None and data != self._data:
            raise ValueError(
                f"checkpoint {str(self.path)!r} was written for other data (rows, weights or "
                "column ranges differ). Delete the file, or give another path"
            )
        self._data = data

    @contextmanager
    def going_on(self, saved: Standing | None) -> Iterator[None]:
        """What goes on from a stored state; if its parts do not fit each other, an error says so.

        A fit that begins anew raises what it raises.
        """
        try:
            yield
        except Exception as error:
            if saved is None or isinstance(error, _NOT_OF_THE_FILE):
                raise
            said = str(error).splitlines()[0] if str(error) else ""
            raise store.ModelFileError(
                self.path,
                f"the fit of this checkpoint cannot go on ({type(error).__name__}: {said})",
                "delete the file to fit from the beginning",
            ) from error

    def offer(self, progressed: Standing) -> None:
        """Write, unless that was done a moment ago."""
        if time.monotonic() >= self._next:
            self.write(progressed)

    def write(self, progressed: Standing) -> None:
        began = time.monotonic()
        stored = progressed if self.pack is None else self.pack(progressed)
        tree = {"settings": self.settings, "data": self._data, "progressed": stored}
        store.write(self.path, KIND, tree)
        now = time.monotonic()
        self._next = now + max(_LEAST_SECONDS, (now - began) / _SHARE)

    def finish(self, progressed: Standing) -> None:
        """Remove the file of a fit that ended by itself."""
        if progressed.reason not in ("time_budget", "interrupted"):
            self.path.unlink(missing_ok=True)


def going_on(checkpoint: Checkpoint | None, saved: Standing | None) -> AbstractContextManager[None]:
    """``Checkpoint.going_on``, of a fit that may have no checkpoint."""
    return nullcontext() if checkpoint is None else checkpoint.going_on(saved)


def fingerprint(pilot: Pilot) -> int:
    """A number that other data will hardly share."""
    sums = np.array([pilot.total_rows, pilot.total_weight], float)
    block = pilot.block
    rows = block.X if isinstance(block.X, np.ndarray) else block.X.data
    parts = [sums, pilot.observed, pilot.minimum, pilot.maximum, rows]
    parts += [side for side in (block.weight, block.y) if side is not None]
    return zlib.crc32(b"".join(np.ascontiguousarray(p, float).tobytes() for p in parts))


def _differ(stored: Any, given: Any) -> bool:
    """Whether two settings are not the same; a damaged file may hold an array for a number."""
    if isinstance(stored, np.ndarray) or isinstance(given, np.ndarray):
        return type(stored) is not type(given) or not np.array_equal(stored, given)
    return bool(stored != given)
