"""Families whose conjugate prior has no closed normaliser: beta, Dirichlet, gamma, Wishart laws.

    log p(x | theta) = log h(x) + <T(x), eta(theta)> - A(theta)
    log p(theta)     = rows (<mean, eta(theta)> - A(theta)) + constant

The prior counts like ``rows`` rows of mean statistics ``mean``, and so does its posterior: its mode
is the maximum of the likelihood of rows and pseudo-rows together, found by the same M step. The
constant, the integral over theta, is known for none of these laws. So there is a maximum a
posteriori, but no bound of the evidence and nothing to draw from, and ``readings`` says so.

A row is expanded to its statistics (logarithms, mostly), in which the density is linear.

References
----------
P. Diaconis, D. Ylvisaker (1979). Conjugate priors for exponential families. Annals of Statistics 7,
269-281.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn

import numpy as np

from mixfold.contracts import Array, Block, Metric, NotNegative, record
from mixfold.families.exponential.family import ConjugateLinearFamily
from mixfold.families.exponential.records import LinearMoments, LinearParams
from mixfold.families.exponential.support import require_positive
from mixfold.math.frame import Frame, plain_frame


@record
@dataclass(frozen=True, slots=True)
class PseudoRows:
    """A prior that counts like ``rows`` rows of mean statistics ``mean`` (V,)."""

    rows: NotNegative
    mean: Array
    size: Array


@dataclass(frozen=True)
class PseudoRowsFamily(ConjugateLinearFamily):
    """Laws with a prior that is said in rows.

    Parameters
    ----------
    floor : float
        Least variance, relative to the largest that a mean allows.
    rows : float
        How many rows the prior is worth.
    """

    rows: Any = 1.0

    readings: ClassVar[tuple[str, ...]] = ("mode",)
    takes_sparse: ClassVar[bool] = False
    remedy: ClassVar[str] = (
        "the normaliser of its prior has no closed form, so there is no bound of the evidence and "
        "no draw; it is fitted by inference='em', with or without a prior"
    )
    not_collapsed: ClassVar[str] = "the normaliser of its prior has no closed form"

    def __post_init__(self) -> None:
        require_positive(self.floor, "floor")
        require_positive(self.rows, "rows")
        if np.ndim(self.rows):
            raise ValueError(
                f"rows, the weight of the prior, must be one number, got {self.rows!r}"
            )

    # ------------------------------------------------ what a family says

    @abstractmethod
    def expected(self, theta: Array, size: Array) -> Array:
        """E[T | theta] (K, V)."""

    @abstractmethod
    def best(self, mean: Array, size: Array) -> tuple[Array, Array]:
        """theta of the greatest likelihood for mean statistics (K, V), and which components are at
        the floor."""

    @abstractmethod
    def slopes(self, params: LinearParams, moments: LinearMoments) -> tuple[Array, Metric]:
        """Gradient in theta (K, V), and the information of the complete data."""

    @abstractmethod
    def centre(self, n_features: int) -> Array | None:
        """theta (V,) of the law that the settings put the prior at; None: that of all rows."""

    @abstractmethod
    def describe_centre(self, theta: Array) -> dict[str, Any]:
        """The settings that say this law; theta is (1, V)."""

    # ------------------------------------------------ linear family

    def point_of(self, first: Array, count: Array, size: Array) -> Array:
        seen = np.broadcast_to(count > 0, first.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = first / count
        # what has no rows is solved for those of another, and not used
        known = self.expected(np.zeros((1, first.shape[1])), size)
        mean = np.where(seen, mean, known)
        return np.where(seen, self.best(mean, size)[0], np.nan)

    def estimate(
        self, moments: LinearMoments, previous: LinearParams
    ) -> tuple[LinearParams, Array]:
        params, _ = super().estimate(moments, previous)
        return params, self.at_floor(params)

    @abstractmethod
    def at_floor(self, params: LinearParams) -> Array:
        """Which components (K,) have no less variance than the floor in some column."""

    def gradient_and_information(
        self, params: LinearParams, moments: LinearMoments
    ) -> tuple[Array, Array]:
        raise TypeError("the information of this family is no diagonal: see slopes")

    def derivatives(self, params: LinearParams, moments: LinearMoments) -> tuple[Array, Metric]:
        gradient, metric = self.slopes(params, moments)
        return gradient.ravel(), metric

    def typical(self, params: LinearParams, which: Array) -> Array:
        return np.asarray(self.expected(params.theta[which], params.size).mean(axis=0))

    def bulk(self, X: Array, weight: Array) -> Frame:
        # shares are between 0 and 1: none is far away
        return Frame(np.zeros(X.shape[1]), np.full(X.shape[1], np.inf))

    # ------------------------------------------------ prior and posterior

    def prior(self, frame: Frame, total: LinearMoments) -> PseudoRows:
        size = self.column_constants(frame.origin.size)
        centre = self.centre(frame.origin.size)
        if centre is None:
            centre = np.nan_to_num(self.point_of(total.first[:1], total.count[:1], size)[0])
            centre = self.clip_coordinates(centre[None], size)[0]
        return PseudoRows(np.asarray(self.rows, float), self.expected(centre[None], size)[0], size)

    def describe_prior(self, prior: PseudoRows, frame: Frame) -> dict[str, Any]:
        theta = self.point_of(prior.mean[None], np.ones((1, 1)), prior.size)
        return {"rows": float(prior.rows), **self.describe_centre(theta)}

    def posterior(self, moments: LinearMoments, prior: PseudoRows, frame: Frame) -> LinearParams:
        first = moments.first + prior.rows * prior.mean
        theta = self.point_of(first, moments.count + prior.rows, prior.size)
        means = self.of_theta(theta, prior.size, theta)
        return LinearParams(frame, means, theta, prior.size)

    def keep_posterior(self, posterior: LinearParams, which: Array) -> LinearParams:
        return self.select(posterior, which)

    def posterior_of_columns(self, posterior: LinearParams, which: Array) -> LinearParams:
        return self.columns(posterior, which)

    def point(self, posterior: LinearParams) -> LinearParams:
        return posterior

    def log_prior(self, params: LinearParams, prior: PseudoRows) -> float:
        slope, offset = self.linear(params.theta, params.size)
        return float(prior.rows * ((prior.mean * slope).sum() + offset.sum()))

    # ------------------------------------------------ what there is not

    def _refuse(self) -> NoReturn:
        raise TypeError(f"the family {self.name!r} has no posterior but its mode: {self.remedy}")

    def expected_reading(self, posterior: Any) -> NoReturn:
        self._refuse()

    def draw(self, posterior: Any, rng: np.random.Generator) -> NoReturn:
        self._refuse()

    def kl(self, posterior: Any, prior: Any) -> NoReturn:
        self._refuse()

    def evidence(self, moments: Any, prior: Any, frame: Frame) -> NoReturn:
        self._refuse()

    def empirical(self, posterior: Any, prior: Any) -> NoReturn:
        self._refuse()

    # ------------------------------------------------ prediction, at the mode

    def log_predictive(self, posterior: LinearParams, block: Block) -> Array:
        return self.log_density(block, self.mode(posterior))

    def sample_predictive(
        self, posterior: LinearParams, labels: Array, rng: np.random.Generator
    ) -> Array:
        return self.draw_rows(posterior, labels, rng)


@dataclass(frozen=True)
class PairedColumns(PseudoRowsFamily):
    """Two statistics and two parameters of each column: theta is (K, 2 D), as are their sums."""

    def n_free(self, n_components: int, n_features: int) -> int:
        return 2 * n_components * n_features

    def workspace_per_row(self, n_components: int, n_features: int) -> int:
        return n_components + 2 * n_features

    def numbers_of_row(self, block: Block, reading: Any) -> int:
        return 2 * int(block.X.shape[1])

    def columns(self, params: LinearParams, which: Array) -> LinearParams:
        theta = np.concatenate([half[:, which] for half in halves(params.theta)], axis=1)
        frame = plain_frame(len(which))
        return LinearParams(frame, params.means[:, which], theta, params.size[which])

    def entries(self, moments: LinearMoments, counts: Array) -> Array:
        width = moments.count.shape[1]
        return moments.count if width == 1 else moments.count[:, : width // 2]

    def place(self, params: LinearParams, where: Array, points: Array) -> LinearParams:
        """A missing entry leaves a moved component what is typical there."""
        moved = super().place(params, where, points)
        lacking = np.isnan(moved.theta)
        if not lacking.any():
            return moved
        rest = np.setdiff1d(np.arange(params.n_components), where)
        typical = params.theta[rest if rest.size else where].mean(axis=0)
        return self.with_theta(
            replace(moved, theta=params.theta), np.where(lacking, typical, moved.theta)
        )


def halves(theta: Array) -> tuple[Array, Array]:
    """Of two parameters of each column, the first and the second of all columns."""
    size = theta.shape[-1] // 2
    return theta[..., :size], theta[..., size:]


def both(one: Array, two: Array) -> Array:
    """The inverse of ``halves``."""
    return np.concatenate([one, two], axis=-1)


def with_statistics(block: Block, X: Array) -> Block:
    """The block with statistics for columns. Rows without weight hold anything: in place of what
    is not finite they get zeros."""
    odd = ~np.isfinite(X)
    if block.complete:
        X[odd] = 0.0
    else:
        X[odd & ~np.isnan(X)] = 0.0
    return replace(block, X=X)
