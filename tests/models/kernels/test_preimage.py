"""Rows found again from their scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Array
from mixfold.models.kernels.preimage import pre_images

kinds = pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])


@pytest.fixture
def curve(rng: np.random.Generator) -> tuple[Array, Array]:
    """Scores along a line, rows along a spiral far from zero."""
    t = np.sort(rng.uniform(0, 6, 150))[:, None]
    return t, np.column_stack([t * np.cos(t), t * np.sin(t), 10 + t])


@kinds
def test_a_smooth_curve_is_found(kind: Any, curve: tuple[Array, Array]) -> None:
    t, X = curve
    back = pre_images(t[::2], kind(X[::2]))
    error = np.linalg.norm(back(t[1::2]) - X[1::2], axis=1)
    assert np.median(error) < 0.01 and error.max() < 0.5


@kinds
def test_units_of_scores_and_rows_do_not_matter(kind: Any, curve: tuple[Array, Array]) -> None:
    t, X = curve
    plain = pre_images(t, X)(t)
    np.testing.assert_allclose(pre_images(1e-4 * t, kind(X))(1e-4 * t), plain, atol=1e-4)
    np.testing.assert_allclose(pre_images(t, kind(1e3 * X))(t), 1e3 * plain, atol=0.1)


def test_noise_is_smoothed(curve: tuple[Array, Array], rng: np.random.Generator) -> None:
    t, X = curve
    noisy = X + 0.5 * rng.normal(size=X.shape)
    back = pre_images(t, noisy)(t)
    assert np.linalg.norm(back - X) < 0.6 * np.linalg.norm(noisy - X)


def test_far_from_all_scores_is_the_mean(curve: tuple[Array, Array]) -> None:
    t, X = curve
    np.testing.assert_allclose(pre_images(t, X)(np.array([[1e6]])), X.mean(axis=0)[None])


def test_without_scores_there_is_only_the_mean(curve: tuple[Array, Array]) -> None:
    X = curve[1]
    back = pre_images(np.zeros((150, 0)), X)(np.zeros((2, 0)))
    np.testing.assert_allclose(back, np.tile(X.mean(axis=0), (2, 1)), rtol=1e-6)
