"""Codes without costs and bounds: a linear map of the row, moved by its label.

The stationary codes of phi G phi' / 2 - c phi' + s2 (lse(phi V + v) - (phi V + v)_y) are

    phi = (c + s2 (t - q) V') G^-1,   q = softmax(phi V + v)

so that a row has as many unknowns as there are classes: w = s2 (t - q), by Newton's steps.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mixfold.contracts import Array
from mixfold.math.softmax import normalise

# a Gram matrix that is worse than this is no map: its codes are not unique
_CONDITION = 1e11
_STEPS, _HALVINGS = 50, 30


def free_codes(
    linear: Array, gram: Array, head: tuple[Array, Array], labels: Array | None, scale: float
) -> Array | None:
    """The minimiser (n, H) of each row, or None where G is (nearly) singular."""
    try:
        factor = cho_factor(gram, lower=True)
    except LinAlgError:
        return None
    pivots = np.diagonal(factor[0])
    if (pivots.max() / pivots.min()) ** 2 > _CONDITION:
        return None
    V, v = head
    phi = np.asarray(cho_solve(factor, linear.T).T)
    if labels is None or not len(labels):
        return phi
    across = cho_solve(factor, V)  # G^-1 V
    shift = solve_softmax_residuals(phi @ V + v, V.T @ across, labels, scale)
    return np.asarray(phi + shift @ across.T)


def solve_softmax_residuals(logits: Array, K: Array, labels: Array, scale: float) -> Array:
    """w (n, C) = scale (t - softmax(logits + w K)) of each row; K is positive semi-definite.

    The minimiser of w K w' / (2 scale) + lse(logits + w K) - (logits + w K)_y.
    """
    truth = np.eye(len(K))[labels]
    w = np.zeros_like(logits)
    shares = normalise(logits)[1]
    for _ in range(_STEPS):
        gap = w + scale * (shares - truth)
        open_rows = np.flatnonzero(np.abs(gap).max(axis=1) > 1e-13 * max(scale, 1e-300))
        if not open_rows.size:
            break
        q = shares[open_rows]
        step = _solve_newton(q, K, scale, -gap[open_rows])
        w[open_rows] = _halve_bad_steps(
            logits[open_rows], K, labels[open_rows], scale, w[open_rows], step
        )
        shares[open_rows] = normalise(logits[open_rows] + w[open_rows] @ K)[1]
    return w


def _solve_newton(q: Array, K: Array, scale: float, right: Array) -> Array:
    """x (n, C) of (I + scale A K) x = right for each row, A = diag(q) - q q'.

    The matrix has no eigenvalue below one, but beside a large K the identity can be lost in
    rounding. Then with K = L L': (I + s A K)^-1 = I - s A L (I + s L'A L)^-1 L', where the matrix
    in the middle is symmetric and is inverted by its eigenvalues.
    """
    inner = q[:, :, None] * (K - (q @ K)[:, None, :])
    try:
        return np.asarray(np.linalg.solve(np.eye(len(K)) + scale * inner, right[:, :, None]))[
            ..., 0
        ]
    except LinAlgError:
        values, vectors = np.linalg.eigh(K)
        L = vectors * np.sqrt(np.maximum(values, 0.0))
        A = q[:, :, None] * (np.eye(len(K)) - q[:, None, :])
        spread, axes = np.linalg.eigh(L.T @ A @ L)
        inside = np.einsum("nij,ni->nj", axes, right @ L) / (1 + scale * np.maximum(spread, 0.0))
        moved = np.einsum("nij,nj->ni", axes, inside) @ L.T
        return np.asarray(right - scale * np.einsum("nij,nj->ni", A, moved))


def _halve_bad_steps(
    logits: Array, K: Array, labels: Array, scale: float, w: Array, step: Array
) -> Array:
    """w + step, halved in the rows where that would be worse than w."""
    before = _value(logits, K, labels, scale, w)
    slack = 1e-12 * (1.0 + np.abs(before))
    size = np.ones(len(w))
    for _ in range(_HALVINGS):
        after = _value(logits, K, labels, scale, w + size[:, None] * step)
        worse = ~(after <= before + slack)  # also where it is NaN
        if not worse.any():
            break
        size[worse] *= 0.5
    return np.asarray(w + size[:, None] * step)


def _value(logits: Array, K: Array, labels: Array, scale: float, w: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):  # a step that is too long has no value
        moved = w @ K
        total, _ = normalise(logits + moved)
        at = np.arange(len(w))
        chosen = (logits + moved)[at, labels]
        return np.asarray(0.5 / scale * (w * moved).sum(axis=1) + total - chosen)
