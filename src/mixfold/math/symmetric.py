"""Symmetric positive definite matrices: packing, factors, floors."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mixfold.contracts import Array

# logarithms of scales beyond this come from extrapolations gone astray; exp stays finite
LOG_LIMIT = 60.0
LOG_2PI = float(np.log(2 * np.pi))


def pack(matrices: Array) -> Array:
    """Upper triangles of (..., D, D) as (..., D (D + 1) / 2), row by row."""
    row, column = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[..., row, column])


def unpack(packed: Array, size: int) -> Array:
    """The symmetric matrices (..., D, D) whose upper triangles are packed."""
    row, column = np.triu_indices(size)
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


def floored(matrix: Array, floor: float) -> tuple[Array, bool]:
    """The matrix with its eigenvalues raised to ``floor`` where they are less, and whether any was.

    This is the maximiser of -ln|A| - tr(A^-1 S) over A >= floor * I, so a floored M step never
    lowers the likelihood. Adding ``floor * I`` instead would not be an M step.
    """
    if cholesky(matrix - floor * np.eye(len(matrix))) is not None:
        return matrix, False
    values, vectors = np.linalg.eigh(matrix)
    # below this a factorisation of the result would fail by rounding
    least = max(floor, 1e-13 * len(values) * values[-1])
    if values[0] >= least:
        return matrix, False
    raised = np.maximum(values, least)
    return np.asarray((vectors * raised) @ vectors.T), True


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
    factors = np.empty_like(covariances)
    inverses = np.empty_like(covariances)
    for k, covariance in enumerate(covariances):
        factor = cholesky(covariance)
        if factor is None:
            raise ValueError(f"the covariance of component {k} is not positive definite")
        factors[k], inverses[k] = factor, inverse_factor(factor)
    return factors, inverses


def log_determinants(factors: Array) -> Array:
    """log|L L'| of lower factors (K, D, D)."""
    return np.asarray(2.0 * np.log(np.diagonal(factors, axis1=-2, axis2=-1)).sum(axis=-1))


def log_cholesky(factors: Array) -> Array:
    """Unconstrained coordinates (K, D (D + 1) / 2): the factor with the log of its diagonal."""
    size = factors.shape[-1]
    row, column = np.tril_indices(size)
    out = factors[..., row, column].copy()
    out[..., row == column] = np.log(out[..., row == column])
    return np.asarray(out)


def from_log_cholesky(coordinates: Array, size: int) -> Array:
    """The positive definite matrices with the given ``log_cholesky`` coordinates."""
    row, column = np.tril_indices(size)
    factors = np.zeros((*coordinates.shape[:-1], size, size))
    factors[..., row, column] = coordinates
    diagonal = np.arange(size)
    factors[..., diagonal, diagonal] = np.exp(
        np.clip(factors[..., diagonal, diagonal], -LOG_LIMIT, LOG_LIMIT)
    )
    return np.asarray(factors @ np.swapaxes(factors, -1, -2))
