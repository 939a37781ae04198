"""Held-out images in the plane of two factors, with the line between the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments.table import Cell
from mixfold.plots import plot_discriminant

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Scatter:
    """A fitted model, held-out images, and who they are of."""

    model: Any
    X: Array
    people: Array


def scatter_of(model: Any, X: Array, y: Array) -> Scatter:
    """What is drawn of a model of two people."""
    return Scatter(model, X, y)


def draw_scatter(figure: Figure, scatter: Scatter, cells: Sequence[Cell]) -> None:
    """Held-out images in the plane of two factors with the discriminant; and the SER."""
    figure.set_size_inches(9, 4.2)
    left, right = figure.subplots(1, 2)
    colors = ("#1f5fa8", "#c8553d")
    plot_discriminant(left, scatter.model, scatter.X, scatter.people, colors=colors)
    left.set_title("held-out images, K = 1")
    left.get_legend().set_title("person", prop={"size": 8})
    ser = [cell for cell in cells if cell.column == "SER"]
    lines = np.arange(len(ser))
    right.plot([cell.ours for cell in ser], lines, "o", color="#1f5fa8", label="ours")
    right.plot([cell.published for cell in ser], lines, "D", mfc="none", color="#c8553d",
               label="published")  # fmt: skip
    right.set_yticks(lines, [cell.row for cell in ser], fontsize=8)
    right.invert_yaxis()
    right.set(title="signal-to-error ratio", xlabel="dB")
    right.legend(fontsize=8)
