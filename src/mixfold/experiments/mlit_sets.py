"""The labelled tables of source 001."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments.data import load_arrays
from mixfold.experiments.experiment import DataFile


@dataclass(frozen=True, slots=True)
class SetFile:
    """Where a table is, its rows and columns, and the number of its classes."""

    file: DataFile
    shape: tuple[int, int]
    classes: int


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows and their classes 0, 1, ..."""

    name: str
    X: Array
    y: Array

    @property
    def majority(self) -> float:
        """Share of the largest class."""
        return float(np.bincount(self.y).max() / len(self.y))


def _lines(file: str, shape: tuple[int, int], classes: int, origin: str) -> SetFile:
    content = (
        f"a header line, then {shape[0]} lines of {shape[1]} numbers (NA where missing) and a class"
    )
    return SetFile(DataFile(file, content, origin, optional=True), shape, classes)


SETS = {
    "Vehicle": _lines("vehicle.csv", (846, 18), 4,
                      "the vehicle silhouettes of Statlog (J. P. Siebert, 1987), UCI"),
    "OpticDigit": SetFile(
        DataFile("optdigits.npz", "arrays X (5620 x 64, counts from 0 to 16) and y (digits)",
                 "the optical digits of E. Alpaydin and C. Kaynak (1998), UCI; all rows",
                 optional=True),
        (5620, 64), 10),
    "WDBC": _lines("wdbc.csv", (569, 30), 2,
                   "the diagnostic breast cancer data of Wisconsin (1995), UCI"),
    "WPBC": _lines("wpbc.csv", (198, 33), 2,
                   "the prognostic breast cancer data of Wisconsin (1995), UCI; status is last"),
}  # fmt: skip


def present(names: tuple[str, ...], folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which of the sets are in the folder, and a note about each that is not."""
    found = tuple(name for name in names if (folder / SETS[name].file.name).is_file())
    return found, tuple(
        f"{name} is left out: {SETS[name].file.name} is not in the data folder."
        for name in names
        if name not in found
    )


def load_set(name: str, folder: Path) -> Labelled:
    """Rows with medians for what is missing.

    Raises
    ------
    ValueError
        If the file holds anything else.
    """
    known, path = SETS[name], folder / SETS[name].file.name
    if path.suffix == ".npz":
        X, labels = load_arrays(path, ("X", "y"))
    else:
        X, labels = _table(path, known.file.content)
    classes, y = np.unique(labels, return_inverse=True)
    if X.shape != known.shape or len(y) != len(X) or len(classes) != known.classes:
        raise ValueError(
            f"{str(path)!r} must hold {known.file.content} of {known.classes}; got {X.shape[0]} "
            f"rows, {X.shape[1]} columns and {len(classes)} classes. Obtain it again."
        )
    X = X.astype(float)
    return Labelled(name, np.where(np.isnan(X), np.nanmedian(X, axis=0), X), y)


def _table(path: Path, content: str) -> tuple[Array, Array]:
    with path.open(encoding="utf-8") as file:
        lines = [line.strip().split(",") for line in file][1:]
    try:
        X = np.array([[np.nan if v == "NA" else float(v) for v in line[:-1]] for line in lines])
        labels = np.array([line[-1] for line in lines])
    except ValueError as error:
        raise ValueError(
            f"{str(path)!r} must hold {content}; it cannot be read ({error}). Obtain it again."
        ) from error
    if X.ndim != 2:
        raise ValueError(f"{str(path)!r} must hold {content}; it is empty. Obtain it again.")
    return X, labels
