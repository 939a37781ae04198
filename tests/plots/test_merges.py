"""The tree of merges: which components are drawn, in which colours, and how high."""

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest

from mixfold import PPCA, GaussianMixture
from mixfold.plots import plot_merges

X = np.random.default_rng(0).normal(size=(400, 1)) + np.repeat([[0], [3], [20], [23]], 100, axis=0)
MODEL = GaussianMixture(4, random_state=0).fit(X)


@pytest.fixture
def ax():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_leaves_heights_and_colours(ax):
    found = MODEL.combine(2, X=X)
    order = [int(tick.get_text()) for tick in plot_merges(found, ax=ax).get_xticklabels()]
    assert sorted(order) == [0, 1, 2, 3]
    # those of a cluster stand side by side
    assert len(np.flatnonzero(np.diff(found.cluster_of_component_[order]))) == 1
    tops = sorted(max(segment[:, 1]) for c in ax.collections for segment in c.get_segments())
    expected = sorted(-np.log10(np.clip(found.tree_.level, 1e-6, 1)))
    np.testing.assert_allclose(tops, expected, rtol=1e-9)
    colors = {tuple(row) for c in ax.collections for row in c.get_colors()}
    assert len(colors) == 3  # two clusters, and where they meet
    assert ax.get_title() == "2 clusters made of 4 components"


def test_a_mixture_is_combined_with_the_rows_first(ax):
    plot_merges(MODEL, X, ax=ax)
    found = MODEL.combine(X=X)
    assert ax.get_title() == f"{found.n_clusters_} clusters made of 4 components"


def test_many_components_are_drawn_from_the_last_merges_on(ax):
    rng = np.random.default_rng(0)
    model = GaussianMixture(70, covariance_type="tied-spherical", max_iter=1)
    with pytest.warns(Warning):
        model.fit(rng.uniform(size=(300, 2)))
    assert len(plot_merges(model.combine(3), ax=ax).get_xticks()) == 60


def test_what_has_no_tree(ax):
    with pytest.raises(ValueError, match="PPCA has no tree_"):
        plot_merges(PPCA(1).fit(X))
    with pytest.raises(ValueError, match="One component has no merges"):
        plot_merges(GaussianMixture(1).fit(X).combine(1), ax=ax)
