"""The tree by which the components of a mixture were merged into clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# levels below this are drawn as this
_LEAST = 1e-6
# components beyond which the first merges are drawn as one leaf
_LEAVES = 60
_BETWEEN = "0.6"


def plot_merges(ax: Axes, clustering: Any) -> list[int]:
    """Draw the tree of merges; branches of one cluster have one colour.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    clustering : MixtureClustering
        A fitted one, or what ``combine`` of a mixture gives.

    Returns
    -------
    list of int
        The components from left to right; of more than 60 components, where the first merges are
        drawn as one leaf, the numbers of the leaves in the tree.

    Notes
    -----
    The height of a merge is its misclassification probability, on a logarithmic scale: the higher
    it is drawn, the rarer are rows of one part taken for those of the other. What is drawn at the
    top is 1e-6 or less.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from mixfold import GaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1)) + np.repeat([[0], [3], [20]], 100, axis=0)
    >>> clusters = GaussianMixture(3, random_state=0).fit(X).combine(2, X=X)
    >>> figure, ax = plt.subplots()
    >>> sorted(plot_merges(ax, clusters))
    [0, 1, 2]
    >>> plt.close(figure)
    """
    from scipy.cluster.hierarchy import dendrogram

    if not hasattr(clustering, "tree_"):
        raise ValueError(
            f"{type(clustering).__name__} has no tree_: fit MixtureClustering, or call combine of "
            "a fitted mixture."
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


def _colors(tree: Any, of: Any) -> list[str]:
    """A colour for each component and merge: that of its cluster, grey where clusters meet."""
    owner = of.tolist()
    for left, right in zip(tree.left.tolist(), tree.right.tolist(), strict=True):
        owner.append(owner[left] if owner[left] == owner[right] else -1)
    return [_BETWEEN if k < 0 else f"C{k % 10}" for k in owner]
