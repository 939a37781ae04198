"""Cluster and topics of a document in one joint posterior: it has a closed form.

Given a cluster the topics of tokens are independent, so that a document meets a cluster only
through the words of that cluster: no inner loop, and a better bound than independence of cluster
and topics gives. Where clusters are many, a document is compared with all of them now and then,
and with its shortlist in between: a bound over fewer clusters is a bound still.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixfold.contracts import Array, RowMemory
from mixfold.math.softmax import normalise
from mixfold.math.topic_clusters import spread_rows, sum_listed_clusters
from mixfold.models.topics.pcp_records import PCPReading, PCPSums
from mixfold.models.topics.pcp_shortlists import Shortlists
from mixfold.models.topics.records import Counts, TopicParams

# up to so many clusters all are compared with each document in every pass
FEW_CLUSTERS = 200


@dataclass(frozen=True, slots=True)
class Structured:
    """The joint posterior; ``shortlists`` are used where clusters are more than ``few``."""

    few: int = FEW_CLUSTERS
    shortlists: Shortlists = field(default_factory=Shortlists)

    def remembers(self, n_clusters: int) -> bool:
        return n_clusters > self.few

    def prepare(self, reading: PCPReading, start: TopicParams | None) -> PCPReading:
        return reading.with_tables()

    def sums(
        self, reading: PCPReading, counts: Counts, rows: slice, memory: RowMemory | None
    ) -> PCPSums:
        if len(reading.log_weights) <= self.few:
            return all_clusters(reading, counts)
        lists = self.shortlists.current(reading, counts.matrix, rows, memory)
        return statistics_of_listed_clusters(reading, counts, lists)


def all_clusters(reading: PCPReading, counts: Counts) -> PCPSums:
    """Statistics by matrix products: a document may be of any cluster."""
    bounds, psi = normalise(scores(reading, counts.matrix))
    psi *= counts.weight[:, None]
    words, centres = np.zeros(reading.words.shape), np.empty(reading.shares.shape)
    for panel in reading.panels:
        weights, _ = reading.table(panel)
        ratio = np.zeros(weights.shape)
        spread_rows(counts.indptr, counts.indices, counts.data, psi[:, panel], ratio)
        ratio /= weights
        centres[panel] = reading.shares[panel] * (ratio.T @ reading.words)
        words += ratio @ reading.shares[panel]
    words *= reading.words
    return sums_of_block(words, centres, psi.sum(axis=0), bounds, counts)


def statistics_of_listed_clusters(reading: PCPReading, counts: Counts, lists: Array) -> PCPSums:
    """Statistics where document n may be of clusters ``lists[n]`` only; -1 is none."""
    words, centres = np.zeros(reading.words.shape), np.zeros(reading.shares.shape)
    clusters = np.zeros(len(reading.log_weights))
    bounds = sum_listed_clusters(
        counts.indptr, counts.indices, counts.data, counts.weight, reading.words, reading.shares,
        reading.log_weights, lists, words, centres, clusters,
    )  # fmt: skip
    words *= reading.words
    centres *= reading.shares
    return sums_of_block(words, centres, clusters, bounds, counts)


def sums_of_block(
    words: Array, centres: Array, clusters: Array, bounds: Array, counts: Counts
) -> PCPSums:
    """The sums of a block with the bounds (n,) of its documents, each of weight one."""
    documents, tokens = counts.weight.sum(), counts.weight @ counts.lengths
    bound = counts.weight @ bounds
    return PCPSums(words, centres, clusters, float(bound), float(documents), float(tokens))


def scores(reading: PCPReading, X: Any) -> Array:
    """E ln pi_m + sum_j x_j ln P_mj for each document and cluster, (n, M)."""
    out = np.empty((X.shape[0], len(reading.log_weights)))
    for panel in reading.panels:
        out[:, panel] = X @ reading.table(panel)[1]
    out += reading.log_weights
    return out
