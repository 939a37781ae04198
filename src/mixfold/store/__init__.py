"""Model files: safetensors and JSON, never pickle. Loading one runs no code from it."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from typing import Any

from mixfold.catalogue import ENTRIES
from mixfold.store.atomic import ModelWriteError, remove_leftovers, replace_file
from mixfold.store.container import (
    FOREIGN,
    FORMAT_VERSION,
    Header,
    ModelFileError,
    open_model,
    pack,
    read_arrays,
    read_header,
)
from mixfold.store.decode import Decoder, DocumentError, Outline
from mixfold.store.encode import Encoder
from mixfold.store.fields import check_finite

__all__ = [
    "ESTIMATORS",
    "ModelFileError",
    "ModelWriteError",
    "describe",
    "load",
    "read",
    "remove_leftovers",
    "write",
]

Path = str | os.PathLike[str]

# The estimators that a file may name, and where they live: the allow-list of `load`.
ESTIMATORS = {name: entry.home for name, entry in ENTRIES.items() if entry.stored}


def write(path: Path, kind: str, tree: Any, summary: dict[str, Any] | None = None) -> None:
    """Write ``tree`` to a model file, all or nothing.

    Parameters
    ----------
    path : str or path-like
        An existing file is replaced in one step.
    kind : str
        What the tree is: the name of an estimator's class, or "checkpoint".
    tree : nested dict, list, tuple, str, number, None, numpy scalar or array, record
        Keys of dicts are strings. Arrays hold numbers, booleans or strings; records are
        dataclasses registered with :func:`mixfold.contracts.record`.
    summary : dict, optional
        For people: shown by :func:`describe`, ignored by :func:`read`.

    Raises
    ------
    TypeError, ValueError
        If something in the tree cannot be written; nothing was touched then.
    ModelWriteError
        (an OSError) If the file cannot be written; an earlier file is unchanged.

    Examples
    --------
    >>> import tempfile, os, numpy as np
    >>> from mixfold import store
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "model.mixfold")
    >>> store.write(path, "example", {"means": np.eye(2), "tol": float("inf")})
    >>> store.read(path)["tol"], store.describe(path)["arrays"]
    (inf, {'means': {'dtype': 'float64', 'shape': (2, 2)}})
    >>> folder.cleanup()
    """
    encoder = Encoder()
    document = {
        "kind": kind,
        "library_version": _library_version(),
        "tree": encoder.encode(tree),
        "summary": encoder.encode({} if summary is None else summary, ("summary",)),
    }
    replace_file(path, pack(document, encoder.arrays))


def read(path: Path, kind: str | None = None) -> Any:
    """The tree that was written to ``path``.

    Parameters
    ----------
    path : str or path-like
    kind : str, optional
        What the file must hold; None takes anything.

    Raises
    ------
    ModelFileError
        (a ValueError) If the file is not a model file of that kind, is damaged or hostile,
        or was written by a newer version.
    OSError
        If it cannot be opened or read.
    """
    with open_model(path) as file:
        header = read_header(file, path)
        found = _kind(header, path)
        if kind is not None and found != kind:
            raise ModelFileError(
                path, f"it holds a {found!r}, not a {kind!r}", "load it with mixfold.load"
            )
        arrays = read_arrays(file, header, path)
    decoder = Decoder(arrays)
    try:
        tree = decoder.decode(header.document.get("tree"))
        decoder.decode(header.document.get("summary"))
        decoder.finish()
    except DocumentError as error:
        raise ModelFileError(path, str(error)) from error
    return tree


def describe(path: Path) -> dict[str, Any]:
    """What a model file holds, in plain values; the arrays are not read.

    Returns
    -------
    dict
        ``kind``, ``class`` (None if it is not an estimator), ``format_version``,
        ``library_version``, ``parameters``, ``summary``, and ``arrays``: name to ``dtype``
        and ``shape``.

    Raises
    ------
    ModelFileError, OSError
        As for :func:`read`, as far as it shows without the arrays.
    """
    with open_model(path) as file:
        header = read_header(file, path)
    kind = _kind(header, path)
    outline = Outline()
    try:
        tree = outline.decode(header.document.get("tree"))
        summary = outline.decode(header.document.get("summary"))
    except DocumentError as error:
        raise ModelFileError(path, str(error)) from error
    return {
        "kind": kind,
        "class": f"{ESTIMATORS[kind]}.{kind}" if kind in ESTIMATORS else None,
        "format_version": FORMAT_VERSION,
        "library_version": str(header.document.get("library_version")),
        "parameters": tree.get("parameters", {}) if isinstance(tree, dict) else {},
        "summary": summary,
        "arrays": {
            name: {"dtype": tensor.dtype.name, "shape": tensor.shape}
            for name, tensor in header.tensors.items()
        },
    }


def load(path: Path) -> Any:
    """The estimator that was saved to ``path``.

    The class is one of :data:`ESTIMATORS`, imported when it is needed; its ``_from_state``
    gets the tree, and its ``_check_answers`` tries the model on a few rows: parts that do not fit
    each other are found here, not when the model is needed.

    Raises
    ------
    ModelFileError, OSError
        As for :func:`read`; also if the state is not one of that class.
    """
    described = describe(path)
    kind = described["kind"]
    if kind not in ESTIMATORS:
        raise ModelFileError(
            path,
            f"it holds a {kind!r}, which is not an estimator of this mixfold",
            f"the estimators are {', '.join(ESTIMATORS)}; a newer mixfold may know more",
        )
    # First the class, so that its records are registered when the tree is rebuilt.
    estimator = estimator_class(kind)
    parameters = described["parameters"]
    if not isinstance(parameters, dict):
        raise ModelFileError(path, "its parameters are no table of names and values")
    for inner in parameters.values():  # estimators of which this one is made
        if isinstance(inner, dict) and inner.get("kind") in ESTIMATORS:
            estimator_class(inner["kind"])
    tree = read(path, kind)
    try:
        check_finite(tree["state"])
        model = estimator._from_state(tree)
        model._check_answers()
        return model
    except (
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        RuntimeError,
    ) as error:
        raise ModelFileError(
            path, f"its content is not the state of a {kind} ({type(error).__name__}: {error})"
        ) from error


def estimator_class(kind: str) -> Any:
    """A class of :data:`ESTIMATORS` by its name."""
    if kind not in ESTIMATORS:
        raise ValueError(f"{kind!r} is not an estimator of this mixfold")
    return getattr(importlib.import_module(ESTIMATORS[kind]), kind)


def _kind(header: Header, path: Path) -> str:
    kind = header.document.get("kind")
    if not isinstance(kind, str):
        raise ModelFileError(path, "it does not say what it holds", FOREIGN)
    return kind


def _library_version() -> str:
    try:
        return importlib.metadata.version("mixfold")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"  # run from a source tree that is not installed
