"""Leading eigenpairs of an operator by block Krylov iteration (products only).

A product with the operator is a pass over the data, so passes are what costs: the space of all
the products made so far is searched, not that of the last one as in a power iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.math.largest import largest_pairs

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
# Columns by which the basis grows before its best vectors are looked at again.
_LOOK = 32
# Powers of two from which on the squares of products may leave the range of floats.
_FAR = 400


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
    width: int | None = None,
    start: Array | None = None,
    watch: Callable[[int, float], bool] | None = None,
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
        Vectors beyond ``k`` that are kept when the basis is contracted.
    width : int, optional
        Columns of a block; None means k + ``oversampling``. With fewer columns more products find
        the pairs in a smaller basis: good where a product costs no more than its columns.
    start : ndarray of shape (size, m), optional
        Vectors to begin with, such as those found before with a smaller ``k``.
    watch : callable, optional
        Told after each product how many there were and the largest residual, relative to its
        value; True ends the search.

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
    drawn = kept if width is None else min(width, kept)
    widest = max(_LEAST_BLOCKS * kept, min(drawn * max_passes + kept, _BASIS_BYTES // (8 * size)))
    search = _Search(size, widest)
    block = _first_block(size, drawn, rng, start)
    passes, looked, converged, stopped, unit = 0, 0, False, False, 1.0
    while not (converged or stopped) and passes < max_passes:
        if search.width + block.shape[1] > widest:
            search.contract(kept)
            looked = 0
        product = apply(block)
        if passes == 0:
            unit = _unit(product)
        fresh, coupling = search.extend(block, product / unit)
        block, passes, ended = fresh, passes + 1, fresh.shape[1] == 0
        final = ended or passes == max_passes
        if not final and search.width < max(k, looked + _LOOK):
            continue
        looked, lag = search.width, 0.0 if final else search.lag(k, coupling, tol)
        stopped = watch is not None and lag > 0 and watch(passes, lag)
        if lag > 0 and not stopped:
            continue
        values, weights, residuals = search.ritz(min(k, looked), coupling)
        enough = residuals <= np.maximum(tol * values, _ROUNDING * values[0])
        converged = ended or bool(enough.all())
        if converged and drawn < kept:  # equal values beyond the width of a block are not seen yet
            block, drawn = search.add_random_directions(fresh, kept - drawn, rng), kept
            converged = block.shape[1] == 0
        if watch is not None and not stopped:
            stopped = watch(passes, _worst(residuals, values))
    return Eigenpairs(np.maximum(values, 0.0) * unit, search.V @ weights, passes, converged)


def _unit(product: Array) -> float:
    """A power of two by which products are divided, so that their squares stay in range."""
    _, exponent = np.frexp(np.abs(product).max(initial=0.0))
    return 1.0 if abs(exponent) < _FAR else float(np.ldexp(1.0, int(exponent)))


def _worst(residuals: Array, values: Array) -> float:
    """The largest residual relative to its value; what is rounding alone does not count."""
    seen = residuals > _ROUNDING * values[0]
    return float((residuals[seen] / np.maximum(values[seen], 1e-300)).max(initial=0.0))


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
        scale = float(np.linalg.norm(projection, axis=0).max())
        return _independent(V, rest, scale)

    def ritz(self, k: int, coupling: Array) -> tuple[Array, Array, Array]:
        """The k largest eigenvalues of T, their vectors, and residuals, values decreasing."""
        values, vectors = self._top(k, k)
        return values, vectors, np.linalg.norm(coupling @ vectors[-coupling.shape[1] :], axis=0)

    def lag(self, k: int, coupling: Array, tol: float) -> float:
        """The residual of pair k alone, relative to its value; 0 if it may be found.

        It is nearly always found last, and takes a third of the time of all pairs.
        """
        value, vector = self._top(k, 1)
        residual = float(np.linalg.norm(coupling @ vector[-coupling.shape[1] :, 0]))
        least = _ROUNDING * float(np.linalg.norm(self.T))
        found = residual <= max(tol * float(value[0]), least)
        return 0.0 if found else residual / max(float(value[0]), 1e-300)

    def _top(self, k: int, count: int) -> tuple[Array, Array]:
        """Pairs k - count + 1 to k of T, in decreasing order."""
        return largest_pairs(self.T, count, skip=k - count)

    def add_random_directions(self, block: Array, more: int, rng: np.random.Generator) -> Array:
        """A block, and random directions that are neither in it nor in the basis."""
        R = rng.standard_normal((len(self._room), min(more, len(self._room) - self.width)))
        for known in (self.V, block, self.V):
            R -= known @ (known.T @ R)
        lengths = np.linalg.norm(R, axis=0, keepdims=True)
        both = np.concatenate([block, R / np.where(lengths > 0, lengths, 1.0)], axis=1)
        return _independent(self.V, both, 1.0)[0]

    def contract(self, width: int) -> None:
        """Keep the span of the best vectors only."""
        values, weights = self._top(width, width)
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
