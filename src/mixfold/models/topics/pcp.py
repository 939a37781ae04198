"""Clusters of documents and topics of words, learned together.

pi ~ Dir(alpha / M), theta_m ~ Dir(prior): a document is of cluster c ~ pi, each of its tokens of
topic z ~ theta_c, its word of topic_z. How cluster and topics of a document are inferred is a
strategy: ``Structured`` (joint) or ``MeanField`` (independent). With ``OwnShares`` a document has
shares of its own, theta_n ~ Dir(s theta_c), from which its tokens have their topics.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from mixfold.contracts import Array, Block, Context, Event, Pilot, RowMemory, RowRandom, Update
from mixfold.models.topics.lda import topic_term
from mixfold.models.topics.pcp_merges import MOST_CLUSTERS, mergers
from mixfold.models.topics.pcp_own_shares import concentration_step, largest_concentration
from mixfold.models.topics.pcp_records import (
    PCPParams,
    PCPReading,
    PCPSums,
    cluster_term,
    expected_reading,
)
from mixfold.models.topics.pcp_structured import Structured
from mixfold.models.topics.priors import prior_step_from_counts, topic_smoothing, weights_prior
from mixfold.models.topics.records import Counts, TopicParams, counts_of

# weight of a cluster below which it is dropped; where clusters are few, of one that is on its way
# out: it gains too little by that for a fit to wait until it is gone
LEAST_WEIGHT, LEAST_OF_FEW = 1e-3, 0.1


class Inference(Protocol):
    """How cluster and topics of a document are found."""

    def remembers(self, n_clusters: int) -> bool:
        """Whether documents are remembered from pass to pass where so many clusters begin."""
        ...

    def prepare(self, reading: PCPReading, start: TopicParams | None) -> PCPReading:
        """What is worth making once per pass; ``start`` are the topics that a fit begins with,
        in its first pass."""
        ...

    def sums(
        self, reading: PCPReading, counts: Counts, rows: slice, memory: RowMemory | None
    ) -> PCPSums:
        """Statistics of the documents ``rows``."""
        ...


@dataclass(frozen=True, slots=True)
class PCPModel:
    """``starts`` are tried in turn; priors are learned after step ``patience``.

    ``total`` documents are what a batch of a stream stands for; then no cluster is dropped.
    """

    starts: tuple[PCPParams, ...]
    inference: Inference = field(default_factory=Structured)
    learn_prior: bool = True
    learn_smoothing: bool = True
    learn_alpha: bool = False
    learn_concentration: bool = False
    patience: int = 10
    total: float | None = None

    @property
    def remembers_rows(self) -> bool:
        return any(self.inference.remembers(len(start.weights)) for start in self.starts)

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> PCPParams:
        return self.starts[attempt]

    def prepare(self, params: PCPParams) -> PCPReading:
        first = any(params is start for start in self.starts)
        return self.inference.prepare(expected_reading(params), params.words if first else None)

    def expect(
        self, reading: PCPReading, block: Block, rng: RowRandom, memory: RowMemory | None = None
    ) -> PCPSums:
        return self.inference.sums(reading, counts_of(block), block.rows, memory)

    def update(self, params: PCPParams, stats: PCPSums, context: Context) -> Update[PCPParams]:
        """Posteriors of clusters and topics, and a step of their priors."""
        kept = np.ones(len(stats.clusters), bool)
        if self.total is None:
            least = LEAST_OF_FEW if len(kept) <= MOST_CLUSTERS else LEAST_WEIGHT
            kept = stats.clusters >= min(least, float(stats.clusters.max()))
        else:
            stats = stats.scale(self.total / stats.documents)
        centres, prior, b = stats.centres[kept], params.words.prior, params.words.smoothing
        alpha, s = params.alpha, params.concentration
        learn = context.iteration > self.patience
        if learn and self.learn_prior:
            prior = prior_step_from_counts(prior, centres)
        if learn and self.learn_smoothing:
            b = topic_smoothing(b, stats.words)
        if learn and self.learn_alpha:
            alpha = weights_prior(alpha, stats.clusters[kept], params.n_clusters)
        if learn and self.learn_concentration:
            s = self._step_concentration(s, stats, context)
        fresh = replace(
            params,
            centres=prior + centres,
            weights=alpha / params.n_clusters + stats.clusters[kept],
            words=TopicParams(np.ascontiguousarray(stats.words.T) + b, prior, b),
            alpha=alpha,
            ids=params.ids[kept],
            concentration=s,
        )
        # until the priors move, gains say nothing of later ones: no fit ends before
        steady = context.iteration > self.patience + 1
        steady = steady or not self._learns
        events = _dropped_cluster_events(kept, context.iteration)
        return Update(fresh, events, monotone=steady and bool(kept.all()))

    @property
    def _learns(self) -> bool:
        return (
            self.learn_prior or self.learn_smoothing or self.learn_alpha or self.learn_concentration
        )

    def _step_concentration(
        self, s: float | None, stats: PCPSums, context: Context
    ) -> float | None:
        """In a stream from the last batch alone: what was blended is of other concentrations."""
        seen = stats if context.batch is None else context.batch
        if s is None or not seen.documents > 0:
            return s
        most = largest_concentration(seen)
        tables = float(seen.centres.sum())
        return concentration_step(s, tables, seen.rises, most, context.rate, seen.bend)

    def moves(
        self, params: PCPParams, stats: PCPSums, pilot: Pilot, rng: np.random.Generator
    ) -> list[PCPParams]:
        """Clusters that are alike, merged."""
        return mergers(params, stats)

    def objective(self, params: PCPParams, stats: PCPSums) -> float:
        """The bound on the log evidence."""
        return stats.bound + cluster_term(params) + topic_term(params.words)

    def total_weight(self, stats: PCPSums) -> float:
        return stats.documents

    def entropy(self, stats: PCPSums) -> float:
        return 0.0

    def row_weight(self, stats: PCPSums) -> float:
        return stats.documents

    def additive(self, stats: PCPSums) -> PCPSums:
        return stats

    def for_batches(self, total: float) -> PCPModel:
        """The same model for batches of a corpus of ``total`` documents."""
        return replace(self, total=total, patience=-1)

    def coordinates(self, params: PCPParams) -> Array:
        return np.log(params.words.topics).ravel()

    def from_coordinates(self, params: PCPParams, vector: Array) -> None:
        return None

    def derivatives(self, params: PCPParams, stats: PCPSums) -> None:
        return None


def _dropped_cluster_events(kept: Array, iteration: int) -> tuple[Event, ...]:
    """Clusters that are not needed go: that is how their number is learned, no cause for worry."""
    lost = int((~kept).sum())
    return (Event("pruned", f"{lost} empty clusters were dropped", iteration),) if lost else ()
