"""Probabilistic latent semantic indexing: maximum likelihood of documents as mixtures of topics.

P(word j | document n) = sum_k theta_nk topics_kj
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mixfold.contracts import Array, Block, Context, Pilot, RowRandom, Update
from mixfold.math.topic_sweeps import mixture_rows, word_major
from mixfold.models.topics.lda import TopicReading
from mixfold.models.topics.memory import Memory
from mixfold.models.topics.records import Counts, TopicParams, TopicSums, counts_of

# inner steps of a document whose shares were not remembered, and when they end
FOLDS, FOLD_TOL = 100, 1e-5


@dataclass(frozen=True, slots=True)
class FoldReading(TopicReading):
    """Words (D, K), tokens added to each topic of a document, and whether this is the start."""

    first: bool = False


@dataclass(frozen=True, slots=True)
class PLSIModel:
    """``sweeps`` of each document in a pass: with one of them a pass is a step of EM.

    Shares of documents are parameters, too. Where they were not remembered (on another machine, or
    after an interruption) documents are folded in: they have the best shares for the topics, so
    that nothing is lost. ``power`` < 1 is tempered EM, whose likelihood may fall.
    """

    first: TopicParams
    sweeps: int = 1
    tol: float = 0.0
    power: float = 1.0
    memory: Memory = field(default_factory=Memory)

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> TopicParams:
        return self.first

    def prepare(self, params: TopicParams) -> FoldReading:
        words = word_major(params.topics)
        words = words if self.power == 1.0 else words**self.power
        return FoldReading(words, params.prior, params is self.first)

    def expect(self, reading: FoldReading, block: Block, rng: RowRandom) -> TopicSums:
        counts = counts_of(block)
        sums = np.zeros(reading.words.shape)
        shape = (block.n_rows, len(reading.prior))
        theta = self.memory.recall(block.start, shape)
        most, tol = self.sweeps, self.tol
        if theta is None:
            theta = np.full(shape, 1.0 / shape[1])
            if not reading.first:
                most, tol = FOLDS, FOLD_TOL
        before = theta.copy() if reading.prior.any() else theta
        inside, sweeps = fold(reading, counts, theta, sums, most, tol, self.power)
        self.memory.keep(block.start, theta)
        bound = float(inside.sum())
        if reading.prior.any():
            bound += float(counts.weight @ np.log(np.maximum(before, 1e-300)) @ reading.prior)
        none = np.zeros(shape[1] + 1)
        tokens = float(counts.weight @ counts.lengths)
        return TopicSums(sums, none, bound, float(counts.weight.sum()), tokens, float(sweeps))

    def update(
        self, params: TopicParams, stats: TopicSums, context: Context
    ) -> Update[TopicParams]:
        tokens = stats.words.T + params.smoothing
        mass = tokens.sum(axis=1, keepdims=True)
        # a topic that no token wants stays as it is
        topics = np.where(mass > 0, tokens / np.where(mass > 0, mass, 1.0), params.topics)
        used = stats.words.sum(axis=0)
        fresh = TopicParams(
            np.ascontiguousarray(topics),
            params.prior,
            params.smoothing,
            used / max(used.sum(), 1e-300),
        )
        return Update(fresh, monotone=self.power == 1.0)

    def objective(self, params: TopicParams, stats: TopicSums) -> float:
        if params.smoothing == 0:
            return stats.bound
        return stats.bound + params.smoothing * float(np.log(params.topics).sum())

    def total_weight(self, stats: TopicSums) -> float:
        return stats.tokens

    def entropy(self, stats: TopicSums) -> float:
        return 0.0

    def coordinates(self, params: TopicParams) -> Array:
        return params.topics.ravel()

    def from_coordinates(self, params: TopicParams, vector: Array) -> None:
        return None

    def derivatives(self, params: TopicParams, stats: TopicSums) -> None:
        return None


def fold(
    reading: TopicReading, counts: Counts, theta: Array, sums: Array, sweeps: int, tol: float,
    power: float = 1.0,
) -> tuple[Array, int]:  # fmt: skip
    """Shares of documents into ``theta``; see ``mixture_rows``."""
    inside, made = mixture_rows(
        counts.indptr, counts.indices, counts.data, counts.weight, reading.words, theta,
        reading.prior, sums, sweeps, tol, power,
    )  # fmt: skip
    return inside, int(made)
