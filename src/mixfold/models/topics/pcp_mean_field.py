"""Cluster and topics of a document as if they were independent: the updates of the paper.

Kept for comparison. Topics are averaged over clusters before clusters are scored, so that
documents lock into their start; the bound is never above that of the joint posterior.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.math.softmax import entropies, normalise
from mixfold.math.topic_clusters import token_rows
from mixfold.models.topics.pcp_records import PCPReading, PCPSums
from mixfold.models.topics.pcp_structured import sums_of_block
from mixfold.models.topics.records import Counts

# times that memberships and topics of a document follow each other in a pass
SWEEPS = 4


class DocumentTopics:
    """Tokens of documents by topic (n, K), by the first row of a block: where a pass begins.

    ``starts`` are those of each start of a fit. They are left behind when a model travels: a pass
    then begins with the topics of all clusters together.
    """

    def __init__(self, starts: tuple[dict[int, Array], ...] = ()) -> None:
        self._starts = starts
        self._rows: dict[int, Array] = {}

    def begin(self, attempt: int) -> None:
        self._rows = dict(self._starts[attempt]) if self._starts else {}

    def recall(self, start: int, shape: tuple[int, int]) -> Array | None:
        known = self._rows.get(start)
        return known if known is not None and known.shape == shape else None

    def keep(self, start: int, rows: Array) -> None:
        self._rows[start] = rows

    def __getstate__(self) -> dict[str, Any]:
        return {"_starts": (), "_rows": {}}


@dataclass(frozen=True, slots=True)
class MeanField:
    """``sweeps`` of memberships, then topics, of each document in a pass."""

    topics: DocumentTopics = field(default_factory=DocumentTopics)
    sweeps: int = SWEEPS

    def begin(self, attempt: int) -> None:
        self.topics.begin(attempt)

    def prepare(self, reading: PCPReading) -> PCPReading:
        return reading

    def sums(self, reading: PCPReading, counts: Counts, start: int) -> PCPSums:
        shape = (len(counts.lengths), reading.shares.shape[1])
        by_topic = self.topics.recall(start, shape)
        if by_topic is None:
            by_topic = _tokens(reading, counts, np.tile(_average(reading), (shape[0], 1)))[1]
        for _ in range(self.sweeps - 1):
            by_topic = _tokens(reading, counts, _topic_weights(reading, by_topic)[1])[1]
        psi, weights = _topic_weights(reading, by_topic)
        words = np.zeros(reading.words.shape)
        inside, by_topic = _tokens(reading, counts, weights, words)
        self.topics.keep(start, by_topic)
        words *= reading.words
        bounds = inside + psi @ reading.log_weights + entropies(psi)
        psi *= counts.weight[:, None]
        return sums_of_block(words, psi.T @ by_topic, psi.sum(axis=0), bounds, counts)


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
