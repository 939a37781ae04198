"""Slabs of chance: the bound holds for the best slab, and is not far above it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mixfold.math.chance_slabs import rows_of_chance


def _most_rows(X: np.ndarray, deviation: float) -> int:
    """Rows within two deviations of the best line through two of the rows."""
    best = 0
    for i, j in itertools.combinations(range(len(X)), 2):
        along = X[j] - X[i]
        across = np.array([-along[1], along[0]]) / np.linalg.norm(along)
        best = max(best, int((np.abs((X - X[i]) @ across) <= 2 * deviation).sum()))
    return best


@pytest.mark.parametrize("variance", [1e-6, 1e-4])
def test_no_slab_of_chance_has_more_rows(variance: float) -> None:
    most = [
        _most_rows(np.random.default_rng(seed).normal(size=(150, 2)), np.sqrt(variance))
        for seed in range(5)
    ]
    bound = rows_of_chance(150, 2, variance)
    assert max(most) <= bound <= 3 * max(most)


def test_it_grows_with_rows_columns_and_thickness() -> None:
    assert rows_of_chance(100, 2, 1e-6) < rows_of_chance(1000, 2, 1e-6)
    assert rows_of_chance(1000, 2, 1e-6) < rows_of_chance(1000, 10, 1e-6)
    assert rows_of_chance(1000, 2, 1e-6) < rows_of_chance(1000, 2, 1e-4)
    # many rows: their share in the slab, and little more
    assert rows_of_chance(1e6, 2, 1e-6) == pytest.approx(np.e * 1600, rel=0.1)


def test_it_is_never_more_than_all_rows() -> None:
    assert rows_of_chance(3, 5, 1e-6) == 3
    assert rows_of_chance(20, 2, 1.0) == 20
