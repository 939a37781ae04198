"""The thin SVD of a centred view, from which models of several views are solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.models.kernels.views.projections import Projection

# eigenvalues below this share of the largest are rounding
NEGLIGIBLE = 1e-12
# and below this many units of the last place of what was subtracted, too
ULPS = 64 * float(np.finfo(np.float64).eps)
# order of the largest matrix that is decomposed
LARGEST = 2**14


@dataclass(frozen=True, slots=True)
class ThinSVD:
    """F = V diag(sqrt(values)) U' with values (r,) in decreasing order; V'Y (r, L) of outputs Y.

    Rows enter F and Y times the roots of their weights. ``squares`` (L,) are those of Y about its
    mean; ``weight`` is that of all rows. ``reader`` makes a projection of R (r, d): it is
    (f(x) - mean)' U R.
    """

    values: Array
    outputs: Array
    squares: Array
    weight: float
    reader: Callable[[Array], Projection]

    @property
    def trace(self) -> float:
        return float(self.values.sum())


def eigendecompose(S: Array, least: float = 0.0) -> tuple[Array, Array]:
    """Values in decreasing order and vectors of a symmetric matrix, but for what is rounding.

    ``least`` is what centring may have left of equal rows.
    """
    values, vectors = np.linalg.eigh(S)
    kept = values > max(NEGLIGIBLE * float(values[-1]), least)
    if not kept.any():
        raise ValueError(
            "all rows of X (of positive weight) are the same, as the kernel sees them: there is no "
            "variance to project on; give rows that differ, or another kernel"
        )
    return values[kept][::-1], np.ascontiguousarray(vectors[:, kept][:, ::-1])


def check_order(order: int, what: str) -> None:
    """Refuse a matrix that is too large to be decomposed."""
    if order > LARGEST:
        raise ValueError(
            f"{order} {what} are too many: a matrix of that order (at most {LARGEST}) would have "
            "to be decomposed. Set landmarks=2000, say, for coordinates of that many rows"
        )
