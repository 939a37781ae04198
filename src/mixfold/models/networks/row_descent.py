"""Many small minimisations at once: each row has its own step size and stops by itself.

Steps are those of the proximal gradient with the length of Barzilai and Borwein, halved until the
row's own value is below the highest of its last few: such steps must be allowed to rise now and
then, or they lose their speed. A row's answer does not depend on the rows beside it.

References
----------
.. [1] Wright, Nowak, Figueiredo. Sparse reconstruction by separable approximation. IEEE
   Transactions on Signal Processing 57, 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from mixfold.contracts import Array

# rows (m, H) and which rows of the start they are -> values (m,), gradients (m, H)
RowFunction = Callable[[Array, Array], tuple[Array, Array]]
# a row gives up after so many halvings in a row: rounding is all that is left
HALVINGS = 40
# how much of the fall that the step promises must come, compared with this many values
SHARE, PAST = 1e-4, 8


@dataclass
class _Rows:
    """The rows that still move: points, values with penalty, gradients, lengths of steps."""

    index: Array
    x: Array
    value: Array
    slope: Array
    length: Array
    misses: Array
    past: Array

    def keep(self, chosen: Array) -> None:
        if not chosen.all():
            for one in fields(self):
                setattr(self, one.name, getattr(self, one.name)[chosen])


def descend(
    function: RowFunction,
    start: Array,
    rates: Array,
    lower: Array,
    upper: Array,
    *,
    max_steps: int = 500,
    tol: float = 1e-6,
    enough: Callable[[Array], Array] | None = None,
) -> tuple[Array, Array]:
    """Minimise function(x) + sum rates |x| over lower <= x <= upper for each row.

    Parameters
    ----------
    function : callable
        The smooth part, for rows and their numbers in ``start``.
    start : ndarray of shape (n, H)
    rates, lower, upper : ndarray of shape (H,)
    max_steps : int
    tol : float
        A row stops when its last step changed no entry by more than ``tol``, relative to 1 + |x|.
    enough : callable, optional
        Points (m, H) -> bool (m,): rows that end there.

    Returns
    -------
    points : ndarray of shape (n, H)
        The best of each row; with ``enough`` the last.
    values : ndarray of shape (n,)
        With the penalty; without ``enough`` never above those of the start inside the bounds.
    """
    points = np.clip(start, lower, upper)
    if not len(points):
        return points, np.zeros(0)
    rows = _first(function, points, rates)
    values = rows.value.copy()
    for _ in range(max_steps):
        if enough is not None:
            rows.keep(~enough(rows.x))
        if not len(rows.index):
            break
        arrived = _step(function, rows, rates, lower, upper, tol)
        better = rows.value <= values[rows.index] if enough is None else np.ones(len(arrived), bool)
        chosen = rows.index[better]
        points[chosen], values[chosen] = rows.x[better], rows.value[better]
        rows.keep(~arrived)
    return points, values


def _first(function: RowFunction, points: Array, rates: Array) -> _Rows:
    index = np.arange(len(points))
    smooth, slope = function(points, index)
    value = smooth + np.abs(points) @ rates
    length = 0.1 / np.maximum(np.abs(slope).max(axis=1), 1e-300)
    past = np.full((len(points), PAST), -np.inf)
    past[:, 0] = value
    return _Rows(index, points.copy(), value, slope, length, np.zeros(len(points)), past)


def _step(
    function: RowFunction, rows: _Rows, rates: Array, lower: Array, upper: Array, tol: float
) -> Array:
    """One trial of each row; True for rows that have arrived."""
    length = rows.length[:, None]
    trial = rows.x - length * rows.slope
    trial = np.sign(trial) * np.maximum(np.abs(trial) - length * rates, 0.0)
    trial = np.clip(trial, lower, upper)
    move = trial - rows.x
    smooth, slope = function(trial, rows.index)
    value = smooth + np.abs(trial) @ rates
    squares = np.einsum("nh,nh->n", move, move)
    better = value <= rows.past.max(axis=1) - SHARE * squares / (2 * rows.length)
    still = np.abs(move).max(axis=1) <= tol * (1 + np.abs(rows.x).max(axis=1))
    turn = np.einsum("nh,nh->n", move, slope - rows.slope)
    longer = np.where(turn > 0, squares / np.where(turn > 0, turn, 1.0), 4 * rows.length)
    longer = np.clip(longer, 1e-3 * rows.length, 1e3 * rows.length)
    rows.x = np.where(better[:, None], trial, rows.x)
    rows.slope = np.where(better[:, None], slope, rows.slope)
    rows.value = np.where(better, value, rows.value)
    rows.length = np.where(better, longer, 0.5 * rows.length)
    rows.misses = np.where(better, 0, rows.misses + 1)
    rows.past = np.where(better[:, None], np.roll(rows.past, 1, axis=1), rows.past)
    rows.past[better, 0] = value[better]
    return np.asarray(still | (rows.misses > HALVINGS))
