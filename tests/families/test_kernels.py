"""The fused kernel against the general route, and the guard that chooses between them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block, Context
from mixfold.engine.random import RowKeys
from mixfold.families import GAUSSIAN, FullGaussian, GaussianFamily
from mixfold.families.dense import lifted_theta
from mixfold.families.gaussian import (
    AMPLIFICATION_LIMIT,
    AMPLIFICATION_LIMIT_32,
    GaussianParams,
    tile_width,
)
from mixfold.math.frame import Frame
from mixfold.math.lifted import TILE, lifted_scores, product_features
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing.compare import require_same
from mixfold.testing.oracles import gaussian_log_density, in_data_coordinates
from mixfold.testing.tables import clustered_table, typical_components

K, D = 3, 3
LOG_WEIGHTS = np.log([0.2, 0.5, 0.3])


def _block(n: int, dtype: Any, missing: bool, sides: bool) -> Block:
    X = clustered_table(max(n, 10), D, K, missing=0.2 if missing else 0.0, dtype=dtype, seed=n)[:n]
    rng = np.random.default_rng(n)
    y = rng.integers(-1, K, n) if sides else None
    weight = np.where(rng.random(n) < 0.2, 0.0, rng.uniform(0.2, 3, n)) if sides else None
    return Block(X, 0, y, weight, not missing)


def _params(family: GaussianFamily) -> GaussianParams:
    return typical_components(family, K, D, origin=np.array([0.0, 5, 10]))


@pytest.mark.parametrize("n", [1, TILE, TILE + 5, 3 * TILE - 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sides", [False, True], ids=["bare", "weights and labels"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "with NaN"])
def test_fused_is_the_general_route(
    family: GaussianFamily, general: Any, n: int, dtype: Any, sides: bool, missing: bool
) -> None:
    block, params = _block(n, dtype, missing, sides), _params(family)
    result = family.fused_pass(block, family.mode(params), LOG_WEIGHTS)
    if missing and family.matrix:
        assert result is None  # conditional moments are not in the kernel
        return
    assert result is not None
    moments, sums = result
    wanted, (total, entropy, weight) = general(block, params, LOG_WEIGHTS)
    rtol = 1e-11 if dtype is np.float64 else 1e-4
    require_same("fused", moments, wanted, rtol, "moments")
    assert sums.log_likelihood == pytest.approx(total, rel=rtol, abs=rtol)
    assert sums.entropy == pytest.approx(entropy, rel=rtol, abs=rtol * n)
    assert sums.weight == pytest.approx(weight, rel=1e-13)


def test_moments_are_double_whatever_the_data(family: GaussianFamily) -> None:
    result = family.fused_pass(
        _block(50, np.float32, False, True), family.mode(_params(family)), LOG_WEIGHTS
    )
    assert result is not None
    assert all(getattr(result[0], f.name).dtype == np.float64 for f in fields(result[0]))


# ------------------------------------------------ conditioning


def _squeezed(family: GaussianFamily, size: float) -> GaussianParams:
    """Components whose smallest deviation is ``size`` beside means of order one."""
    params = _params(family)
    if family.matrix:
        turn = np.linalg.qr(np.random.default_rng(0).normal(size=(D, D)))[0]
        one = (turn * [1.0, 0.5, size**2]) @ turn.T
        scatter = np.broadcast_to(one, params.scatter.shape).copy()
    else:
        scatter = np.full_like(params.scatter, size**2)
    return replace(params, scatter=scatter)


def test_the_guard_switches_at_its_limit(family: GaussianFamily) -> None:
    block = _block(40, np.float64, False, False)
    switched = []
    for size in np.geomspace(0.3, 1e-5, 40):
        reading = family.mode(_squeezed(family, size))
        over = bool((reading.amplification > AMPLIFICATION_LIMIT).any())
        assert (family.fused_pass(block, reading, LOG_WEIGHTS) is None) == over
        switched.append(over)
    assert switched == sorted(switched)  # once, and for good
    assert not switched[0] and switched[-1]


def test_one_bad_component_is_enough_for_the_guard(family: GaussianFamily) -> None:
    params = _params(family)
    means = params.means.copy()
    means[1] = 1e5  # far from the origin in units of its own deviation
    reading = family.mode(replace(params, means=means))
    assert family.fused_pass(_block(20, np.float64, False, False), reading, LOG_WEIGHTS) is None


def test_single_precision_arithmetic_needs_better_conditioning() -> None:
    assert tile_width(np.dtype(np.float32), AMPLIFICATION_LIMIT_32) == np.float32
    assert tile_width(np.dtype(np.float32), 2 * AMPLIFICATION_LIMIT_32) == np.float64
    assert tile_width(np.dtype(np.float64), 1.0) == np.float64


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1e-1, 3e-3, 1e-4])
def test_squeezed_components_keep_their_digits(
    family: GaussianFamily, size: float, dtype: Any
) -> None:
    """On either side of the guard, rows of the component itself are scored exactly."""
    params = _squeezed(family, size)
    rng = np.random.default_rng(8)
    labels = rng.integers(0, K, 60)
    X = family.sample(params, labels, rng.normal(size=(60, D))).astype(dtype)
    got = family.log_density(Block(X), family.mode(params))[np.arange(60), labels]
    wanted = gaussian_log_density(X, *in_data_coordinates(family, params))[np.arange(60), labels]
    # rows rounded to float32 may lie far out in units of a tiny deviation
    typical = np.abs(wanted) < 1e3
    assert typical.mean() > 0.9 or dtype is np.float32
    # scipy's own eigenvalues keep about eps * condition
    tol = max(1e-7, 1e-13 / size**2) if dtype is np.float64 else 1e-3
    np.testing.assert_allclose(got[typical], wanted[typical], rtol=tol, atol=tol)


def test_the_guard_is_needed_and_enough() -> None:
    """Two nearly equal columns, far out: extended precision tells which route is right."""
    r, far = 1 - 1e-8, 100.0
    params = GaussianParams(
        Frame(np.zeros(2), np.ones(2)), np.full((1, 2), far), np.array([[[1, r], [r, 1]]])
    )
    family = FullGaussian()
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(200, 2))
    X = family.sample(params, np.zeros(200, int), normals)
    a, b = (X.astype(np.longdouble) - far).T
    one_less = (np.longdouble(1) - r) * (np.longdouble(1) + r)
    form = ((a - b) ** 2 + 2 * (np.longdouble(1) - r) * a * b) / one_less
    wanted = -0.5 * (form + np.log(one_less)) - np.log(2 * np.pi)
    reading = family.mode(params)
    safe = family.log_density(Block(X), reading)[:, 0]
    assert reading.theta is None
    precisions = reading.whiten @ np.swapaxes(reading.whiten, 1, 2)
    theta = lifted_theta(precisions, reading.means, reading.constant)
    lifted = lifted_scores(Block(X), params.frame, product_features(2), theta)[:, 0]
    assert np.abs(safe - wanted).max() < 1e-6
    assert np.abs(lifted - wanted).max() > 2e-5  # what the guard keeps out


def test_moments_of_guarded_components_are_about_their_means(
    family: GaussianFamily, general: Any
) -> None:
    params = _squeezed(family, 1e-5)
    X = family.sample(params, np.zeros(50, int), np.random.default_rng(0).normal(size=(50, D)))
    moments, _ = general(Block(X), params, LOG_WEIGHTS)
    np.testing.assert_array_equal(moments.origin, params.means)
    fresh, _ = type(family)(floor=1e-14).estimate(moments, params)
    # variances of 1e-10 beside means of order one: raw moments would have no digit left
    deviations = params.frame.enter(X) - params.frame.enter(X).mean(axis=0)
    if family.matrix:
        wanted = deviations.T @ deviations / 50
        got = family.dense(fresh)[0]
        np.testing.assert_allclose(
            np.linalg.eigvalsh(got)[0], np.linalg.eigvalsh(wanted)[0], rtol=1e-3
        )
    else:
        pooled = np.diagonal(family.dense(fresh)[0]).mean()
        assert pooled == pytest.approx((deviations**2).mean(), rel=1e-5)


# ------------------------------------------------ far from zero


@pytest.mark.parametrize("name", sorted(GAUSSIAN))
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "with NaN"])
def test_offset_changes_nothing(name: str, missing: bool) -> None:
    X = clustered_table(200, D, K, missing=0.1 if missing else 0.0, seed=2)
    X = np.round(X * 2**18) / 2**18  # so that 1e8 can be added without rounding
    resp = np.random.default_rng(0).dirichlet(np.ones(K), 200)
    near, far = (_after_steps(name, X + offset, resp, 8) for offset in (0.0, 1e8))
    np.testing.assert_array_equal((X + 1e8) - 1e8, X)
    np.testing.assert_allclose(far[0], near[0], atol=1e-6)
    np.testing.assert_allclose(far[1], near[1], rtol=1e-8)
    np.testing.assert_allclose(far[2], near[2], rtol=1e-6)


def _after_steps(
    name: str, X: np.ndarray, resp: np.ndarray, n_steps: int
) -> tuple[np.ndarray, float, np.ndarray]:
    """Responsibilities, objective and covariances after some steps from given responsibilities."""
    family = GAUSSIAN[name]()
    model = Mixture(K, family)
    frame = family.frame(X, np.ones(len(X)))
    start = family.from_sample(frame, np.nan_to_num(frame.enter(X)), resp)
    params = MixtureParams(resp.mean(axis=0), start)
    block = Block(X, complete=not np.isnan(X).any())
    for step in range(n_steps):
        stats = model.expect(model.prepare(params), block, RowKeys(0))
        context = Context(None, np.random.default_rng(0), step)
        params = model.update(params, stats, context).params
    shares = normalise(model.log_joint(model.prepare(params), block))[1]
    return shares, stats.log_likelihood, family.covariances(params.components)
