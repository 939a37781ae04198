"""The data of a table: files in a folder that the user names, or that can be downloaded."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mixfold.contracts import Array
from papers.frame.experiment import DataFile
from papers.frame.registry import DATA_VARIABLE


def check_data(name: str, files: Iterable[DataFile], folder: Path | None) -> Path:
    """The folder, if every file is in it; asked before the work, not in the middle of it.

    Optional files may be missing, but not all of the files.

    Parameters
    ----------
    name : str
        Of the table that wants the files.
    files : iterable of DataFile
    folder : Path or None
        None: the user named none. Then what scikit-learn has or can download is taken.

    Raises
    ------
    FileNotFoundError
        Names each missing file, what it should hold, and how to say where it is.
    """
    asked_for = tuple(files)
    if not asked_for:
        return Path() if folder is None else folder
    place = obtain(asked_for) if folder is None else Obtained(folder)
    missing = [file for file in asked_for if not (place.folder / file.name).is_file()]
    if len(missing) < len(asked_for) and all(file.optional for file in missing):
        return place.folder
    wanted = "\n".join(_describe_file(file, place.refused.get(file.name)) for file in missing)
    raise FileNotFoundError(
        f"{name} needs a file that was not found: {_describe_remedy(folder)}.\n{wanted}"
    )


def _describe_remedy(folder: Path | None) -> str:
    if folder is None:
        return f"name its folder with --data DIR or the environment variable {DATA_VARIABLE}"
    if not folder.is_dir():
        return f"the folder {str(folder)!r} does not exist; name another one with --data DIR"
    return f"it is not in the folder {str(folder)!r}; put it there or name another one"


def _describe_file(file: DataFile, refused: str | None) -> str:
    text = f"  {file.name}: {file.content}\n    from {file.origin}"
    return text if refused is None else f"{text}\n    could not be downloaded: {refused}"


def load_arrays(path: Path, names: Iterable[str]) -> tuple[Array, ...]:
    """Some arrays of an ``.npz`` file; nothing in it is run.

    Raises
    ------
    ValueError
        If the file is damaged or lacks one of the arrays.
    """
    wanted = tuple(names)
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is cut off or another kind of file")
        with np.load(path, allow_pickle=False) as content:
            missing = [name for name in wanted if name not in content.files]
            if not missing:
                return tuple(content[name] for name in wanted)
            found = ", ".join(content.files) or "none"
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise ValueError(
            f"{str(path)!r} cannot be read as an .npz file of plain arrays ({error}); "
            "obtain it again."
        ) from error
    raise ValueError(
        f"{str(path)!r} must hold the arrays {', '.join(wanted)}; it lacks {', '.join(missing)} "
        f"and has {found}. Obtain it again."
    )


# ------------------------------------------------ downloads
# Data sets that scikit-learn ships or downloads, written as the files that the tables read.
#
# Only those whose rows are the published ones: texts and faces would differ by their preprocessing.

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


def _fetch_openml(name: str, version: int) -> tuple[np.ndarray, Any]:
    """Numbers, and the labels as OpenML has them."""
    from sklearn.datasets import fetch_openml

    found = fetch_openml(name, version=version, as_frame=False, parser="liac-arff")
    return np.asarray(found.data, dtype=float), found.target


def _make_mnist(path: Path) -> None:
    X, digits = _fetch_openml("mnist_784", 1)
    np.savez_compressed(path, X=X.astype(np.uint8), y=digits.astype(int), n_train=60_000)


def _make_optical_digits(path: Path) -> None:
    X, digits = _fetch_openml("optdigits", 1)
    np.savez_compressed(path, X=X.astype(np.uint8), y=digits.astype(int))


def _make_yeast(path: Path) -> None:
    X, labels = _fetch_openml("yeast", 4)
    np.savez_compressed(path, X=X, y=(np.asarray(labels) == "TRUE").astype(np.uint8))


def _make_vehicle(path: Path) -> None:
    X, kinds = _fetch_openml("vehicle", 1)
    _write_lines(path, X, kinds)


def _make_breast_cancer(path: Path) -> None:
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    _write_lines(path, found.data, found.target_names[found.target])


def _write_lines(path: Path, X: np.ndarray, labels: Any) -> None:
    """A header, then numbers and a class on each line."""
    header = ",".join([*(f"x{j}" for j in range(1, X.shape[1] + 1)), "class"])
    lines = [",".join([*map(repr, row.tolist()), str(k)]) for row, k in zip(X, labels, strict=True)]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


MAKERS: dict[str, Make] = {
    "mnist.npz": _make_mnist,
    "optdigits.npz": _make_optical_digits,
    "vehicle.csv": _make_vehicle,
    "wdbc.csv": _make_breast_cancer,
    "yeast.npz": _make_yeast,
}
