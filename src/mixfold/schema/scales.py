"""Scales on which models see numbers: plain, a power, the logarithm, a share; which it is to be.

A model of y = g(x) has the density of x after it is multiplied by g'(x), so that likelihoods on
different scales can be compared: ``log_slope`` is ln g'(x).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import betaln

from mixfold.contracts import Array
from mixfold.schema.column import Column

# the logarithm is the power 0; of these names files know
POWERS = {"log": 0.0, "sqrt": 1 / 2, "cbrt": 1 / 3, "reciprocal": -1.0}
NAMES = {
    "log": "logarithm", "sqrt": "square root", "cbrt": "cube root", "reciprocal": "reciprocal",
}  # fmt: skip
# a column that is less skewed than this is left as it is
_LEAST_SKEW = 0.5
# differences of BIC: strong evidence for a scale, and for another one than the logarithm
_STRONG = 6.0
_ROWS, _FEWEST_ROWS, _STEPS, _GROUPS = 300, 20, 30, 3
# least variance of a group of normals, as a part of that of the column
_FLOOR = 1e-3


def to_scale(column: Column, x: Array) -> Array:
    """What models see of numbers of a column."""
    if column.kind != "number" or column.scale == "plain":
        return x
    if column.scale == "share":
        return np.asarray(column.margin + (1 - 2 * column.margin) * x)
    return _power(column.scale, x)


def from_scale(column: Column, y: Array) -> Array:
    """The inverse of :func:`to_scale`; of what no number has, the nearest one."""
    if column.kind != "number" or column.scale == "plain":
        return y
    if column.scale == "share":
        return np.clip((y - column.margin) / (1 - 2 * column.margin), 0.0, 1.0)
    if column.scale == "log":
        return np.exp(y)
    if column.low is not None and column.high is not None:  # roots of what is below zero
        ends = _power(column.scale, np.array([column.low / 10, column.high * 10]))
        y = np.clip(y, *ends)
    if column.scale == "reciprocal":
        return np.asarray(-1 / y)
    return np.asarray(np.maximum(y, 0.0) ** (1 / POWERS[column.scale]))


def log_slope(column: Column, y: Array) -> Array | float:
    """ln |dy / dx| at what models see; 0 on the plain scale."""
    if column.kind != "number" or column.scale == "plain":
        return 0.0
    if column.scale == "share":
        return np.full(y.shape, np.log1p(-2 * column.margin))
    return _log_slope(column.scale, y)


def _power(scale: str, x: Array) -> Array:
    if scale == "log":
        return np.log(x)
    if scale == "reciprocal":
        return np.asarray(-1 / x)  # which grows with x
    return np.asarray(x ** POWERS[scale])


def _log_slope(scale: str, y: Array) -> Array:
    """Of y = x^p: ln p + (p - 1) ln x, where ln x = ln y / p."""
    if scale == "log":
        return -y
    if scale == "reciprocal":
        return 2 * np.log(-y)
    p = POWERS[scale]
    return np.asarray(np.log(p) + (p - 1) / p * np.log(y))


# ------------------------------------------------ which scale


def choose_scale(values: Array) -> tuple[str, float]:
    """The scale of positive numbers on which few normals describe them best, and by how much.

    Each scale is judged by the least BIC of mixtures of one to three normals, so that groups are
    not taken for skewness. Returns 'plain' and 0 unless another scale is better by far.
    """
    if len(values) < _FEWEST_ROWS or values.min() <= 0 or values.max() < 2 * values.min():
        return "plain", 0.0
    if abs(skewness(values)) < _LEAST_SKEW:
        return "plain", 0.0
    x = _thinned(values)
    plain = _normal_bic(x)
    bic = {}
    for scale in POWERS:
        y = _power(scale, x)
        bic[scale] = _normal_bic(y) - 2 * float(_log_slope(scale, y).sum())
    best = min(bic, key=lambda scale: bic[scale])
    if bic["log"] < bic[best] + _STRONG:  # the scale that people know
        best = "log"
    gain = plain - bic[best]
    return (best, gain) if gain > _STRONG else ("plain", 0.0)


def is_beta(shares: Array) -> bool:
    """Whether shares, none of them 0 or 1, are rather like few beta laws than like few normals."""
    if len(shares) < _FEWEST_ROWS:
        return False
    x = _thinned(shares)
    return _beta_bic(x) < _normal_bic(x)


def skewness(values: Array) -> float:
    """The third standardised moment."""
    z = values - values.mean()
    spread = float(np.sqrt(np.mean(z**2)))
    return float(np.mean((z / spread) ** 3)) if spread > 0 else 0.0


def _thinned(values: Array) -> Array:
    ordered = np.sort(values)
    if len(ordered) <= _ROWS:
        return ordered
    return np.asarray(ordered[np.linspace(0, len(ordered) - 1, _ROWS).round().astype(int)])


def _normal_bic(y: Array) -> float:
    """The least BIC of mixtures of one to three normals."""
    spread = float(y.std())
    if spread == 0:
        return np.inf
    z = (y - y.mean()) / spread

    def log_density(mean: Array, variance: Array) -> Array:
        variance = np.maximum(variance, _FLOOR)
        far = (z[:, None] - mean) ** 2 / variance
        return np.asarray(-0.5 * (far + np.log(2 * np.pi * variance)))

    return _least_bic(z, log_density) + 2 * len(y) * np.log(spread)


def _beta_bic(x: Array) -> float:
    """The same of beta laws, which are fitted by their moments."""
    logs = np.log(x)[:, None], np.log1p(-x)[:, None]
    floor = _FLOOR * float(x.var())

    def log_density(mean: Array, variance: Array) -> Array:
        most = mean * (1 - mean)
        total = most / np.clip(variance, floor, 0.999 * most) - 1
        a, b = mean * total, (1 - mean) * total
        return np.asarray((a - 1) * logs[0] + (b - 1) * logs[1] - betaln(a, b))

    return _least_bic(x, log_density)


def _least_bic(x: Array, log_density: Callable[[Array, Array], Array]) -> float:
    """Over mixtures of one to three laws of a mean and a variance, from quantiles; x is sorted."""
    n, found = len(x), []
    for k in range(1, _GROUPS + 1):
        resp = np.zeros((n, k))
        resp[np.arange(n), np.arange(n) * k // n] = 1.0
        for _ in range(_STEPS if k > 1 else 1):
            mass = resp.sum(axis=0) + 1e-9
            mean = x @ resp / mass
            variance = ((x[:, None] - mean) ** 2 * resp).sum(axis=0) / mass
            joint = np.log(mass / n) + log_density(mean, variance)
            total = np.logaddexp.reduce(joint, axis=1)
            resp = np.exp(joint - total[:, None])
        found.append(-2 * float(total.sum()) + (3 * k - 1) * np.log(n))
    return min(found)
