"""Inner loops over documents that have shares of topics of their own, around those of a cluster.

Cluster m has the weights G_mk = exp E ln(s theta_mk). A document of N_k tokens of each topic k has,
its shares integrated out, ln of the probability of their topics at least

    ln Gamma(s) - ln Gamma(s + L) + sum_k rise(G_mk, N_k),
    rise(G, N) = ln Gamma(G + N) - ln Gamma(G),

since the rise is convex in ln G for every whole N. Only the expectation n of N is known, and the
rise is convex in N too: between whole numbers its chord is the best bound that knows no more, and
it is no less convex in ln G, a mean of two rises. With f whole and f < n <= f + 1 it is

    rise(G, f) + (n - f) ln(G + f),

of slope ln(G + f) in n, and of slope G (psi(G + f) - psi(G)) + (n - f) G / (G + f) in ln G: the
expected tables of the Chinese restaurant of topic k.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math

import numpy as np

from mixfold.contracts import Array
from mixfold.math.compiled import kernel
from mixfold.math.topic_clusters import NONE, TINY
from mixfold.math.topic_sweeps import _copy, _longest, _mass, digamma, log_gamma, trigamma

# tokens that are rounding, above a whole number
ROUNDING = 1e-9
# tokens of a topic below which it has none
NO_TOKENS = 1e-14
# sweeps with all clusters, for a document of which nothing is known
WIDE = 3


@kernel
def _whole(tokens):
    """The whole number f with f < tokens <= f + 1; zero for none."""
    return max(math.ceil(tokens - ROUNDING) - 1.0, 0.0)


@kernel
def _log_probability(tokens, log_weights, weights, starts):
    """sum_k of the bound of rise(G_k, n_k); ``starts`` are ln Gamma(1 + G) - ln G."""
    total = 0.0
    for k in range(tokens.size):
        n = tokens[k]
        if n > NO_TOKENS:
            f = _whole(n)
            if f == 0.0:
                total += n * log_weights[k]
            else:
                g = weights[k]
                total += log_gamma(g + f) - starts[k] + (n - f) * math.log(g + f)
    return total


@kernel
def _score(tokens, length, level, s, log_weights, weights, starts, who, count, score):
    """Shares of the ``count`` clusters ``who`` given tokens by topic; gives their log-sum-exp.

    Clusters that have none are left out of ``who``: the second number is how many are left.
    """
    every = log_gamma(s) - log_gamma(s + length)
    top = -np.inf
    for c in range(count):
        m = who[c]
        score[c] = level[m] + every
        score[c] += _log_probability(tokens, log_weights[m], weights[m], starts[m])
        top = max(top, score[c])
    total = 0.0
    for c in range(count):
        score[c] = math.exp(score[c] - top)
        total += score[c]
    left = 0
    for c in range(count):
        share = score[c] / total
        if share > NONE:
            who[left], score[left] = who[c], share
            left += 1
    return top + math.log(total), left


@kernel
def _expected_slopes(tokens, log_weights, weights, who, score, left, slopes):
    """sum_m psi_m ln(G_mk + f_k): how much a token of each topic is worth."""
    for k in range(tokens.size):
        f, total = _whole(tokens[k]), 0.0
        for c in range(left):
            m = who[c]
            total += score[c] * (log_weights[m, k] if f == 0.0 else math.log(weights[m, k] + f))
        slopes[k] = total


@kernel
def _share_tokens(x, own, slopes, shares, tokens):
    """Tokens by topic for given slopes; gives how far they moved, and what they add to the bound:
    sum_j x_j sum_k phi_jk (ln word_jk - ln phi_jk)."""
    K, top, inside, moved = slopes.size, slopes.max(), 0.0, 0.0
    fresh = np.zeros(K)
    for k in range(K):
        shares[k] = math.exp(slopes[k] - top)
    for e in range(x.size):
        word = own[e]
        mass = max(_mass(word, shares), TINY)
        inside += x[e] * (math.log(mass) + top)
        r = x[e] / mass
        for k in range(K):
            fresh[k] += r * word[k]
    for k in range(K):
        fresh[k] *= shares[k]
        inside -= fresh[k] * slopes[k]
        moved += abs(fresh[k] - tokens[k])
        tokens[k] = fresh[k]
    return moved, inside


@kernel
def _add_words(x, indices, own, weight, shares, sums):
    """Add x_j share_k / mass_j by weight; a factor word_jk is left to the caller."""
    for e in range(x.size):
        r = weight * x[e] / max(_mass(own[e], shares), TINY)
        row = sums[indices[e]]
        for k in range(shares.size):
            row[k] += r * shares[k]


@kernel
def _add_tables(tokens, weights, levels, who, score, left, weight, tables):
    """Add the expected tables of each topic, by weight and share of the cluster; gives the sum of
    their slopes in ln G.

    ``levels`` are psi(1 + G): G (psi(G + f) - psi(G)) = G (psi(G + f) - psi(1 + G)) + 1.
    """
    slope = 0.0
    for k in range(tokens.size):
        n = tokens[k]
        if n > NO_TOKENS:
            f = _whole(n)
            for c in range(left):
                m = who[c]
                if f == 0.0:
                    count = n
                else:
                    g = weights[m, k]
                    more = g * (digamma(g + f) - levels[m, k])
                    count = 1.0 + more + (n - f) * g / (g + f)
                    more += g * g * (trigamma(g + f) - trigamma(1.0 + g))
                    slope += weight * score[c] * (more + (n - f) * g * f / ((g + f) * (g + f)))
                tables[m, k] += weight * score[c] * count
    return slope


@kernel
def own_share_rows(
    indptr: Array, indices: Array, data: Array, weight: Array, words: Array, s: float,
    level: Array, log_weights: Array, weights: Array, starts: Array, levels: Array,
    tokens: Array, memberships: Array, sums: Array, tables: Array, most: int, tol: float,
    known: bool,
) -> tuple[Array, float]:  # fmt: skip
    """Clusters, and tokens by topic, of documents whose shares of topics are their own.

    ``tokens`` (n, K) is where the documents begin and end: a document stops when they move by less
    than ``tol`` on average, or after ``most`` sweeps; ``known`` says that they come from an earlier
    pass. ``level`` (M,) is E ln of the weights of clusters, ``log_weights`` (M, K) is ln G,
    ``starts`` ln Gamma(1 + G) - ln G, ``levels`` psi(1 + G). Memberships (n, M) are set;
    ``sums`` (D, K), but for a factor word_jk, and ``tables`` (M, K) are added to, by weight.
    Returns the bound of each document, and the slope of all tables in ln G.
    """
    bend = 0.0
    n, K = tokens.shape
    M = len(level)
    shares, slopes = np.empty(K), np.empty(K)
    buffer = np.empty((_longest(indptr), K))
    who, score, bounds = np.empty(M, np.int64), np.empty(M), np.zeros(n)
    for i in range(n):
        row = slice(indptr[i], indptr[i + 1])
        x, where = data[row], indices[row]
        t, own, length = tokens[i], buffer[: x.size], data[row].sum()
        _copy(where, words, own)
        inside, left = 0.0, M
        for c in range(M):
            who[c] = c
        log_sum, left = _score(t, length, level, s, log_weights, weights, starts, who, M, score)
        for sweep in range(most if x.size > 0 else 0):
            _expected_slopes(t, log_weights, weights, who, score, left, slopes)
            moved, inside = _share_tokens(x, own, slopes, shares, t)
            if not known and sweep < WIDE:
                left = M
                for c in range(M):
                    who[c] = c
            log_sum, left = _score(
                t, length, level, s, log_weights, weights, starts, who, left, score
            )
            if moved < tol * K:
                break
        bounds[i] = inside + log_sum
        memberships[i] = 0.0
        for c in range(left):
            memberships[i, who[c]] = score[c]
        if weight[i] > 0 and x.size > 0:
            _add_words(x, where, own, weight[i], shares, sums)
            bend += _add_tables(t, weights, levels, who, score, left, weight[i], tables)
    return bounds, bend
