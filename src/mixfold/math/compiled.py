"""The decorators that compile kernels with numba: no GIL, cached, fused multiply-adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])
# NaN and infinity keep their meaning, and so does the order of a sum
_FAST = {"contract", "nsz", "arcp"}


def kernel(function: F) -> F:
    """Compile a loop over arrays."""
    return cast(F, njit(nogil=True, cache=True, fastmath=_FAST)(function))


def summing_kernel(function: F) -> F:
    """Compile a loop whose inner sums may be added in any order, which makes them vector code."""
    return cast(F, njit(nogil=True, cache=True, fastmath=_FAST | {"reassoc"})(function))
