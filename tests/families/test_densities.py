"""Log densities against scipy's dense Gaussians, by every route."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Block
from mixfold.families import GAUSSIAN, GaussianFamily
from mixfold.testing.oracles import gaussian_log_density, in_data_coordinates
from mixfold.testing.tables import typical_components

K, D = 3, 4


def _rows(dtype: type, missing: bool, n: int = 150) -> np.ndarray:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(n, D)) * 4 + [3, -5, 0, 8]
    if missing:
        X[rng.random(X.shape) < 0.35] = np.nan
        X[7] = np.nan
    return X.astype(dtype)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "with NaN"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_against_scipy(family: GaussianFamily, dtype: type, missing: bool) -> None:
    params = typical_components(family, K, D, origin=np.array([2.0, -4, 1, 6]))
    X = _rows(dtype, missing)
    wanted = gaussian_log_density(X, *in_data_coordinates(family, params))
    reading = family.mode(params)
    block = Block(X, complete=not missing)
    rtol = 1e-10 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(family.log_density(block, reading), wanted, rtol=rtol, atol=rtol)
    # the general route computes in double precision whatever the data
    scores = family.scores(block, reading).log_density
    np.testing.assert_allclose(scores, wanted, rtol=1e-9, atol=1e-9)


def test_a_row_with_nothing_observed_has_log_density_zero(family: GaussianFamily) -> None:
    params = typical_components(family, K, D)
    block = Block(np.full((2, D), np.nan), complete=False)
    np.testing.assert_allclose(family.log_density(block, family.mode(params)), 0, atol=1e-12)


def test_complete_rows_in_a_block_with_gaps(family: GaussianFamily) -> None:
    """What a row is worth does not depend on its neighbours."""
    params = typical_components(family, K, D)
    X = _rows(np.float64, True)
    whole = ~np.isnan(X).any(axis=1)
    reading = family.mode(params)
    mixed = family.log_density(Block(X, complete=False), reading)[whole]
    alone = family.log_density(Block(X[whole]), reading)
    np.testing.assert_allclose(mixed, alone, rtol=1e-11)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "with NaN"])
def test_sparse_rows(family: GaussianFamily, missing: bool, rng: np.random.Generator) -> None:
    params = typical_components(family, K, D, origin=np.zeros(D))
    X = np.where(rng.random((80, D)) < 0.6, 0.0, rng.normal(size=(80, D)))
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    reading = family.mode(params)
    rows = Block(sparse.csr_array(X), complete=not missing)
    got = family.log_density(rows, reading)
    wanted = gaussian_log_density(X, *in_data_coordinates(family, params))
    np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)
    resp = rng.dirichlet(np.ones(K), 80)
    ours = family.moments(family.scores(rows, reading), resp, reading)
    dense = Block(X, complete=not missing)
    theirs = family.moments(family.scores(dense, reading), resp, reading)
    for a, b in (
        (ours.count, theirs.count),
        (ours.first, theirs.first),
        (ours.second, theirs.second),
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_many_columns_leave_the_lifted_kernel(family: GaussianFamily) -> None:
    size = 100  # beyond LIFT_LIMIT
    params = typical_components(family, 2, size, seed=1)
    X = params.frame.leave(np.random.default_rng(2).normal(size=(5, size)))
    wanted = gaussian_log_density(X, *in_data_coordinates(family, params))
    np.testing.assert_allclose(family.log_density(Block(X), family.mode(params)), wanted, rtol=1e-8)


def test_published_covariances_and_precisions(family: GaussianFamily) -> None:
    params = typical_components(family, K, D)
    means, dense = in_data_coordinates(family, params)
    covariances = family.covariances(params)
    back = family.from_covariances(params.frame, means, covariances)
    np.testing.assert_allclose(back.means, params.means, rtol=1e-12)
    np.testing.assert_allclose(back.scatter, params.scatter, rtol=1e-12)
    precisions, factors = family.precisions(params)
    assert covariances.shape == precisions.shape == family.scatter_shape(K, D)
    if family.matrix:
        np.testing.assert_allclose(np.broadcast_to(covariances, dense.shape), dense, rtol=1e-12)
        inverse = np.broadcast_to(precisions, dense.shape)
        np.testing.assert_allclose(
            inverse @ dense, np.broadcast_to(np.eye(D), dense.shape), atol=1e-9
        )
        np.testing.assert_allclose(factors @ np.swapaxes(factors, -1, -2), precisions, rtol=1e-10)
    else:
        np.testing.assert_allclose(precisions * covariances, 1, rtol=1e-12)
        np.testing.assert_allclose(factors**2, precisions, rtol=1e-12)
        assert np.isclose(dense, np.min(covariances)).any() and dense.max() == np.max(covariances)


@pytest.mark.parametrize(
    ("name", "count"),
    [("full", 3 * (4 + 10)), ("tied", 12 + 10), ("diag", 24), ("spherical", 15), ("tied-diag", 16),
     ("tied-spherical", 13)],
)  # fmt: skip
def test_number_of_free_parameters(name: str, count: int) -> None:
    family = GAUSSIAN[name]()
    assert family.n_free(K, D) == count
    # as many as there are coordinates to extrapolate in
    assert family.coordinates(typical_components(family, K, D)).size == count
