"""E and M step of a Gaussian mixture as two matrix products over all components.

With u = (x - origin) / scale, log p(u, k) is linear in features T(u) made of products of two
entries of (1, u, observed): ``L = theta @ T`` scores every component and ``moments = R @ T'``
holds count, first and second moments of every component. A tile of rows is transformed, scored,
normalised and summed while it is in the cache; nothing of size N x K exists.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from mixfold.contracts import Array, Block, record
from mixfold.math.compiled import kernel
from mixfold.math.frame import Frame, same_frame
from mixfold.math.tiles import (
    FAR,
    TILE,
    kernel_rows,
    load_row_fields,
    load_tile,
    normalise_tile,
    panel_width,
    panels,
    row_fields,
    score_tile,
    sum_tile,
)

_NO_ROWS, _NO_MOMENTS = np.empty(0, np.int64), np.empty((0, 0))
# numbers of the features of a block that are kept from pass to pass, and made at once
_KEPT = 2**17


@record
@dataclass(frozen=True, slots=True)
class FeatureMap:
    """Feature p is entry ``left[p]`` times entry ``right[p]`` of (1, u_1..u_D, seen_1..seen_D)."""

    left: Array
    right: Array


@cache
def product_features(n_features: int) -> FeatureMap:
    """(1, u_d, u_d u_e for d <= e): full covariances, complete rows."""
    linear = np.arange(1, n_features + 1)
    row, column = np.triu_indices(n_features)
    return FeatureMap(
        np.concatenate([[0], linear, row + 1]),
        np.concatenate([0 * linear[:1], 0 * linear, column + 1]),
    )


@cache
def square_features(n_features: int) -> FeatureMap:
    """(1, u_d, u_d^2): diagonal covariances, complete rows."""
    linear = np.arange(1, n_features + 1)
    return FeatureMap(
        np.concatenate([[0], linear, linear]), np.concatenate([[0], 0 * linear, linear])
    )


@cache
def seen_square_features(n_features: int) -> FeatureMap:
    """(1, seen_d, u_d, u_d^2) with u_d = 0 where missing: diagonal covariances, any rows."""
    linear = np.arange(1, n_features + 1)
    return FeatureMap(
        np.concatenate([[0], linear + n_features, linear, linear]),
        np.concatenate([[0], 0 * linear, 0 * linear, linear]),
    )


@dataclass(frozen=True, slots=True)
class Sums:
    """What one pass over a block adds up. ``moments`` (K, P) is R @ T'.

    ``left_out`` are the rows that are not in the sums, because rounding could have changed their
    shares.
    """

    moments: Array
    log_likelihood: float
    entropy: float
    weight: float
    left_out: Array = field(default_factory=lambda: _NO_ROWS)


@kernel
def _pass(
    X, weight, labels, origin, inverse_scale, left, right, theta, width, moments, sums,
    trusted, left_out,
):  # fmt: skip
    K = moments.shape[1]
    entries = 1 + X.shape[1] * (2 if left.max() > X.shape[1] else 1)
    V, T = np.empty((entries, TILE), theta.dtype), np.empty((width, TILE), theta.dtype)
    L, more = np.empty((K, TILE), theta.dtype), np.empty((K, TILE), theta.dtype)
    R, part = np.empty((TILE, K), theta.dtype), np.empty((width, K), theta.dtype)
    w, y = np.empty(TILE), np.empty(TILE, np.int64)
    top, total = np.empty(TILE, theta.dtype), np.empty(TILE, theta.dtype)
    spread = np.empty(TILE, theta.dtype)
    for first in range(0, X.shape[0], TILE):
        last = min(first + TILE, X.shape[0])
        load_tile(X, first, last, origin, inverse_scale, V)
        load_row_fields(weight, labels, first, last, w, y)
        score_tile(theta, V, left, right, T, L, more)
        normalise_tile(L, w, y, top, total, spread, R, sums, first, trusted, left_out)
        sum_tile(V, left, right, T, R, part, moments)


@kernel
def _scores(X, origin, inverse_scale, left, right, theta, width, out):
    K = out.shape[1]
    entries = 1 + X.shape[1] * (2 if left.max() > X.shape[1] else 1)
    V, T = np.empty((entries, TILE), theta.dtype), np.empty((width, TILE), theta.dtype)
    L, more = np.empty((K, TILE), theta.dtype), np.empty((K, TILE), theta.dtype)
    for first in range(0, X.shape[0], TILE):
        last = min(first + TILE, X.shape[0])
        load_tile(X, first, last, origin, inverse_scale, V)
        score_tile(theta, V, left, right, T, L, more)
        out[first:last] = L[:, : last - first].T


def lifted_pass(
    block: Block, frame: Frame, features: FeatureMap, theta: Array, trusted: float = -np.inf
) -> Sums:
    """Responsibilities of the rows of a dense block, summed into moments of each component.

    ``theta`` (K, P) holds the joint log density log pi_k p(u | k) in the given features; its
    dtype is the dtype of the arithmetic. Sums over tiles are float64 in any case. Rows whose
    largest log density is not above ``trusted`` are left out of the sums.
    """
    if has_few_features(block, theta):
        return _small_pass(block, frame, features, theta, trusted)
    moments, sums = np.zeros(theta.shape[::-1]), np.zeros(4)
    weight, labels = row_fields(block)
    left_out = marks_of(block, trusted)
    _pass(
        kernel_rows(block), weight, labels, frame.origin, 1.0 / frame.scale, features.left,
        features.right, panels(theta), panel_width(*theta.shape), moments, sums, trusted, left_out,
    )  # fmt: skip
    return sums_of_pass(moments, sums, left_out)


def marks_of(block: Block, trusted: float) -> Array:
    """A mark for each row of a block that can be left out; none where no row can be."""
    return np.zeros(block.n_rows if trusted > -np.inf else 0, np.bool_)


def sums_of_pass(moments: Array, sums: Array, left_out: Array) -> Sums:
    """What a kernel wrote, as a value."""
    rows = np.flatnonzero(left_out) if sums[3] else _NO_ROWS
    return Sums(moments.T, float(sums[0]), float(sums[1]), float(sums[2]), rows)


def lifted_scores(block: Block, frame: Frame, features: FeatureMap, theta: Array) -> Array:
    """theta @ T(u) for each row of a dense block, as (n, K)."""
    if has_few_features(block, theta):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ascontiguousarray((theta @ _features(block, frame, features)).T)
    out = np.empty((block.n_rows, theta.shape[0]))
    _scores(
        kernel_rows(block), frame.origin, 1.0 / frame.scale, features.left, features.right,
        panels(theta), panel_width(*theta.shape), out,
    )  # fmt: skip
    return out


# ------------------------------------------------ few rows


def has_few_features(block: Block, theta: Array) -> bool:
    """Whether the block is small, and its features fit the cache."""
    return block.is_small and block.n_rows * sum(theta.shape) <= _KEPT


def _features(block: Block, frame: Frame, features: FeatureMap) -> Array:
    """T(u) of all rows, (P, n), which a fit asks for in every pass: frames stay what they are."""
    kept = block.known.get("features")
    if kept is not None:
        of_frame, of_features, T = kept
        if of_features is features and (of_frame is frame or same_frame(of_frame, frame)):
            return np.asarray(T)
    T = _make_features(block, frame, features)
    block.known["features"] = (frame, features, T)
    return T


def _make_features(block: Block, frame: Frame, features: FeatureMap) -> Array:
    U = enter_rows(block, frame)
    if features.left.max() > len(frame.origin):
        seen = ~np.isnan(U)
        U = np.concatenate([np.where(seen, U, 0), seen])
    V = np.concatenate([np.ones((1, block.n_rows)), U])
    T = V[features.left]
    with np.errstate(over="ignore", invalid="ignore"):  # of far rows, as in ``enter_rows``
        T *= V[features.right]
    return T


def enter_rows(block: Block, frame: Frame) -> Array:
    """Rows in frame coordinates, transposed (D, n), in double precision."""
    with np.errstate(over="ignore"):  # rows that far away are left out, and seen to one by one
        return np.asarray((block.X.T - frame.origin[:, None]) * (1.0 / frame.scale)[:, None], float)


def _small_pass(
    block: Block, frame: Frame, features: FeatureMap, theta: Array, trusted: float
) -> Sums:
    T = _features(block, frame, features)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = theta @ T
    R, sums = share_rows(scores, block, trusted)
    return replace(sums, moments=R @ T.T)


def share_rows(L: Array, block: Block, trusted: float) -> tuple[Array, Sums]:
    """Weighted responsibilities (K, n) of log densities (K, n) in double precision, and what
    ``normalise_tile`` sums; the moments are for the caller to add."""
    if block.y is not None:
        components = np.arange(len(L))[:, None]
        L = np.where((block.y < 0) | (block.y == components), L, -np.inf)
    weight = block.weights()
    top, left_out = L.max(axis=0), _NO_ROWS
    if trusted > -np.inf and not (top > trusted).all():
        far = ~(top > trusted)  # NaN, an overflow, is far too
        left_out = np.flatnonzero(far & (weight > 0))
        weight, top, L = np.where(far, 0.0, weight), np.where(far, 0, top), np.where(far, 0, L)
    gap = L - top
    R = np.exp(gap)
    total = R.sum(axis=0)
    spread = (R * np.maximum(gap, FAR)).sum(axis=0)  # 0 * -inf would be NaN
    log_total = np.log(total)
    log_likelihood = float(weight @ (top + log_total))
    entropy = float(weight @ (log_total - spread / total))
    R *= weight / total
    return R, Sums(R, log_likelihood, entropy, float(weight.sum()), left_out)


def lifted_groups(
    block: Block, frame: Frame, features: FeatureMap, theta: Array, n_groups: int, trusted: float
) -> tuple[Array, list[Sums]] | None:
    """``lifted_pass`` of several mixtures at once, whose components follow each other in ``theta``.

    The moments (C K, P) of all components, and the sums of each mixture without moments. None for
    a block that is not small, has labels, or rows that are not to be trusted in one of them.
    """
    if not has_few_features(block, theta) or block.y is not None:
        return None
    T = _features(block, frame, features)
    L = (theta @ T).reshape(n_groups, -1, block.n_rows)
    top = L.max(axis=1)
    if not (top > trusted).all():
        return None
    L -= top[:, None]
    R = np.exp(L)
    total = R.sum(axis=1)
    spread = (R * np.maximum(L, FAR, out=L)).sum(axis=1)
    log_total, weight = np.log(total), block.weights()
    log_likelihood = (top + log_total) @ weight
    entropy = (log_total - spread / total) @ weight
    R *= (weight / total)[:, None]
    moments = R.reshape(-1, block.n_rows) @ T.T
    whole = float(weight.sum())
    return moments, [
        Sums(_NO_MOMENTS, float(a), float(b), whole)
        for a, b in zip(log_likelihood, entropy, strict=True)
    ]
