"""Positive amounts: gamma laws of known shape, of which waiting times are the shape one, and of
learned shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaincinv, gammaln, polygamma, psi, xlogy

from mixfold.contracts import Array, Block, Metric, record
from mixfold.families.component import dense_rows
from mixfold.families.exponential.conjugate_priors import GAMMA, Law
from mixfold.families.exponential.pair import PairFamily
from mixfold.families.exponential.pseudo_rows import (
    PairedColumns,
    both,
    halves,
    with_statistics,
)
from mixfold.families.exponential.records import LinearMoments, LinearParams
from mixfold.families.exponential.start_points import column_means, unit_spread
from mixfold.families.exponential.support import per_column, refuse_sparse, require_positive
from mixfold.families.gaussian import DiagonalMetric
from mixfold.math.frame import Frame, bulk_of
from mixfold.math.gamma_law import fit_gamma
from mixfold.math.symmetric import LOG_LIMIT

# smaller times have rates that no float can hold
_LEAST = 1e-300
# laws of learned shape keep it above this
_LEAST_SHAPE = 1e-8


@record
@dataclass(frozen=True)
class Gamma(PairFamily):
    """x_d | k ~ gamma(s_d, rate beta_kd), beta_kd ~ gamma(a, rate b). NaN is missing.

    Parameters
    ----------
    a, b : float or array (D,), optional
        The prior; by default a = 1 and b that makes its mean the rate of the column.
    shape : float or array (D,)
        s: 1 is exponential, large ones are nearly symmetric about the mean.
    """

    shape: Any = 1.0

    name: ClassVar[str] = "gamma"
    takes_sparse: ClassVar[bool] = False
    law: ClassVar[Law] = GAMMA

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self.shape, "shape")

    def column_constants(self, n_features: int) -> Array:
        return per_column(self.shape, n_features, "shape")

    def check(self, block: Block, names: Array | None) -> None:
        refuse_sparse(block, self.name, "positive numbers")
        super().check(block, names)

    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x < _LEAST) | np.isinf(x))

    def rule(self, size: float) -> str:
        return f"must hold positive and finite numbers, of at least {_LEAST:g}"

    def bulk(self, X: Array, weight: Array) -> Frame:
        return bulk_of(X, weight)  # times have no unit of their own

    def points(self, X: Array) -> Array:
        # relative to the mean, so that units do not matter
        return unit_spread(np.log1p(X / column_means(X), dtype=float))

    def statistics(self, first: Array, count: Array, size: Array) -> tuple[Array, Array]:
        return np.broadcast_to(size * count, np.shape(first)), first

    def terms(self, one: Array, two: Array, size: Array) -> tuple[Array, Array]:
        return two, size * one

    def limits(self, size: Array) -> tuple[float, float]:
        return -LOG_LIMIT, LOG_LIMIT

    def information(self, theta: Array, size: Array) -> Array:
        return np.broadcast_to(size, theta.shape)

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        return np.asarray(size * np.exp(-theta))

    def usual(self, a: Array, mean: Array, size: Array) -> Array:
        return np.asarray(a * mean / size)

    def entry_base(self, x: Array, size: Array) -> Array:
        return np.asarray(xlogy(size - 1, x) - gammaln(size))

    def log_base(self, block: Block, size: Array) -> Array | None:
        return None if (size == 1).all() else super().log_base(block, size)

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        return np.asarray(gammaincinv(size, uniforms) * np.exp(-theta))

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        draws = rng.standard_gamma(np.broadcast_to(size, theta.shape)) * np.exp(-theta)
        return np.maximum(draws, np.finfo(float).tiny)


@record
@dataclass(frozen=True)
class Exponential(Gamma):
    """x_d | k ~ exponential(rate beta_kd), beta_kd ~ gamma(a, rate b). NaN is missing.

    A gamma law of shape one.

    Parameters
    ----------
    a, b : float or array (D,), optional
        The prior; by default a = 1 and b that makes its mean the rate of the column.
    """

    shape: Any = field(default=1.0, init=False)

    name: ClassVar[str] = "exponential"


@record
@dataclass(frozen=True)
class GammaShape(PairedColumns):
    """x_d | k ~ gamma(shape s_kd, mean m_kd), both learned. NaN is missing.

    The coordinates are ln m and ln s, which tell nothing of each other: the information of a row is
    s and s^2 (psi'(s) - 1 / s).

    Parameters
    ----------
    floor : float
        Least squared coefficient of variation 1 / s of a column of a component.
    rows : float
        How many rows the prior is worth.
    shape, rate : float or array (D,), optional
        The gamma law of these pseudo-rows; by default that of all rows.
    """

    shape: Any = None
    rate: Any = None

    name: ClassVar[str] = "gamma-shape"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self.shape, "shape")
        require_positive(self.rate, "rate")
        if (self.shape is None) != (self.rate is None):
            raise ValueError(
                "shape and rate say one gamma law, that of the prior: give both or neither, got "
                f"shape={self.shape!r} and rate={self.rate!r}. A shape that is known is a setting "
                "of the family 'gamma'"
            )

    # ------------------------------------------------ rows

    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x < _LEAST) | np.isinf(x))

    def rule(self, size: float) -> str:
        return f"must hold positive and finite numbers, of at least {_LEAST:g}"

    def check(self, block: Block, names: Array | None) -> None:
        refuse_sparse(block, self.name, "positive numbers")
        super().check(block, names)

    def expand_block(self, block: Block, size: Array) -> Block:
        X = dense_rows(block.X).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            return with_statistics(block, both(X, np.log(X)))

    def bulk(self, X: Array, weight: Array) -> Frame:
        return bulk_of(X, weight)  # amounts have no unit of their own

    def points(self, X: Array) -> Array:
        return unit_spread(np.log1p(X / column_means(X), dtype=float))

    # ------------------------------------------------ components: theta is (ln m, ln s)

    def clip_coordinates(self, theta: Array, size: Array) -> Array:
        log_mean, log_shape = halves(theta)
        return both(
            np.clip(log_mean, -LOG_LIMIT, LOG_LIMIT),
            np.clip(log_shape, np.log(_LEAST_SHAPE), -np.log(self.floor)),
        )

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        return np.asarray(np.exp(halves(theta)[0]))

    def linear(self, theta: Array, size: Array) -> tuple[Array, Array]:
        log_mean, log_shape = halves(theta)
        s = np.exp(log_shape)
        log_rate = log_shape - log_mean
        offset = s * log_rate - gammaln(s)
        return both(-np.exp(log_rate), s - 1), both(offset, np.zeros_like(s))

    def expected(self, theta: Array, size: Array) -> Array:
        log_mean, log_shape = halves(theta)
        s = np.exp(log_shape)
        return both(np.exp(log_mean), psi(s) - log_shape + log_mean)

    def best(self, mean: Array, size: Array) -> tuple[Array, Array]:
        m, mean_log = halves(mean)
        m = np.maximum(m, _LEAST)
        shape, _ = fit_gamma(m, np.minimum(mean_log, np.log(m)))
        theta = self.clip_coordinates(both(np.log(m), np.log(shape)), size)
        return theta, np.asarray((shape * self.floor >= 1).any(axis=-1))

    def at_floor(self, params: LinearParams) -> Array:
        shape = np.exp(halves(params.theta)[1])
        return np.asarray((shape * self.floor >= 1 - 1e-9).any(axis=1))

    def floor_message(self, component: int) -> str:
        return (
            f"the squared coefficient of variation of a column of component {component} reached "
            f"the floor of {self.floor:g} (duplicated values, or too few rows)"
        )

    def slopes(self, params: LinearParams, moments: LinearMoments) -> tuple[Array, Metric]:
        log_mean, log_shape = halves(params.theta)
        s = np.exp(log_shape)
        count, _ = halves(np.broadcast_to(moments.count, moments.first.shape))
        total, logs = halves(moments.first)
        relative = total * np.exp(-log_mean)
        by_mean = s * (relative - count)
        by_shape = s * (logs - count * (log_mean + psi(s) - log_shape - 1) - relative)
        stuck = (s * self.floor >= 1 - 1e-9) & (by_shape > 0)
        # s (s psi'(s) - 1), of which large s leave 1 / 2 + 1 / (6 s)
        bend = np.where(s < 1e4, s * (s * polygamma(1, s) - 1), 0.5 + 1 / (6 * s))
        metric = DiagonalMetric(both(count * s, count * bend).ravel())
        return both(by_mean, np.where(stuck, 0.0, by_shape)), metric

    def extent(self, params: LinearParams) -> Array:
        return np.asarray(params.means * np.exp(-0.5 * halves(params.theta)[1]))

    def describe(self, params: LinearParams) -> dict[str, Any]:
        log_mean, log_shape = halves(params.theta)
        return {
            "means": params.means,
            "shapes": np.exp(log_shape),
            "rates": np.exp(log_shape - log_mean),
        }

    def centre(self, n_features: int) -> Array | None:
        if self.shape is None:
            return None
        shape = per_column(self.shape, n_features, "shape")
        return np.log(both(shape / per_column(self.rate, n_features, "rate"), shape))

    def describe_centre(self, theta: Array) -> dict[str, Any]:
        log_mean, log_shape = halves(theta[0])
        return {"shape": np.exp(log_shape), "rate": np.exp(log_shape - log_mean)}

    # ------------------------------------------------ samples

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        shape = np.exp(halves(theta)[1])
        return np.asarray(np.maximum(gammaincinv(shape, uniforms) * (means / shape), _LEAST))

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        shape = np.exp(halves(theta)[1])
        return np.maximum(rng.standard_gamma(shape) * (means / shape), _LEAST)
