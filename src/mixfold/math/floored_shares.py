"""Shares that add to one, none below a floor.

argmax of sum_v amount_v ln p_v subject to p_v >= floor: what falls below the floor is held there,
and the others share the rest in proportion. As an M step it can never lower the likelihood, which
clipping and dividing again can.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.math.compiled import kernel


@kernel
def _room(amounts, starts, unit, floor, free, held):
    """Per segment: the amounts above the floor when scaled by ``unit``, and how many are not."""
    for s in range(starts.size - 1):
        for v in range(starts[s], starts[s + 1]):
            for k in range(amounts.shape[1]):
                amount = amounts[v, k]
                low = amount * unit[s, k] < floor
                free[s, k] += 0.0 if low else amount
                held[s, k] += 1.0 if low else 0.0


@kernel
def _scale(amounts, starts, unit, floor, out):
    for s in range(starts.size - 1):
        for v in range(starts[s], starts[s + 1]):
            for k in range(amounts.shape[1]):
                out[v, k] = max(amounts[v, k] * unit[s, k], floor)


def shares_above_floor(amounts: Array, starts: Array, floor: float) -> Array:
    """Shares (K, V) in proportion to amounts, per segment of columns that begins at ``starts``.

    NaN in a segment without any amount. The result is in Fortran order.

    Examples
    --------
    >>> shares_above_floor(np.array([[0.0, 3.0, 1.0, 2.0, 2.0]]), np.array([0, 3]), 0.1)
    array([[0.1  , 0.675, 0.225, 0.5  , 0.5  ]])
    """
    columns = np.ascontiguousarray(amounts.T, np.float64)
    bounds = np.append(starts, len(columns))
    shape = len(starts), columns.shape[1]
    total, count = np.zeros(shape), np.zeros(shape)
    _room(columns, bounds, np.full(shape, np.inf), -np.inf, total, count)
    empty = ~(total > 0)
    unit, last = 1 / np.where(empty, 1.0, total), np.full(shape, -1.0)
    while True:  # each round holds at least one more; fewer is rounding
        free, held = np.zeros(shape), np.zeros(shape)
        _room(columns, bounds, unit, floor, free, held)
        if (held <= last)[~empty].all():
            break
        unit = (1 - floor * held) / np.where(free > 0, free, 1.0)
        last = held
    out = np.empty_like(columns)
    _scale(columns, bounds, unit, floor, out)
    if empty.any():
        out[np.repeat(empty, np.diff(bounds), axis=0)] = np.nan
    return out.T
