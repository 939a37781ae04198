"""Components given some columns, and rows completed under one component."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.families import GaussianFamily
from mixfold.testing.oracles import (
    conditional_moments,
    gaussian_log_density,
    in_data_coordinates,
)
from mixfold.testing.tables import typical_components

K, D = 3, 4


@pytest.mark.parametrize("known", [[1], [0, 2], [3, 0, 1]], ids=str)
def test_condition_against_the_textbook(family: GaussianFamily, known: list[int]) -> None:
    params = typical_components(family, K, D)
    means, covariances = in_data_coordinates(family, params)
    values = means[0, known] + 0.7
    log_density, rest = family.condition(params, np.array(known), values)
    x = np.full(D, np.nan)
    x[known] = values
    wanted = gaussian_log_density(x[None], means, covariances)[0]
    # a constant of all components drops out of the mixture
    np.testing.assert_allclose(log_density - log_density[0], wanted - wanted[0], atol=1e-10)
    others = np.setdiff1d(np.arange(D), known)
    got_means, got_covariances = in_data_coordinates(family, rest)
    for k in range(K):
        filled, left = conditional_moments(x, means[k], covariances[k])
        np.testing.assert_allclose(got_means[k], filled[others], rtol=1e-10)
        np.testing.assert_allclose(
            got_covariances[k], left[np.ix_(others, others)], rtol=1e-9, atol=1e-12
        )
    assert rest.scatter.shape == family.scatter_shape(K, len(others))


def test_rows_completed_with_conditional_means(
    family: GaussianFamily, rng: np.random.Generator
) -> None:
    params = typical_components(family, K, D)
    means, covariances = in_data_coordinates(family, params)
    X = means[rng.integers(0, K, 30)] + rng.normal(size=(30, D))
    X[rng.random(X.shape) < 0.4] = np.nan
    X[0], X[1] = np.nan, 1.0
    reading = family.mode(params)
    scores = family.scores(Block(X, complete=False), reading)
    for k in range(K):
        got = params.frame.leave(family.complete_rows(scores, reading, k, None))
        wanted = np.array([conditional_moments(x, means[k], covariances[k])[0] for x in X])
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def test_rows_completed_with_draws(family: GaussianFamily, rng: np.random.Generator) -> None:
    params = typical_components(family, K, D)
    means, covariances = in_data_coordinates(family, params)
    n, k = 20_000, 2
    x = means[k] + [1.0, np.nan, -2.0, np.nan]
    reading = family.mode(params)
    scores = family.scores(Block(np.tile(x, (n, 1)), complete=False), reading)
    draws = params.frame.leave(family.complete_rows(scores, reading, k, rng.normal(size=(n, D))))
    filled, left = conditional_moments(x, means[k], covariances[k])
    np.testing.assert_allclose(draws[:, [0, 2]], np.tile(x[[0, 2]], (n, 1)), rtol=1e-12)
    gap = draws - filled
    assert (np.abs(gap.mean(axis=0)) <= 6 * gap.std(axis=0) / np.sqrt(n) + 1e-9).all()
    products = gap[:, :, None] * gap[:, None]
    error = products.std(axis=0) / np.sqrt(n)
    assert (np.abs(products.mean(axis=0) - left) <= 6 * error + 1e-9).all()
