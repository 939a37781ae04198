"""Coordinates in the space of features: their products are those of the kernel, less the mean."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Array
from mixfold.math.kernels import CosineKernel, Kernel, LaplacianKernel, PolynomialKernel, RbfKernel
from mixfold.models.kernels import coordinates

RNG = np.random.default_rng(0)
X, NEW = RNG.random((40, 4)), RNG.random((10, 4))
WEIGHT = RNG.integers(1, 4, size=40).astype(float)
KERNELS = [RbfKernel(0.7), LaplacianKernel(0.5), PolynomialKernel(3, 0.5, 1.0), CosineKernel()]


def centred(G: Array, K: Array, share: Array) -> Array:
    """Products of new rows (n, m) with known ones, about the mean of these."""
    mean = G @ share
    return K - (K @ share)[:, None] - mean + share @ mean


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])
def test_products_are_those_of_centred_features(kernel: Kernel, weight: Array | None) -> None:
    share = np.full(40, 1 / 40) if weight is None else weight / weight.sum()
    G, K = kernel.block(X, X), kernel.block(NEW, X)
    found = coordinates.principal_map(kernel, X, weight)
    F = found(X)
    mean = share @ F
    np.testing.assert_allclose((F - mean) @ (F - mean).T, centred(G, G, share), atol=1e-8)
    np.testing.assert_allclose((found(NEW) - mean) @ (F - mean).T, centred(G, K, share), atol=1e-8)


def test_coordinates_are_principal_scores() -> None:
    for weight in (None, WEIGHT):
        w = np.ones(40) if weight is None else weight
        F = coordinates.principal_map(RbfKernel(0.7), X, weight)(X)
        F = F - np.average(F, axis=0, weights=w)
        S = (F * w[:, None]).T @ F
        np.testing.assert_allclose(S, np.diag(np.diagonal(S)), atol=1e-9)
        assert F.shape[1] == 39 and (np.diff(np.diagonal(S)) <= 1e-12).all()
        assert (np.take_along_axis(F, np.abs(F).argmax(axis=0)[None], axis=0) > 0).all()


def test_a_row_that_weighs_more_is_one_that_is_repeated() -> None:
    kernel, times = RbfKernel(0.7), WEIGHT.astype(int)
    weighted = coordinates.principal_map(kernel, X, WEIGHT)(NEW)
    repeated = coordinates.principal_map(kernel, np.repeat(X, times, axis=0))(NEW)
    gap = weighted - repeated
    np.testing.assert_allclose(gap, np.broadcast_to(gap[0], gap.shape), atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_landmarks_that_are_all_rows_give_all_products(kernel: Kernel) -> None:
    found = coordinates.nystroem_map(kernel, X)
    np.testing.assert_allclose(found(X) @ found(X).T, kernel.block(X, X), atol=1e-8)
    np.testing.assert_allclose(found(NEW) @ found(X).T, kernel.block(NEW, X), atol=1e-8)


def test_maps_of_products_are_maps_of_rows() -> None:
    kernel, columns = RbfKernel(0.7), np.arange(5, 45)
    G, K = kernel.block(X, X), np.hstack([np.full((10, 5), 9.0), kernel.block(NEW, X)])
    for weight in (None, WEIGHT):
        given = coordinates.precomputed_map(G, columns, weight)(K)
        wanted = coordinates.principal_map(kernel, X, weight)(NEW)
        np.testing.assert_allclose(given, wanted, atol=1e-10)
    given = coordinates.sampled_given_map(G, columns, "float64")(K)
    np.testing.assert_allclose(given, coordinates.nystroem_map(kernel, X)(NEW), atol=1e-10)
    np.testing.assert_allclose(
        coordinates.precomputed_map(G, columns)(sparse.csr_array(K)),
        coordinates.precomputed_map(G, columns)(K),
    )


def test_rounding_is_no_direction() -> None:
    """Far from zero the products are large, and only four of their directions are none."""
    far = X + 1e3
    found = coordinates.principal_map(PolynomialKernel(1, 1.0, 0.0), far)
    assert found.root.shape == (40, 4)
    F = found(far)
    gaps = ((F[:, None] - F) ** 2).sum(axis=2)
    np.testing.assert_allclose(gaps, ((X[:, None] - X) ** 2).sum(axis=2), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_that_are_alike_have_no_coordinates(dtype: str) -> None:
    for G in (np.full((40, 40), 3.7), 1e6 + 1e-5 * np.eye(40) * (dtype == "float32")):
        with pytest.raises(ValueError, match="all rows are alike"):
            coordinates.principal_root(G, dtype=dtype)
