"""Statistics and M step of factor components against slow sums over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.families.factor import FactorFamily, FactorParams
from mixfold.families.factor.records import FactorSums, entries
from mixfold.math.frame import Frame
from mixfold.testing.compare import require_same
from mixfold.testing.oracles import gradient_by_differences
from mixfold.testing.tables import clustered_table

K, D, N = 3, 4, 40


@pytest.fixture(params=[False, True], ids=["complete", "with NaN"])
def has_missing(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def kind(family: FactorFamily, has_missing: bool) -> FactorFamily:
    return replace(family, has_missing=has_missing)


@pytest.fixture
def start(kind: FactorFamily, typical: Any) -> FactorParams:
    """Components in coordinates of the data."""
    params: FactorParams = typical(kind, K, D, seed=2)
    return replace(params, frame=Frame(np.zeros(D), np.ones(D)))


@pytest.fixture
def X(has_missing: bool) -> np.ndarray:
    X = clustered_table(N, D, K, missing=0.25 if has_missing else 0.0, seed=1)
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)


@pytest.fixture
def resp() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.dirichlet(np.ones(K), N) * rng.uniform(0.5, 2, N)[:, None]


def _sums(
    family: FactorFamily, X: np.ndarray, params: FactorParams, resp: np.ndarray
) -> FactorSums:
    reading = family.mode(params)
    scores = family.scores(Block(X, complete=not np.isnan(X).any()), reading)
    return family.moments(scores, resp, reading)


def _latents(x: np.ndarray, params: FactorParams, k: int) -> tuple[np.ndarray, np.ndarray]:
    """E[z | x_o] and E[zz' | x_o] by dense algebra."""
    o = np.flatnonzero(~np.isnan(x))
    W = params.loadings[k, o]
    gain = W.T @ np.linalg.inv(W @ W.T + np.diag(params.noise[k, o]))
    z = gain @ (x[o] - params.means[k, o])
    return z, np.eye(W.shape[1]) - gain @ W + np.outer(z, z)


def test_statistics_are_sums_over_rows(
    kind: FactorFamily, start: FactorParams, X: np.ndarray, resp: np.ndarray
) -> None:
    sums = _sums(kind, X, start, resp)
    d = start.n_factors
    first, squares, cross = np.zeros((K, D)), np.zeros((K, D)), np.zeros((K, D, d))
    count, z1, z2 = np.zeros((K, D)), np.zeros((K, D, d)), np.zeros((K, D, d, d))
    rows1, rows2 = np.zeros((K, d)), np.zeros((K, d, d))
    for k in range(K):
        for x, r in zip(X, resp[:, k], strict=True):
            z, zz = _latents(x, start, k)
            rows1[k] += r * z
            rows2[k] += r * zz
            for j in np.flatnonzero(~np.isnan(x)):
                v = x[j] - sums.origin[k, j]
                first[k, j] += r * v
                squares[k, j] += r * v**2
                cross[k, j] += r * v * z
                count[k, j] += r
                z1[k, j] += r * z
                z2[k, j] += r * zz
    seen = entries(sums)
    wanted = {"first": first, "cross": cross, "count": count, "z": z1, "zz": z2}
    got = {
        "first": sums.first,
        "cross": sums.cross,
        "count": np.broadcast_to(seen.count, count.shape),
        "z": np.broadcast_to(seen.first, z1.shape),
        "zz": np.broadcast_to(seen.second, z2.shape),
    }
    wanted |= {"rows": resp.sum(axis=0), "rows.z": rows1, "rows.zz": rows2}
    got |= {"rows": sums.rows.count, "rows.z": sums.rows.first, "rows.zz": sums.rows.second}
    require_same("sums over rows", got, wanted, 1e-11)
    # of columns that share a variance only the total is kept
    over = kind.noise.over_columns
    np.testing.assert_allclose(over(sums.squares), over(squares), rtol=1e-10)


def test_statistics_about_the_frame(
    kind: FactorFamily, start: FactorParams, X: np.ndarray, resp: np.ndarray
) -> None:
    """Moved to another origin they give the same step."""
    sums = _sums(kind, X, start, resp)
    about = kind.about_frame(sums)
    np.testing.assert_array_equal(about.origin, 0)
    assert sums.origin.any() and about.rows is sums.rows
    wanted, _ = kind.estimate(sums, start)
    got, _ = kind.estimate(about, start)
    require_same("about the frame", got, wanted, 1e-10)


# ------------------------------------------------ the maximum


Expected = Callable[[FactorParams], float]


def _expected(old: FactorParams, X: np.ndarray, resp: np.ndarray) -> Expected:
    """sum_nk r_nk sum_{j seen} E[ln N(x_j; w_j'z + mu_j, psi_j)], latents as ``old`` has them."""
    pairs = [[_latents(x, old, k) for x in X] for k in range(K)]
    z = np.array([[first for first, _ in rows] for rows in pairs])
    zz = np.array([[second for _, second in rows] for rows in pairs])
    seen = ~np.isnan(X)

    def value(params: FactorParams) -> float:
        W, psi = params.loadings, params.noise[:, None]
        v = np.where(seen, X, 0.0) - params.means[:, None]
        form = v**2 - 2 * v * np.einsum("kjd,knd->knj", W, z)
        form += np.einsum("kjd,knde,kje->knj", W, zz, W)
        terms = np.where(seen, np.log(psi) + form / psi, 0.0).sum(axis=2)
        return float(-0.5 * (resp.T * terms).sum())

    return value


def test_a_plain_step_is_the_maximum_of_the_expected_likelihood(
    kind: FactorFamily, start: FactorParams, X: np.ndarray, resp: np.ndarray
) -> None:
    """Means and loadings at the old noise, then the noise at the new ones."""
    plain = replace(kind, expand=False)
    best, touched = plain.estimate(_sums(plain, X, start, resp), start)
    assert not touched.any()
    n_noise = plain.noise.n_free(K, D)
    value = _expected(start, X, resp)
    middle = replace(best, noise=start.noise)
    _require_maximum(plain, middle, slice(None, -n_noise), value)
    _require_maximum(plain, best, slice(-n_noise, None), value)
    if not plain.loadings.tied:  # then the noise does not matter for the loadings
        _require_maximum(plain, best, slice(None), value)


def _require_maximum(
    family: FactorFamily, best: FactorParams, free: slice, value: Expected
) -> None:
    """No slope along any free coordinate, and less at some distance."""
    at = family.coordinates(best)

    def gain(vector: np.ndarray) -> float:
        return value(family.from_coordinates(best, vector))

    slope = gradient_by_differences(gain, at)[free]
    assert np.abs(slope).max() < 1e-6 * N
    assert np.abs(gradient_by_differences(gain, at + 0.05)[free]).max() > 0.1  # it can be seen
    rng = np.random.default_rng(0)
    for size in (1e-2, 0.1, 1.0):
        step = np.zeros(at.size)
        step[free] = size * rng.normal(size=step[free].shape)
        assert gain(at + step) < gain(at)


@pytest.mark.parametrize("expand", [False, True], ids=["plain", "expanded"])
def test_means_that_are_fixed_stay_at_zero(
    kind: FactorFamily, X: np.ndarray, resp: np.ndarray, typical: Any, expand: bool
) -> None:
    """And the rows are explained about zero: the maximum without the means."""
    fixed = replace(kind, fixed_means=True, expand=expand)
    start = replace(typical(fixed, K, D, seed=2), frame=Frame(np.zeros(D), np.ones(D)))
    X = X + 1.5
    params, _ = fixed.estimate(_sums(fixed, X, start, resp), start)
    np.testing.assert_array_equal(params.means, 0)
    if not expand:
        value, n_noise = _expected(start, X, resp), fixed.noise.n_free(K, D)
        middle = replace(params, noise=start.noise)
        _require_maximum(fixed, middle, slice(None, -n_noise), value)
        _require_maximum(fixed, params, slice(-n_noise, None), value)


def test_an_expanded_step_absorbs_the_prior_of_the_latents(
    kind: FactorFamily, start: FactorParams, X: np.ndarray, resp: np.ndarray
) -> None:
    """z ~ N(nu, V) with the moments that all posteriors have together, then z = nu + root(V) z'."""
    sums = _sums(kind, X, start, resp)
    expanded, _ = kind.estimate(sums, start)
    plain, _ = replace(kind, expand=False).estimate(sums, start)
    np.testing.assert_allclose(expanded.noise, plain.noise, rtol=1e-12)
    nu, V = np.zeros((K, 2)), np.zeros((K, 2, 2))
    for k in range(K):
        pairs = [_latents(x, start, k) for x in X]
        shares = resp[:, k] / resp[:, k].sum()
        nu[k] = shares @ [z for z, _ in pairs]
        V[k] = np.tensordot(shares, [zz for _, zz in pairs], axes=1) - np.outer(nu[k], nu[k])
    if kind.loadings.tied:
        V[:] = np.tensordot(resp.sum(axis=0) / resp.sum(), V, axes=1)
    W = plain.loadings
    np.testing.assert_allclose(
        expanded.means, plain.means + np.einsum("kjd,kd->kj", W, nu), rtol=1e-9, atol=1e-11
    )
    np.testing.assert_allclose(
        expanded.loadings @ np.swapaxes(expanded.loadings, 1, 2),
        W @ V @ np.swapaxes(W, 1, 2), rtol=1e-9, atol=1e-11,
    )  # fmt: skip


def test_without_holes_the_means_are_those_of_the_rows(
    family: FactorFamily, typical: Any, resp: np.ndarray
) -> None:
    """The latents are integrated out for the means: they arrive in one step."""
    X = clustered_table(N, D, K, seed=1)
    start = typical(family, K, D, seed=2)
    params, _ = family.estimate(_sums(family, X, start, resp), start)
    wanted = (resp.T @ X) / resp.sum(axis=0)[:, None]
    np.testing.assert_allclose(params.frame.leave(params.means), wanted, rtol=1e-10)


def test_factors_that_a_component_lacks_stay_away(
    typical: Any, X: np.ndarray, has_missing: bool, resp: np.ndarray
) -> None:
    family = FactorFamily(factors=(2, 0, 1), has_missing=has_missing)
    start = typical(family, K, D, seed=2)
    params = start
    for _ in range(3):
        params, _ = family.estimate(_sums(family, X, params, resp), params)
    assert not params.loadings[1].any() and not params.loadings[2, :, 1].any()
    assert params.loadings[0].all() and params.loadings[2, :, 0].all()


# ------------------------------------------------ constraints and repairs


def test_floor(family: FactorFamily, typical: Any) -> None:
    """Repeated rows: the noise stops at the floor, and the components say so."""
    floored = replace(family, floor=0.25)
    X = np.repeat([[0.0, 0, 0, 0], [8, 0, 0, 8], [0, 8, 8, 0]], 20, axis=0)
    resp = np.repeat(np.eye(K), 20, axis=0)
    start = replace(typical(family, K, D), frame=Frame(np.zeros(D), np.ones(D)))
    params, touched = floored.estimate(_sums(floored, X, start, resp), start)
    assert touched.all()
    for _ in range(60):  # the loadings shrink to nothing
        params, touched = floored.estimate(_sums(floored, X, params, resp), params)
    np.testing.assert_array_equal(params.noise, 0.25)
    np.testing.assert_allclose(params.means, X[::20], atol=1e-9)
    assert np.abs(params.loadings).max() < 0.1
    words = floored.floor_message(2)
    assert "component 2" in words and "floor of 0.25" in words and "Heywood" in words


def test_a_component_without_rows_stays(
    kind: FactorFamily, start: FactorParams, X: np.ndarray, resp: np.ndarray
) -> None:
    resp[:, 1] = 0
    params, touched = kind.estimate(_sums(kind, X, start, resp), start)
    np.testing.assert_array_equal(params.means[1], start.means[1])
    np.testing.assert_array_equal(params.noise[1], start.noise[1])
    if kind.loadings.tied:
        np.testing.assert_array_equal(params.loadings[1], params.loadings[0])
    else:
        np.testing.assert_array_equal(params.loadings[1], start.loadings[1])
    assert not touched[1] and np.isfinite(kind.coordinates(params)).all()
    # the others do not notice
    two = replace(kind, factors=(2,))
    kept = kind.select(start, np.array([0, 2]))
    alone, _ = two.estimate(_sums(two, X, kept, resp[:, [0, 2]]), kept)
    np.testing.assert_allclose(params.loadings[[0, 2]], alone.loadings, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(params.noise[[0, 2]], alone.noise, rtol=1e-9)


def test_place_moves_components_and_gives_them_the_shape_of_a_neighbour(
    family: FactorFamily, typical: Any
) -> None:
    params = typical(replace(family, factors=(2, 1, 2, 1)), 4, D)
    params.means[0], params.means[2] = 5.0, -5.0
    points = np.array([[4.0, 5, 6, 5], [-5, -6, -7, 0]])
    moved = replace(family, factors=(2, 1, 2, 1)).place(params, np.array([1, 3]), points)
    np.testing.assert_array_equal(moved.means[[1, 3]], points)
    np.testing.assert_array_equal(moved.means[[0, 2]], params.means[[0, 2]])
    np.testing.assert_array_equal(moved.noise[[1, 3]], params.noise[[0, 2]])
    # with the factors that it may have
    np.testing.assert_array_equal(moved.loadings[[1, 3], :, 0], params.loadings[[0, 2], :, 0])
    np.testing.assert_array_equal(moved.loadings[[1, 3], :, 1], 0)
    np.testing.assert_array_equal(moved.loadings[[0, 2]], params.loadings[[0, 2]])


def test_means_that_are_fixed_are_not_placed(typical: Any) -> None:
    family = FactorFamily(factors=(2,), fixed_means=True)
    moved = family.place(typical(family, K, D), np.array([1]), np.ones((1, D)))
    np.testing.assert_array_equal(moved.means, 0)


def test_keep_drops_the_other_components(family: FactorFamily, typical: Any, dense: Any) -> None:
    params = typical(family, K, D)
    kept = family.select(params, np.array([2, 0]))
    for ours, theirs in zip(dense(kept), dense(params), strict=True):
        np.testing.assert_array_equal(ours, theirs[[2, 0]])


def test_other_frames_hold_the_same_components(
    family: FactorFamily, typical: Any, dense: Any
) -> None:
    params = typical(family, K, D)
    scale = np.array([0.1, 3.0, 7.0, 1.0]) if family.scales_columns else np.full(D, 0.3)
    other = family.change_frame(params, Frame(np.array([1.0, -5, 100, 0]), scale))
    np.testing.assert_array_equal(other.frame.scale, scale)
    for ours, theirs in zip(dense(other), dense(params), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


# ------------------------------------------------ starts from a sample


def test_start_of_well_told_components_is_close_to_them(family: FactorFamily, typical: Any) -> None:
    """PCA in each component finds its plane."""
    truth = typical(family, K, D, noise=0.02, seed=6)
    n = 3000
    labels = np.arange(n) % K
    normals = np.random.default_rng(0).normal(size=(n, family.normals_per_row(D)))
    U = truth.frame.enter(family.sample(truth, labels, normals))
    got = family.from_sample(truth.frame, U, np.eye(K)[labels])
    np.testing.assert_allclose(got.means, truth.means, atol=0.3)
    ratio = family.noise.drop_copies(got.noise) / family.noise.drop_copies(truth.noise)
    assert ratio.min() > 0.1 and ratio.max() < 10
    for k, d in enumerate(np.resize(family.factors, K)):
        assert not got.loadings[k, :, d:].any()
        ours, theirs = (np.linalg.qr(p.loadings[k, :, :d])[0] for p in (got, truth))
        assert np.linalg.svd(ours.T @ theirs)[1].min() > 0.98


def test_noise_of_a_start_is_halfway_to_that_of_all_components() -> None:
    """Rows of one component that lie in a plane do not start without noise."""
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(10, 1)) @ np.ones((1, D))
    U = np.concatenate([flat, 2 * rng.normal(size=(30, D))])
    resp = np.eye(2)[np.r_[np.zeros(10, int), np.ones(30, int)]]
    params = FactorFamily(factors=(1,)).from_sample(Frame(np.zeros(D), np.ones(D)), U, resp)
    assert params.noise[0].min() > 0.2
    # 0 and v become (0 + 3/4 v) / 2 and (v + 3/4 v) / 2
    np.testing.assert_allclose(params.noise[1] / params.noise[0], 7 / 3, rtol=1e-6)


def test_a_component_with_few_rows_starts_with_the_shape_of_all(typical: Any) -> None:
    family = FactorFamily(factors=(2,))
    U = np.random.default_rng(0).normal(size=(30, D)) * [4.0, 2.0, 1.0, 1.0]
    resp = np.zeros((30, 2))
    resp[:2, 0], resp[2:, 1] = 1.0, 1.0
    params = family.from_sample(Frame(np.zeros(D), np.ones(D)), U, resp)
    np.testing.assert_allclose(params.means[0], U[:2].mean(axis=0), rtol=1e-12)
    # its plane is that of all rows, which two rows could not tell
    whole = np.linalg.eigh(np.cov(U.T, bias=True))[1][:, -2:]
    basis, _ = np.linalg.qr(params.loadings[0])
    np.testing.assert_allclose(np.linalg.svd(whole.T @ basis)[1], 1, atol=1e-8)
    none = family.from_sample(params.frame, U, np.eye(2)[np.zeros(30, int)])
    assert np.isfinite(family.coordinates(none)).all() and (none.noise > 0).all()
