"""Data sets that scikit-learn ships or downloads, written as the files that the tables read.

Only those whose rows are the published ones: texts and faces would differ by their preprocessing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mixfold.experiments.experiment import DataFile

# Writes one file at the path it is given.
Make = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Obtained:
    """A folder of files that were made, and why the others were not, by name."""

    folder: Path
    refused: dict[str, str] = field(default_factory=dict)


def obtain(files: Iterable[DataFile]) -> Obtained:
    """Make what scikit-learn can give of ``files``, once, in a folder of its data home.

    A download that fails is told of, not raised: the table may do without that file.
    """
    from sklearn.datasets import get_data_home

    obtained = Obtained(Path(get_data_home()) / "mixfold")
    for name in (file.name for file in files if file.name in MAKERS):
        path = obtained.folder / name
        if not path.is_file():
            try:
                _make(path, MAKERS[name])
            except Exception as error:  # of the network, the server, the format
                obtained.refused[name] = f"{type(error).__name__}: {error}"
    return obtained


def _make(path: Path, make: Make) -> None:
    """All of a file or nothing: what is cut off is never taken for data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"part-{path.name}")
    try:
        make(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _openml(name: str, version: int) -> tuple[np.ndarray, Any]:
    """Numbers, and the labels as OpenML has them."""
    from sklearn.datasets import fetch_openml

    found = fetch_openml(name, version=version, as_frame=False, parser="liac-arff")
    return np.asarray(found.data, dtype=float), found.target


def _mnist(path: Path) -> None:
    X, digits = _openml("mnist_784", 1)
    np.savez_compressed(path, X=X.astype(np.uint8), y=digits.astype(int), n_train=60_000)


def _optical_digits(path: Path) -> None:
    X, digits = _openml("optdigits", 1)
    np.savez_compressed(path, X=X.astype(np.uint8), y=digits.astype(int))


def _yeast(path: Path) -> None:
    X, labels = _openml("yeast", 4)
    np.savez_compressed(path, X=X, y=(np.asarray(labels) == "TRUE").astype(np.uint8))


def _vehicle(path: Path) -> None:
    X, kinds = _openml("vehicle", 1)
    _write_lines(path, X, kinds)


def _breast_cancer(path: Path) -> None:
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    _write_lines(path, found.data, found.target_names[found.target])


def _write_lines(path: Path, X: np.ndarray, labels: Any) -> None:
    """A header, then numbers and a class on each line."""
    header = ",".join([*(f"x{j}" for j in range(1, X.shape[1] + 1)), "class"])
    lines = [",".join([*map(repr, row.tolist()), str(k)]) for row, k in zip(X, labels, strict=True)]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


MAKERS: dict[str, Make] = {
    "mnist.npz": _mnist,
    "optdigits.npz": _optical_digits,
    "vehicle.csv": _vehicle,
    "wdbc.csv": _breast_cancer,
    "yeast.npz": _yeast,
}
