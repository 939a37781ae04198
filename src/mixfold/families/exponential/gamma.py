"""Positive amounts: gamma laws of known shape, of which waiting times are the shape one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from scipy.special import gammaincinv, gammaln

from mixfold.contracts import Array, Block, record
from mixfold.families.exponential.conjugate_priors import GAMMA, Law
from mixfold.families.exponential.pair import PairFamily
from mixfold.families.exponential.start_points import column_means, unit_spread
from mixfold.families.exponential.support import per_column, require_positive
from mixfold.math.frame import Frame, bulk_of
from mixfold.math.symmetric import LOG_LIMIT

# smaller times have rates that no float can hold
_LEAST = 1e-300


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
        if issparse(block.X):
            raise ValueError(
                f"the family {self.name!r} takes positive numbers only, and the entries that a "
                "sparse matrix does not store are zeros. Pass a dense array, or choose the family "
                "'poisson' for counts."
            )
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
        return np.asarray((size - 1) * np.log(x) - gammaln(size))

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
