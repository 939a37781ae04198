"""The M step of every family: statistics, the maximum, the floor, repairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.families import GaussianFamily
from mixfold.families.gaussian import GaussianParams, Moments
from mixfold.math.frame import Frame
from mixfold.math.symmetric import unpack
from mixfold.testing.compare import require_same
from mixfold.testing.oracles import conditional_moments, gradient_by_differences
from mixfold.testing.tables import clustered_table, typical_components

K, D, N = 3, 3, 90
UNIT = Frame(np.zeros(D), np.ones(D))


@pytest.fixture
def resp() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.dirichlet(np.ones(K), N) * rng.uniform(0.5, 2, N)[:, None]


def _moments(
    family: GaussianFamily, X: np.ndarray, params: GaussianParams, resp: np.ndarray
) -> Moments:
    reading = family.mode(params)
    scores = family.scores(Block(X, complete=not np.isnan(X).any()), reading)
    return family.moments(scores, resp, reading)


@pytest.mark.parametrize("far", [False, True], ids=["about the frame", "about the means"])
def test_statistics_with_missing_entries(
    family: GaussianFamily, resp: np.ndarray, far: bool
) -> None:
    """Expected counts, sums and products of the completed rows, by the textbook formulas."""
    params = typical_components(family, K, D, origin=UNIT.origin, scale=UNIT.scale)
    X = clustered_table(N, D, K, missing=0.3, seed=1)
    if far:  # beyond the guard: moments about the means
        params = replace(params, means=params.means + 1e4)
        X = X + 1e4
    moments = _moments(family, X, params, resp)
    assert np.array_equal(moments.origin, params.means if far else np.zeros((K, D)))
    dense = family.dense(params)
    first, second = np.zeros((K, D)), np.zeros((K, D, D))
    for k in range(K):
        for x, r in zip(X, resp[:, k], strict=True):
            filled, left = conditional_moments(x, params.means[k], dense[k])
            v = filled - moments.origin[k]
            if not family.matrix:  # an entry that is not seen adds nothing at all
                v, left = np.where(np.isnan(x), 0.0, v), np.zeros((D, D))
            first[k] += r * v
            second[k] += r * (np.outer(v, v) + left)
    np.testing.assert_allclose(moments.first, first, rtol=1e-8, atol=1e-8)
    if not family.matrix:
        np.testing.assert_allclose(moments.second, np.diagonal(second, axis1=1, axis2=2), rtol=1e-8)
        np.testing.assert_allclose(moments.count, resp.T @ ~np.isnan(X), rtol=1e-12)
    else:
        shape = family.scatter_shape(K, D)
        wanted = second.sum(axis=0) if len(shape) == 2 else second
        np.testing.assert_allclose(unpack(moments.second, D), wanted, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(moments.count, np.repeat(resp.sum(axis=0)[:, None], D, axis=1))


def test_moments_about_the_frame_are_the_same_moments(
    family: GaussianFamily, resp: np.ndarray
) -> None:
    X = clustered_table(N, D, K, seed=1)
    near = typical_components(family, K, D, origin=UNIT.origin, scale=UNIT.scale)
    # guarded: the same rows about means that are far away
    far = replace(near, means=near.means + 1e4)
    about_means = _moments(family, X, far, resp)
    assert about_means.origin.any()
    wanted = _moments(family, X, near, resp)
    require_same("about_frame", family.about_frame(about_means), wanted, 1e-6)
    require_same("about_frame", family.about_frame(wanted), wanted, 1e-15)


def _expected(
    family: GaussianFamily, params: GaussianParams, X: np.ndarray, resp: np.ndarray
) -> float:
    """sum_nk r_nk ln p(x_n | k), for complete rows."""
    return float((resp * family.scores(Block(X), family.mode(params)).log_density).sum())


def test_estimate_is_the_maximum(family: GaussianFamily, resp: np.ndarray) -> None:
    X = clustered_table(N, D, K, seed=1)
    start = typical_components(family, K, D, origin=UNIT.origin, scale=UNIT.scale)
    best, touched = family.estimate(_moments(family, X, start, resp), start)
    assert not touched.any()
    at = family.coordinates(best)

    def gain(v: np.ndarray) -> float:
        return _expected(family, family.from_coordinates(best, v), X, resp)

    slope = gradient_by_differences(gain, at)
    assert np.abs(slope).max() < 1e-5 * N
    assert np.abs(gradient_by_differences(gain, at + 0.1)).max() > 1.0  # it can be seen
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(10):
            assert gain(at + size * rng.normal(size=at.shape)) < gain(at)


def test_from_sample_is_the_same_maximum(family: GaussianFamily, resp: np.ndarray) -> None:
    X = clustered_table(N, D, K, seed=1)
    frame = family.frame(X, np.ones(N))
    U = frame.enter(X)
    start = typical_components(family, K, D, origin=frame.origin, scale=frame.scale)
    wanted, _ = family.estimate(_moments(family, X, start, resp), start)
    got = family.from_sample(frame, U, resp)
    np.testing.assert_allclose(got.means, wanted.means, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got.scatter, wanted.scatter, rtol=1e-9)


def test_floor(family: GaussianFamily) -> None:
    """Repeated rows: variances stop at the floor, and the components say so."""
    floored = type(family)(floor=0.25)
    X = np.repeat([[0.0, 0, 0], [8, 0, 0], [0, 8, 8]], 20, axis=0)
    resp = np.repeat(np.eye(K), 20, axis=0)
    start = typical_components(family, K, D, origin=UNIT.origin, scale=UNIT.scale)
    params, touched = floored.estimate(_moments(family, X, start, resp), start)
    assert touched.all()
    np.testing.assert_allclose(
        floored.dense(params), np.tile(0.25 * np.eye(D), (K, 1, 1)), atol=1e-12
    )
    np.testing.assert_allclose(params.means, X[::20], atol=1e-12)


def test_a_component_without_rows_keeps_its_parameters(
    family: GaussianFamily, resp: np.ndarray
) -> None:
    resp[:, 1] = 0
    start = typical_components(family, K, D, origin=UNIT.origin, scale=UNIT.scale)
    X = clustered_table(N, D, K, seed=1)
    params, touched = family.estimate(_moments(family, X, start, resp), start)
    np.testing.assert_array_equal(params.means[1], start.means[1])
    assert not touched.any()
    assert (
        np.isfinite(params.scatter).all() and (np.abs(params.means[0] - start.means[0]) > 0).all()
    )
    if family.scatter_shape(K, D)[:1] == (K,) and family.name in ("full", "diag", "spherical"):
        np.testing.assert_array_equal(params.scatter[1], start.scatter[1])


def test_place_moves_components_and_gives_them_a_typical_shape(family: GaussianFamily) -> None:
    params = typical_components(family, 4, D)
    points = np.array([[5.0, 6, 7], [-5, -6, -7]])
    moved = family.place(params, np.array([1, 3]), points)
    np.testing.assert_array_equal(moved.means[[1, 3]], points)
    np.testing.assert_array_equal(moved.means[[0, 2]], params.means[[0, 2]])
    before, after = family.dense(params), family.dense(moved)
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
    np.testing.assert_allclose(after[1], before[[0, 2]].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(after[3], after[1])


def test_keep_drops_the_other_components(family: GaussianFamily) -> None:
    params = typical_components(family, 4, D)
    kept = family.select(params, np.array([3, 1]))
    assert kept.scatter.shape == family.scatter_shape(2, D)
    np.testing.assert_array_equal(kept.means, params.means[[3, 1]])
    np.testing.assert_array_equal(family.dense(kept), family.dense(params)[[3, 1]])


def test_an_em_step_of_the_means_is_the_metric_applied_to_the_gradient(
    family: GaussianFamily, resp: np.ndarray
) -> None:
    X = clustered_table(N, D, K, seed=1)
    start = typical_components(family, K, D, origin=UNIT.origin, scale=UNIT.scale)
    moments = _moments(family, X, start, resp)
    gradient, metric = family.derivatives(start, moments)
    step = metric.solve(gradient)[: K * D].reshape(K, D)
    image, _ = family.estimate(moments, start)
    np.testing.assert_allclose(start.means + step, image.means, rtol=1e-9)


def test_the_metric_is_the_curvature_of_the_complete_data(
    family: GaussianFamily, resp: np.ndarray
) -> None:
    """At the maximum of the M step, M is minus its second derivative."""
    X = clustered_table(N, D, K, seed=1)
    start = typical_components(family, K, D, origin=UNIT.origin, scale=UNIT.scale)
    moments = _moments(family, X, start, resp)
    best, _ = family.estimate(moments, start)
    at, (_, metric) = family.coordinates(best), family.derivatives(best, moments)

    def slope(v: np.ndarray) -> np.ndarray:
        return family.derivatives(family.from_coordinates(best, v), moments)[0]

    step = 1e-5
    for unit in np.eye(at.size):
        bend = (slope(at + step * unit) - slope(at - step * unit)) / (2 * step)
        np.testing.assert_allclose(metric.solve(-bend), unit, atol=1e-6)
