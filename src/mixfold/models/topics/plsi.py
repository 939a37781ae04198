"""Probabilistic latent semantic indexing: maximum likelihood of documents as mixtures of topics.

P(word j | document n) = sum_k theta_nk topics_kj
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array, Block, Context, Pilot, RowMemory, RowRandom, Update
from mixfold.math.topic_sweeps import mixture_rows, word_major
from mixfold.models.topics.lda import TopicReading
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

    Shares of documents are parameters, too, which are remembered. Where they were lost (a
    checkpoint that cannot hold them) documents are folded in: they have the best shares for the
    topics. ``power`` < 1 is tempered EM, whose likelihood may fall.
    """

    remembers_rows: ClassVar[bool] = True

    first: TopicParams
    sweeps: int = 1
    tol: float = 0.0
    power: float = 1.0

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> TopicParams:
        return self.first

    def prepare(self, params: TopicParams) -> FoldReading:
        words = word_major(params.topics)
        words = words if self.power == 1.0 else words**self.power
        return FoldReading(words, params.prior, params is self.first)

    def expect(
        self,
        reading: FoldReading,
        block: Block,
        rng: RowRandom,
        memory: RowMemory | None = None,
    ) -> TopicSums:
        counts = counts_of(block)
        sums = np.zeros(reading.words.shape)
        shape = (block.n_rows, len(reading.prior))
        known = None if memory is None else memory.recall(block.rows)
        theta = np.full(shape, 1.0 / shape[1]) if known is None else known.copy()
        lost = known is None and not reading.first
        most, tol = (FOLDS, FOLD_TOL) if lost else (self.sweeps, self.tol)
        before = theta.copy() if reading.prior.any() else theta
        inside, sweeps = fold(reading, counts, theta, sums, most, tol, self.power)
        if memory is not None:
            memory.keep(block.rows, theta)
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
