"""Cluster and topics of a document as if they were independent: the updates of the paper.

Kept for comparison. Topics are averaged over clusters before clusters are scored, so that
documents lock into their start; the bound is never above that of the joint posterior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, RowMemory
from mixfold.math.softmax import entropies, normalise
from mixfold.math.topic_clusters import token_rows
from mixfold.math.topic_sweeps import expected_words
from mixfold.models.topics.lda import TopicReading, infer_tokens
from mixfold.models.topics.pcp_records import PCPReading, PCPSums
from mixfold.models.topics.pcp_structured import sums_of_block
from mixfold.models.topics.records import Counts, TopicParams

# times that memberships and topics of a document follow each other in a pass
SWEEPS = 4


@dataclass(frozen=True, slots=True)
class MeanField:
    """``sweeps`` of memberships, then topics, of each document in a pass.

    Remembered of a document: its tokens by topic (K,). In the first pass of a fit they are those
    of LDA, by whose topics it begins; where nothing is known, of all clusters together.
    """

    sweeps: int = SWEEPS

    def remembers(self, n_clusters: int) -> bool:
        return True

    def prepare(self, reading: PCPReading, start: TopicParams | None) -> PCPReading:
        if start is None:
            return reading
        return replace(reading, start=TopicReading(expected_words(start.topics), start.prior))

    def sums(
        self, reading: PCPReading, counts: Counts, rows: slice, memory: RowMemory | None
    ) -> PCPSums:
        by_topic = None if memory is None else memory.recall(rows)
        if by_topic is None:
            by_topic = _first_tokens(reading, counts, memory is not None)
        for _ in range(self.sweeps - 1):
            by_topic = _tokens(reading, counts, _topic_weights(reading, by_topic)[1])[1]
        psi, weights = _topic_weights(reading, by_topic)
        words = np.zeros(reading.words.shape)
        inside, by_topic = _tokens(reading, counts, weights, words)
        if memory is not None:
            memory.keep(rows, by_topic)
        words *= reading.words
        bounds = inside + psi @ reading.log_weights + entropies(psi)
        psi *= counts.weight[:, None]
        return sums_of_block(words, psi.T @ by_topic, psi.sum(axis=0), bounds, counts)


def _first_tokens(reading: PCPReading, counts: Counts, fitted: bool) -> Array:
    """Tokens by topic (n, K) of documents of which nothing is known."""
    if fitted and reading.start is not None:
        return infer_tokens(reading.start, counts)
    average = np.tile(_average(reading), (len(counts.lengths), 1))
    return _tokens(reading, counts, average)[1]


def _average(reading: PCPReading) -> Array:
    """Topics of a document of which nothing is known."""
    return np.asarray(np.exp(reading.log_weights) @ reading.shares)


def _topic_weights(reading: PCPReading, by_topic: Array) -> tuple[Array, Array]:
    """Memberships (n, M) given tokens by topic, and the weights of topics (n, K) given them."""
    _, psi = normalise(by_topic @ reading.levels.T + reading.log_weights)
    return psi, np.exp(psi @ reading.levels)


def _tokens(
    reading: PCPReading, counts: Counts, weights: Array, sums: Array | None = None
) -> tuple[Array, Array]:
    """sum_j x_j ln(word_j . weights) and tokens by topic (n, K); adds to ``sums`` if given."""
    by_topic = np.empty_like(weights)
    share = np.zeros(len(weights)) if sums is None else counts.weight
    sums = np.zeros((1, weights.shape[1])) if sums is None else sums
    inside = token_rows(
        counts.indptr, counts.indices, counts.data, share, reading.words, weights, by_topic, sums,
    )  # fmt: skip
    return inside, by_topic
