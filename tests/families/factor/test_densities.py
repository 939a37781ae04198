"""Log densities and statistics by every route, and the guard that chooses between them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Block, Context
from mixfold.engine.random import RowKeys
from mixfold.families.factor import FactorFamily, FactorParams
from mixfold.families.factor.complete import TILE_ROWS, careful_scores, lifted_scores
from mixfold.families.factor.reading import AMPLIFICATION_LIMIT, AMPLIFICATION_LIMIT_32
from mixfold.math.softmax import clamp, entropies, normalise
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing.compare import require_same
from mixfold.testing.oracles import gaussian_log_density
from mixfold.testing.tables import clustered_table

K, D = 3, 5
LOG_WEIGHTS = np.log([0.2, 0.5, 0.3])


def _rows(params: FactorParams, missing: bool, dtype: Any = np.float64, n: int = 60) -> np.ndarray:
    """Rows somewhat farther out than the components themselves."""
    rng = np.random.default_rng(11)
    X = params.frame.leave(3 * rng.normal(size=(n, D)))
    if missing:
        X[rng.random(X.shape) < 0.35] = np.nan
        X[7] = np.nan
    return X.astype(dtype)


@pytest.fixture(params=[False, True], ids=["complete", "with NaN"])
def missing(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_against_scipy(
    family: FactorFamily, missing: bool, dtype: Any, typical: Any, dense: Any
) -> None:
    params = typical(family, K, D)
    X = _rows(params, missing, dtype)
    wanted = gaussian_log_density(X, *dense(params))
    reading, block = family.mode(params), Block(X, complete=not missing)
    rtol = 1e-10 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(family.log_density(block, reading), wanted, rtol=rtol, atol=rtol)
    # the general route computes in double precision whatever the data
    scores = family.scores(block, reading).log_density
    np.testing.assert_allclose(scores, wanted, rtol=1e-10, atol=1e-10)


def test_sparse_rows(family: FactorFamily, missing: bool, typical: Any, dense: Any) -> None:
    family = replace(family, has_missing=missing)
    params = typical(family, K, D, origin=np.zeros(D))
    rng = np.random.default_rng(2)
    X = np.where(rng.random((40, D)) < 0.6, 0.0, rng.normal(size=(40, D)))
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    rows = sparse.csr_array(X)
    rows.data[:3] = 0.0  # explicit zeros are zeros
    X = rows.toarray()
    reading = family.mode(params)
    block, same = Block(rows, complete=not missing), Block(X, complete=not missing)
    wanted = gaussian_log_density(X, *dense(params))
    np.testing.assert_allclose(family.log_density(block, reading), wanted, rtol=1e-10, atol=1e-10)
    resp = rng.dirichlet(np.ones(K), 40)
    ours, theirs = (
        family.moments(family.scores(rows, reading), resp, reading) for rows in (block, same)
    )
    require_same("sparse rows", ours, theirs, 1e-12)


def test_a_row_with_nothing_observed(family: FactorFamily, typical: Any) -> None:
    """It has density one, and its latents the prior."""
    reading = family.mode(typical(family, K, D))
    block = Block(np.full((2, D), np.nan), complete=False)
    np.testing.assert_allclose(family.log_density(block, reading), 0, atol=1e-12)
    posterior = family.posterior(block, reading, True)
    np.testing.assert_array_equal(posterior.means, 0)
    np.testing.assert_array_equal(posterior.covariances, np.tile(np.eye(2), (2, K, 1, 1)))


def test_what_a_row_is_worth_does_not_depend_on_its_neighbours(
    family: FactorFamily, typical: Any
) -> None:
    params = typical(family, K, D)
    X = _rows(params, True)
    whole = ~np.isnan(X).any(axis=1)
    reading = family.mode(params)
    mixed = family.log_density(Block(X, complete=False), reading)[whole]
    alone = family.log_density(Block(X[whole]), reading)
    np.testing.assert_allclose(mixed, alone, rtol=1e-11)


# ------------------------------------------------ one pass over a block


def _general(family: FactorFamily, block: Block, params: FactorParams) -> tuple[Any, ...]:
    """Statistics and the parts of the objective, by the route that takes any block."""
    reading = family.mode(params)
    scores = family.scores(block, reading)
    total, resp = normalise(clamp(scores.log_density + LOG_WEIGHTS, block.y))
    w = block.weights()
    moments = family.moments(scores, resp * w[:, None], reading)
    return moments, float(w @ total), float(w @ entropies(resp)), float(w.sum())


@pytest.mark.parametrize("n", [1, TILE_ROWS, TILE_ROWS + 5])
@pytest.mark.parametrize("sides", [False, True], ids=["bare", "weights and labels"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_fast_route_is_the_general_one(
    family: FactorFamily, n: int, sides: bool, dtype: Any, typical: Any
) -> None:
    params = typical(family, K, D)
    rng = np.random.default_rng(n)
    y = rng.integers(-1, K, n) if sides else None
    weight = np.where(rng.random(n) < 0.2, 0.0, rng.uniform(0.2, 3, n)) if sides else None
    block = Block(_rows(params, False, dtype, n), 0, y, weight)
    result = family.fused_pass(block, family.mode(params), LOG_WEIGHTS)
    assert result is not None
    moments, sums = result
    wanted, total, entropy, all_weight = _general(family, block, params)
    rtol = 1e-11 if dtype is np.float64 else 1e-4
    require_same("fast route", moments, wanted, rtol, "moments")
    assert sums.log_likelihood == pytest.approx(total, rel=rtol, abs=rtol)
    assert sums.entropy == pytest.approx(entropy, rel=rtol, abs=rtol * n)
    assert sums.weight == pytest.approx(all_weight, rel=1e-13)
    for part in (moments, moments.rows):
        values = [getattr(part, f.name) for f in fields(part)]
        assert all(v.dtype == np.float64 for v in values if isinstance(v, np.ndarray))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shift", [0.0, 10.0], ids=["about zero", "away from zero"])
def test_sparse_rows_are_summed_as_dense_ones(
    family: FactorFamily, dtype: Any, shift: float, typical: Any
) -> None:
    """CSR rows stay as they are, whatever the origin and units of the frame."""
    params = typical(family, K, D, origin=shift * np.arange(D))
    rng = np.random.default_rng(3)
    n = TILE_ROWS + 9
    X = np.where(rng.random((n, D)) < 0.6, 0.0, 2 * rng.normal(size=(n, D))).astype(dtype)
    y, weight = rng.integers(-1, K, n), rng.uniform(0.2, 3, n)
    reading = family.mode(params)
    ours, theirs = (
        family.fused_pass(Block(rows, 0, y, weight), reading, LOG_WEIGHTS)
        for rows in (sparse.csr_array(X), X)
    )
    assert ours is not None and theirs is not None
    rtol = 1e-10 if dtype is np.float64 else 1e-4
    require_same("sparse", ours[0], theirs[0], rtol, "moments")
    assert ours[1].log_likelihood == pytest.approx(theirs[1].log_likelihood, rel=rtol)
    assert ours[1].entropy == pytest.approx(theirs[1].entropy, rel=rtol, abs=rtol * n)
    a, b = (family.posterior(Block(rows), reading).means for rows in (sparse.csr_array(X), X))
    np.testing.assert_allclose(a, b, atol=1e-9 if dtype is np.float64 else 1e-3)


def test_sparse_rows_far_from_zero_are_not_summed_about_it(typical: Any) -> None:
    """Entries of 1e6 beside a spread of one: the guard looks at the units of the data."""
    family = FactorFamily(factors=(2,))
    params = typical(family, K, D, origin=np.full(D, 1e6))
    X = params.frame.leave(np.random.default_rng(0).normal(size=(20, D)))
    reading, rows = family.mode(params), Block(sparse.csr_array(X))
    assert family.fused_pass(rows, reading, LOG_WEIGHTS) is None
    assert family.fused_pass(Block(X), reading, LOG_WEIGHTS) is not None
    np.testing.assert_allclose(
        family.log_density(rows, reading), family.log_density(Block(X), reading), rtol=1e-8
    )


def test_missing_entries_leave_the_fast_route(family: FactorFamily, typical: Any) -> None:
    params = typical(family, K, D)
    block = Block(_rows(params, True), complete=False)
    assert family.fused_pass(block, family.mode(params), LOG_WEIGHTS) is None


def test_missing_entries_need_to_be_announced(family: FactorFamily, typical: Any) -> None:
    """The statistics of a fit without holes have no place for them."""
    params = typical(family, K, D)
    reading = family.mode(params)
    scores = family.scores(Block(_rows(params, True), complete=False), reading)
    with pytest.raises(ValueError, match=r"missing entries.*begin the fit with the rows"):
        family.moments(scores, np.full((60, K), 1 / K), reading)


# ------------------------------------------------ small noise


def test_the_guard_switches_once_at_its_limit(family: FactorFamily, typical: Any) -> None:
    switched = []
    for noise in np.geomspace(1.0, 1e-9, 25):
        params = typical(family, K, D, noise=noise)
        reading = family.mode(params)
        over = reading.amplification > AMPLIFICATION_LIMIT
        result = family.fused_pass(Block(_rows(params, False)), reading, LOG_WEIGHTS)
        assert (result is None) == over
        switched.append(over)
    assert switched == sorted(switched) and not switched[0] and switched[-1]


def test_one_bad_component_is_enough_for_the_guard(family: FactorFamily, typical: Any) -> None:
    params = typical(family, K, D)
    means = params.means.copy()
    means[1] = 1e5
    reading = family.mode(replace(params, means=means))
    assert family.fused_pass(Block(_rows(params, False)), reading, LOG_WEIGHTS) is None


def test_single_precision_needs_better_conditioning(typical: Any) -> None:
    family = FactorFamily(factors=(2,))
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    reading = family.mode(typical(family, K, D))
    good = replace(reading, amplification=AMPLIFICATION_LIMIT_32)
    bad = replace(reading, amplification=2 * AMPLIFICATION_LIMIT_32)
    assert good.arithmetic(single) == single and bad.arithmetic(single) == double
    assert good.arithmetic(double) == double


@pytest.mark.parametrize("noise", [1e-2, 1e-5, 1e-8, 1e-12])
def test_rows_of_components_with_little_noise(
    family: FactorFamily, noise: float, missing: bool, typical: Any, dense: Any
) -> None:
    """On either side of the guard, rows of a component are scored to the digits they have."""
    params = typical(family, K, D, noise=noise, origin=np.zeros(D))
    rng = np.random.default_rng(8)
    labels = np.arange(30) % K
    X = family.sample(params, labels, rng.normal(size=(30, family.normals_per_row(D))))
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    reading = family.mode(params)
    own = np.arange(30), labels
    got = family.log_density(Block(X, complete=not missing), reading)[own]
    # dense eigenvalues would lose the small ones
    wanted = np.array([_own_log_density(x, params, k) for x, k in zip(X, labels, strict=True)])
    np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-9 + 1e-13 / np.sqrt(noise))


def _own_log_density(x: np.ndarray, params: FactorParams, k: int) -> float:
    """ln N(x_o) by a triangular factor of (Psi^-1/2 W; I): least squares, in no hurry."""
    seen = ~np.isnan(x)
    u = (params.frame.enter(x) - params.means[k])[seen]
    root = np.sqrt(params.noise[k, seen])
    d = params.loadings.shape[2]
    tall = np.concatenate([params.loadings[k, seen] / root[:, None], np.eye(d)])
    basis, factor = np.linalg.qr(tall)
    e = np.concatenate([u / root, np.zeros(d)])
    left = e - basis @ (basis.T @ e)
    log_det = 2 * np.log(root).sum() + 2 * np.log(np.abs(np.diagonal(factor))).sum()
    log_det += 2 * params.frame.log_scale[seen].sum()
    return float(-0.5 * (seen.sum() * np.log(2 * np.pi) + log_det + left @ left))


def test_the_guard_is_needed(typical: Any) -> None:
    """What the fast route would make of rows that the guard keeps from it."""
    family = FactorFamily(factors=(2,))
    params = typical(family, 1, D, noise=1e-10, origin=np.zeros(D))
    rng = np.random.default_rng(0)
    X = family.sample(params, np.zeros(50, int), rng.normal(size=(50, D + 2)))
    wanted = np.array([_own_log_density(x, params, 0) for x in X])
    reading = family.mode(params)
    safe = family.log_density(Block(X), reading)[:, 0]
    np.testing.assert_array_equal(safe, careful_scores(params.frame.enter(X), reading)[0][:, 0])
    assert np.abs(safe - wanted).max() < 1e-6
    assert np.abs(lifted_scores(Block(X), reading)[0][:, 0] - wanted).max() > 1e-5


def test_statistics_of_guarded_components(family: FactorFamily, typical: Any) -> None:
    """Noise of 1e-10 beside loadings of order one comes back from an M step at its own optimum."""
    family = replace(family, floor=1e-14)
    params = typical(family, 1, D, noise=1e-10)
    rng = np.random.default_rng(0)
    n = 4000
    X = family.sample(params, np.zeros(n, int), rng.normal(size=(n, family.normals_per_row(D))))
    reading = family.mode(params)
    moments = family.moments(family.scores(Block(X), reading), np.ones((n, 1)), reading)
    fresh, _ = replace(family, factors=(2,)).estimate(moments, params)
    ratio = family.noise.gather(fresh.noise) / family.noise.gather(params.noise)
    np.testing.assert_allclose(ratio, 1, atol=6 * np.sqrt(2 / n))


# ------------------------------------------------ far from zero


def test_rows_too_far_to_be_squared_are_impossible(family: FactorFamily, typical: Any) -> None:
    """And tell nobody else: no warning, no NaN."""
    params = typical(family, K, D)
    X = _rows(params, False)[:4]
    far = X * np.array([[1.0], [1e12], [1e160], [1.0]])
    model = Mixture(K, family)
    got = model.log_joint(model.prepare(MixtureParams(np.exp(LOG_WEIGHTS), params)), Block(far))
    assert np.isfinite(got[[0, 1, 3]]).all() and (got[2] == -np.inf).all()
    alone = family.log_density(Block(X[[0, 3]]), family.mode(params)) + LOG_WEIGHTS
    np.testing.assert_allclose(got[[0, 3]], alone, rtol=1e-12)


@pytest.mark.parametrize("has_missing", [False, True], ids=["complete", "with NaN"])
def test_offset_changes_nothing(family: FactorFamily, has_missing: bool) -> None:
    family = replace(family, has_missing=has_missing)
    X = clustered_table(100, D, K, missing=0.1 if has_missing else 0.0, seed=2)
    X = np.round(X * 2**18) / 2**18  # so that 1e8 can be added without rounding
    resp = np.random.default_rng(0).dirichlet(np.ones(K), 100)
    near, far = (_after_steps(family, X + offset, resp, 6) for offset in (0.0, 1e8))
    np.testing.assert_array_equal((X + 1e8) - 1e8, X)
    np.testing.assert_allclose(far[0], near[0], atol=1e-6)
    np.testing.assert_allclose(far[1], near[1], rtol=1e-8)
    np.testing.assert_allclose(far[2], near[2], rtol=1e-6, atol=1e-7)


def _after_steps(
    family: FactorFamily, X: np.ndarray, resp: np.ndarray, n_steps: int
) -> tuple[np.ndarray, float, np.ndarray]:
    """Responsibilities, objective and loadings after some steps from given responsibilities."""
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
    return shares, stats.log_likelihood, params.components.loadings
