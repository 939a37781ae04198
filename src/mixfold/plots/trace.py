"""The objective of a fit by iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.plots.axes import axes_came_first, given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_objective(ax: Axes, model: Any, **line: Any) -> Any:
    """Draw the objective per row on ``ax``; gives the line."""
    from matplotlib.ticker import MaxNLocator

    bounds = np.asarray(model.lower_bounds_, dtype=float)
    if bounds.size == 0:
        raise ValueError("The model has no trace: lower_bounds_ is empty. Fit it first.")
    (drawn,) = ax.plot(np.arange(1, bounds.size + 1), bounds, **({"marker": "."} | line))
    marked = sorted({e.iteration for e in getattr(model, "events_", ()) if e.iteration >= 0})
    marked = [i for i in marked if i < bounds.size]
    if marked:
        steps = np.array(marked)
        ax.plot(steps + 1, bounds[steps], "x", color="0.2", label="repaired")
        ax.legend(frameon=False)
    ax.set_xlabel("iteration" if model.converged_ else "iteration (not converged)")
    ax.set_ylabel("objective per row")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return drawn


@axes_came_first(draw_objective)
def plot_objective(model: Any, *, ax: Axes | None = None, **line: Any) -> Axes:
    """Draw ``model.lower_bounds_``: the objective per row at each iteration.

    Parameters
    ----------
    model : estimator
        A fitted one with ``lower_bounds_``, ``events_`` and ``converged_``.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure is made with ``pyplot``; it is ``returned.figure``, to
        save and to close.
    **line
        Passed to ``ax.plot``.

    Returns
    -------
    matplotlib.axes.Axes
        Its first line is the objective. Iterations at which something was repaired (``events_``)
        are marked on it.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import GaussianMixture
    >>> from mixfold.plots import plot_objective
    >>> rows = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0], [3], [5]], 100, 0)
    >>> model = GaussianMixture(3, init_params="random", random_state=0).fit(rows)
    >>> ax = plot_objective(model)
    >>> len(ax.lines[0].get_xdata()) == len(model.lower_bounds_)
    True
    """
    ax = given_or_new(ax)
    draw_objective(ax, model, **line)
    return ax
