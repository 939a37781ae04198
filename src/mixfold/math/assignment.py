"""The nearest centre of each row, and the sums of the rows of each centre, in one pass.

In frame coordinates |u - c_k|^2 = |u|^2 - 2 u.c_k + |c_k|^2: one matrix product scores all centres
for a tile of rows. That form loses digits where centres are close to each other compared with their
distance to the origin. So a row whose two best scores differ by no more than rounding is decided by
differences of centres, and the distances that are summed are made of differences u - c_k: the
assignment of a row is a function of the row and the centres, whatever tile it stands in, and ties
go to the lowest index.

A missing entry is left out of the distance. Rows are then (u, seen) with u = 0 where missing, and
the scores are -2 u.c_k + seen.c_k^2.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.centres import Assigned, Centres, row_weights
from mixfold.math.compiled import kernel, summing_kernel
from mixfold.math.frame import Frame

# scores of a tile: small enough for the L2 cache, wide enough for the matrix product
_TILE_SCORES, _LEAST_TILE, _MOST_TILE = 2**14, 64, 512
# below this share of |u|^2 + |c|^2 a distance is computed from differences
_CLOSE = 1e-2


@kernel
def _load(X, first, last, origin, inverse_scale, U):
    """Rows first:last of X into U: u, then (if U has room) what was seen."""
    D = X.shape[1]
    for i in range(last - first):
        for d in range(D):
            U[i, d] = (X[first + i, d] - origin[d]) * inverse_scale[d]
    if U.shape[1] > D:
        for i in range(last - first):
            for d in range(D):
                missing = np.isnan(U[i, d])
                U[i, D + d] = 0 if missing else 1
                if missing:
                    U[i, d] = 0


@kernel
def _two_best(S, bias, best, second, arg):
    """The two smallest entries of each column of S + bias, and where the smaller one is."""
    best[:] = np.inf
    second[:] = np.inf
    arg[:] = 0
    for k in range(S.shape[0]):
        offset = bias[k]
        for i in range(S.shape[1]):
            score = S[k, i] + offset
            better = score < best[i]
            loser = best[i] if better else score
            second[i] = loser if loser < second[i] else second[i]
            best[i] = score if better else best[i]
            arg[i] = k if better else arg[i]


@summing_kernel
def _apart(u, c):
    """|u - c|^2 over what was seen, from differences."""
    D = c.size
    total = 0.0
    if u.size > D:
        for d in range(D):
            gap = (u[d] - c[d]) * u[D + d]
            total += gap * gap
    else:
        for d in range(D):
            gap = u[d] - c[d]
            total += gap * gap
    return total


@summing_kernel
def _nearer(u, a, b):
    """Whether a is nearer to u than b: |u - a|^2 - |u - b|^2 = (b - a).(2 u - a - b).

    Both distances of a row far away would have no digit left for their difference.
    """
    D = a.size
    total = 0.0
    if u.size > D:
        for d in range(D):
            total += (b[d] - a[d]) * (2 * u[d] - a[d] - b[d]) * u[D + d]
    else:
        for d in range(D):
            total += (b[d] - a[d]) * (2 * u[d] - a[d] - b[d])
    return total < 0


@summing_kernel
def _measure(U, points, arg, n, distance):
    """Squared distances of the first n rows to the centres they were given to."""
    D = points.shape[1]
    if U.shape[1] > D:
        for i in range(n):
            distance[i] = _apart(U[i], points[arg[i]])
        return
    for i in range(n):  # written out: the loop that every row of complete data goes through
        k = arg[i]
        total = 0.0
        for d in range(D):
            gap = U[i, d] - points[k, d]
            total += gap * gap
        distance[i] = total


@kernel
def _settle(U, points, S, bias, best, second, slack, reach, n, arg, distance):
    """Decide the rows whose two best scores are within rounding of each other by differences."""
    for i in range(n):
        doubt = slack * (distance[i] + reach)  # |u|^2 is at most 2 distance + 2 reach
        if second[i] - best[i] > doubt:
            continue
        limit = best[i] + doubt
        chosen = -1
        for k in range(S.shape[0]):
            if S[k, i] + bias[k] > limit:  # an overflow, NaN, is decided below
                continue
            if chosen < 0 or _nearer(U[i], points[k], points[chosen]):
                chosen = k
        arg[i] = chosen
        distance[i] = _apart(U[i], points[chosen])


@kernel
def _accumulate(U, arg, distance, w, n, mass, count, first, sums):
    """Add the first n rows to the sums of their centres."""
    D = first.shape[1]
    for i in range(n):
        k, wi = arg[i], w[i]
        if wi == 0:
            continue
        mass[k] += wi
        sums[0] += wi * distance[i]
        sums[1] += wi
        for d in range(D):
            first[k, d] += wi * U[i, d]
    if U.shape[1] > D:
        for i in range(n):
            for d in range(D):
                count[arg[i], d] += w[i] * U[i, D + d]


@kernel
def _pass(
    X, weight, origin, inverse_scale, points, theta, bias, slack, reach, tile,
    mass, count, first, sums, labels, distances,
):  # fmt: skip
    U = np.zeros((tile, theta.shape[1]), theta.dtype)
    S = np.empty((theta.shape[0], tile), theta.dtype)
    best, second = np.empty(tile, theta.dtype), np.empty(tile, theta.dtype)
    arg, distance, w = np.empty(tile, np.int32), np.empty(tile), np.ones(tile)
    for start in range(0, X.shape[0], tile):
        last = min(start + tile, X.shape[0])
        n = last - start
        _load(X, start, last, origin, inverse_scale, U)
        np.dot(theta, U.T, S)
        _two_best(S, bias, best, second, arg)
        _measure(U, points, arg, n, distance)
        _settle(U, points, S, bias, best, second, slack, reach, n, arg, distance)
        if weight.size:
            w[:n] = weight[start:last]
        _accumulate(U, arg, distance, w, n, mass, count, first, sums)
        if labels.size:
            labels[start:last] = arg[:n]
            distances[start:last] = distance[:n]


@kernel
def _distances(X, origin, inverse_scale, points, norms, theta, bias, tile, out):
    D = X.shape[1]
    U = np.zeros((tile, theta.shape[1]), theta.dtype)
    S = np.empty((theta.shape[0], tile), theta.dtype)
    for start in range(0, X.shape[0], tile):
        last = min(start + tile, X.shape[0])
        _load(X, start, last, origin, inverse_scale, U)
        np.dot(theta, U.T, S)
        for i in range(last - start):
            size = 0.0
            for d in range(D):
                size += np.float64(U[i, d]) * U[i, d]
            for k in range(S.shape[0]):
                squared = size + S[k, i] + bias[k]
                if not (squared > _CLOSE * (size + norms[k])):
                    squared = _apart(U[i], points[k])
                out[start + i, k] = squared


_NO_LABELS, _NO_DISTANCES = np.empty(0, np.int32), np.empty(0)


def _tile(n_centres: int) -> int:
    return min(max(_TILE_SCORES // n_centres, _LEAST_TILE), _MOST_TILE) // 8 * 8


def _run(block: Block, centres: Centres, labels: Array, distances: Array) -> Assigned:
    points, frame = centres.points, centres.frame
    K, D = points.shape
    theta, bias = centres.scoring(block.X.dtype, block.complete)
    mass, first, sums = np.zeros(K), np.zeros((K, D)), np.zeros(2)
    count = np.zeros((K, 1 if block.complete else D))
    # rounding of a score: a few units per term, terms adding up like a random walk
    slack = 16 * (4 + np.sqrt(D)) * float(np.finfo(theta.dtype).eps)
    if block.is_small:
        return _small_pass(block, centres, theta, bias, slack, labels, distances)
    _pass(
        block.X, row_weights(block), frame.origin, 1.0 / frame.scale, points, theta, bias, slack,
        centres.norms.max(), _tile(K), mass, count, first, sums, labels, distances,
    )  # fmt: skip
    return Assigned(mass, mass[:, None] if block.complete else count, first, sums[0], sums[1])


def _small_pass(
    block: Block, centres: Centres, theta: Array, bias: Array, slack: float, labels: Array,
    distances: Array,
) -> Assigned:  # fmt: skip
    """What ``_pass`` does, by numpy: for blocks that no kernel is loaded for."""
    points, D = centres.points, centres.points.shape[1]
    U = _enter(block, centres.frame, theta.dtype)
    S = theta @ U.T
    S += bias[:, None]
    rows = np.arange(len(U))
    arg = np.argmin(S, axis=0)
    distance = _gaps_from(U, points[arg])
    # NaN is an overflow, which scores cannot decide
    limit = S[arg, rows] + slack * (distance + centres.norms.max())
    for i in np.flatnonzero(~((limit < S).sum(axis=0) == len(points) - 1)):
        if len(points) > 1:
            arg[i] = _settle_row(U[i], points, np.flatnonzero(~(S[:, i] > limit[i])))
    distance = _gaps_from(U, points[arg])
    weight, counted = block.weights(), distance
    if (weight == 0).any():  # whatever is in those rows
        U, counted = np.where(weight[:, None] > 0, U, 0), np.where(weight > 0, distance, 0)
    member = np.zeros((len(points), len(U)))
    member[arg, rows] = weight
    mass = member.sum(axis=1)
    first = member @ U
    count = first[:, D:] if U.shape[1] > D else mass[:, None]
    if labels.size:
        labels[:], distances[:] = arg, distance
    inertia, total = float(weight @ counted), float(weight.sum())
    return Assigned(mass, count, first[:, :D], inertia, total)


def _enter(block: Block, frame: Frame, dtype: np.dtype[Any]) -> Array:
    """What ``_load`` makes of all rows; the same in every pass."""
    kept = block.known.get("rows")
    if kept is not None and kept[0] is frame and kept[1].dtype == dtype:
        return np.asarray(kept[1])
    U: Array = ((block.X - frame.origin) * (1.0 / frame.scale)).astype(dtype)
    if not block.complete:
        seen = ~np.isnan(U)
        U = np.concatenate([np.where(seen, U, 0), seen.astype(dtype)], axis=1)
    block.known["rows"] = (frame, U)
    return U


def _gaps_from(U: Array, points: Array) -> Array:
    """|u - c|^2 over what was seen, of each row and a centre of its own."""
    D = points.shape[1]
    gaps = U[:, :D] - points
    if U.shape[1] > D:
        gaps *= U[:, D:]
    return np.asarray(np.einsum("nd,nd->n", gaps, gaps))


def _settle_row(u: Array, points: Array, candidates: Array) -> int:
    """The nearest of the candidates by differences; the first of several."""
    D = points.shape[1]
    seen = u[D:] if len(u) > D else 1.0
    chosen = candidates[0]
    for k in candidates[1:]:
        a, b = points[k], points[chosen]
        if ((b - a) * (2 * u[:D] - a - b) * seen).sum() < 0:
            chosen = k
    return int(chosen)


def assign(block: Block, centres: Centres) -> Assigned:
    """Sums over the rows of a dense block, each given to its nearest centre."""
    return _run(block, centres, _NO_LABELS, _NO_DISTANCES)


def nearest(block: Block, centres: Centres) -> tuple[Array, Array]:
    """Index (int32) of and squared distance to the nearest centre, of each row of a dense block."""
    labels, distances = np.empty(block.n_rows, np.int32), np.empty(block.n_rows)
    _run(block, centres, labels, distances)
    if not np.isfinite(distances).all() and block.X.dtype != np.float64:  # too far for float32
        _run(_in_double(block), centres, labels, distances)
    return labels, distances


def _in_double(block: Block) -> Block:
    return replace(block, X=block.X.astype(np.float64))


def squared_distances(block: Block, centres: Centres) -> Array:
    """(n, K) squared distances of a dense block, in frame coordinates."""
    theta, bias = centres.scoring(block.X.dtype, block.complete)
    if block.is_small:
        return _small_distances(block, centres)
    out = np.empty((block.n_rows, len(centres.points)))
    _distances(
        block.X, centres.frame.origin, 1.0 / centres.frame.scale, centres.points, centres.norms,
        theta, bias, _tile(len(out.T)), out,
    )  # fmt: skip
    if not np.isfinite(out).all() and block.X.dtype != np.float64:  # too far for float32
        return squared_distances(_in_double(block), centres)
    return out


def _small_distances(block: Block, centres: Centres) -> Array:
    """The same from differences, a centre at a time."""
    U = _enter(block, centres.frame, np.dtype(np.float64))
    return np.column_stack([_gaps_from(U, point[None]) for point in centres.points])
