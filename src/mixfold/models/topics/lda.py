"""Latent Dirichlet allocation by variational Bayes.

theta_n ~ Dir(prior), each token: z ~ theta_n, word ~ topic_z; topic_k ~ Dir(smoothing).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array, Block, Context, Event, Pilot, RowMemory, RowRandom, Update
from mixfold.math.topic_sweeps import dirichlet_rows, dirichlet_terms, expected_words
from mixfold.models.topics.priors import (
    document_prior,
    largest_prior,
    topic_smoothing,
)
from mixfold.models.topics.records import Counts, TopicParams, TopicSums, counts_of


@dataclass(frozen=True, slots=True)
class TopicReading:
    """Words (D, K) as E ln of the topics has them, and the prior of a document."""

    words: Array
    prior: Array


# inner steps of a document of which nothing is known, and when they end
SWEEPS, TOL = 50, 1e-3


@dataclass(frozen=True, slots=True)
class LDAModel:
    """``first`` is the start. Priors are learned after step ``patience``.

    A document has up to ``sweeps`` inner steps, or ``again`` if the last pass is remembered: the
    topics move too, so that it does not pay to settle it in each pass. Its tokens by topic (K,) are
    remembered.
    """

    remembers_rows: ClassVar[bool] = True

    first: TopicParams
    learn_prior: bool = True
    learn_smoothing: bool = True
    patience: int = 3
    sweeps: int = SWEEPS
    again: int = 3
    tol: float = TOL

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> TopicParams:
        return self.first

    def prepare(self, params: TopicParams) -> TopicReading:
        return TopicReading(expected_words(params.topics), params.prior)

    # ------------------------------------------------ E step

    def expect(
        self,
        reading: TopicReading,
        block: Block,
        rng: RowRandom,
        memory: RowMemory | None = None,
    ) -> TopicSums:
        counts = counts_of(block)
        sums = np.zeros(reading.words.shape)
        shape = (block.n_rows, len(reading.prior))
        known = None if memory is None else memory.recall(block.rows)
        gamma = np.ones(shape) if known is None else known + reading.prior
        most = self.sweeps if known is None else self.again
        inside, sweeps = infer(reading, counts, gamma, sums, most, self.tol)
        if memory is not None:
            # tokens by topic: a step of the prior then takes the posteriors along
            memory.keep(block.rows, gamma - reading.prior)
        rest, logs = terms(gamma, reading.prior, counts.weight)
        bound = float(inside.sum() + counts.weight @ rest)
        tokens = float(counts.weight @ counts.lengths)
        return TopicSums(sums, logs, bound, float(counts.weight.sum()), tokens, float(sweeps))

    # ------------------------------------------------ M step

    def update(
        self, params: TopicParams, stats: TopicSums, context: Context
    ) -> Update[TopicParams]:
        """The posterior of the topics, and a step of their priors.

        In a stream the prior of documents steps by the last batch alone: what was blended is of
        other priors, and would draw it back to them.
        """
        prior, smoothing = params.prior, params.smoothing
        learn = context.iteration > self.patience
        seen = stats if context.batch is None else context.batch
        if learn and self.learn_prior and seen.documents > 0:
            prior = document_prior(prior, seen.logs, seen.documents, _largest(seen), context.rate)
        if learn and self.learn_smoothing:
            smoothing = topic_smoothing(smoothing, stats.words)
        fresh = TopicParams(np.ascontiguousarray(stats.words.T) + smoothing, prior, smoothing)
        held = (
            _prior_held_events(params, fresh, context.iteration)
            if learn and self.learn_prior
            else ()
        )
        # until the priors move, gains say nothing of later ones: no fit ends before
        steady = context.iteration > self.patience + 1
        return Update(
            fresh, held, monotone=steady or not (self.learn_prior or self.learn_smoothing)
        )

    def objective(self, params: TopicParams, stats: TopicSums) -> float:
        """The bound on the log evidence."""
        return stats.bound + topic_term(params)

    def total_weight(self, stats: TopicSums) -> float:
        return stats.tokens

    def entropy(self, stats: TopicSums) -> float:
        return 0.0

    def row_weight(self, stats: TopicSums) -> float:
        return stats.documents

    def additive(self, stats: TopicSums) -> TopicSums:
        return stats

    def for_batches(self) -> LDAModel:
        """The same model for batches of documents: priors move at once."""
        return replace(self, patience=-1)

    def coordinates(self, params: TopicParams) -> Array:
        return np.log(params.topics).ravel()

    def from_coordinates(self, params: TopicParams, vector: Array) -> None:
        return None

    def derivatives(self, params: TopicParams, stats: TopicSums) -> None:
        return None


def infer(
    reading: TopicReading, counts: Counts, gamma: Array, sums: Array, sweeps: int, tol: float
) -> tuple[Array, int]:
    """Posteriors of documents into ``gamma``; see ``dirichlet_rows``."""
    inside, made = dirichlet_rows(
        counts.indptr, counts.indices, counts.data, counts.weight, reading.words, reading.prior,
        gamma, sums, sweeps, tol,
    )  # fmt: skip
    return inside, int(made)


def infer_tokens(reading: TopicReading, counts: Counts) -> Array:
    """Tokens of documents by topic (n, K), of which nothing is known yet."""
    gamma = np.ones((len(counts.lengths), len(reading.prior)))
    infer(reading, counts, gamma, np.zeros(reading.words.shape), SWEEPS, TOL)
    return np.maximum(gamma - reading.prior, 0.0)


def terms(gamma: Array, prior: Array, weight: Array) -> tuple[Array, Array]:
    """What the bounds of documents have besides tokens, and sums; see ``dirichlet_terms``."""
    out, logs = dirichlet_terms(gamma, prior, weight)
    return out, logs


def _largest(stats: TopicSums) -> float:
    """Of the sums of priors of these documents."""
    return largest_prior(stats.tokens / stats.documents, stats.words.shape[1])


def _prior_held_events(before: TopicParams, now: TopicParams, iteration: int) -> tuple[Event, ...]:
    """The same prior again: it would have gone on to infinity."""
    if now.prior is not before.prior or len(now.prior) == 1:
        return ()
    message = (
        "documents hardly differ in their shares of topics: their prior was held at a sum of "
        f"{now.prior.sum():.4g}, many times the words of a document; fewer topics would say as much"
    )
    return (Event("flat", message, iteration),)


def outside(gamma: Array, prior: Array) -> Array:
    """What the bound of a document has besides its tokens: minus KL(Dir(gamma) || Dir(prior))."""
    return terms(gamma, prior, np.ones(len(gamma)))[0]


def topic_term(params: TopicParams) -> float:
    """Minus the divergence of the topics from their prior."""
    K, D = params.topics.shape
    each, _ = terms(params.topics, np.full(D, params.smoothing), np.ones(K))
    return float(each.sum())
