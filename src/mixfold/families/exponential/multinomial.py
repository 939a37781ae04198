"""Counts of words: how a row's total falls on the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln
from scipy.stats import binom

from mixfold.contracts import Array, Block, record
from mixfold.families.component import dense_rows
from mixfold.families.exponential.large_counts import draw_multinomial
from mixfold.families.exponential.records import LinearMoments, LinearParams, SharesPosterior
from mixfold.families.exponential.simplex import SimplexFamily
from mixfold.families.exponential.support import column_name, per_column, require_positive
from mixfold.math.log_factorials import log_factorial_sums, log_factorials

_SETTLED = "a multinomial row is one outcome: its columns only mean something together"


@record
@dataclass(frozen=True)
class Multinomial(SimplexFamily):
    """x | k, n ~ multinomial(n, p_k) over all columns, p_k ~ Dirichlet(a).

    The total n of a row is given, not modelled. NaN is not allowed: a row that lacks an entry has
    no total.

    Parameters
    ----------
    concentration : float or array (D,), optional
        a; 1 by default.
    trials : int, optional
        The total of rows that are drawn; by default the mean total of the rows of their component.
    """

    trials: int | None = None

    name: ClassVar[str] = "multinomial"
    takes_missing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self.trials, "trials", whole=True)

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * (n_features - 1)

    def n_settled(self, n_components: int, only: Array) -> int:
        return n_components * min(int((only == 0).sum()), len(only) - 1)

    def starts(self, size: Array) -> Array:
        return np.zeros(1, np.int64)

    def prior_shares(self, size: Array) -> Array:
        value = 1.0 if self.concentration is None else self.concentration
        return per_column(value, size.size, "concentration")

    # ------------------------------------------------ rows

    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x < 0) | (x != np.round(x)) | np.isinf(x))

    def rule(self, size: float) -> str:
        return "must hold counts: whole numbers from 0 up"

    def check(self, block: Block, names: Array | None) -> None:
        _refuse_missing(block, names)
        super().check(block, names)

    def expand_block(self, block: Block, size: Array) -> Block:
        _refuse_missing(block, None)
        return block

    def points(self, X: Array) -> Array:
        total = X.sum(axis=1, keepdims=True)
        return np.asarray(X / np.where(total > 0, total, 1.0))

    def log_base(self, block: Block, size: Array) -> Array:
        total = np.asarray(block.X.sum(axis=1), float).reshape(-1)
        return log_factorials(total) - log_factorial_sums(block.X)

    # ------------------------------------------------ totals

    def like(self, moments: LinearMoments, means: Array) -> Array:
        total, rows = moments.first.sum(axis=1), moments.count[:, 0]
        length = np.where(rows > 0, total / np.where(rows > 0, rows, 1.0), means.sum(axis=1))
        return np.asarray(length[:, None])

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        return np.asarray(np.exp(theta) * like.sum(axis=1, keepdims=True))

    def _totals(self, means: Array) -> Array:
        if self.trials is not None:
            return np.full(len(means), float(self.trials))
        return np.asarray(np.round(means.sum(axis=1)))

    # ------------------------------------------------ using a fit

    def log_predictive(self, posterior: SharesPosterior, block: Block) -> Array:
        """Dirichlet-multinomial; columns without a count cancel."""
        _refuse_missing(block, None)
        X = block.X if issparse(block.X) else csr_array(dense_rows(block.X))
        x, where = X.data.astype(float), X.indices
        row = np.repeat(np.arange(block.n_rows), np.diff(X.indptr))
        length = np.bincount(row, x, block.n_rows)
        out = np.empty((block.n_rows, posterior.n_components))
        for k, a in enumerate(posterior.a):
            gain = gammaln(a[where] + x) - gammaln(a[where])
            total = a.sum()
            out[:, k] = np.bincount(row, gain, block.n_rows) - gammaln(total + length)
            out[:, k] += gammaln(total)
        return out + self.log_base(block, posterior.size)[:, None]

    def condition(
        self, params: LinearParams, known: Array, values: Array
    ) -> tuple[Array, LinearParams]:
        raise ValueError(
            f"a multinomial mixture cannot be conditioned on some of its columns: {_SETTLED}. The "
            "family 'poisson' has independent columns and can."
        )

    def posterior_of_columns(self, posterior: SharesPosterior, which: Array) -> SharesPosterior:
        raise ValueError(
            f"a multinomial mixture cannot be conditioned on some of its columns: {_SETTLED}. The "
            "family 'poisson' has independent columns and can."
        )

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        """Column by column: what is left of the total falls on a column or on a later one."""
        out, p = np.zeros(theta.shape), np.exp(theta)
        left = self._totals(means)
        later = np.cumsum(p[:, ::-1], axis=1)[:, ::-1]
        for d in range(theta.shape[1] - 1):
            out[:, d] = binom.ppf(uniforms[:, d], left, np.minimum(p[:, d] / later[:, d], 1.0))
            left = left - out[:, d]
        out[:, -1] = left
        return out

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        p = np.exp(theta)
        p /= p.sum(axis=1, keepdims=True)
        return draw_multinomial(self._totals(means), p, rng)


def _refuse_missing(block: Block, names: Any) -> None:
    """Raise for a missing entry in a row of positive weight."""
    if block.complete:
        return
    if issparse(block.X):
        where = np.flatnonzero(np.isnan(block.X.data))
        rows = np.searchsorted(block.X.indptr, where, side="right") - 1
        columns = block.X.indices[where]
    else:
        rows, columns = np.nonzero(np.isnan(block.X))
    used = np.flatnonzero(block.weights()[rows] > 0)
    if used.size:
        row, column = int(rows[used[0]]), int(columns[used[0]])
        raise ValueError(
            "the family 'multinomial' allows no missing entries; column "
            f"{column_name(names, column)} of row {block.start + row} is NaN: {_SETTLED}. "
            "Fill or drop such rows, or choose the family 'poisson'."
        )
