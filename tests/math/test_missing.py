"""Conditional moments by precisions against the textbook formulas by covariances."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.math.missing import (
    add_conditional_draws,
    complete,
    conditional_scatter,
    patterns_of,
)
from mixfold.testing.oracles import conditional_moments

D = 5


@pytest.fixture
def U(rng: np.random.Generator) -> np.ndarray:
    U = rng.normal(size=(60, D))
    U[rng.random(U.shape) < 0.4] = np.nan
    U[3] = np.nan  # nothing observed
    U[4] = [1, 2, 3, 4, 5]  # nothing missing
    return U


@pytest.fixture
def gaussian(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    root = rng.normal(size=(D, D))
    return rng.normal(size=D), root @ root.T + 0.2 * np.eye(D)


@pytest.mark.parametrize("size", [3, 8, 9, 70])
def test_patterns_partition_the_rows(size: int, rng: np.random.Generator) -> None:
    U = np.where(rng.random((200, size)) < 0.2, np.nan, 0.0)
    U[:, : size - 2] = 0.0  # few patterns, beyond the eighth column too
    patterns = patterns_of(U)
    assert sorted(patterns.order) == list(range(200))
    assert len(patterns.missing) == 4 == len(patterns.start) - 1
    for p, missing in enumerate(patterns.missing):
        rows = patterns.order[patterns.start[p] : patterns.start[p + 1]]
        assert rows.size
        np.testing.assert_array_equal(
            np.isnan(U[rows]), np.broadcast_to(missing, (rows.size, size))
        )


def test_completed_rows_and_determinants(
    U: np.ndarray, gaussian: tuple[np.ndarray, np.ndarray]
) -> None:
    mean, covariance = gaussian
    filled, log_det = complete(U, patterns_of(U), mean, np.linalg.inv(covariance))
    for row, got, ld in zip(U, filled, log_det, strict=True):
        wanted, _ = conditional_moments(row, mean, covariance)
        np.testing.assert_allclose(got + mean, wanted, rtol=1e-9, atol=1e-10)
        seen = np.flatnonzero(~np.isnan(row))
        observed = np.linalg.slogdet(covariance[np.ix_(seen, seen)])[1] if seen.size else 0.0
        # ln|Lambda_mm| = ln|Sigma_oo| - ln|Sigma|
        assert ld == pytest.approx(observed - np.linalg.slogdet(covariance)[1], abs=1e-9)


def test_conditional_scatter_is_the_weighted_sum(
    U: np.ndarray, gaussian: tuple[np.ndarray, np.ndarray], rng: np.random.Generator
) -> None:
    mean, covariance = gaussian
    resp = rng.uniform(size=len(U))
    got = conditional_scatter(patterns_of(U), np.linalg.inv(covariance), resp)
    wanted = sum(
        r * conditional_moments(row, mean, covariance)[1] for r, row in zip(resp, U, strict=True)
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-10)


def test_draws_have_the_conditional_covariance(
    gaussian: tuple[np.ndarray, np.ndarray], rng: np.random.Generator
) -> None:
    mean, covariance = gaussian
    n = 20_000
    U = np.tile([np.nan, 0.3, np.nan, np.nan, -1.0], (n, 1))
    filled = np.zeros((n, D))
    add_conditional_draws(
        patterns_of(U), np.linalg.inv(covariance), rng.normal(size=(n, D)), filled
    )
    np.testing.assert_array_equal(filled[:, [1, 4]], 0)  # what was seen stays
    wanted = conditional_moments(U[0], mean, covariance)[1]
    products = filled[:, :, None] * filled[:, None]
    error = products.std(axis=0) / np.sqrt(n)
    assert (np.abs(products.mean(axis=0) - wanted) <= 6 * error + 1e-12).all()
    assert (np.abs(filled.mean(axis=0)) <= 6 * filled.std(axis=0) / np.sqrt(n) + 1e-12).all()
