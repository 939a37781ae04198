"""Approximate pre-images: regression from kernel scores to rows.

Kernel ridge regression on the scores of some known rows. Width and ridge are those of the least
generalised cross-validation error, and the widths are measured in distances of the scores: how the
kernel of the model was given does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array
from mixfold.math.kernels import LinearKernel, RbfKernel

# widths in units of the median distance of scores, and ridges in units of k(z, z) = 1
_WIDTHS = (0.15, 0.3, 0.6, 1.2, 2.4)
_RIDGES = 10.0 ** np.arange(-8, 2)


@dataclass(frozen=True, slots=True)
class PreImages:
    """Weights (m, m) that turn products with the scores of anchors into weights of their rows."""

    kernel: RbfKernel
    scores: Array
    weights: Array
    rows: Any
    mean: Array

    def __call__(self, Z: Array) -> Array:
        """Rows (n, D) at scores Z (n, d)."""
        W = self.kernel.block(Z, self.scores) @ self.weights
        rest = 1.0 - W.sum(axis=1)
        return np.asarray(W @ self.rows + np.outer(rest, self.mean))


def pre_images(scores: Array, rows: Any) -> PreImages:
    """The regression of ``rows`` (m, D), dense or CSR, on their ``scores`` (m, d)."""
    scores = np.asarray(scores, np.float64)
    mean = np.asarray(rows.mean(axis=0), np.float64).ravel()
    products = _centred_products(rows, mean)
    tried = [_choose_ridge(scores, products, gamma) for gamma in _gammas(scores)]
    _, kernel, weights = min(tried, key=lambda one: one[0])
    return PreImages(kernel, scores, weights, rows, mean)


def _centred_products(rows: Any, mean: Array) -> Array:
    """(X - 1 mean')(X - 1 mean')' (m, m)."""
    if not sparse.issparse(rows):
        about = np.asarray(rows, np.float64) - mean
        return np.asarray(about @ about.T)
    G, cross = LinearKernel().block(rows, rows), np.asarray(rows @ mean)
    return np.asarray(G - cross[:, None] - cross + mean @ mean)


def _gammas(scores: Array) -> list[float]:
    squares = np.einsum("ij,ij->i", scores, scores)
    distances = squares[:, None] + squares - 2 * scores @ scores.T
    apart = distances[np.triu_indices(len(scores), 1)]
    apart = apart[apart > 1e-12 * max(float(squares.max(initial=0.0)), 1e-300)]
    typical = float(np.median(apart)) if len(apart) else 1.0
    return [1.0 / (2 * width**2 * typical) for width in _WIDTHS]


def _choose_ridge(scores: Array, products: Array, gamma: float) -> tuple[float, RbfKernel, Array]:
    """The least error over the ridges, the kernel, and (K + ridge I)^-1 for that ridge."""
    kernel = RbfKernel(gamma)
    values, vectors = np.linalg.eigh(kernel.block(scores, scores))
    values = np.maximum(values, 0.0)
    energy = np.maximum(np.einsum("ij,ij->j", vectors, products @ vectors), 0.0)
    left = _RIDGES[:, None] / (values + _RIDGES[:, None])
    errors = (left**2 @ energy) / np.maximum(left.sum(axis=1), 1e-12) ** 2
    best = int(errors.argmin())
    weights = (vectors / (values + _RIDGES[best])) @ vectors.T
    return float(errors[best]), kernel, weights
