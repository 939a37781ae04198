"""Who is told when a kernel is compiled: once on a machine, but then it takes seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

COMPILING = "compiling kernels (once, they are kept for the next time) ..."

_listeners: list[Callable[[], None]] = []


@contextmanager
def told_of_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` whenever a kernel is compiled, unless somebody within wants to know it.

    Kernels that are read from numba's cache are not compiled. Nothing is imported for it.
    """
    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.remove(tell)


def tell_of_kernel() -> None:
    """Called before a kernel is compiled, by any thread."""
    if _listeners:
        _listeners[-1]()
