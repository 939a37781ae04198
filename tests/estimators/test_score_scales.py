"""The scales of ``transform``: latents, scores along the axes, scores of unit variance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA

import mixfold
from mixfold import PPCA, FactorAnalysis, KernelPCA, MixtureOfFactorAnalyzers, MixtureOfPPCA
from mixfold.contracts import Array

SCALES = ["latent", "scores", "white"]
MODELS = [
    PPCA(2),
    PPCA(2, center=False),
    PPCA(2, solver="em"),
    FactorAnalysis(2),
    FactorAnalysis(2, rotation="varimax"),
    FactorAnalysis(2, rotation="oblimin"),
    MixtureOfPPCA(2, [1, 2], random_state=0),
    MixtureOfFactorAnalyzers(2, 2, random_state=0),
    MixtureOfFactorAnalyzers(2, 2, tied=("loadings",), random_state=0),
]
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: " ".join(repr(m).split()))


@pytest.fixture
def table(rng: np.random.Generator) -> Array:
    rows = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 5)) * 2 + rng.normal(size=(300, 5))
    rows[:150] += 6
    return np.asarray(rows)


def axes_of(model: Any, k: int = 0) -> tuple[Array, Array, Array]:
    """Mean (D,), loadings (D, d) and noise (D,) of a component, from what is published."""
    several = hasattr(model, "weights_")
    mean = model.means_[k] if several else model.mean_
    loadings = model.loadings_[k] if several else model.loadings_
    noise = model.noise_variance_[k] if several else model.noise_variance_
    return mean, loadings, np.broadcast_to(noise, len(mean))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("lacking", [False, True])
def test_scores_are_those_of_pca(table: Array, center: bool, lacking: bool) -> None:
    wanted = PCA(2).fit(table) if center else None
    model = PPCA(2, scale="scores", center=center).fit(table)
    if lacking:  # the expected scores: those of the expected row
        table = np.where(np.random.default_rng(1).random(table.shape) < 0.2, np.nan, table)
    rows = model.impute(table) if lacking else table
    got = model.transform(table)
    np.testing.assert_allclose(got, (rows - model.mean_) @ model.components_.T, atol=1e-9)
    if wanted is not None:
        flip = np.sign(wanted.components_ @ model.components_.T).diagonal()
        np.testing.assert_allclose(got * flip, wanted.transform(rows), atol=1e-8)
        white = PPCA(2, scale="white").fit(rows) if not lacking else None
        if white is not None:
            theirs = PCA(2, whiten=True).fit(rows).transform(rows) * np.sqrt(300 / 299)
            np.testing.assert_allclose(white.transform(rows) * flip, theirs, atol=1e-8)


@models
@pytest.mark.parametrize(("whiten", "scale"), [(False, "scores"), (True, "white")])
def test_whiten_is_that_of_scikit_learn(
    table: Array, model: Any, whiten: bool, scale: str, tmp_path: Path
) -> None:
    fitted = clone(model).set_params(whiten=whiten).fit(table)
    wanted = clone(model).set_params(scale=scale).fit(table).transform(table)
    np.testing.assert_array_equal(fitted.transform(table), wanted)
    again = fitted.inverse_transform(fitted.transform(table))
    fitted.save(tmp_path / "model.mixfold")
    loaded = mixfold.load(tmp_path / "model.mixfold")
    np.testing.assert_array_equal(loaded.inverse_transform(loaded.transform(table)), again)
    np.testing.assert_array_equal(
        fitted.set_params(whiten=None, scale=scale).transform(table), wanted
    )


def test_whiten_takes_the_place_of_pca(table: Array) -> None:
    for whiten in (False, True):
        theirs = PCA(2, whiten=whiten).fit_transform(table)
        ours = PPCA(2, whiten=whiten).fit_transform(table)
        ratio = np.sqrt(299 / 300) if whiten else 1.0  # variances over n - 1
        flip = np.sign((theirs * ours).sum(axis=0))
        np.testing.assert_allclose(ours * flip * ratio, theirs, atol=1e-8)
    kernel = KernelPCA(2, random_state=0).fit(table)
    scores = kernel.transform(table)
    np.testing.assert_array_equal(kernel.set_params(whiten=False).transform(table), scores)
    white = kernel.set_params(whiten=True).transform(table)
    np.testing.assert_array_equal(
        white, kernel.set_params(whiten=None, scale="white").transform(table)
    )


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (PPCA(2, scale="scores", whiten=True), "whiten=True means scale='white', but scale='scor"),
        (FactorAnalysis(2, scale="white", whiten=False), "give one of the two"),
        (MixtureOfPPCA(2, 2, scale="white", whiten=False), "give one of the two"),
        (KernelPCA(2, scale="latent", whiten=True), "but scale='latent'; give one of the two"),
        (PPCA(2, whiten="unit-variance"), "'whiten' parameter of PPCA must be None or True or F"),
    ],
)
def test_what_contradicts_is_refused(table: Array, model: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        model.fit(table)


@models
def test_scores_of_one_component_are_weighted_least_squares(table: Array, model: Any) -> None:
    got = type(model)(**{**model.get_params(), "scale": "scores"}).fit(table)
    several = hasattr(got, "weights_")
    scores = got.transform(table, per_component=True) if several else got.transform(table)[:, None]
    for k in range(scores.shape[1]):
        mean, loadings, noise = axes_of(got, k)
        used = (loadings**2).sum(axis=0) > 0
        W = loadings[:, used]
        if isinstance(got, PPCA | MixtureOfPPCA):
            W = W / np.linalg.norm(W, axis=0)
        wanted = np.linalg.solve((W.T / noise) @ W, (W.T / noise) @ (table - mean).T).T
        np.testing.assert_allclose(scores[:, k, used], wanted, atol=1e-7)
        assert (scores[:, k, ~used] == 0).all()
    if several:
        mixed = np.einsum("nk,nkd->nd", got.predict_proba(table), scores)
        np.testing.assert_allclose(got.transform(table), mixed, atol=1e-9)


@models
def test_white_scores_have_covariance_one_under_the_model(table: Array, model: Any) -> None:
    got = type(model)(**{**model.get_params(), "scale": "white"}).fit(table)
    several = hasattr(got, "weights_")
    for k in range(len(got.weights_) if several else 1):
        mean, loadings, noise = axes_of(got, k)
        rows = np.vstack([mean, mean + np.eye(len(mean))])  # the map is linear: its matrix
        Z = got.transform(rows, per_component=True)[:, k] if several else got.transform(rows)
        A, offset = (Z[1:] - Z[0]).T, Z[0]
        covariance = loadings @ loadings.T + np.diag(noise)
        if getattr(got, "factor_correlations_", None) is not None:
            covariance = got.get_covariance()
        used = (loadings**2).sum(axis=0) > 0
        wanted = np.diag(used.astype(float))
        if getattr(got, "rotation", None) == "oblimin":
            wanted = got.factor_correlations_
        np.testing.assert_allclose(A @ covariance @ A.T, wanted, atol=1e-7)
        np.testing.assert_allclose(offset, 0, atol=1e-9)


@models
@pytest.mark.parametrize("scale", SCALES)
def test_scaled_latents_go_back_to_the_same_rows(
    table: Array, tmp_path: Path, model: Any, scale: str
) -> None:
    plain = type(model)(**model.get_params()).fit(table)
    got = type(model)(**{**model.get_params(), "scale": scale}).fit(table)
    if hasattr(got, "weights_"):
        for k in range(2):
            Z, L = (one.transform(table, per_component=True)[:, k] for one in (got, plain))
            wanted = plain.inverse_transform(L, components=k)
            np.testing.assert_allclose(got.inverse_transform(Z, components=k), wanted, atol=1e-7)
    else:
        for method in got._inverse_methods:
            wanted = plain.inverse_transform(plain.transform(table), method)
            rows = got.inverse_transform(got.transform(table), method)
            np.testing.assert_allclose(rows, wanted, atol=1e-7)
    got.save(tmp_path / "m")
    again = mixfold.load(tmp_path / "m")
    assert again.scale == scale
    np.testing.assert_array_equal(again.transform(table), got.transform(table))
    np.testing.assert_array_equal(got.reconstruct(table), plain.reconstruct(table))


@pytest.mark.parametrize("scale", ["scores", "white"])
def test_posterior_covariances_are_of_latents(table: Array, scale: str) -> None:
    model = PPCA(2, scale=scale).fit(table)
    with pytest.raises(ValueError, match=r"return_cov=True.*scale='latent'.*got scale="):
        model.transform(table, return_cov=True)
    with pytest.raises(ValueError, match="scale"):
        PPCA(2, scale="whiten").fit(table)


@pytest.mark.parametrize("scale", ["scores", "white"])
def test_an_axis_without_variance_has_score_zero(scale: str) -> None:
    rows = np.outer(np.arange(12.0), [1.0, 2.0, 0.0])
    with pytest.warns(mixfold.DegenerateWarning):
        model = PPCA(2, scale=scale).fit(rows)
    Z = model.transform(rows)
    assert np.isfinite(Z).all() and np.abs(Z[:, 1]).max() < 1e-4
