"""Latent Dirichlet allocation against enumeration of all topics of all tokens."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp, psi

from mixfold.contracts import Block, Context
from mixfold.engine.executors.threads import ThreadExecutor
from mixfold.engine.loop import Plan, fit
from mixfold.engine.sources import open_source
from mixfold.models.topics.lda import LDAModel, topic_term
from mixfold.models.topics.priors import (
    document_prior,
    prior_step_from_counts,
    topic_smoothing,
)
from mixfold.models.topics.records import TopicParams, counts_of

TINY = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0], [1.0, 0.0, 1.0]])


def polya(counts: np.ndarray, prior: np.ndarray) -> float:
    """ln of the probability of a sequence with these counts under a Dirichlet-multinomial."""
    total = gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum())
    return float(total + (gammaln(prior + counts) - gammaln(prior)).sum())


def evidence(X: np.ndarray, prior: np.ndarray, smoothing: float) -> float:
    """ln p(X): every topic of every token, topics and shares integrated out."""
    K, D = len(prior), X.shape[1]
    tokens = [(n, j) for n in range(len(X)) for j in range(D) for _ in range(int(X[n, j]))]
    values = []
    for z in itertools.product(range(K), repeat=len(tokens)):
        by_document, by_word = np.zeros((len(X), K)), np.zeros((K, D))
        for (n, j), k in zip(tokens, z, strict=True):
            by_document[n, k] += 1
            by_word[k, j] += 1
        value = sum(polya(row, prior) for row in by_document)
        values.append(value + sum(polya(row, np.full(D, smoothing)) for row in by_word))
    return float(logsumexp(values))


def start(rng: np.random.Generator, X: np.ndarray, K: int, smoothing: float = 0.3) -> TopicParams:
    topics = smoothing + rng.gamma(1.0, size=(K, X.shape[1])) * X.sum() / (K * X.shape[1])
    return TopicParams(topics, rng.uniform(0.2, 1.0, K), smoothing)


def run(model: LDAModel, X, max_iter: int, n_jobs: int = 1):
    plan = Plan(tol=0.0, max_iter=max_iter, n_candidates=1)
    return fit(model, open_source(X), ThreadExecutor(n_jobs), plan)


def test_bound_climbs_below_the_evidence(rng: np.random.Generator) -> None:
    first = start(rng, TINY, 2)
    exact = evidence(TINY, first.prior, first.smoothing)
    result = run(LDAModel(first, False, False), TINY, 60)
    assert (np.diff(result.trace) > -1e-9).all()
    assert (result.trace < exact).all()
    assert result.objective > result.trace[0] + 0.1


def test_bound_with_learned_priors_is_below_the_evidence_there(rng: np.random.Generator) -> None:
    result = run(LDAModel(start(rng, TINY, 2)), TINY, 40)
    params = result.params
    assert result.objective < evidence(TINY, params.prior, params.smoothing)


def test_one_topic_bound_is_the_evidence(rng: np.random.Generator) -> None:
    """With one topic nothing is hidden but its words."""
    first = start(rng, TINY, 1)
    result = run(LDAModel(first, False, False), TINY, 3)
    exact = polya(TINY.sum(axis=0), np.full(3, first.smoothing))
    np.testing.assert_allclose(result.objective, exact, rtol=1e-11)


def test_document_bound_is_the_literal_sum(rng: np.random.Generator) -> None:
    X = rng.poisson(0.8, (5, 6)).astype(float)
    params = start(rng, X, 3)
    model = LDAModel(params, sweeps=3, tol=0.0)
    reading = model.prepare(params)
    stats = model.expect(reading, Block(sparse.csr_array(X)), None)
    total = 0.0
    for x in X[X.sum(axis=1) > 0]:
        g = np.ones(3)
        for _ in range(3):
            p = np.exp(psi(g)) * reading.words
            phi = p / p.sum(axis=1, keepdims=True)
            g = params.prior + x @ phi
        p = np.exp(psi(g)) * reading.words
        phi = p / p.sum(axis=1, keepdims=True)
        level, a = psi(g) - psi(g.sum()), params.prior
        total += float(x @ (phi * (level + np.log(reading.words) - np.log(phi))).sum(axis=1))
        total += gammaln(a.sum()) - gammaln(a).sum() - gammaln(g.sum()) + gammaln(g).sum()
        total += ((a - g) * level).sum()
    np.testing.assert_allclose(stats.bound, total, rtol=1e-10)
    assert stats.documents == (X.sum(axis=1) > 0).sum()
    assert stats.tokens == X.sum()


def test_topic_term_is_minus_a_divergence(rng: np.random.Generator) -> None:
    same = TopicParams(np.full((2, 5), 0.3), np.ones(2), 0.3)
    np.testing.assert_allclose(topic_term(same), 0.0, atol=1e-12)
    assert topic_term(start(rng, np.ones((3, 5)), 2)) < 0


@pytest.mark.parametrize("learn", [True, False])
def test_bounds_never_fall(rng: np.random.Generator, learn: bool) -> None:
    X = rng.poisson(rng.gamma(0.3, size=(60, 1)) * rng.gamma(0.3, size=(1, 30)) * 20)
    X = X[X.sum(axis=1) > 0].astype(float)
    result = run(LDAModel(start(rng, X, 4), learn, learn), X, 80)
    assert (np.diff(result.trace) > -1e-8 * abs(result.objective)).all()
    assert not result.events


def test_blocks_do_not_matter(rng: np.random.Generator) -> None:
    X = sparse.csr_array(rng.poisson(0.5, (50, 20)).astype(float))
    params = start(rng, X.toarray(), 3)
    model = LDAModel(params)
    reading = model.prepare(params)
    whole = model.expect(reading, Block(X), None)
    pieces = [model.expect(reading, Block(X[i : i + 7], i), None) for i in range(0, 50, 7)]
    total = sum(pieces[1:], pieces[0])
    np.testing.assert_allclose(total.words, whole.words, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(total.bound, whole.bound, rtol=1e-12)


# ------------------------------------------------ priors


def documents_of(rng: np.random.Generator) -> np.ndarray:
    return rng.gamma(0.5, 4.0, size=(40, 3))


def total_polya(rows: np.ndarray, prior: np.ndarray) -> float:
    return sum(polya(row, prior) for row in rows)


def test_steps_of_the_document_prior_climb(rng: np.random.Generator) -> None:
    rows, prior = documents_of(rng), np.array([2.0, 0.1, 1.0])
    by_counts = prior
    for _ in range(30):
        gamma = rows + prior
        logs = np.append(psi(gamma).sum(axis=0), psi(gamma.sum(axis=1)).sum())
        fresh = document_prior(prior, logs, len(rows))
        part = document_prior(prior, logs, len(rows), rate=0.5)
        assert total_polya(rows, fresh) >= total_polya(rows, prior) - 1e-9
        assert total_polya(rows, part) >= total_polya(rows, prior) - 1e-9
        by_counts = prior_step_from_counts(by_counts, rows, steps=1)
        np.testing.assert_allclose(fresh, by_counts, rtol=1e-9)
        prior = fresh


def test_steps_of_the_smoothing_climb(rng: np.random.Generator) -> None:
    words = rng.gamma(0.4, 3.0, size=(12, 3))
    words[3] = 0.0
    b, values = 1.5, []
    for _ in range(60):
        values.append(sum(polya(column, np.full(12, b)) for column in words.T))
        b = topic_smoothing(b, words)
    assert (np.diff(values) > -1e-9).all()
    near = [sum(polya(c, np.full(12, b * s)) for c in words.T) for s in (0.95, 1.0, 1.05)]
    assert near[1] > max(near[0], near[2])


def test_priors_that_would_be_infinite_are_held(rng: np.random.Generator) -> None:
    """Documents that are all the same, and words that are all as frequent."""
    X = np.ones((20, 6))
    alike = TopicParams(40 / 6 + rng.uniform(0, 0.1, (3, 6)), np.full(3, 5.0), 0.5)
    result = run(LDAModel(alike), X, 600)
    assert 55 < result.params.prior.sum() <= 60  # ten times the tokens of a document
    assert 300 < 6 * result.params.smoothing <= 10 * 40  # and those of a topic
    last = run(LDAModel(result.params, patience=-1), X, 5)
    np.testing.assert_array_equal(last.params.prior, result.params.prior)
    assert [event.kind for event in result.events] == ["flat"]
    assert "documents hardly differ" in result.events[0].message
    assert (np.diff(result.trace) > -1e-8 * abs(result.objective)).all()
    # of a batch, part of no step
    gamma = np.full((5, 3), 2.0) + result.params.prior
    logs = np.append(psi(gamma).sum(axis=0), psi(gamma.sum(axis=1)).sum())
    held = document_prior(result.params.prior, logs, 5, 60.0, rate=0.5)
    assert held is result.params.prior
    assert document_prior(result.params.prior, logs, 5, rate=0.5).sum() > held.sum()


def test_a_step_of_a_batch_by_hand(rng: np.random.Generator) -> None:
    """Words and smoothing from all that was blended, the prior of documents by the batch."""
    params = start(rng, TINY, 2)
    model = LDAModel(params, patience=0).for_batches()
    batch = model.expect(model.prepare(params), Block(sparse.csr_array(TINY)), None)
    stream = batch.scale(7.0)
    context = Context(None, rng, batch=batch, rate=0.3)
    got = model.update(params, stream, context).params
    b = topic_smoothing(params.smoothing, stream.words)
    assert b != params.smoothing and got.smoothing == b
    np.testing.assert_allclose(got.topics, b + stream.words.T)
    whole = document_prior(params.prior, batch.logs, batch.documents)
    wanted = np.exp(0.7 * np.log(params.prior) + 0.3 * np.log(whole))
    np.testing.assert_allclose(got.prior, wanted)
    kept = LDAModel(params, False, False).for_batches().update(params, stream, context).params
    assert kept.prior is params.prior and kept.smoothing == params.smoothing


# ------------------------------------------------ what is no count


def test_missing_and_negative_counts_are_refused() -> None:
    holed = np.array([[0.0, 1, 0], [2, 0, np.nan], [-1, np.inf, np.nan]])
    where = r"row 6, column 2 \(both counted from 0\)"
    for X in (holed, sparse.csr_array(holed)):
        with pytest.raises(ValueError, match=rf"lacks the entry \(NaN\) of {where}.*put 0"):
            counts_of(Block(X, 5, complete=False))
    with pytest.raises(ValueError, match=r"Negative values in data.*-2 in row 0, column 1"):
        counts_of(Block(np.array([[1.0, -2.0], [np.inf, -3.0]])))
    with pytest.raises(ValueError, match="inf in row 1, column 0"):
        counts_of(Block(np.array([[1.0, 2.0], [np.inf, 3.0]])))
    assert counts_of(Block(np.array([[1.0, 2.0]]), complete=False)).lengths == [3]


def test_update_needs_no_data(rng: np.random.Generator) -> None:
    params = start(rng, TINY, 2)
    model = LDAModel(params, False, False)
    stats = model.expect(model.prepare(params), Block(sparse.csr_array(TINY)), None)
    new = model.update(params, stats, Context(None, rng, 1)).params
    np.testing.assert_allclose(new.topics.sum(), TINY.sum() + 6 * params.smoothing)
