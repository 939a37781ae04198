"""Starting points for mixtures on a small dense sample: k-means++ and a few steps of Lloyd."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array


def squared_norms(U: Array) -> Array:
    """(n,) squared Euclidean lengths."""
    return np.asarray(np.einsum("nd,nd->n", U, U))


def squared_distances(U: Array, centres: Array, norms: Array | None = None) -> Array:
    """(n, K) squared Euclidean distances, never negative; ``norms`` are ``squared_norms`` of U,
    for callers that ask for one U again."""
    out = U @ centres.T
    out *= -2
    out += (squared_norms(U) if norms is None else norms)[:, None] + squared_norms(centres)
    return np.asarray(np.maximum(out, 0.0, out=out))


def _pick(mass: Array, uniforms: Array) -> Array:
    """Indices drawn in proportion to mass by inversion; order and repetition of rows is all one."""
    cumulative = np.cumsum(mass)
    index = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    return np.asarray(np.minimum(index, len(mass) - 1))


def plus_plus(
    U: Array, weight: Array, n_centres: int, rng: np.random.Generator, given: Array | None = None
) -> Array:
    """Rows of U chosen by greedy k-means++: the best of a few candidates at each step.

    ``given`` centres (g, D) come first and are kept.
    """
    centres = np.empty((0, U.shape[1])) if given is None else given
    if len(centres) == 0 and n_centres:
        centres = U[_pick(weight, rng.random(1))]
    norms = squared_norms(U)
    closest = squared_distances(U, centres, norms).min(axis=1) if n_centres else np.empty(0)
    n_candidates = 2 + int(np.log(max(n_centres, 1)))
    while len(centres) < n_centres:
        mass = weight * closest
        uniforms = rng.random(n_candidates)
        if mass.sum() <= 0:  # fewer distinct rows than centres: any row will do
            mass = weight
        candidates = U[_pick(mass, uniforms)]
        improved = np.minimum(closest[:, None], squared_distances(U, candidates, norms))
        best = int(np.argmin(weight @ improved))
        centres = np.concatenate([centres, candidates[best : best + 1]])
        closest = improved[:, best]
    return centres


def lloyd(
    U: Array, weight: Array, centres: Array, n_steps: int, labels: Array | None = None
) -> tuple[Array, Array]:
    """A few steps of k-means; rows with a known label (>= 0) stay with it.

    Returns the assignment of each row and the centres.
    """
    n_centres, norms = len(centres), squared_norms(U)
    assigned = np.zeros(len(U), np.int64)
    for step in range(n_steps):
        nearest = np.argmin(squared_distances(U, centres, norms), axis=1)
        if labels is not None:
            nearest = np.where(labels >= 0, labels, nearest)
        if step and np.array_equal(nearest, assigned):  # the centres are their means already
            break
        assigned = nearest
        totals = np.bincount(assigned, weight, n_centres)
        member = (assigned[:, None] == np.arange(n_centres)) * weight[:, None]
        filled = totals > 0
        means = (member.T @ U) / np.where(filled, totals, 1)[:, None]
        centres = np.where(filled[:, None], means, centres)
    return assigned, centres


def fill_by_cluster(U: Array, resp: Array) -> Array:
    """Points whose missing entries are the mean of their own cluster rather than of all rows.

    ``resp`` (n, K) are weighted responsibilities; a cluster without the entry has its mean at 0.
    """
    missing = np.isnan(U)
    if not missing.any():
        return U
    filled = np.where(missing, 0.0, U)
    centres = (resp.T @ filled) / np.maximum(resp.T @ ~missing, 1e-300)
    filled[missing] = (resp @ centres / resp.sum(axis=1, keepdims=True))[missing]
    return filled


def distinct(X: Array, weight: Array, labels: Array | None) -> tuple[Array, Array, Array | None]:
    """Rows without repetition, sorted by their values, with their weights added.

    After this, repeating a row and giving it twice the weight are the same thing, and so are any
    two orders of the rows. The order survives new units of the columns (any increasing change).
    """
    key = X if labels is None else np.column_stack([X, labels.astype(X.dtype)])
    order = _lexical_order(key)
    ordered = key[order]
    first = np.flatnonzero(_differs(ordered))
    total = np.add.reduceat(weight[order], first)
    if labels is None and len(first) == len(X):  # nothing is repeated: no further copy
        return ordered, total, None
    del ordered
    index = order[first]
    return X[index], total, None if labels is None else labels[index]


def _differs(ordered: Array, rows: int = 256) -> Array:
    """Whether each row is other than the one before; a few at a time, since rows may be wide."""
    out = np.ones(len(ordered), bool)
    for a in range(1, len(ordered), rows):
        after, before = ordered[a : a + rows], ordered[a - 1 : a - 1 + rows]
        before = before[: len(after)]
        same = (after == before) | (np.isnan(after) & np.isnan(before))
        out[a : a + rows] = ~same.all(axis=1)
    return out


def _lexical_order(key: Array) -> Array:
    """Rows by their first entry, then the second, and so on; NaN last."""
    order = np.argsort(key[:, 0], kind="stable")
    leading = key[order, 0]
    if (np.diff(leading) == 0).any() or np.isnan(leading).sum() > 1:
        order = np.lexsort(key.T[::-1])
    return np.asarray(order)
