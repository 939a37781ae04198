"""Tiles: a few rows of a block, transposed, in the cache, with what every kernel does to them.

Layout inside a tile is (feature, row), so that loops run over rows and become vector code.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.compiled import kernel, summing_kernel
from mixfold.math.exponential import exp_nonpositive

TILE = 128
# OpenBLAS multiplies without packing, and a third faster, up to this many multiplications
SMALL_PRODUCT = 1_000_000
_NO_WEIGHT, _NO_LABELS = np.empty(0), np.empty(0, np.int64)
# what stands for the log of a share that is zero, in float32 so that it promotes nothing
FAR = np.float32(-1e3)


def row_fields(block: Block) -> tuple[Array, Array]:
    """Weights and labels of a block for the kernels; empty arrays where there are none."""
    weight = _NO_WEIGHT if block.weight is None else np.ascontiguousarray(block.weight, np.float64)
    labels = _NO_LABELS if block.y is None else np.ascontiguousarray(block.y, np.int64)
    return weight, labels


def kernel_rows(block: Block) -> Array:
    """The rows of a dense block as the one kind of array that the kernels are compiled for."""
    flags = block.X.flags
    return block.X if flags.c_contiguous and flags.writeable else np.array(block.X, order="C")


def panel_width(n_components: int, n_features: int) -> int:
    """How many features a small product takes at once."""
    return min(max(8, SMALL_PRODUCT // (TILE * n_components)), n_features)


def panels(theta: Array) -> Array:
    """The panels of columns of theta (K, P), each contiguous, one after the other."""
    width = panel_width(*theta.shape)
    return np.concatenate(
        [theta[:, a : a + width].ravel() for a in range(0, theta.shape[1], width)]
    )


@kernel
def load_tile(X, first, last, origin, inverse_scale, V):
    """Rows first:last of X into V: a row of ones, then u, then (if V has room) what was seen."""
    n, D = last - first, X.shape[1]
    V[0] = 1
    V[1:, n:] = 0
    for i in range(n):
        for d in range(D):
            V[1 + d, i] = (X[first + i, d] - origin[d]) * inverse_scale[d]
    if V.shape[0] > D + 1:
        for d in range(D):
            for i in range(n):
                missing = np.isnan(V[1 + d, i])
                V[1 + D + d, i] = 0 if missing else 1
                if missing:
                    V[1 + d, i] = 0


@kernel
def load_row_fields(weight, labels, first, last, w, y):
    """Weights (0 beyond the last row) and labels (-1 where unknown) of the tile."""
    for i in range(w.size):
        inside = first + i < last
        w[i] = (weight[first + i] if weight.size else 1.0) if inside else 0.0
        y[i] = labels[first + i] if (inside and labels.size) else -1


@kernel
def build_features(V, left, right, T):
    """Row p of T: entry left[p] times entry right[p] of the tile."""
    for p in range(left.size):
        a, b = left[p], right[p]
        for i in range(V.shape[1]):
            T[p, i] = V[a, i] * V[b, i]


@kernel
def score_tile(flat, V, left, right, T, L, more):
    """L = theta @ features, a panel at a time: as many features as T has rows.

    A tile whose features fill more than one panel builds them again for ``sum_tile``, which is
    cheaper than to write them to memory and read them back.
    """
    K, P, width = L.shape[0], left.size, T.shape[0]
    for a in range(0, P, width):
        b = min(a + width, P)
        build_features(V, left[a:b], right[a:b], T)
        panel = flat[K * a : K * b].reshape(K, b - a)
        if a == 0:
            np.dot(panel, T[: b - a], L)
        else:
            np.dot(panel, T[: b - a], more)
            add_into(more, L)


@kernel
def sum_tile(V, left, right, T, R, part, moments):
    """moments += features @ R; T holds the last panel that was built."""
    P, width = left.size, T.shape[0]
    for a in range(0, P, width):
        b = min(a + width, P)
        if width < P:
            build_features(V, left[a:b], right[a:b], T)
        np.dot(T[: b - a], R, part[: b - a])
        add_into(part[: b - a], moments[a:b])


@kernel
def add_into(part, total):
    for a in range(part.shape[0]):
        for b in range(part.shape[1]):
            total[a, b] += part[a, b]


@kernel
def _clamp(L, y):
    """-inf in every component but the known one."""
    for i in range(L.shape[1]):
        if y[i] >= 0:
            for k in range(L.shape[0]):
                if k != y[i]:
                    L[k, i] = -np.inf


@summing_kernel
def _count_above(values, limit):
    count = 0
    for i in range(values.size):
        count += values[i] > limit
    return count


@kernel
def _leave_out(L, top, w, sums, first, trusted, left_out):
    """Weight 0 for rows whose shares rounding could have changed; they are marked and counted."""
    for i in range(top.size):
        if not (top[i] > trusted):  # NaN, an overflow, is left out too
            if w[i] > 0:
                left_out[first + i] = True
                sums[3] += 1
            w[i] = 0
            top[i] = 0
            L[:, i] = 0


@kernel
def normalise_tile(L, w, y, top, total, spread, R, sums, first, trusted, left_out):
    """Log densities (K, n) -> weighted responsibilities R (n, K).

    Adds the weighted log-likelihood, entropy, weight and number of rows left out to sums. A row
    whose largest log density is not above ``trusted`` is left out: its weight becomes 0, and its
    place is marked.
    """
    K, n = L.shape
    _clamp(L, y)
    top[:] = L[0]
    for k in range(1, K):
        for i in range(n):
            top[i] = max(top[i], L[k, i])
    if left_out.size and _count_above(top, trusted) < n:
        _leave_out(L, top, w, sums, first, trusted, left_out)
    total[:] = 0
    spread[:] = 0
    for k in range(K):
        for i in range(n):
            gap = L[k, i] - top[i]
            e = exp_nonpositive(gap)
            L[k, i] = e
            total[i] += e
            spread[i] += e * max(gap, FAR)  # 0 * -inf would be NaN
    for i in range(n):
        log_total = np.log(total[i])
        sums[0] += w[i] * (top[i] + log_total)
        sums[1] += w[i] * (log_total - spread[i] / total[i])
        sums[2] += w[i]
        total[i] = w[i] / total[i]
    for k in range(K):
        for i in range(n):
            R[i, k] = L[k, i] * total[i]
