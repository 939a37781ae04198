"""What fitted factor models are asked: latents, and rows made of latents, by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.decomposition import PCA

from mixfold.contracts import Block
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.random import RowKeys
from mixfold.engine.sources import open_source
from mixfold.families.factor import (
    DiagonalNoise,
    FactorFamily,
    FactorParams,
    IsotropicNoise,
    TiedLoadings,
)
from mixfold.math.frame import Frame
from mixfold.models.factors.factor_use import (
    RECONSTRUCTIONS,
    canonical,
    common_axes,
    decode,
    infer,
    reconstruct,
    unshrunk,
)
from mixfold.models.factors.ppca import closed_form
from mixfold.models.factors.spectral import principal_axes
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing.oracles import conditional_moments, gaussian_log_density
from mixfold.testing.tables import clustered_table

K, D, N = 3, 4, 20
WEIGHTS = np.array([0.2, 0.5, 0.3])
FAMILIES = {
    "own": FactorFamily(factors=(2, 1, 2), noise=DiagonalNoise()),
    "isotropic": FactorFamily(factors=(2,), noise=IsotropicNoise()),
    "tied": FactorFamily(factors=(2,), noise=DiagonalNoise(), loadings=TiedLoadings()),
    "no factors": FactorFamily(factors=(0,)),
}


@pytest.fixture(params=sorted(FAMILIES))
def model(request: pytest.FixtureRequest) -> Mixture:
    return Mixture(K, FAMILIES[request.param])


@pytest.fixture(params=[False, True], ids=["complete", "with NaN"])
def missing(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def params(model: Mixture) -> MixtureParams:
    """A mixture whose components overlap, in units of its own."""
    rng = np.random.default_rng(2)
    family = model.family
    assert isinstance(family, FactorFamily)
    W = 1.5 * rng.normal(size=(K, D, family.size))
    W = np.where(np.arange(family.size) < np.resize(family.factors, K)[:, None, None], W, 0.0)
    noise = family.noise.spread(family.noise.drop_copies(rng.uniform(0.2, 1.0, (K, D))), (K, D))
    if family.loadings.tied:
        W[:] = W[0]
    scale = rng.uniform(0.5, 3.0, D) if family.scales_columns else np.full(D, 2.0)
    frame = Frame(10 * rng.normal(size=D), scale)
    return MixtureParams(WEIGHTS, FactorParams(frame, rng.normal(size=(K, D)), W, noise))


@pytest.fixture
def X(model: Mixture, params: MixtureParams, missing: bool) -> np.ndarray:
    X = model.sample(params, N, np.random.default_rng(0))[0]
    if missing:
        X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
        X[3] = np.nan
    return X


def _in_data(p: FactorParams) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Means, loadings, noise variances and covariances in units of the data."""
    W, scale = p.loadings * p.frame.scale[:, None], p.frame.scale
    psi = p.noise * scale**2
    return p.frame.leave(p.means), W, psi, W @ np.swapaxes(W, 1, 2) + psi[:, :, None] * np.eye(D)


def _brute(params: MixtureParams, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares (n, K) and latents (n, K, d) by dense algebra."""
    means, W, _, C = _in_data(params.components)
    L = gaussian_log_density(X, means, C) + np.log(params.weights)
    z = np.zeros((len(X), K, W.shape[2]))
    for n, x in enumerate(X):
        o = np.flatnonzero(~np.isnan(x))
        for k in range(K):
            C_o = C[k][np.ix_(o, o)]
            z[n, k] = W[k, o].T @ np.linalg.solve(C_o, x[o] - means[k, o])
    return np.exp(L - logsumexp(L, axis=1, keepdims=True)), z


# ------------------------------------------------ axes


def test_canonical_coordinates_are_the_same_mixture(
    model: Mixture, params: MixtureParams, X: np.ndarray, missing: bool
) -> None:
    turned = canonical(params)
    block = Block(X, complete=not missing)
    ours, theirs = (model.log_joint(model.prepare(p), block) for p in (turned, params))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    p = turned.components
    gram = np.swapaxes(p.loadings / p.noise[:, :, None], 1, 2) @ p.loadings
    d = gram.shape[-1]
    diagonal = np.diagonal(gram, axis1=1, axis2=2)
    np.testing.assert_allclose(gram, diagonal[:, :, None] * np.eye(d), atol=1e-10)
    assert (np.diff(diagonal, axis=1) <= 1e-10).all()
    # posteriors of different axes are independent
    covariances = infer(model, model.prepare(turned), Block(X[:1] * 0), True).latents.covariances
    np.testing.assert_allclose(covariances, (1 / (1 + diagonal))[:, :, None] * np.eye(d), atol=1e-9)


def test_common_axes_keep_loadings_common() -> None:
    rng = np.random.default_rng(0)
    W = np.repeat(rng.normal(size=(1, D, 2)), K, axis=0)
    p = FactorParams(
        Frame(np.zeros(D), np.ones(D)), rng.normal(size=(K, D)), W, rng.uniform(0.2, 1, (K, D))
    )
    turned = common_axes(MixtureParams(WEIGHTS, p)).components
    np.testing.assert_array_equal(turned.loadings, np.repeat(turned.loadings[:1], K, axis=0))
    np.testing.assert_allclose(
        turned.loadings @ np.swapaxes(turned.loadings, 1, 2), W @ np.swapaxes(W, 1, 2), atol=1e-12
    )
    gram = (turned.loadings[0] / p.noise.mean(axis=0)[:, None]).T @ turned.loadings[0]
    assert abs(gram[0, 1]) < 1e-12 and gram[0, 0] >= gram[1, 1]


# ------------------------------------------------ latents


def test_inferred_shares_and_latents(
    model: Mixture, params: MixtureParams, X: np.ndarray, missing: bool
) -> None:
    inferred = infer(model, model.prepare(params), Block(X, complete=not missing))
    resp, z = _brute(params, X)
    np.testing.assert_allclose(inferred.resp, resp, atol=1e-10)
    np.testing.assert_allclose(inferred.latents.means, z, atol=1e-9)
    np.testing.assert_allclose(inferred.expected, (resp[:, :, None] * z).sum(axis=1), atol=1e-9)


def _rebuilt(name: str, params: MixtureParams, X: np.ndarray) -> np.ndarray:
    """Reconstructions row by row, as they are defined."""
    means, W, psi, _ = _in_data(params.components)
    resp, z = _brute(params, X)
    out = np.empty(X.shape)
    for n, x in enumerate(X):
        k = resp[n].argmax()
        if name == "posterior":
            out[n] = sum(resp[n, i] * (W[i] @ z[n, i] + means[i]) for i in range(K))
        elif name == "hard":
            out[n] = W[k] @ (resp[n] @ z[n]) + means[k]
        else:
            o = ~np.isnan(x)
            root = np.sqrt(psi[k, o]) if name == "weighted" else np.ones(o.sum())
            left = (x[o] - means[k, o]) / root
            out[n] = means[k] + W[k] @ (np.linalg.pinv(W[k, o] / root[:, None]) @ left)
    return out


@pytest.mark.parametrize("name", sorted(RECONSTRUCTIONS))
def test_reconstructions(
    name: str, model: Mixture, params: MixtureParams, X: np.ndarray, missing: bool
) -> None:
    block = Block(X, complete=not missing)
    got = reconstruct(RECONSTRUCTIONS[name], model, model.prepare(params), block)
    assert np.isfinite(got).all()
    if name in ("least-squares", "weighted") and missing:
        # fewer entries than factors leave a plane free: shortest in which units, nobody says
        enough = (~np.isnan(X)).sum(axis=1) >= 2
    else:
        enough = np.ones(N, bool)
    wanted = _rebuilt(name, params, X)
    np.testing.assert_allclose(got[enough], wanted[enough], rtol=1e-8, atol=1e-8)
    # turning the latents of one component changes nothing unless latents of several are mixed
    if name != "hard":
        turned = reconstruct(RECONSTRUCTIONS[name], model, model.prepare(canonical(params)), block)
        np.testing.assert_allclose(turned[enough], got[enough], rtol=1e-7, atol=1e-7)


def test_sparse_rows_are_reconstructed(model: Mixture, params: MixtureParams) -> None:
    X = np.where(np.random.default_rng(0).random((N, D)) < 0.5, 0.0, 3.0)
    reading = model.prepare(params)
    for rebuild in RECONSTRUCTIONS.values():
        ours = reconstruct(rebuild, model, reading, Block(sparse.csr_array(X)))
        theirs = reconstruct(rebuild, model, reading, Block(X))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_a_row_with_nothing_observed_is_the_mean(model: Mixture, params: MixtureParams) -> None:
    block = Block(np.full((1, D), np.nan), complete=False)
    got = reconstruct(RECONSTRUCTIONS["posterior"], model, model.prepare(params), block)
    p = params.components
    np.testing.assert_allclose(got[0], WEIGHTS @ p.frame.leave(p.means), rtol=1e-10)


def test_decoded_latents(model: Mixture, params: MixtureParams) -> None:
    means, W, _, _ = _in_data(params.components)
    rng = np.random.default_rng(0)
    Z, shares = rng.normal(size=(6, W.shape[2])), rng.dirichlet(np.ones(K), 6)
    wanted = np.einsum("nk,nkj->nj", shares, np.einsum("kjd,nd->nkj", W, Z) + means)
    np.testing.assert_allclose(decode(params, Z, shares), wanted, rtol=1e-10)


# ------------------------------------------------ one component is PCA


@pytest.mark.parametrize("d", [1, 2])
def test_least_squares_is_the_reconstruction_of_pca(d: int) -> None:
    X = clustered_table(60, D, 2)
    source = open_source(X)
    spectrum = principal_axes(source, ThreadExecutor(1), d, rng=np.random.default_rng(0))
    params = canonical(closed_form(spectrum, 1e-6))
    model = Mixture(1, FactorFamily(factors=(d,), noise=IsotropicNoise()))
    reading, block = model.prepare(params), Block(X)
    peer = PCA(d, svd_solver="full").fit(X)
    wanted = peer.inverse_transform(peer.transform(X))
    got = reconstruct(RECONSTRUCTIONS["least-squares"], model, reading, block)
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    # the same from the posterior means, which are drawn towards zero
    Z = infer(model, reading, block).expected
    ones = np.ones((60, 1))
    np.testing.assert_allclose(decode(params, unshrunk(params, Z), ones), wanted, atol=1e-9)
    shrunk = reconstruct(RECONSTRUCTIONS["posterior"], model, reading, block)
    np.testing.assert_allclose(shrunk, decode(params, Z, ones), atol=1e-9)
    assert ((shrunk - X.mean(axis=0)) ** 2).sum() < ((wanted - X.mean(axis=0)) ** 2).sum()


def test_unshrunk_latents_of_factor_analysis_are_the_weighted_projection() -> None:
    rng = np.random.default_rng(0)
    frame = Frame(rng.normal(size=D), rng.uniform(0.5, 2, D))
    p = FactorParams(
        frame, rng.normal(size=(1, D)), rng.normal(size=(1, D, 2)), rng.uniform(0.2, 1, (1, D))
    )
    params = canonical(MixtureParams(np.ones(1), p))
    model = Mixture(1, FactorFamily(factors=(2,)))
    block, reading = Block(rng.normal(size=(10, D))), model.prepare(params)
    Z = unshrunk(params, infer(model, reading, block).expected)
    got = decode(params, Z, np.ones((10, 1)))
    wanted = reconstruct(RECONSTRUCTIONS["weighted"], model, reading, block)
    np.testing.assert_allclose(got, wanted, atol=1e-10)


def test_a_factor_without_loadings_is_not_blown_up() -> None:
    W = np.zeros((1, D, 2))
    W[0, :, 0] = 1.0
    p = FactorParams(Frame(np.zeros(D), np.ones(D)), np.zeros((1, D)), W, np.ones((1, D)))
    got = unshrunk(MixtureParams(np.ones(1), p), np.array([[1.0, 5.0]]))
    np.testing.assert_allclose(got, [[1.25, 0.0]])  # g = 4: (1 + g) / g


# ------------------------------------------------ the mixture's own questions


def test_imputed_means(model: Mixture, params: MixtureParams, X: np.ndarray) -> None:
    got = model.impute(model.prepare(params), Block(X, complete=False), RowKeys(0), draw=False)
    means, _, _, C = _in_data(params.components)
    resp, _ = _brute(params, X)
    for row, filled, shares in zip(X, got, resp, strict=True):
        each = [conditional_moments(row, means[k], C[k])[0] for k in range(K)]
        np.testing.assert_allclose(filled, shares @ each, rtol=1e-8)


def test_imputed_draws_follow_the_conditional_mixture(
    model: Mixture, params: MixtureParams
) -> None:
    means, _, _, C = _in_data(params.components)
    n = 8000
    row = means.mean(axis=0)
    row[[0, 2]] = np.nan
    block = Block(np.tile(row, (n, 1)), complete=False)
    draws = model.impute(model.prepare(params), block, RowKeys(3), draw=True)
    shares = _brute(params, row[None])[0][0]
    each = [conditional_moments(row, means[k], C[k]) for k in range(K)]
    mean = sum(s * m for s, (m, _) in zip(shares, each, strict=True))
    second = sum(
        s * (c + np.outer(m - mean, m - mean)) for s, (m, c) in zip(shares, each, strict=True)
    )
    gap = draws - mean
    assert (np.abs(gap.mean(axis=0)) <= 6 * gap.std(axis=0) / np.sqrt(n) + 1e-9).all()
    products = gap[:, :, None] * gap[:, None]
    error = products.std(axis=0) / np.sqrt(n)
    assert (np.abs(products.mean(axis=0) - second) <= 6 * error + 1e-9).all()


@pytest.mark.parametrize("known", [[0], [2, 1]], ids=str)
def test_conditional_density_is_joint_over_marginal(
    model: Mixture, params: MixtureParams, known: list[int]
) -> None:
    X = model.sample(params, N, np.random.default_rng(0))[0]
    X[:, known] = X[0, known]
    others = np.setdiff1d(np.arange(D), known)
    given = model.condition(params, np.array(known), X[0, known])
    assert given.weights.sum() == pytest.approx(1)
    marginal = X.copy()
    marginal[:, others] = np.nan
    means, _, _, C = _in_data(params.components)
    log_joint, log_marginal = (
        logsumexp(gaussian_log_density(rows, means, C) + np.log(WEIGHTS), axis=1)
        for rows in (X, marginal)
    )
    got = logsumexp(model.log_joint(model.prepare(given), Block(X[:, others])), axis=1)
    np.testing.assert_allclose(got, log_joint - log_marginal, rtol=1e-8, atol=1e-8)


def test_dropped_components_take_no_part(model: Mixture, params: MixtureParams) -> None:
    """Weight zero: no share, and nothing of it in a reconstruction."""
    params = replace(params, weights=np.array([0.4, 0.0, 0.6]))
    X = model.sample(params, N, np.random.default_rng(0))[0]
    inferred = infer(model, model.prepare(params), Block(X))
    np.testing.assert_array_equal(inferred.resp[:, 1], 0)
    np.testing.assert_allclose(inferred.resp.sum(axis=1), 1)
    for rebuild in RECONSTRUCTIONS.values():
        assert np.isfinite(reconstruct(rebuild, model, model.prepare(params), Block(X))).all()
