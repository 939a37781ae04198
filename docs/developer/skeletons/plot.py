"""A skeleton for a plot: means and variances of counts, and the line of Poisson counts.

A plot is one function that draws on the ``Axes`` it is given and returns what it has drawn. It is
asked for a fitted model or for arrays, never for data that it would have to fit. Copy the file to
``src/mixfold/plots/``, and add the function to ``plots/__init__.py`` and to ``docs/api.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

# 1. matplotlib is an extra: it is imported for types alone, or inside of the function.
if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_dispersions(ax: Axes, model: Any, **points: Any) -> Any:
    """Draw the variance of each column of each component over its mean, on logarithmic axes.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    model : estimator
        A fitted one with ``means_`` and ``dispersions_``.
    **points
        Passed to ``ax.scatter``.

    Returns
    -------
    matplotlib.collections.PathCollection
        The points; those of a component have one colour.
    """
    # 2. Ask for attributes, and say what to do where they are missing.
    if not hasattr(model, "dispersions_"):
        raise ValueError(
            f"{type(model).__name__} has no dispersions_: fit a Mixture of the family "
            "'negative-binomial' first."
        )
    means = np.asarray(model.means_, float)
    variances = means + np.asarray(model.dispersions_, float) * means**2
    # 3. Draw on the given axes only. Keywords of the caller win over the defaults.
    component = np.repeat(np.arange(len(means)), means.shape[1])
    drawn = ax.scatter(means.ravel(), variances.ravel(), **({"c": component} | points))
    ends = np.array([means.min(), means.max()])
    ax.plot(ends, ends, color="0.5", linewidth=1, label="Poisson")
    # 4. Name the axes, with units if there are any.
    ax.set(xscale="log", yscale="log", xlabel="mean of a column", ylabel="variance")
    ax.legend(frameon=False)
    return drawn
