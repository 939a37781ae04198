"""Kernel functions: linear, RBF, Laplacian, polynomial, cosine, or a function of the user.

``block(A, B)`` is the matrix of k(a, b) for rows of A and B (dense or CSR), ``diagonal(A)`` that
of k(a, a); ``dimension(D)`` is the dimension of the space of features for D columns, None if it
has no bound. ``centred(mean)`` is the same kernel, computed about a point near the data where
that saves digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import manhattan_distances

from mixfold.contracts import Array, record
from mixfold.math.compiled import summing_kernel


class Kernel(Protocol):
    """A positive semi-definite function of two rows."""

    def block(self, A: Any, B: Any) -> Array: ...

    def diagonal(self, A: Any) -> Array: ...

    def dimension(self, n_features: int) -> int | None: ...

    def centred(self, mean: Array) -> Self: ...


class _Anywhere:
    """A kernel that has no better place to be computed."""

    def centred(self, mean: Array) -> Self:
        return self


@record
@dataclass(frozen=True, slots=True)
class LinearKernel(_Anywhere):
    """a'b."""

    def block(self, A: Any, B: Any) -> Array:
        return _products(A, B)

    def diagonal(self, A: Any) -> Array:
        return _squares(A)

    def dimension(self, n_features: int) -> int | None:
        return n_features


@record
@dataclass(frozen=True, slots=True)
class RbfKernel:
    """exp(-gamma |a - b|^2)."""

    gamma: float
    origin: Array | None = None

    def block(self, A: Any, B: Any) -> Array:
        A, B = _about(A, self.origin), _about(B, self.origin)
        G = _products(A, B)
        if G.dtype != A.dtype:  # of entries that are too large for float32
            A, B = A.astype(G.dtype), B.astype(G.dtype)
        G *= 2 * self.gamma
        G -= self.gamma * _squares(A)[:, None]
        G -= self.gamma * _squares(B)
        np.minimum(G, 0.0, out=G)
        return np.exp(G, out=G)

    def diagonal(self, A: Any) -> Array:
        return np.ones(A.shape[0], A.dtype)

    def dimension(self, n_features: int) -> int | None:
        return None

    def centred(self, mean: Array) -> Self:
        return replace(self, origin=mean)


@record
@dataclass(frozen=True, slots=True)
class LaplacianKernel(_Anywhere):
    """exp(-gamma sum |a_j - b_j|)."""

    gamma: float

    def block(self, A: Any, B: Any) -> Array:
        if sparse.issparse(A) or sparse.issparse(B):
            G = manhattan_distances(_short(A), _short(B)).astype(A.dtype)
        else:
            G = np.empty((len(A), len(B)), A.dtype)
            _manhattan(np.ascontiguousarray(A), np.ascontiguousarray(B), G)
        G *= -self.gamma
        return np.asarray(np.exp(G, out=G))

    def diagonal(self, A: Any) -> Array:
        return np.ones(A.shape[0], A.dtype)

    def dimension(self, n_features: int) -> int | None:
        return None


@record
@dataclass(frozen=True, slots=True)
class PolynomialKernel(_Anywhere):
    """(gamma a'b + coef0)^degree."""

    degree: int
    gamma: float
    coef0: float

    def block(self, A: Any, B: Any) -> Array:
        G = _products(A, B)
        G *= self.gamma
        G += self.coef0
        return _whole_power(G, self.degree)

    def diagonal(self, A: Any) -> Array:
        return _whole_power(self.gamma * _squares(A) + self.coef0, self.degree)

    def dimension(self, n_features: int) -> int | None:
        """Of all monomials of the degree; of those up to it if the constant is not zero."""
        more = 1 if self.coef0 else 0
        return math.comb(n_features - 1 + more + self.degree, self.degree)


@record
@dataclass(frozen=True, slots=True)
class CosineKernel(_Anywhere):
    """a'b / (|a| |b|); a row of zeros has the product 0 with every row."""

    def block(self, A: Any, B: Any) -> Array:
        G = _products(A, B)
        G *= _inverse_lengths(A)[:, None]
        G *= _inverse_lengths(B)
        return G

    def diagonal(self, A: Any) -> Array:
        return (_squares(A) > 0).astype(A.dtype)

    def dimension(self, n_features: int) -> int | None:
        return n_features


@dataclass(frozen=True, slots=True)
class CallableKernel(_Anywhere):
    """A function of two matrices of rows; cannot be stored."""

    function: Callable[[Any, Any], Any]

    def block(self, A: Any, B: Any) -> Array:
        G = np.asarray(self.function(A, B))
        if G.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                "kernel, if callable, must take matrices of n and m rows and give one of shape "
                f"(n, m); for n = {A.shape[0]} and m = {B.shape[0]} it gave shape {G.shape}"
            )
        if not np.isfinite(G).all():
            raise ValueError(
                "kernel, if callable, must give finite numbers; it gave NaN or infinity"
            )
        return G.astype(np.float64, copy=True)

    def diagonal(self, A: Any) -> Array:
        """In pieces, of which only the diagonals are wanted."""
        cuts = [A[i : i + 64] for i in range(0, A.shape[0], 64)]
        return np.concatenate([np.diagonal(self.block(part, part)) for part in cuts])

    def dimension(self, n_features: int) -> int | None:
        return None


# ------------------------------------------------------------------ pieces


def _products(A: Any, B: Any) -> Array:
    """A B', always dense and always new; in double precision where single would overflow."""
    A, B = _in_range(A), _in_range(B)
    G = A @ B.T
    return np.asarray(G.toarray() if sparse.issparse(G) else G)


def _short(A: Any) -> Any:
    """A CSR matrix with the indices that scikit-learn's loops take."""
    A = sparse.csr_array(A)
    parts = (A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=A.shape)


def _in_range(A: Any) -> Any:
    """Rows of which products can be added up: in float32 entries beyond 1e15 become float64."""
    values = A.data if sparse.issparse(A) else A
    return A if values.dtype.itemsize >= 8 or _is_moderate(values) else A.astype(np.float64)


def _is_moderate(values: Array) -> bool:
    return not values.size or max(values.max(), -values.min()) < 1e15


def _squares(A: Any) -> Array:
    A = _in_range(A)
    if sparse.issparse(A):
        return np.asarray(A.multiply(A).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", A, A))


def _inverse_lengths(A: Any) -> Array:
    lengths = np.sqrt(_squares(A))
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _about(A: Any, origin: Array | None) -> Any:
    if origin is None:
        return A
    # an origin that is too large for float32 makes float64 of the rows
    return A - (origin.astype(A.dtype) if _is_moderate(origin) else origin)


# Degrees up to which a power is made by products: as many take longer than numpy's power.
_PRODUCTS = 10


def _whole_power(G: Array, degree: int) -> Array:
    """G^degree by products: numpy's power of doubles takes ten times as long."""
    power = G.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        if degree > _PRODUCTS:
            power **= degree
        else:
            for _ in range(degree - 1):
                power *= G
    if not np.isfinite(power).all():
        raise ValueError(
            f"the kernel 'poly' of degree {degree} is too large for {power.dtype.name}: gamma a'b "
            f"+ coef0 is up to {np.abs(G).max():g}. Divide the columns of X by their standard "
            "deviations (sklearn.preprocessing.StandardScaler), or take a smaller gamma or degree"
        )
    return power


@summing_kernel
def _manhattan(A: Array, B: Array, out: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            total = 0.0
            for d in range(A.shape[1]):
                total += abs(A[i, d] - B[j, d])
            out[i, j] = total
