"""Sheets of small images: rows of a table, the factors of a model, reconstructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mixfold.contracts import Array
from mixfold.metrics import signal_to_error_ratio
from mixfold.plots.sheet import Tile, draw_sheet
from mixfold.plots.stacks import Scale, colour_ends, image_stack, side_by_side

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Means (K, D), loadings (D, d) of each component, labels of the components.
_Parameters = tuple[Array, list[Array], list[str]]


def plot_images(
    images: Any,
    shape: tuple[int, int],
    *,
    titles: Sequence[str] | None = None,
    columns: int | None = None,
    scale: Scale = "shared",
    cmap: str = "gray",
    order: Literal["C", "F"] = "C",
    ax: Axes | None = None,
) -> Axes:
    """Draw the rows of a matrix as a sheet of small images.

    Parameters
    ----------
    images : array-like of shape (n, height * width)
        One image in each row. NaN marks a missing pixel, drawn in orange.
    shape : tuple of (height, width)
        Of an image.
    titles : sequence of n str, optional
        What to write above each image.
    columns : int, optional
        Images side by side; by default as many as make the sheet a little wider than high.
    scale : "shared", "own" or (low, high), default "shared"
        The values that are drawn black and white: the extremes of all images, those of each image,
        or two given numbers.
    cmap : str, default "gray"
        A colour map of matplotlib.
    order : "C" or "F", default "C"
        Whether the pixels of a row of the matrix run along the rows of the image ("C") or down its
        columns ("F", as MATLAB stores them).
    ax : matplotlib.axes.Axes, optional
        Where to draw. Without it a figure of a fitting size is made with ``pyplot``; it is
        ``returned.figure``, to save and to close.

    Returns
    -------
    matplotlib.axes.Axes
        Its ``images`` are in the order of the rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixfold.plots import plot_images
    >>> digits = load_digits()
    >>> ax = plot_images(digits.data[:20], (8, 8), titles=[str(y) for y in digits.target[:20]])
    >>> len(ax.images)
    20
    """
    stack = image_stack("images", images, shape, order)
    if titles is not None and len(titles) != len(stack):
        raise ValueError(
            f"titles must be one for each of the {len(stack)} images; got {len(titles)}."
        )
    columns = side_by_side(columns, len(stack), shape)
    tiles = [
        Tile(*divmod(i, columns), image, limits, cmap, "" if titles is None else str(titles[i]))
        for i, (image, limits) in enumerate(zip(stack, colour_ends(stack, scale), strict=True))
    ]
    return draw_sheet(tiles, ax=ax)


def plot_factors(
    model: Any,
    shape: tuple[int, int],
    *,
    components: Sequence[int] | None = None,
    factors: Sequence[int] | None = None,
    scale: Literal["own", "shared"] = "own",
    cmap: str = "gray",
    factor_cmap: str = "RdBu_r",
    order: Literal["C", "F"] = "C",
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean and the factors of a model of images: one row of a sheet per component.

    Parameters
    ----------
    model : estimator
        Fitted, with ``mean_`` and ``loadings_`` (PPCA, FactorAnalysis; or ``components_``, as
        scikit-learn has it), or ``means_``, ``loadings_`` and ``weights_`` (their mixtures).
    shape : tuple of (height, width)
        Of an image; height * width must be the number of features.
    components : sequence of int, optional
        Which components of a mixture to draw, counted from 0; all by default.
    factors : sequence of int, optional
        Which factors to draw, counted from 0; all by default. Their titles count from 1.
    scale : "own" or "shared", default "own"
        Zero is always in the middle of the colours of a factor. The ends are the largest modulus
        in that factor ("own"), or in all factors of the sheet ("shared", so that strong and weak
        factors can be told apart). Means share one scale.
    cmap, factor_cmap : str, default "gray" and "RdBu_r"
        Colour maps of the means and of the factors; the latter should be a diverging one.
    order : "C" or "F", default "C"
        Order of the pixels, see `plot_images`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure is made without it, see `plot_images`.

    Returns
    -------
    matplotlib.axes.Axes
        Its ``images`` are mean and factors of the first component, of the second, and so on.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from mixfold.plots import plot_factors
    >>> ax = plot_factors(PCA(3).fit(load_digits().data), (8, 8))
    >>> [text.get_text() for text in ax.texts]
    ['mean', 'factor 1', 'factor 2', 'factor 3']
    """
    if scale not in ("own", "shared"):
        raise ValueError(f"scale must be 'own' or 'shared' for factors; got {scale!r}.")
    means, loadings, labels = _parameters(model, components)
    chosen = [_columns_of(W, factors) for W in loadings]
    drawn = [
        image_stack("the loadings of the model", W[:, columns].T, shape, order)
        for W, columns in zip(loadings, chosen, strict=True)
    ]
    largest = max((float(np.abs(d).max(initial=0)) for d in drawn), default=0.0)
    averages = image_stack("the means of the model", means, shape, order)
    tiles = []
    for k, limits in enumerate(colour_ends(averages, "shared")):
        tiles.append(Tile(k, 0, averages[k], limits, cmap, "" if k else "mean"))
        for j, image in enumerate(drawn[k]):
            end = (largest if scale == "shared" else float(np.abs(image).max())) or 1.0
            first = j >= max(map(len, chosen[:k]), default=0)  # image of its column
            title = f"factor {chosen[k][j] + 1}" if first else ""
            tiles.append(Tile(k, j + 1, image, (-end, end), factor_cmap, title))
    return draw_sheet(tiles, labels, ax=ax)


def plot_reconstructions(
    X: Any,
    X_hat: Any,
    shape: tuple[int, int],
    *,
    columns: int | None = None,
    scale: Scale = "own",
    cmap: str = "gray",
    order: Literal["C", "F"] = "C",
    ax: Axes | None = None,
) -> Axes:
    """Draw images above their reconstructions, with the signal-to-error ratio of each.

    Parameters
    ----------
    X : array-like of shape (n, height * width)
        One image in each row; NaN marks a missing pixel, drawn in orange.
    X_hat : array-like like X, or mapping of str to array-like
        Their reconstructions; or several of them by name, drawn one below the other.
    shape : tuple of (height, width)
        Of an image.
    columns : int, optional
        Images side by side, at most 10 by default.
    scale : "own", "shared" or (low, high), default "own"
        The values that are drawn black and white: the extremes of an image, which serve its
        reconstructions, too, so that they can be compared; those of all images; or two given
        numbers.
    cmap : str, default "gray"
        A colour map of matplotlib.
    order : "C" or "F", default "C"
        Order of the pixels, see `plot_images`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure is made without it, see `plot_images`.

    Returns
    -------
    matplotlib.axes.Axes
        Its ``images`` are an image, its reconstructions, the next image, and so on. Ratios are
        those of `mixfold.metrics.signal_to_error_ratio` for single rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from mixfold.plots import plot_reconstructions
    >>> X = load_digits().data
    >>> pca = PCA(8).fit(X)
    >>> ax = plot_reconstructions(X[:2], pca.inverse_transform(pca.transform(X[:2])), (8, 8))
    >>> [text.get_text() for text in ax.texts]
    ['original', 'reconstruction', '12.9 dB', '11.3 dB']
    """
    named = X_hat if isinstance(X_hat, Mapping) else {"reconstruction": X_hat}
    if not named:
        raise ValueError("X_hat is empty; give at least one reconstruction to draw.")
    originals = image_stack("X", X, shape, order)
    rebuilt = [image_stack(f"X_hat ({name})", value, shape, order) for name, value in named.items()]
    ratios = [np.asarray(signal_to_error_ratio(X, v, per_row=True)) for v in named.values()]
    columns = side_by_side(10 if columns is None else columns, len(originals), shape)
    tiles = []
    for i, limits in enumerate(colour_ends(originals, scale)):
        band, column = divmod(i, columns)
        row = band * (len(named) + 1)
        tiles.append(Tile(row, column, originals[i], limits, cmap))
        for j, (stack, ratio) in enumerate(zip(rebuilt, ratios, strict=True), 1):
            tiles.append(Tile(row + j, column, stack[i], limits, cmap, f"{ratio[i]:.1f} dB"))
    return draw_sheet(tiles, ["original", *map(str, named)], ax=ax)


def _parameters(
    model: Any, components: Sequence[int] | None
) -> tuple[Array, list[Array], list[str]]:
    """What is drawn of a model."""
    loadings = getattr(model, "loadings_", None)
    if hasattr(model, "means_") and loadings is not None:
        return _mixture(model, components)
    if loadings is None and hasattr(model, "components_"):
        loadings = np.asarray(model.components_).T
    if loadings is None or not hasattr(model, "mean_"):
        raise TypeError(
            "model must be a fitted factor model with mean_ (or means_) and loadings_, such as "
            f"PPCA or MixtureOfFactorAnalyzers; got {type(model).__name__}."
        )
    if components is not None:
        raise ValueError(
            f"components is for mixtures; {type(model).__name__} has a single one. Leave it out."
        )
    return np.asarray(model.mean_)[None], [np.asarray(loadings)], []


def _mixture(model: Any, components: Sequence[int] | None) -> _Parameters:
    size = len(model.means_)
    chosen = range(size) if components is None else components
    for k in chosen:
        if not 0 <= k < size:
            raise ValueError(f"components: they run from 0 to {size - 1}; got {k}.")
    labels = [f"component {k}\n{model.weights_[k]:.1%}" for k in chosen]
    loadings = [np.asarray(model.loadings_[k]) for k in chosen]
    return np.asarray(model.means_)[list(chosen)], loadings, labels


def _columns_of(loadings: Array, factors: Sequence[int] | None) -> list[int]:
    size = loadings.shape[1]
    for factor in factors or ():
        if not 0 <= factor < size:
            raise ValueError(f"factors: they run from 0 to {size - 1}; got {factor}.")
    return list(range(size)) if factors is None else list(factors)
