"""Panels give what the whole square gives."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.math.triangular import PANEL, squared_norms, weighted_gram

SIZES = [1, 5, PANEL, PANEL + 1, 2 * PANEL + 44]


@pytest.mark.parametrize("size", SIZES)
def test_squared_norms(size: int, rng: np.random.Generator) -> None:
    V, A = rng.normal(size=(9, size)), np.triu(rng.normal(size=(size, size)))
    wanted = np.array([v @ A @ A.T @ v for v in V])
    np.testing.assert_allclose(squared_norms(V, A), wanted, rtol=1e-11)


@pytest.mark.parametrize("size", SIZES)
def test_weighted_gram(size: int, rng: np.random.Generator) -> None:
    V, w = rng.normal(size=(9, size)), rng.uniform(size=9)
    wanted = sum(a * np.outer(v, v) for a, v in zip(w, V, strict=True))
    got = weighted_gram(V, w)
    np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-13)
