"""The number of parameters of mixtures is the rank of the Jacobian of densities written down here,
with free weights and with fixed ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from mixfold import Mixture

D, N = 3, 200


def covariance(t: np.ndarray, size: int = D) -> np.ndarray:
    root = np.zeros((size, size))
    root[np.tril_indices(size)] = t
    return root @ root.T + 0.05 * np.eye(size)


def normal(x: np.ndarray, mean: Any, cov: np.ndarray) -> np.ndarray:
    return np.asarray(stats.multivariate_normal(mean, cov).logpdf(x))


def dirichlet(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    a = np.exp(t)
    return gammaln(a.sum()) - gammaln(a).sum() + ((a - 1) * np.log(x)).sum(axis=1)


def categorical(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    logs = t.reshape(D, 3) - logsumexp(t.reshape(D, 3), axis=1)[:, None]
    return logs[np.arange(D), x.astype(int)].sum(axis=1)


def wishart(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    law = stats.wishart(2 + np.exp(t[3]), covariance(t[:3], 2))
    return np.array([law.logpdf(np.array([[a, b], [b, c]])) for a, b, c in x])


# ln of the density of rows by numbers of a component and by those that all share; how many of both
Law = tuple[Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray], int, int]
LAWS: dict[str, Law] = {
    "full": (lambda x, t, s: normal(x, t[:D], covariance(t[D:])), 9, 0),
    "tied": (lambda x, t, s: normal(x, t, covariance(s)), 3, 6),
    "diag": (lambda x, t, s: normal(x, t[:D], np.diag(np.exp(t[D:]))), 6, 0),
    "tied-diag": (lambda x, t, s: normal(x, t, np.diag(np.exp(s))), 3, 3),
    "spherical": (lambda x, t, s: normal(x, t[:D], np.exp(t[D]) * np.eye(D)), 4, 0),
    "tied-spherical": (lambda x, t, s: normal(x, t, np.exp(s[0]) * np.eye(D)), 3, 1),
    "known-mean": (lambda x, t, s: normal(x, np.zeros(D), covariance(t)), 6, 0),
    "bernoulli": (lambda x, t, s: (x * t - np.logaddexp(0, t)).sum(axis=1), 3, 0),
    "poisson": (lambda x, t, s: stats.poisson(np.exp(t)).logpmf(x).sum(axis=1), 3, 0),
    "exponential": (lambda x, t, s: (t - np.exp(t) * x).sum(axis=1), 3, 0),
    "gamma-shape": (
        lambda x, t, s: (
            stats.gamma(np.exp(t[:D]), scale=np.exp(t[D:])).logpdf(x).sum(axis=1)
        ), 6, 0,
    ),
    "negative-binomial": (
        lambda x, t, s: (
            stats.nbinom(np.exp(t[:D]), 1 / (1 + np.exp(t[D:]))).logpmf(x).sum(axis=1)
        ), 6, 0,
    ),
    "beta": (
        lambda x, t, s: stats.beta(np.exp(t[:D]), np.exp(t[D:])).logpdf(x).sum(axis=1), 6, 0,
    ),
    "dirichlet": (lambda x, t, s: dirichlet(x, t), 3, 0),
    "multinomial": (lambda x, t, s: x @ (t - logsumexp(t)), 3, 0),
    "categorical": (lambda x, t, s: categorical(x, t), 9, 0),
    "wishart": (lambda x, t, s: wishart(x, t), 4, 0),
}  # fmt: skip


def rows(family: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(N, 2, 5))
    products = factors @ factors.transpose(0, 2, 1)
    made: dict[str, np.ndarray] = {
        "bernoulli": (rng.random((N, D)) < 0.5).astype(float),
        "poisson": rng.poisson(3.0, (N, D)).astype(float),
        "negative-binomial": rng.negative_binomial(2, 0.3, (N, D)).astype(float),
        "exponential": rng.exponential(1.0, (N, D)),
        "gamma-shape": rng.gamma(2.0, 1.0, (N, D)),
        "beta": rng.uniform(0.01, 0.99, (N, D)),
        "dirichlet": rng.dirichlet(np.full(D, 2.0), N),
        "multinomial": rng.multinomial(9, np.full(D, 1 / D), N).astype(float),
        "categorical": rng.integers(0, 3, (N, D)).astype(float),
        "wishart": np.stack([products[:, 0, 0], products[:, 1, 0], products[:, 1, 1]], axis=1),
    }
    return made.get(family, 1.5 * rng.normal(size=(N, D)))


def rank(family: str, K: int, weights: np.ndarray | None) -> int:
    """Of the derivatives of the log density of rows in all numbers, by central differences."""
    law, own, shared = LAWS[family]
    X, rng = rows(family), np.random.default_rng(1)
    at = 0.4 * rng.normal(size=K * own + shared + K)
    if family == "wishart":
        at[: K * own] += np.tile([1.0, 0.3, 1.0, 1.0], K)

    def log_density(t: np.ndarray) -> np.ndarray:
        free = t[K * own + shared :]
        log_weights = free - logsumexp(free) if weights is None else np.log(weights)
        common = t[K * own : K * own + shared]
        parts = [law(X, t[k * own : (k + 1) * own], common) for k in range(K)]
        return np.asarray(logsumexp(np.stack(parts) + log_weights[:, None], axis=0))

    h = 1e-5
    columns = [(log_density(at + e) - log_density(at - e)) / (2 * h) for e in h * np.eye(len(at))]
    scaled = [column / max(np.linalg.norm(column), 1e-300) for column in columns]
    sizes = np.linalg.svd(np.stack(scaled, axis=1), compute_uv=False)
    return int((sizes > 1e-6 * sizes[0]).sum())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("family", LAWS)
def test_parameters_are_counted_as_the_density_has_them(family: str) -> None:
    X = rows(family)
    for weights in ("ml", [0.3, 0.7]):
        fitted = Mixture(family, 2, weights=weights, max_iter=2, random_state=0).fit(X)
        given = None if weights == "ml" else np.array(weights)
        count = (fitted.bic(X) + 2 * N * fitted.score(X)) / np.log(N)
        assert count == pytest.approx(rank(family, 2, given))
