"""Documents whose shares of topics are their own, around those of their cluster.

theta_n ~ Dirichlet(s theta_c): a mixture of latent Dirichlet allocations that share their topics,
and as many of them as the documents need. With s = infinity all documents of a cluster have its
shares, which is the model of the paper; there what documents of a kind differ in has to be made up
by more clusters, and no number of them is enough.

The posterior is q(c_n, theta_n) q(z_n): cluster and shares of a document jointly, the topics of its
tokens apart. The shares are integrated out (``math.document_shares``), and what is left is the
tokens of a document by topic, which are remembered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, polygamma, psi

from mixfold.contracts import Array, RowMemory
from mixfold.math.document_shares import own_share_rows
from mixfold.models.topics.lda import SWEEPS, TOL, TopicReading, infer_tokens
from mixfold.models.topics.pcp_records import PCPReading, PCPSums
from mixfold.models.topics.pcp_structured import sums_of_block
from mixfold.models.topics.priors import digamma_rises, largest_prior
from mixfold.models.topics.records import Counts, TopicParams

# sweeps of a document in a pass, if the last pass is remembered
AGAIN = 3
# Least concentration that is learned. Below it documents of a cluster rather have a topic each, any
# of them, than shares that are alike: one cluster then says as much as one for each topic.
LEAST_ALIKE = 1.0
# largest step of ln s
LONGEST = float(np.log(2.0))


@dataclass(frozen=True, slots=True)
class Documents:
    """What is found of the documents of a block: bounds (n,), memberships (n, M), tokens by topic
    (n, K), and the sums of words by topic (D, K), of tables (M, K) and of their slopes in ln s."""

    bounds: Array
    memberships: Array
    tokens: Array
    words: Array
    tables: Array
    bend: float


@dataclass(frozen=True, slots=True)
class OwnShares:
    """Up to ``sweeps`` of a document of which nothing is known, ``again`` of one remembered."""

    sweeps: int = SWEEPS
    again: int = AGAIN
    tol: float = TOL

    def remembers(self, n_clusters: int) -> bool:
        return True

    def prepare(self, reading: PCPReading, start: TopicParams | None) -> PCPReading:
        return reading

    def sums(
        self, reading: PCPReading, counts: Counts, rows: slice, memory: RowMemory | None
    ) -> PCPSums:
        known = None if memory is None else memory.recall(rows)
        found = self.infer(reading, counts, known)
        if memory is not None:
            memory.keep(rows, found.tokens)
        return self.sum_documents(reading, counts, found)

    def sum_documents(self, reading: PCPReading, counts: Counts, found: Documents) -> PCPSums:
        clusters = found.memberships.T @ counts.weight
        sums = sums_of_block(found.words, found.tables, clusters, found.bounds, counts)
        s = reading.concentration
        assert s is not None
        rises = digamma_rises(counts.lengths, s)
        fall = s * (rises + s * (polygamma(1, s + counts.lengths) - polygamma(1, s)))
        w = counts.weight
        return replace(sums, rises=float(w @ rises), bend=found.bend - float(w @ fall))

    def infer(self, reading: PCPReading, counts: Counts, known: Array | None = None) -> Documents:
        """``known`` are tokens by topic of an earlier pass. Without them a document begins with
        those of LDA, by the shares that all clusters together expect."""
        s = reading.concentration
        assert s is not None
        if known is None:
            average = np.exp(reading.log_weights) @ reading.shares
            tokens = infer_tokens(TopicReading(reading.words, s * average / average.sum()), counts)
        else:
            tokens = known.copy()
        logs = reading.levels + np.log(s)
        weights = np.exp(logs)
        memberships = np.empty((len(tokens), len(logs)))
        words, tables = np.zeros(reading.words.shape), np.zeros(logs.shape)
        bounds, bend = own_share_rows(
            counts.indptr, counts.indices, counts.data, counts.weight, reading.words, s,
            reading.log_weights, logs, weights, gammaln(1 + weights) - logs, psi(1 + weights),
            tokens, memberships, words, tables, self.sweeps if known is None else self.again,
            self.tol, known is not None,
        )  # fmt: skip
        words *= reading.words
        return Documents(bounds, memberships, tokens, words, tables, float(bend))


def concentration_step(
    s: float, tables: float, rises: float, most: float, rate: float = 1.0, bend: float = 0.0
) -> float:
    """A step of s from all tables and sum_n psi(s + L_n) - psi(s), to no more than ``most``.

    The tables hold what the bound gains in ln s by the rises of the topics, ``rises`` what it loses
    in s by that of the documents; the first is convex in ln s and the second concave in s, so that
    both tangents are bounds, and where they balance the bound has risen. Where documents are alike
    such steps creep: with ``bend``, the second slope of the bound in ln s, if it is negative, the
    step is Newton's, for given memberships and topics of tokens (of which the best for the new s
    only lift the bound), and at most a factor of two.
    """
    if not s * rises > 0:  # also where the product is below the range of floats
        return s
    step = np.log(max(tables, np.finfo(float).tiny) / (s * rises))
    if bend < 0:
        step = np.clip((tables - s * rises) / -bend, -LONGEST, LONGEST)
    fresh = s * float(np.exp(rate * step))
    return s if most < fresh and s < fresh else max(fresh, LEAST_ALIKE)


def largest_concentration(stats: PCPSums) -> float:
    """Of documents like these."""
    return largest_prior(stats.tokens / stats.documents, stats.centres.shape[1])


def start_with_own_shares(
    by_topic: Array, weight: Array, memberships: Array, given: float | None, steps: int = 20
) -> tuple[float, Array]:
    """Where s begins, the likeliest for tokens by topic (n, K) of documents of known clusters, or
    as ``given``; and the tables of the documents (n, K)."""
    lengths, clusters = by_topic.sum(axis=1), memberships * weight[:, None]
    K = by_topic.shape[1]
    s, tables = float(K) if given is None else given, by_topic
    most = largest_prior(float(weight @ lengths / weight.sum()), K)
    for _ in range(steps):
        centres = clusters.T @ tables + 1.0 / K
        centres /= centres.sum(axis=1, keepdims=True)
        own = s * (memberships @ centres)
        tables = own * (psi(own + by_topic) - psi(own))
        if given is None:
            rises = float(weight @ digamma_rises(lengths, s))
            s = concentration_step(s, float(weight @ tables.sum(axis=1)), rises, most)
    return s, tables
