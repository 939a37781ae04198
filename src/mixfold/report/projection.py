"""Two directions for a map of rows: discriminant axes of groups, else principal axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.utils.extmath import randomized_svd

from mixfold.contracts import Array

# dimensions that are kept before groups are separated: more would separate noise
_KEPT, _WIDE = 30, 200
_FAR = 10.0


def plane(X: Any, groups: Array | None, seed: int) -> Array:
    """Coordinates (n, 2) of complete rows, columns in units of their spread.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, D)
        Counts in a sparse matrix are taken as shares of their row.
    groups : ndarray of int of shape (n,), optional
    seed : int
    """
    reduced = _principal_coordinates(X, seed)
    if reduced.shape[1] < 2:
        return np.column_stack([reduced, np.zeros((len(reduced), 2 - reduced.shape[1]))])
    if groups is None or len(np.unique(groups)) < 2:
        return reduced[:, :2]
    return _separating(reduced, groups)


def _principal_coordinates(X: Any, seed: int) -> Array:
    """Principal coordinates of the rows, at most so many."""
    if sparse.issparse(X):
        rows: Any = _standard_sparse(X.astype(float))
    else:
        rows = _standard(X)
    size = min(_KEPT, *rows.shape)
    if sparse.issparse(rows) or rows.shape[1] > _WIDE:
        left, values, _ = randomized_svd(rows, size, random_state=seed, flip_sign=True)
    else:
        left, values, _ = linalg.svd(rows, full_matrices=False)
        left, values = left[:, :size], values[:size]
    found = left * values
    found = found[:, values > 1e-9 * max(values[0], 1e-300)] if len(values) else found
    return np.asarray((found - found.mean(axis=0)) * _signs(found))


def _standard(X: Array) -> Array:
    """Columns about their middle in units of their spread; single rows far out count no further."""
    low, middle, high = np.quantile(X, [0.025, 0.5, 0.975], axis=0)
    spread = np.where(high > low, (high - low) / 4, X.std(axis=0))
    found = np.clip((X - middle) / np.where(spread > 0, spread, 1.0), -_FAR, _FAR)
    return np.asarray(found - found.mean(axis=0))


def _standard_sparse(X: Any) -> Any:
    """Roots of the shares of a row, for counts; columns in units of their size, for other numbers.

    Neither moves a zero, so the rows stay sparse.
    """
    if X.nnz and X.data.min() < 0:
        size = np.abs(X).max(axis=0).toarray().ravel()
        return (X @ sparse.diags_array(1 / np.where(size > 0, size, 1.0))).tocsr()
    total = np.asarray(X.sum(axis=1), float).ravel()
    return (sparse.diags_array(1 / np.where(total > 0, total, 1.0)) @ X).sqrt().tocsr()


def _signs(found: Array) -> Array:
    """The same picture at every run: the row farthest out is on the positive side."""
    if not found.size:
        return np.ones(found.shape[1])
    far = np.abs(found).argmax(axis=0)
    return np.where(found[far, np.arange(found.shape[1])] < 0, -1.0, 1.0)


def _separating(Z: Array, groups: Array) -> Array:
    """The directions in which groups are farthest apart, for their spread; then one of variance."""
    kinds, place = np.unique(groups, return_inverse=True)
    counts = np.bincount(place)
    means = np.stack([np.bincount(place, Z[:, j]) / counts for j in range(Z.shape[1])], axis=1)
    inner = Z - means[place]
    within = inner.T @ inner / len(Z)
    within += (1e-3 * np.trace(within) / len(within) + 1e-12) * np.eye(len(within))
    apart = means - Z.mean(axis=0)
    between = (apart * counts[:, None]).T @ apart / len(Z)
    vectors = linalg.eigh(between, within)[1][:, ::-1]
    found = Z @ vectors[:, : min(2, len(kinds) - 1)]
    if found.shape[1] < 2:  # two groups are apart in one direction only
        found = np.column_stack([found, Z @ _beside(inner, vectors[:, 0])])
    return np.asarray(found * _signs(found))


def _beside(inner: Array, first: Array) -> Array:
    """The direction of most variance within groups that does not go along with ``first`` there."""
    along = inner @ first
    # of groups that do not vary along it nothing is to be taken away: it has unit variance there
    slope = inner.T @ along / max(float(along @ along), 0.5 * len(inner))
    best = linalg.svd(inner - np.outer(along, slope), full_matrices=False)[2][0]
    return np.asarray(best - first * (slope @ best))
