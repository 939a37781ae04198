"""Supervised PPCA as Yu (2006) ran it: plain EM from a random start, written out in numpy.

A reference for SupervisedPPCA that shares no code with it. The source starts both noises at 1e-5,
codes a class by a column of 0 and 1, and stops after 1000 steps, converged or not.
"""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array

STEPS, NOISE, LEAST = 1000, 1e-5, 1e-12


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
    """Expected factors of all rows given their columns alone, (N, d).

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
    return np.asarray((F - mean) @ W @ np.linalg.inv(v * np.eye(d) + W.T @ W))
