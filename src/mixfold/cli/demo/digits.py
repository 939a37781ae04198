"""Small images of handwritten digits, grouped without their labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mixfold.contracts import Array

_DIRECTIONS = 12
_PER_ROW = 6
_SIZES = range(4, 21, 2)
_SPAN = f"{len(_SIZES)} sizes from {_SIZES[0]} to {_SIZES[-1]}"


def run(console: Any, folder: Path) -> list[Path]:
    """Fit, print what was found, and return the path of a picture."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    images, digits = load_digits(return_X_y=True)
    console.print(
        f"[bold]Handwritten digits[/bold]: {len(images)} images of 8 x 8 pixels, "
        f"reduced to {_DIRECTIONS} directions by PCA"
    )
    # The exact solver: a randomised one would need a seed to give the same picture every time.
    reduction = PCA(_DIRECTIONS, svd_solver="full")
    X = reduction.fit_transform(images)
    search = _search(X)
    model = search.best_estimator_
    order = np.argsort(-model.weights_)
    console.print(_groups(model, order, model.predict(X), digits))
    path = folder / "mixfold-demo-digits.png"
    _draw(search, order, reduction.inverse_transform(model.means_), path)
    return [path]


def _search(X: Array) -> Any:
    from mixfold import GaussianMixture, MixtureSearch

    return MixtureSearch(GaussianMixture(), n_components=_SIZES, random_state=0).fit(X)


def _groups(model: Any, order: Array, labels: Array, digits: Array) -> Any:
    from rich.table import Table
    from sklearn.metrics import adjusted_rand_score

    agreement = adjusted_rand_score(digits, labels)
    table = Table(title=f"{len(order)} groups (lowest BIC of {_SPAN})", title_justify="left")
    for head in ("group", "weight", "images", "mostly", "share of that digit"):
        table.add_column(head, justify="right")
    for rank, k in enumerate(order):
        counts = np.bincount(digits[labels == k], minlength=10)
        share = f"{counts.max() / counts.sum():.0%}" if counts.any() else "-"
        weight = f"{model.weights_[k]:.3f}"
        table.add_row(str(rank), weight, str(counts.sum()), str(counts.argmax()), share)
    table.caption = f"The digits were not used in the fit; adjusted Rand index {agreement:.2f}."
    return table


def _draw(search: Any, order: Array, means: Array, path: Path) -> None:
    """The mean image of each component, heaviest first, beside the BIC curve."""
    from matplotlib.figure import Figure

    from mixfold.plots import plot_search

    lines = -(-len(order) // _PER_ROW)
    figure = Figure(figsize=(11, max(3.2, 1.55 * lines)), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.9, 1), squeeze=False)[0]
    left.suptitle("Mean image of each group, and its weight", fontsize=11)
    for ax in left.subplots(lines, _PER_ROW, squeeze=False).flat:
        ax.set_axis_off()
    for ax, k in zip(left.axes, order, strict=False):
        # The digits touch the edge of their 8 x 8 pixels; a white rim lets them be seen whole.
        image = np.pad(means[k].reshape(8, 8), 1)
        ax.imshow(image, cmap="gray_r", vmin=0, vmax=16, interpolation="bicubic")
        ax.set_title(f"{search.best_estimator_.weights_[k]:.1%}", fontsize=9, pad=2)
    ax = right.subplots()
    plot_search(search, ax=ax)
    ax.set_title(f"BIC chooses {len(search.best_estimator_.weights_)} groups", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=100)
