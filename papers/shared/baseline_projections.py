"""Projections that supervised PPCA is compared with, and what nearest neighbours make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from mixfold.contracts import Array

# of the mean within-class variance of a column: what the ridge adds to each
RIDGE = 0.1


def compute_principal_scores(X: Any, d: int, seed: int) -> Array:
    """Scores of all rows on the d leading principal axes, (N, d); sparse rows stay sparse."""
    from sklearn.decomposition import PCA

    solver = "full" if isinstance(X, np.ndarray) else "arpack"
    found: Array = PCA(d, svd_solver=solver, random_state=seed).fit_transform(X)
    return found


def whiten(scores: Array) -> Array:
    """Scores of unit variance."""
    return np.asarray(scores / scores.std(axis=0))


def compute_span_coordinates(X: Any, train: Array) -> Array:
    """Coordinates (N, r) of all rows in the span of some rows, centred about their mean.

    Lengths and angles in the span are those of the columns, so a method that looks at the
    products of rows alone gives what it would give there, without a matrix of all columns.
    """
    products = _compute_products(X, train)
    gram = products[train]
    mean = gram.mean(axis=1)
    centred = gram - mean - mean[:, None] + mean.mean()
    values, vectors = np.linalg.eigh(centred)
    kept = values > 1e-10 * values[-1]
    crossed = products - products.mean(axis=1, keepdims=True) - mean + mean.mean()
    return np.asarray(crossed @ vectors[:, kept] / np.sqrt(values[kept]))


def _compute_products(X: Any, train: Array) -> Array:
    """Inner products (N, n) of all rows with some rows."""
    found = X @ X[train].T
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


def project_by_ridge_lda(F: Array, y: Array, train: Array, d: int, n_features: int) -> Array:
    """Fisher's axes in the span of the labelled rows, (N, min(d, C - 1)).

    The ridge is ``RIDGE`` times the mean within-class variance of the ``n_features`` columns.
    """
    rows, classes = F[train], y[train]
    C = int(classes.max()) + 1
    counts = np.bincount(classes, minlength=C)
    means = np.stack([rows[classes == c].mean(axis=0) for c in range(C)])
    within = (rows - means[classes]).T @ (rows - means[classes]) / len(rows)
    apart = (means - rows.mean(axis=0)) * np.sqrt(counts / len(rows))[:, None]
    ridge = RIDGE * np.trace(within) / n_features
    _, axes = eigh(apart.T @ apart, within + ridge * np.eye(len(within)))
    return np.asarray(F @ axes[:, ::-1][:, : min(d, C - 1)])


def project_by_pls(F: Array, Y: Array, train: Array, d: int) -> Array:
    """Scores of partial least squares from the labelled rows to their outputs, (N, d)."""
    from sklearn.cross_decomposition import PLSRegression

    model = PLSRegression(d, scale=False, max_iter=5000).fit(F[train], Y)
    scores: Array = model.transform(F)
    return scores


# ------------------------------------------------ nearest neighbours


def measure_nearest_error(Z: Array, y: Array, train: Array, test: Array) -> float:
    """Share of test rows whose nearest labelled row is of another class."""
    return _measure_error(Z[test] @ Z[train].T, (Z[train] ** 2).sum(axis=1), y, train, test)


def measure_nearest_error_of_rows(X: Any, y: Array, train: Array, test: Array) -> float:
    """The same in all columns, dense or sparse."""
    products = _compute_products(X, train)
    return _measure_error(products[test], products[train].diagonal(), y, train, test)


def _measure_error(products: Array, squares: Array, y: Array, train: Array, test: Array) -> float:
    nearest = (squares - 2 * products).argmin(axis=1)
    return float(np.mean(y[train][nearest] != y[test]))
