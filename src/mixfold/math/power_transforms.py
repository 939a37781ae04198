"""Changes of scale of one column, and the one after which it is most like a normal.

A change of scale g has the density of x as that of g(x) times |g'(x)|, so that likelihoods before
and after it can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from mixfold.contracts import Array

# exponents that are tried
_LEAST, _MOST = -3.0, 5.0


@dataclass(frozen=True, slots=True)
class Transform:
    """A change of scale: its name with ``{}`` for the column, values, log derivative."""

    name: str
    apply: Callable[[Array], Array]
    log_slope: Callable[[Array], Array]
    n_parameters: int = 0


IDENTITY = Transform("{}", lambda x: x, np.zeros_like)


def candidates(x: Array, weight: Array) -> list[Transform]:
    """The changes of scale that a column allows: those with a name, then a fitted power."""
    found = []
    low = x.min()
    if low > 0:
        found.append(Transform("the logarithm of {}", np.log, lambda v: -np.log(v)))
        found.append(Transform("1 / {}", lambda v: -1 / v, lambda v: -2 * np.log(v)))
        found.append(
            Transform("the square root of {}", np.sqrt, lambda v: -0.5 * np.log(v) - np.log(2.0))
        )
        found.append(
            Transform("the cube root of {}", np.cbrt, lambda v: -2 / 3 * np.log(v) - np.log(3.0))
        )
    elif low == 0:
        found.append(Transform("the logarithm of 1 + {}", np.log1p, lambda v: -np.log1p(v)))
    elif low < 0:
        found.append(_shifted_log(x, weight))
    return [*found, _fitted_power(x, weight)]


def _scale(x: Array, weight: Array) -> float:
    return float(np.sqrt(weight @ (x - weight @ x / weight.sum()) ** 2 / weight.sum()))


def _shifted_log(x: Array, weight: Array) -> Transform:
    """ln(x + c) with c of the greatest normal likelihood, for columns that begin anywhere."""
    low, scale = float(x.min()), _scale(x, weight)

    def shifted(log_distance: float) -> Transform:
        c = scale * float(np.exp(log_distance)) - low
        return Transform(
            f"the logarithm of ({{}} {'-' if c < 0 else '+'} {abs(c):.4g})",
            lambda v: np.log(v + c),
            lambda v: -np.log(v + c),
            1,
        )

    return _most_normal(shifted, np.log(1e-4), np.log(10.0), x, weight)


def _most_normal(
    family: Callable[[float], Transform], least: float, most: float, x: Array, weight: Array
) -> Transform:
    """The member of a family with one parameter that makes the column most like a normal."""
    best = minimize_scalar(
        lambda p: -max(normal_log_likelihood(family(p), x, weight), -1e300),
        bounds=(least, most),
        method="bounded",
    )
    return family(float(best.x))


def _fitted_power(x: Array, weight: Array) -> Transform:
    """The Yeo-Johnson power of the greatest normal likelihood; its scale is that of the column."""
    scale = _scale(x, weight)

    def power(exponent: float) -> Transform:
        return Transform(
            f"the Yeo-Johnson power {exponent:.2g} of {{}} / {scale:.3g}",
            lambda v: yeo_johnson(v / scale, exponent),
            lambda v: (exponent - 1) * np.sign(v) * np.log1p(np.abs(v) / scale) - np.log(scale),
            2,
        )

    return _most_normal(power, _LEAST, _MOST, x, weight)


def yeo_johnson(x: Array, exponent: float) -> Array:
    """The power transformation of Yeo and Johnson (2000), for numbers of both signs."""
    out = np.empty_like(x, dtype=float)
    positive = x >= 0
    for part, e, sign in ((positive, exponent, 1.0), (~positive, 2 - exponent, -1.0)):
        logs = np.log1p(sign * x[part])
        out[part] = sign * (logs if abs(e) < 1e-9 else np.expm1(e * logs) / e)
    return out


def normal_log_likelihood(transform: Transform, x: Array, weight: Array) -> float:
    """Of a normal for g(x), as a density of x, at its best mean and variance."""
    with np.errstate(all="ignore"):
        y = transform.apply(x)
        total = weight.sum()
        variance = weight @ (y - weight @ y / total) ** 2 / total
        slope = weight @ transform.log_slope(x)
        value = -0.5 * total * (np.log(2 * np.pi * variance) + 1) + slope
    return float(value) if np.isfinite(value) else -np.inf


def quantile_skewness(x: Array, weight: Array) -> float:
    """How far the median is from the middle of the 5 and 95 % quantiles: -1 to 1, tails aside."""
    low, middle, high = np.quantile(x, (0.05, 0.5, 0.95), weights=weight, method="inverted_cdf")
    return float((high + low - 2 * middle) / (high - low)) if high > low else 0.0


def best_transform(x: Array, weight: Array) -> Transform:
    """The change of scale of the lowest BIC of a normal; the column itself if none is lower.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Observed entries.
    weight : ndarray of shape (n,)
    """
    price = float(np.log(max(weight.sum(), 2.0)))

    def cost(transform: Transform) -> float:
        likelihood = normal_log_likelihood(transform, x, weight)
        return -2 * likelihood + transform.n_parameters * price

    chosen = min(candidates(x, weight), key=cost)
    return chosen if cost(chosen) + price < cost(IDENTITY) else IDENTITY
