"""Shares between 0 and 1, column by column, and shares of a whole: beta and Dirichlet laws.

With shares (x, 1 - x) a beta law is a Dirichlet law of two, so both have one M step: the
concentration whose expected logarithms are those of the rows (``math/share_fits``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaincinv, betaln, expit, gammaincinv, gammaln, polygamma

from mixfold.contracts import Array, Block, Metric, record
from mixfold.families.component import dense_rows
from mixfold.families.exponential.pseudo_rows import (
    PairedColumns,
    PseudoRowsFamily,
    both,
    halves,
    with_statistics,
)
from mixfold.families.exponential.records import LinearMoments, LinearParams
from mixfold.families.exponential.start_points import unit_spread
from mixfold.families.exponential.support import (
    column_name,
    per_column,
    refuse_sparse,
    require_positive,
)
from mixfold.math.dirichlet import expected_log, log_beta, log_beta_draw, log_draw
from mixfold.math.share_fits import LEAST_TOTAL, best_concentration

# shares below this have logarithms that nothing else can balance
_LEAST = 1e-300
# how far from one a row of shares may add up
_SLACK = 1e-3
_INSIDE = 1 - np.finfo(float).epsneg


@record
@dataclass(frozen=True, slots=True)
class SharesMetric:
    """Information in ln a of groups of V concentrations: count a_v (psi'(a_v) [v = w] a_w -
    psi'(sum a) a_w), a diagonal less a matrix of rank one.

    ``a`` is (G, V) and ``count`` (G,); ``split`` says that a gradient has the first of all groups,
    then the second (G is K D, V is 2).
    """

    a: Array
    count: Array
    split: int = 0

    def solve(self, gradient: Array) -> Array:
        g = self._grouped(gradient)
        curve = polygamma(1, self.a)
        step = g / (self.a**2 * curve)
        total = polygamma(1, self.a.sum(axis=1))
        left = 1 - total * (1 / curve).sum(axis=1)
        pull = (self.a * step).sum(axis=1) * total / np.maximum(left, 1e-12)
        step = step + pull[:, None] / (self.a * curve)
        step = np.divide(
            step, self.count[:, None], out=np.zeros_like(step), where=self.count[:, None] > 0
        )
        if not self.split:
            return np.asarray(step.ravel())
        parts = step.reshape(-1, self.split, 2)
        return both(parts[..., 0], parts[..., 1]).ravel()

    def _grouped(self, gradient: Array) -> Array:
        if not self.split:
            return gradient.reshape(self.a.shape)
        one, two = halves(gradient.reshape(-1, 2 * self.split))
        return np.stack([one, two], axis=-1).reshape(self.a.shape)


@record
@dataclass(frozen=True)
class Beta(PairedColumns):
    """x_d | k ~ beta(a_kd, b_kd): shares, rates, chances between 0 and 1. NaN is missing.

    Parameters
    ----------
    floor : float
        A column of a component has a variance of at least about this times m (1 - m): its a + b is
        at most 1 / floor.
    rows : float
        How many rows the prior is worth.
    a, b : float or array (D,), optional
        The beta law of these pseudo-rows; by default that of all rows.
    """

    a: Any = None
    b: Any = None

    name: ClassVar[str] = "beta"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self.a, "a")
        require_positive(self.b, "b")
        if (self.a is None) != (self.b is None):
            raise ValueError(
                f"a and b say one beta law: give both or neither, got a={self.a!r} and b={self.b!r}"
            )

    # ------------------------------------------------ rows

    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x < _LEAST) | (x >= 1))

    def rule(self, size: float) -> str:
        return (
            "must hold shares between 0 and 1, without these (n shares that may be 0 or 1 can be "
            "moved inwards by (x (n - 1) + 0.5) / n)"
        )

    def check(self, block: Block, names: Array | None) -> None:
        refuse_sparse(block, self.name, "shares above 0")
        super().check(block, names)

    def expand_block(self, block: Block, size: Array) -> Block:
        X = dense_rows(block.X).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            return with_statistics(block, both(np.log(X), np.log1p(-X)))

    def points(self, X: Array) -> Array:
        # whatever the mean, the noise of this angle is alike
        return unit_spread(np.arcsin(np.sqrt(np.clip(np.asarray(X, float), 0.0, 1.0))))

    # ------------------------------------------------ components: theta is (ln a, ln b)

    def _pairs(self, theta: Array) -> Array:
        """(a, b) (K, D, 2)."""
        return np.asarray(np.exp(np.stack(halves(theta), axis=-1)))

    def clip_coordinates(self, theta: Array, size: Array) -> Array:
        one, two = halves(theta)
        pair = _bounded(np.stack([one, two], axis=-1), 1 / self.floor)
        return both(pair[..., 0], pair[..., 1])

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        one, two = halves(theta)
        return np.asarray(expit(one - two))

    def linear(self, theta: Array, size: Array) -> tuple[Array, Array]:
        a, b = halves(np.exp(theta))
        return both(a - 1, b - 1), both(-betaln(a, b), np.zeros_like(b))

    def expected(self, theta: Array, size: Array) -> Array:
        logs = expected_log(self._pairs(theta))
        return both(logs[..., 0], logs[..., 1])

    def best(self, mean: Array, size: Array) -> tuple[Array, Array]:
        a, bounded = best_concentration(np.stack(halves(mean), axis=-1), 1 / self.floor)
        return both(np.log(a[..., 0]), np.log(a[..., 1])), np.asarray(bounded.any(axis=-1))

    def at_floor(self, params: LinearParams) -> Array:
        total = self._pairs(params.theta).sum(axis=-1)
        return np.asarray((total * self.floor >= 1 - 1e-9).any(axis=1))

    def floor_message(self, component: int) -> str:
        return (
            f"the variance of a column of component {component} reached the floor of "
            f"{self.floor:g} m (1 - m) (duplicated values, or too few rows)"
        )

    def slopes(self, params: LinearParams, moments: LinearMoments) -> tuple[Array, Metric]:
        pairs = self._pairs(params.theta)
        count = np.broadcast_to(moments.count, moments.first.shape)
        surprise = moments.first - count * self.expected(params.theta, params.size)
        gradient = np.exp(params.theta) * surprise
        stuck = pairs.sum(axis=-1) * self.floor >= 1 - 1e-9
        return (
            np.where(both(stuck, stuck), 0.0, gradient),
            SharesMetric(pairs.reshape(-1, 2), halves(count)[0].ravel(), pairs.shape[1]),
        )

    def extent(self, params: LinearParams) -> Array:
        total = self._pairs(params.theta).sum(axis=-1)
        return np.asarray(np.sqrt(params.means * (1 - params.means) / (total + 1)))

    def describe(self, params: LinearParams) -> dict[str, Any]:
        a, b = halves(np.exp(params.theta))
        return {"means": params.means, "a": a, "b": b}

    def centre(self, n_features: int) -> Array | None:
        if self.a is None:
            return None
        return np.log(
            both(*(per_column(v, n_features, n) for n, v in (("a", self.a), ("b", self.b))))
        )

    def describe_centre(self, theta: Array) -> dict[str, Any]:
        a, b = halves(np.exp(theta[0]))
        return {"a": a, "b": b}

    # ------------------------------------------------ samples

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        a, b = halves(np.exp(theta))
        return np.asarray(np.clip(betaincinv(a, b, uniforms), _LEAST, _INSIDE))

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        a, b = halves(np.exp(theta))
        return np.clip(np.exp(log_beta_draw(a, b, rng)[0]), _LEAST, _INSIDE)


@record
@dataclass(frozen=True)
class Dirichlet(PseudoRowsFamily):
    """x | k ~ Dirichlet(a_k): compositions, rows of positive shares that add to one.

    NaN is not allowed: a row that lacks a share has no total.

    Parameters
    ----------
    floor : float
        A component has variances of at least about this times m (1 - m): the sum of its a is at
        most 1 / floor.
    rows : float
        How many rows the prior is worth.
    concentration : float or array (D,), optional
        The Dirichlet law of these pseudo-rows; by default that of all rows.
    """

    concentration: Any = None

    name: ClassVar[str] = "dirichlet"
    takes_missing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self.concentration, "concentration")

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * n_features

    def column_constants(self, n_features: int) -> Array:
        if n_features < 2:
            raise ValueError(
                "the family 'dirichlet' is for rows of two shares or more that add to one, got 1 "
                "column. Use the family 'beta' for single shares"
            )
        return np.ones(n_features)

    # ------------------------------------------------ rows

    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x < _LEAST) | (x > 1 + _SLACK))

    def rule(self, size: float) -> str:
        return (
            "must hold positive shares of a whole (zeros can be replaced by a share that is too "
            "small to be measured, the others taken down so that they add to one)"
        )

    def check(self, block: Block, names: Array | None) -> None:
        refuse_sparse(block, self.name, "shares above 0")
        _refuse_missing(block, names)
        super().check(block, names)
        total = np.asarray(block.X, float).sum(axis=1)
        odd = np.flatnonzero((np.abs(total - 1) > _SLACK) & (block.weights() > 0))
        if odd.size:
            raise ValueError(
                f"the family 'dirichlet' takes rows of shares that add to one; row "
                f"{block.start + int(odd[0])} adds to {total[odd[0]]:g}. Divide each row by its "
                "sum, or use the family 'beta' for shares of different wholes"
            )

    def expand_block(self, block: Block, size: Array) -> Block:
        _refuse_missing(block, None)
        with np.errstate(divide="ignore", invalid="ignore"):
            return with_statistics(block, np.log(dense_rows(block.X).astype(float)))

    def points(self, X: Array) -> Array:
        # lengths of differences of roots are Hellinger distances
        return np.asarray(np.sqrt(np.clip(np.asarray(X, float), 0.0, None)))

    # ------------------------------------------------ components: theta is ln a

    def clip_coordinates(self, theta: Array, size: Array) -> Array:
        return _bounded(theta, 1 / self.floor)

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        return np.asarray(np.exp(theta - np.logaddexp.reduce(theta, axis=-1, keepdims=True)))

    def linear(self, theta: Array, size: Array) -> tuple[Array, Array]:
        a = np.exp(theta)
        offset = np.zeros_like(a)
        offset[:, 0] = -log_beta(a)  # a row has all of its shares, and its normaliser once
        return a - 1, offset

    def expected(self, theta: Array, size: Array) -> Array:
        return expected_log(np.exp(theta))

    def best(self, mean: Array, size: Array) -> tuple[Array, Array]:
        a, bounded = best_concentration(mean, 1 / self.floor)
        return np.log(a), bounded

    def at_floor(self, params: LinearParams) -> Array:
        return np.asarray(np.exp(params.theta).sum(axis=1) * self.floor >= 1 - 1e-9)

    def floor_message(self, component: int) -> str:
        return (
            f"the variance of component {component} reached the floor of {self.floor:g} m (1 - m) "
            "(duplicated rows, or too few)"
        )

    def slopes(self, params: LinearParams, moments: LinearMoments) -> tuple[Array, Metric]:
        a = np.exp(params.theta)
        surprise = moments.first - moments.count * self.expected(params.theta, params.size)
        gradient = np.where(self.at_floor(params)[:, None], 0.0, a * surprise)
        return gradient, SharesMetric(a, moments.count[:, 0])

    def extent(self, params: LinearParams) -> Array:
        total = np.exp(params.theta).sum(axis=1, keepdims=True)
        return np.asarray(np.sqrt(params.means * (1 - params.means) / (total + 1)))

    def describe(self, params: LinearParams) -> dict[str, Any]:
        return {"means": params.means, "concentrations": np.exp(params.theta)}

    def centre(self, n_features: int) -> Array | None:
        if self.concentration is None:
            return None
        return np.log(per_column(self.concentration, n_features, "concentration"))

    def describe_centre(self, theta: Array) -> dict[str, Any]:
        return {"concentration": np.exp(theta[0])}

    # ------------------------------------------------ using a fit

    def condition(
        self, params: LinearParams, known: Array, values: Array
    ) -> tuple[Array, LinearParams]:
        raise ValueError(
            "a Dirichlet mixture cannot be conditioned on some of its columns: what they leave of "
            "the whole is shared by the others, and is no whole. The family 'beta' has "
            "independent columns and can."
        )

    def posterior_of_columns(self, posterior: LinearParams, which: Array) -> LinearParams:
        self.condition(posterior, which, which)
        raise AssertionError

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        a = np.exp(theta)
        with np.errstate(divide="ignore"):
            logs = np.log(gammaincinv(a, uniforms))
        # of tiny shapes: the first term of the series of the distribution function
        logs = np.where(np.isfinite(logs), logs, (np.log(uniforms) + gammaln(a + 1)) / a)
        return _shares(logs)

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        return _shares(log_draw(np.exp(theta), rng))


def _shares(logs: Array) -> Array:
    """Shares in proportion to exp(logs), none of which is zero."""
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(np.maximum(shares / shares.sum(axis=1, keepdims=True), _LEAST))


def _bounded(logs: Array, most: float) -> Array:
    """ln a with a total between the least one and ``most``, in the last axis."""
    total = np.logaddexp.reduce(logs, axis=-1, keepdims=True)
    return np.asarray(logs + np.clip(total, np.log(LEAST_TOTAL), np.log(most)) - total)


def _refuse_missing(block: Block, names: Any) -> None:
    if block.complete:
        return
    lacking = np.isnan(dense_rows(block.X)) & (block.weights() > 0)[:, None]
    if lacking.any():
        row, column = (int(i) for i in np.argwhere(lacking)[0])
        raise ValueError(
            f"the family 'dirichlet' allows no missing entries; column {column_name(names, column)}"
            f" of row {block.start + row} is NaN: a row that lacks a share has no total. Fill or "
            "drop such rows, or choose the family 'beta'."
        )
