"""E and M step of Gaussians with one common covariance: the quadratic part is shared.

Scores differ between components only in their linear part, so a row costs one whitening (D^2)
and K short products; the second moment is summed once for all components.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.compiled import kernel
from mixfold.math.frame import Frame
from mixfold.math.lifted import Sums, enter_rows, marks_of, share_rows, sums_of_pass
from mixfold.math.tiles import (
    TILE,
    add_into,
    kernel_rows,
    load_row_fields,
    load_tile,
    normalise_tile,
    row_fields,
)


@kernel
def _subtract_half_norm(white, L):
    D, n = white.shape
    half = np.zeros(n, white.dtype)
    for d in range(D):
        for i in range(n):
            half[i] += white[d, i] * white[d, i]
    for k in range(L.shape[0]):
        for i in range(n):
            L[k, i] -= half[i] / 2


@kernel
def _weighted_rows(V, w, rows):
    """w u of each row of the tile, by rows: the second factor of a Gram matrix."""
    for i in range(V.shape[1]):
        for d in range(rows.shape[1]):
            rows[i, d] = V[1 + d, i] * w[i]


@kernel
def _pass(
    X, weight, labels, origin, inverse_scale, theta, whiten, moments, second, sums,
    trusted, left_out,
):  # fmt: skip
    D, K = X.shape[1], theta.shape[0]
    V, white = np.empty((D + 1, TILE), theta.dtype), np.empty((D, TILE), theta.dtype)
    L, R = np.empty((K, TILE), theta.dtype), np.empty((TILE, K), theta.dtype)
    rows, gram = np.empty((TILE, D), theta.dtype), np.empty((D, D), theta.dtype)
    part = np.empty((D + 1, K), theta.dtype)
    w, y = np.empty(TILE), np.empty(TILE, np.int64)
    top, total = np.empty(TILE, theta.dtype), np.empty(TILE, theta.dtype)
    spread = np.empty(TILE, theta.dtype)
    for first in range(0, X.shape[0], TILE):
        last = min(first + TILE, X.shape[0])
        load_tile(X, first, last, origin, inverse_scale, V)
        load_row_fields(weight, labels, first, last, w, y)
        np.dot(theta, V, L)
        np.dot(whiten, V[1:], white)
        _subtract_half_norm(white, L)
        normalise_tile(L, w, y, top, total, spread, R, sums, first, trusted, left_out)
        np.dot(V, R, part)
        add_into(part, moments)
        _weighted_rows(V, w, rows)
        np.dot(V[1:], rows, gram)
        add_into(gram, second)


def pooled_pass(
    block: Block, frame: Frame, theta: Array, whiten: Array, trusted: float = -np.inf
) -> tuple[Sums, Array]:
    """Moments (K, 1 + D) of a complete dense block, and its total second moment (D, D).

    ``theta`` (K, 1 + D) is the linear part of the joint log density in frame coordinates and
    ``whiten`` the factor A of the common precision A A'. Rows whose largest log density is not
    above ``trusted`` are left out of the sums.
    """
    if block.is_small:
        return _small_pass(block, frame, theta, whiten, trusted)
    size = whiten.shape[0]
    moments, second, sums = np.zeros(theta.shape[::-1]), np.zeros((size, size)), np.zeros(4)
    weight, labels = row_fields(block)
    left_out = marks_of(block, trusted)
    _pass(
        kernel_rows(block), weight, labels, frame.origin, 1.0 / frame.scale,
        theta, np.ascontiguousarray(whiten.T), moments, second, sums,
        trusted, left_out,
    )  # fmt: skip
    return sums_of_pass(moments, sums, left_out), second


def _small_pass(
    block: Block, frame: Frame, theta: Array, whiten: Array, trusted: float
) -> tuple[Sums, Array]:
    U = enter_rows(block, frame)
    white = whiten.T @ U
    L = theta[:, 1:] @ U
    L += theta[:, :1] - (white**2).sum(axis=0) / 2
    R, sums = share_rows(L, block, trusted)
    weight = block.weights()
    if sums.left_out.size:
        weight = weight.copy()
        weight[sums.left_out] = 0
    moments = np.column_stack([R.sum(axis=1), R @ U.T])
    second = (U * weight) @ U.T
    return replace(sums, moments=moments), second
