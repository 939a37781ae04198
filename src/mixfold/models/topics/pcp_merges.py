"""Clusters that say the same, made one: they would empty by themselves, but slowly.

Two clusters of one kind of documents share them in any proportion at nearly the same bound, so
that a fit crosses a plateau before one of them is empty. What a merger is worth is the evidence of
the soft counts of the two as one, against that of each for itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import gammaln

from mixfold.contracts import Array
from mixfold.models.topics.pcp_records import PCPParams, PCPSums

# more clusters than these are not compared in pairs
MOST_CLUSTERS = 100


def mergers(params: PCPParams, stats: PCPSums) -> list[PCPParams]:
    """Parameters with clusters merged: all that should be, then the best pair alone."""
    if not 1 < len(stats.clusters) <= MOST_CLUSTERS:
        return []
    groups = [[m] for m in range(len(stats.clusters))]
    centres, clusters = list(stats.centres), list(stats.clusters)
    found = []
    while len(groups) > 1:
        gains = _gains(np.array(centres), np.array(clusters), params)
        a, b = np.unravel_index(int(np.argmax(gains)), gains.shape)
        if gains[a, b] <= 0:
            break
        for rows in (groups, centres, clusters):
            rows[a] = rows[a] + rows[b]
            del rows[b]
        found.append(_merge_groups(params, np.array(centres), np.array(clusters), groups))
    return [*found[-1:], *found[:1]] if len(found) > 1 else found


def merge_best_pairs(params: PCPParams, stats: PCPSums, pairs: int) -> PCPParams:
    """So many pairs of clusters merged that gain most by it, or lose least; no cluster twice."""
    gains = _gains(stats.centres, stats.clusters, params)
    groups = {m: [m] for m in range(len(gains))}
    for _ in range(pairs):
        a, b = (int(m) for m in np.unravel_index(int(np.argmax(gains)), gains.shape))
        groups[a].extend(groups.pop(b))
        gains[[a, b]] = gains[:, [a, b]] = -np.inf
    own = [*groups.values()]
    centres = np.array([stats.centres[group].sum(axis=0) for group in own])
    clusters = np.array([stats.clusters[group].sum() for group in own])
    return _merge_groups(params, centres, clusters, own)


def _merge_groups(params: PCPParams, centres: Array, clusters: Array, groups: list[list[int]]
            ) -> PCPParams:  # fmt: skip
    """Each group goes by the name of its first cluster; the others are at their prior."""
    return replace(
        params,
        centres=params.words.prior + centres,
        weights=params.alpha / params.n_clusters + clusters,
        ids=params.ids[[group[0] for group in groups]],
    )


def _gains(centres: Array, clusters: Array, params: PCPParams) -> Array:
    """ln of what the evidence of two clusters gains if they are one, (M, M); -inf where a >= b."""
    prior, each = params.words.prior, params.alpha / params.n_clusters
    alone = _evidence(centres, prior) + gammaln(each + clusters) - gammaln(each)
    gains = np.full((len(clusters), len(clusters)), -np.inf)
    for a in range(len(clusters) - 1):
        rest = slice(a + 1, None)
        together = _evidence(centres[a] + centres[rest], prior)
        together += gammaln(each + clusters[a] + clusters[rest]) - gammaln(each)
        gains[a, rest] = together - alone[a] - alone[rest]
    return gains


def _evidence(counts: Array, prior: Array) -> Array:
    """ln of the probability of tokens by topic (m, K) of clusters, their shares integrated out."""
    totals = gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum(axis=1))
    return np.asarray(totals + (gammaln(prior + counts) - gammaln(prior)).sum(axis=1))
