"""Families with one parameter per column and a prior of two coordinates (a, b).

chi = (a, b) + sum over rows of T(x), and theta_hat = ln a - ln b: the log odds of a beta law, the
log of the mean of a gamma law. A family says how T and the density are made of sums and of omega.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from mixfold.contracts import Array, Block
from mixfold.families.component import dense_rows
from mixfold.families.exponential.conjugate_priors import Law
from mixfold.families.exponential.family import ConjugateLinearFamily
from mixfold.families.exponential.records import (
    LinearMoments,
    LinearParams,
    LinearReading,
    PairPosterior,
    PairPrior,
)
from mixfold.families.exponential.support import per_column, require_positive
from mixfold.math.frame import Frame, plain_frame
from mixfold.math.prior_draws import draw_pair

# entries of a temporary of the predictive density
_ENTRIES = 2**17


@dataclass(frozen=True)
class PairFamily(ConjugateLinearFamily):
    """One parameter per column.

    Parameters
    ----------
    a, b : float or array (D,), optional
        The prior of the parameter; None stands for the default of the family.
    """

    a: Any = None
    b: Any = None

    law: ClassVar[Law]

    @property
    def collapsed_law(self) -> str:
        return self.law.name

    def __post_init__(self) -> None:
        require_positive(self.a, "a")
        require_positive(self.b, "b")

    # ------------------------------------------------ what a family says

    @abstractmethod
    def statistics(self, first: Array, count: Array, size: Array) -> tuple[Array, Array]:
        """Sums of T(x) from sums of x and of 1."""

    @abstractmethod
    def terms(self, one: Array, two: Array, size: Array) -> tuple[Array, Array]:
        """``slope`` and ``offset`` from omega, or from its expectation."""

    @abstractmethod
    def limits(self, size: Array) -> tuple[Any, Any]:
        """Between which theta stays."""

    @abstractmethod
    def information(self, theta: Array, size: Array) -> Array:
        """Fisher information of one row about theta."""

    @abstractmethod
    def usual(self, a: Array, mean: Array, size: Array) -> Array:
        """The default b, from the means of the columns."""

    def entry_base(self, x: Array, size: Array) -> Array:
        """log h of single entries."""
        return np.zeros_like(x, dtype=float)

    def log_base(self, block: Block, size: Array) -> Array | None:
        with np.errstate(divide="ignore", invalid="ignore"):  # rows without weight hold anything
            return np.asarray(np.nansum(self.entry_base(dense_rows(block.X), size), axis=1))

    # ------------------------------------------------ linear family

    def describe(self, params: LinearParams) -> dict[str, Any]:
        return {"means": params.means, self.law.published: self.law.value(params.theta)}

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * n_features

    def n_settled(self, n_components: int, only: Array) -> int:
        ends = self.ends(self.column_constants(len(only)))
        return n_components * int(np.any([only == end for end in ends], axis=0).sum())

    def ends(self, size: Array) -> tuple[Any, ...]:
        """Entries that put the parameter at an end of its range, if all entries of a column are
        that."""
        return ()

    def clip_coordinates(self, theta: Array, size: Array) -> Array:
        return np.asarray(np.clip(theta, *self.limits(size)))

    def point_of(self, first: Array, count: Array, size: Array) -> Array:
        a, b = self.statistics(first, count, size)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # it is clipped
            theta = np.log(np.maximum(a, 0.0) / np.maximum(b, 0.0))
        theta = self.clip_coordinates(theta, size)
        return theta if (count > 0).all() else np.where(count > 0, theta, np.nan)

    def linear(self, theta: Array, size: Array) -> tuple[Array, Array]:
        return self.terms(*self.law.omega(theta), size)

    def gradient_and_information(
        self, params: LinearParams, moments: LinearMoments
    ) -> tuple[Array, Array]:
        a, b = self.statistics(moments.first, moments.count, params.size)
        gradient = self.law.gradient(params.theta, a, b)
        return gradient, moments.count * self.information(params.theta, params.size)

    # ------------------------------------------------ prior and posterior

    def prior(self, frame: Frame, total: LinearMoments) -> PairPrior:
        D = frame.origin.size
        size = self.column_constants(D)
        first, count = total.first[0], np.maximum(total.count[0], np.finfo(float).tiny)
        # half a count where nothing was ever counted
        mean = np.where(first > 0, first, 0.5) / count
        a = per_column(1.0 if self.a is None else self.a, D, "a")
        b = self.usual(a, mean, size) if self.b is None else per_column(self.b, D, "b")
        return PairPrior(a, b, size)

    def describe_prior(self, prior: PairPrior, frame: Frame) -> dict[str, Any]:
        return {"a": prior.a, "b": prior.b}

    def posterior(self, moments: LinearMoments, prior: PairPrior, frame: Frame) -> PairPosterior:
        a, b = self.statistics(moments.first, moments.count, prior.size)
        # responsibilities are rounded: a sum of n - x may come out below zero
        a, b = prior.a + np.maximum(a, 0.0), prior.b + np.maximum(b, 0.0)
        return PairPosterior(frame, self._means(a, b, prior.size), a, b, prior.size)

    def _means(self, a: Array, b: Array, size: Array) -> Array:
        theta = self.clip_coordinates(np.log(a) - np.log(b), size)
        return self.of_theta(theta, size, theta)

    def keep_posterior(self, posterior: PairPosterior, which: Array) -> PairPosterior:
        means, a, b = posterior.means[which], posterior.a[which], posterior.b[which]
        return replace(posterior, means=means, a=a, b=b)

    def posterior_of_columns(self, posterior: PairPosterior, which: Array) -> PairPosterior:
        laws = posterior.means[:, which], posterior.a[:, which], posterior.b[:, which]
        return PairPosterior(plain_frame(len(which)), *laws, posterior.size[which])

    def point(self, posterior: PairPosterior) -> LinearParams:
        theta = self.clip_coordinates(np.log(posterior.a) - np.log(posterior.b), posterior.size)
        return LinearParams(posterior.frame, posterior.means, theta, posterior.size)

    def expected_reading(self, posterior: PairPosterior) -> LinearReading:
        omega = self.law.expected(posterior.a, posterior.b)
        return self.reading(*self.terms(*omega, posterior.size), self.point(posterior))

    def draw(self, posterior: PairPosterior, rng: np.random.Generator) -> LinearParams:
        theta = self.law.draw(posterior.a, posterior.b, rng)
        means = self.of_theta(theta, posterior.size, posterior.means)
        return LinearParams(posterior.frame, means, theta, posterior.size)

    # ------------------------------------------------ parts of the objectives

    def kl(self, posterior: PairPosterior, prior: PairPrior) -> float:
        return float(self.law.kl(posterior.a, posterior.b, prior.a, prior.b).sum())

    def log_prior(self, params: LinearParams, prior: PairPrior) -> float:
        one, two = self.law.omega(params.theta)
        return float((prior.a * one + prior.b * two).sum())

    def evidence(self, moments: LinearMoments, prior: PairPrior, frame: Frame) -> float:
        after = self.posterior(moments, prior, frame)
        gain = self.law.log_norm(after.a, after.b) - self.law.log_norm(prior.a, prior.b)
        return moments.base + float(gain.sum())

    def empirical(self, posterior: PairPosterior, prior: PairPrior) -> PairPrior:
        refuse_single(posterior.n_components)
        one, two = self.law.expected(posterior.a, posterior.b)
        a, b = self.law.fit(one.mean(axis=0), two.mean(axis=0), prior.a, prior.b)
        return replace(prior, a=a, b=b)

    def draw_prior(
        self, params: LinearParams, prior: PairPrior, given: PairPrior, rng: np.random.Generator
    ) -> PairPrior:
        logs = self.law.omega(params.theta)
        now, base = (prior.a, prior.b), (given.a, given.b)
        a, b = draw_pair(self.law.log_norm, *logs, now, base, rng)
        return replace(prior, a=a, b=b)

    def log_strength(self, prior: PairPrior) -> float:
        return float(np.log(prior.a).mean())

    # ------------------------------------------------ prediction

    def log_predictive(self, posterior: PairPosterior, block: Block) -> Array:
        step = max(1, _ENTRIES // max(1, self.numbers_of_row(block, None)))
        parts = [block.part(i, i + step) for i in range(0, block.n_rows, step)]
        rows = self._sparse_predictive if issparse(block.X) else self._dense_predictive
        return np.concatenate([rows(posterior, part) for part in parts])

    def _entry_predictive(self, x: Array, a: Array, b: Array, size: Array) -> Array:
        """log h(x) + B(chi + T(x)) - B(chi) of single entries."""
        more, rest = self.statistics(x, np.ones_like(x), size)
        gain = self.law.log_norm(a + more, b + rest) - self.law.log_norm(a, b)
        return np.asarray(self.entry_base(x, size) + gain)

    def _dense_predictive(self, posterior: PairPosterior, block: Block) -> Array:
        X = dense_rows(block.X).astype(float)
        out = np.empty((len(X), posterior.n_components))
        for k, (a, b) in enumerate(zip(posterior.a, posterior.b, strict=True)):
            out[:, k] = np.nansum(self._entry_predictive(X, a, b, posterior.size), axis=1)
        return out

    def _sparse_predictive(self, posterior: PairPosterior, block: Block) -> Array:
        """From the stored entries: each differs from a zero in its place."""
        X, size = block.X, posterior.size
        x, where = X.data.astype(float), X.indices
        row = np.repeat(np.arange(block.n_rows), np.diff(X.indptr))
        out = np.empty((block.n_rows, posterior.n_components))
        for k, (a, b) in enumerate(zip(posterior.a, posterior.b, strict=True)):
            empty = self._entry_predictive(np.zeros(size.size), a, b, size)
            stored = self._entry_predictive(x, a[where], b[where], size[where])
            stored = np.where(np.isnan(x), 0.0, stored) - empty[where]
            out[:, k] = empty.sum() + np.bincount(row, stored, block.n_rows)
        return out

    def sample_predictive(
        self, posterior: PairPosterior, labels: Array, rng: np.random.Generator
    ) -> Array:
        theta = self.law.draw(posterior.a[labels], posterior.b[labels], rng)
        means = self.of_theta(theta, posterior.size, theta)
        return self.emit(means, theta, posterior.size, rng)


def times(size: Array, count: Array, first: Array) -> Array:
    """size * count (K, D) in the memory order of ``first``: mixed orders are slow."""
    return np.asarray(np.multiply(size, count, order="F" if first.flags.fnc else "C"))


def refuse_single(n_components: int) -> None:
    """Moment matching to one component returns its posterior: the prior would count the data."""
    if n_components < 2:
        raise ValueError(
            "the prior can be learned from at least two components, got 1: the data would be "
            "counted again in every step. Keep the prior fixed."
        )
