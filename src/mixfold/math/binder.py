"""Binder's loss of partitions against draws, and moves of single rows that lower it.

Draws come as codes: an (n, S) array of the labels 0, 1, ... of n rows in S draws, in a small type
of integers. P_ij is the share of the draws in which rows i and j are together. The loss of a
partition, the sum over pairs of (together_ij - P_ij)^2, is a constant plus twice

    sum over pairs that are together of (1/2 - P_ij).

The matrix P is not needed to move rows: the sum of P_ij over the rows j of a cluster k is the mean
over draws of how many rows of k lie in the cluster of i, which is an entry of the contingency table
of that draw with the partition. A move changes one row of each table, so gains stay exact for any
number of rows, in time proportional to the number of codes.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.math.compiled import kernel

# a move must gain more than this share of the total weight: less may be rounding, and go round
_GAIN = 1e-10


@kernel
def _together(a, b):
    """In how many draws two rows are together."""
    count = np.int32(0)
    for s in range(a.size):
        count += np.int32(a[s] == b[s])
    return count


@kernel
def _share(codes, out):
    n, S = codes.shape
    for i in range(n):
        out[i, i] = 1
        for j in range(i):
            out[i, j] = _together(codes[i], codes[j]) / S
            out[j, i] = out[i, j]


@kernel
def _losses(codes, w, out):
    """Sum of w_i w_j (1/2 - P_ij) over the pairs that are together in a draw, for each draw."""
    n, S = codes.shape
    for i in range(n):
        for j in range(i):
            cost = w[i] * w[j] * (0.5 - _together(codes[i], codes[j]) / S)
            for s in range(S):
                out[s] += cost if codes[i, s] == codes[j, s] else 0.0


def shares(codes: Array) -> Array:
    """P as an (n, n) float32 array. Comparing labels is several times faster than a product."""
    out = np.empty((len(codes), len(codes)), np.float32)
    _share(codes, out)
    return out


def draw_losses(codes: Array, w: Array) -> Array:
    """Half of the loss of each draw, up to a constant; a pair weighs w_i w_j. Time n^2 S."""
    out = np.zeros(codes.shape[1])
    _losses(codes, w, out)
    return out


# ------------------------------------------------------------------ moves of single rows


@kernel
def _tabulate(codes, offset, labels, w, tables, size):
    """Contingency tables of all draws with the partition, one below the other; and its sizes."""
    n, S = codes.shape
    for i in range(n):
        k = labels[i]
        size[k] += w[i]
        for s in range(S):
            tables[offset[s] + codes[i, s], k] += w[i]


@kernel
def _affinities(code, offset, tables, size, out):
    """Sum of w_j (P_ij - 1/2) over the rows j of each cluster, for the row i with these codes."""
    S = code.size
    out[:] = 0
    for s in range(S):
        row = offset[s] + code[s]
        for k in range(out.size):
            out[k] += tables[row, k]
    for k in range(out.size):
        out[k] = out[k] / S - 0.5 * size[k]


@kernel
def _move(code, offset, weight, a, b, tables, size, members):
    """A row leaves cluster a for b."""
    members[a] -= 1
    members[b] += 1
    size[a] -= weight
    size[b] += weight
    for s in range(code.size):
        tables[offset[s] + code[s], a] -= weight
        tables[offset[s] + code[s], b] += weight


@kernel
def _best(value, members, a, least):
    """The cluster a row of a should be in, -1 for a new one; a unless another gains enough."""
    b, best = a, value[a] + least
    if best < 0 and members[a] > 1:
        b, best = -1, 0.0
    for k in range(value.size):
        if members[k] > 0 and value[k] > best:
            b, best = k, value[k]
    return b


@kernel
def _settle(codes, offset, w, least, labels, tables, size, members):
    """Move rows until none gains (True), or until a new cluster is wanted and no column is left."""
    value = np.empty(size.size)
    moved = True
    while moved:
        moved = False
        for i in range(codes.shape[0]):
            a = labels[i]
            _affinities(codes[i], offset, tables, size, value)
            value[a] -= 0.5 * w[i]  # a row does not gain by its own company, where P = 1
            b = _best(value, members, a, least)
            if b == -1:
                for k in range(members.size):
                    if members[k] == 0:
                        b = k
                if b == -1:
                    return False
            if b != a:
                _move(codes[i], offset, w[i], a, b, tables, size, members)
                labels[i] = b
                moved = True
    return True


def refine_partition(codes: Array, labels: Array, w: Array) -> Array:
    """Labels after moves of single rows, each to its best cluster, until none gains."""
    clusters = codes.max(axis=0).astype(np.int64) + 1
    offset = np.concatenate([[0], clusters.cumsum()[:-1]])
    settled = False
    while not settled:
        labels = np.unique(labels, return_inverse=True)[1]
        K = int(labels.max()) + 1
        room = K + 1 + K // 4
        tables, size = np.zeros((int(clusters.sum()), room)), np.zeros(room)
        _tabulate(codes, offset, labels, w, tables, size)
        members = np.bincount(labels, minlength=room)
        settled = _settle(codes, offset, w, _GAIN * w.sum(), labels, tables, size, members)
    return labels
