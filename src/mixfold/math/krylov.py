"""The leading eigenpairs of an operator that is known by its products alone.

A product with the operator is a pass over the data, so passes are what costs: the space of all
the products made so far is searched, not that of the last one as in a power iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from mixfold.contracts import Array

# A column of a product that is this short once the basis is taken off holds nothing but rounding.
_DEPENDENT = 1e-13
# Columns longer than this have nothing of the basis in them that matters, and columns whose
# lengths differ by no more than this are orthogonal enough after one step.
_SHORT, _UNEVEN = 1e-3, 0.03
# Lengths are roots of squares, of which this much is rounding.
_SQUARED_ROUNDING = 1e-7
# What rounding alone leaves of a residual, relative to the largest eigenvalue.
_ROUNDING = 1e-14
# Bytes of the basis beyond which it is contracted to its best vectors, and the least number
# of blocks that it holds all the same: a shorter memory converges much more slowly.
_BASIS_BYTES, _LEAST_BLOCKS = 2**29, 4


@dataclass(frozen=True, slots=True)
class Eigenpairs:
    """Values (k,) in decreasing order, unit vectors (size, k), and how they were found.

    ``passes`` is the number of products made; ``converged`` is False if they were too few for
    the tolerance.
    """

    values: Array
    vectors: Array
    passes: int
    converged: bool


def leading_eigenpairs(
    apply: Callable[[Array], Array],
    size: int,
    k: int,
    rng: np.random.Generator,
    *,
    tol: float = 1e-6,
    max_passes: int = 12,
    oversampling: int = 10,
    start: Array | None = None,
) -> Eigenpairs:
    """The ``k`` largest eigenpairs of a symmetric positive semi-definite operator S.

    Block Lanczos with full reorthogonalisation and Rayleigh-Ritz, contracted to the best
    vectors when the basis grows too large (thick restart).

    Parameters
    ----------
    apply : callable
        Q (size, l) -> S Q, in float64.
    size, k : int
        Order of S; number of pairs, at most ``size``.
    rng : Generator
        Draws the first block.
    tol : float
        A pair is found when |S u - lambda u| <= tol * lambda. The vector is then wrong by about
        tol * lambda / gap and the value by the square of that; beside the rounding of S.
    max_passes : int
        Products after which the best pairs so far are returned, whatever their residual.
    oversampling : int
        Columns of a block beyond ``k``.
    start : ndarray of shape (size, m), optional
        Vectors to begin with, such as those found before with a smaller ``k``.

    Returns
    -------
    Eigenpairs

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.krylov import leading_eigenpairs
    >>> S = np.diag(np.arange(100.0))
    >>> found = leading_eigenpairs(lambda Q: S @ Q, 100, 2, np.random.default_rng(0))
    >>> found.values.round(6)
    array([99., 98.])
    """
    if not 1 <= k <= size:
        raise ValueError(f"k must be from 1 to the size of the operator, {size}; got {k}")
    kept = min(size, k + oversampling)
    widest = min(kept * max_passes, max(_LEAST_BLOCKS * kept, _BASIS_BYTES // (8 * size)))
    search = _Search(size, widest)
    block = _first_block(size, kept, rng, start)
    passes, converged = 0, False
    while not converged and passes < max_passes:
        if search.width + block.shape[1] > widest:
            search.contract(kept)
        fresh, coupling = search.extend(block, apply(block))
        values, weights = search.ritz(k)
        residuals = np.linalg.norm(coupling @ weights[-block.shape[1] :], axis=0)
        enough = residuals <= np.maximum(tol * values, _ROUNDING * values[0])
        converged = bool(enough.all()) or fresh.shape[1] == 0
        block, passes = fresh, passes + 1
    return Eigenpairs(np.maximum(values, 0.0), search.V @ weights, passes, converged)


def _first_block(size: int, width: int, rng: np.random.Generator, start: Array | None) -> Array:
    """Orthonormal columns: those given, and random ones."""
    given = np.empty((size, 0)) if start is None else start[:, :width]
    drawn = rng.standard_normal((size, width - given.shape[1]))
    block = np.concatenate([given, drawn], axis=1)
    return _independent(np.empty((size, 0)), block / np.linalg.norm(block, axis=0), 1.0)[0]


class _Search:
    """An orthonormal basis V (size, width), T = V'SV, and room for ``widest`` columns."""

    def __init__(self, size: int, widest: int) -> None:
        self._room = np.empty((size, min(size, widest)), order="F")
        self.T = np.empty((0, 0))

    @property
    def width(self) -> int:
        return len(self.T)

    @property
    def V(self) -> Array:
        return self._room[:, : self.width]

    def extend(self, block: Array, product: Array) -> tuple[Array, Array]:
        """Add a block and its product; gives the next block F and the coupling C.

        S V = V T + F C, where C has a column for each column of ``block``; all the other columns
        of S V are in the span of V already.
        """
        old = self.width
        self._room[:, old : old + block.shape[1]] = block
        V = self._room[:, : old + block.shape[1]]
        projection = V.T @ product
        rest = product - V @ projection
        again = V.T @ rest  # twice is enough
        rest -= V @ again
        projection += again
        above, corner = projection[:old], projection[old:]
        self.T = np.block([[self.T, above], [above.T, (corner + corner.T) / 2]])
        return _independent(V, rest, float(np.linalg.norm(projection, axis=0).max()))

    def ritz(self, k: int) -> tuple[Array, Array]:
        """The k largest eigenvalues of T and their vectors, in decreasing order."""
        top = (self.width - k, self.width - 1)
        values, vectors = eigh(self.T, subset_by_index=top, check_finite=False)
        return values[::-1], vectors[:, ::-1]

    def contract(self, width: int) -> None:
        """Keep the span of the best vectors only."""
        values, weights = self.ritz(width)
        self._room[:, :width] = self.V @ weights
        self.T = np.diag(values)


def _independent(V: Array, rest: Array, scale: float) -> tuple[Array, Array]:
    """F and C with F C = rest: F is orthonormal, and orthogonal to V.

    By eigenvectors of the small products F'F: far fewer steps than a Householder factorisation
    of long columns. What is lost is short beside the longest column.
    """
    scale = scale or 1.0  # nothing but zeros
    F, C = rest / scale, scale * np.eye(rest.shape[1])  # squares stay in range
    least = _DEPENDENT
    for _ in range(2):
        lengths, turn = np.linalg.eigh(F.T @ F)
        lengths = np.sqrt(np.maximum(lengths, 0.0))
        keep = lengths > max(least, _SQUARED_ROUNDING * lengths.max(initial=0.0))
        F = F @ (turn[:, keep] / lengths[keep])
        C = (turn[:, keep] * lengths[keep]).T @ C
        shortest = lengths[keep].min(initial=np.inf)
        if shortest > max(_SHORT, _UNEVEN * lengths.max(initial=0.0)):
            break
        F -= V @ (V.T @ F)  # what was short is now partly rounding, some of it along V
        least = 0.5
    return F, C
