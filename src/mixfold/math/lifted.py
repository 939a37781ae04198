"""E and M step of a Gaussian mixture as two matrix products over all components.

With u = (x - origin) / scale, log p(u, k) is linear in features T(u) made of products of two
entries of (1, u, observed): ``L = theta @ T`` scores every component and ``moments = R @ T'``
holds count, first and second moments of every component. A tile of rows is transformed, scored,
normalised and summed while it is in the cache; nothing of size N x K exists. Layout inside a
tile is (feature, row), so that each loop runs over rows and becomes vector code.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from mixfold.contracts import Array, Block, record
from mixfold.math.exponential import exp_nonpositive
from mixfold.math.frame import Frame

TILE = 128
JIT = {"nogil": True, "cache": True, "fastmath": {"contract", "nsz", "arcp"}}


@record
@dataclass(frozen=True, slots=True)
class FeatureMap:
    """Feature p is entry ``left[p]`` times entry ``right[p]`` of (1, u_1..u_D, seen_1..seen_D)."""

    left: Array
    right: Array


def product_features(n_features: int) -> FeatureMap:
    """(1, u_d, u_d u_e for d <= e): full covariances, complete rows."""
    linear = np.arange(1, n_features + 1)
    row, column = np.triu_indices(n_features)
    return FeatureMap(
        np.concatenate([[0], linear, row + 1]),
        np.concatenate([0 * linear[:1], 0 * linear, column + 1]),
    )


def square_features(n_features: int) -> FeatureMap:
    """(1, u_d, u_d^2): diagonal covariances, complete rows."""
    linear = np.arange(1, n_features + 1)
    return FeatureMap(
        np.concatenate([[0], linear, linear]), np.concatenate([[0], 0 * linear, linear])
    )


def seen_square_features(n_features: int) -> FeatureMap:
    """(1, seen_d, u_d, u_d^2) with u_d = 0 where missing: diagonal covariances, any rows."""
    linear = np.arange(1, n_features + 1)
    return FeatureMap(
        np.concatenate([[0], linear + n_features, linear, linear]),
        np.concatenate([[0], 0 * linear, 0 * linear, linear]),
    )


@dataclass(frozen=True, slots=True)
class Sums:
    """What one pass over a block adds up. ``moments`` (K, P) is R @ T'."""

    moments: Array
    log_likelihood: float
    entropy: float
    weight: float


@njit(**JIT)
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


@njit(**JIT)
def load_row_fields(weight, labels, first, last, w, y):
    """Weights (0 beyond the last row) and labels (-1 where unknown) of the tile."""
    for i in range(w.size):
        inside = first + i < last
        w[i] = (weight[first + i] if weight.size else 1.0) if inside else 0.0
        y[i] = labels[first + i] if (inside and labels.size) else -1


@njit(**JIT)
def normalise_tile(L, w, y, scratch, sums):
    """Log densities -> weighted responsibilities in place; adds the objective's parts to sums."""
    K, n = L.shape
    top, total, spread = scratch
    for i in range(n):
        if y[i] >= 0:
            for k in range(K):
                if k != y[i]:
                    L[k, i] = -np.inf
    top[:] = L[0]
    for k in range(1, K):
        for i in range(n):
            top[i] = max(top[i], L[k, i])
    total[:] = 0
    spread[:] = 0
    for k in range(K):
        for i in range(n):
            gap = L[k, i] - top[i]
            e = exp_nonpositive(gap)
            L[k, i] = e
            total[i] += e
            spread[i] += e * (gap if e > 0 else e)  # 0 * -inf would be NaN
    for i in range(n):
        log_total = np.log(total[i])
        sums[0] += w[i] * (top[i] + log_total)
        sums[1] += w[i] * (log_total - spread[i] / total[i])
        sums[2] += w[i]
        total[i] = w[i] / total[i]
    for k in range(K):
        for i in range(n):
            L[k, i] *= total[i]


@njit(**JIT)
def _build_features(V, left, right, T):
    for p in range(left.size):
        a, b = left[p], right[p]
        for i in range(V.shape[1]):
            T[p, i] = V[a, i] * V[b, i]


@njit(**JIT)
def add_into(part, total):
    for k in range(part.shape[0]):
        for p in range(part.shape[1]):
            total[k, p] += part[k, p]


@njit(**JIT)
def _pass(X, weight, labels, origin, inverse_scale, left, right, theta, moments, sums):
    entries = 1 + X.shape[1] * (2 if left.max() > X.shape[1] else 1)
    V = np.empty((entries, TILE), theta.dtype)
    T = np.empty((left.size, TILE), theta.dtype)
    L = np.empty((theta.shape[0], TILE), theta.dtype)
    part = np.empty(theta.shape, theta.dtype)
    w, y = np.empty(TILE), np.empty(TILE, np.int64)
    scratch = np.empty((3, TILE), theta.dtype)
    for first in range(0, X.shape[0], TILE):
        last = min(first + TILE, X.shape[0])
        load_tile(X, first, last, origin, inverse_scale, V)
        load_row_fields(weight, labels, first, last, w, y)
        _build_features(V, left, right, T)
        np.dot(theta, T, L)
        normalise_tile(L, w, y, scratch, sums)
        np.dot(L, T.T, part)
        add_into(part, moments)


@njit(**JIT)
def _scores(X, origin, inverse_scale, left, right, theta, out):
    entries = 1 + X.shape[1] * (2 if left.max() > X.shape[1] else 1)
    V = np.empty((entries, TILE), theta.dtype)
    T = np.empty((left.size, TILE), theta.dtype)
    L = np.empty((theta.shape[0], TILE), theta.dtype)
    for first in range(0, X.shape[0], TILE):
        last = min(first + TILE, X.shape[0])
        load_tile(X, first, last, origin, inverse_scale, V)
        _build_features(V, left, right, T)
        np.dot(theta, T, L)
        out[first:last] = L[:, : last - first].T


_NO_WEIGHT, _NO_LABELS = np.empty(0), np.empty(0, np.int64)


def row_fields(block: Block) -> tuple[Array, Array]:
    """Weights and labels of a block for the kernels; empty arrays where there are none."""
    weight = _NO_WEIGHT if block.weight is None else np.ascontiguousarray(block.weight, np.float64)
    labels = _NO_LABELS if block.y is None else np.ascontiguousarray(block.y, np.int64)
    return weight, labels


def kernel_rows(block: Block) -> Array:
    """The rows of a dense block as the one kind of array that the kernels are compiled for."""
    flags = block.X.flags
    return block.X if flags.c_contiguous and flags.writeable else np.array(block.X, order="C")


def lifted_pass(block: Block, frame: Frame, features: FeatureMap, theta: Array) -> Sums:
    """Responsibilities of the rows of a dense block, summed into moments of each component.

    ``theta`` (K, P) holds the joint log density log pi_k p(u | k) in the given features; its
    dtype is the dtype of the arithmetic. Sums over tiles are float64 in any case.
    """
    moments, sums = np.zeros(theta.shape), np.zeros(3)
    weight, labels = row_fields(block)
    _pass(
        kernel_rows(block), weight, labels, frame.origin, 1.0 / frame.scale,
        features.left, features.right, theta, moments, sums,
    )  # fmt: skip
    return Sums(moments, float(sums[0]), float(sums[1]), float(sums[2]))


def lifted_scores(block: Block, frame: Frame, features: FeatureMap, theta: Array) -> Array:
    """theta @ T(u) for each row of a dense block, as (n, K)."""
    out = np.empty((block.n_rows, theta.shape[0]))
    _scores(kernel_rows(block), frame.origin, 1.0 / frame.scale, features.left, features.right, theta, out)
    return out
