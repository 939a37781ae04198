"""Codes of categories: one die for each column of each component."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from mixfold.contracts import Array, Block, record
from mixfold.families.component import Scores, dense_rows
from mixfold.families.exponential.records import LinearParams, LinearReading, SharesPosterior
from mixfold.families.exponential.shares import segment_sums
from mixfold.families.exponential.simplex import SimplexFamily
from mixfold.families.exponential.support import per_column, require_positive
from mixfold.math.frame import Frame, plain_frame

# a larger code is rather a number of a row or a measurement than one of a category
MOST_CATEGORIES = 100_000
# the concentration of a code that never occurs: a Dirichlet law has none of zero
_ABSENT = 1e-6
# categories of all columns together, beyond which those of no row are left out of starts
_MANY = 256


@record
@dataclass(frozen=True)
class Categorical(SimplexFamily):
    """x_d | k in {0, ..., V_d - 1} with probabilities p_kd ~ Dirichlet(a). NaN is missing.

    Inside, a code is a one among V_d zeros (never stored), and the density linear in them.

    Parameters
    ----------
    concentration : float or array (D,) or (V,), optional
        a: the same for all categories of a column, or one for each of the V categories of all
        columns, one column after the other; 1 by default.
    n_categories : int or sequence of D ints, optional
        V; None until ``with_maxima`` has seen the largest codes.
    occurring : tuple of D int arrays, optional
        The codes that occur, if ``with_maxima`` was told. The others are no parameters: they
        have the least share (1e-12) in every component, and next to nothing of the prior.
    """

    n_categories: Any = None
    occurring: Any = field(default=None, repr=False, compare=False, metadata={"setting": False})

    name: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self.n_categories, "n_categories", whole=True)

    @property
    def key(self) -> Any:
        return self.name, self.n_categories

    @property
    def needs_codes(self) -> bool:
        return self.n_categories is None

    def with_maxima(self, maximum: Array, occurring: Any = None) -> Self:
        """The family with as many categories as the largest codes (D,) need, unless it is told.

        ``occurring`` are the codes of each column that occur, None if that is not known.
        """
        if self.n_categories is not None:
            return self
        maximum = np.asarray(maximum, float)
        unseen = np.flatnonzero(np.isnan(maximum))
        if unseen.size:
            raise ValueError(
                f"column {unseen[0]} has no observed entry, so its categories are not known. Drop "
                "the column, or say how many there are with n_categories."
            )
        high = np.flatnonzero(maximum >= MOST_CATEGORIES)
        if high.size:
            raise ValueError(
                f"column {high[0]} has the code {maximum[high[0]]:.15g}, so it would have as many "
                f"categories; without n_categories at most {MOST_CATEGORIES} are taken. Number "
                "its categories 0, 1, ... (numpy.unique with return_inverse), or leave out a "
                "column that only names the rows."
            )
        sizes = tuple(int(top) + 1 for top in np.maximum(maximum, 0))
        return replace(self, n_categories=sizes, occurring=occurring)

    def column_constants(self, n_features: int) -> Array:
        if self.n_categories is None:
            raise ValueError(
                "n_categories of the family 'categorical' is not known yet: give it, or call "
                "with_maxima with the largest code of each column"
            )
        return per_column(self.n_categories, n_features, "n_categories")

    def n_free(self, n_components: int, n_features: int) -> int:
        sizes = self.column_constants(n_features)
        if self.occurring is not None:
            sizes = np.array([len(codes) for codes in self.occurring])
        return n_components * int((sizes - 1).sum())

    def starts(self, size: Array) -> Array:
        return np.concatenate([[0], np.cumsum(size)[:-1]]).astype(np.int64)

    def prior_shares(self, size: Array) -> Array:
        value = 1.0 if self.concentration is None else self.concentration
        sizes = size.astype(np.int64)
        if np.shape(value) == (sizes.sum(),):
            return np.asarray(value, float)
        shares = np.repeat(per_column(value, size.size, "concentration"), sizes)
        if self.occurring is None:
            return shares
        used = np.zeros(len(shares), bool)
        for start, codes in zip(self.starts(size), self.occurring, strict=True):
            used[start + codes] = True
        return np.where(used, shares, _ABSENT)

    # ------------------------------------------------ rows

    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x < 0) | (x >= size) | (x != np.round(x)))

    def rule(self, size: float) -> str:
        return f"must hold codes of its {size:g} categories: whole numbers from 0 to {size - 1:g}"

    def expand_block(self, block: Block, size: Array) -> Block:
        """Each observed code as a one: D stored entries per row, whatever the categories."""
        X = dense_rows(block.X)
        seen = ~np.isnan(X)
        with np.errstate(invalid="ignore"):
            strange = self.fault(X, size) & seen
        if strange.any():
            self.check(block, None)
            seen &= ~strange  # what is left is in rows without weight
        ends = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
        where = (np.where(seen, X, 0.0).astype(np.int64) + self.starts(size))[seen]
        ones = np.ones(where.size)
        one_hot = csr_array((ones, where, ends), shape=(len(X), int(size.sum())))
        return replace(block, X=one_hot, complete=True)

    def check(self, block: Block, names: Array | None) -> None:
        super().check(replace(block, X=dense_rows(block.X)), names)

    def numbers_of_row(self, block: Block, reading: Any) -> int:
        return int(block.X.shape[1])

    def bulk(self, X: Array, weight: Array) -> Frame:
        # codes are names
        return Frame(np.zeros(X.shape[1]), np.full(X.shape[1], np.inf))

    def entries(self, moments: Any, counts: Array) -> Array:
        return counts[:, None]

    def points(self, X: Array) -> Array:
        """Ones for codes, and NaN for all categories of a missing one.

        Of many categories those that none of the rows has are left out: they set no rows apart, and
        a code such as 99,999 would make as many columns.
        """
        size = self.column_constants(X.shape[1]).astype(np.int64)
        ones = self.expand_block(Block(X, complete=False), size).X
        column = np.repeat(np.arange(len(size)), size)
        if len(column) > _MANY:
            used = np.unique(ones.indices)
            ones, column = ones[:, used], column[used]
        U = ones.toarray()
        U[np.isnan(X)[:, column]] = np.nan
        return np.asarray(U)

    def from_sample(self, frame: Frame, U: Array, resp: Array) -> LinearParams:
        raise ValueError("categories start from rows of codes: use from_rows")

    # ------------------------------------------------ components

    def describe(self, params: LinearParams) -> dict[str, Any]:
        """``probabilities``: an array (K, V_d) for each column."""
        if params.theta.shape[1] != params.size.sum():  # compiled loops would read outside
            raise ValueError("shares of categories that are not those of the columns")
        parts = np.split(np.exp(params.theta), self.starts(params.size)[1:], axis=1)
        return {"means": params.means, "probabilities": parts}

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        """The mean codes, which mean something where categories are in order."""
        starts = self.starts(size)
        codes = np.arange(theta.shape[1]) - np.repeat(starts, size.astype(np.int64))
        return segment_sums(np.exp(theta) * codes, starts) + np.zeros(len(size))

    def typical(self, params: LinearParams, which: Array) -> Array:
        return np.asarray(np.exp(params.theta[which]).mean(axis=0))

    def columns(self, params: LinearParams, which: Array) -> LinearParams:
        inside = np.repeat(np.isin(np.arange(params.n_features), which), params.size.astype(int))
        means, theta = params.means[:, which], params.theta[:, inside]
        return LinearParams(plain_frame(len(which)), means, theta, params.size[which])

    def posterior_of_columns(self, posterior: SharesPosterior, which: Array) -> SharesPosterior:
        inside = np.isin(np.arange(posterior.n_features), which)
        laws = posterior.a[:, np.repeat(inside, posterior.size.astype(int))]
        means, size = posterior.means[:, which], posterior.size[which]
        return SharesPosterior(plain_frame(len(which)), means, laws, size)

    # ------------------------------------------------ using a fit

    def log_predictive(self, posterior: SharesPosterior, block: Block) -> Array:
        # of one throw: the mean of p is all there is to know
        return self.log_density(block, self.mode(self.point(posterior)))

    def fill_missing(self, scores: Scores, resp: Array, reading: LinearReading) -> Array:
        """The most probable code: a mean of codes is no category."""
        X = dense_rows(scores.work.tile.X).astype(float)
        p = resp @ np.exp(reading.params.theta)
        parts = np.split(p, self.starts(reading.params.size)[1:], axis=1)
        best = np.column_stack([part.argmax(axis=1) for part in parts])
        return np.where(np.isnan(X), best, X)

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        parts = np.split(np.exp(theta), self.starts(size)[1:], axis=1)
        ends = [np.cumsum(part, axis=1)[:, :-1] for part in parts]
        codes = [(uniforms[:, d, None] > end).sum(axis=1) for d, end in enumerate(ends)]
        return np.column_stack(codes).astype(float)

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        return self.quantile(rng.random((len(theta), size.size)), means, theta, size)
