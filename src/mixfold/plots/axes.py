"""Where a plot draws, and calls in the orders of arguments of earlier versions."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Plot = TypeVar("_Plot", bound=Callable[..., Any])


def given_or_new(ax: Axes | None, size: tuple[float, float] = (5.6, 4.0)) -> Axes:
    """The axes given, or those of a new figure of ``pyplot``."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    made: Axes = plt.subplots(figsize=size, layout="constrained")[1]
    return made


def axes_came_first(draw: Callable[..., Any]) -> Callable[[_Plot], _Plot]:
    """Decorate a plot that once took the axes first: such calls still work, with a warning.

    ``draw`` takes arguments in that order, and returns what such calls returned.
    """

    def decorate(plot: _Plot) -> _Plot:
        @functools.wraps(plot)
        def call(*args: Any, **options: Any) -> Any:
            from matplotlib.axes import Axes

            if not (args and isinstance(args[0], Axes)):
                return plot(*args, **options)
            name, first = plot.__name__, next(iter(signature(plot).parameters))
            warnings.warn(
                f"{name} takes the axes last, by name, and returns them: write {name}({first}, "
                f"..., ax=ax). The axes as first argument will be refused in a later version.",
                FutureWarning,
                stacklevel=2,
            )
            return draw(*args, **options)

        return cast("_Plot", call)

    return decorate


def axes_was_a_name(plot: _Plot) -> _Plot:
    """Decorate a plot of several panels whose argument ``ax`` was once called ``axes``."""

    @functools.wraps(plot)
    def call(*args: Any, **options: Any) -> Any:
        if "axes" in options:
            name = plot.__name__
            warnings.warn(
                f"{name} has ax in place of axes, as all plots: write {name}(..., ax=axes). The "
                "name axes will be refused in a later version.",
                FutureWarning,
                stacklevel=2,
            )
            options["ax"] = options.pop("axes")
        return plot(*args, **options)

    return cast("_Plot", call)
