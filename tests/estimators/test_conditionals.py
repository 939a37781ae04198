"""Conditional distributions are joint over marginal, of every mixture and every way to fit it.

ln p(x_a | x_b) = ln p(x_a, x_b) - ln p(x_b), by ``condition`` on one side and ``score_samples`` on
the other; ``predict_proba`` and ``impute`` speak of the same density.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from mixfold import BayesianGaussianMixture, Mixture, load
from mixfold.contracts import Block

KINDS = ("full", "tied", "diag", "spherical", "tied-diag", "tied-spherical")


def numbers(n: int = 60) -> np.ndarray:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 3)) @ [[1.0, 0.8, 0.2], [0, 1, -0.5], [0, 0, 1]]
    return X + 3.0 * (np.arange(n) % 2)[:, None]


def mixed(n: int = 80) -> np.ndarray:
    rng = np.random.default_rng(6)
    group = np.arange(n) % 2
    return np.column_stack(
        [
            numbers(n),
            rng.poisson(np.array([2, 6])[group]),
            rng.random(n) < np.array([0.2, 0.7])[group],
            rng.integers(0, 3, n),
        ]
    ).astype(float)


def alone(row: np.ndarray, columns) -> np.ndarray:
    part = np.full(len(row), np.nan)
    part[columns] = row[columns]
    return part[None]


def check_conditional(model, rows: np.ndarray, known: list[int]) -> None:
    rest = np.setdiff1d(np.arange(rows.shape[1]), known)
    for row in rows:
        given = model.condition(known, row[known])
        wanted = model.score_samples(row[None]) - model.score_samples(alone(row, known))
        np.testing.assert_allclose(
            given.score_samples(row[None, rest]), wanted, rtol=1e-7, atol=1e-7
        )
        shares = model.predict_proba(alone(row, known))[0]
        np.testing.assert_allclose(given.weights_, shares, rtol=1e-6, atol=1e-12)
        # and once more, of what is left
        shares = model.predict_proba(row[None])
        np.testing.assert_allclose(given.predict_proba(row[None, rest]), shares, atol=1e-7)


@pytest.mark.parametrize("known", [[0], [2, 1]])
@pytest.mark.parametrize("kind", KINDS)
def test_conditionals_of_variational_mixtures(kind, known):
    X = numbers()
    model = Mixture(kind, 2, inference="vb", random_state=0).fit(X)
    far = np.array([[30.0, -20, 10]])
    check_conditional(model, np.concatenate([X[:6], far]), known)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_conditionals_of_bayesian_gaussian_mixtures(kind, tmp_path):
    X = numbers()
    model = BayesianGaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    check_conditional(model, X[:6], [1])
    given = model.condition([1], X[0, [1]])
    given.save(tmp_path / "given.mixfold")
    back = load(tmp_path / "given.mixfold")
    np.testing.assert_array_equal(back.score_samples(X[:, :2]), given.score_samples(X[:, :2]))


def test_conditionals_of_maximum_a_posteriori_and_of_known_covariances():
    X = numbers()
    model = Mixture("full", 2, prior="default", random_state=0).fit(X)
    check_conditional(model, X[:6], [0, 2])
    options = {"covariance": np.cov(X.T) / 2}
    model = Mixture("known", 2, inference="vb", family_options=options, random_state=0).fit(X)
    check_conditional(model, X[:6], [0])


@pytest.mark.parametrize("known", [[1, 3], [0, 1, 2], [4, 5], [3, 4, 5], [2]])
@pytest.mark.parametrize("inference", ["em", "vb"])
def test_conditionals_of_mixed_tables(known, inference):
    X = mixed()
    family = {"tied": [0, 1, 2], "poisson": [3], "bernoulli": [4], "categorical": [5]}
    model = Mixture(family, 2, inference=inference, random_state=0).fit(X)
    check_conditional(model, X[:5], known)


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "categorical", "negative-binomial"])
@pytest.mark.parametrize("inference", ["em", "vb"])
def test_conditionals_of_counts(family, inference):
    rng = np.random.default_rng(0)
    high = 2 if family == "bernoulli" else 5
    X = np.minimum(rng.poisson(1 + 2.0 * (np.arange(80) % 2)[:, None], (80, 3)), high - 1.0)
    model = Mixture(family, 2, inference=inference, random_state=0).fit(X)
    check_conditional(model, X[:5], [1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_conditional_is_a_density(kind):
    """By quadrature: it integrates to one, and its mean is what ``impute`` fills in."""
    X = numbers()
    model = Mixture(kind, 2, inference="vb", random_state=0).fit(X)
    row = np.array([1.0, np.nan, 4.0])
    given = model.condition([0, 2], row[[0, 2]])
    density = lambda x: np.exp(given.score_samples([[x]])[0])  # noqa: E731
    total = quad(density, -np.inf, np.inf, epsabs=1e-10, limit=200)[0]
    mean = quad(lambda x: x * density(x), -np.inf, np.inf, epsabs=1e-10, limit=200)[0]
    assert total == pytest.approx(1, abs=1e-7)
    assert model.impute(row[None])[0, 1] == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_shares_are_those_of_the_density(kind):
    """Adding a component's share to the log density gives its part of it: sums agree."""
    X = numbers()
    model = Mixture(kind, 2, inference="vb", random_state=0).fit(X)
    holed = X.copy()
    holed[::3, 1] = np.nan
    inner = model._model(3)
    joint = inner.log_predictive(model._params, Block(holed, complete=False))
    np.testing.assert_allclose(np.logaddexp.reduce(joint, axis=1), model.score_samples(holed))
    shares = np.exp(joint - model.score_samples(holed)[:, None])
    np.testing.assert_allclose(model.predict_proba(holed), shares, atol=1e-12)
