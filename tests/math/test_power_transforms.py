"""Changes of scale keep the measure, and the best one is the one that was made."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import boxcox_llf, yeojohnson

from mixfold.math.power_transforms import (
    IDENTITY,
    best_transform,
    candidates,
    normal_log_likelihood,
    quantile_skewness,
    yeo_johnson,
)

RNG = np.random.default_rng(0)
COLUMNS = {
    "positive": RNG.lognormal(0, 0.7, 400),
    "with zero": np.append(RNG.gamma(1.2, size=399), 0.0),
    "both signs": RNG.normal(size=400) ** 3 + 1,
}


@pytest.mark.parametrize("name", COLUMNS)
def test_slopes_are_derivatives(name):
    x = COLUMNS[name]
    at = x[np.abs(x) > 1e-2]
    for transform in candidates(x, np.ones(len(x))):
        h = 1e-6 * np.abs(at)
        numeric = (transform.apply(at + h) - transform.apply(at - h)) / (2 * h)
        np.testing.assert_allclose(np.exp(transform.log_slope(at)), numeric, rtol=1e-5)


def test_the_likelihood_is_that_of_a_density_of_the_column():
    x = COLUMNS["positive"]
    ones = np.ones(len(x))
    log = next(t for t in candidates(x, ones) if t.name.startswith("the log"))
    mean, sd = np.log(x).mean(), np.log(x).std()

    def density(v):
        return np.exp(-(((np.log(v) - mean) / sd) ** 2) / 2) / (v * sd * np.sqrt(2 * np.pi))

    assert quad(density, 0, np.inf)[0] == pytest.approx(1)
    assert normal_log_likelihood(log, x, ones) == pytest.approx(np.log(density(x)).sum())
    # up to a constant the profile likelihood of Box and Cox
    constant = -0.5 * len(x) * (np.log(2 * np.pi) + 1)
    assert normal_log_likelihood(log, x, ones) == pytest.approx(boxcox_llf(0, x) + constant)


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
def test_powers_are_those_of_scipy(exponent):
    x = COLUMNS["both signs"]
    np.testing.assert_allclose(yeo_johnson(x, exponent), yeojohnson(x, exponent), rtol=1e-12)


def test_the_change_that_was_made_is_found():
    z = np.random.default_rng(1).normal(size=3000)
    ones = np.ones(3000)
    assert best_transform(z, ones) is IDENTITY
    assert best_transform(np.exp(z), ones).name == "the logarithm of {}"
    assert best_transform((z + 6) ** 3, ones).name == "the cube root of {}"
    shifted = best_transform(np.exp(z) - 2, ones).name
    assert re.match(r"the logarithm of \({} \+ (1\.9|2)", shifted)
    assert "Yeo-Johnson" in best_transform(np.where(z < 0, z, 3 * z + z**2), ones).name
    # weights are repetitions, units do not matter
    weight = np.random.default_rng(2).integers(1, 3, 3000)
    assert best_transform(1e6 * np.exp(z), weight.astype(float)).name == "the logarithm of {}"
    assert quantile_skewness(np.exp(z), ones) > 0.5
    assert abs(quantile_skewness(z, ones)) < 0.1
