"""A deep belief net drawn: what its first layer looks for, digits it makes, and its mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments.nlmf_sets import SHAPE, Labelled
from mixfold.plots import plot_codebook, plot_generated, plot_misclassified

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Shown:
    """Weights of the first layer, digits made of each class, and what was asked and answered."""

    weights: Array
    made: Mapping[int, Array]
    asked: Labelled
    chances: Array
    title: str


def draw(figure: Figure, shown: Shown) -> None:
    """Units, digits and mistakes side by side."""
    figure.set_size_inches(17, 6.2)
    first, second, third = figure.subplots(1, 3)
    plot_codebook(shown.weights, SHAPE, columns=10, ax=first)
    first.set_title(f"{len(shown.weights)} units of the first layer", fontsize=10, pad=10)
    plot_generated(shown.made, SHAPE, n=len(next(iter(shown.made.values()))), ax=second)
    second.set_title("digits made with a clamped label", fontsize=10, pad=10)
    _mistakes(third, shown)


def _mistakes(ax: Axes, shown: Shown, n: int = 49) -> None:
    guess, sure = shown.chances.argmax(axis=1), shown.chances.max(axis=1)
    wrong = int(np.sum(guess != shown.asked.y))
    ax.set_title(
        f"{shown.title}: {wrong} mistakes of {len(guess)}, the surest", fontsize=10, pad=10
    )
    if not wrong:
        ax.set_axis_off()
        return
    order = np.argsort(-sure)
    X, y = shown.asked.X[order], shown.asked.y[order]
    plot_misclassified(X, y, guess[order], SHAPE, n=n, columns=7, ax=ax)
