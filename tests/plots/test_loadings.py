"""Scree plot, map of loadings, biplot: the numbers drawn are those of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from mixfold import (
    FactorAnalysis,
    GaussianMixture,
    KernelPCA,
    MixtureOfFactorAnalyzers,
    MixtureOfPPCA,
)
from mixfold.plots import plot_biplot, plot_loadings, plot_scree
from mixfold.plots.loadings import loadings_of

WINE = load_wine(as_frame=True)
X = StandardScaler().fit_transform(WINE.data)
RAW = WINE.data.to_numpy()


def test_bars_and_sums_of_a_scree_plot() -> None:
    ratios = PCA(5).fit(X).explained_variance_ratio_
    ax = plot_scree(PCA(5).fit(X), ax=Figure().subplots())
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], ratios)
    together, noise = ax.lines
    np.testing.assert_allclose(together.get_ydata(), np.cumsum(ratios))
    # the eight axes that are left have this share on average
    np.testing.assert_allclose(noise.get_ydata(), (1 - ratios.sum()) / 8, rtol=1e-6)


def test_shares_of_factor_analysis_are_those_of_columns_of_variance_one() -> None:
    units = 10.0 ** np.arange(13)
    shares = []
    for rows in (X, X * units):
        ax = plot_scree(FactorAnalysis(2, tol=1e-9).fit(rows), ax=Figure().subplots())
        shares.append([bar.get_height() for bar in ax.patches])
        assert len(ax.lines) == 1  # noise is no single number
    np.testing.assert_allclose(shares[0], shares[1], rtol=1e-3)
    model = FactorAnalysis(2, tol=1e-9).fit(X)
    np.testing.assert_allclose(sum(shares[0]), np.mean(1 - model.noise_variance_), atol=1e-4)


def test_loadings_are_correlations_of_columns_and_factors(rng: np.random.Generator) -> None:
    model = FactorAnalysis(2, rotation="varimax").fit(RAW)
    ax = plot_loadings(model, columns=[3, 0], factors=[1], ax=Figure().subplots())
    drawn = np.asarray(ax.images[0].get_array())
    W, noise = model.loadings_, model.noise_variance_
    z = rng.normal(size=(200_000, 2))
    rows = z @ W.T + rng.normal(size=(200_000, 13)) * np.sqrt(noise)
    expected = [np.corrcoef(rows[:, j], z[:, 1])[0, 1] for j in (3, 0)]
    np.testing.assert_allclose(drawn[:, 0], expected, atol=6 / np.sqrt(200_000))
    assert [text.get_text() for text in ax.texts] == [f"{v:.2f}" for v in drawn[:, 0]]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["column 3", "column 0"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["factor 2"]
    plain = plot_loadings(model, scale="units", ax=Figure().subplots())
    np.testing.assert_array_equal(plain.images[0].get_array(), W)


def test_deviations_of_oblique_factors_count_their_correlation() -> None:
    model = FactorAnalysis(2, rotation="promax", tol=1e-9).fit(RAW)
    _, spread = loadings_of(model)
    np.testing.assert_allclose(spread, np.sqrt(np.diag(model.get_covariance())), rtol=1e-9)
    assert np.abs(model.factor_correlations_[0, 1]) > 0.01


@pytest.mark.parametrize("kind", [MixtureOfPPCA, MixtureOfFactorAnalyzers])
def test_a_component_of_a_mixture_has_loadings_of_its_own(kind: Any) -> None:
    model = kind(2, 1, random_state=0).fit(X)
    W, spread = loadings_of(model, 1)
    np.testing.assert_array_equal(W, model.loadings_[1])
    np.testing.assert_allclose(spread**2, (W**2).sum(axis=1) + model.noise_variance_[1])
    with pytest.raises(ValueError, match=r"component must be from 0 to 1.*got None"):
        plot_loadings(model)


def test_axes_of_scikit_learn_rebuild_its_covariance() -> None:
    pca = PCA(4).fit(RAW)
    W, spread = loadings_of(pca)
    np.testing.assert_allclose(
        W @ W.T + pca.noise_variance_ * np.eye(13), pca.get_covariance(), rtol=1e-9
    )
    np.testing.assert_allclose(spread**2, np.diag(pca.get_covariance()))


def test_arrows_of_a_biplot_are_the_loadings() -> None:
    model = FactorAnalysis(3).fit(WINE.data)
    names = ["hue", "alcohol", "ash"]
    labels = np.where(WINE.target == 0, "a", "b")
    ax = plot_biplot(model, WINE.data, labels, factors=(2, 0), columns=names)
    points, arrows = ax.collections[:2]
    np.testing.assert_allclose(
        sorted(map(tuple, points.get_offsets())),
        sorted(map(tuple, model.transform(WINE.data)[:, [2, 0]])),
    )
    W, spread = loadings_of(model)
    at = [list(WINE.data.columns).index(name) for name in names]
    expected = (W / spread[:, None])[at][:, [2, 0]]
    drawn = np.column_stack([arrows.U, arrows.V])
    ratio = drawn / expected
    np.testing.assert_allclose(ratio, ratio[0, 0])
    assert ratio[0, 0] > 0, "arrows are drawn longer, and not turned"
    assert [text.get_text() for text in ax.texts] == names
    texts = np.array([text.get_position() for text in ax.texts])
    assert ((texts - drawn) * drawn >= 0).all(), "names stand beyond the ends"
    assert {to_rgb(c) for c in points.get_facecolors()} == {to_rgb("C0"), to_rgb("C1")}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("factor 3", "factor 1")


@pytest.mark.parametrize(
    ("plot", "message"),
    [
        (lambda: plot_loadings(GaussianMixture(2).fit(X[:, :2])), "loadings_, such as PPCA"),
        (lambda: plot_loadings(KernelPCA(2).fit(X[:50])), "loadings_, such as PPCA"),
        (lambda: plot_loadings(PCA(2).fit(X), factors=[2]), "from 0 to 1; got 2"),
        (lambda: plot_loadings(PCA(2).fit(X), columns=["ash"]), "without names"),
        (lambda: plot_loadings(PCA(2).fit(X), columns=[]), "columns is empty"),
        (lambda: plot_loadings(PCA(2).fit(X), scale="log"), "got 'log'"),  # type: ignore[arg-type]
        (lambda: plot_loadings(PCA(2).fit(X), component=0), "component is for mixtures"),
        (lambda: plot_biplot(PCA(2).fit(X), X, factors=(0, 2)), r"got \(0, 2\)"),
        (lambda: plot_biplot(PCA(2).fit(X), X, ["a"]), "each of the 178 rows"),
        (lambda: plot_scree(GaussianMixture(1).fit(X)), "loadings_, such as PPCA"),
    ],
)
def test_what_cannot_be_drawn_says_why(plot: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        plot()
