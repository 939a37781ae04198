"""What a fitted mixture is asked: imputation, conditioning, sampling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp

from mixfold.contracts import Block
from mixfold.engine.random import RowKeys
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing.oracles import conditional_moments, gaussian_log_density, in_data_coordinates
from mixfold.testing.tables import typical_components

K, D = 3, 3
WEIGHTS = np.array([0.2, 0.5, 0.3])


@pytest.fixture(params=sorted(GAUSSIAN))
def model(request: pytest.FixtureRequest) -> Mixture:
    return Mixture(K, GAUSSIAN[request.param]())


def _params(model: Mixture, size: int = D) -> MixtureParams:
    return MixtureParams(WEIGHTS, typical_components(model.family, K, size))


def _shares(model: Mixture, params: MixtureParams, X: np.ndarray) -> np.ndarray:
    L = gaussian_log_density(X, *in_data_coordinates(model.family, params.components))
    L = L + np.log(params.weights)
    return np.exp(L - logsumexp(L, axis=1, keepdims=True))


def _gappy(model: Mixture, params: MixtureParams, rng: np.random.Generator) -> np.ndarray:
    X = model.sample(params, 40, rng)[0]
    X[rng.random(X.shape) < 0.4] = np.nan
    X[0], X[1] = np.nan, 1.0
    return X


def test_imputed_means(model: Mixture, rng: np.random.Generator) -> None:
    params = _params(model)
    X = _gappy(model, params, rng)
    before = X.copy()
    got = model.impute(model.prepare(params), Block(X, complete=False), RowKeys(0), draw=False)
    means, covariances = in_data_coordinates(model.family, params.components)
    for row, filled, shares in zip(X, got, _shares(model, params, X), strict=True):
        each = [conditional_moments(row, means[k], covariances[k])[0] for k in range(K)]
        np.testing.assert_allclose(filled, shares @ each, rtol=1e-9)
    seen = ~np.isnan(X)
    np.testing.assert_array_equal(got[seen], X[seen])
    np.testing.assert_array_equal(X, before)


def test_complete_rows_are_returned_as_they_are(model: Mixture, rng: np.random.Generator) -> None:
    X = rng.normal(size=(5, D))
    got = model.impute(model.prepare(_params(model)), Block(X), RowKeys(0), draw=False)
    np.testing.assert_array_equal(got, X)
    assert got is not X


def test_imputed_draws_follow_the_conditional_mixture(model: Mixture) -> None:
    params = _params(model)
    means, covariances = in_data_coordinates(model.family, params.components)
    n = 20_000
    row = means.mean(axis=0)
    row[[0, 2]] = np.nan
    X = np.tile(row, (n, 1))
    draws = model.impute(model.prepare(params), Block(X, complete=False), RowKeys(3), draw=True)
    shares = _shares(model, params, row[None])[0]
    each = [conditional_moments(row, means[k], covariances[k]) for k in range(K)]
    mean = sum(s * m for s, (m, _) in zip(shares, each, strict=True))
    second = sum(
        s * (c + np.outer(m - mean, m - mean)) for s, (m, c) in zip(shares, each, strict=True)
    )
    gap = draws - mean
    assert (np.abs(gap.mean(axis=0)) <= 6 * gap.std(axis=0) / np.sqrt(n) + 1e-9).all()
    products = gap[:, :, None] * gap[:, None]
    error = products.std(axis=0) / np.sqrt(n)
    assert (np.abs(products.mean(axis=0) - second) <= 6 * error + 1e-9).all()


def test_draws_are_keyed_by_row(model: Mixture, rng: np.random.Generator) -> None:
    params = _params(model)
    X = _gappy(model, params, rng)
    reading, keys = model.prepare(params), RowKeys(5)
    whole = model.impute(reading, Block(X, complete=False), keys, draw=True)
    parts = [
        model.impute(reading, Block(X[a:b], a, complete=False), keys, draw=True)
        for a, b in ((0, 7), (7, 8), (8, 40))
    ]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-10)
    other = model.impute(reading, Block(X, complete=False), RowKeys(6), draw=True)
    assert (other != whole)[np.isnan(X)].all()


@pytest.mark.parametrize("known", [[0], [2, 1]], ids=str)
def test_conditional_density_is_joint_over_marginal(
    model: Mixture, known: list[int], rng: np.random.Generator
) -> None:
    params = _params(model)
    X = model.sample(params, 20, rng)[0]
    values = X[0, known]
    X[:, known] = values
    others = np.setdiff1d(np.arange(D), known)
    given = model.condition(params, np.array(known), values)
    assert given.weights.sum() == pytest.approx(1)
    marginal = X.copy()
    marginal[:, others] = np.nan
    dense = in_data_coordinates(model.family, params.components)
    log_joint, log_marginal = (
        logsumexp(gaussian_log_density(rows, *dense) + np.log(WEIGHTS), axis=1)
        for rows in (X, marginal)
    )
    got = logsumexp(model.log_joint(model.prepare(given), Block(X[:, others])), axis=1)
    np.testing.assert_allclose(got, log_joint - log_marginal, rtol=1e-9, atol=1e-9)


def test_conditional_mean_by_quadrature(model: Mixture) -> None:
    params = _params(model, 2)
    means, covariances = in_data_coordinates(model.family, params.components)
    value = float(means[:, 1].mean())
    given = model.condition(params, np.array([1]), np.array([value]))
    got = given.weights @ given.components.frame.leave(given.components.means)[:, 0]

    def joint(x: float) -> float:
        row = np.array([[x, value]])
        return float(np.exp(gaussian_log_density(row, means, covariances)[0]) @ WEIGHTS)

    spread = 8 * np.sqrt(covariances[:, 0, 0].max())
    ends = means[:, 0].min() - spread, means[:, 0].max() + spread
    inner = sorted(means[:, 0])
    total = quad(joint, *ends, points=inner, epsabs=1e-12)[0]
    wanted = quad(lambda x: x * joint(x), *ends, points=inner, epsabs=1e-12)[0] / total
    assert got == pytest.approx(wanted, rel=1e-6)


def test_sample_follows_the_weights(model: Mixture, rng: np.random.Generator) -> None:
    params = _params(model)
    X, labels = model.sample(params, 20_000, rng)
    assert X.shape == (20_000, D)
    shares = np.bincount(labels, minlength=K) / 20_000
    assert (np.abs(shares - WEIGHTS) < 6 * np.sqrt(WEIGHTS * (1 - WEIGHTS) / 20_000)).all()
    means, _ = in_data_coordinates(model.family, params.components)
    for k in range(K):  # a row goes with its label
        mine = X[labels == k]
        error = mine.std(axis=0) / np.sqrt(len(mine))
        assert (np.abs(mine.mean(axis=0) - means[k]) < 6 * error).all()
