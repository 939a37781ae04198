"""The decorators that compile kernels with numba: no GIL, cached, fused multiply-adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event

from mixfold.math.compilation import tell_of_kernel

F = TypeVar("F", bound=Callable[..., Any])
# NaN and infinity keep their meaning, and so does the order of a sum
_FAST = {"contract", "nsz", "arcp"}


def kernel(function: F) -> F:
    """Compile a loop over arrays."""
    return cast(F, njit(nogil=True, cache=True, fastmath=_FAST)(function))


def summing_kernel(function: F) -> F:
    """Compile a loop whose inner sums may be added in any order, which makes them vector code."""
    return cast(F, njit(nogil=True, cache=True, fastmath=_FAST | {"reassoc"})(function))


class _Compilation(event.Listener):
    """Hears of functions that numba compiles, not of those that it reads from its cache."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"].__module__.startswith("mixfold."):
            tell_of_kernel()

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Compilation())  # type: ignore[no-untyped-call]
