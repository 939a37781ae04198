"""Clusters of documents and topics of words: bounds against enumeration, limits, laws."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp, psi

from mixfold.contracts import Block, Context
from mixfold.engine.executors.row_memory import HeldRows, KnownRows
from mixfold.engine.random import RowKeys
from mixfold.models.topics.lda import topic_term
from mixfold.models.topics.pcp import PCPModel
from mixfold.models.topics.pcp_mean_field import MeanField
from mixfold.models.topics.pcp_records import PCPParams, cluster_term, expected_reading
from mixfold.models.topics.pcp_structured import (
    Structured,
    all_clusters,
    statistics_of_listed_clusters,
)
from mixfold.models.topics.priors import prior_step_from_counts, topic_smoothing
from mixfold.models.topics.records import TopicParams, counts_of
from mixfold.testing import Case, laws

TINY = np.array([[2.0, 1, 0], [0, 1, 1], [1, 0, 1]])
INFERENCES = {"structured": Structured, "mean field": lambda: MeanField(sweeps=60)}
inferences = pytest.mark.parametrize("inference", INFERENCES.values(), ids=[*INFERENCES])


def drawn(seed: int, n_clusters: int, n_topics: int, n_features: int, documents: int) -> PCPParams:
    """Parameters somewhere: posteriors that a corpus of so many documents could give."""
    rng = np.random.default_rng(seed)
    prior = rng.uniform(0.3, 1.5, n_topics)
    words = TopicParams(rng.gamma(2.0, size=(n_topics, n_features)) + 0.1, prior, 0.4)
    centres = prior + rng.gamma(1.0, size=(n_clusters, n_topics))
    weights = 1.2 / n_clusters + rng.dirichlet(np.ones(n_clusters)) * documents
    return PCPParams(centres, weights, words, 1.2, n_clusters, np.arange(n_clusters))


def corpus(seed: int, n: int, n_features: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.full(n_features, 0.3), 3)
    return np.array([rng.multinomial(rng.poisson(12), tables[i % 3]) for i in range(n)], float)


def objective(model: PCPModel, params: PCPParams, X: np.ndarray) -> float:
    stats = model.expect(model.prepare(params), Block(X), RowKeys(0))
    return model.objective(params, stats)


# ------------------------------------------------ the exact evidence


def polya(prior: np.ndarray, counts: np.ndarray) -> float:
    """ln of the probability of a sequence with these counts, its shares integrated out."""
    total = gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum())
    return float(total + (gammaln(prior + counts) - gammaln(prior)).sum())


def evidence(X: np.ndarray, params: PCPParams) -> float:
    """ln p(X) by adding up all clusters of documents and all topics of tokens."""
    M, K, D = params.n_clusters, len(params.words.prior), X.shape[1]
    tokens = [(n, j) for n, j in np.argwhere(X > 0) for _ in range(int(X[n, j]))]
    document, word = np.array(tokens).T
    logs = []
    for z in product(range(K), repeat=len(tokens)):
        by_word, by_topic = np.zeros((K, D)), np.zeros((len(X), K))
        np.add.at(by_word, (np.array(z), word), 1.0)
        np.add.at(by_topic, (document, np.array(z)), 1.0)
        of_words = sum(polya(np.full(D, params.words.smoothing), row) for row in by_word)
        for c in product(range(M), repeat=len(X)):
            of_cluster = np.array(c)[:, None] == np.arange(M)
            of_pi = polya(np.full(M, params.alpha / M), of_cluster.sum(axis=0))
            of_topics = sum(polya(params.words.prior, row) for row in of_cluster.T @ by_topic)
            logs.append(of_words + of_pi + of_topics)
    return float(logsumexp(logs))


@pytest.fixture(scope="module")
def exact() -> float:
    return evidence(TINY, drawn(0, 2, 2, 3, 3))


@inferences
def test_bounds_stay_below_the_exact_evidence_and_climb(inference, exact):
    model = PCPModel((drawn(0, 2, 2, 3, 3),), inference(), False, False)
    case = Case(model, TINY)
    params, values = case.start(), []
    for _ in range(40):
        stats = case.stats(params)
        values.append(model.objective(params, stats))
        params = case.update(params, stats).params
    assert np.diff(values).min() > -1e-10
    assert values[-1] < exact
    # two clusters and two topics have four orders, of which the posterior knows one
    assert exact - values[-1] < np.log(4) + 2
    assert values[-1] > values[0] + 0.1


def test_the_evidence_of_one_cluster_and_topic_is_known():
    params = drawn(1, 1, 1, 3, 3)
    pooled = polya(np.full(3, params.words.smoothing), TINY.sum(axis=0))
    assert evidence(TINY, params) == pytest.approx(pooled)
    # q has the right family here: after one step the bound is the evidence
    for inference in (Structured(), MeanField()):
        model = PCPModel((params,), inference, False, False)
        case = Case(model, TINY)
        params = case.update(params, case.stats(params)).params
        assert case.objective(params) == pytest.approx(pooled, abs=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_the_joint_posterior_has_the_better_bound(seed):
    X, params = corpus(seed, 20, 8), drawn(seed, 4, 3, 8, 20)
    joint = objective(PCPModel((params,)), params, X)
    apart = objective(PCPModel((params,), MeanField(sweeps=200)), params, X)
    assert joint > apart
    one = replace(params, centres=params.centres[:1], weights=params.weights.sum(keepdims=True),
                  n_clusters=1, ids=np.arange(1))  # fmt: skip
    # one cluster: nothing to be joint about
    joint = objective(PCPModel((one,)), one, X)
    assert objective(PCPModel((one,), MeanField()), one, X) == pytest.approx(joint)


# ------------------------------------------------ the E step, literally


def test_statistics_are_those_of_a_literal_loop():
    X, params = corpus(3, 9, 6), drawn(3, 4, 3, 6, 9)
    weight = np.random.default_rng(0).uniform(0, 2, 9)
    stats = all_clusters(expected_reading(params), counts_of(Block(X, weight=weight)))
    T = np.exp(psi(params.centres) - psi(params.centres.sum(axis=1, keepdims=True)))
    topics = params.words.topics
    B = np.exp(psi(topics) - psi(topics.sum(axis=1, keepdims=True)))
    level = psi(params.weights) - psi(params.weights.sum())
    words, centres, clusters, bound = np.zeros((6, 3)), np.zeros((4, 3)), np.zeros(4), 0.0
    for x, w in zip(X, weight, strict=True):
        s = [level[m] + sum(x[j] * np.log(T[m] @ B[:, j]) for j in range(6)) for m in range(4)]
        bound += w * logsumexp(s)
        for m in range(4):
            member = w * np.exp(s[m] - logsumexp(s))
            clusters[m] += member
            for j in range(6):
                phi = T[m] * B[:, j] / (T[m] @ B[:, j])
                words[j] += member * x[j] * phi
                centres[m] += member * x[j] * phi
    np.testing.assert_allclose(stats.words, words, rtol=1e-10)
    np.testing.assert_allclose(stats.centres, centres, rtol=1e-10)
    np.testing.assert_allclose(stats.clusters, clusters, rtol=1e-10)
    assert stats.bound == pytest.approx(bound)
    assert (stats.documents, stats.tokens) == pytest.approx((weight.sum(), weight @ X.sum(axis=1)))


def test_independent_posteriors_follow_the_updates_of_the_paper():
    X, params = corpus(4, 7, 5), drawn(4, 3, 2, 5, 7)
    first = np.random.default_rng(1).uniform(0.5, 3, (7, 2))
    memory = HeldRows(0, 7)
    memory.resume(KnownRows(first, np.array([0])))
    model = PCPModel((params,), MeanField(sweeps=2))
    stats = model.expect(model.prepare(params), Block(X), RowKeys(0), memory)
    reading = expected_reading(params)
    words, centres, bound = np.zeros((5, 2)), np.zeros((3, 2)), 0.0
    for x, p in zip(X, first, strict=True):
        for _ in range(2):
            s = reading.levels @ p + reading.log_weights
            member = np.exp(s - logsumexp(s))
            phi = reading.words * np.exp(member @ reading.levels)
            mass = phi.sum(axis=1)
            p = x @ (phi / mass[:, None])
        bound += x @ np.log(mass) + member @ (reading.log_weights - np.log(member))
        centres += np.outer(member, p)
        words += x[:, None] * phi / mass[:, None]
    np.testing.assert_allclose(stats.words, words, rtol=1e-10)
    np.testing.assert_allclose(stats.centres, centres, rtol=1e-10)
    assert stats.bound == pytest.approx(bound)
    memory.accept()
    np.testing.assert_allclose(memory.recall(slice(0, 7)).sum(axis=1), X.sum(axis=1))


# ------------------------------------------------ limits


def settled(params: TopicParams, X: np.ndarray) -> tuple[np.ndarray, float]:
    """Posterior of the topics of each document by LDA, and the bound, but for the topics."""
    a = params.prior
    words = np.exp(psi(params.topics) - psi(params.topics.sum(axis=1, keepdims=True)))
    gamma = np.ones((len(X), len(a)))
    for _ in range(5000):
        e = np.exp(psi(gamma))
        gamma = a + e * ((X / (e @ words)) @ words.T)
    level = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
    bound = (X * np.log(np.exp(level) @ words)).sum() + ((a - gamma) * level).sum()
    bound += len(X) * (gammaln(a.sum()) - gammaln(a).sum())
    return gamma, float(bound - (gammaln(gamma.sum(axis=1)).sum() - gammaln(gamma).sum()))


def test_one_cluster_is_lda_of_all_documents_as_one():
    X, params = corpus(5, 8, 6), drawn(5, 1, 3, 6, 8)
    gamma, bound = settled(params.words, X.sum(axis=0, keepdims=True))
    params = replace(params, centres=gamma, weights=np.array([params.alpha + len(X)]))
    wanted = bound + topic_term(params.words)
    assert objective(PCPModel((params,)), params, X) == pytest.approx(wanted, rel=1e-12)


def test_a_cluster_for_each_document_is_lda_and_a_constant():
    X, params = corpus(6, 8, 6) + np.eye(8, 6), drawn(6, 8, 3, 6, 8)
    gamma, bound = settled(params.words, X)
    each = params.alpha / 8
    params = replace(params, centres=gamma, weights=np.full(8, each + 1))
    own = np.arange(8, dtype=np.int32)[:, None]
    stats = statistics_of_listed_clusters(expected_reading(params), counts_of(Block(X)), own)
    constant = gammaln(params.alpha) - gammaln(params.alpha + 8)
    constant += 8 * (gammaln(each + 1) - gammaln(each))
    assert stats.bound + cluster_term(params) == pytest.approx(bound + constant, rel=1e-12)
    np.testing.assert_allclose(stats.centres + params.words.prior, gamma, rtol=1e-9)


def test_a_cluster_at_its_prior_adds_nothing_and_may_go():
    X, params = corpus(7, 10, 6), drawn(7, 4, 3, 6, 10)
    params.centres[2] = params.words.prior
    params.weights[2] = params.alpha / 4
    kept = np.array([0, 1, 3])
    fewer = replace(params, centres=params.centres[kept], weights=params.weights[kept],
                    ids=params.ids[kept])  # fmt: skip
    assert cluster_term(fewer) == pytest.approx(cluster_term(params), rel=1e-13)
    others = np.tile(kept.astype(np.int32), (10, 1))
    before = statistics_of_listed_clusters(expected_reading(params), counts_of(Block(X)), others)
    after = all_clusters(expected_reading(fewer), counts_of(Block(X)))
    assert after.bound == pytest.approx(before.bound, rel=1e-13)
    np.testing.assert_allclose(after.words, before.words, rtol=1e-9)
    np.testing.assert_allclose(after.centres, before.centres[kept], rtol=1e-9)
    assert not before.centres[2].any()


def test_empty_clusters_are_dropped_and_the_others_keep_their_names():
    X, params = corpus(8, 12, 6), drawn(8, 4, 3, 6, 12)
    model = PCPModel((params,))
    case = Case(model, X)
    stats = case.stats(params)
    stats.clusters[1] = 0.09  # of a document
    update = case.update(params, stats)
    assert update.params.ids.tolist() == [0, 2, 3]
    assert update.params.n_clusters == 4
    assert not update.monotone
    assert [e.kind for e in update.events] == ["pruned"]
    np.testing.assert_allclose(update.params.weights, params.alpha / 4 + stats.clusters[[0, 2, 3]])
    later = case.stats(update.params)
    again = case.update(update.params, later).params
    np.testing.assert_allclose(again.weights, params.alpha / 4 + later.clusters)
    # a stream keeps them: its sums of batches have a place for each
    assert len(case.update(params, stats).params.ids) == 3
    assert len(model.for_batches(100.0).update(params, stats, Context(None, None)).params.ids) == 4


@pytest.mark.parametrize("learn", [True, False])
def test_a_step_of_the_priors_by_hand(learn):
    X, params = corpus(13, 20, 6), drawn(13, 4, 3, 6, 20)
    model = PCPModel((params,), learn_prior=learn, learn_smoothing=learn, patience=2)
    stats = Case(model, X).stats(params)
    early, first, later = (model.update(params, stats, Context(None, None, i)) for i in (2, 3, 4))
    # nothing that was gained before the priors move says how much there is to gain
    assert [step.monotone for step in (early, first, later)] == [not learn, not learn, True]
    assert early.params.words.prior is params.words.prior and early.params.words.smoothing == 0.4
    prior, b = params.words.prior, 0.4
    if learn:
        prior, b = prior_step_from_counts(prior, stats.centres), topic_smoothing(b, stats.words)
    np.testing.assert_allclose(later.params.words.prior, prior)
    assert later.params.words.smoothing == pytest.approx(b)
    np.testing.assert_allclose(later.params.centres, prior + stats.centres)
    np.testing.assert_allclose(later.params.words.topics, b + stats.words.T)


def test_of_many_clusters_only_those_without_documents_are_dropped():
    X, params = corpus(14, 30, 6), drawn(14, 120, 3, 6, 30)
    case = Case(PCPModel((params,)), X)
    stats = case.stats(params)
    stats.clusters[:] = 1.0
    stats.clusters[:3] = 9e-4, 2e-3, 0.09
    assert case.update(params, stats).params.ids.tolist() == [*range(1, 120)]


def test_the_last_cluster_stays_however_light():
    X, params = corpus(9, 5, 6), drawn(9, 1, 2, 6, 5)
    case = Case(PCPModel((params,)), X, weight=np.full(5, 1e-5))
    assert len(case.update(params, case.stats(params)).params.weights) == 1


# ------------------------------------------------ laws

SKIP = {"coordinates round trip": "there is no extrapolation"}


def test_laws_of_models():
    X, params = corpus(10, 60, 8), drawn(10, 4, 3, 8, 60)
    model = PCPModel((params, params), patience=3)
    laws.check_model(Case(model, X, rtol=1e-9), skip=SKIP)
    weight = np.random.default_rng(1).uniform(0, 3, 60)
    laws.check_model(Case(model, X, weight=weight, rtol=1e-9), skip=SKIP)
    sparsely, densely = Case(model, sparse.csr_array(X)).objective(params), Case(model, X)
    assert sparsely == pytest.approx(densely.objective(params), rel=1e-13)


def test_laws_of_independent_posteriors():
    X, params = corpus(11, 60, 8), drawn(11, 4, 3, 8, 60)
    case = Case(PCPModel((params, params), MeanField(), patience=3), X, rtol=1e-9)
    laws.check_model(case, skip=SKIP | {"monotone objective": "without a memory each pass is new"})
