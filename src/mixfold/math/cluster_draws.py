"""Draw the cluster of a row in collapsed Gibbs sampling: an existing one or a new one."""

from __future__ import annotations

import math

import numpy as np

from mixfold.contracts import Array
from mixfold.math.compiled import kernel


@kernel
def draw_cluster(
    scores: Array, counts: Array, own: Array, fresh: float, fresh_mass: float, uniform: float
) -> int:
    """The slot that a row is drawn to, -1 for a new one. ``scores`` is used up and set to zero.

    Parameters
    ----------
    scores : (K,)
        Log predictive of the row under each cluster that has rows.
    counts, own : (K,)
        Rows of each slot, and what its prior adds to them. A slot without rows is open if ``own``
        is positive.
    fresh, fresh_mass : float
        Log predictive under the prior, and the mass of a new cluster.
    uniform : float
        In (0, 1).
    """
    top = -math.inf
    for k in range(counts.size):
        mass = counts[k] + own[k]
        value = -math.inf
        if mass > 0:
            value = (scores[k] if counts[k] > 0 else fresh) + math.log(mass)
        # entries that nothing can produce are in rows without weight
        scores[k] = -math.inf if np.isnan(value) else value
        top = max(top, scores[k])
    newcomer = -math.inf
    if fresh_mass > 0 and not np.isnan(fresh):
        newcomer = fresh + math.log(fresh_mass)
    top = max(top, newcomer)
    if not math.isfinite(top):  # such a row goes by the sizes alone
        top, newcomer = 0.0, math.log(fresh_mass) if fresh_mass > 0 else -math.inf
        for k in range(counts.size):
            mass = counts[k] + own[k]
            scores[k] = math.log(mass) if mass > 0 else -math.inf
    return _draw_by_inversion(scores, top, math.exp(newcomer - top), uniform)


@kernel
def _draw_by_inversion(scores: Array, top: float, newcomer: float, uniform: float) -> int:
    """By inversion, a new cluster standing after the others."""
    total = newcomer
    for k in range(scores.size):
        scores[k] = math.exp(scores[k] - top)
        total += scores[k]
    left, found, last = uniform * total, -1, -1
    for k in range(scores.size):
        if scores[k] > 0 and found < 0:
            last, left = k, left - scores[k]
            if left <= 0:
                found = k
        scores[k] = 0.0
    # rounding may leave a little of the last cluster
    return last if found < 0 and newcomer == 0 else found
