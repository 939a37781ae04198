"""With how many clusters a fit begins, where documents have shares of their own.

Two clusters of documents that overlap are no worse than one, as long as the concentration s of
documents around them is what it is; one cluster is better once it is lower. So a fit that begins
with many clusters ends with many, at a lower bound than one that has begun with fewer. Tokens by
topic of LDA take the place of words here: they stay as they are, a step costs little, and clusters
are merged one after the other down to one. The number that had the highest bound is where the fit
begins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block
from mixfold.models.topics.pcp import LEAST_OF_FEW
from mixfold.models.topics.pcp_merges import MOST_CLUSTERS, merge_best_pairs
from mixfold.models.topics.pcp_own_shares import (
    OwnShares,
    concentration_step,
    largest_concentration,
)
from mixfold.models.topics.pcp_records import PCPParams, PCPSums, cluster_term, expected_reading
from mixfold.models.topics.priors import prior_step_from_counts
from mixfold.models.topics.records import Counts, counts_of

# steps after a merger; of the first clusters, and of the best ones
STEPS, FIRST_STEPS = 6, 20
# of many clusters one in so many is merged at a time
SHARE = 10


def begin_with_fewer(
    params: PCPParams, by_topic: Array, weight: Array, learn_prior: bool, learn_concentration: bool
) -> PCPParams:
    """The clusters merged into as many as have the highest bound, for tokens by topic (n, K)."""
    if len(params.weights) > MOST_CLUSTERS:
        return params
    counts = counts_of(Block(sparse.csr_array(by_topic), weight=weight))
    if not counts.weight.any():  # tokens that are too few for floats
        return params
    best, highest, steps = params, -np.inf, FIRST_STEPS
    while True:
        for _ in range(steps):
            stats = _look(params, counts)
            params = _step(params, stats, learn_prior, learn_concentration)
        stats = _look(params, counts)
        bound = stats.bound + cluster_term(params)
        if bound > highest:
            best, highest = params, bound
        size = len(params.weights)
        if size == 1:
            return best
        params, steps = merge_best_pairs(params, stats, max(size // SHARE, 1)), STEPS


def _look(params: PCPParams, counts: Counts) -> PCPSums:
    """One pass over tokens whose topics are known: each topic is a word."""
    reading = replace(expected_reading(params), words=np.eye(len(params.words.prior)))
    found = OwnShares(again=1).infer(reading, counts, counts.matrix.toarray())
    return OwnShares().sum_documents(reading, counts, found)


def _step(
    params: PCPParams, stats: PCPSums, learn_prior: bool, learn_concentration: bool
) -> PCPParams:
    """Empty clusters go, as they do in a fit."""
    prior, s = params.words.prior, params.concentration
    assert s is not None
    kept = stats.clusters >= min(LEAST_OF_FEW, float(stats.clusters.max()))
    if learn_prior:
        prior = prior_step_from_counts(prior, stats.centres[kept])
    if learn_concentration:
        most = largest_concentration(stats)
        tables = float(stats.centres.sum())
        s = concentration_step(s, tables, stats.rises, most, bend=stats.bend)
    return replace(
        params,
        centres=prior + stats.centres[kept],
        weights=params.alpha / params.n_clusters + stats.clusters[kept],
        words=replace(params.words, prior=prior),
        ids=params.ids[kept],
        concentration=s,
    )
