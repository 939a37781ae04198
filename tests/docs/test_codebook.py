"""Rows put together from a codebook, against all that can be made, and their example."""

from __future__ import annotations

import importlib.util
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mixfold import sample_codebook

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "codebook_digits.py"
# group 2 is empty, group 3 has a single part
GROUPS = np.array([0, 1, 1, 0, 3, 1, 0, 4, 4])


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("codebook_digits", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def parts(rng: np.random.Generator) -> np.ndarray:
    return rng.gamma(1.0, size=(len(GROUPS), 5))


@pytest.fixture
def every(parts: np.ndarray) -> np.ndarray:
    """All sums of one part of each group."""
    choices = [np.flatnonzero(k == GROUPS) for k in np.unique(GROUPS)]
    return np.array([parts[list(choice)].sum(axis=0) for choice in product(*choices)])


def test_the_number_of_images(example: ModuleType, every: np.ndarray) -> None:
    assert example.n_choices(GROUPS) == len(every) == 3 * 3 * 1 * 2


def test_mean_and_covariance_are_sums_over_groups(
    example: ModuleType, parts: np.ndarray, every: np.ndarray
) -> None:
    mean, covariance = example.moments(parts, GROUPS)
    np.testing.assert_allclose(mean, every.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(covariance, np.cov(every.T, bias=True), rtol=1e-10, atol=1e-12)
    alone = example.moments(parts[GROUPS == 3], GROUPS[GROUPS == 3])
    np.testing.assert_allclose(alone[0], parts[4])
    assert not alone[1].any(), "a group of one adds nothing to the covariance"


def test_each_image_is_as_frequent_as_the_others(parts: np.ndarray, every: np.ndarray) -> None:
    n = 6000
    made = sample_codebook(parts, n, GROUPS, random_state=0).X
    distances = np.linalg.norm(made[:, None] - every, axis=2)
    nearest = distances.argmin(axis=1)
    assert distances.min(axis=1).max() < 1e-9, "an image that is no sum of one part of each group"
    share = 1 / len(every)
    counts = np.bincount(nearest, minlength=len(every))
    assert (np.abs(counts - n * share) < 6 * np.sqrt(n * share * (1 - share))).all()


def test_parts_are_as_strong_as_where_they_are_used(
    example: ModuleType, rng: np.random.Generator
) -> None:
    """Two patterns that never occur together, each at one strength in half of the images."""
    patterns = np.array([[0.0, 0, 3, 1], [2.0, 1, 0, 0]])
    X = patterns[rng.integers(2, size=60)]
    model = example.make_parts(2).fit(X)
    parts = example.strengths(model.transform(X))[:, None] * model.components_
    found = parts[np.argsort(parts[:, 0])]
    np.testing.assert_allclose(found, patterns, atol=0.02)
