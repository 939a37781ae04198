"""Profiles of groups and pairs of columns: means, gaps, colours, panels, ellipses."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

from mixfold import GaussianMixture, KMeans, Mixture, MixtureOfPPCA
from mixfold.plots import plot_ellipses, plot_pairs, plot_profiles

from .test_latents import coloured, legend, rows

IRIS = load_iris(as_frame=True)
X = IRIS.data.to_numpy()
MODEL = GaussianMixture(3, random_state=0).fit(X)


def test_profiles_are_means_in_standard_deviations() -> None:
    ax = plot_profiles(MODEL, X, columns=[2, 0], ax=Figure().subplots())
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    found = MODEL.predict(X)
    for k in range(3):
        np.testing.assert_allclose(ax.lines[k].get_ydata(), scaled[found == k][:, [2, 0]].mean(0))
        assert to_rgb(ax.lines[k].get_color()) == to_rgb(f"C{k}")
    assert legend(ax) == [f"component {k} ({(found == k).sum()})" for k in range(3)]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["column 2", "column 0"]


def test_missing_entries_and_unknown_labels_do_not_count() -> None:
    holed = IRIS.data.copy()
    holed.iloc[::2, 1] = np.nan
    labels = np.where(np.arange(150) < 50, -1, IRIS.target)
    holed.loc[labels == 1, "petal width (cm)"] = np.nan  # not seen in that group at all
    model = GaussianMixture(2, random_state=0).fit(holed)
    ax = plot_profiles(model, holed, labels, ax=Figure().subplots())
    seen = holed.to_numpy()
    scaled = (seen - np.nanmean(seen, axis=0)) / np.nanstd(seen, axis=0)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), np.nanmean(scaled[labels == 2], axis=0))
    one = np.asarray(ax.lines[0].get_ydata())
    np.testing.assert_allclose(one[:3], np.nanmean(scaled[labels == 1][:, :3], axis=0))
    assert np.isnan(one[3])
    assert legend(ax) == ["1 (50)", "2 (50)"]
    assert ax.get_xticklabels()[0].get_text() == "sepal length (cm)"


def test_of_many_columns_those_that_tell_most_are_drawn(rng: np.random.Generator) -> None:
    group = np.arange(200) % 2
    wide = rng.normal(size=(200, 40))
    wide[:, [7, 31]] += 5.0 * group[:, None]
    model = KMeans(2, random_state=0).fit(wide)
    ax = plot_profiles(model, wide, ax=Figure().subplots())
    names = [t.get_text() for t in ax.get_xticklabels()]
    assert len(names) == 24 and {"column 7", "column 31"} <= set(names)
    assert [int(name.split()[1]) for name in names] == sorted(int(n.split()[1]) for n in names)
    assert {name.partition(" (")[0] for name in legend(ax)} == {"cluster 0", "cluster 1"}
    panels = plot_pairs(model, wide, columns=[31, 7], ax=Figure().subplots(2, 2))
    assert not panels[1, 0].patches, "clusters have no ellipses"


@pytest.mark.parametrize("model", [MODEL, MixtureOfPPCA(2, 1, random_state=0).fit(X)])
def test_pairs_have_the_rows_and_the_ellipses_of_their_columns(model: Any) -> None:
    columns = [3, 0, 2]
    panels = plot_pairs(model, X, columns=columns, radius=1.0)
    found = model.predict(X)
    for i, j in ((1, 0), (2, 0), (2, 1)):
        points = coloured(panels[i, j].collections[0])
        for k in set(found):
            assert points[to_rgb(f"C{k}")] == rows(X[found == k], columns[j], columns[i])
        alone = plot_ellipses(
            model, columns=(columns[j], columns[i]), radius=1.0, ax=Figure().subplots()
        )
        for mine, one in zip(panels[i, j].patches, alone.patches, strict=True):
            np.testing.assert_allclose(mine.get_path().vertices, one.get_path().vertices)
            np.testing.assert_allclose(
                mine.get_patch_transform().get_matrix(), one.get_patch_transform().get_matrix()
            )
    assert not panels[0, 1].axison and panels[0, 1].get_legend() is None
    assert [ax.get_xlabel() for ax in panels[-1]] == ["column 3", "column 0", "column 2"]
    assert [ax.get_ylabel() for ax in panels[:, 0]] == ["", "column 0", "column 2"]
    plt.close(panels[0, 0].figure)


def test_histograms_count_the_rows_of_each_group() -> None:
    panels = plot_pairs(MODEL, X, IRIS.target, columns=[0, 1], ax=Figure().subplots(2, 2))
    assert not panels[1, 0].patches, "ellipses are of components, the colours of labels"
    for diagonal in (panels[0, 0], panels[1, 1]):
        areas = []
        for patch in diagonal.patches:
            corners = patch.get_xy()
            x, y = corners.T
            areas.append(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2)
        width = np.unique(np.round(np.diff(np.unique(corners[:, 0])), 9)).min()
        np.testing.assert_allclose(np.array(areas) / width, 50, rtol=1e-6)
    assert legend(panels[0, -1]) == ["0", "1", "2"]


def test_a_row_without_a_place_is_left_out_where_it_has_none() -> None:
    holed = X.copy()
    holed[:30, 0] = np.nan
    ax = plot_ellipses(MODEL, holed, columns=(1, 2), ax=Figure().subplots())
    assert len(ax.collections[0].get_offsets()) == 150
    ax = plot_ellipses(MODEL, holed, columns=(0, 2), ax=Figure().subplots())
    assert len(ax.collections[0].get_offsets()) == 120


def test_axes_of_ellipses_are_named_unless_the_names_are_numbers_on_given_axes() -> None:
    ax = plot_ellipses(MODEL, columns=(0, 2))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 0", "column 2")
    plt.close(ax.figure)
    ax = plot_ellipses(MODEL, columns=(0, 2), ax=Figure().subplots())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("", "")
    model = GaussianMixture(1).fit(IRIS.data)
    ax = plot_ellipses(model, columns=(0, 2), ax=Figure().subplots())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sepal length (cm)", "petal length (cm)")


def test_ellipses_of_components_with_factors_are_their_marginals() -> None:
    model = MixtureOfPPCA(2, 2, random_state=0).fit(X)
    ax = plot_ellipses(model, columns=(3, 1), radius=1.0, ax=Figure().subplots())
    for k, patch in enumerate(ax.patches):
        W = model.loadings_[k]
        S = (W @ W.T + model.noise_variance_[k] * np.eye(4))[np.ix_([3, 1], [3, 1])]
        angles = np.linspace(0, 2 * np.pi, 9)
        circle = np.column_stack([np.cos(angles), np.sin(angles)])
        gap = patch.get_patch_transform().transform(circle) - model.means_[k, [3, 1]]
        np.testing.assert_allclose(np.einsum("ni,ij,nj->n", gap, np.linalg.inv(S), gap), 1.0)


def test_components_of_a_bayesian_mixture_without_rows_have_no_ellipse() -> None:
    model = Mixture("full", 8, inference="vb", random_state=0).fit(X)
    assert model.effective_components_ < 8
    ax = plot_ellipses(model, X, columns=(2, 3), ax=Figure().subplots())
    centres = [patch.get_center() for patch in ax.patches]
    np.testing.assert_allclose(centres, model.means_[model.active_][:, [2, 3]])


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot_pairs(MODEL, X, columns=[1]), "two columns at least; got 1"),
        (lambda: plot_pairs(MODEL, X, ax=Figure().subplots(2, 2)), r"subplots\(4, 4\).*\(2, 2\)"),
        (lambda: plot_profiles(MODEL, X[:, :3]), r"rows of 4 columns.*\(150, 3\)"),
        (lambda: plot_profiles(MODEL, X, [1, 2]), "each of the 150 rows"),
        (lambda: plot_profiles(MODEL, X, columns=["a"]), "there is no column 'a'"),
    ],
)
def test_what_cannot_be_drawn_says_why(draw: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()
