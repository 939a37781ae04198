"""E and M step over a CSR matrix for densities whose logarithm is linear in the entries.

log p(x | k) = head_k + sum over the stored x_d of x_d slope_kd: a stored entry adds a vector over
the components to the scores of its row, and takes one from the responsibilities into the sums.
Both are contiguous, as slopes and sums are kept column by column, (D, K). A stored NaN is a missing
entry and takes the offset of its column out of the head. Nothing is densified, sums are float64.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.compiled import kernel, summing_kernel
from mixfold.math.exponential import exp_nonpositive
from mixfold.math.tiles import row_fields

# a share below this is less than the rounding of the others: it is none
_LEAST_SHARE = 1e-18
# the log of a share that is zero
_FAR = -1e3


@dataclass(frozen=True, slots=True)
class SparseSums:
    """``mass`` (K,), ``absent`` (K, D) of missing entries (None: there are none), ``first`` (K, D),
    and the parts of the objective."""

    mass: Array
    absent: Array | None
    first: Array
    log_likelihood: float = 0.0
    entropy: float = 0.0
    weight: float = 0.0


@kernel
def _score_complete(data, indices, columns, scores):
    """Four entries at a time: the scores are then read and written a quarter as often."""
    size, K = data.size, scores.size
    whole = size - size % 4
    for j in range(0, whole, 4):
        a, b, c, d = indices[j], indices[j + 1], indices[j + 2], indices[j + 3]
        p, q = data[j], data[j + 1]
        r, s = data[j + 2], data[j + 3]
        for k in range(K):
            scores[k] += (p * columns[a, k] + q * columns[b, k]) + (
                r * columns[c, k] + s * columns[d, k]
            )
    for j in range(whole, size):
        d, x = indices[j], data[j]
        for k in range(K):
            scores[k] += x * columns[d, k]


@kernel
def _score_holed(data, indices, columns, offsets, scores):
    for j in range(data.size):
        d, x = indices[j], data[j]
        if np.isnan(x):
            for k in range(scores.size):
                scores[k] -= offsets[d, k]
        else:
            for k in range(scores.size):
                scores[k] += x * columns[d, k]


@kernel
def _score(data, indices, columns, offsets, head, scores):
    scores[:] = head
    if offsets.size:
        _score_holed(data, indices, columns, offsets, scores)
    else:
        _score_complete(data, indices, columns, scores)


@kernel
def _exponentials(scores, gaps):
    """Scores to shares of the largest, in place: a loop without sums, which is vector code."""
    top = scores[0]
    for k in range(1, scores.size):
        top = max(top, scores[k])
    for k in range(scores.size):
        gaps[k] = scores[k] - top
        scores[k] = exp_nonpositive(gaps[k])
    return top


# apart from the exponentials, whose rounding steps must not be reordered
@summing_kernel
def _totals(shares, gaps):
    total, spread = 0.0, 0.0
    for k in range(shares.size):
        total += shares[k]
        spread += shares[k] * max(gaps[k], _FAR)  # 0 * -inf would be NaN
    return total, spread


@kernel
def _share(scores, label, gaps):
    """Scores of a row to responsibilities, in place; its log-sum and entropy."""
    if label >= 0:
        top = scores[label]
        scores[:] = 0.0
        scores[label] = 1.0
        return top, 0.0
    top = _exponentials(scores, gaps)
    total, spread = _totals(scores, gaps)
    for k in range(scores.size):
        scores[k] /= total
    log_total = np.log(total)
    return top + log_total, log_total - spread / total


@kernel
def _compress(shares, weight, active, amount):
    """The components that own some of the row, and how much: usually very few."""
    count = 0
    for k in range(shares.size):
        if shares[k] > _LEAST_SHARE:
            active[count] = k
            amount[count] = shares[k] * weight
            count += 1
    return count


@kernel
def _add_few(data, indices, active, amount, count, first, absent):
    for j in range(data.size):
        d, x = indices[j], data[j]
        if np.isnan(x):  # only then has absent its rows
            for a in range(count):
                absent[d, active[a]] += amount[a]
        else:
            for a in range(count):
                first[d, active[a]] += amount[a] * x


@kernel
def _add_all(data, indices, shares, first, absent):
    for j in range(data.size):
        d, x = indices[j], data[j]
        if np.isnan(x):
            for k in range(shares.size):
                absent[d, k] += shares[k]
        else:
            for k in range(shares.size):
                first[d, k] += shares[k] * x


@kernel
def _add(data, indices, shares, weight, active, amount, mass, first, absent):
    count = _compress(shares, weight, active, amount)
    for a in range(count):
        mass[active[a]] += amount[a]
    if 4 * count <= shares.size or shares.size < 4:
        _add_few(data, indices, active, amount, count, first, absent)
        return
    for k in range(shares.size):
        shares[k] = shares[k] * weight if shares[k] > _LEAST_SHARE else 0.0
    _add_all(data, indices, shares, first, absent)


@kernel
def _pass(data, indices, indptr, weight, labels, columns, offsets, head, mass, first, absent, sums):
    K = head.size
    scores, amount, active = np.empty(K), np.empty(K), np.empty(K, np.int64)
    for i in range(indptr.size - 1):
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        row, where = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        _score(row, where, columns, offsets, head, scores)
        log_total, entropy = _share(scores, labels[i] if labels.size else -1, amount)
        sums[0] += w * log_total
        sums[1] += w * entropy
        sums[2] += w
        _add(row, where, scores, w, active, amount, mass, first, absent)


@kernel
def _scores(data, indices, indptr, columns, offsets, head, out):
    for i in range(indptr.size - 1):
        row, where = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        _score(row, where, columns, offsets, head, out[i])


@kernel
def _sums(data, indices, indptr, resp, mass, first, absent):
    K = resp.shape[1]
    shares, amount, active = np.empty(K), np.empty(K), np.empty(K, np.int64)
    for i in range(indptr.size - 1):
        row, where = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        w = 0.0
        for k in range(K):
            w += resp[i, k]
        if w == 0:
            continue
        for k in range(K):
            shares[k] = resp[i, k] / w
        _add(row, where, shares, w, active, amount, mass, first, absent)


_NONE = np.empty((0, 1))


def _stored_entries(X: Any) -> tuple[Array, Array, Array]:
    """Entries in float64, which is all that the kernels are compiled for, and where they are."""
    return X.data.astype(np.float64, copy=False), X.indices, X.indptr


def _absent(block: Block, n_components: int) -> Array:
    return _NONE if block.complete else np.zeros((block.X.shape[1], n_components))


def linear_pass(block: Block, slope: Array, offset: Array, log_weights: Array) -> SparseSums:
    """Responsibilities of the rows of a CSR block, summed into moments of each component.

    ``slope`` (K, D) is best in Fortran order, which is what the kernel reads; ``offset`` (K, D), or
    (K, 1) where all entries are stored or none matters, is the log density of an entry at zero.
    """
    columns, head = np.ascontiguousarray(slope.T), offset.sum(axis=1) + log_weights
    D, K = columns.shape
    offsets = _NONE if block.complete else _columns(offset, D)
    mass, first, absent, sums = np.zeros(K), np.zeros((D, K)), _absent(block, K), np.zeros(3)
    weight, labels = row_fields(block)
    _pass(
        *_stored_entries(block.X), weight, labels, columns, offsets, head, mass, first, absent, sums
    )  # fmt: skip
    gone = None if block.complete else absent.T
    return SparseSums(mass, gone, first.T, float(sums[0]), float(sums[1]), float(sums[2]))


def _columns(offset: Array, n_features: int) -> Array:
    return np.ascontiguousarray(np.broadcast_to(offset.T, (n_features, offset.shape[0])))


def linear_scores(block: Block, slope: Array, offset: Array) -> Array:
    """head_k + x . slope_k (n, K) of a CSR block."""
    columns, head = np.ascontiguousarray(slope.T), offset.sum(axis=1)
    offsets = _NONE if block.complete else _columns(offset, columns.shape[0])
    out = np.empty((block.n_rows, head.size))
    _scores(*_stored_entries(block.X), columns, offsets, head, out)
    return out


def linear_sums(block: Block, resp: Array) -> SparseSums:
    """The moments for given weighted responsibilities (n, K)."""
    K = resp.shape[1]
    mass, first, absent = np.zeros(K), np.zeros((block.X.shape[1], K)), _absent(block, K)
    _sums(*_stored_entries(block.X), np.ascontiguousarray(resp), mass, first, absent)
    return SparseSums(mass, None if block.complete else absent.T, first.T)
