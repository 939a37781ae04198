"""Inner loops over documents that belong to clusters of shares of topics.

Words come as (D, K), the shares of clusters as (M, K): a stored entry touches K neighbours in each.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math

import numpy as np

from mixfold.contracts import Array
from mixfold.math.compiled import kernel, summing_kernel

# below this a product of weights is taken for it: no word is impossible
TINY = 1e-300
# memberships below this change no sum
NONE = 1e-14


@summing_kernel
def _mass(word, shares):
    total = 0.0
    for k in range(shares.size):
        total += word[k] * shares[k]
    return total


@kernel
def _score(data, indices, words, shares, masses):
    """sum_j x_j ln(word_j . shares); the masses word_j . shares are kept."""
    total = 0.0
    for i in range(data.size):
        mass = max(_mass(words[indices[i]], shares), TINY)
        masses[i] = mass
        total += data[i] * math.log(mass)
    return total


@kernel
def _share_out(data, indices, words, shares, masses, weight, sums, centre):
    """Add what the tokens of one document in one cluster say, but for factors that are common."""
    K = shares.size
    for i in range(data.size):
        r = weight * data[i] / masses[i]
        word, row = words[indices[i]], sums[indices[i]]
        for k in range(K):
            row[k] += r * shares[k]
        for k in range(K):
            centre[k] += r * word[k]


@kernel
def _softmax(score, n):
    """The first n scores become shares; gives their log-sum-exp."""
    top = score[:n].max()
    total = 0.0
    for i in range(n):
        score[i] = math.exp(score[i] - top)
        total += score[i]
    for i in range(n):
        score[i] /= total
    return top + math.log(total)


@kernel
def sum_listed_clusters(
    indptr: Array, indices: Array, data: Array, weight: Array, words: Array, shares: Array,
    log_weights: Array, lists: Array, sums: Array, centres: Array, clusters: Array,
) -> Array:  # fmt: skip
    """Posterior clusters of documents among those listed (positions (n, r), -1 for none).

    Adds to ``sums`` (D, K) sum x_j psi_m shares_m / P_mj, to ``centres`` (M, K) sum x_j psi_m
    word_j / P_mj, with P_mj = word_j . shares_m, and to ``clusters`` (M,) the memberships psi, all
    by weight. Returns the log-sum-exp of the scores of each document.
    """
    n, r = lists.shape
    longest = (indptr[1:] - indptr[:-1]).max() if n else 0
    masses, score, who = np.empty((r, longest)), np.empty(r), np.empty(r, np.int64)
    bounds = np.zeros(n)
    for i in range(n):
        row = slice(indptr[i], indptr[i + 1])
        x, where = data[row], indices[row]
        listed = 0
        for c in range(r):
            m = lists[i, c]
            if m >= 0:
                who[listed] = m
                of_words = _score(x, where, words, shares[m], masses[listed])
                score[listed] = log_weights[m] + of_words
                listed += 1
        bounds[i] = _softmax(score, listed)
        for c in range(listed):
            m, w = who[c], weight[i] * score[c]
            if score[c] > NONE and weight[i] > 0:
                clusters[m] += w
                _share_out(x, where, words, shares[m], masses[c], w, sums, centres[m])
    return bounds


@kernel
def token_rows(
    indptr: Array, indices: Array, data: Array, weight: Array, words: Array, shares: Array,
    by_topic: Array, sums: Array,
) -> Array:  # fmt: skip
    """Tokens of each document by topic for given weights of topics (n, K), into ``by_topic``.

    Adds sum x_j share_k / mass_j, mass_j = word_j . shares, to ``sums`` (D, K), by weight; a factor
    word_jk is left to the caller. Returns sum_j x_j ln mass_j of each document.
    """
    n, K = shares.shape
    inside = np.zeros(n)
    for i in range(n):
        t, out = shares[i], by_topic[i]
        out[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            word = words[indices[e]]
            mass = max(_mass(word, t), TINY)
            r = data[e] / mass
            inside[i] += data[e] * math.log(mass)
            for k in range(K):
                out[k] += r * t[k] * word[k]
            if weight[i] > 0:
                row = sums[indices[e]]
                for k in range(K):
                    row[k] += weight[i] * r * t[k]
    return inside


@kernel
def spread_rows(
    indptr: Array, indices: Array, data: Array, memberships: Array, seen: Array
) -> None:
    """Add x_nj psi_nm to ``seen`` (D, M): tokens of each word by cluster. Most psi are nearly 0."""
    n, M = memberships.shape
    who = np.empty(M, np.int64)
    for i in range(n):
        of = 0
        for m in range(M):
            if memberships[i, m] > NONE:
                who[of] = m
                of += 1
        for e in range(indptr[i], indptr[i + 1]):
            row = seen[indices[e]]
            for c in range(of):
                row[who[c]] += data[e] * memberships[i, who[c]]
