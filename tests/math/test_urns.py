"""Kernels of rows that come and go, against plain linear algebra and special functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaln

from mixfold.math.urn_laws import log_rising
from mixfold.math.urn_matrices import factor_update, log_norm_of_mean

SHAPES = [1e-8, 0.3, 1.0, 17.5, 999.9, 1000.1, 1e6, 1e12]


@pytest.mark.parametrize("n", [0, 1, 2, 8, 9, 250, 20000])
@pytest.mark.parametrize("a", SHAPES)
def test_rising_factorials(a: float, n: int) -> None:
    exact = math.fsum(math.log(a + i) for i in range(n))
    assert log_rising(a, float(n)) == pytest.approx(exact, rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("n", [0.5, 3.7, 120.25])
@pytest.mark.parametrize("a", SHAPES)
def test_rises_of_fractions(a: float, n: float) -> None:
    if a < 1000:
        exact = float(gammaln(a + n) - gammaln(a))
        assert log_rising(a, n) == pytest.approx(exact, rel=1e-12, abs=1e-11)
    rest = math.ceil(n) - n
    both = log_rising(a, n) + log_rising(a + n, rest)
    whole = math.fsum(math.log(a + i) for i in range(math.ceil(n)))
    assert both == pytest.approx(whole, rel=1e-11, abs=1e-11)


def test_factors_go_up_and_down(rng: np.random.Generator) -> None:
    root = rng.normal(size=(5, 5))
    matrix, v = root @ root.T + np.eye(5), rng.normal(size=5)
    factor = np.linalg.cholesky(matrix)
    assert factor_update(factor, v.copy(), 1.0) == 1.0
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix + np.outer(v, v)), rtol=1e-12)
    left = factor_update(factor, v.copy(), -1.0)
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix), rtol=1e-11, atol=1e-13)
    assert 0 < left < 1
    assert factor_update(factor, 100 * v, -1.0) <= 0  # not positive definite any more


def test_law_of_a_mean(rng: np.random.Generator) -> None:
    root = rng.normal(size=(4, 4))
    precision, h = root @ root.T + np.eye(4), rng.normal(size=4)
    got = log_norm_of_mean(precision, h, np.zeros((4, 4)), np.zeros(4))
    wanted = 0.5 * (h @ np.linalg.solve(precision, h) - np.linalg.slogdet(precision)[1])
    assert got == pytest.approx(wanted, rel=1e-12)
