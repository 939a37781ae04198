"""Collapsed Gibbs kernels for beta, gamma and Dirichlet priors: scores, adding, removing rows.

A cluster keeps the coordinates chi of its posterior. A row that sits down adds T(x) to them, one
that leaves takes it away, and its predictive density is B(chi + T(x)) - B(chi), but for log h(x).
"""

from __future__ import annotations

import math
from typing import Any

from mixfold.contracts import Array
from mixfold.math.compiled import kernel

# what is left of a sum after a row has gone: below this share too few of its digits are right
LEAST_LEFT = 1e-6
# rising factorials of so many factors are products; shapes above are in Stirling's reach
_FACTORS, _LARGE = 8.0, 1e3


@kernel
def log_rising(a: float, n: float) -> float:
    """lnG(a + n) - lnG(a) for a > 0, n >= 0."""
    if n == 0:
        return 0.0
    if n <= _FACTORS and n == math.floor(n) and a < 1e30:
        product = 1.0
        for i in range(int(n)):
            product *= a + i
        return math.log(product)
    if a <= _LARGE:
        return math.lgamma(a + n) - math.lgamma(a)
    # Stirling's series of the difference: that of two large numbers has no digits left
    b = a + n
    tail = (1 / b - 1 / a) / 12 - (1 / b**3 - 1 / a**3) / 360
    return (a - 0.5) * math.log1p(n / a) + n * (math.log(b) - 1) + tail


@kernel
def _beta_entry(a: float, b: float, x: float, y: float) -> float:
    """Log predictive of x successes and y failures."""
    return log_rising(a, x) + log_rising(b, y) - log_rising(a + b, x + y)


@kernel
def _gamma_entry(a: float, b: float, x: float, y: float) -> float:
    """Log predictive of x events in an exposure of y, but for its base measure."""
    empty = -a * math.log1p(y / b)
    return empty if x == 0 else empty + log_rising(a, x) - x * math.log(b + y)


@kernel
def beta_scores(
    row: int, counts: Array, one: Array, two: Array, a: Array, b: Array, out: Array
) -> None:
    """Add the log predictive of a row of T = (one, two) under each cluster that has rows."""
    for k in range(counts.size):
        if counts[k] > 0:
            total = 0.0
            for d in range(one.shape[1]):
                total += _beta_entry(a[k, d], b[k, d], one[row, d], two[row, d])
            out[k] += total


@kernel
def gamma_scores(
    row: int, counts: Array, one: Array, two: Array, a: Array, b: Array, out: Array
) -> None:
    """The same for rates: T = (events, exposure)."""
    for k in range(counts.size):
        if counts[k] > 0:
            total = 0.0
            for d in range(one.shape[1]):
                total += _gamma_entry(a[k, d], b[k, d], one[row, d], two[row, d])
            out[k] += total


@kernel
def sparse_beta_scores(
    row: int, counts: Array, rows: Any, empty: Any, a: Array, b: Array, out: Array
) -> None:
    """The same from stored entries: ``empty`` is T of a zero (one, two: (D,)), and the log
    predictive of a row of zeros under each cluster (K,); ``rows`` is (ends, columns, one, two)."""
    ends, where, one, two = rows
    zero_one, zero_two, zeros = empty
    for k in range(counts.size):
        if counts[k] > 0:
            total = zeros[k]
            for i in range(ends[row], ends[row + 1]):
                d = where[i]
                total += _beta_entry(a[k, d], b[k, d], one[i], two[i])
                total -= _beta_entry(a[k, d], b[k, d], zero_one[d], zero_two[d])
            out[k] += total


@kernel
def sparse_gamma_scores(
    row: int, counts: Array, rows: Any, empty: Any, a: Array, b: Array, out: Array
) -> None:
    """The same for rates."""
    ends, where, one, two = rows
    zero_one, zero_two, zeros = empty
    for k in range(counts.size):
        if counts[k] > 0:
            total = zeros[k]
            for i in range(ends[row], ends[row + 1]):
                d = where[i]
                total += _gamma_entry(a[k, d], b[k, d], one[i], two[i])
                total -= _gamma_entry(a[k, d], b[k, d], zero_one[d], zero_two[d])
            out[k] += total


@kernel
def pair_shift(
    row: int, slot: int, sign: float, one: Array, two: Array, a: Array, b: Array
) -> bool:
    """Add a row to a cluster (sign 1) or take it away (-1); whether that cost digits."""
    lost = False
    for d in range(one.shape[1]):
        more, rest = a[slot, d] + sign * one[row, d], b[slot, d] + sign * two[row, d]
        lost |= more < LEAST_LEFT * a[slot, d] or rest < LEAST_LEFT * b[slot, d]
        a[slot, d], b[slot, d] = more, rest
    return lost


@kernel
def sparse_pair_shift(
    row: int, slot: int, sign: float, rows: Any, empty: Any, a: Array, b: Array
) -> bool:
    """The same from stored entries."""
    ends, where, one, two = rows
    zero_one, zero_two, _ = empty
    for d in range(zero_one.size):
        a[slot, d] += sign * zero_one[d]
        b[slot, d] += sign * zero_two[d]
    lost = False
    for i in range(ends[row], ends[row + 1]):
        d = where[i]
        more = a[slot, d] + sign * (one[i] - zero_one[d])
        rest = b[slot, d] + sign * (two[i] - zero_two[d])
        lost |= more < LEAST_LEFT * a[slot, d] or rest < LEAST_LEFT * b[slot, d]
        a[slot, d], b[slot, d] = more, rest
    return lost


@kernel
def share_scores(
    row: int,
    counts: Array,
    ends: Array,
    where: Array,
    amount: Array,
    lengths: Array,
    a: Array,
    total: Array,
    out: Array,
) -> None:
    """Add the log predictive of a row of shares, given by its entries that are not zero.

    ``lengths`` (n, S) are the sums of the entries over segments, ``total`` (K, S) those of ``a``.
    """
    for k in range(counts.size):
        if counts[k] > 0:
            value = 0.0
            for i in range(ends[row], ends[row + 1]):
                value += log_rising(a[k, where[i]], amount[i])
            for s in range(lengths.shape[1]):
                value -= log_rising(total[k, s], lengths[row, s])
            out[k] += value


@kernel
def share_shift(
    row: int,
    slot: int,
    sign: float,
    ends: Array,
    where: Array,
    amount: Array,
    lengths: Array,
    a: Array,
    total: Array,
) -> bool:
    """As ``pair_shift``."""
    lost = False
    for i in range(ends[row], ends[row + 1]):
        more = a[slot, where[i]] + sign * amount[i]
        lost |= more < LEAST_LEFT * a[slot, where[i]]
        a[slot, where[i]] = more
    for s in range(lengths.shape[1]):
        total[slot, s] += sign * lengths[row, s]
    return lost
