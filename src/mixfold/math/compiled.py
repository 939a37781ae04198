"""The decorators that compile kernels with numba: no GIL, cached, fused multiply-adds.

numba is imported, and a kernel compiled or read from the cache, when a kernel is called for the
first time: small tables never call one, and to import numba takes longer than to fit them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, update_wrapper
from threading import RLock
from types import FunctionType
from typing import Any, TypeVar, cast

from mixfold.math.compilation import tell_of_kernel

F = TypeVar("F", bound=Callable[..., Any])
# NaN and infinity keep their meaning, and so does the order of a sum
_FAST = frozenset({"contract", "nsz", "arcp"})
_lock = RLock()


def kernel(function: F) -> F:
    """Compile a loop over arrays."""
    return cast(F, Kernel(function, _FAST))


def summing_kernel(function: F) -> F:
    """Compile a loop whose inner sums may be added in any order, which makes them vector code."""
    return cast(F, Kernel(function, _FAST | {"reassoc"}))


class Kernel:
    """A function that numba compiles when it is called for the first time."""

    def __init__(self, function: Callable[..., Any], fastmath: frozenset[str]) -> None:
        update_wrapper(self, function)
        self._function = cast(FunctionType, function)
        self._fastmath = fastmath
        self._dispatcher: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._dispatcher or self.dispatcher())(*arguments)

    def __reduce__(self) -> str:  # found again by its name, as a function is
        return self._function.__qualname__

    def dispatcher(self) -> Callable[..., Any]:
        """What numba makes of the function, with the kernels that it calls in their places."""
        with _lock:
            if self._dispatcher is None:
                njit, source = load_numba(), self._function
                known = source.__globals__
                called = {
                    name: known[name].dispatcher()
                    for name in source.__code__.co_names
                    if isinstance(known.get(name), Kernel)
                }
                function = FunctionType(source.__code__, {**known, **called}, source.__name__)
                function.__qualname__ = source.__qualname__  # part of the name in the cache
                compiled = njit(nogil=True, cache=True, fastmath=set(self._fastmath))
                self._dispatcher = compiled(function)
            found: Callable[..., Any] = self._dispatcher
        return found


@cache
def load_numba() -> Any:
    """numba's ``njit``, once it is told what of ours kernels may call and whom to tell of them."""
    from numba import njit
    from numba.core import event

    import mixfold.math.vector_exponential  # noqa: F401 (registers itself)

    class Compilation(event.Listener):
        """Hears of functions that numba compiles, not of those that it reads from its cache."""

        def on_start(self, event: Any) -> None:
            if event.data["dispatcher"].__module__.startswith("mixfold."):
                tell_of_kernel()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Compilation())  # type: ignore[no-untyped-call]
    return njit
