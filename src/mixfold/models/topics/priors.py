"""Steps of the priors: Dirichlet-multinomial likelihoods of soft counts.

Each is Minka's fixed point: it climbs and stays positive. A prior below the least one would make
exp psi underflow.
"""

from __future__ import annotations

import numpy as np
from scipy.special import psi

from mixfold.contracts import Array
from mixfold.math.topic_sweeps import digamma_rise

LEAST = 2e-3
# a prior that outweighs what it is the prior of so many times: what more there were says nothing
OUTWEIGHED = 10.0


def largest_prior(tokens: float, parts: int) -> float:
    """The sum of a prior of ``parts`` numbers, of something that has ``tokens`` on average.

    Where nothing differs the best prior is infinite, and steps towards it never end.
    """
    return OUTWEIGHED * max(tokens, float(parts))


def document_prior(
    prior: Array, logs: Array, documents: float, most: float = np.inf, rate: float = 1.0
) -> Array:
    """A step of a vector prior from sums of psi(gamma_k) and of psi(sum gamma), (K + 1,).

    The prior itself is given back where the step would take its sum beyond ``most``. ``rate`` < 1
    is a part of the step: that of a batch which stands for more documents than it has.
    """
    up = logs[:-1] - documents * psi(prior)
    down = logs[-1] - documents * psi(prior.sum())
    fresh = np.asarray(np.maximum(prior * up / max(down, 1e-300), LEAST))
    if most < fresh.sum() > prior.sum():
        return prior
    return fresh if rate == 1.0 else np.asarray(prior * (fresh / prior) ** rate)


def prior_step_from_counts(prior: Array, rows: Array, steps: int = 5) -> Array:
    """Steps of a vector prior from soft counts (m, K) themselves."""
    totals = rows.sum(axis=1)
    for _ in range(steps):
        up = (psi(rows + prior) - psi(prior)).sum(axis=0)
        down = (psi(totals + prior.sum()) - psi(prior.sum())).sum()
        prior = np.maximum(prior * up / max(down, 1e-300), LEAST)
    return prior


def digamma_rises(counts: Array, start: float) -> Array:
    """psi(start + c) - psi(start) of each count."""
    return np.asarray(psi(start + counts) - psi(start))


def weights_prior(alpha: float, clusters: Array, n_clusters: int, steps: int = 5) -> float:
    """Steps of the concentration alpha of ``n_clusters`` weights from documents by cluster (m,);
    those that are not listed have none.

    The evidence of the soft counts, ln Gamma(alpha) - ln Gamma(alpha + N) + sum_m ln Gamma(alpha/M
    + g_m) - ln Gamma(alpha/M), is bounded as those of the other priors are. Where the weights are
    as even as can be the best alpha is infinite: it is held where it would outweigh the documents.
    """
    total = float(clusters.sum())
    most = OUTWEIGHED * max(total, float(n_clusters))
    for _ in range(steps):
        each = alpha / n_clusters
        up = float(digamma_rises(clusters, each).sum()) / n_clusters
        down = float(digamma_rises(np.array(total), alpha))
        fresh = max(alpha * up / down, LEAST) if down > 0 else alpha
        if most < fresh > alpha:
            break
        alpha = fresh
    return alpha


def topic_smoothing(b: float, words: Array) -> float:
    """A step of the symmetric prior of topics from tokens (D, K) by word and topic.

    It is kept where the step would take it beyond the largest.
    """
    D, K = words.shape
    up = float(digamma_rise(words, b))
    down = D * float((psi(words.sum(axis=0) + D * b) - psi(D * b)).sum())
    fresh = max(b * up / down, LEAST) if down > 0 else b
    return b if largest_prior(float(words.sum()) / K, D) < D * fresh > D * b else fresh
