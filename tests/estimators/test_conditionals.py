"""Conditional distributions are joint over marginal, of every mixture and every way to fit it.

ln p(x_a | x_b) = ln p(x_a, x_b) - ln p(x_b), by ``condition`` on one side and ``score_samples`` on
the other.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from mixfold import BayesianGaussianMixture, Mixture, load
from mixfold.contracts import Block
from mixfold.models.mixtures.bayes_mixture import BayesMixture

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
        # the weights are shares of the density of what is known
        shares = parts_of(model, alone(row, known)) - model.score_samples(alone(row, known))
        np.testing.assert_allclose(given.weights_, np.exp(shares), rtol=1e-6, atol=1e-12)
        # three blocks of columns: a conditional can be conditioned on
        if rest.size > 1:
            last = given.condition([0], row[rest[:1]])
            both = [*known, rest[0]]
            wanted = model.score_samples(row[None]) - model.score_samples(alone(row, both))
            np.testing.assert_allclose(
                last.score_samples(row[None, rest[1:]]), wanted, rtol=1e-7, atol=1e-7
            )


def parts_of(model, X: np.ndarray) -> np.ndarray:
    """ln w_k p_k(x), of which densities are the sums."""
    inner, block = model._model(model.n_features_in_), Block(X, complete=False)
    if isinstance(inner, BayesMixture):
        return inner.log_predictive(model._params, block)[0]
    return inner.log_joint(inner.prepare(model._params), block)[0]


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
    """By quadrature: it integrates to one, and its mean is that of the joint density."""
    X = numbers()
    model = Mixture(kind, 2, inference="vb", random_state=0).fit(X)
    row = np.array([1.0, np.nan, 4.0])
    given = model.condition([0, 2], row[[0, 2]])
    density = lambda x: np.exp(given.score_samples([[x]])[0])  # noqa: E731
    total = quad(density, -np.inf, np.inf, epsabs=1e-10, limit=200)[0]
    mean = quad(lambda x: x * density(x), -np.inf, np.inf, epsabs=1e-10, limit=200)[0]
    assert total == pytest.approx(1, abs=1e-7)

    def joint(x):
        return np.exp(model.score_samples([[row[0], x, row[2]]])[0])

    whole = quad(joint, -np.inf, np.inf, epsabs=1e-12, limit=200)[0]
    first = quad(lambda x: x * joint(x), -np.inf, np.inf, epsabs=1e-12, limit=200)[0]
    assert mean == pytest.approx(first / whole, abs=1e-5)


@pytest.mark.parametrize("weights", ["dirichlet", "stick-breaking"])
def test_conditionals_of_learned_weights(weights):
    X = numbers()
    model = Mixture("full", 5, weights=weights, inference="vb", random_state=0).fit(X)
    check_conditional(model, X[:6], [0])
