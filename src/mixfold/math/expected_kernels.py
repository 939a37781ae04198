"""Kernels of rows that lack entries: expectations under a Gaussian of the columns.

Given its observed entries a row x is Gaussian, with the mean m and the covariance S of its
conditional distribution (zero where entries are observed). The expected product of two rows, which
are independent,

    E k(x, y) = <E phi(x), E phi(y)>,

is the product of the means of their features: a positive semi-definite kernel of (m, S). It has a
closed form for

    rbf         |I + 2 gamma S|^-1/2 exp(-gamma d' (I + 2 gamma S)^-1 d),   S = Sx + Sy, d = mx - my
    polynomial  moments of x'y, whose cumulants are those of a quadratic form of (x, y)

A row and itself are not independent: E k(x, x), the ``diagonal``, exceeds the squared length of
E phi(x) by the variance of the features that is due to what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixfold.contracts import Array, record
from mixfold.math.kernels import Kernel, LinearKernel, PolynomialKernel, RbfKernel

# kernels of which the expectation is known
EXPECTED = (LinearKernel, RbfKernel, PolynomialKernel)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Rows that lack the same entries: places, conditional means (n, D), covariance (D, D)."""

    places: Array
    means: Array
    spread: Array

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.spread.any()


@record
@dataclass(frozen=True, slots=True)
class ExpectedKernel:
    """E k(x, y) for rows with NaN, whose columns have this mean (D,) and covariance (D, D)."""

    kernel: Any
    mean: Array
    covariance: Array

    @property
    def gamma(self) -> float | None:
        """That of the kernel, if it has one."""
        return getattr(self.kernel, "gamma", None)

    def block(self, A: Any, B: Any) -> Array:
        if not (np.isnan(A).any() or np.isnan(B).any()):
            return np.asarray(self.kernel.block(A, B))
        G = np.empty((len(A), len(B)), A.dtype)
        others = list(self.patterns(B))
        for one in self.patterns(A):
            for other in others:
                G[np.ix_(one.places, other.places)] = self._between(one, other)
        return G

    def diagonal(self, A: Any) -> Array:
        """E k(x, x)."""
        out = np.empty(len(A), A.dtype)
        for one in self.patterns(A):
            out[one.places] = self._of_itself(one)
        return out

    def dimension(self, n_features: int) -> int | None:
        found: int | None = self.kernel.dimension(n_features)
        return found

    def centred(self, mean: Array) -> Self:
        return self

    # ------------------------------------------------ rows

    def patterns(self, A: Array) -> Iterator[Pattern]:
        """The rows of A (n, D) by what they lack."""
        missing = np.isnan(A)
        kinds, where = np.unique(missing, axis=0, return_inverse=True)
        for i, lacks in enumerate(kinds):
            places = np.flatnonzero(where.ravel() == i)
            yield self._condition(places, np.asarray(A[places], np.float64), lacks)

    def _condition(self, places: Array, rows: Array, lacks: Array) -> Pattern:
        size = len(self.mean)
        if not lacks.any():
            return Pattern(places, rows, np.zeros((size, size)))
        seen, C = ~lacks, self.covariance
        slopes = np.linalg.pinv(C[np.ix_(seen, seen)], hermitian=True) @ C[np.ix_(seen, lacks)]
        means, spread = rows.copy(), np.zeros((size, size))
        means[:, lacks] = self.mean[lacks] + (rows[:, seen] - self.mean[seen]) @ slopes
        rest = C[np.ix_(lacks, lacks)] - C[np.ix_(lacks, seen)] @ slopes
        spread[np.ix_(lacks, lacks)] = (rest + rest.T) / 2
        return Pattern(places, means, spread)

    def fill(self, A: Array) -> Array:
        """Rows with what is expected in place of what is missing."""
        if not np.isnan(A).any():
            return A
        out = np.array(A)
        for one in self.patterns(A):
            out[one.places] = one.means
        return out

    # ------------------------------------------------ products

    def _between(self, one: Pattern, other: Pattern) -> Array:
        if (one.complete and other.complete) or isinstance(self.kernel, LinearKernel):
            return np.asarray(self.kernel.block(one.means, other.means))
        if isinstance(self.kernel, RbfKernel):
            return _expected_rbf(self.kernel, one, other)
        return _moment(
            _bilinear_cumulants(one, other, self.kernel.degree), self.kernel.gamma,
            self.kernel.coef0,
        )  # fmt: skip

    def _of_itself(self, one: Pattern) -> Array:
        if one.complete or isinstance(self.kernel, RbfKernel):
            return np.asarray(self.kernel.diagonal(one.means))
        if isinstance(self.kernel, LinearKernel):
            return np.asarray(self.kernel.diagonal(one.means) + np.trace(one.spread))
        return _moment(
            _square_cumulants(one, self.kernel.degree), self.kernel.gamma, self.kernel.coef0
        )


def expected_kernel(kernel: Kernel, mean: Array, covariance: Array) -> ExpectedKernel:
    """The kernel of rows that lack entries; refused where there is no closed form."""
    if not isinstance(kernel, EXPECTED):
        raise ValueError(
            f"the expectation of {type(kernel).__name__} has no closed form; use kernel='rbf', "
            "'poly' or 'linear', or fill what is missing, by mixfold.PPCA(2).fit(X).impute(X) say"
        )
    return ExpectedKernel(kernel, mean, covariance)


def _expected_rbf(kernel: RbfKernel, one: Pattern, other: Pattern) -> Array:
    """In coordinates in which the exponent is the squared distance again."""
    spread = one.spread + other.spread
    values, U = np.linalg.eigh(spread)
    wider = 1 + 2 * kernel.gamma * np.maximum(values, 0.0)
    turn = U / np.sqrt(wider)
    centre = one.means.mean(axis=0)  # far from zero distances would lose their digits
    near = RbfKernel(kernel.gamma)
    return np.asarray(near.block((one.means - centre) @ turn, (other.means - centre) @ turn)
                      / np.sqrt(np.prod(wider)))  # fmt: skip


def _bilinear_cumulants(one: Pattern, other: Pattern, degree: int) -> list[Array]:
    """Of x'y for x in one pattern and y in another, (n, m) each, up to the degree.

    With w = (x, y), A of w'Aw = x'y, and S = diag(Sx, Sy), the n-th one is
    2^(n-1) (n-1)! (tr (A S)^n + n mean' A (S A)^(n-1) mean).
    """
    size = one.means.shape[1]
    nothing, unit = np.zeros((size, size)), np.eye(size)
    A = 0.5 * np.block([[nothing, unit], [unit, nothing]])
    S = np.block([[one.spread, nothing], [nothing, other.spread]])
    chain, found = A, []
    for n in range(1, degree + 1):
        first, cross, last = chain[:size, :size], chain[:size, size:], chain[size:, size:]
        square = np.einsum("ij,jk,ik->i", one.means, first, one.means)[:, None]
        square = square + np.einsum("ij,jk,ik->i", other.means, last, other.means)
        square = square + 2 * one.means @ cross @ other.means.T
        factor = 2 ** (n - 1) * math.factorial(n - 1)
        found.append(factor * (np.trace(chain @ S) + n * square))
        chain = chain @ S @ A
    return found


def _square_cumulants(one: Pattern, degree: int) -> list[Array]:
    """Of x'x, (n,) each."""
    chain, found = np.eye(one.means.shape[1]), []
    for n in range(1, degree + 1):
        factor = 2 ** (n - 1) * math.factorial(n - 1)
        square = np.einsum("ij,jk,ik->i", one.means, chain, one.means)
        found.append(factor * (np.trace(chain @ one.spread) + n * square))
        chain = chain @ one.spread
    return found


def _moment(cumulants: list[Array], gamma: float, coef0: float) -> Array:
    """E (gamma t + coef0)^n from the first n cumulants of t."""
    scaled = [gamma ** (n + 1) * one for n, one in enumerate(cumulants)]
    scaled[0] = scaled[0] + coef0
    moments = [np.ones_like(scaled[0])]
    for n in range(1, len(scaled) + 1):
        moments.append(sum(
            (math.comb(n - 1, k) * scaled[k] * moments[n - 1 - k] for k in range(n)),
            np.zeros_like(scaled[0]),
        ))  # fmt: skip
    return np.asarray(moments[-1])
