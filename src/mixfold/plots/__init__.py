"""Pictures of fitted models: small functions that draw on a matplotlib ``Axes``."""

from mixfold.plots.ellipses import plot_ellipses
from mixfold.plots.selection import plot_criterion
from mixfold.plots.trace import plot_objective

__all__ = ["plot_criterion", "plot_ellipses", "plot_objective"]
