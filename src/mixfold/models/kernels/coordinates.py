"""Principal coordinates of all known rows in the space of features: the dual form of any model.

In them a model of columns is the model of the features itself, since all that rows tell lies in
their span. The coordinates are those of kernel PCA, so that they depend on neither the order of
the rows nor on whether a row is repeated or weighs more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.math.kernels import Kernel
from mixfold.math.signs import fix_signs, signs
from mixfold.models.kernels.known_rows import KnownRows
from mixfold.models.kernels.maps import GivenMap, LandmarkMap, inverse_root, landmark_map


def principal_map(kernel: Kernel, rows: Any, weight: Array | None = None) -> LandmarkMap:
    """The map of these rows (dense or CSR), which are all there are, and of others beside them."""
    G = np.asarray(kernel.block(rows, rows), np.float64)
    return LandmarkMap(kernel, KnownRows.of(rows), principal_root(G, weight, str(rows.dtype)))


def nystroem_map(kernel: Kernel, landmarks: Any) -> LandmarkMap:
    """The map of rows that stand for others (Nystroem)."""
    found = landmark_map(kernel, landmarks)
    return replace(found, root=fix_signs(found.root))


def precomputed_map(G: Array, columns: Array, weight: Array | None = None) -> GivenMap:
    """The map of rows that are products with all known rows; G (n, n) has those of ``columns``."""
    return GivenMap(columns, principal_root(np.asarray(G, np.float64), weight, str(G.dtype)))


def sampled_given_map(G: Array, columns: Array, dtype: str) -> GivenMap:
    """The same for products of landmarks that stand for others."""
    return GivenMap(columns, fix_signs(inverse_root(np.asarray(G, np.float64), dtype)))


def principal_root(G: Array, weight: Array | None = None, dtype: str = "float64") -> Array:
    """R (n, size) with k(x, rows) R the principal scores of x, up to what the mean of all has.

    Parameters
    ----------
    G : float64 ndarray of shape (n, n)
        Products of all pairs, not centred.
    weight : ndarray of shape (n,), optional
        Of the rows, positive.
    dtype : str, default='float64'
        That in which the products were computed.
    """
    share = np.full(len(G), 1.0 / len(G)) if weight is None else weight / weight.sum()
    means, heavy = G @ share, np.sqrt(share * len(G))[:, None]
    centred = (G - means[:, None] - means + share @ means) * heavy * heavy.T
    # what is left of large products after their mean was taken off may be rounding
    level = 10 * len(G) * float(np.finfo(dtype).eps) * float(np.abs(np.diagonal(G)).max())
    if float(np.trace(centred)) <= level:
        raise ValueError(_ALIKE)
    root = inverse_root(centred, dtype)
    root = root[:, 1.0 / (root**2).sum(axis=0) > level]
    if not root.shape[1]:
        raise ValueError(_ALIKE)
    # but for their lengths, the scores of the rows are root / heavy
    root = root * signs(root / heavy) * heavy
    return np.asarray(root - np.outer(share, root.sum(axis=0)))


_ALIKE = (
    "all rows are alike for the kernel: columns are constant, or gamma is far too small; give rows "
    "that differ, or another gamma, degree or coef0"
)
