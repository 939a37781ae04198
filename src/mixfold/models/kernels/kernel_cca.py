"""Regularised kernel canonical correlations of two views."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array

# correlations below this are rounding
_NEGLIGIBLE = 1e-10


@dataclass(frozen=True, slots=True)
class CanonicalPairs:
    """Singular values (d,), and weights of the coordinates V diag(sqrt(w)) of either view.

    ``correlations`` (d,) are those of the scores; equal to ``values`` where k is 0.
    """

    values: Array
    correlations: Array
    inputs: Array
    outputs: Array


def canonical_pairs(wx: Array, wy: Array, crossed: Array, k: float, size: int) -> CanonicalPairs:
    """max a'Gx Gy b for a'((1 - k) Gx^2 + k Gx) a = 1, and the same for b.

    Parameters
    ----------
    wx, wy : ndarray of shape (rx,), (ry,)
        Eigenvalues of the centred kernel matrices.
    crossed : ndarray of shape (rx, ry)
        Vx'Vy, products of their eigenvectors.
    k : float
        From 0 (canonical correlations) to 1 (partial least squares).
    size : int
        Number of pairs.
    """
    scale = [1 / np.sqrt((1 - k) * w + k) for w in (wx, wy)]
    sx, sy = scale[0] * np.sqrt(wx), scale[1] * np.sqrt(wy)
    U, values, Vt = np.linalg.svd(sx[:, None] * crossed * sy, full_matrices=False)
    kept = slice(0, min(size, int((values > _NEGLIGIBLE * values[0]).sum())))
    U, values, V = U[:, kept], values[kept], Vt[kept].T
    a, b = sx[:, None] * U, sy[:, None] * V
    lengths = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
    correlations = ((crossed @ b) * a).sum(axis=0) / lengths
    return CanonicalPairs(values, correlations, scale[0][:, None] * U, scale[1][:, None] * V)
