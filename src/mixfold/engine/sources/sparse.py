"""Blocks of sparse matrices. Never densified; NaN among the stored entries means missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mixfold.engine.sources.checks import check_shape, float_dtype
from mixfold.engine.sources.rows import RowSource
from mixfold.engine.sources.weights_and_labels import Sides


class SparseSource(RowSource):
    """A sparse matrix or array; any format but CSR is converted once. Blocks are views."""

    def __init__(
        self, X: Any, sides: Sides, complete: bool | None = None, first_row: int = 0
    ) -> None:
        shape = check_shape(X.shape)
        if X.dtype.kind not in "fiub":
            raise ValueError(
                f"{'Complex data not supported: ' if X.dtype.kind == 'c' else ''}X is a sparse "
                f"matrix of type {X.dtype}; it must hold real numbers. Convert it first."
            )
        super().__init__(shape, float_dtype(X.dtype), None, sides, complete, first_row)
        self._X = _canonical(X)

    def _width(self) -> float:
        # An entry carries its index, hence about two numbers.
        return 1.0 + 2.0 * float(self._X.nnz) / self.n_samples

    def _take(self, first: int, last: int) -> Any:
        pointers = self._X.indptr[first : last + 1]
        low, high = int(pointers[0]), int(pointers[-1])
        data = self._X.data[low:high].astype(self.dtype, copy=False)
        # Not by the constructor: it copies what is a small part of a larger array.
        block = sparse.csr_array((last - first, self.n_features), dtype=self.dtype)
        block.data, block.indices = data, self._X.indices[low:high]
        block.indptr = pointers - pointers[0]
        block.has_canonical_format = True  # true of the whole, hence of its rows
        return block


def describe_damage(error: Exception) -> str:
    """The message for a sparse matrix whose parts do not fit each other."""
    return (
        f"X is a damaged sparse matrix ({error}): its indices or row pointers do not fit its "
        "shape. Build it again, for example with scipy.sparse.coo_array((values, (rows, columns)), "
        "shape)"
    )


def _canonical(X: Any) -> Any:
    """CSR with sorted indices and no entry stored twice; the caller's object is not changed."""
    try:
        csr = sparse.csr_array(X)
        csr.check_format(full_check=True)
    except (ValueError, IndexError) as error:
        raise ValueError(describe_damage(error)) from error
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    if not csr.data.dtype.isnative:
        csr = csr.astype(np.dtype(csr.dtype).newbyteorder("="))
    return csr
