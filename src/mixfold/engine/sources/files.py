"""Which files a path stands for, and what reads them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mixfold.contracts import Source
from mixfold.engine.sources.array import MappedSource, open_npy
from mixfold.engine.sources.delimited import CsvSource
from mixfold.engine.sources.folders import (
    describe_lost_columns,
    partition_columns,
    refuse_governed,
)
from mixfold.engine.sources.parquet import ParquetSource
from mixfold.engine.sources.weights_and_labels import refuse_names, sides_of

_KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".tsv.gz": "csv",
    ".npy": "npy",
}
_SUPPORTED = "Parquet (.parquet, .pq), CSV (.csv, .tsv, also .gz) or numpy (.npy)"


def open_files(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    columns: Any,
    weight: Any,
    y: Any,
) -> Source:
    """A source over a file, a folder of files, or a list of files."""
    kind, files = list_files(path)
    if kind == "npy":
        return _open_npy(files, columns, weight, y)
    make = ParquetSource if kind == "parquet" else CsvSource
    source = make(files, columns, weight, y)
    if columns is None and isinstance(path, str | os.PathLike):
        _warn_of_lost_columns(Path(path), files, {*source.feature_names, *_names(weight, y)})
    return source


def _names(*sides: Any) -> list[str]:
    return [side for side in sides if isinstance(side, str)]


def _warn_of_lost_columns(folder: Path, files: tuple[Path, ...], held: set[str]) -> None:
    """Say that columns which only names of folders hold are not read."""
    if not folder.is_dir():
        return
    lost = [name for name in partition_columns(folder, files) if name not in held]
    if lost:
        warnings.warn(describe_lost_columns(folder, lost), stacklevel=4)


def list_files(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> tuple[str, tuple[Path, ...]]:
    """The files that a path or a list of paths stands for, and their kind."""
    listed = isinstance(path, Sequence) and not isinstance(path, str)
    paths = [Path(p) for p in path] if listed else [Path(path)]  # type: ignore[arg-type, union-attr]
    files = tuple(file for p in paths for file in _files(p))
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise ValueError(
            f"{paths[0]} holds files of different kinds ({', '.join(sorted(kinds))}); a data set "
            "is of one kind. Name the files that belong to it."
        )
    return kinds.pop(), files


def _open_npy(files: tuple[Path, ...], columns: Any, weight: Any, y: Any) -> MappedSource:
    if len(files) > 1:
        raise ValueError(f"{files[0].parent} holds {len(files)} .npy files; give one of them.")
    refuse_names(files[0].name, columns, weight, y)
    X = open_npy(str(files[0]))
    rows = X.shape[0] if X.ndim else 0
    return MappedSource(X, sides_of(weight, y, rows), str(files[0].resolve()))


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r}; check the spelling.")
    found = sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and not _hidden(file.relative_to(path)) and _suffix(file) in _KINDS
    )
    if not found:
        raise FileNotFoundError(f"the folder {str(path)!r} holds no data: {_SUPPORTED} is read.")
    refuse_governed(path, found)
    return found


def _hidden(path: Path) -> bool:
    """Markers and metadata that writers leave beside the data."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _suffix(file: Path) -> str:
    last = file.suffix.lower()
    return "".join(file.suffixes[-2:]).lower() if last == ".gz" else last


def _kind(file: Path) -> str:
    kind = _KINDS.get(_suffix(file))
    if kind is None:
        raise ValueError(
            f"{str(file)!r}: files of type {_suffix(file)!r} are not read, only {_SUPPORTED}. "
            "Convert it first."
        )
    return kind
