"""Arrays, lists and sparse matrices: checked by scikit-learn, with the place and a remedy added."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from mixfold.engine.sources.checks import infinite_at


def validated(estimator: Any, X: Any, reset: bool, min_rows: int) -> Any:
    """X as an array of floats or a CSR matrix, its features remembered or compared."""
    try:
        return validate_data(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            accept_sparse="csr" if get_tags(estimator).input_tags.sparse else False,
            ensure_all_finite="allow-nan",
            ensure_min_samples=min_rows,
        )
    except ValueError as error:
        told = _told(X, str(error))
        if told is None:
            raise
        raise ValueError(told) from None


def _told(X: Any, said: str) -> str | None:
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
    if "infinity" in said:
        return _infinite(X)
    if said.startswith("could not convert string"):
        return _text(X)
    return _ragged(X) if "inhomogeneous" in said else None


def _infinite(X: Any) -> str | None:
    found = infinite_at(X.tocsr() if sparse.issparse(X) else np.asarray(X, dtype=float))
    if found is None:
        return None
    row, column, value = found
    return (
        f"Input X contains infinity: row {row}, column {column} (both counted from 0) is {value}. "
        "Every entry must be finite, or NaN if it is missing"
    )


def _text(X: Any) -> str | None:
    for (row, column), value in np.ndenumerate(np.asarray(X, dtype=object)):
        if isinstance(value, str) and not _is_number(value):
            return (
                f"could not convert string to float: row {row}, column {column} of X (both counted "
                f"from 0) holds the text {value!r}. Encode categories as 0/1 columns; a missing "
                "entry is NaN"
            )
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _ragged(X: Any) -> str | None:
    sizes = [np.size(row) for row in X]
    other = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
    if other is None:
        return None
    return (
        f"X must have as many entries in each row: row {other} has {sizes[other]}, row 0 has "
        f"{sizes[0]} (rows count from 0). Put NaN where an entry is missing"
    )
