"""Generated images, a row for each class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mixfold.plots.sheet import Tile, draw_sheet
from mixfold.plots.stacks import Scale, colour_ends, image_stack

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_generated(
    images: Any,
    shape: tuple[int, int],
    *,
    n: int = 10,
    scale: Scale = (0.0, 1.0),
    cmap: str = "gray",
    order: Literal["C", "F"] = "C",
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw images that a model makes for each class, one row for each.

    Parameters
    ----------
    images : estimator or mapping of class to array-like of shape (m, height * width)
        A fitted model with ``classes_`` and ``generate(label, n)`` (DeepFactorNetwork,
        DeepBeliefNetwork) or ``sample(n, label=...)`` (RBM); or images by class.
    shape : tuple of (height, width)
        Of an image.
    n : int, default 10
        Images of each class: so many are made, or the first so many of those given are drawn.
    scale : (low, high), "shared" or "own", default (0.0, 1.0)
        The values that are drawn black and white, see `plot_images`.
    cmap : str, default "gray"
        A colour map of matplotlib.
    order : "C" or "F", default "C"
        Order of the pixels, see `plot_images`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure is made without it, see `plot_images`.
    **options
        For the model, for example ``random_state`` or ``prior``.

    Returns
    -------
    matplotlib.axes.Axes
        Its ``images`` are those of the first class, of the second, and so on.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixfold.plots import plot_generated
    >>> X, y = load_digits(return_X_y=True)
    >>> ax = plot_generated({c: X[y == c] for c in range(3)}, (8, 8), n=4, scale="own")
    >>> len(ax.images), [text.get_text() for text in ax.texts]
    (12, ['0', '1', '2'])
    """
    if n < 1:
        raise ValueError(f"n must be at least 1; got {n}.")
    rows = (
        _check_images(images, n, options)
        if isinstance(images, Mapping)
        else _generate_images(images, n, options)
    )
    stacks = [image_stack(f"images of class {c}", row, shape, order)[:n] for c, row in rows.items()]
    ends = iter(colour_ends(np.concatenate(stacks), scale))
    tiles = [
        Tile(row, column, image, next(ends), cmap)
        for row, stack in enumerate(stacks)
        for column, image in enumerate(stack)
    ]
    return draw_sheet(tiles, [str(label) for label in rows], ax=ax)


def _check_images(
    images: Mapping[Any, Any], n: int, options: Mapping[str, Any]
) -> Mapping[Any, Any]:
    if options:
        raise TypeError(
            f"{', '.join(options)}: options are for a model that makes the images; here they are "
            "given. Leave the options out."
        )
    if not images or any(len(rows) == 0 for rows in images.values()):
        raise ValueError("images must have at least one class, and one image of each.")
    return images


def _generate_images(model: Any, n: int, options: Mapping[str, Any]) -> Mapping[Any, Any]:
    classes = getattr(model, "classes_", None)
    if classes is not None and hasattr(model, "generate"):
        return {label: model.generate(label, n, **options) for label in classes}
    if classes is not None and hasattr(model, "sample"):
        return {label: _rows(model.sample(n, label=label, **options)) for label in classes}
    raise TypeError(
        "images must be a model that was fitted to classes and generates rows of each, such as "
        "DeepFactorNetwork or DeepBeliefNetwork, or a mapping of class to images; got "
        f"{type(model).__name__}."
    )


def _rows(drawn: Any) -> Any:
    """Without the labels that some models draw beside the rows."""
    return drawn[0] if isinstance(drawn, tuple) else drawn
