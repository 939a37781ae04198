"""The tree by which the components of a mixture were merged into clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.plots.axes import axes_came_first, given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# levels below this are drawn as this
_LEAST = 1e-6
# components beyond which the first merges are drawn as one leaf
_LEAVES = 60
_BETWEEN = "0.6"


def draw_merges(ax: Axes, clustering: Any) -> list[int]:
    """Draw the tree on ``ax``; gives the components from left to right."""
    from scipy.cluster.hierarchy import dendrogram

    if not hasattr(clustering, "tree_"):
        raise ValueError(
            f"{type(clustering).__name__} has no tree_: fit MixtureClustering, or give a fitted "
            "mixture that has combine."
        )
    tree, of = clustering.tree_, np.asarray(clustering.cluster_of_component_)
    K = tree.n_components
    if K < 2:
        raise ValueError("One component has no merges; there is no tree to draw.")
    heights = -np.log10(np.clip(tree.level, _LEAST, 1.0))
    linkage = np.stack([tree.left, tree.right, heights, tree.size], axis=1).astype(float)
    colors = _colors(tree, of)
    drawn = dendrogram(
        linkage,
        p=_LEAVES,
        truncate_mode="lastp" if K > _LEAVES else None,
        ax=ax,
        link_color_func=lambda node: colors[node],
        above_threshold_color=_BETWEEN,
    )
    ticks = np.arange(0, np.ceil(heights.max()) + 1)
    ax.set_yticks(ticks, [f"{10.0**-t:g}" for t in ticks])
    ax.set_ylim(0, max(heights.max(), 0.1) * 1.05)
    ax.set_ylabel("misclassification probability")
    ax.set_xlabel("component")
    n = clustering.n_clusters_
    ax.set_title(f"{n} cluster{'' if n == 1 else 's'} made of {K} components")
    return [int(leaf) for leaf in drawn["leaves"]]


@axes_came_first(draw_merges)
def plot_merges(clustering: Any, X: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw components as a tree (dendrogram) of merges; branches of one cluster have one colour.

    Parameters
    ----------
    clustering : MixtureClustering or mixture
        A fitted one. The components of a mixture are first put together by ``combine``.
    X : array-like, optional
        The rows, with which ``combine`` of a mixture judges which components are apart.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        Its ticks name the components; of more than 60, where the first merges are drawn as one
        leaf, sizes of leaves in parentheses.

    Notes
    -----
    The height of a merge is its misclassification probability, on a logarithmic scale: the higher
    it is drawn, the rarer are rows of one part taken for those of the other. What is drawn at the
    top is 1e-6 or less.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import GaussianMixture
    >>> from mixfold.plots import plot_merges
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 1)) + np.repeat([[0], [3], [7], [10]], 150, axis=0)
    >>> ax = plot_merges(GaussianMixture(4, random_state=0).fit(X).combine(2, X=X))
    >>> ax.get_title()
    '2 clusters made of 4 components'
    """
    if not hasattr(clustering, "tree_") and hasattr(clustering, "combine"):
        clustering = clustering.combine(X=X)
    ax = given_or_new(ax)
    draw_merges(ax, clustering)
    return ax


def _colors(tree: Any, of: Any) -> list[str]:
    """A colour for each component and merge: that of its cluster, grey where clusters meet."""
    owner = of.tolist()
    for left, right in zip(tree.left.tolist(), tree.right.tolist(), strict=True):
        owner.append(owner[left] if owner[left] == owner[right] else -1)
    return [_BETWEEN if k < 0 else f"C{k % 10}" for k in owner]
