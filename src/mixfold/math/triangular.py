"""Products with triangular and symmetric results, done once: panels instead of the whole square."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array

PANEL = 128


def _panels(size: int) -> list[tuple[int, int]]:
    return [(a, min(a + PANEL, size)) for a in range(0, size, PANEL)]


def squared_norms(V: Array, whiten: Array) -> Array:
    """|A' v|^2 of each row v, for an upper triangular A (only its upper panels are read)."""
    out = np.zeros(len(V))
    for first, last in _panels(V.shape[1]):
        white = V[:, :last] @ whiten[:last, first:last]
        out += np.einsum("nd,nd->n", white, white)
    return out


def weighted_gram(V: Array, weight: Array) -> Array:
    """sum_n weight_n v_n v_n' (D, D), the upper panels computed and mirrored."""
    size = V.shape[1]
    weighted = V * weight[:, None]
    out = np.empty((size, size))
    for first, last in _panels(size):
        out[first:last, first:] = weighted[:, first:last].T @ V[:, first:]
        out[last:, first:last] = out[first:last, last:].T
    return out
