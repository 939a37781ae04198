"""Factor components that are something else in disguise, and fits whose optimum is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.decomposition import FactorAnalysis

from mixfold.contracts import Block, Context
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.random import RowKeys
from mixfold.engine.sources import open_source
from mixfold.families import GAUSSIAN
from mixfold.families.factor import (
    DiagonalNoise,
    FactorFamily,
    FactorParams,
    IsotropicNoise,
    TiedLoadings,
)
from mixfold.families.gaussian import GaussianParams
from mixfold.math.frame import Frame
from mixfold.models.factors.ppca import closed_form, log_likelihood_of
from mixfold.models.factors.spectral import principal_axes
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing.oracles import gaussian_log_density
from mixfold.testing.tables import clustered_table

K, D = 3, 4
KEYS = RowKeys(0)
WEIGHTS = np.array([0.2, 0.5, 0.3])


def _step(model: Mixture, params: MixtureParams, block: Block) -> tuple[MixtureParams, float]:
    stats = model.expect(model.prepare(params), block, KEYS)
    context = Context(None, np.random.default_rng(0))
    return model.update(params, stats, context).params, stats.log_likelihood


# ------------------------------------------------ Gaussian components without factors


@pytest.mark.parametrize(
    ("kind", "noise"),
    [("diag", DiagonalNoise()), ("spherical", IsotropicNoise()), ("tied-diag", DiagonalNoise(True)),
     ("tied-spherical", IsotropicNoise(True))],
)  # fmt: skip
@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "with NaN"])
@pytest.mark.parametrize("expand", [False, True], ids=["plain", "expanded"])
def test_without_factors_every_step_is_that_of_a_gaussian_mixture(
    kind: str, noise: Any, missing: float, expand: bool
) -> None:
    X = clustered_table(90, D, K, missing=missing)
    block = Block(X, complete=not missing, weight=np.linspace(0.5, 2, 90))
    family = FactorFamily(factors=(0,), noise=noise, has_missing=bool(missing), expand=expand)
    other = GAUSSIAN[kind]()
    frame = other.frame(X, np.ones(90))
    theirs = other.from_sample(
        frame, np.nan_to_num(frame.enter(X)), np.random.default_rng(0).dirichlet(np.ones(K), 90)
    )
    spread = np.einsum("kjj->kj", other.dense(theirs))
    ours = FactorParams(frame, theirs.means, np.zeros((K, D, 0)), spread.copy())
    a, b = MixtureParams(WEIGHTS, ours), MixtureParams(WEIGHTS, theirs)
    for _ in range(5):
        a, value = _step(Mixture(K, family), a, block)
        b, wanted = _step(Mixture(K, other), b, block)
        assert value == pytest.approx(wanted, rel=1e-11)
        np.testing.assert_allclose(a.weights, b.weights, rtol=1e-9)
        np.testing.assert_allclose(a.components.means, b.components.means, atol=1e-9)
        spread = np.einsum("kjj->kj", other.dense(b.components))
        np.testing.assert_allclose(a.components.noise, spread, rtol=1e-9)


# ------------------------------------------------ one component


def _dense_step(
    S: np.ndarray, W: np.ndarray, psi: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """EM of factor analysis with the whole covariance S: loadings, noise, latent covariance."""
    beta = W.T @ np.linalg.inv(W @ W.T + np.diag(psi))
    latent = np.eye(W.shape[1]) - beta @ W + beta @ S @ beta.T
    fresh = S @ beta.T @ np.linalg.inv(latent)
    return fresh, np.diagonal(S - fresh @ beta @ S), latent


@pytest.mark.parametrize("isotropic", [False, True], ids=["diagonal", "isotropic"])
@pytest.mark.parametrize("expand", [False, True], ids=["plain", "expanded"])
def test_one_component_is_factor_analysis(isotropic: bool, expand: bool, typical: Any) -> None:
    noise = IsotropicNoise() if isotropic else DiagonalNoise()
    family = FactorFamily(factors=(2,), noise=noise, expand=expand)
    X = clustered_table(80, D, K)
    frame = family.frame(X, np.ones(80))
    U = frame.enter(X)
    start = replace(typical(family, 1, D), frame=frame, means=U.mean(axis=0, keepdims=True))
    params, model = MixtureParams(np.ones(1), start), Mixture(1, family)
    W, psi = start.loadings[0], start.noise[0]
    S = np.cov(U.T, bias=True)
    for _ in range(4):
        params, _ = _step(model, params, Block(X))
        W, psi, latent = _dense_step(S, W, psi)
        if isotropic:
            psi = np.full(D, psi.mean())
        if expand:
            W = W @ np.linalg.cholesky(latent)
        got = params.components
        np.testing.assert_allclose(got.loadings[0] @ got.loadings[0].T, W @ W.T, atol=1e-10)
        np.testing.assert_allclose(got.noise[0], psi, rtol=1e-9)
        np.testing.assert_allclose(got.means[0], U.mean(axis=0), atol=1e-12)


def test_isotropic_noise_has_the_statistics_of_equal_diagonal_noise(typical: Any) -> None:
    """A mixture of PPCA is a mixture of factor analyzers whose columns share their noise."""
    one = FactorFamily(factors=(2, 1, 2), noise=IsotropicNoise())
    many = replace(one, noise=DiagonalNoise())
    params = MixtureParams(WEIGHTS, typical(one, K, D, origin=np.zeros(D)))
    X = one.sample(
        params.components, np.arange(60) % K, np.random.default_rng(0).normal(size=(60, D + 2))
    )
    a, b = (
        Mixture(K, f).expect(Mixture(K, f).prepare(params), Block(X), KEYS) for f in (one, many)
    )
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(a.components.cross, b.components.cross, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(a.components.rows.second, b.components.rows.second, rtol=1e-9)
    np.testing.assert_allclose(
        a.components.squares.sum(axis=1), b.components.squares.sum(axis=1), rtol=1e-10
    )
    (ours, _), (theirs, _) = (
        f.estimate(s.components, params.components) for f, s in ((one, a), (many, b))
    )
    np.testing.assert_allclose(ours.loadings, theirs.loadings, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours.noise[:, 0], theirs.noise.mean(axis=1), rtol=1e-9)


def test_tied_loadings_of_one_component_are_its_own() -> None:
    X = clustered_table(80, D, K, missing=0.1)
    a = _fitted(FactorFamily(factors=(1,), has_missing=True), X, max_iter=5)
    b = _fitted(
        FactorFamily(factors=(1,), has_missing=True, loadings=TiedLoadings()), X, max_iter=5
    )
    np.testing.assert_allclose(a.trace, b.trace, rtol=1e-10)


# ------------------------------------------------ optima


def _fitted(family: FactorFamily, X: np.ndarray, max_iter: int = 3000, tol: float = 1e-12) -> Fit:
    plan = Plan(tol=tol, max_iter=max_iter, n_candidates=1)
    return fit(Mixture(1, family), open_source(X), ThreadExecutor(1), plan)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("center", [True, False], ids=["centred", "about zero"])
def test_em_arrives_at_the_closed_form_of_ppca(d: int, center: bool) -> None:
    X = clustered_table(150, 5, 1, seed=3)
    family = FactorFamily(factors=(d,), noise=IsotropicNoise(), fixed_means=not center)
    spectrum = principal_axes(
        open_source(X), ThreadExecutor(1), d, rng=np.random.default_rng(0), center=center
    )
    result = _fitted(family, X)
    wanted = log_likelihood_of(spectrum, 1e-6) * len(X)
    assert result.objective == pytest.approx(wanted, rel=1e-9)
    exact, ours = closed_form(spectrum, 1e-6).components, result.params.components
    scale = ours.frame.scale[0]
    np.testing.assert_allclose(
        ours.noise[0] * scale**2, exact.noise[0] * exact.frame.scale**2, rtol=1e-5
    )
    basis = np.linalg.qr(ours.loadings[0])[0]
    angles = np.linalg.svd(basis.T @ spectrum.vectors)[1]
    assert np.sqrt(np.maximum(1 - angles**2, 0)).max() < 1e-5
    np.testing.assert_allclose(ours.frame.leave(ours.means)[0], spectrum.mean, atol=1e-7)
    # and stays there
    model = Mixture(1, family)
    reframed = family.change_frame(exact, ours.frame)
    again, value = _step(model, MixtureParams(np.ones(1), reframed), Block(X))
    assert value == pytest.approx(wanted, rel=1e-12)
    gram = again.components.loadings[0] @ again.components.loadings[0].T
    np.testing.assert_allclose(gram, reframed.loadings[0] @ reframed.loadings[0].T, atol=1e-10)


def test_plain_steps_freeze_the_scale_that_expanded_ones_find() -> None:
    """Loadings three times too long beside little noise."""
    rng = np.random.default_rng(0)
    truth = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    X = rng.normal(size=(300, 2)) @ truth.T + 3e-3 * rng.normal(size=(300, 6))
    S = np.cov(X.T, bias=True)
    unit = Frame(np.zeros(6), np.ones(6))
    start = FactorParams(unit, np.zeros((1, 6)), 3 * truth[None], np.full((1, 6), 1e-5))
    lengths = {}
    for expand in (False, True):
        family = FactorFamily(factors=(2,), noise=IsotropicNoise(), expand=expand, floor=1e-9)
        params, last = MixtureParams(np.ones(1), start), -np.inf
        for _ in range(30):
            params, value = _step(Mixture(1, family), params, Block(X))
            assert value >= last - 1e-9 * abs(value)
            last = value
        lengths[expand] = np.linalg.svd(params.components.loadings[0])[1]
    wanted = np.sqrt(np.linalg.eigvalsh(S)[:-3:-1])
    np.testing.assert_allclose(lengths[True], wanted, rtol=1e-3)
    assert (lengths[False] > 2.5 * wanted).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_the_likelihood_of_factor_analysis_is_at_least_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W, psi = rng.normal(size=(6, 2)), rng.uniform(0.2, 2, 6)
    X = rng.normal(size=(200, 2)) @ W.T + rng.normal(size=(200, 6)) * np.sqrt(psi)
    peer = FactorAnalysis(2, svd_method="lapack", tol=1e-5, max_iter=5000).fit(X)
    ours = _fitted(FactorFamily(factors=(2,)), X)
    assert ours.objective >= 200 * peer.score(X) - 1e-5
    # the same optimum unless it is a better one
    if ours.objective < 200 * peer.score(X) + 1e-2:
        p = ours.params.components
        scale = np.outer(p.frame.scale, p.frame.scale)
        covariance = (p.loadings[0] @ p.loadings[0].T + np.diag(p.noise[0])) * scale
        np.testing.assert_allclose(covariance, peer.get_covariance(), atol=0.05)


# ------------------------------------------------ missing entries


def _table_with_holes(n: int = 40) -> np.ndarray:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 1)) @ np.array([[1.5, -1.0, 0.8, 2.0]]) + rng.normal(size=(n, D))
    X[rng.random(X.shape) < 0.25] = np.nan
    return X + 3


def _observed(X: np.ndarray) -> Callable[[np.ndarray, np.ndarray], float]:
    """ln p of the seen entries under one dense Gaussian, pattern by pattern."""
    patterns, which = np.unique(~np.isnan(X), axis=0, return_inverse=True)
    groups = [(o, X[which.ravel() == i][:, o]) for i, o in enumerate(patterns) if o.any()]

    def value(mean: np.ndarray, covariance: np.ndarray) -> float:
        total = 0.0
        for o, rows in groups:
            C = covariance[np.ix_(o, o)]
            left = rows - mean[o]
            form = (left * np.linalg.solve(C, left.T).T).sum()
            total -= 0.5 * (len(rows) * np.linalg.slogdet(2 * np.pi * C)[1] + form)
        return float(total)

    return value


@pytest.mark.parametrize("isotropic", [False, True], ids=["diagonal", "isotropic"])
def test_em_with_missing_entries_arrives_at_the_maximum(isotropic: bool) -> None:
    """Against a general optimiser of the likelihood of what is seen."""
    X = _table_with_holes()
    observed = _observed(X)

    def parts(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, w, log_psi = v[:D], v[D : 2 * D], v[2 * D :]
        return mean, np.outer(w, w) + np.diag(np.exp(np.broadcast_to(log_psi, D)))

    rng = np.random.default_rng(0)
    n_noise = 1 if isotropic else D
    best = -np.inf
    for _ in range(3):
        v = np.r_[np.nanmean(X, axis=0), rng.normal(size=D), np.zeros(n_noise)]
        best = max(best, -minimize(lambda v: -observed(*parts(v)), v, method="BFGS").fun)
    noise = IsotropicNoise() if isotropic else DiagonalNoise()
    for expand in (True, False):
        result = _fitted(
            FactorFamily(factors=(1,), noise=noise, has_missing=True, expand=expand), X
        )
        assert result.objective == pytest.approx(best, abs=1e-5)
        p = result.params.components
        scale = np.outer(p.frame.scale, p.frame.scale)
        covariance = (p.loadings[0] @ p.loadings[0].T + np.diag(p.noise[0])) * scale
        # the likelihood that was climbed is that of the parameters
        value = observed(p.frame.leave(p.means)[0], covariance)
        assert value == pytest.approx(result.objective, rel=1e-10)


def test_enough_factors_make_any_gaussian(typical: Any) -> None:
    """With missing entries too, the likelihood is that of a full covariance."""
    family = FactorFamily(factors=(D - 1,), has_missing=True)
    params = typical(family, K, D, origin=np.zeros(D))
    W = params.loadings
    scatter = W @ np.swapaxes(W, 1, 2) + params.noise[:, :, None] * np.eye(D)
    full = GAUSSIAN["full"]()
    same = GaussianParams(params.frame, params.means, scatter)
    X = clustered_table(60, D, K, missing=0.3)
    block = Block(X, complete=False)
    ours, theirs = (
        Mixture(K, f).expect(Mixture(K, f).prepare(MixtureParams(WEIGHTS, p)), block, KEYS)
        for f, p in ((family, params), (full, same))
    )
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-10)
    np.testing.assert_allclose(ours.counts, theirs.counts, rtol=1e-8)
    assert ours.entropy == pytest.approx(theirs.entropy, rel=1e-8)


def test_a_fit_to_holes_that_hide_nothing_is_a_fit_without_holes(family: FactorFamily) -> None:
    """Statistics entry by entry give the same steps where no entry is missing."""
    X = clustered_table(80, D, K)
    frame = family.frame(X, np.ones(80))
    resp = np.random.default_rng(0).dirichlet(np.ones(K), 80)
    start = MixtureParams(WEIGHTS, family.from_sample(frame, frame.enter(X), resp))
    a, b = start, start
    for _ in range(3):
        a, value = _step(Mixture(K, family), a, Block(X))
        # not known to be complete: the other route
        b, wanted = _step(
            Mixture(K, replace(family, has_missing=True)), b, Block(X, complete=False)
        )
        assert value == pytest.approx(wanted, rel=1e-11)
        np.testing.assert_allclose(a.components.loadings, b.components.loadings, atol=1e-8)
        np.testing.assert_allclose(a.components.noise, b.components.noise, rtol=1e-8)


# ------------------------------------------------ free parameters


@pytest.mark.parametrize("fixed", [False, True], ids=["means", "no means"])
def test_free_parameters_are_the_rank_of_the_model(
    family: FactorFamily, fixed: bool, typical: Any
) -> None:
    """How many directions the means and covariances can move in."""
    family, size = replace(family, fixed_means=fixed), 6
    params = typical(family, K, size)
    vector = family.coordinates(params)

    def moments(v: np.ndarray) -> np.ndarray:
        p = family.from_coordinates(params, v)
        C = p.loadings @ np.swapaxes(p.loadings, 1, 2) + p.noise[:, :, None] * np.eye(size)
        return np.concatenate([p.means.ravel(), C.ravel()])

    step = 1e-5
    jacobian = [
        (moments(vector + step * u) - moments(vector - step * u)) / (2 * step)
        for u in np.eye(vector.size)
    ]
    values = np.linalg.svd(np.array(jacobian))[1]
    rank = int((values > 1e-7 * values[0]).sum())
    assert family.n_free(K, size) == rank
    assert Mixture(K, family).n_free(size) == rank + K - 1


def test_scipy_agrees_with_the_oracle_of_this_file() -> None:
    X = _table_with_holes(12)
    mean, covariance = np.full(D, 3.0), np.eye(D) + 0.5
    wanted = gaussian_log_density(X, mean[None], covariance[None]).sum()
    assert _observed(X)(mean, covariance) == pytest.approx(wanted, rel=1e-12)
