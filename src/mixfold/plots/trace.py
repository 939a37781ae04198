"""The objective of a fit by iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_objective(ax: Axes, model: Any, **line: Any) -> Any:
    """Draw ``model.lower_bounds_``: the objective per row at each iteration.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    model : estimator
        A fitted one with ``lower_bounds_``, ``events_`` and ``converged_``.
    **line
        Passed to ``ax.plot``.

    Returns
    -------
    matplotlib.lines.Line2D
        Iterations at which something was repaired (``events_``) are marked on it.
    """
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
    return drawn
