"""The convex problem of a row: a quadratic, a softmax and the costs of codes, in a box.

For each row (of c, a vector of codes phi, a label y, or none)

    F(phi) = phi G phi' / 2 - c phi' + s2 (lse(phi V + v) - (phi V + v)_y) + tau sum cost(phi_h)

is minimised by turns over its entries. The softmax is bounded by Boehning's quadratic, of curvature
V (I - 1 1'/C) V' / 2, around the codes at the beginning of each sweep: so no sweep increases F.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.math.compiled import kernel
from mixfold.math.link_functions import Link, shrink_one


def softmax_bound(V: Array) -> Array:
    """V (I - 1 1'/C) V' / 2: no softmax of phi V has more curvature in phi."""
    centred = V - V.mean(axis=1, keepdims=True) if V.shape[1] else V
    return np.asarray(0.5 * centred @ centred.T)


def sweep_codes(
    phi: Array, linear: Array, gram: Array, head: tuple[Array, Array], labels: Array | None,
    scale: float, tau: float, link: Link, tol: float, most: int,
) -> int:  # fmt: skip
    """Minimise F of each row, in place, from ``phi`` (n, H); returns the most sweeps of a row.

    ``labels`` (n,) are class numbers of all rows; None: there is no softmax term.
    ``tol`` is the largest change of a code in the last sweep.
    """
    V, v = head
    if labels is None:
        V, v, labels = V[:, :0], v[:0], np.zeros(len(phi), np.int64)
    curved = gram + scale * softmax_bound(V)
    made: int = _rows(
        phi, np.ascontiguousarray(linear), np.ascontiguousarray(gram),
        np.ascontiguousarray(curved), np.ascontiguousarray(V), v,
        np.ascontiguousarray(labels, np.int64), scale, tau, link.numbers(), tol, most,
    )  # fmt: skip
    return made


@kernel
def _rows(phi, linear, gram, curved, V, v, labels, scale, tau, numbers, tol, most):
    H, C = V.shape
    slope, logits, errors, change = np.empty(H), np.empty(C), np.empty(C), np.empty(C)
    taken = 0
    for i in range(phi.shape[0]):
        row = phi[i]
        for h in range(H):
            slope[h] = -linear[i, h]
        for h in range(H):
            if row[h] != 0.0:
                _add_row(gram, h, row[h], slope)
        _label_slope(row, V, v, labels[i], scale, logits, errors, change, slope, True)
        for sweep in range(most):
            moved = _sweep(row, slope, curved, tau, numbers)
            taken = max(taken, sweep + 1)
            if moved <= tol:
                break
            _label_slope(row, V, v, labels[i], scale, logits, errors, change, slope, False)
    return taken


@kernel
def _sweep(row, slope, curved, tau, numbers):
    """Each entry in turn at its minimum; the largest change, relative to codes beyond 1."""
    most = 0.0
    for h in range(row.size):
        bend = curved[h, h]
        if bend <= 0.0:
            continue
        new = shrink_one(row[h] - slope[h] / bend, tau / bend, numbers)
        move = new - row[h]
        if move != 0.0:
            row[h] = new
            _add_row(curved, h, move, slope)
            most = max(most, abs(move) / max(1.0, abs(new)))
    return most


@kernel
def _add_row(matrix, h, factor, out):
    for j in range(out.size):
        out[j] += factor * matrix[h, j]


@kernel
def _label_slope(row, V, v, label, scale, logits, errors, change, slope, first):
    """Make ``slope`` that of F itself: the bound was made at the last logits and errors q - t."""
    C = v.size
    if C == 0:
        return
    mean = 0.0
    for c in range(C):
        new = v[c]
        for h in range(row.size):
            new += row[h] * V[h, c]
        change[c] = 0.0 if first else new - logits[c]
        mean += change[c] / C
        logits[c] = new
    top, total = logits.max(), 0.0
    for c in range(C):
        total += np.exp(logits[c] - top)
    for c in range(C):
        error = np.exp(logits[c] - top) / total - (1.0 if c == label else 0.0)
        # what the sweep added by the curvature of the bound is taken back
        change[c] = error - (0.0 if first else errors[c] + 0.5 * (change[c] - mean))
        errors[c] = error
    for h in range(row.size):
        for c in range(C):
            slope[h] += scale * change[c] * V[h, c]
