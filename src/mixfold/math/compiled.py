"""How the kernels are compiled: without the GIL, once per machine, with fused multiply-adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a loop over arrays. NaN and infinity keep their meaning."""
    compiled: F = njit(nogil=True, cache=True, fastmath={"contract", "nsz", "arcp"})(function)
    return compiled
