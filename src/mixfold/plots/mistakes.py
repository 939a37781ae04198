"""Images that a classifier assigns to a wrong class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.images import plot_images
from mixfold.plots.stacks import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_misclassified(
    X: Any,
    y: Any,
    predicted: Any,
    shape: tuple[int, int],
    *,
    probability: Any = None,
    n: int = 40,
    columns: int | None = None,
    scale: Scale = "own",
    cmap: str = "gray",
    order: Literal["C", "F"] = "C",
    ax: Axes | None = None,
) -> Axes:
    """Draw misclassified images with their class and what they were taken for.

    Parameters
    ----------
    X : array-like of shape (n_samples, height * width)
        One image in each row; NaN marks a missing pixel, drawn in orange.
    y, predicted : array-like of shape (n_samples,)
        The class of each image, and the class that it was given.
    shape : tuple of (height, width)
        Of an image.
    probability : array-like of shape (n_samples,), optional
        Of the predicted class. With it the surest mistakes come first, each with its
        probability; without it they stand in the order of the rows.
    n : int, default 40
        At most so many are drawn.
    columns : int, optional
        Images side by side, see `plot_images`.
    scale : "own", "shared" or (low, high), default "own"
        The values that are drawn black and white, see `plot_images`.
    cmap : str, default "gray"
        A colour map of matplotlib.
    order : "C" or "F", default "C"
        Order of the pixels, see `plot_images`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure is made without it, see `plot_images`.

    Returns
    -------
    matplotlib.axes.Axes
        Above each image stands its class, an arrow, and what it was taken for.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixfold.plots import plot_misclassified
    >>> X, y = load_digits(return_X_y=True)
    >>> ax = plot_misclassified(X[:4], y[:4], [0, 7, 2, 8], (8, 8))
    >>> [text.get_text() for text in ax.texts]
    ['1 → 7', '3 → 8']
    """
    if n < 1:
        raise ValueError(f"n must be at least 1; got {n}.")
    matrix = X if hasattr(X, "toarray") else np.asarray(X)
    truth, guess = (np.asarray(values) for values in (y, predicted))
    sure = None if probability is None else np.asarray(probability, dtype=float)
    beside = (("y", truth), ("predicted", guess), ("probability", sure))
    for name, values in beside:
        if values is not None and values.shape != (matrix.shape[0],):
            raise ValueError(
                f"{name} must be one for each of the {matrix.shape[0]} rows of X; got shape "
                f"{values.shape}."
            )
    rows = _wrong(truth, guess, sure)[:n]
    titles = [f"{truth[i]} → {guess[i]}" for i in rows]
    if sure is not None:
        titles = [f"{title}  {sure[i]:.0%}" for title, i in zip(titles, rows, strict=True)]
    return plot_images(matrix[rows], shape, titles=titles, columns=columns, scale=scale, cmap=cmap,
                       order=order, ax=ax)  # fmt: skip


def _wrong(truth: Array, guess: Array, sure: Array | None) -> Array:
    rows = np.flatnonzero(truth != guess)
    if len(rows) == 0:
        raise ValueError(
            "There is no mistake to draw: every row has the class that was predicted for it."
        )
    return rows if sure is None else rows[np.argsort(-sure[rows], kind="stable")]
