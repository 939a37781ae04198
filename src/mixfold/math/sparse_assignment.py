"""The nearest centre of each row of a CSR matrix: what ``assignment`` does, from the stored
entries.

In data coordinates |x - m_k|^2 = |m_k|^2 + sum over the stored x_d of x_d (x_d - 2 m_kd), so a row
costs K products per stored entry and nothing is densified or centred. A stored NaN is a missing
entry and takes m_kd^2 out of the sum. Rows are summed one by one, in float64: no tile matters.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.centres import Assigned, Centres, row_weights
from mixfold.math.compiled import kernel


@kernel
def _score(data, indices, columns, norms, scores):
    """|m_k|^2 - 2 x.m_k of one row into scores, and |x|^2 back, over what was seen."""
    size = 0.0
    scores[:] = norms
    for j in range(data.size):
        d = indices[j]
        if np.isnan(data[j]):
            for k in range(scores.size):
                scores[k] -= columns[d, k] * columns[d, k]
        else:
            size += np.float64(data[j]) * data[j]
            twice = 2.0 * data[j]
            for k in range(scores.size):
                scores[k] -= twice * columns[d, k]
    return size


@kernel
def _apart(data, indices, columns, k, norm, size, score):
    """|x - m_k|^2 from |x|^2 and the score or, where that form has few digits left, by differences.

    Differences where x is stored, the rest of |m_k|^2 where it is not.
    """
    if size + score > 1e-2 * (size + norm):
        return size + score
    near, rest = 0.0, norm
    for j in range(data.size):
        m = columns[indices[j], k]
        rest -= m * m
        if not np.isnan(data[j]):
            near += (data[j] - m) * (data[j] - m)
    return near + max(rest, 0.0)


@kernel
def _lowest(scores):
    """Index of the smallest entry, the first one if there are several."""
    chosen = 0
    for k in range(1, scores.size):
        if scores[k] < scores[chosen]:
            chosen = k
    return chosen


@kernel
def _pass(data, indices, indptr, weight, columns, norms, mass, absent, first, sums, labels, out):
    scores = np.empty(norms.size)
    for i in range(indptr.size - 1):
        row, where = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        size = _score(row, where, columns, norms, scores)
        k = _lowest(scores)
        distance = _apart(row, where, columns, k, norms[k], size, scores[k])
        if labels.size:
            labels[i] = k
            out[i] = distance
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        mass[k] += w
        sums[0] += w * distance
        sums[1] += w
        for j in range(row.size):
            if not np.isnan(row[j]):
                first[k, where[j]] += w * row[j]
            else:  # only then has absent its D columns
                absent[k, where[j]] += w


@kernel
def _distances(data, indices, indptr, columns, norms, out):
    for i in range(indptr.size - 1):
        row, where = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        size = _score(row, where, columns, norms, out[i])
        for k in range(norms.size):
            out[i, k] = _apart(row, where, columns, k, norms[k], size, out[i, k])


_NO_LABELS, _NO_DISTANCES = np.empty(0, np.int32), np.empty(0)


def _run(block: Block, centres: Centres, labels: Array, distances: Array) -> Assigned:
    X, columns, frame = block.X, centres.columns, centres.frame
    D, K = columns.shape
    mass, first, sums = np.zeros(K), np.zeros((K, D)), np.zeros(2)
    absent = np.zeros((K, 1 if block.complete else D))
    norms = centres.column_norms
    _pass(
        X.data, X.indices, X.indptr, row_weights(block), columns, norms,
        mass, absent, first, sums, labels, distances,
    )  # fmt: skip
    count = mass[:, None] - absent
    if frame.origin.any():
        first -= count * frame.origin
    unit = float(frame.scale[0]) ** 2
    if unit != 1:
        first /= frame.scale
        distances /= unit
    return Assigned(mass, count, first, sums[0] / unit, sums[1])


def assign(block: Block, centres: Centres) -> Assigned:
    """Sums over the rows of a CSR block, each given to its nearest centre."""
    return _run(block, centres, _NO_LABELS, _NO_DISTANCES)


def nearest(block: Block, centres: Centres) -> tuple[Array, Array]:
    """Index (int32) of and squared distance to the nearest centre, of each row of a CSR block."""
    labels, distances = np.empty(block.n_rows, np.int32), np.empty(block.n_rows)
    _run(block, centres, labels, distances)
    return labels, distances


def squared_distances(block: Block, centres: Centres) -> Array:
    """(n, K) squared distances of a CSR block, in frame coordinates."""
    columns = centres.columns
    out = np.empty((block.n_rows, columns.shape[1]))
    X, norms = block.X, centres.column_norms
    _distances(X.data, X.indices, X.indptr, columns, norms, out)
    return np.asarray(out / float(centres.frame.scale[0]) ** 2)
