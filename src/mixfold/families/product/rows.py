"""Some columns of the rows of a block, and of a frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mixfold.contracts import Array, Block
from mixfold.math.frame import Frame


def columns_of(block: Block, columns: Array) -> Block:
    """The block of some columns; sparse rows stay sparse.

    Whether it is complete is asked of its own entries: others may be the ones that lack some.
    """
    X = take_columns(block.X, columns)
    complete = block.complete or not np.isnan(X.data if issparse(X) else X).any()
    return replace(block, X=X, complete=complete)


def frame_of_columns(frame: Frame, columns: Array) -> Frame:
    return Frame(frame.origin[columns], frame.scale[columns])


def take_columns(X: Any, columns: Array) -> Any:
    """Some columns of rows; neighbours, and all of them, are taken without a copy."""
    if not (columns.size and (np.diff(columns) == 1).all()):
        return np.ascontiguousarray(X[:, columns]) if isinstance(X, np.ndarray) else X[:, columns]
    if columns.size == X.shape[1]:
        return X
    return X[:, int(columns[0]) : int(columns[-1]) + 1]
