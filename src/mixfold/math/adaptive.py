"""Step size control: 1.3 times longer after a success, halved until there is one."""

from __future__ import annotations

from collections.abc import Callable

from mixfold.contracts import Array

GROWTH, HALVINGS = 1.3, 50
# steps that change nothing succeed, but are not to grow for ever
LONGEST = 1e6


def adaptive_step(
    x: Array, size: float, move: Callable[[Array, float], Array], value: Callable[[Array], float]
) -> tuple[Array, float]:
    """``move(x, size)`` with the first of the sizes size, size/2, ... that is no worse than x.

    Returns the new x and the size to begin with next time; x itself if all attempts failed.
    """
    before = value(x)
    for _ in range(HALVINGS):
        new = move(x, size)
        if value(new) <= before:
            return new, min(size * GROWTH, LONGEST)
        size *= 0.5
    return x, size
