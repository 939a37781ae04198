"""Minimise a smooth function, with L1 penalties and bounds if wanted, by limited-memory BFGS.

A penalty rate |x| is made smooth by two parts of x that are not negative: x = p - m, rate (p + m).
So zeros are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import Bounds, minimize

from mixfold.contracts import Array

Function = Callable[[Array], tuple[float, Array]]
# told after each step (steps made, value, point); a text ends the search for that reason
Watcher = Callable[[int, float, Array], str]

# pairs of differences that are remembered
PAIRS = 15


@dataclass(frozen=True, slots=True)
class Minimum:
    """The best point that was seen, its value, values after each step, and why the search ended.

    ``reason`` is 'converged', 'max_iter', what the watcher said, or 'interrupted'.
    """

    point: Array
    value: float
    trace: tuple[float, ...]
    reason: str

    @property
    def n_iter(self) -> int:
        return len(self.trace) - 1


@dataclass
class _Search:
    """The function, with the best point of all calls and the values of all steps."""

    function: Function
    watch: Watcher | None
    point: Array
    value: float = float("inf")
    trace: list[float] = field(default_factory=list)
    reason: str = ""

    def call(self, x: Array) -> tuple[float, Array]:
        value, slope = self.function(x)
        if value < self.value:
            self.point, self.value = x.copy(), value
        if not self.trace:
            self.trace.append(value)
        return value, slope

    def step(self, intermediate_result: object) -> None:
        value = float(intermediate_result.fun)  # type: ignore[attr-defined]
        self.trace.append(value)
        if self.watch is not None:
            # at the end of a line search the point is the best one so far
            self.reason = self.watch(len(self.trace) - 1, value, self.point)
            if self.reason:
                raise StopIteration


def minimise(
    function: Function,
    start: Array,
    *,
    max_iter: int = 200,
    tol: float = 1e-6,
    lower: Array | None = None,
    upper: Array | None = None,
    watch: Watcher | None = None,
) -> Minimum:
    """Quasi-Newton steps down from ``start``; the value never rises.

    Parameters
    ----------
    function : callable
        Vector -> value and gradient.
    start : ndarray
    max_iter : int
    tol : float
        The search ends when a step lowers the value by less than ``tol`` times its size.
    lower, upper : ndarray, optional
        Bounds, infinite where there are none.
    watch : callable, optional
        (steps, value, point) -> a reason to stop, or an empty text.

    Returns
    -------
    Minimum
        Also after Ctrl-C, once there is a value.
    """
    search = _Search(function, watch, np.array(start, dtype=np.float64))
    if max_iter == 0:
        search.call(search.point)
        return Minimum(search.point, search.value, tuple(search.trace), "max_iter")
    bounds = None
    if lower is not None or upper is not None:
        bounds = Bounds(
            -np.inf if lower is None else lower, np.inf if upper is None else upper
        )  # fmt: skip
    options = {
        "maxiter": max_iter, "maxfun": 4 * max_iter + 50, "maxcor": PAIRS, "ftol": tol,
        "gtol": 1e-9,
    }  # fmt: skip
    try:
        found = minimize(
            search.call, search.point, jac=True, method="L-BFGS-B", bounds=bounds,
            callback=search.step, options=options,
        )  # fmt: skip
        ended = "max_iter" if found.status == 1 else "converged"
    except KeyboardInterrupt:
        if not search.trace:
            raise
        ended = "interrupted"
    return Minimum(search.point, search.value, tuple(search.trace), search.reason or ended)


def minimise_l1(
    function: Function,
    start: Array,
    rates: Array,
    lower: Array,
    upper: Array,
    *,
    max_iter: int = 200,
    tol: float = 1e-6,
    watch: Watcher | None = None,
) -> Minimum:
    """Minimise function(x) + sum rates |x| over lower <= x <= upper; values include the penalty."""
    two = np.flatnonzero((rates > 0) & (lower < 0) & (upper > 0))

    def join_parts(parts: Array) -> Array:
        x = parts[: len(start)].copy()
        x[two] -= parts[len(start) :]
        return x

    # the sign of an entry that stays on one side is known, and its penalty linear
    signs = np.where(upper <= 0, -1.0, 1.0) * rates

    def smooth(parts: Array) -> tuple[float, Array]:
        value, slope = function(join_parts(parts))
        first, second = parts[: len(start)], parts[len(start) :]
        value += float(signs @ first + rates[two] @ second)
        return value, np.concatenate([slope + signs, rates[two] - slope[two]])

    inside = np.clip(start, lower, upper)
    one = inside.copy()
    one[two] = np.maximum(inside[two], 0.0)
    low, high = lower.copy(), np.concatenate([upper, -lower[two]])
    low[two] = 0.0
    found = minimise(
        smooth, np.concatenate([one, np.maximum(-inside[two], 0.0)]), max_iter=max_iter, tol=tol,
        lower=np.concatenate([low, np.zeros(len(two))]), upper=high,
        watch=None if watch is None else lambda n, value, parts: watch(n, value, join_parts(parts)),
    )  # fmt: skip
    return Minimum(join_parts(found.point), found.value, found.trace, found.reason)
