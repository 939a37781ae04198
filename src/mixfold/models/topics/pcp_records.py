"""Parameters of clusters and topics, what is summed over documents, what an E step reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, psi

from mixfold.contracts import Array, NotNegative, Stats, record
from mixfold.math.dirichlet import expected_log, log_beta
from mixfold.models.topics.lda import TopicReading
from mixfold.models.topics.records import TopicParams

# clusters whose words are worked on at a time
PANEL = 256
# entries of tables of words by cluster that are made once per pass, not once per block
KEPT_ENTRIES = 2**21


@record
@dataclass(frozen=True, slots=True)
class PCPParams:
    """Posterior Dirichlets of the topics of clusters (M, K), of the clusters (M,) and of topics.

    ``words`` holds topics, the prior of a cluster's topics and the smoothing. Clusters that were
    dropped have left ``n_clusters``, the number that alpha is divided by; ``ids`` (M,) says which
    of the first ones the others are. ``concentration`` is that of the shares of documents around
    those of their cluster; None: they are those of the cluster.
    """

    centres: NotNegative
    weights: NotNegative
    words: TopicParams
    alpha: float
    n_clusters: int
    ids: Array
    concentration: float | None = None

    def __post_init__(self) -> None:
        if self.concentration is not None and not self.concentration > 0:
            raise ValueError(f"a concentration is positive, got {self.concentration}")

    def order_by_size(self) -> PCPParams:
        """The same, largest cluster first."""
        order = np.argsort(-self.weights, kind="stable")
        return replace(self, centres=self.centres[order], weights=self.weights[order],
                       ids=self.ids[order])  # fmt: skip


@record
@dataclass(frozen=True)
class PCPSums(Stats):
    """Tokens of each word by topic (D, K), of each cluster by topic (M, K), documents (M,).

    ``bound`` is the part of the bound that documents have; ``documents`` and ``tokens`` are
    weights. Where documents have their own shares, ``centres`` are the tables of each cluster by
    topic, ``rises`` sum psi(s + L_n) - psi(s) over documents of L_n tokens, and ``bend`` is the
    second slope of the bound in ln s.
    """

    words: Array
    centres: Array
    clusters: Array
    bound: float
    documents: float
    tokens: float
    rises: float = 0.0
    bend: float = 0.0


@dataclass(frozen=True, slots=True)
class PCPReading:
    """E ln of the topics of clusters (M, K) and its exp, exp E ln of the words of topics as (D, K),
    E ln pi (M,), and which clusters these are. ``start`` is how LDA reads the topics that a fit
    begins with, in its first pass, where that is asked for. ``concentration`` as in the
    parameters."""

    levels: Array
    shares: Array
    words: Array
    log_weights: Array
    ids: Array
    tables: tuple[tuple[Array, Array], ...] = ()
    start: TopicReading | None = None
    concentration: float | None = None

    @property
    def panels(self) -> list[slice]:
        size = len(self.log_weights)
        return [slice(m, min(m + PANEL, size)) for m in range(0, size, PANEL)]

    def table(self, panel: slice) -> tuple[Array, Array]:
        """Weights of the words in some clusters, (D, panel), and their logarithms."""
        if self.tables:
            return self.tables[panel.start // PANEL]
        weights = np.maximum(self.words @ self.shares[panel].T, 1e-300)
        return weights, np.log(weights)

    def with_tables(self) -> PCPReading:
        """The same, with all tables where they are small."""
        if len(self.log_weights) * len(self.words) > KEPT_ENTRIES:
            return self
        return replace(self, tables=tuple(self.table(panel) for panel in self.panels))


def expected_reading(params: PCPParams) -> PCPReading:
    """What the E step reads: expectations of logarithms."""
    levels = expected_log(params.centres)
    words = np.ascontiguousarray(np.exp(expected_log(params.words.topics)).T)
    return PCPReading(
        levels, np.exp(levels), words, log_weights(params), params.ids,
        concentration=params.concentration,
    )  # fmt: skip


def log_weights(params: PCPParams) -> Array:
    """E ln pi of the clusters that are left; those that were dropped have their prior."""
    lost = (params.n_clusters - len(params.weights)) * params.alpha / params.n_clusters
    return np.asarray(psi(params.weights) - psi(params.weights.sum() + lost))


def cluster_term(params: PCPParams) -> float:
    """Minus the divergences of clusters and of their topics from the priors.

    A cluster at its prior, as those that were dropped, adds nothing.
    """
    each, prior = params.alpha / params.n_clusters, params.words.prior
    eta, level = params.weights, log_weights(params)
    documents = float((eta - each).sum())
    of_pi = gammaln(params.alpha) - gammaln(params.alpha + documents) + float(
        (gammaln(eta) - gammaln(each) - (eta - each) * level).sum()
    )  # fmt: skip
    inside = expected_log(params.centres)
    of_centres = log_beta(params.centres) - log_beta(prior)
    of_centres += ((prior - params.centres) * inside).sum(axis=1)
    return float(of_pi + of_centres.sum())
