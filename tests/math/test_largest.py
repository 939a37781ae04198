"""A few of many eigenvalues, equal ones too."""

import numpy as np
import pytest

from mixfold import PPCA, KernelPCA
from mixfold.math.largest import largest_pairs


@pytest.mark.parametrize("skip", [0, 3])
@pytest.mark.parametrize("k", [1, 4, 20])
def test_pairs_are_those_of_the_whole_matrix(k, skip):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 60))
    S = A @ A.T
    values, vectors = largest_pairs(S.copy(), k, skip)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(S)[::-1][skip : skip + k])
    np.testing.assert_allclose(S @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)


def test_equal_eigenvalues_are_not_lost():
    size = 120
    S = np.eye(size) / size - 1.0 / size**2  # one-hot rows: a single value, 119 times
    values, vectors = largest_pairs(S, 2)
    np.testing.assert_allclose(values, 1.0 / size)
    np.testing.assert_allclose(S @ vectors, vectors / size, atol=1e-12)


def test_one_hot_rows_have_axes():
    X = np.tile(np.eye(120), (5, 1))
    ratio = PPCA(2).fit(X).explained_variance_ratio_
    np.testing.assert_allclose(ratio, 1 / 119, rtol=1e-6)
    assert KernelPCA(2, kernel="linear").fit(X).n_components_ == 2
