"""Counts of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from mixfold.contracts import Array, Block, record
from mixfold.families.exponential.conjugate_priors import GAMMA, LEAST_SHARE, Law
from mixfold.families.exponential.large_counts import draw_poisson, poisson_quantile
from mixfold.families.exponential.pair import PairFamily, times
from mixfold.families.exponential.support import per_column, require_positive
from mixfold.math.log_factorials import log_factorial_sums, log_factorials
from mixfold.math.symmetric import LOG_LIMIT


@record
@dataclass(frozen=True)
class Poisson(PairFamily):
    """x_d | k ~ Poisson(e_d rate_kd), rate_kd ~ gamma(a, rate b). NaN is missing.

    Parameters
    ----------
    a, b : float or array (D,), optional
        The prior; by default a = 1 and the mean a / b that of the column.
    exposure : float or array (D,)
        e: hours, areas or whatever the columns were counted in.
    """

    exposure: Any = 1.0

    name: ClassVar[str] = "poisson"
    law: ClassVar[Law] = GAMMA

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self.exposure, "exposure")

    def column_constants(self, n_features: int) -> Array:
        return per_column(self.exposure, n_features, "exposure")

    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x < 0) | (x != np.round(x)) | np.isinf(x))

    def rule(self, size: float) -> str:
        return "must hold counts: whole numbers from 0 up"

    def points(self, X: Array) -> Array:
        # whatever the rate, the noise of a root of a count has about variance one
        return 2 * np.sqrt(np.asarray(X, float) + 0.375)

    def statistics(self, first: Array, count: Array, size: Array) -> tuple[Array, Array]:
        return first, times(size, count, first)

    def terms(self, one: Array, two: Array, size: Array) -> tuple[Array, Array]:
        return one, size * two

    def ends(self, size: Array) -> tuple[Any, ...]:
        return (0.0,)

    def limits(self, size: Array) -> tuple[Array, float]:
        return np.log(LEAST_SHARE / size), LOG_LIMIT

    def information(self, theta: Array, size: Array) -> Array:
        return np.asarray(size * np.exp(theta))

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        return np.asarray(size * np.exp(theta))

    def usual(self, a: Array, mean: Array, size: Array) -> Array:
        return np.asarray(a * size / mean)

    def entry_base(self, x: Array, size: Array) -> Array:
        return np.asarray(x * np.log(size) - log_factorials(x))

    def log_base(self, block: Block, size: Array) -> Array:
        base = -log_factorial_sums(block.X)
        if (size == 1).all():
            return base
        X = block.X.copy() if issparse(block.X) else np.nan_to_num(block.X, nan=0.0)
        if issparse(X):
            X.data = np.nan_to_num(X.data, nan=0.0)
        return np.asarray(base + X @ np.log(size))

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        return poisson_quantile(uniforms, means)

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        return draw_poisson(means, rng)
