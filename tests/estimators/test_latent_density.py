"""LatentDensity and sample_codebook: what they are made of, real digits, files, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, PCA
from sklearn.mixture import GaussianMixture as TheirMixture
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler

import mixfold
from mixfold import (
    PPCA,
    DeepFactorNetwork,
    FactorAnalysis,
    GaussianMixture,
    KMeans,
    LatentDensity,
    MatrixFactorization,
    Mixture,
    sample_codebook,
)

PARTS = {"link": "identity", "nonneg_codebook": True, "nonneg_sources": True, "fit_bias": False}


@pytest.fixture(scope="module")
def twos():
    X, y = load_digits(return_X_y=True)
    return X[y == 2]


@pytest.fixture(scope="module")
def parts():
    return MatrixFactorization(10, **PARTS, tol=1e-2, random_state=0)


def test_it_is_its_two_parts(twos, parts) -> None:
    """The pipeline by hand, with the seeds that each part has."""
    model = LatentDensity(parts, GaussianMixture(3, random_state=1), random_state=0).fit(twos)
    alone = clone(parts).fit(twos)
    S = alone.transform(twos)
    density = GaussianMixture(3, random_state=1).fit(S)
    np.testing.assert_array_equal(model.transform(twos), S)
    np.testing.assert_array_equal(model.score_samples(twos), density.score_samples(S))
    np.testing.assert_array_equal(model.predict(twos), density.predict(S))
    np.testing.assert_array_equal(model.predict_proba(twos), density.predict_proba(S))
    np.testing.assert_array_equal(model.inverse_transform(S), alone.inverse_transform(S))
    np.testing.assert_allclose(model.score(twos), density.score(S))
    np.testing.assert_array_equal(model.source_ranges_[:, 1], S.max(axis=0))
    drawn, component = density.sample(40, random_state=5)
    rows, found = model.sample(40, random_state=5)
    np.testing.assert_array_equal(rows, alone.inverse_transform(np.maximum(drawn, 0.0)))
    np.testing.assert_array_equal(found, component)
    assert model.sample_sources(40, random_state=5)[0].min() == 0.0 > drawn.min()


def test_draws_have_the_moments_of_the_rows() -> None:
    """Linear and square: rows have the density of the sources less the log determinant."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3)) @ rng.normal(size=(3, 3)) + [5, 0, -3]
    model = LatentDensity(PCA(3), GaussianMixture(1), random_state=0).fit(X)
    rows = model.sample(40_000, random_state=0)[0]
    np.testing.assert_allclose(rows.mean(axis=0), X.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(np.cov(rows.T), np.cov(X.T), atol=0.25)
    normal = stats.multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True))
    np.testing.assert_allclose(model.score_samples(X), normal.logpdf(X), atol=1e-4)
    # of a map that is not orthogonal the determinant counts
    scaler = LatentDensity(StandardScaler(), GaussianMixture(1), random_state=0).fit(X)
    shift = np.log(scaler.reducer_.scale_).sum()
    np.testing.assert_allclose(scaler.score_samples(X) - shift, normal.logpdf(X), atol=1e-4)


def test_drawn_digits_are_nearer_to_digits_than_independent_sources(twos, parts) -> None:
    """What the density is for: draws keep what belongs together."""
    model = LatentDensity(parts, GaussianMixture(4), random_state=0).fit(twos)
    S = model.transform(twos)
    rng = np.random.default_rng(0)
    alone = model.inverse_transform(np.column_stack([rng.permutation(s) for s in S.T]))
    drawn = model.sample(len(twos), random_state=0)[0]

    def distance(rows):
        return np.sqrt(((rows[:, None] - twos[None]) ** 2).sum(axis=2)).min(axis=1).mean()

    assert distance(drawn) < 0.9 * distance(alone)


@pytest.mark.parametrize("reducer", [
    PPCA(2), FactorAnalysis(2), MatrixFactorization(2, alpha=0.1, beta=0.1, max_iter=20), PCA(2),
    NMF(2, init="nndsvda"), DeepFactorNetwork((3, 2), max_iter=5, fine_tune=None),
    MatrixFactorization(2, loss=1, **PARTS, max_iter=20),
], ids=lambda r: type(r).__name__)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_reducers_of_all_kinds(twos, reducer) -> None:
    X = twos[:, 18:30]
    model = LatentDensity(reducer, GaussianMixture(2), random_state=0).fit(X)
    rows, component = model.sample(30, random_state=0)
    assert rows.shape == (30, 12) and set(component) <= {0, 1}
    assert np.isfinite(rows).all() and np.isfinite(model.score(X))
    again = clone(model).fit(X)
    np.testing.assert_array_equal(again.sample(5)[0], model.sample(5)[0])
    assert not np.array_equal(model.sample(5)[0], again.inverse_transform(again.transform(X[:5])))


def test_densities_of_other_kinds(twos) -> None:
    parts = MatrixFactorization(3, **PARTS, tol=1e-2)
    for density in (TheirMixture(2), KernelDensity(bandwidth=0.2), Mixture("diag", 1)):
        model = LatentDensity(parts, density, random_state=0).fit(twos)
        one, two = (model.sample(20, random_state=3)[0] for _ in range(2))
        np.testing.assert_array_equal(one, two)
        assert one.shape == (20, 64) and np.isfinite(model.score_samples(twos)).all()
    assert not hasattr(LatentDensity(parts, KernelDensity()), "predict")


def test_missing_entries_weights_and_names(twos) -> None:
    X = np.where(np.random.default_rng(0).random(twos.shape) < 0.1, np.nan, twos)
    X = np.delete(X, np.flatnonzero(np.nanstd(twos, axis=0) < 0.5), axis=1)
    table = pd.DataFrame(X, columns=[f"p{d}" for d in range(X.shape[1])])
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    factors = FactorAnalysis(3, max_iter=100, tol=1e-9)
    model = LatentDensity(factors, GaussianMixture(1), random_state=0)
    model.fit(table.assign(w=weight), sample_weight="w")
    assert model.feature_names_in_.tolist() == table.columns.tolist()
    rows = np.repeat(np.arange(len(X)), weight.astype(int))
    other = clone(model).fit(table.iloc[rows])
    np.testing.assert_allclose(model.score(table), other.score(table), rtol=1e-3)
    np.testing.assert_allclose(model.score(table, sample_weight=weight),
                               model.score(table.iloc[rows]))  # fmt: skip
    assert np.isfinite(model.score_samples(table)).all()
    with pytest.raises(ValueError, match="takes no sample_weight"):
        LatentDensity(PPCA(2), TheirMixture(1)).fit(twos, sample_weight=np.ones(len(twos)))


def test_a_file_remembers(twos, parts, tmp_path) -> None:
    model = LatentDensity(parts, GaussianMixture(2), random_state=0).fit(twos)
    model.sample(3)
    model.save(tmp_path / "one.mixfold")
    loaded = mixfold.load(tmp_path / "one.mixfold")
    np.testing.assert_array_equal(loaded.score_samples(twos), model.score_samples(twos))
    np.testing.assert_array_equal(loaded.sample(9)[0], model.sample(9)[0])
    assert loaded.reducer.n_components == 10 and loaded.density.n_components == 2
    with pytest.raises(TypeError, match="cannot be written to a model file"):
        LatentDensity(PCA(2)).fit(twos).save(tmp_path / "two.mixfold")
    assert not (tmp_path / "two.mixfold").exists()


def test_parts_that_do_not_fit_are_refused(twos) -> None:
    with pytest.raises(TypeError, match="KMeans has no inverse_transform"):
        LatentDensity(KMeans(2)).fit(twos)
    with pytest.raises(TypeError, match="the density must have score_samples and sample; KMeans"):
        LatentDensity(PPCA(2), KMeans(2)).fit(twos)
    with pytest.raises(TypeError, match="reducer must be an estimator"):
        LatentDensity(PPCA).fit(twos)
    with pytest.raises(ValueError, match="bound"):
        LatentDensity(PPCA(2), bound=1).fit(twos)
    model = LatentDensity(PPCA(2)).fit(twos)
    with pytest.raises(ValueError, match="n_samples must be an int >= 1"):
        model.sample(0)
    free = LatentDensity(
        MatrixFactorization(5, **PARTS, tol=1e-2), bound=False, random_state=0
    ).fit(twos)
    with pytest.raises(ValueError, match="sources of this model are not negative"):
        free.sample(50, random_state=0)


# ------------------------------------------------ rows of the patterns of a codebook


def test_a_row_has_one_pattern_of_each_group() -> None:
    """Three kinds of patterns that k-means cannot miss."""
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], [2, 3, 4])
    codebook = 10 * np.eye(6)[kinds] + 0.1 * rng.random((9, 6))
    found = sample_codebook(codebook, 6000, 3, random_state=0)
    for row, chosen in zip(found.X[:50], found.patterns[:50], strict=True):
        np.testing.assert_allclose(row, codebook[chosen].sum(axis=0))
    assert all(len(np.unique(kinds[found.groups == k])) == 1 for k in range(3))
    # each member of a group equally often, whatever the others are
    for k in range(3):
        counts = np.bincount(found.patterns[:, k], minlength=9)[found.groups == k]
        np.testing.assert_allclose(counts / 6000, 1 / len(counts), atol=6 * 0.5 / np.sqrt(6000))
    assert len(np.unique(found.X.round(9), axis=0)) == 24  # 2 x 3 x 4
    other = sample_codebook(codebook, 6000, 3, random_state=0)
    np.testing.assert_array_equal(found.X, other.X)


def test_codebooks_of_models(twos, parts) -> None:
    model = clone(parts).set_params(fit_bias=True).fit(twos)
    usual = np.arange(1.0, 11.0)
    found = sample_codebook(model, 7, 10, amounts=usual, random_state=1)
    wanted = model.bias_ + usual @ model.components_
    np.testing.assert_allclose(found.X, np.tile(wanted, (7, 1)))
    pca = PCA(4).fit(twos)
    one = sample_codebook(pca, 5, 2, random_state=0)
    np.testing.assert_allclose(one.X, pca.mean_ + pca.components_[one.patterns].sum(axis=1))


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: sample_codebook(np.eye(3), 2, 4), ValueError, "at most the number of patterns, 3"),
    (lambda: sample_codebook(np.ones((4, 2)), 2, 3), ValueError, "lower groups to 1"),
    (lambda: sample_codebook(np.eye(3), 0, 2), ValueError, "n_samples must be an int >= 1"),
    (lambda: sample_codebook(np.eye(3), 1, 2.5), ValueError, "groups must be an int >= 1"),
    (lambda: sample_codebook(np.eye(3), 1, [0, 1]), ValueError, "one entry for each of the 3"),
    (lambda: sample_codebook(np.eye(3), 1, 2, amounts=[1.0]), ValueError, "amounts must be 3"),
    (lambda: sample_codebook(np.eye(3), 1, 2, amounts="a"), ValueError, "amounts must hold"),
    (lambda: sample_codebook(PCA, 1, 2), TypeError, "model must be a fitted model"),
    (lambda: sample_codebook(PCA(2), 1, 2), TypeError, "model must be a fitted model"),
])  # fmt: skip
def test_what_is_no_codebook_is_refused(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()
