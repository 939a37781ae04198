"""What users give beside settings: rows in any form, names of columns, components of rows.

``MixfoldEstimator._open`` calls this before a source is made. Arrays, lists and sparse matrices are
checked by scikit-learn, with the place and a remedy added to what it says.
"""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from mixfold.contracts import Array, Source
from mixfold.engine.sources.checks import infinite_at
from mixfold.engine.sources.sparse import describe_damage

# ---------------------------------------------------- forms of X


def fill_masked_entries(X: Any) -> Any:
    """Masked entries are missing ones; text and records are refused rather than parsed."""
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        raise ValueError(
            f"X is a structured array with the fields {', '.join(X.dtype.names)}; make columns of "
            "them: from numpy.lib.recfunctions import structured_to_unstructured, and give "
            "structured_to_unstructured(X)"
        )
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind not in "USO":
        return np.ma.filled(X.astype(float if X.dtype.kind != "f" else X.dtype), np.nan)
    if isinstance(X, np.ndarray) and X.dtype.kind in "US" and X.size:
        raise ValueError(
            f"X holds text, such as {str(np.asarray(X).flat[0])!r}; convert it to numbers "
            "(X.astype(float)) or encode categories as 0/1 columns"
        )
    return X


def is_plain(X: Any) -> bool:
    """Arrays, lists, sparse matrices: what scikit-learn validates."""
    if isinstance(X, np.memmap) or type(X).__module__.partition(".")[0] == "polars":
        return False
    return (
        (isinstance(X, np.ndarray | list | tuple) and not _is_paths(X))
        or sparse.issparse(X)
        or not (
            isinstance(X, str | os.PathLike | Source | tuple | list)
            or has_column_names(X)
            or _is_lazy(X)
        )
    )


def _is_paths(X: Any) -> bool:
    return (
        isinstance(X, list | tuple)
        and bool(X)
        and all(isinstance(item, str | os.PathLike) for item in X)
    )


def has_column_names(X: Any) -> bool:
    """Tables and files, whose columns may have names."""
    if isinstance(X, str | os.PathLike) or _is_paths(X):
        return True
    if type(X).__name__ == "LazyFrame":  # to ask for its columns would work, and warn
        return True
    return hasattr(X, "columns") or hasattr(X, "column_names") or hasattr(X, "schema")


def _is_lazy(X: Any) -> bool:
    return hasattr(X, "__dask_graph__")


# ---------------------------------------------------- arrays, lists and sparse matrices


def validate_plain_rows(estimator: Any, X: Any, reset: bool, min_rows: int) -> Any:
    """X as an array of floats or a CSR matrix, its features remembered or compared."""
    if not reset and _is_as_expected(estimator, X, min_rows):
        return X
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # it adds up all entries
            return validate_data(
                estimator,
                X,
                reset=reset,
                dtype=[np.float64, np.float32],
                accept_sparse="csr" if get_tags(estimator).input_tags.sparse else False,
                ensure_all_finite="allow-nan",
                ensure_min_samples=min_rows,
            )
    except (ValueError, TypeError, IndexError) as error:
        message = _explain_refusal(X, str(error))
        if message is None:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(message) from None


def _is_as_expected(estimator: Any, X: Any, min_rows: int) -> bool:
    """Whether there is nothing to be said about an array of rows to a fitted estimator: one row is
    predicted faster than scikit-learn checks it."""
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or len(X) < min_rows:
        return False
    known = vars(estimator)
    if X.shape[1] != known.get("n_features_in_") or "feature_names_in_" in known:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))


def _explain_refusal(X: Any, said: str) -> str | None:
    """A message that says more than scikit-learn's, or None.

    Where its own checks of an estimator look for its words, the message begins with them.
    """
    if X is None:
        return "X is None; give a table of shape (n_samples, n_features), or the path of a file"
    if said.startswith("Complex data"):
        return (
            "Complex data not supported: X holds complex numbers. Give real and imaginary parts as "
            "columns of their own, np.hstack([X.real, X.imag])"
        )
    if sparse.issparse(X) and ("index" in said or "indices" in said or "indptr" in said):
        return describe_damage(ValueError(said))
    if "infinity" in said:
        return _locate_infinity(X)
    if said.startswith("could not convert string"):
        return _locate_text(X)
    if "inhomogeneous" in said:
        return _locate_ragged_row(X)
    numpys = ("float() argument", "setting an array element", "Cannot cast", "must be real number")
    return _locate_no_number(X, said) if any(words in said for words in numpys) else None


def _locate_infinity(X: Any) -> str | None:
    found = infinite_at(X.tocsr() if sparse.issparse(X) else np.asarray(X, dtype=float))
    if found is None:
        return None
    row, column, value = found
    return (
        f"Input X contains infinity: row {row}, column {column} (both counted from 0) is {value}. "
        "Every entry must be finite, or NaN if it is missing"
    )


def _locate_text(X: Any) -> str | None:
    for (row, column), value in np.ndenumerate(np.asarray(X, dtype=object)):
        if isinstance(value, str | bytes) and not _is_number(value):
            return (
                f"could not convert string to float: row {row}, column {column} of X (both counted "
                f"from 0) holds the text {value!r}. Encode categories as 0/1 columns; a missing "
                "entry is NaN"
            )
    return None


def _locate_no_number(X: Any, said: str) -> str | None:
    """The first entry that is neither a number nor text."""
    if not np.shape(np.asarray(X, dtype=object)):
        return (
            f"X is {X!r:.60} of type {type(X).__name__}, which has no rows; give a table of shape "
            "(n_samples, n_features), or the path of a file"
        )
    for (row, *column), value in np.ndenumerate(np.asarray(X, dtype=object)):
        try:
            float(value)
        except (TypeError, ValueError):
            place = f"row {row}" + "".join(f", column {j}" for j in column)
            return (
                f"{said.rstrip('.')}: {place} of X (counted from 0) is a {type(value).__name__}. "
                "Convert it to one number, or to several columns; a missing entry is NaN"
            )
    return None


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _locate_ragged_row(X: Any) -> str | None:
    for i, row in enumerate(X):
        for j, entry in enumerate(row if isinstance(row, list | tuple) else ()):
            if isinstance(entry, list | tuple | dict | np.ndarray):
                return (
                    f"entry {j} of row {i} of X (both counted from 0) is a "
                    f"{type(entry).__name__}; give one number, or several columns"
                )
    sizes = [np.size(row) for row in X]
    other = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
    if other is None:
        return None
    return (
        f"X must have as many entries in each row: row {other} has {sizes[other]}, row 0 has "
        f"{sizes[0]} (rows count from 0). Put NaN where an entry is missing"
    )


# ---------------------------------------------------- columns and components that users name


def column_positions(estimator: Any, columns: Any) -> Array:
    """Columns by name or position as distinct positions."""
    size = estimator.n_features_in_
    wanted = [columns] if isinstance(columns, str) or np.ndim(columns) == 0 else list(columns)
    names = list(getattr(estimator, "feature_names_in_", []))
    out = []
    for column in wanted:
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"unknown column {column!r}; the columns are {names}")
            out.append(names.index(column))
        elif not isinstance(column, Integral) or isinstance(column, bool):
            raise ValueError(f"columns must be names or whole numbers, got {column!r}")
        elif not -size <= int(column) < size:
            raise ValueError(f"column {column} is out of range: there are {size} columns")
        else:
            out.append(int(column) % size)
    if not out or len(set(out)) < len(out):
        raise ValueError(f"columns must be distinct and at least one, got {wanted}")
    return np.array(out)


def check_component_labels(labels: Any, n_components: int) -> Any:
    """Component labels as integers from -1 (unknown) to n_components - 1; names of columns pass."""
    if labels is None or isinstance(labels, str):
        return labels
    values = np.asarray(labels)
    if values.dtype.kind == "f":
        unknown = np.isnan(values)
        if not np.all(unknown | (values == np.round(values))):
            raise ValueError("component_labels must be whole numbers, -1 or NaN where unknown")
        values = np.where(unknown, -1, values).astype(np.int64)
    if values.dtype.kind not in "iub":
        raise ValueError(
            f"component_labels must be whole numbers, -1 where unknown; got dtype {values.dtype}"
        )
    bad = np.flatnonzero((values < -1) | (values >= n_components))
    if bad.size:
        raise ValueError(
            "component_labels must lie between -1 (unknown) and n_components - 1 = "
            f"{n_components - 1}; row {bad[0]} has {values.ravel()[bad[0]]}"
        )
    return values.astype(np.int64)
