"""Normal-gamma priors: every number of a posterior by quadrature, predictions against scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from mixfold.contracts import Array, Block
from mixfold.families.bayes.normal_gamma import (
    BayesDiagonal,
    BayesSpherical,
    BayesTiedDiagonal,
    BayesTiedSpherical,
)

KINDS = [BayesDiagonal, BayesTiedDiagonal, BayesSpherical, BayesTiedSpherical]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


class Grid:
    """p(mu_1, .., mu_K, lambda, rows) of one column on a grid; everything else is sums over it."""

    def __init__(self, trial: Any, X: Array, resp: Array) -> None:
        mean, beta, nu, scatter = trial.settings()
        scale = float(trial.frame.scale[0])
        self.mu = np.linspace(-12, 12, 241) * scale + float(trial.frame.origin[0])
        self.log_lam = np.linspace(-9, 5, 141) - 2 * np.log(scale)
        lam = np.exp(self.log_lam)
        prior = stats.gamma(nu / 2, scale=2 / float(np.ravel(scatter)[0])).logpdf(lam)
        deviation = lam**-0.5
        of_means = stats.norm(float(mean[0]), deviation / np.sqrt(beta)).logpdf(self.mu[:, None])
        rows = stats.norm(self.mu[:, None], deviation).logpdf(X[:, 0, None, None])
        # components have means of their own: given lambda they are independent
        self.parts = of_means + np.einsum("nk,nml->kml", resp, rows)
        cells = np.log(self.mu[1] - self.mu[0])
        self.by_lam = logsumexp(self.parts, axis=1) + cells  # (K, lambda)
        self.base = prior + self.log_lam + np.log(self.log_lam[1] - self.log_lam[0])
        self.lam = lam

    def evidence(self, which: list[int]) -> float:
        """Of the components ``which`` that share lambda."""
        return float(logsumexp(self.base + self.by_lam[which].sum(axis=0)))

    def of_lambda(self, which: list[int]) -> Array:
        """Posterior probabilities on the grid of lambda."""
        joint = self.base + self.by_lam[which].sum(axis=0)
        return np.asarray(np.exp(joint - logsumexp(joint)))

    def of_mean(self, k: int, which: list[int]) -> Array:
        inner = self.parts[k] - logsumexp(self.parts[k], axis=0)
        return np.asarray(np.exp(inner) @ self.of_lambda(which))


@kinds
def test_posterior_and_evidence_by_quadrature(
    kind: type[Any], trial_of: Callable[..., Any]
) -> None:
    K = 2
    trial = trial_of(kind, n_components=K, n_features=1)
    X, resp = trial.rows(6), trial.shares(6)
    q, grid = trial.posterior(X, resp), Grid(trial, X, resp)
    groups = [[0, 1]] if trial.shared else [[0], [1]]
    evidence = trial.family.evidence(trial.moments(X, resp), trial.prior(), trial.frame)
    assert evidence == pytest.approx(sum(grid.evidence(group) for group in groups), rel=1e-7)
    unit = float(trial.frame.scale[0])
    nu = np.broadcast_to(np.asarray(q.degrees).ravel(), (K,))
    variance = np.broadcast_to(np.asarray(q.scatter).ravel(), (K,)) * unit**2
    for group in groups:
        share = grid.of_lambda(group)
        for k in group:
            law = stats.gamma(nu[k] / 2, scale=2 / (nu[k] * variance[k]))
            assert share @ grid.lam == pytest.approx(law.mean(), rel=1e-6)
            assert share @ grid.lam**2 == pytest.approx(law.moment(2), rel=1e-6)
            of_mean = grid.of_mean(k, group)
            wanted = float(trial.frame.leave(q.means)[k, 0])
            assert of_mean @ grid.mu == pytest.approx(wanted, rel=1e-6)
            spread = variance[k] * nu[k] / (nu[k] - 2) / float(q.precision[k].item())
            assert of_mean @ (grid.mu - wanted) ** 2 == pytest.approx(spread, rel=1e-3)


@kinds
def test_divergence_by_quadrature(kind: type[Any], trial_of: Callable[..., Any]) -> None:
    """KL = E ln q / p on the grid of lambda and the means."""
    trial = trial_of(kind, n_components=1, n_features=1)
    X, resp = trial.rows(6), np.ones((6, 1))
    grid = Grid(trial, X, resp)
    joint = grid.parts[0] + grid.base + np.log(grid.mu[1] - grid.mu[0])
    share = np.exp(joint - logsumexp(joint))
    nothing = Grid(trial, X, np.zeros((6, 1)))
    prior = nothing.parts[0] + nothing.base + np.log(grid.mu[1] - grid.mu[0])
    wanted = float(np.sum(share * (joint - logsumexp(joint) - prior)))
    got = trial.family.kl(trial.posterior(X, resp), trial.prior())
    assert got == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.4], ids=["complete", "with NaN"])
@kinds
def test_predictive_is_student(
    kind: type[Any], missing: float, trial_of: Callable[..., Any]
) -> None:
    trial = trial_of(kind)
    X, resp = trial.rows(12, missing), trial.shares(12)
    q = trial.posterior(X, resp)
    rows = trial.rows(9, missing, seed=7)
    got = trial.family.log_predictive(q, Block(rows, complete=not missing))
    variances = np.diagonal(trial.family.dense(trial.family.point(q)), axis1=1, axis2=2)
    scales = variances * (1 + 1 / q.precision) * trial.frame.scale**2
    degrees = np.asarray(q.degrees)
    if "diag" in kind.name:
        nu = np.broadcast_to(degrees, (3, 3))
        centres = trial.frame.leave(q.means)
        logs = stats.t(nu, centres, np.sqrt(scales)).logpdf(rows[:, None, :])
        np.testing.assert_allclose(got, np.nansum(logs, axis=2), rtol=1e-10)
        return
    nu = np.broadcast_to(degrees.ravel(), (3,))
    for n, x in enumerate(rows):
        seen = np.flatnonzero(~np.isnan(x))
        for k in range(3):
            wanted = 0.0
            if seen.size:
                shape = np.diag(scales[k, seen])
                centre = trial.frame.leave(q.means)[k, seen]
                wanted = stats.multivariate_t(centre, shape, nu[k]).logpdf(x[seen])
            assert got[n, k] == pytest.approx(wanted, rel=1e-10, abs=1e-12)


@kinds
def test_holes_count_apart(kind: type[Any], trial_of: Callable[..., Any]) -> None:
    """The posterior of a column is that of the rows in which it was seen."""
    trial = trial_of(kind)
    X, resp = trial.rows(12, 0.4), trial.shares(12)
    q = trial.posterior(X, resp)
    for d in range(3):
        seen = ~np.isnan(X[:, d])
        count = resp[seen].sum(axis=0)
        np.testing.assert_allclose(q.precision[:, d], 0.7 + count, rtol=1e-12)
        prior_mean = np.asarray(trial.family.mean)[d]
        wanted = (0.7 * prior_mean + resp[seen].T @ X[seen, d]) / (0.7 + count)
        np.testing.assert_allclose(trial.frame.leave(q.means)[:, d], wanted, rtol=1e-10)
    observed = (resp.T @ ~np.isnan(X)).astype(float)
    total = {"diag": observed, "spherical": observed.sum(axis=1)}
    total |= {"tied-diag": observed.sum(axis=0), "tied-spherical": observed.sum()}
    np.testing.assert_allclose(q.degrees - trial.prior().degrees, total[kind.name], rtol=1e-12)


def test_a_diagonal_is_its_columns(trial_of: Callable[..., Any]) -> None:
    """Normal-gamma laws of columns are those of tables of one column."""
    trial = trial_of(BayesDiagonal)
    X, resp = trial.rows(8), trial.shares(8)
    total = 0.0
    for d in range(3):
        mean, scatter = trial.family.mean[[d]], trial.family.scatter[[d]]
        one = trial_of(BayesDiagonal, n_features=1, mean=mean, scatter=scatter, degrees=6.5)
        moments = one.moments(X[:, [d]], resp)
        total += one.family.evidence(moments, one.prior(), one.frame)
    wanted = trial.family.evidence(trial.moments(X, resp), trial.prior(), trial.frame)
    assert total == pytest.approx(wanted, rel=1e-10)
