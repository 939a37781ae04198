"""How often words occur in the same documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array


def joint_documents(X: Any, columns: Array) -> tuple[Array, int]:
    """Documents that have both of two words, (n, n) with those of one on the diagonal.

    ``columns`` are n columns of the counts X, dense or sparse. The second number is that of all
    documents with a word.
    """
    rows = sparse.csr_array(X)
    used = int((np.asarray((rows > 0).sum(axis=1)).ravel() > 0).sum())
    occurs = sparse.csr_array((rows[:, columns] > 0).astype(np.float64))
    return np.asarray((occurs.T @ occurs).todense()), used


def normalised_information(joint: Array, documents: int) -> Array:
    """ln(p_ij / (p_i p_j)) / -ln p_ij of each pair of words: from -1 (never together) to 1.

    NaN where one of them never occurs.
    """
    p = joint / documents
    single = np.diag(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        npmi = np.log(p / np.outer(single, single)) / -np.log(p)
    npmi[p == 0] = -1.0
    npmi[p == 1] = 1.0
    npmi[single == 0] = np.nan
    npmi[:, single == 0] = np.nan
    return np.asarray(npmi)


def first_words(topics_or_words: Any, n_columns: int, n_words: int) -> list[Array]:
    """Columns of the first words of each topic, from weights or as they are."""
    if n_words < 2:
        raise ValueError(f"n_words must be at least 2, to have a pair of words; got {n_words}.")
    rows = [np.asarray(row) for row in topics_or_words]
    if not rows or any(row.ndim != 1 or row.dtype.kind not in "iuf" for row in rows):
        raise TypeError(
            "topics_or_words must be weights (K, D), or lists of columns of X as integers, one for "
            "each topic. For words as text, look up their columns first."
        )
    if all(row.dtype.kind == "f" and len(row) == n_columns for row in rows):
        return [np.argsort(-row, kind="stable")[:n_words] for row in rows]
    firsts = [row[:n_words] for row in rows]
    for k, row in enumerate(firsts):
        whole = row.dtype.kind in "iu" and len(row) >= 2 and len(set(row.tolist())) == len(row)
        if not whole or row.min() < 0 or row.max() >= n_columns:
            raise ValueError(
                f"topic {k} must be {n_columns} weights, or at least two different columns of X "
                f"from 0 to {n_columns - 1}; got {row.tolist()[:5]}."
            )
    return firsts


def pair_mean(npmi: Array) -> float:
    """Average over pairs of words, without those that are NaN; NaN if there are none."""
    pairs = npmi[np.triu_indices(len(npmi), 1)]
    known = pairs[~np.isnan(pairs)]
    return float(known.mean()) if known.size else float("nan")
