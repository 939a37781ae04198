"""Principal axes of a small dense sample, as a start needs them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array

# beyond this many times the axes wanted, a sample is large enough for an iteration to pay
_FEW, _SURPLUS, _STEPS = 5, 6, 6


@dataclass(frozen=True, slots=True)
class Axes:
    """Mean (D,), leading variances (d,), axes (D, d), and the total variance."""

    mean: Array
    values: Array
    vectors: Array
    total: float


def sample_axes(U: Array, weight: Array, size: int, mean: Array | None = None) -> Axes:
    """The ``size`` leading axes of weighted rows, about their mean or a given one.

    Axes beyond the rank of the sample are orthonormal to the others, with variance zero.
    """
    share = weight / weight.sum()
    mean = share @ U if mean is None else mean
    rows = (U - mean) * np.sqrt(share)[:, None]
    total = float((rows**2).sum())
    if size == 0:
        return Axes(mean, np.zeros(0), np.zeros((U.shape[1], 0)), total)
    if min(rows.shape) > _FEW * (size + _SURPLUS):
        top, vectors = _by_iteration(rows, size)
    elif len(rows) < U.shape[1]:
        values, left = np.linalg.eigh(rows @ rows.T)
        top = values[::-1][:size].clip(min=0.0)
        vectors = rows.T @ left[:, ::-1][:, :size]
    else:
        values, right = np.linalg.eigh(rows.T @ rows)
        top, vectors = values[::-1][:size].clip(min=0.0), right[:, ::-1][:, :size]
    vectors, top = _complete_basis(vectors, top, size, total)
    return Axes(mean, top, vectors, total)


def _by_iteration(rows: Array, size: int) -> tuple[Array, Array]:
    """Subspace iteration from fixed directions: near enough for a start, and far cheaper."""
    rng = np.random.default_rng(0)
    Q = rng.standard_normal((rows.shape[1], size + _SURPLUS))
    for _ in range(_STEPS):
        Q, _ = np.linalg.qr(rows.T @ (rows @ Q))
    _, values, right = np.linalg.svd(rows @ Q, full_matrices=False)
    return values[:size] ** 2, Q @ right[:size].T


def _complete_basis(vectors: Array, values: Array, size: int, total: float) -> tuple[Array, Array]:
    """Orthonormal columns, with surplus ones where the sample has no more directions."""
    real = values > 1e-12 * max(total, np.finfo(float).tiny)
    surplus = size - len(values)
    axes = np.pad(np.where(real, vectors, 0.0), ((0, 0), (0, surplus)))
    return orthonormal(axes), np.pad(np.where(real, values, 0.0), (0, surplus))


def orthonormal(axes: Array) -> Array:
    """Orthogonal columns (D, d) with length one; columns of zeros become any that complete them."""
    lengths = np.linalg.norm(axes, axis=0)
    unit = axes / np.where(lengths > 0, lengths, 1.0)
    if (lengths > 0).all():
        return np.asarray(unit)
    rng = np.random.default_rng(0)
    order = np.argsort(lengths == 0, kind="stable")
    fresh = np.where(lengths > 0, unit, rng.standard_normal(axes.shape))[:, order]
    basis, triangle = np.linalg.qr(fresh)
    basis = basis * np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
    out = np.empty_like(unit)
    out[:, order] = basis
    return out
