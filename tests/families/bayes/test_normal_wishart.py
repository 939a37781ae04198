"""Normal-Wishart priors: the unpacked formulas, scipy's Wishart and Student laws, sampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from mixfold.contracts import Array, Block
from mixfold.families.bayes.normal_gamma import BayesDiagonal, BayesTiedDiagonal
from mixfold.families.bayes.normal_wishart import BayesFull, BayesTied
from mixfold.testing.oracles import conditional_moments, in_data_coordinates

KINDS = [BayesFull, BayesTied]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def _unpacked(trial: Any, X: Array, resp: Array) -> tuple[Array, Array, Array, Array]:
    """beta_k, m_k, nu and W^-1 of all components, in data coordinates, row by row."""
    mean, beta, nu, scatter = trial.settings()
    count = resp.sum(axis=0)
    betas = beta + count
    means = (beta * mean + resp.T @ X) / betas[:, None]
    inverse = []
    for k, r in enumerate(resp.T):
        centre = r @ X / count[k]
        within = sum(w * np.outer(x - centre, x - centre) for w, x in zip(r, X, strict=True))
        pull = beta * count[k] / betas[k] * np.outer(centre - mean, centre - mean)
        inverse.append(within + pull)
    if trial.shared:
        return betas, means, np.array([nu + count.sum()]), (scatter + sum(inverse))[None]
    return betas, means, nu + count, scatter + np.array(inverse)


@kinds
def test_posterior_is_the_textbook_s(kind: type[Any], trial_of: Callable[..., Any]) -> None:
    trial = trial_of(kind)
    X, resp = trial.rows(12), trial.shares(12)
    q = trial.posterior(X, resp)
    betas, means, nu, inverse = _unpacked(trial, X, resp)
    np.testing.assert_allclose(q.precision, betas, rtol=1e-12)
    np.testing.assert_allclose(q.degrees, nu, rtol=1e-12)
    np.testing.assert_allclose(trial.frame.leave(q.means), means, rtol=1e-10)
    got = q.scatter.reshape(inverse.shape) * np.multiply.outer(*(2 * [trial.frame.scale]))
    np.testing.assert_allclose(got, inverse / nu[:, None, None], rtol=1e-9)


@kinds
def test_one_column_is_normal_gamma(kind: type[Any], trial_of: Callable[..., Any]) -> None:
    """And those are checked by quadrature."""
    other = {BayesFull: BayesDiagonal, BayesTied: BayesTiedDiagonal}[kind]
    one = trial_of(kind, n_features=1, scatter=np.array([[2.0]]))
    two = trial_of(other, n_features=1, scatter=np.array([2.0]))
    X, resp = one.rows(9), one.shares(9)
    p, q = one.posterior(X, resp), two.posterior(X, resp)
    np.testing.assert_allclose(p.means, q.means, rtol=1e-12)
    np.testing.assert_allclose(p.scatter.ravel(), q.scatter.ravel(), rtol=1e-12)
    assert one.family.kl(p, one.prior()) == pytest.approx(two.family.kl(q, two.prior()), rel=1e-10)
    evidence = [t.family.evidence(t.moments(X, resp), t.prior(), t.frame) for t in (one, two)]
    assert evidence[0] == pytest.approx(evidence[1], rel=1e-12)
    for name in ("expected", "point"):
        densities = [
            t.family.log_density(Block(X), _read(t, posterior, name))
            for t, posterior in ((one, p), (two, q))
        ]
        np.testing.assert_allclose(*densities, rtol=1e-10)


def _read(trial: Any, posterior: Any, name: str) -> Any:
    family = trial.family
    return (
        family.expected_reading(posterior)
        if name == "expected"
        else family.mode(family.point(posterior))
    )


@kinds
def test_evidence_by_importance_sampling(kind: type[Any], trial_of: Callable[..., Any]) -> None:
    """mean of p(rows | theta) over scipy's draws from the prior, within its standard error."""
    plain = trial_of(kind, n_components=2, n_features=2)
    # a prior that expects such rows: its draws explain them often enough to be averaged
    wide = {
        "mean": plain.frame.leave(np.full(2, 0.5)),
        "scatter": 12 * np.diag(plain.frame.scale**2),
    }
    trial = trial_of(kind, n_components=2, n_features=2, precision=1.0, **wide)
    X, hot = trial.rows(4), np.eye(2)[[0, 1, 1, 0]]
    mean, beta, nu, scatter = trial.settings()
    rng = np.random.default_rng(0)
    n = 25_000
    draws = stats.wishart(nu, np.linalg.inv(scatter)).rvs((n, 2), random_state=rng)
    lambdas = draws.reshape(n, 2, 2, 2)
    if trial.shared:
        lambdas[:, 1] = lambdas[:, 0]
    roots = np.linalg.cholesky(np.linalg.inv(lambdas) / beta)
    mus = mean + np.einsum("skde,ske->skd", roots, rng.standard_normal((n, 2, 2)))
    away = X[None, :, None, :] - mus[:, None]
    squares = np.einsum("snkd,skde,snke->snk", away, lambdas, away)
    logs = 0.5 * (np.linalg.slogdet(lambdas)[1][:, None] - squares) - np.log(2 * np.pi)
    likelihood = np.einsum("nk,snk->s", hot, logs)
    top = likelihood.max()
    shares = np.exp(likelihood - top)
    error = shares.std() / shares.mean() / np.sqrt(n)
    assert error < 0.05
    got = trial.family.evidence(trial.moments(X, hot), trial.prior(), trial.frame)
    assert abs(got - (np.log(shares.mean()) + top)) < 6 * error


@pytest.mark.parametrize("missing", [0.0, 0.4], ids=["complete", "with NaN"])
@kinds
def test_predictive_is_student(
    kind: type[Any], missing: float, trial_of: Callable[..., Any]
) -> None:
    """Of the entries that are there: the marginal of the joint law."""
    trial = trial_of(kind)
    X, resp = trial.rows(12), trial.shares(12)
    q = trial.posterior(X, resp)
    betas, means, nu, inverse = _unpacked(trial, X, resp)
    rows = trial.rows(9, missing, seed=7)
    got = trial.family.log_predictive(q, Block(rows, complete=not missing))
    for k in range(3):
        own = 0 if trial.shared else k
        df = nu[own] - 2
        shape = inverse[own] * (1 + betas[k]) / (betas[k] * df)
        for n, x in enumerate(rows):
            seen = np.flatnonzero(~np.isnan(x))
            wanted = 0.0
            if seen.size:
                part = shape[np.ix_(seen, seen)]
                wanted = stats.multivariate_t(means[k, seen], part, df).logpdf(x[seen])
            assert got[n, k] == pytest.approx(wanted, rel=1e-9, abs=1e-11)


@kinds
def test_predictive_is_the_average_over_draws(
    kind: type[Any], trial_of: Callable[..., Any]
) -> None:
    trial = trial_of(kind)
    q = trial.posterior(trial.rows(12), trial.shares(12))
    rows, rng = Block(trial.rows(4, seed=9)), np.random.default_rng(2)
    logs = np.array(
        [
            trial.family.log_density(rows, trial.family.mode(trial.family.draw(q, rng)))
            for _ in range(600)
        ]
    )
    got = trial.family.log_predictive(q, rows)
    mean = logsumexp(logs, axis=0) - np.log(len(logs))
    error = np.exp(logs - mean).std(axis=0) / np.sqrt(len(logs))
    assert (np.abs(mean - got) < 6 * error + 1e-6).all()


@kinds
def test_draws_are_wishart(kind: type[Any], trial_of: Callable[..., Any]) -> None:
    """u' Lambda u / u' W u is chi-squared with the degrees of freedom, for any u."""
    trial = trial_of(kind)
    q = trial.posterior(trial.rows(12), trial.shares(12))
    rng = np.random.default_rng(5)
    drawn = [trial.family.draw(q, rng).scatter for _ in range(1500)]
    lambdas = np.linalg.inv(np.array(drawn).reshape(1500, -1, 3, 3))
    W = np.linalg.inv(q.scatter.reshape(-1, 3, 3)) / q.degrees[:, None, None]
    for u in (np.array([1.0, 0, 0]), np.array([0.3, -2.0, 1.0])):
        ratio = np.einsum("d,skde,e->sk", u, lambdas, u) / np.einsum("d,kde,e->k", u, W, u)
        for k, nu in enumerate(q.degrees):
            assert stats.kstest(ratio[:, k], stats.chi2(nu).cdf).pvalue > 1e-4


@kinds
def test_holes_are_filled_as_the_reading_sees_them(
    kind: type[Any], trial_of: Callable[..., Any]
) -> None:
    """E[x_m] = m_m - W_mm^-1 W_mo (x_o - m_o), Cov = (nu W_mm)^-1: the posterior of full rows."""
    trial = trial_of(kind)
    q = trial.posterior(trial.rows(12), trial.shares(12))
    family = trial.family
    X, resp = trial.rows(10, 0.4, seed=2), trial.shares(10)
    X, resp = X[~np.isnan(X).all(axis=1)], resp[~np.isnan(X).all(axis=1)]
    reading = family.expected_reading(q)
    moments = family.moments(family.scores(Block(X, complete=False), reading), resp, reading)
    got = family.posterior(moments, trial.prior(), trial.frame)
    means, covariances = in_data_coordinates(family, family.point(q))
    mean, beta, nu, scatter = trial.settings()
    second, first = np.zeros((3, 3, 3)), np.zeros((3, 3))
    for k in range(3):
        for x, r in zip(X, resp[:, k], strict=True):
            filled, left = conditional_moments(x, means[k], covariances[k])
            first[k] += r * (filled - mean)
            second[k] += r * (np.outer(filled - mean, filled - mean) + left)
    count = resp.sum(axis=0)
    pulled = first / (beta + count)[:, None]
    parts = second - (beta + count)[:, None, None] * pulled[:, :, None] * pulled[:, None]
    inverse = scatter + (parts.sum(axis=0)[None] if trial.shared else parts)
    total = nu + (count.sum(keepdims=True) if trial.shared else count)
    np.testing.assert_allclose(trial.frame.leave(got.means), mean + pulled, rtol=1e-9)
    unit = np.multiply.outer(trial.frame.scale, trial.frame.scale)
    np.testing.assert_allclose(
        got.scatter.reshape(inverse.shape) * unit, inverse / total[:, None, None], rtol=1e-8
    )
