"""pLSI as literal EM, and as a factorisation by the I-divergence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from mixfold.contracts import Block, Context
from mixfold.engine.executors.row_memory import HeldRows
from mixfold.models.topics.lda import TopicReading
from mixfold.models.topics.plsi import PLSIModel, fold
from mixfold.models.topics.records import TopicParams, counts_of


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    X = rng.poisson(1.2, (8, 6)).astype(float)
    X[X.sum(axis=1) == 0, 0] = 1.0
    return X


def stepped(model: PLSIModel, params: TopicParams, X: np.ndarray, memory: HeldRows):
    stats = model.expect(model.prepare(params), Block(sparse.csr_array(X)), None, memory)
    new = model.update(params, stats, Context(None, np.random.default_rng(0), 1)).params
    memory.accept()
    return new, stats, memory.recall(slice(0, len(X)))


def i_divergence(X: np.ndarray, Y: np.ndarray) -> float:
    ratio = np.where(X > 0, X / Y, 1.0)
    return float((X * np.log(ratio) - X + Y).sum())


def test_a_pass_is_a_step_of_em_and_a_joint_multiplicative_step(rng, X: np.ndarray) -> None:
    K, T = 3, X.sum()
    topics = rng.dirichlet(np.ones(6), K)
    first = TopicParams(topics, np.zeros(K), 0.0)
    model, memory = PLSIModel(first), HeldRows(0, len(X))
    theta = np.full((len(X), K), 1 / K)
    params = first
    for _ in range(5):
        new, stats, shares = stepped(model, params, X, memory)
        np.testing.assert_allclose(stats.bound, (X * np.log(theta @ params.topics)).sum())
        # literal EM with the posterior of every token
        phi = theta[:, None, :] * params.topics.T[None]
        phi /= phi.sum(axis=2, keepdims=True)
        em_topics = np.einsum("nj,njk->kj", X, phi)
        em_topics /= em_topics.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(new.topics, em_topics, rtol=1e-11)
        # Z and W both from the old values, as factors of the counts with mass T
        Z, W = theta * X.sum(axis=1, keepdims=True), params.topics
        R = X / (Z @ W)
        nmf_Z = Z * (R @ W.T) / W.sum(axis=1)
        nmf_W = W * (Z.T @ R) / Z.sum(axis=0)[:, None]
        np.testing.assert_allclose(new.topics, nmf_W / nmf_W.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(shares, nmf_Z / nmf_Z.sum(axis=1, keepdims=True))
        # the divergence is the likelihood, up to a constant
        P = (Z @ W) / T
        constant = (X[X > 0] * np.log(X[X > 0])).sum() - T * np.log(T)
        np.testing.assert_allclose(i_divergence(X, Z @ W), constant - (X * np.log(P)).sum())
        theta, params = shares, new


def test_likelihood_climbs_and_margins_agree_at_the_end(rng, X: np.ndarray) -> None:
    params = TopicParams(rng.dirichlet(np.ones(6), 2), np.zeros(2), 0.0)
    model, memory = PLSIModel(params), HeldRows(0, len(X))
    values = []
    for _ in range(400):
        params, stats, theta = stepped(model, params, X, memory)
        values.append(stats.bound)
    assert (np.diff(values) > -1e-9).all()
    Y = (theta * X.sum(axis=1, keepdims=True)) @ params.topics
    np.testing.assert_allclose(Y.sum(axis=0), X.sum(axis=0), rtol=1e-3)
    np.testing.assert_allclose(Y.sum(axis=1), X.sum(axis=1))


@pytest.mark.parametrize("extra", [0.0, 0.5])
def test_penalised_likelihood_climbs(rng, X: np.ndarray, extra: float) -> None:
    params = TopicParams(rng.dirichlet(np.ones(6), 3), np.full(3, extra), 0.2)
    model, memory = PLSIModel(params), HeldRows(0, len(X))
    values = []
    for _ in range(100):
        before = memory.recall(slice(0, len(X)))
        new, stats, _ = stepped(model, params, X, memory)
        values.append(model.objective(params, stats))
        if before is not None:
            literal = (X * np.log(before @ params.topics)).sum() + extra * np.log(before).sum()
            literal += 0.2 * np.log(params.topics).sum()
            assert values[-1] == pytest.approx(literal)
        params = new
    assert (np.diff(values) > -1e-9).all()


def test_folding_in_finds_the_optimum(rng, X: np.ndarray) -> None:
    topics = rng.dirichlet(np.ones(6), 3)
    reading = TopicReading(np.ascontiguousarray(topics.T), np.zeros(3))
    theta = rng.dirichlet(np.ones(3), len(X))  # any start
    counts = counts_of(Block(sparse.csr_array(X)))
    fold(reading, counts, theta, np.zeros((6, 3)), 20000, 1e-13)
    for n, x in enumerate(X):

        def cost(u: np.ndarray, x: np.ndarray = x) -> float:
            p = np.exp(u - u.max())
            return -float(x @ np.log((p / p.sum()) @ topics))

        best = minimize(cost, np.zeros(3), method="Nelder-Mead", options={"maxiter": 4000})
        assert -(x @ np.log(theta[n] @ topics)) <= best.fun + 1e-6


def test_shares_that_were_not_remembered_are_folded_in(rng, X: np.ndarray) -> None:
    """Nothing is lost when a fit goes on elsewhere."""
    params = TopicParams(rng.dirichlet(np.ones(6), 2), np.zeros(2), 0.0)
    model, memory = PLSIModel(params), HeldRows(0, len(X))
    for _ in range(20):
        params, _, _ = stepped(model, params, X, memory)
    _, there, _ = stepped(model, params, X, HeldRows(0, len(X)))
    _, here, _ = stepped(model, params, X, memory)
    assert there.bound >= here.bound - 1e-4 * abs(here.bound)


def test_tempering_by_hand(rng, X: np.ndarray) -> None:
    params = TopicParams(rng.dirichlet(np.ones(6), 2), np.zeros(2), 0.0)
    new, _, _ = stepped(PLSIModel(params, power=0.6), params, X, HeldRows(0, len(X)))
    phi = (0.5 * params.topics.T) ** 0.6
    phi /= phi.sum(axis=1, keepdims=True)
    literal = np.einsum("nj,jk->kj", X, phi)
    np.testing.assert_allclose(new.topics, literal / literal.sum(axis=1, keepdims=True))
