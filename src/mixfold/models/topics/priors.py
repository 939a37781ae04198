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


def topic_smoothing(b: float, words: Array) -> float:
    """A step of the symmetric prior of topics from tokens (D, K) by word and topic.

    It is kept where the step would take it beyond the largest.
    """
    D, K = words.shape
    up = float(digamma_rise(words, b))
    down = D * float((psi(words.sum(axis=0) + D * b) - psi(D * b)).sum())
    fresh = max(b * up / down, LEAST) if down > 0 else b
    return b if largest_prior(float(words.sum()) / K, D) < D * fresh > D * b else fresh
