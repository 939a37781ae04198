"""Consensus of sampled partitions: pairwise similarity, best draw, relabelling.

S draws of n labels say, for two rows, in which share P_ij of the draws they are together; this does
not depend on how a draw numbers its clusters. Binder's loss of a partition is the sum over pairs of
(together_ij - P_ij)^2. Quantities of single clusters need one numbering for all draws: that of a
pivot.

References
----------
Binder (1978), Bayesian cluster analysis, Biometrika 65.
Stephens (2000), Dealing with label switching in mixture models, J. R. Statist. Soc. B 62.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import entr

from mixfold.contracts import Array
from mixfold.math import binder


def canonical(labels: Array) -> Array:
    """Labels 0, 1, ... in the order in which clusters appear: equal for equal partitions.

    Parameters
    ----------
    labels : ndarray of shape (n,) or (S, n)
        Labels of any kind that can be sorted; each row of a matrix is a partition of its own.

    Returns
    -------
    int32 ndarray of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.partitions import canonical
    >>> canonical(np.array([[7, 7, 2, 9, 2], [0, 3, 1, 2, 1]])).tolist()
    [[0, 0, 1, 2, 1], [0, 1, 2, 3, 2]]
    """
    labels = np.asarray(labels)
    if labels.ndim == 2:
        out = np.empty(labels.shape, np.int32)
        for new, old in zip(out, labels, strict=True):
            new[:] = canonical(old)
        return out
    if labels.ndim != 1:
        raise ValueError(f"labels must have the shape (n,) or (S, n); got {labels.shape}.")
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first)).astype(np.int32)[codes]


def similarity(labels: Array) -> Array:
    """In which share of the draws two rows are in one cluster.

    Parameters
    ----------
    labels : ndarray of shape (S, n)
        A draw of the labels in each row.

    Returns
    -------
    float32 ndarray of shape (n, n)
        Symmetric, with ones on the diagonal. Mind its size before asking for it.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.partitions import similarity
    >>> similarity(np.array([[0, 0, 1], [5, 5, 5]])).tolist()
    [[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]]
    """
    codes = _compact(_draws(labels))
    return binder.shares(codes)


def point_partition(
    labels: Array,
    weight: Array | None = None,
    *,
    refine: bool = True,
    max_rows: int = 5000,
    rng: np.random.Generator | None = None,
) -> Array:
    """One partition for many draws: of small Binder loss against their similarity.

    The draw of least loss; then, one row after the other, each row moves to the cluster (or to a
    new one) that lowers the loss most, until no single row can lower it.

    Parameters
    ----------
    labels : ndarray of shape (S, n)
        A draw of the labels in each row.
    weight : ndarray of shape (n,), optional
        Weights of the rows: a pair counts as the product of its weights, so that a row of weight 2
        counts as two. A row of weight 0 has no say, and goes where the others want it.
    refine : bool, default True
        Whether rows may move. Without it the answer is one of the draws.
    max_rows : int, default 5000
        With more rows than these, draws are compared by the pairs of a random subset of this many
        rows, in time S max_rows^2. Moves are by all pairs, always.
    rng : numpy.random.Generator, optional
        For that subset; by default one with the seed 0.

    Returns
    -------
    int32 ndarray of shape (n,)
        Labels in the order of appearance.

    Notes
    -----
    Two rows that are together in less than half of the draws had better be apart, so a row whose
    draws do not agree may end in a cluster of its own: the answer can have more clusters than
    any draw, some of them tiny.

    No n x n matrix is made. The tables of `refine` need 8 bytes times the number of clusters of
    the answer times the number of clusters of all draws together.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.partitions import point_partition
    >>> point_partition(np.array([[1, 1, 0, 0], [2, 2, 0, 1], [0, 0, 0, 3], [1, 1, 3, 3]])).tolist()
    [0, 0, 1, 1]
    """
    draws = _draws(labels)
    n = draws.shape[1]
    if max_rows < 2:
        raise ValueError(f"max_rows must be at least 2, to hold a pair; got {max_rows}.")
    w = _row_weights(weight, n)
    codes = _compact(draws)
    rows = np.arange(n)
    if n > max_rows:
        rng = np.random.default_rng(0) if rng is None else rng
        rows = np.sort(rng.choice(n, max_rows, replace=False))
    losses = binder.draw_losses(codes[rows], w[rows])
    best = codes[:, losses.argmin()].astype(np.int32)
    return canonical(binder.refine_partition(codes, best, w)) if refine else best


def permutations(labels: Array, pivot: Array, n_labels: int | None = None) -> Array:
    """What to call the clusters of each draw, so that it agrees best with one partition.

    Parameters
    ----------
    labels : integer ndarray of shape (S, n)
        A draw of the labels 0 .. K-1 in each row.
    pivot : integer ndarray of shape (n,)
        The partition to follow, such as the draw of highest joint density.
    n_labels : int, optional
        K; by default the highest label of all plus one.

    Returns
    -------
    int64 ndarray of shape (S, K)
        Entry (s, k) is the new name of k in draw s: the permutation under which most rows of the
        draw have the label of the pivot. Clusters keep their names where it makes no difference.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.partitions import permutations
    >>> permutations(np.array([[2, 2, 0, 1]]), np.array([0, 0, 1, 1]), 4).tolist()
    [[2, 1, 0, 3]]
    """
    draws, pivot = _draws(labels), np.asarray(pivot)
    if pivot.shape != draws.shape[1:]:
        raise ValueError(
            f"pivot must be one label for each of the {draws.shape[1]} rows of labels; got the "
            f"shape {pivot.shape}."
        )
    K = _number_of_labels(draws, pivot, n_labels)
    own = np.eye(K) / (K + 1)  # decides ties only: all of it together is less than one row
    out, to = np.empty((len(draws), K), np.int64), pivot.astype(np.int64)
    for names, z in zip(out, draws.astype(np.int64), strict=True):
        overlap = np.bincount(z * K + to, minlength=K * K).reshape(K, K)
        names[:] = linear_sum_assignment(overlap + own, maximize=True)[1]
    return out


def relabel_draws(labels: Array, pivot: Array, n_labels: int | None = None) -> Array:
    """Draws whose labels were permuted to agree best with one partition.

    Parameters
    ----------
    labels, pivot, n_labels
        See `permutations`, which gives the order for the parameters of the components, too.

    Returns
    -------
    int64 ndarray of shape (S, n)

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.partitions import relabel_draws
    >>> relabel_draws(np.array([[2, 2, 0, 0], [1, 1, 1, 2]]), np.array([0, 0, 1, 1])).tolist()
    [[0, 0, 1, 1], [0, 0, 0, 1]]
    """
    names = permutations(labels, pivot, n_labels)
    return np.take_along_axis(names, np.asarray(labels).astype(np.int64), axis=1)


def sizes_entropy(counts: Array) -> Array:
    """Entropy of cluster sizes: of the label of a row drawn at random, in nats.

    Parameters
    ----------
    counts : ndarray of shape (..., K)
        Rows, or their weight, in each cluster; empty ones do not matter.

    Returns
    -------
    float64 ndarray of shape (...)
        From 0 (one cluster, or no rows) to log K (all of one size).

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.partitions import sizes_entropy
    >>> np.exp(sizes_entropy(np.array([[5, 5, 0], [10, 0, 0]]))).round(12).tolist()
    [2.0, 1.0]
    """
    counts = np.asarray(counts, dtype=np.float64)
    if not (counts >= 0).all():
        raise ValueError(f"counts must not be negative or NaN; the least is {counts.min()}.")
    total = counts.sum(axis=-1, keepdims=True)
    return np.asarray(entr(counts / np.where(total > 0, total, 1.0)).sum(axis=-1))


# ------------------------------------------------------------------ checks


def _draws(labels: Array) -> Array:
    labels = np.asarray(labels)
    if labels.ndim != 2 or labels.size == 0:
        remedy = " Give a single draw as labels[None]." if labels.ndim == 1 else ""
        raise ValueError(
            "labels must have the shape (n_draws, n_rows), neither of them 0; got the shape "
            f"{labels.shape}.{remedy}"
        )
    return labels


def _row_weights(weight: Array | None, n: int) -> Array:
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    if w.shape != (n,):
        raise ValueError(f"weight must be one for each of the {n} rows; got the shape {w.shape}.")
    if not (np.isfinite(w).all() and (w >= 0).all()):
        raise ValueError("weight must be finite and not negative; check it for NaN.")
    return w


def _number_of_labels(draws: Array, pivot: Array, stated: int | None) -> int:
    for name, z in (("labels", draws), ("pivot", pivot)):
        if not np.issubdtype(z.dtype, np.integer):
            raise TypeError(
                f"{name} must be integers; got the dtype {z.dtype}. canonical() makes them so."
            )
        if z.min() < 0:
            raise ValueError(f"{name} must count from 0; got {z.min()}. canonical() makes them so.")
    highest = int(max(draws.max(), pivot.max()))
    if stated is not None and stated <= highest:
        raise ValueError(
            f"n_labels must exceed every label; got {stated}, and there is a label {highest}."
        )
    return highest + 1 if stated is None else stated


def _compact(draws: Array) -> Array:
    """(n, S) canonical labels in the smallest type that holds them: many are compared at once."""
    codes = np.empty(draws.shape, np.uint8)
    for s, z in enumerate(draws):
        names = canonical(z)
        codes = codes.astype(
            np.promote_types(codes.dtype, np.min_scalar_type(int(names.max()))), copy=False
        )
        codes[s] = names
    return np.ascontiguousarray(codes.T)
