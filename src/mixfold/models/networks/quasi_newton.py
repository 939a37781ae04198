"""Minimise a smooth function, with L1 penalties and bounds if wanted, by limited-memory BFGS.

A step is the two-loop recursion in the entries that no bound holds, projected on the bounds; its
length obeys Armijo's rule and, where a few trials find one, Wolfe's strong one. What a search has
learned of the curvature is a value, a ``Descent``, that a file can hold: a search that goes on from
it takes the same steps, bit for bit, as one that was not interrupted.

A penalty rate |x| is made smooth by two parts of x that are not negative: x = p - m, rate (p + m).
So zeros are exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, record

Function = Callable[[Array], tuple[float, Array]]

# pairs of differences that are remembered
PAIRS = 15
# part of the decrease, and of the slope, that a step has to make good
_ARMIJO, _WOLFE = 1e-3, 0.9
# evaluations along one line, and those of them that may go into a better length than a good one
_TRIALS, _FINE = 30, 8
# steps in a row that gain next to nothing before a search ends
_SMALL_STEPS = 2
# a slope that is none
_FLAT = 1e-9


@record
@dataclass(frozen=True, slots=True)
class Descent:
    """Where a search stands: all that its next step depends on.

    ``trace`` has the value at the start and after each step. ``steps`` and ``bends`` are (n, m)
    differences of the last points and of their slopes, oldest first.
    """

    point: Array
    slope: Array
    trace: tuple[float, ...]
    steps: Array
    bends: Array

    @property
    def value(self) -> float:
        return self.trace[-1]

    @property
    def n_iter(self) -> int:
        return len(self.trace) - 1


# told after each step where the search stands; a text ends the search for that reason
Watcher = Callable[[Descent], str]


@dataclass(frozen=True, slots=True)
class Minimum:
    """The last point, which is the best one, its value, values after each step, why it ended.

    ``reason`` is 'converged', 'max_iter', what the watcher said, or 'interrupted'.
    """

    point: Array
    value: float
    trace: tuple[float, ...]
    reason: str

    @property
    def n_iter(self) -> int:
        return len(self.trace) - 1


@dataclass(frozen=True, slots=True)
class _Box:
    """A function between bounds, which are infinite where there are none."""

    function: Function
    lower: Array | float
    upper: Array | float

    def inside(self, x: Array) -> Array:
        return np.clip(x, self.lower, self.upper)

    def free(self, x: Array, slope: Array) -> Array:
        """Entries that may go downhill."""
        held = ((x <= self.lower) & (slope > 0)) | ((x >= self.upper) & (slope < 0))
        return np.asarray(~held)


def minimise(
    function: Function,
    start: Array | Descent,
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
    start : ndarray or Descent
        A point, or where an earlier search of the same function stood.
    max_iter : int
        Steps, those of the earlier search among them.
    tol : float
        The search ends when two steps in a row lower the value by less than ``tol`` times its size.
    lower, upper : ndarray, optional
        Bounds, infinite where there are none.
    watch : callable, optional
        Where the search stands -> a reason to stop, or an empty text.

    Returns
    -------
    Minimum
        Also after Ctrl-C, once there is a value.
    """
    box = _Box(
        function, -np.inf if lower is None else lower, np.inf if upper is None else upper
    )  # fmt: skip
    now = start if isinstance(start, Descent) else _begin(box, start)
    reason = ""
    try:
        while not reason:
            if now.n_iter >= max_iter:
                reason = "max_iter"
                break
            moved = _step(box, now)
            if moved is None:
                reason = "converged"
                break
            now = moved
            reason = "" if watch is None else watch(now)
            if not reason and _has_converged(now.trace, tol):
                reason = "converged"
    except KeyboardInterrupt:
        reason = "interrupted"
    return Minimum(now.point, now.value, now.trace, reason)


def _has_converged(trace: tuple[float, ...], tol: float) -> bool:
    """Whether the last steps gained next to nothing; a single one may have met a bound."""
    last = trace[-1 - _SMALL_STEPS :]
    gains = [(a - b) / max(abs(a), abs(b), 1.0) for a, b in itertools.pairwise(last)]
    return len(gains) == _SMALL_STEPS and max(gains) <= tol


def _begin(box: _Box, start: Array) -> Descent:
    point = box.inside(np.array(start, dtype=np.float64))
    value, slope = box.function(point)
    none = np.empty((0, point.size))
    return Descent(point, np.asarray(slope, np.float64), (float(value),), none, none)


def _step(box: _Box, now: Descent) -> Descent | None:
    """The next point; None if there is no way down."""
    free = box.free(now.point, now.slope)
    slope = np.where(free, now.slope, 0.0)
    if not np.abs(slope).max(initial=0.0) > _FLAT:
        return None
    direction = _downhill(now, slope, free)
    if not slope @ direction < 0:
        now, direction = _forget(now), -slope
    found = _search_line(box, now, direction, _first_length(now, direction))
    if found is None and len(now.steps):  # the curvature may be that of another place
        now, direction = _forget(now), -slope
        found = _search_line(box, now, direction, _first_length(now, direction))
    if found is None:
        return None
    point, value, new_slope = found
    step, bend = point - now.point, new_slope - now.slope
    steps, bends = now.steps, now.bends
    if step @ bend > 1e-10 * np.linalg.norm(step) * np.linalg.norm(bend):
        steps = np.vstack([steps[-(PAIRS - 1) :], step])
        bends = np.vstack([bends[-(PAIRS - 1) :], bend])
    return Descent(point, new_slope, (*now.trace, value), steps, bends)


def _forget(now: Descent) -> Descent:
    return replace(now, steps=now.steps[:0], bends=now.bends[:0])


def _first_length(now: Descent, direction: Array) -> float:
    """Newton's steps have length 1; without curvature the first one goes as far as one."""
    return 1.0 if len(now.steps) else min(1.0, 1 / float(np.linalg.norm(direction)))


def _downhill(now: Descent, slope: Array, free: Array) -> Array:
    """The two-loop recursion in the free entries."""
    pairs = []
    for step, bend in zip(now.steps, now.bends, strict=True):
        s, y = np.where(free, step, 0.0), np.where(free, bend, 0.0)
        product = float(s @ y)
        if product > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            pairs.append((s, y, 1 / product))
    q, remembered = slope.copy(), []
    for s, y, rho in reversed(pairs):
        alpha = rho * (s @ q)
        q -= alpha * y
        remembered.append(alpha)
    if pairs:
        _, y, rho = pairs[-1]
        q /= rho * (y @ y)
    for (s, y, rho), alpha in zip(pairs, reversed(remembered), strict=True):
        q += (alpha - rho * (y @ q)) * s
    return np.asarray(-q)


def _search_line(
    box: _Box, now: Descent, direction: Array, length: float
) -> tuple[Array, float, Array] | None:
    """Point, value and slope at a good length along the projected line; None if all are worse."""
    low, high, best = 0.0, np.inf, None
    low_value, low_fall = now.value, float(now.slope @ direction)
    for trial in range(_TRIALS):
        ahead = now.point + length * direction
        point = box.inside(ahead)
        if np.array_equal(point, now.point):
            break
        value, slope = box.function(point)
        promise = float(now.slope @ (point - now.point))
        if not (np.isfinite(value) and value <= now.value + _ARMIJO * min(promise, 0.0)):
            high = length  # too far
            length = _between(low, low_value, low_fall, high, float(value))
            continue
        if best is None or value < best[1]:
            best = point, float(value), np.asarray(slope, np.float64)
        # slopes along the line, of entries that have not met their bound
        moving = point == ahead
        before, after = (float(each[moving] @ direction[moving]) for each in (now.slope, slope))
        if abs(after) <= _WOLFE * abs(before) or trial >= _FINE:
            break
        if after > 0:
            high = length
            length = _between(low, low_value, low_fall, high, float(value))
        else:
            low, low_value, low_fall = length, float(value), after
            length = 4 * length if high == np.inf else 0.5 * (low + high)
    return best


def _between(low: float, value: float, fall: float, high: float, high_value: float) -> float:
    """The lowest point of the parabola by value and slope at ``low`` and the value at ``high``."""
    width = high - low
    bend = 2 * (high_value - value - fall * width)
    best = -fall * width**2 / bend if np.isfinite(bend) and bend > 0 else 0.0
    return low + float(np.clip(best, 0.1 * width, 0.5 * width))


def minimise_l1(
    function: Function,
    start: Array | Descent,
    rates: Array,
    lower: Array,
    upper: Array,
    *,
    max_iter: int = 200,
    tol: float = 1e-6,
    watch: Watcher | None = None,
) -> Minimum:
    """Minimise function(x) + sum rates |x| over lower <= x <= upper; values include the penalty.

    The watcher, and a search that goes on, see the two parts of x.
    """
    two = np.flatnonzero((rates > 0) & (lower < 0) & (upper > 0))
    size = len(rates)

    def join_parts(parts: Array) -> Array:
        x = parts[:size].copy()
        x[two] -= parts[size:]
        return x

    # the sign of an entry that stays on one side is known, and its penalty linear
    signs = np.where(upper <= 0, -1.0, 1.0) * rates

    def smooth(parts: Array) -> tuple[float, Array]:
        value, slope = function(join_parts(parts))
        first, second = parts[:size], parts[size:]
        value += float(signs @ first + rates[two] @ second)
        return value, np.concatenate([slope + signs, rates[two] - slope[two]])

    if not isinstance(start, Descent):
        inside = np.clip(start, lower, upper)
        one = inside.copy()
        one[two] = np.maximum(inside[two], 0.0)
        start = np.concatenate([one, np.maximum(-inside[two], 0.0)])
    low, high = lower.copy(), np.concatenate([upper, -lower[two]])
    low[two] = 0.0
    found = minimise(
        smooth, start, max_iter=max_iter, tol=tol,
        lower=np.concatenate([low, np.zeros(len(two))]), upper=high, watch=watch,
    )  # fmt: skip
    return replace(found, point=join_parts(found.point))
