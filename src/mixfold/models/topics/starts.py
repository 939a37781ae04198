"""Where topic models begin: a few steps of pLSI are worth more than many of what follows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from mixfold.contracts import Array, Block, Executor, Source, Stats
from mixfold.math.seeding import distinct, lloyd, plus_plus, squared_distances
from mixfold.math.topic_sweeps import expected_words
from mixfold.models.topics.lda import TopicReading, infer_tokens
from mixfold.models.topics.pcp_own_shares import start_with_own_shares
from mixfold.models.topics.pcp_records import PCPParams
from mixfold.models.topics.records import TopicParams, counts_of

# share of a start that each document gives to clusters other than its own
_SOFT = 0.1
# runs of k-means, of which the best is taken: so many, or fewer where clusters are many
_MOST_TRIES, _MOST_CENTRES = 10, 200
# digits of a share's root that are not rounding
_DIGITS = 9


@dataclass(frozen=True)
class WordSums(Stats):
    """Tokens of each word (D,), documents that are not empty, and documents."""

    words: Array
    documents: float
    rows: float


def count_words(block: Block) -> WordSums:
    """The words of a block; what is not a count is an error."""
    counts = counts_of(block)
    words = np.asarray(counts.matrix.T @ counts.weight, np.float64).ravel()
    return WordSums(words, float(counts.weight.sum()), float(block.n_rows))


def random_topics(words: Array, n_topics: int, rng: np.random.Generator) -> Array:
    """Topics (K, D) that differ by chance alone: frequencies of words, each drawn up or down."""
    topics = rng.gamma(1.0, size=(n_topics, len(words))) * np.maximum(words, 0.0)
    mass = topics.sum(axis=1, keepdims=True)
    return np.asarray(topics / np.where(mass > 0, mass, 1.0))


def dirichlet_topics(topics: Array, tokens: float, prior: Array, smoothing: float) -> TopicParams:
    """Topics of LDA from probabilities: as if the tokens were shared evenly among them."""
    return TopicParams(smoothing + topics * (tokens / len(topics)), prior, smoothing)


def document_topics(params: TopicParams, source: Source, executor: Executor) -> Array:
    """Tokens of each document by topic, (n, K), as LDA infers them."""
    reading = TopicReading(expected_words(params.topics), params.prior)
    return np.concatenate(list(executor.map_rows(partial(_by_topic, reading), source)))


def _by_topic(reading: TopicReading, block: Block) -> Array:
    return infer_tokens(reading, counts_of(block))


def start_clusters(
    by_topic: Array, weight: Array, words: TopicParams, alpha: float, n_clusters: int,
    rng: np.random.Generator, concentration: str | float | None = None,
) -> PCPParams:  # fmt: skip
    """Clusters of documents by their shares of topics; with as many clusters as documents, each one
    its own. ``concentration`` of documents around clusters may be 'learn'."""
    if n_clusters >= len(by_topic):
        psi = np.eye(len(by_topic))
    else:
        psi = memberships(by_topic, weight, n_clusters, rng)
    s = None
    if concentration is not None:
        given = None if isinstance(concentration, str) else float(concentration)
        s, by_topic = start_with_own_shares(by_topic, weight, psi, given)
    psi *= weight[:, None]
    return PCPParams(words.prior + psi.T @ by_topic, alpha / n_clusters + psi.sum(axis=0), words,
                     alpha, n_clusters, np.arange(n_clusters), s)  # fmt: skip


def random_clusters(
    words: TopicParams, tokens: float, documents: float, alpha: float, n_clusters: int,
    rng: np.random.Generator, concentration: str | float | None = None,
) -> PCPParams:  # fmt: skip
    """Clusters of equal size whose shares of topics are drawn evenly from all."""
    K, s = len(words.prior), None
    shares = rng.dirichlet(np.ones(K), n_clusters)
    if concentration is not None:
        s = float(K) if isinstance(concentration, str) else float(concentration)
        tokens = min(tokens, documents * s)
    sizes = np.full(n_clusters, documents / n_clusters)
    return PCPParams(words.prior + shares * (tokens / n_clusters), alpha / n_clusters + sizes,
                     words, alpha, n_clusters, np.arange(n_clusters), s)  # fmt: skip


def memberships(by_topic: Array, weight: Array, n_clusters: int, rng: np.random.Generator) -> Array:
    """Nearly hard clusters by k-means on the roots of shares: Hellinger's distance.

    Centres come from distinct documents in the order of their shares, so that a repeated document
    and one of twice the weight are the same.
    """
    mass = by_topic.sum(axis=1, keepdims=True)
    even = np.full_like(by_topic, 1.0 / by_topic.shape[1])
    roots = np.sqrt(np.where(mass > 0, by_topic / np.where(mass > 0, mass, 1.0), even))
    rows, total, _ = distinct(np.round(roots, _DIGITS), weight, None)
    tries = min(max(_MOST_CENTRES // n_clusters, 1), _MOST_TRIES)
    found = [_k_means(rows, total, n_clusters, rng) for _ in range(tries)]
    centres = min(found, key=lambda one: one[0])[1]
    hard = np.argmin(squared_distances(roots, centres), axis=1)[:, None] == np.arange(n_clusters)
    return np.asarray((1 - _SOFT) * hard + _SOFT / n_clusters)


def _k_means(
    rows: Array, weight: Array, n_clusters: int, rng: np.random.Generator
) -> tuple[float, Array]:
    """What is left of the squares, and the centres."""
    _, centres = lloyd(rows, weight, plus_plus(rows, weight, n_clusters, rng, None), 30, None)
    return float(weight @ squared_distances(rows, centres).min(axis=1)), centres
