"""Images of two people from the Head Pose Image Database, split as Tabaghi (2016) splits them.

The tables mfm-faces and mfm-ppca-faces read and split them by the functions here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mixfold.contracts import Array
from papers.frame.data import load_arrays
from papers.frame.experiment import DataFile, derive_seed

PEOPLE, IMAGES, PIXELS = (9, 11), 186, 48 * 64


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
