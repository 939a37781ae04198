"""The point of an L1 sphere that is nearest in a Mahalanobis distance.

    minimise (w - u)' Sigma^-1 (w - u)   subject to   sum |w_i| = c

From outside of the sphere the ball is as good as the sphere, and the problem convex: its path in
the multiplier is piecewise linear and followed exactly. From inside it is one problem for each
pattern of signs a, with the solution w(a) = u + Sigma a (c - a'u) / (a'Sigma a) and the value
F(a) = (c - a'u)^2 / (a'Sigma a): few signs are all tried, many are improved by turns and then by a
tabu search (Glover, 1989), which goes on from a local optimum through worse patterns.
"""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.math.compiled import kernel

# signs of this many entries are all tried: 2^12 patterns, each an update of the last
ALL_SIGNS = 12
# turns of the tabu search for each entry: on random problems with 33 entries 5 were enough
TURNS = 20
# an entry of zero may leave in either direction: it begins this far off, relative to the largest
_NUDGE = 1e-14


def nearest_on_sphere(u: Array, sigma: Array, c: float, near: Array) -> Array:
    """The nearest point of the sphere of radius c > 0.

    Global from outside of the sphere, and from inside with up to 12 entries. With more entries it
    is the best that a tabu search from several local optima has met, and never worse than ``near``.

    Parameters
    ----------
    u : ndarray of shape (d,)
        Where from.
    sigma : ndarray of shape (d, d)
        Positive definite; the distance is by its inverse.
    c : float
        Radius.
    near : ndarray of shape (d,)
        A point to begin with, of the sphere.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.l1_sphere import nearest_on_sphere
    >>> nearest_on_sphere(np.array([3.0, 1.0]), np.eye(2), 2.0, np.array([1.0, 1.0]))
    array([2., 0.])
    """
    if np.abs(u).sum() >= c:
        return _on_the_ball(_replace_zeros(u), sigma, c)
    best = _improve_signs(u, sigma, c, _sign(near, np.ones(len(u))))
    starts = [_sign(u, best)]
    if len(u) <= ALL_SIGNS:
        starts = [_every_pattern(u, sigma, c)]
    else:
        vector = np.linalg.eigh(sigma)[1][:, -1]
        starts += [_sign(vector, best), -_sign(vector, best)]
    for start in starts:
        found = _improve_signs(u, sigma, c, start)
        if _value(u, sigma, c, found) < _value(u, sigma, c, best):
            best = found
    if len(u) > ALL_SIGNS:
        best = _search_signs(u, sigma, c, best, TURNS * len(u))
    return _point(u, sigma, c, best)


# ------------------------------------------------------------------ from outside


def _replace_zeros(u: Array) -> Array:
    """Without zeros, so that no two pieces of the path begin at the same place."""
    some = np.abs(u).max() * _NUDGE * (1.0 + np.arange(len(u)))
    return np.where(u == 0, some, u)


@kernel
def _on_the_ball(u: Array, sigma: Array, c: float) -> Array:
    """w = u - lambda Sigma s with s in the signs of w, along lambda from 0 to |w| = c.

    Where w_i is zero, t_i = lambda s_i stays between -lambda and lambda.
    """
    d = len(u)
    sign = np.sign(u)
    free = u != 0.0
    now = 0.0
    w = u.copy()
    for _ in range(50 * d + 50):
        base, slope, held, push = _segment(u, sigma, sign, free)
        step, which = _next_turn(base, slope, held, push, sign, free, now)
        total, rate = 0.0, 0.0
        for i in range(d):
            if free[i]:
                total += sign[i] * base[i]
                rate += sign[i] * slope[i]
        reach = (total - c) / rate if rate > 0.0 else np.inf
        if reach <= step or which < 0:
            for i in range(d):
                w[i] = base[i] - reach * slope[i] if free[i] else 0.0
            break
        now = step
        if free[which]:
            free[which] = False
        else:
            free[which] = True
            sign[which] = np.sign(held[which] - step * push[which])
    return w


@kernel
def _next_turn(
    base: Array, slope: Array, held: Array, push: Array, sign: Array, free: Array, now: float
) -> tuple[float, int]:
    """Where along lambda an entry becomes zero, or leaves it, next; and which.

    w = base - lambda slope on the free entries, t = held - lambda push on the others.
    """
    step, which = np.inf, -1
    for i in range(len(base)):
        if free[i]:
            falls = sign[i] * slope[i]
            if falls > 0.0 and max(sign[i] * base[i] / falls, now) < step:
                step, which = max(sign[i] * base[i] / falls, now), i
            continue
        for side in (-1.0, 1.0):  # t = side * lambda
            rate = side + push[i]
            meets = held[i] / rate if rate != 0.0 else -1.0
            # it must be leaving: |t| grows faster than lambda
            if meets > now * (1 + 1e-12) and meets < step and -side * push[i] > 1.0:
                step, which = meets, i
    return step, which


@kernel
def _segment(u: Array, sigma: Array, sign: Array, free: Array) -> tuple[Array, Array, Array, Array]:
    """The lines of one piece of the path: base, slope of w and held, push of t."""
    d = len(u)
    inside = np.flatnonzero(~free)
    outside = np.flatnonzero(free)
    reach = np.zeros(d)  # Sigma s over the free entries
    for i in range(d):
        for j in outside:
            reach[i] += sigma[i, j] * sign[j]
    base, slope = u.copy(), reach.copy()
    held, push = np.zeros(d), np.zeros(d)
    if len(inside) > 0:
        S = np.empty((len(inside), len(inside)))
        right = np.empty((len(inside), 2))
        for a in range(len(inside)):
            for b in range(len(inside)):
                S[a, b] = sigma[inside[a], inside[b]]
            right[a, 0], right[a, 1] = u[inside[a]], reach[inside[a]]
        solved = np.linalg.solve(S, right)
        for a in range(len(inside)):
            held[inside[a]], push[inside[a]] = solved[a, 0], solved[a, 1]
        for j in outside:
            for a in range(len(inside)):
                base[j] -= sigma[j, inside[a]] * solved[a, 0]
                slope[j] -= sigma[j, inside[a]] * solved[a, 1]
    return base, slope, held, push


# ------------------------------------------------------------------ from inside


def _sign(w: Array, otherwise: Array) -> Array:
    return np.where(w == 0, otherwise, np.sign(w))


def _value(u: Array, sigma: Array, c: float, a: Array) -> float:
    return float((c - a @ u) ** 2 / (a @ sigma @ a))


def _point(u: Array, sigma: Array, c: float, a: Array) -> Array:
    across = sigma @ a
    return np.asarray(u + across * ((c - a @ u) / (a @ across)))


@kernel
def _improve_signs(u: Array, sigma: Array, c: float, start: Array) -> Array:
    """Signs improved by those of their own solution, then one by one, until nothing helps."""
    a = start.copy()
    d = len(a)
    across = sigma @ a
    for _ in range(200 * d + 200):
        gap, spread = c - a @ u, a @ across
        w = u + across * (gap / spread)
        turned = a.copy()
        for i in range(d):
            if w[i] * a[i] < 0.0:
                turned[i] = -a[i]
        value = gap * gap / spread
        along = sigma @ turned
        gap_t, spread_t = c - turned @ u, turned @ along
        if gap_t * gap_t / spread_t < value * (1 - 1e-14):
            a, across = turned, along
            continue
        best, which = value * (1 - 1e-14), -1
        for i in range(d):
            gap_i = gap + 2 * a[i] * u[i]
            spread_i = spread - 4 * a[i] * across[i] + 4 * sigma[i, i]
            if gap_i * gap_i / spread_i < best:
                best, which = gap_i * gap_i / spread_i, i
        if which < 0:
            break
        across -= 2 * a[which] * sigma[which]
        a[which] = -a[which]
    return a


@kernel
def _search_signs(u: Array, sigma: Array, c: float, start: Array, n_turns: int) -> Array:
    """The best signs met when the best one is turned each time, be it for the worse.

    Those that were turned a short while ago stay, unless a turn leads below all that was met: so
    the search leaves a local optimum and does not come back at once.
    """
    a, found = start.copy(), start.copy()
    d = len(a)
    rest = d // 6 + 2
    across = sigma @ a
    gap, spread = c - a @ u, a @ across
    best = gap * gap / spread
    held = np.zeros(d, np.int64)
    for turn in range(1, n_turns + 1):
        least, which = np.inf, -1
        for i in range(d):
            gap_i = gap + 2 * a[i] * u[i]
            spread_i = spread - 4 * a[i] * across[i] + 4 * sigma[i, i]
            value = gap_i * gap_i / spread_i
            if value < least and (held[i] < turn or value < best * (1 - 1e-14)):
                least, which = value, i
        if which < 0:
            continue
        gap += 2 * a[which] * u[which]
        spread += -4 * a[which] * across[which] + 4 * sigma[which, which]
        across -= 2 * a[which] * sigma[which]
        a[which] = -a[which]
        # of varying length, so that no cycle closes
        held[which] = turn + rest + (turn * 7919) % (rest + 1)
        if least < best * (1 - 1e-14):
            best, found = least, a.copy()
    return found


@kernel
def _every_pattern(u: Array, sigma: Array, c: float) -> Array:
    """The best signs of all, each made of the last by turning one (a Gray code)."""
    d = len(u)
    a = np.ones(d)
    across = sigma @ a
    gap, spread = c - a @ u, a @ across
    best, found = gap * gap / spread, a.copy()
    for number in range(1, 1 << d):
        i = 0
        while not (number >> i) & 1:
            i += 1
        gap += 2 * a[i] * u[i]
        spread += -4 * a[i] * across[i] + 4 * sigma[i, i]
        across -= 2 * a[i] * sigma[i]
        a[i] = -a[i]
        if gap * gap / spread < best:
            best, found = gap * gap / spread, a.copy()
    return found
