"""The largest eigenpairs of a symmetric matrix in memory."""

from __future__ import annotations

from scipy.linalg import eigh

from mixfold.contracts import Array


def largest_pairs(S: Array, k: int, skip: int = 0) -> tuple[Array, Array]:
    """Eigenvalues in decreasing order and vectors: k of them, after the ``skip`` largest.

    Few of many are asked for alone. Of equal eigenvalues LAPACK may then lose some, or all: if so,
    the whole matrix is decomposed.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.largest import largest_pairs
    >>> largest_pairs(np.diag([1.0, 3.0, 2.0]), 2)[0]
    array([3., 2.])
    """
    size, last = len(S), len(S) - skip
    if 4 * (k + skip) < size:  # then the others' vectors are not worth computing
        values, vectors = eigh(S, subset_by_index=(last - k, last - 1), check_finite=False)
        if len(values) == k:
            return values[::-1], vectors[:, ::-1]
    values, vectors = eigh(S, driver="evd", check_finite=False)
    return values[last - k : last][::-1], vectors[:, last - k : last][:, ::-1]
