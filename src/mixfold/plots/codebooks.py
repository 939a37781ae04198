"""Plots of codebooks: the units of a layer as images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.sheet import Tile, draw_sheet
from mixfold.plots.stacks import image_stack, side_by_side

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_codebook(
    model: Any,
    shape: tuple[int, int],
    *,
    layer: int = 1,
    units: Sequence[int] | None = None,
    columns: int | None = None,
    scale: Literal["own", "shared"] = "own",
    cmap: str | None = None,
    order: Literal["C", "F"] = "C",
    ax: Axes | None = None,
) -> Axes:
    """Draw the codebook of a model of images: one small image for each unit.

    Parameters
    ----------
    model : estimator or array-like of shape (n_units, height * width)
        Fitted, with ``components_`` (MatrixFactorization, RBM, scikit-learn's NMF and PCA) or with
        layers that have them (DeepFactorNetwork, DeepBeliefNetwork); or the codebook itself.
    shape : tuple of (height, width)
        Of an image; height * width must be the number of features.
    layer : int, default 1
        Which layer of a stack; 1 is the one next to the data. Units of a higher layer are seen
        through the codebooks below it, as if the links between them were straight lines.
    units : sequence of int, optional
        Which units to draw, counted from 0; all by default.
    columns : int, optional
        Images side by side, see `plot_images`.
    scale : "own" or "shared", default "own"
        Whether the ends of the colours are those of each unit or of all of them ("shared", so
        that strong and weak units can be told apart).
    cmap : str, optional
        A colour map of matplotlib. By default a diverging one with zero in the middle, or, if no
        entry is negative, black for zero and white for the largest.
    order : "C" or "F", default "C"
        Order of the pixels, see `plot_images`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure is made without it, see `plot_images`.

    Returns
    -------
    matplotlib.axes.Axes
        Its ``images`` are in the order of the units.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from mixfold.plots import plot_codebook
    >>> ax = plot_codebook(PCA(6).fit(load_digits().data), (8, 8))
    >>> len(ax.images)
    6
    """
    if scale not in ("own", "shared"):
        raise ValueError(f"scale must be 'own' or 'shared' for a codebook; got {scale!r}.")
    codebook = _codebook(model, layer)
    stack = image_stack("the codebook", codebook[_choose_units(units, len(codebook))], shape, order)
    if len(stack) == 0:
        raise ValueError("There is no unit to draw; name at least one in units.")
    plain = float(codebook.min()) >= 0
    largest = float(np.abs(stack).max())
    cmap = ("gray" if plain else "RdBu_r") if cmap is None else cmap
    columns = side_by_side(columns, len(stack), shape)
    tiles = []
    for i, image in enumerate(stack):
        end = (largest if scale == "shared" else float(np.abs(image).max())) or 1.0
        tiles.append(Tile(*divmod(i, columns), image, (0.0 if plain else -end, end), cmap))
    return draw_sheet(tiles, ax=ax)


def _codebook(model: Any, layer: int) -> Array:
    """The rows to draw, in pixels."""
    books = [_entries(one) for one in _layers(model)]
    if not 1 <= layer <= len(books):
        raise ValueError(f"layer: they run from 1 to {len(books)}; got {layer}.")
    seen = books[layer - 1]
    for below in reversed(books[: layer - 1]):
        seen = seen @ below
    return seen


def _layers(model: Any) -> list[Any]:
    """What has the units of each layer, from the data up."""
    if hasattr(model, "generative_weights_"):  # downward, but for the machine at the top
        return [*model.generative_weights_, np.transpose(model.top_weights_)]
    return list(getattr(model, "layers_", [model]))


def _entries(layer: Any) -> Array:
    if isinstance(layer, type) or not (hasattr(layer, "components_") or np.ndim(layer) == 2):
        raise TypeError(
            "model must be a fitted model with components_ (or layers that have them), such as "
            f"MatrixFactorization or RBM, or a matrix; got {type(layer).__name__}."
        )
    entries = np.asarray(getattr(layer, "components_", layer), dtype=float)
    if not np.isfinite(entries).all():
        raise ValueError("the codebook has entries that are no finite numbers; it cannot be drawn.")
    return entries


def _choose_units(units: Sequence[int] | None, size: int) -> list[int]:
    for unit in units if units is not None else ():
        if not 0 <= unit < size:
            raise ValueError(f"units: they run from 0 to {size - 1}; got {unit}.")
    return list(range(size)) if units is None else list(units)
