"""Supervised PPCA as Yu (2006) ran it: plain EM from a random start, written out in numpy.

A reference for SupervisedPPCA that shares no code with it. The source starts both noises at 1e-5,
codes a class by a column of 0 and 1, and stops after 1000 steps, converged or not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import multivariate_normal

from mixfold.contracts import Array

STEPS, NOISE, LEAST = 1000, 1e-5, 1e-12


class Fit(NamedTuple):
    """Loadings of columns (r, d) and of outputs (L, d), both noises, the mean of the columns."""

    W: Array
    V: Array
    v: float
    u: float
    mean: Array


def project_by_em(
    F: Array,
    n_columns: int,
    Y: Array,
    train: Array,
    d: int,
    *,
    semi: bool,
    rng: np.random.Generator,
    steps: int = STEPS,
) -> Array:
    """Expected factors of all rows given their columns alone, (N, d); see ``fit_by_em``."""
    found = fit_by_em(F, n_columns, Y, train, d, semi=semi, rng=rng, steps=steps)
    both = found.v * np.eye(d) + found.W.T @ found.W
    return np.asarray((F - found.mean) @ found.W @ np.linalg.inv(both))


def measure_log_likelihood(found: Fit, X: Array, Y: Array, train: Array, *, semi: bool) -> float:
    """Of the labelled rows with their outputs and, if ``semi``, of the others without, summed.

    ``X`` are the columns themselves.
    """
    loadings = np.concatenate([found.W, found.V])
    noise = np.repeat([found.v, found.u], [len(found.W), len(found.V)])
    joint = multivariate_normal(cov=loadings @ loadings.T + np.diag(noise))
    total = joint.logpdf(np.column_stack([X[train] - found.mean, Y - Y.mean(axis=0)])).sum()
    if semi:
        own = found.W @ found.W.T + found.v * np.eye(len(found.W))
        rest = np.delete(X, train, axis=0) - found.mean
        total += multivariate_normal(cov=own).logpdf(rest).sum() if len(rest) else 0.0
    return float(total)


def fit_by_em(
    F: Array,
    n_columns: int,
    Y: Array,
    train: Array,
    d: int,
    *,
    semi: bool,
    rng: np.random.Generator,
    steps: int = STEPS,
) -> Fit:
    """The parameters after so many steps.

    Parameters
    ----------
    F : ndarray of shape (N, r)
        The columns of the rows, or coordinates in which they have the same products.
    n_columns : int
        Of the table itself: the noise is spread over all of them.
    Y : ndarray of shape (n, L)
        Outputs of the labelled rows ``train``.
    semi : bool
        Fit to all rows, not to the labelled ones alone.
    """
    seen = F if semi else F[train]
    mean = seen.mean(axis=0)
    labelled, outputs = F[train] - mean, Y - Y.mean(axis=0)
    others = np.delete(F, train, axis=0) - mean if semi else F[:0]
    # of the length of the rows, which is one: a start of long columns takes thousands of steps
    W = rng.standard_normal((F.shape[1], d)) / np.sqrt(n_columns)
    V = rng.standard_normal((Y.shape[1], d)) / np.sqrt(n_columns)
    v, u = NOISE, NOISE
    squares = (labelled**2).sum() + (others**2).sum()
    rows = len(labelled) + len(others)
    for _ in range(steps):
        by_columns = W.T @ W / v
        both = np.linalg.inv(np.eye(d) + by_columns + V.T @ V / u)
        alone = np.linalg.inv(np.eye(d) + by_columns)
        Z = (labelled @ W / v + outputs @ V / u) @ both
        Z_others = others @ W @ alone / v
        inner = Z.T @ Z + len(labelled) * both
        total = inner + Z_others.T @ Z_others + len(others) * alone
        cross, cross_outputs = labelled.T @ Z + others.T @ Z_others, outputs.T @ Z
        W, V = np.linalg.solve(total, cross.T).T, np.linalg.solve(inner, cross_outputs.T).T
        v = max((squares - (W * cross).sum()) / (rows * n_columns), LEAST)
        u = max(((outputs**2).sum() - (V * cross_outputs).sum()) / outputs.size, LEAST)
    return Fit(W, V, v, u, mean)
