"""Inner loops of topic models over the stored entries of a CSR matrix of counts.

A word's weights in all topics lie side by side, (D, K): a stored entry touches K neighbours. The
topic of a token depends on its word and its document alone, so that a stored entry is visited
once, whatever its count. The words of a document are copied to one place before it is swept.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math

import numpy as np

from mixfold.contracts import Array
from mixfold.math.compiled import kernel, summing_kernel

# below this a product of weights is taken for it: no word is impossible
TINY = 1e-300
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


# ------------------------------------------------ psi and ln Gamma, moved up by six


@kernel
def _recurrence_terms(x):
    """1/x + ... + 1/(x+5), and x (x+1) ... (x+5)."""
    u = x * (x + 5.0)
    product = u * (u + 4.0) * (u + 6.0)
    return (2.0 * x + 5.0) * (3.0 * u * u + 20.0 * u + 24.0) / product, product


@kernel
def _below_log(r):
    """ln y - psi(y) from r = 1 / y, for y > 6."""
    s = r * r
    tail = 1 / 240 - s * (1 / 132 - s * (691 / 32760 - s / 12))
    return 0.5 * r + s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * tail)))


@kernel
def digamma(x):
    """psi(x) for x > 0, to about 1e-13."""
    shift, _ = _recurrence_terms(x)
    return math.log(x + 6.0) - _below_log(1.0 / (x + 6.0)) - shift


@kernel
def trigamma(x):
    """psi'(x) for x > 0, to about 1e-12."""
    total = 0.0
    for i in range(6):
        total += 1.0 / ((x + i) * (x + i))
    r = 1.0 / (x + 6.0)
    s = r * r
    tail = 1 / 42 - s * (1 / 30 - s * (5 / 66 - s * 691 / 2730))
    return total + r + 0.5 * s + r * s * (1 / 6 - s * (1 / 30 - s * tail))


@kernel
def exp_digamma(x):
    """exp psi(x) for x > 0: no logarithm is needed."""
    shift, _ = _recurrence_terms(x)
    return (x + 6.0) * math.exp(-_below_log(1.0 / (x + 6.0)) - shift)


@kernel
def log_gamma(x):
    """ln Gamma(x) for 0 < x < 1e40, to about 1e-13."""
    _, product = _recurrence_terms(x)
    y = x + 6.0
    r = 1.0 / y
    s = r * r
    tail = 1 / 1680 - s * (1 / 1188 - s * (691 / 360360 - s / 156))
    series = r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * tail)))
    return (y - 0.5) * math.log(y) - y + _HALF_LOG_2PI + series - math.log(product)


# ------------------------------------------------ one document


@kernel
def _longest(indptr):
    most = 0
    for i in range(indptr.size - 1):
        most = max(most, indptr[i + 1] - indptr[i])
    return most


@kernel
def _copy(indices, words, own):
    """The words of a document, one after the other."""
    for i in range(indices.size):
        word, place = words[indices[i]], own[i]
        for k in range(place.size):
            place[k] = word[k]


@summing_kernel
def _mass(word, shares):
    total = 0.0
    for k in range(shares.size):
        total += word[k] * shares[k]
    return total


@kernel
def _gather(data, own, shares, out):
    """out_k = sum_j x_j word_jk / (word_j . shares): what the tokens say of the topics."""
    K = shares.size
    for k in range(K):
        out[k] = 0.0
    for i in range(data.size):
        word = own[i]
        r = data[i] / max(_mass(word, shares), TINY)
        for k in range(K):
            out[k] += r * word[k]


@kernel
def _settle(data, weight, indices, own, shares, sums):
    """Add x_j share_k word_jk / mass_j, times the weight, to the sums; gives sum_j x_j ln mass_j.

    mass_j = word_j . shares
    """
    K, total = shares.size, 0.0
    for i in range(data.size):
        word = own[i]
        mass = max(_mass(word, shares), TINY)
        total += data[i] * math.log(mass)
        r = weight * data[i] / mass
        row = sums[indices[i]]
        for k in range(K):
            row[k] += r * word[k] * shares[k]
    return weight * total


@kernel
def _dirichlet_sweeps(x, own, prior, g, shares, said, most, tol):
    """Move the Dirichlet ``g`` of a document until it rests; gives the number of sweeps."""
    K = g.size
    for sweep in range(most):
        for k in range(K):
            shares[k] = exp_digamma(g[k])
        _gather(x, own, shares, said)
        moved = 0.0
        for k in range(K):
            fresh = prior[k] + shares[k] * said[k]
            moved += abs(fresh - g[k])
            g[k] = fresh
        if moved < tol * K:
            return sweep + 1
    return most


@kernel
def _mixture_sweep(x, own, extra, t, shares, said, power):
    """A step of the shares ``t`` of a document; gives how far they moved."""
    K, total, moved = t.size, 0.0, 0.0
    for k in range(K):
        shares[k] = t[k] if power == 1.0 else t[k] ** power
    _gather(x, own, shares, said)
    for k in range(K):
        said[k] = extra[k] + shares[k] * said[k]
        total += said[k]
    for k in range(K):  # no topic has any of the words: nothing is known
        fresh = said[k] / total if total > 0 else 1.0 / K
        moved += abs(fresh - t[k])
        t[k] = fresh
    return moved


# ------------------------------------------------ all documents


@kernel
def dirichlet_rows(
    indptr: Array, indices: Array, data: Array, weight: Array, words: Array, prior: Array,
    gamma: Array, sums: Array, most: int, tol: float,
) -> tuple[Array, int]:  # fmt: skip
    """Posterior Dirichlets of the topics of documents, and what the tokens add to the topics.

    ``gamma`` (n, K) is where the rows begin and where they end; a row stops when it moves by less
    than ``tol`` on average, or after ``most`` sweeps. ``sums`` (D, K) is added to. Returns, for
    each row, sum_j x_j ln sum_k exp(E ln theta_k) word_jk times the weight, and the number of
    sweeps of all rows.
    """
    n, K = gamma.shape
    shares, said = np.empty(K), np.empty(K)
    buffer = np.empty((_longest(indptr), K))
    inside = np.zeros(n)
    sweeps = 0
    for i in range(n):
        row = slice(indptr[i], indptr[i + 1])
        x, where = data[row], indices[row]
        g, own = gamma[i], buffer[: x.size]
        if x.size == 0:
            g[:] = prior
            continue
        _copy(where, words, own)
        sweeps += _dirichlet_sweeps(x, own, prior, g, shares, said, most, tol)
        level = math.exp(-digamma(g.sum()))
        for k in range(K):
            shares[k] = exp_digamma(g[k]) * level
        inside[i] = _settle(x, weight[i], where, own, shares, sums)
    return inside, sweeps


@kernel
def dirichlet_terms(gamma: Array, prior: Array, weight: Array) -> tuple[Array, Array]:
    """Minus KL(Dir(gamma_n) || Dir(prior)) of each row, and sums over rows that priors need.

    The sums (K + 1,) are of psi(gamma_nk) and, last, of psi(sum_k gamma_nk), by weight.
    """
    n, K = gamma.shape
    logs, out = np.zeros(K + 1), np.empty(n)
    start = log_gamma(prior.sum())
    for k in range(K):
        start -= log_gamma(prior[k])
    for i in range(n):
        g = gamma[i]
        total = g.sum()
        level = digamma(total)
        term = start - log_gamma(total)
        for k in range(K):
            psi = digamma(g[k])
            term += log_gamma(g[k]) + (prior[k] - g[k]) * (psi - level)
            logs[k] += weight[i] * psi
        logs[K] += weight[i] * level
        out[i] = term
    return out, logs


@kernel
def mixture_rows(
    indptr: Array, indices: Array, data: Array, weight: Array, words: Array, theta: Array,
    extra: Array, sums: Array, most: int, tol: float, power: float,
) -> tuple[Array, int]:  # fmt: skip
    """Shares of the topics of documents (maximum likelihood), and what the tokens add to topics.

    ``theta`` (n, K) is where the rows begin and where they end: at each sweep theta_k becomes
    proportional to ``extra_k`` plus the tokens of topic k. Sums are those at the shares BEFORE the
    last sweep: with one sweep this is a step of EM. ``power`` < 1 tempers the topics of a token.
    Returns sum_j x_j ln(theta . word_j) of each row at those shares, times the weight, and the
    number of sweeps.
    """
    n, K = theta.shape
    said, shares = np.empty(K), np.empty(K)
    buffer = np.empty((_longest(indptr), K))
    inside = np.zeros(n)
    sweeps = 0
    for i in range(n):
        row = slice(indptr[i], indptr[i + 1])
        x, where = data[row], indices[row]
        t, own = theta[i], buffer[: x.size]
        if x.size == 0:
            t[:] = 1.0 / K
            continue
        _copy(where, words, own)
        for _ in range(most):
            sweeps += 1
            if _mixture_sweep(x, own, extra, t, shares, said, power) < tol:
                break
        inside[i] = _settle(x, weight[i], where, own, shares, sums)
    return inside, sweeps


@kernel
def expected_words(topics: Array) -> Array:
    """exp E ln of the words of Dirichlet topics (K, D), as rows of words (D, K)."""
    K, D = topics.shape
    out = np.empty((D, K))
    for k in range(K):
        scale = math.exp(-digamma(topics[k].sum()))
        for j in range(D):
            out[j, k] = exp_digamma(topics[k, j]) * scale
    return out


@kernel
def digamma_rise(counts: Array, start: float) -> float:
    """Sum of psi(start + c) - psi(start) over all counts; those that are zero add nothing."""
    total, level = 0.0, digamma(start)
    for c in counts.flat:
        if c > 0:
            total += digamma(start + c) - level
    return total


def word_major(topics: Array) -> Array:
    """(K, D) topics as (D, K) rows of words."""
    return np.ascontiguousarray(topics.T)
