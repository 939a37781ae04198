"""Symmetric positive definite matrices: packing, factors, floors."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.linalg import lapack

from mixfold.contracts import Array

# logarithms of scales beyond this come from extrapolations gone astray; exp stays finite
LOG_LIMIT = 60.0
LOG_2PI = float(np.log(2 * np.pi))


@cache
def _upper(size: int) -> tuple[Array, Array]:
    """Rows and columns of the upper triangle, row by row."""
    row, column = np.triu_indices(size)
    return row, column


@cache
def lower_triangle(size: int) -> tuple[Array, Array, Array]:
    """Rows and columns of the lower triangle, row by row, and where its diagonal stands."""
    row, column = np.tril_indices(size)
    return row, column, np.flatnonzero(row == column)


def pack(matrices: Array) -> Array:
    """Upper triangles of (..., D, D) as (..., D (D + 1) / 2), row by row."""
    row, column = _upper(matrices.shape[-1])
    return np.asarray(matrices[..., row, column])


def unpack(packed: Array, size: int) -> Array:
    """The symmetric matrices (..., D, D) whose upper triangles are packed."""
    row, column = _upper(size)
    out = np.empty((*packed.shape[:-1], size, size))
    out[..., row, column] = packed
    out[..., column, row] = packed
    return out


def cholesky(matrix: Array) -> Array | None:
    """The lower factor, or None if the matrix is not numerically positive definite."""
    factor, failed = lapack.dpotrf(matrix, lower=1, clean=1)
    if failed or not np.isfinite(factor[-1, -1]):
        return None
    return np.asarray(factor)


def raise_eigenvalues(matrix: Array, floor: float | Array) -> tuple[Array, float]:
    """The matrix with its eigenvalues raised to ``floor`` where they are less, and the least
    variance of a direction that was raised (infinity if none was).

    This is the maximiser of -ln|A| - tr(A^-1 S) over A >= floor * I, so a floored M step never
    lowers the likelihood. Adding ``floor * I`` instead would not be an M step. An array (D,) is a
    floor for each column, A >= diag(floor): eigenvalues are raised where it is the identity.
    """
    raised, least = raise_all_eigenvalues(matrix[None], floor)
    return (matrix if least[0] == np.inf else np.asarray(raised[0])), float(least[0])


def raise_all_eigenvalues(matrices: Array, floor: float | Array) -> tuple[Array, Array]:
    """``raise_eigenvalues`` of each of (K, D, D), and its second results (K,)."""
    size, alike = matrices.shape[-1], np.ndim(floor) == 0
    least = np.full(len(matrices), np.inf)
    columns = np.broadcast_to(np.asarray(floor, dtype=float), (size,))
    above = matrices - np.diag(columns)
    if _stacked_factors(above) is not None:
        return matrices, least
    # floors of columns are one in units of their roots
    unit, lowest = (np.ones(size), columns[0]) if alike else (np.sqrt(columns), 1.0)
    which = np.flatnonzero([cholesky(one) is None for one in above])
    values, vectors = np.linalg.eigh(matrices[which] / unit[:, None] / unit)
    # below this a factorisation of the result would fail by rounding
    floors = np.maximum(lowest, 1e-13 * size * values[:, -1])
    touched = values[:, 0] < floors
    which, values, vectors, floors = (x[touched] for x in (which, values, vectors, floors))
    raised = (vectors * np.maximum(values, floors[:, None])[:, None, :]) @ np.swapaxes(
        vectors, 1, 2
    )
    out = matrices.copy()
    if alike:
        out[which], least[which] = raised, floors
        return out, least
    raised = raised * unit[:, None] * unit
    out[which] = (raised + np.swapaxes(raised, 1, 2)) / 2
    # of the variable v' D^-1/2 x, whose variance was raised, per unit of length
    lengths = np.where(
        values < floors[:, None], ((vectors / unit[:, None]) ** 2).sum(axis=1), 0.0
    ).max(axis=1)
    least[which] = floors / lengths
    return out, least


def are_above(inverses: Array, floor: float | Array) -> bool:
    """Whether the matrices of these inverse factors (K, D, D) are surely above a floor, as in
    ``raise_eigenvalues``: the trace of the inverse bounds its largest eigenvalue. A matrix that is
    not may be above it as well."""
    diagonal = np.einsum("kde,kde->kd", inverses, inverses)
    return bool(((diagonal * floor).sum(axis=1) < 1).all())


def inverse_factor(factor: Array) -> Array:
    """A = L^-T for a lower factor L: upper triangular, A A' the precision, A'(x - m) white."""
    inverse, _ = lapack.dtrtri(factor, lower=1)
    return np.ascontiguousarray(inverse.T)


def factorise(covariances: Array) -> tuple[Array, Array]:
    """Lower Cholesky factors of (K, D, D) and their ``inverse_factor``.

    Raises
    ------
    ValueError
        If one is not positive definite.
    """
    found = try_to_factorise(covariances)
    if found is None:
        k = next(k for k, covariance in enumerate(covariances) if cholesky(covariance) is None)
        raise ValueError(f"the covariance of component {k} is not positive definite")
    return found


def try_to_factorise(covariances: Array) -> tuple[Array, Array] | None:
    """``factorise``, or None."""
    if len(covariances) > covariances.shape[-1]:
        stack = _stacked_factors(covariances)
        if stack is not None:
            return stack, np.ascontiguousarray(np.swapaxes(_lower_inverses(stack), 1, 2))
    factors, inverses = np.empty_like(covariances), np.empty_like(covariances)
    for k, covariance in enumerate(covariances):
        factor = cholesky(covariance)
        if factor is None:
            return None
        factors[k], inverses[k] = factor, inverse_factor(factor)
    return factors, inverses


def _stacked_factors(covariances: Array) -> Array | None:
    """All lower factors in one call; None if one of them does not exist."""
    try:
        factors = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        return None
    return factors if np.isfinite(factors[:, -1, -1]).all() else None


def _lower_inverses(factors: Array) -> Array:
    """Inverses of many small lower factors: D steps over all of them instead of a call for each."""
    inverses = np.zeros_like(factors)
    pivots = 1 / np.diagonal(factors, axis1=1, axis2=2)
    for d in range(factors.shape[-1]):
        inverses[:, d, d] = pivots[:, d]
        row = (factors[:, d, None, :d] @ inverses[:, :d, :d])[:, 0]
        inverses[:, d, :d] = -row * pivots[:, d, None]
    return inverses


def log_determinants(factors: Array) -> Array:
    """log|L L'| of lower factors (K, D, D)."""
    return np.asarray(2.0 * np.log(np.diagonal(factors, axis1=-2, axis2=-1)).sum(axis=-1))


def roots_of(covariances: Array) -> Array:
    """R with R R' = covariance, (..., d, d); also of matrices that are singular up to rounding."""
    try:
        return np.asarray(np.linalg.cholesky(covariances))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariances)
        info = np.finfo(float)
        least = np.maximum(info.eps * values[..., -1:], info.tiny)
        return np.asarray(vectors * np.sqrt(np.maximum(values, least))[..., None, :])


def log_cholesky(factors: Array) -> Array:
    """Unconstrained coordinates (K, D (D + 1) / 2): the factor with the log of its diagonal."""
    row, column, on = lower_triangle(factors.shape[-1])
    out = factors[..., row, column]
    out[..., on] = np.log(out[..., on])
    return np.asarray(out)


def from_log_cholesky(coordinates: Array, size: int) -> Array:
    """The positive definite matrices with the given ``log_cholesky`` coordinates."""
    row, column, _ = lower_triangle(size)
    factors = np.zeros((*coordinates.shape[:-1], size, size))
    factors[..., row, column] = coordinates
    diagonal = np.arange(size)
    factors[..., diagonal, diagonal] = np.exp(
        np.clip(factors[..., diagonal, diagonal], -LOG_LIMIT, LOG_LIMIT)
    )
    return np.asarray(factors @ np.swapaxes(factors, -1, -2))


def within_range(precisions: Array) -> Array:
    """Precisions of columns whose variances are below 1e-308 as the largest float, not infinite."""
    most = np.finfo(precisions.dtype).max
    return np.asarray(np.clip(precisions, -most, most))
