"""Factorised digits drawn: errors by model, a codebook, reconstructions and mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments.nlmf_sets import SHAPE
from mixfold.experiments.table import Cell
from mixfold.plots import (
    plot_codebook,
    plot_generated,
    plot_misclassified,
    plot_reconstructions,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PUBLISHED, HELD_OUT, OFFICIAL = "#8c8c8c", "#1f5fa8", "#c8553d"


@dataclass(frozen=True, slots=True)
class Shown:
    """What is drawn of the models: a codebook, images with rebuilt ones, and mistakes."""

    codebook: Array
    images: Array
    rebuilt: Mapping[str, Array]
    asked: tuple[Array, Array, Array, Array]  # images, digits, predictions, probabilities
    network: str


def draw(figure: Figure, errors: Sequence[tuple[Cell, Cell]], shown: Shown) -> None:
    """Errors on both tests at the left, images at the right."""
    figure.set_size_inches(17, 9.4)
    axes = figure.subplot_mosaic(
        [["errors", "units", "mistakes"], ["errors", "rebuilt", "rebuilt"]],
        width_ratios=(7, 5, 5.5),
        height_ratios=(3, 2),
    )
    _errors(axes["errors"], errors)
    plot_codebook(shown.codebook, SHAPE, columns=10, ax=axes["units"])
    axes["units"].set_title(f"the {len(shown.codebook)} units of layer 1", fontsize=10, pad=10)
    _mistakes(axes["mistakes"], shown)
    size = len(shown.images)
    plot_reconstructions(shown.images, shown.rebuilt, SHAPE, columns=size, ax=axes["rebuilt"])
    axes["rebuilt"].set_title("digits, and what the sources say of them", fontsize=10, pad=10)


def _mistakes(ax: Axes, shown: Shown, n: int = 30) -> None:
    X, y, guess, sure = shown.asked
    order = np.argsort(-sure)  # beside so many images there is no room for the probabilities
    plot_misclassified(X[order], y[order], guess[order], SHAPE, n=n, columns=6, ax=ax)
    ax.set_title(f"the surest mistakes of {shown.network}", fontsize=10, pad=10)


def _errors(ax: Axes, errors: Sequence[tuple[Cell, Cell]]) -> None:
    for place, (held, official) in enumerate(errors):
        first = place == 0
        if official.published is not None:
            ax.plot(official.published, place, "D", ms=6, mfc="none", mec=PUBLISHED)
        ax.plot(held.ours, place - 0.13, "o", ms=5, color=HELD_OUT,
                label="next digits of the training part" if first else None)  # fmt: skip
        ax.plot(official.ours, place + 0.13, "o", ms=5, color=OFFICIAL,
                label="official test part" if first else None)  # fmt: skip
    ax.plot([], [], "D", ms=6, mfc="none", mec=PUBLISHED, label="published")
    ax.set_yticks(range(len(errors)), [official.row for _, official in errors])
    ax.set_ylim(len(errors) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_xlabel("error [%]", fontsize=9)
    ax.grid(axis="x", color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9, loc="lower right")


def draw_generated(figure: Figure, made: Mapping[str, Mapping[int, Array]], size: int = 6) -> None:
    """A sheet for each way to make digits, a row for each digit."""
    figure.set_size_inches(2.9 * len(made) + 0.4, 5.4)
    for ax, (name, images) in zip(
        np.ravel(figure.subplots(1, len(made))), made.items(), strict=True
    ):
        plot_generated(images, SHAPE, n=size, ax=ax)
        ax.set_title(name, fontsize=9)
