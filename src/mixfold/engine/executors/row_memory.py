"""What is known of each row between two passes, for models that ask for it.

``LocalMemory`` lies in this process: one array over all rows, or a scratch file beyond
``SCRATCH_BYTES``. A cluster has its own (``engine/executors/dask_memory.py``), which lies beside
the rows on their workers. Both are workspaces: what an accepted pass has kept is a value
(``state``) that the climb carries on, so that a pass that is rejected, a start that is given up or
a proposal that is not followed leaves nothing behind.
"""

from __future__ import annotations

import mmap
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from mixfold.contracts import Array, Event, Executor, RowMemory, RowParts, Source, Stats, record
from mixfold.engine.executors.reduction import tree_sum

S = TypeVar("S", bound=Stats)

# bytes beyond which rows are remembered in a scratch file, which is no part of the process's memory
SCRATCH_BYTES = 2**30
# bytes that a checkpoint may hold of them
STORED_BYTES = 2**30


@record
@dataclass(frozen=True, slots=True)
class StoredRows:
    """What is known of all rows (n, ...), and where the blocks of the last pass began."""

    values: Array
    starts: Array


@record
@dataclass(frozen=True, slots=True)
class NotStored:
    """In a checkpoint, in place of what is known of the rows: it takes so many bytes."""

    n_bytes: int

    def event(self, iteration: int) -> Event:
        """What a user should know of a fit that goes on from there."""
        message = (
            f"the checkpoint does not hold what was known of each row ({self.n_bytes / 2**30:.1f} "
            f"GB, more than {STORED_BYTES / 2**30:g} GB): it was made again, and the fit may end "
            "in other numbers than one that is not interrupted"
        )
        return Event("memory", message, iteration)


class PassMemory(RowMemory, Protocol):
    """A memory as the engine uses it: one for a source, for all climbs over it."""

    def resume(self, state: Any) -> None:
        """Begin a pass with what an earlier one has left: its ``state``, or as it was stored."""
        ...

    @property
    def state(self) -> Any:
        """What is known, as a value; None if nothing is."""
        ...

    def map_reduce(self, task: Callable[..., S], source: Source) -> S:
        """Sum of ``task(block, memory=...)`` over the blocks of the source."""
        ...

    def parts(self) -> RowParts | None:
        """What is known, to be summed over; None if nothing is."""
        ...

    def store(self, state: Any) -> StoredRows | NotStored | None:
        """A state as a checkpoint holds it."""
        ...

    def take_events(self) -> tuple[Event, ...]:
        """What users should know of the last pass, once."""
        ...


def open_memory(model: Any, source: Source, executor: Executor) -> PassMemory | None:
    """A memory for the passes of a model over a source; None if the model wants none."""
    if not getattr(model, "remembers_rows", False):
        return None
    make = getattr(executor, "open_memory", None)
    memory: PassMemory = LocalMemory(source, executor) if make is None else make(source)
    return memory


@dataclass(frozen=True, slots=True)
class KnownRows:
    """What is known of consecutive rows from ``first`` on, and where the blocks of the pass began.

    The array is not written to any more.
    """

    values: Array
    starts: Array
    first: int = 0

    def split(self) -> list[Array]:
        """By the blocks of the pass."""
        return np.split(self.values, self.starts[1:] - self.first)


class HeldRows:
    """A memory of ``n_rows`` consecutive rows from ``first`` on, in this process.

    Blocks are disjoint, so that threads need no lock but for making the array.
    """

    def __init__(self, first: int, n_rows: int | None) -> None:
        self._first, self._n_rows = first, n_rows
        self._known: KnownRows | None = None
        self._fresh: Array | None = None
        self._kept: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    def recall(self, rows: slice) -> Array | None:
        if self._known is None:
            return None
        known = self._known.values[rows.start - self._first : rows.stop - self._first]
        known.flags.writeable = False
        return known

    def keep(self, rows: slice, value: Array) -> None:
        fresh = self._fresh
        if fresh is None:
            with self._lock:
                if self._fresh is None:
                    self._fresh = _empty_rows((self._count_rows(), *value.shape[1:]), value.dtype)
                fresh = self._fresh
        fresh[rows.start - self._first : rows.stop - self._first] = value
        self._kept.append((rows.start, rows.stop))

    def resume(self, state: Any) -> None:
        self._known, self._fresh, self._kept = state, None, []

    def accept(self) -> None:
        known = None
        if self._fresh is not None:
            bounds = np.array(sorted(self._kept))
            last = self._first + len(self._fresh)
            whole = bounds[0, 0] == self._first and bounds[-1, 1] == last
            if not (whole and (bounds[1:, 0] == bounds[:-1, 1]).all()):
                raise RuntimeError(
                    "expect of a model that remembers rows must keep each row once in a pass; it "
                    f"has kept {int(np.diff(bounds).sum())} rows of {len(self._fresh)}"
                )
            known = KnownRows(self._fresh, bounds[:, 0], self._first)
        self.resume(known)

    def forget(self) -> None:
        self.resume(None)

    @property
    def state(self) -> KnownRows | None:
        return self._known

    def _count_rows(self) -> int:
        assert self._n_rows is not None
        return self._n_rows


class LocalMemory(HeldRows):
    """All rows of a source, remembered in this process."""

    def __init__(self, source: Source, executor: Executor) -> None:
        super().__init__(0, None)
        self._source, self._executor = source, executor
        self._travelled = False
        self._events: tuple[Event, ...] = ()

    def resume(self, state: Any) -> None:
        if isinstance(state, StoredRows):
            state = KnownRows(state.values, state.starts)
        super().resume(None if isinstance(state, NotStored) else state)

    def accept(self) -> None:
        super().accept()
        if self._travelled:
            self._events = (_left_behind(),)

    def map_reduce(self, task: Callable[..., S], source: Source) -> S:
        total: S = self._executor.map_reduce(partial(task, memory=self), source)
        return total

    def parts(self) -> LocalParts | None:
        return None if self._known is None else LocalParts(self._known.split())

    def store(self, state: Any) -> StoredRows | NotStored | None:
        if not isinstance(state, KnownRows):
            return state  # type: ignore[no-any-return]  # none, or as it came from a file
        if state.values.nbytes > STORED_BYTES:
            return NotStored(state.values.nbytes)
        return StoredRows(state.values, state.starts)

    def take_events(self) -> tuple[Event, ...]:
        events, self._events = self._events, ()
        return events

    def _count_rows(self) -> int:
        known = self._source.n_samples
        return known if known is not None else sum(b.n_rows for b in self._source.blocks())

    def __reduce__(self) -> tuple[type[NoMemory], tuple[()]]:
        # to another process, by an executor that offers no memory there
        self._travelled = True
        return (NoMemory, ())


class NoMemory:
    """Nothing is known of any row, and nothing kept."""

    def recall(self, rows: slice) -> None:
        return None

    def keep(self, rows: slice, value: Array) -> None:
        return None

    def accept(self) -> None:
        return None

    def forget(self) -> None:
        return None


class LocalParts:
    """Parts in this process."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = parts

    def map(self, change: Callable[[Any], Any]) -> LocalParts:
        return LocalParts([change(part) for part in self._parts])

    def sum(self, task: Callable[[Any], S]) -> S:
        return tree_sum(task(part) for part in self._parts)


def _empty_rows(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array to be filled; a large one is mapped to a file without a name.

    Such a file is gone when the array is, also where the process is killed.
    """
    size = int(np.prod(shape)) * dtype.itemsize
    if size <= SCRATCH_BYTES:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="mixfold-rows-") as file:
        file.truncate(size)
        mapped = mmap.mmap(file.fileno(), size)
    return np.frombuffer(mapped, dtype).reshape(shape)


def _left_behind() -> Event:
    return Event(
        "memory",
        "the executor visits rows in other processes and offers no open_memory: what was found of "
        "each row is not there in the next pass, and the fit ends elsewhere than in one process",
    )
