"""Held-out images in the plane of two factors, with the line between the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments import mfm_ppca_faces as faces
from mixfold.experiments.table import Cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Scatter:
    """Latents (n, 2) of held-out images, who they are of, and where the classifier changes side."""

    latents: Array
    people: Array
    border: float


def scatter_of(model: Any, X: Array, y: Array) -> Scatter:
    """The classifier of two classes points along the first axis."""
    border = -float(model.intercept_[0]) / float(model.coef_[0, 0])
    return Scatter(model.transform(X)[:, :2], y, border)


def draw_scatter(figure: Figure, scatter: Scatter, cells: Sequence[Cell]) -> None:
    """Held-out images in the plane of two factors with the discriminant; and the SER."""
    figure.set_size_inches(9, 4.2)
    left, right = figure.subplots(1, 2)
    for person, colour in zip(faces.PEOPLE, ("#1f5fa8", "#c8553d"), strict=True):
        mine = scatter.people == person
        left.scatter(*scatter.latents[mine].T, s=12, c=colour, label=f"person {person}")
    left.axvline(scatter.border, color="0.3", ls="--", label="discriminant")
    left.set(title="held-out images, K = 1", xlabel="factor 1", ylabel="factor 2")
    left.legend(fontsize=8)
    ser = [cell for cell in cells if cell.column == "SER"]
    lines = np.arange(len(ser))
    right.plot([cell.ours for cell in ser], lines, "o", color="#1f5fa8", label="ours")
    right.plot([cell.published for cell in ser], lines, "D", mfc="none", color="#c8553d",
               label="published")  # fmt: skip
    right.set_yticks(lines, [cell.row for cell in ser], fontsize=8)
    right.invert_yaxis()
    right.set(title="signal-to-error ratio", xlabel="dB")
    right.legend(fontsize=8)
