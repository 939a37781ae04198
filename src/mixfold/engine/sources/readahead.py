"""Prepare the next items in the background while the caller works on this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar("T")
_POLL = 0.05  # seconds after which a waiting reader looks whether anyone still wants its items


@dataclass(frozen=True)
class _End:
    """The last thing in the queue: why the reader stopped."""

    error: BaseException | None = None


def read_ahead(make: Callable[[], Iterator[T]], depth: int = 2) -> Iterator[T]:
    """The items of ``make()``, produced by a thread at most ``depth`` ahead.

    The thread starts with the first item asked for and ends with the iteration, also when
    that is abandoned. An error in the thread is raised to the caller, in its place.

    Parameters
    ----------
    make : callable
        Gives the generator to run in the background.
    depth : int
        Items that may wait; one more is being made.
    """
    queue: Queue[Any] = Queue(maxsize=depth)
    abandoned = Event()
    reader = Thread(
        target=_fill, args=(make, queue, abandoned), name="mixfold-read-ahead", daemon=True
    )
    reader.start()
    try:
        while not isinstance(item := queue.get(), _End):
            yield item
            del item  # or this frame would keep a block alive while it waits for the next
        if item.error is not None:
            raise item.error
    finally:
        abandoned.set()
        with suppress(Empty):
            while True:
                queue.get_nowait()
        reader.join()


def _fill(make: Callable[[], Any], queue: Queue[Any], abandoned: Event) -> None:
    try:
        with closing(make()) as items:
            for item in items:
                if not _put(item, queue, abandoned):
                    return
        end = _End()
    except BaseException as error:  # handed to the caller, who raises it
        end = _End(error)
    _put(end, queue, abandoned)


def _put(item: Any, queue: Queue[Any], abandoned: Event) -> bool:
    while not abandoned.is_set():
        with suppress(Full):
            queue.put(item, timeout=_POLL)
            return True
    return False
