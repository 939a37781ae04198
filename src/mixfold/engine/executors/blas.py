"""Limit BLAS to one thread per worker while a pass runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import threadpoolctl

_lock = threading.Lock()
_depth = 0
_limits: list[tuple[Any, int]] = []
_controller: tuple[int, Any] = (-1, None)


def _current_controller() -> Any:
    # Finding the loaded libraries takes milliseconds, and a pass may take as little; only an
    # import can bring a new one.
    global _controller
    if _controller[0] != len(sys.modules):
        _controller = (len(sys.modules), threadpoolctl.ThreadpoolController())
    return _controller[1]


def release_control() -> None:
    """Let any thread set the limits of OpenBLAS next."""
    # From 3.8 on threadpoolctl lets one thread at a time set OpenBLAS and ignores the others;
    # the last pass to end need not be in the thread of the first one to begin.
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread, in the whole process, until the last pass under way ends.

    The limit belongs to the process, so overlapping passes count their entries: the first
    one saves what was set and the last one restores it.
    """
    global _depth, _limits
    with _lock:
        if _depth == 0:
            # what ``limit`` of threadpoolctl does, without asking all libraries for all they tell
            found = [(one, one.num_threads) for one in _current_controller().lib_controllers
                     if one.user_api == "blas"]  # fmt: skip
            _limits = [(one, threads) for one, threads in found if threads != 1]
            for one, _ in _limits:
                one.set_num_threads(1)
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and _limits:
                release_control()
                for one, threads in _limits:
                    one.set_num_threads(threads)
                release_control()
                _limits = []


def pin_this_thread() -> None:
    """Limit OpenMP to one thread for calls made from this (worker) thread.

    A BLAS built on OpenMP asks for the limit of the calling thread, which the process-wide
    one does not reach. On Windows that setting is process-wide, so it is left alone.
    """
    if sys.platform == "win32":
        return
    with _lock:
        libraries = _current_controller().select(user_api="openmp").lib_controllers
        for library in libraries:
            library.set_num_threads(1)
