"""Images of two people from the Head Pose Image Database, split as Tabaghi (2016) splits them.

The tables mfm-faces and mfm-ppca-faces read and split them by the functions here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from papers.frame.data import load_arrays
from papers.frame.experiment import DataFile, derive_seed
from papers.frame.table import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHAPE = (48, 64)
PEOPLE, IMAGES, PIXELS = (9, 11), 186, SHAPE[0] * SHAPE[1]
# images of each person that the pictures show
SHOWN = 4
COLORS = ("#1f5fa8", "#c8553d")


FACES = DataFile(
    "head_pose_48x64.npz",
    "arrays X (images x 3072, grey values 0 to 255 of 48 x 64 pixels) and y (the person, 1 to 12)",
    "the Head Pose Image Database of N. Gourier, D. Hall and J. L. Crowley (2004), INRIA: means "
    "over 6 x 6 pixels of the grey images",
)


WHY = (
    "half of 372 images are few for so many axes: on the images that were fitted the SER of K > 1 "
    "is 22 dB and more at d = 18, on the others it is not."
)


def load_images(path: Path) -> tuple[Array, Array]:
    """The images of two people as they are, and who is who."""
    X, y = load_arrays(path, ("X", "y"))
    if X.ndim != 2 or X.shape[1] != PIXELS or y.shape != X.shape[:1]:
        raise ValueError(
            f"{str(path)!r} must hold X of shape (n, {PIXELS}) and y of shape (n,); got "
            f"{X.shape} and {y.shape}. Obtain it again."
        )
    counts = {person: int(np.sum(y == person)) for person in PEOPLE}
    if set(counts.values()) != {IMAGES}:
        raise ValueError(
            f"{str(path)!r} must hold {IMAGES} images of each of the people "
            f"{' and '.join(map(str, PEOPLE))}; got {counts}. Obtain it again."
        )
    chosen = np.isin(y, PEOPLE)
    return X[chosen].astype(float), y[chosen]


def split_in_halves(y: Array, seed: int, repeat: int) -> Iterator[tuple[Array, Array]]:
    """Two halves with as many images of each person, each to fit and to test."""
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(2, shuffle=True, random_state=derive_seed(seed, repeat)).split(y, y)


def label_row(k: int, d: int) -> str:
    return f"K = {k}, d = {d}"


# ------------------------------------------------ picture


def choose_shown(y: Array) -> Array:
    """Some images of each person, by position."""
    return np.concatenate([
        np.flatnonzero(y == person)[:: max(1, int(np.sum(y == person)) // SHOWN)][:SHOWN]
        for person in PEOPLE
    ])  # fmt: skip


def draw_faces(
    figure: Figure,
    faces: Mapping[str, Array],
    cells: Sequence[Cell],
    draw_plane: Callable[[Axes], None],
) -> None:
    """Images and the same rebuilt, row by row; the images in the plane of factors; the SER.

    Parameters
    ----------
    figure : Figure
    faces : mapping of str to ndarray of shape (images, PIXELS)
        By the name of the row.
    cells : sequence of Cell
        Of which those of the measure SER are drawn beside the published.
    draw_plane : callable
        Draws the plane on the axes that it gets.
    """
    from mixfold.plots import plot_generated

    figure.set_size_inches(13.5, 1.2 + 0.62 * max(len(faces), 8))
    parts: Any = figure.subfigures(1, 2, width_ratios=[1.6, 1])
    left, right = parts
    sheet = left.subplots()
    plot_generated(faces, SHAPE, n=len(PEOPLE) * SHOWN, scale=(0, 255), ax=sheet)
    sheet.set_title("held-out images, and what is rebuilt of them", fontsize=10)
    above, below = right.subplots(2, 1)
    draw_plane(above)
    ser = [cell for cell in cells if cell.column == "SER"]
    lines = np.arange(len(ser))
    below.plot([cell.ours for cell in ser], lines, "o", color=COLORS[0], label="ours")
    below.plot([cell.published for cell in ser], lines, "D", mfc="none", color=COLORS[1],
               label="published")  # fmt: skip
    below.set_yticks(lines, [cell.row for cell in ser], fontsize=8)
    below.invert_yaxis()
    below.set_title("signal-to-error ratio", fontsize=10)
    below.set_xlabel("dB", fontsize=8)
    below.legend(fontsize=8, frameon=False)
