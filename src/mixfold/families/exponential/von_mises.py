"""Angles, hours, weekdays: numbers that begin again after a period, column by column.

With the angle a = 2 pi x / period the density of a von Mises law is linear in (cos a, sin a):

    log p(x) = u cos a + v sin a - ln I0(kappa) - ln period,  kappa = |(u, v)|

so that the M step is the mean direction, and the concentration whose mean resultant length is that
of the rows.

References
----------
K. V. Mardia, P. E. Jupp (2000). Directional Statistics. Wiley.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import i0e, i1e

from mixfold.contracts import Array, Block, Metric, record
from mixfold.families.component import Scores, dense_rows
from mixfold.families.exponential.pseudo_rows import PairedColumns, both, halves, with_statistics
from mixfold.families.exponential.records import LinearMoments, LinearParams, LinearReading
from mixfold.families.exponential.support import per_column, refuse_sparse, require_positive

_TURN = 2 * np.pi
# nodes of a distribution function that is inverted, and how far from the mode they reach
_NODES, _REACH = 513, 12.0
# below it a law is told from the uniform one by rounding only
_FLAT = 1e-6


def resultant(kappa: Array) -> Array:
    """The mean resultant length I1(kappa) / I0(kappa) of von Mises laws."""
    return np.asarray(i1e(kappa) / i0e(kappa))


def concentration_of(length: Array) -> Array:
    """The inverse of :func:`resultant`, for lengths from 0 to below 1.

    The resultant is concave, so that Newton's steps climb to the root from the left after the first
    one, whatever the start.
    """
    R = np.asarray(length, float)
    kappa = R * (2 - R**2) / (1 - R**2)
    for _ in range(12):
        A = resultant(kappa)
        slope = _slope(kappa, A)
        kappa = np.maximum(kappa - (A - R) / slope, R)
    return np.asarray(np.where(R < _FLAT, 2 * R, kappa))


def _slope(kappa: Array, A: Array) -> Array:
    """dA / d kappa: the information along the direction of the mean."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(kappa < _FLAT, 0.5, A / kappa)
    return np.asarray(np.maximum(1 - ratio - A**2, 0.5 / (1 + kappa**2)))


@record
@dataclass(frozen=True, slots=True)
class AnglesMetric:
    """Information of pairs (u, v) (K, 2 D): ``along`` the mean direction and ``across`` it (K, D),
    of one row; ``count`` (K, D)."""

    pairs: Array
    count: Array

    def solve(self, gradient: Array) -> Array:
        u, v = halves(self.pairs)
        g, h = halves(gradient.reshape(self.pairs.shape))
        kappa = np.hypot(u, v)
        flat = kappa < _FLAT
        safe = np.where(flat, 1.0, kappa)
        c, s = np.where(flat, 1.0, u / safe), np.where(flat, 0.0, v / safe)
        A = resultant(kappa)
        across = np.where(flat, 0.5, A / safe)
        count = np.where(self.count > 0, self.count, np.inf)
        along = (c * g + s * h) / (_slope(kappa, A) * count)
        aside = (c * h - s * g) / (across * count)
        return np.asarray(both(c * along - s * aside, s * along + c * aside).ravel())


@record
@dataclass(frozen=True)
class VonMises(PairedColumns):
    """x_d | k ~ von Mises(direction m_kd, concentration kappa_kd) on a circle of ``period``.

    NaN is missing. Numbers a period apart are the same; draws and means lie from 0 to the period.

    Parameters
    ----------
    floor : float
        1 / floor is the largest concentration.
    rows : float
        How many rows the prior is worth.
    period : float or array (D,)
        After how much a column begins again: 24 of hours; 2 pi by default.
    direction, concentration : float or array (D,), optional
        The von Mises law of the rows of the prior; by default that of all rows.
    """

    period: Any = _TURN
    direction: Any = None
    concentration: Any = None

    name: ClassVar[str] = "von-mises"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self.period, "period")
        require_positive(self.concentration, "concentration")
        if (self.direction is None) != (self.concentration is None):
            raise ValueError(
                "direction and concentration say one von Mises law, that of the prior: give both "
                f"or neither, got direction={self.direction!r} and "
                f"concentration={self.concentration!r}"
            )

    def column_constants(self, n_features: int) -> Array:
        return per_column(self.period, n_features, "period")

    # ------------------------------------------------ rows

    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray(np.isinf(x))

    def rule(self, size: float) -> str:
        return f"must hold finite numbers, which begin again after {size:g}"

    def check(self, block: Block, names: Array | None) -> None:
        refuse_sparse(block, self.name, "angles that are known")
        super().check(block, names)

    def expand_block(self, block: Block, size: Array) -> Block:
        X = dense_rows(block.X).astype(float)
        with np.errstate(invalid="ignore"):
            angle = X * (_TURN / size)
            return with_statistics(block, both(np.cos(angle), np.sin(angle)))

    def points(self, X: Array) -> Array:
        angle = np.asarray(X, float) * (_TURN / self.column_constants(X.shape[1]))
        return np.asarray(both(np.cos(angle), np.sin(angle)) * np.sqrt(2.0))

    # ------------------------------------------------ components: theta is (u, v)

    def clip_coordinates(self, theta: Array, size: Array) -> Array:
        kappa = np.hypot(*halves(theta))
        shrink = np.minimum(1.0, 1 / (self.floor * np.maximum(kappa, 1e-300)))
        return theta * both(shrink, shrink)

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        u, v = halves(theta)
        return _as_entry(np.arctan2(v, u), size)

    def linear(self, theta: Array, size: Array) -> tuple[Array, Array]:
        kappa = np.hypot(*halves(theta))
        offset = -(np.log(i0e(kappa)) + kappa) - np.log(size)
        return theta, both(offset, np.zeros_like(offset))

    def expected(self, theta: Array, size: Array) -> Array:
        u, v = halves(theta)
        kappa = np.hypot(u, v)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(kappa < _FLAT, 0.5, resultant(kappa) / kappa)
        return both(u * ratio, v * ratio)

    def best(self, mean: Array, size: Array) -> tuple[Array, Array]:
        c, s = halves(mean)
        length = np.hypot(c, s)
        most = resultant(np.array(1 / self.floor))
        kappa = concentration_of(np.minimum(length, most))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(length < _FLAT, 2.0, kappa / length)
        bounded = np.asarray((length >= most).any(axis=-1))
        return both(c * ratio, s * ratio), bounded

    def at_floor(self, params: LinearParams) -> Array:
        kappa = np.hypot(*halves(params.theta))
        return np.asarray((kappa * self.floor >= 1 - 1e-9).any(axis=1))

    def floor_message(self, component: int) -> str:
        return (
            f"a column of component {component} reached the largest concentration, "
            f"{1 / self.floor:g} (duplicated values, or too few rows)"
        )

    def slopes(self, params: LinearParams, moments: LinearMoments) -> tuple[Array, Metric]:
        count = np.broadcast_to(moments.count, moments.first.shape)
        gradient = moments.first - count * self.expected(params.theta, params.size)
        stuck = np.hypot(*halves(params.theta)) * self.floor >= 1 - 1e-9
        gradient = np.where(both(stuck, stuck), 0.0, gradient)
        return gradient, AnglesMetric(params.theta, halves(count)[0])

    def extent(self, params: LinearParams) -> Array:
        R = np.clip(resultant(np.hypot(*halves(params.theta))), 1e-12, 1.0)
        return np.asarray(np.sqrt(-2 * np.log(R)) * params.size / _TURN)

    def describe(self, params: LinearParams) -> dict[str, Any]:
        return {"means": params.means, "concentrations": np.hypot(*halves(params.theta))}

    def centre(self, n_features: int) -> Array | None:
        if self.direction is None:
            return None
        angle = per_column(self.direction, n_features, "direction")
        angle = angle * (_TURN / self.column_constants(n_features))
        kappa = per_column(self.concentration, n_features, "concentration")
        return both(kappa * np.cos(angle), kappa * np.sin(angle))

    def describe_centre(self, theta: Array) -> dict[str, Any]:
        u, v = halves(theta[0])
        period = self.column_constants(u.size)
        kappa = np.maximum(np.hypot(u, v), np.finfo(float).tiny)
        return {"direction": _as_entry(np.arctan2(v, u), period), "concentration": kappa}

    # ------------------------------------------------ using a fit

    def fill_missing(self, scores: Scores, resp: Array, reading: LinearReading) -> Array:
        """The direction of the mean over the components: a mean of hours means nothing."""
        X, params = dense_rows(scores.work.tile.X).astype(float), reading.params
        c, s = halves(resp @ self.expected(params.theta, params.size))
        return np.where(np.isnan(X), _as_entry(np.arctan2(s, c), params.size), X)

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        u, v = halves(theta)
        kappa, angle = np.hypot(u, v), np.arctan2(v, u)
        turned = np.empty(uniforms.shape)
        different, which = np.unique(kappa, return_inverse=True)
        which = which.reshape(kappa.shape)
        for i, one in enumerate(different):
            mine = which == i
            turned[mine] = _inverse_distribution(float(one), uniforms[mine])
        return _as_entry(turned + angle, size)

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        u, v = halves(theta)
        return _as_entry(rng.vonmises(np.arctan2(v, u), np.hypot(u, v)), size)


def _as_entry(angle: Array, period: Array) -> Array:
    """Angles as numbers from 0 to below the period."""
    x = np.mod(angle, _TURN) * (period / _TURN)
    return np.asarray(np.where(x >= period, 0.0, x))


def _inverse_distribution(kappa: float, uniforms: Array) -> Array:
    """Angles about zero at which the distribution function has these values.

    The density is integrated between nodes by Gauss's rule; between two of them the distribution
    function is the cubic with its values and slopes there.
    """
    reach = min(np.pi, _REACH / np.sqrt(max(kappa, 1e-12)))
    nodes = np.linspace(-reach, reach, _NODES)
    step = nodes[1] - nodes[0]
    at, weight = np.polynomial.legendre.leggauss(5)
    inner = nodes[:-1, None] + step * (at + 1) / 2
    # 1 - cos a without cancellation
    cells = np.exp(-2 * kappa * np.sin(inner / 2) ** 2) @ weight * step / 2
    total = cells.sum()
    ends = np.concatenate([[0.0], np.cumsum(cells)]) / total
    slope = np.exp(-2 * kappa * np.sin(nodes / 2) ** 2) / total
    i = np.clip(np.searchsorted(ends, uniforms, side="right") - 1, 0, _NODES - 2)
    rise = ends[i + 1] - ends[i]
    t = np.clip((uniforms - ends[i]) / np.maximum(rise, 1e-300), 0.0, 1.0)
    a, b = slope[i] * step, slope[i + 1] * step
    for _ in range(4):
        value = a * t + (3 * rise - 2 * a - b) * t**2 + (a + b - 2 * rise) * t**3
        pitch = a + 2 * (3 * rise - 2 * a - b) * t + 3 * (a + b - 2 * rise) * t**2
        change = (uniforms - ends[i] - value) / np.maximum(pitch, 1e-300)
        t = np.clip(t + np.where(pitch > 0, change, 0.0), 0.0, 1.0)
    return np.asarray(nodes[i] + step * t)
