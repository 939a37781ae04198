"""Successes among a known number of trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import expit
from scipy.stats import binom

from mixfold.contracts import Array, Block, record
from mixfold.families.exponential.conjugate_priors import BETA, ODDS_LIMIT, Law
from mixfold.families.exponential.pair import PairFamily, times
from mixfold.families.exponential.support import per_column, require_positive
from mixfold.math.log_factorials import log_factorials


@record
@dataclass(frozen=True)
class Binomial(PairFamily):
    """x_d | k ~ binomial(n_d, p_kd), p_kd ~ beta(a, b). NaN is missing.

    Parameters
    ----------
    a, b : float or array (D,), optional
        The prior; uniform by default.
    trials : int or array (D,)
        n, of all columns or of each.
    """

    trials: Any = 1

    name: ClassVar[str] = "binomial"
    law: ClassVar[Law] = BETA

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self.trials, "trials", whole=True)

    def column_constants(self, n_features: int) -> Array:
        return per_column(self.trials, n_features, "trials")

    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x < 0) | (x > size) | (x != np.round(x)))

    def rule(self, size: float) -> str:
        return f"must hold whole numbers from 0 to trials = {size:g}"

    def points(self, X: Array) -> Array:
        return np.asarray(X / self.column_constants(X.shape[1]))

    def statistics(self, first: Array, count: Array, size: Array) -> tuple[Array, Array]:
        return first, times(size, count, first) - first

    def terms(self, one: Array, two: Array, size: Array) -> tuple[Array, Array]:
        return one - two, size * two

    def ends(self, size: Array) -> tuple[Any, ...]:
        return (0.0, size)

    def limits(self, size: Array) -> tuple[float, float]:
        return -ODDS_LIMIT, ODDS_LIMIT

    def information(self, theta: Array, size: Array) -> Array:
        return np.asarray(size * expit(theta) * expit(-theta))

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        return np.asarray(size * expit(theta))

    def usual(self, a: Array, mean: Array, size: Array) -> Array:
        return np.ones_like(a)

    def entry_base(self, x: Array, size: Array) -> Array:
        return log_factorials(size) - log_factorials(x) - log_factorials(size - x)

    def log_base(self, block: Block, size: Array) -> Array | None:
        if not issparse(block.X):
            return super().log_base(block, size)
        # ln C(n, 0) = 0: the stored entries are all there is
        X = block.X
        terms = np.nan_to_num(self.entry_base(X.data, size[X.indices]), nan=0.0)
        return np.asarray(csr_array((terms, X.indices, X.indptr), shape=X.shape).sum(axis=1))

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        return np.asarray(binom.ppf(uniforms, size, expit(theta)))

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        return rng.binomial(size.astype(np.int64), expit(theta)).astype(float)
