"""Leading eigenpairs of an operator by Chebyshev-filtered subspace iteration.

A polynomial that is small on the unwanted part of the spectrum and grows fastest beyond it is
applied to a block of vectors, which is then turned to the best vectors it has (Rayleigh-Ritz).
Those that are found are set aside: beside them the small ones would drown in rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.math.krylov import Eigenpairs

_DEGREE = 8


def filtered_eigenpairs(
    apply: Callable[[Array], Array],
    size: int,
    k: int,
    rng: np.random.Generator,
    *,
    tol: float = 1e-6,
    max_passes: int = 400,
    oversampling: int = 10,
    start: Array | None = None,
    watch: Callable[[int, float], bool] | None = None,
    rounding: float = 1e-13,
) -> Eigenpairs:
    """The ``k`` largest eigenpairs of a symmetric positive semi-definite operator.

    Parameters and result as of :func:`mixfold.math.krylov.leading_eigenpairs`; the memory is that
    of four blocks of k + ``oversampling`` vectors. ``rounding`` is what the arithmetic of ``apply``
    leaves of a residual, relative to the largest eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.chebyshev import filtered_eigenpairs
    >>> S = np.diag(np.arange(100.0) ** 2)
    >>> found = filtered_eigenpairs(lambda Q: S @ Q, 100, 2, np.random.default_rng(0))
    >>> found.values.round(6)
    array([9801., 9604.])
    """
    width = min(size, k + oversampling)
    given = np.empty((size, 0)) if start is None else start[:, :width]
    drawn = rng.standard_normal((size, width - given.shape[1]))
    Q = np.linalg.qr(np.concatenate([given, drawn], axis=1))[0]
    done = _Found(np.empty(0), np.empty((size, 0)))
    passes = 0
    while True:
        product = apply(Q)
        passes += 1
        values, turn = np.linalg.eigh(Q.T @ product)
        values, turn = values[::-1], turn[:, ::-1]
        Q, product = Q @ turn, product @ turn
        wanted = k - done.count
        residuals = np.linalg.norm(product[:, :wanted] - Q[:, :wanted] * values[:wanted], axis=0)
        # where no more than rounding is left, the value does not matter
        top = max(float(values[0]), 0.0, float(done.values.max(initial=0.0)))
        share = residuals / np.maximum(values[:wanted], top * rounding / max(tol, 1e-300) + 1e-300)
        # nothing but zeros, or all of the space, cannot be improved
        converged = bool((share <= tol).all() or width == size or values[0] <= 0)
        stopped = watch is not None and watch(passes, float(share.max()))
        degree = _degree(values, wanted, tol, rounding)
        if converged or stopped or passes + degree > max_passes:
            break
        # what is set aside must be so exact that the others do not feel its error
        exact = residuals <= max(0.1 * tol * float(values[wanted - 1]), rounding * top)
        ready = int(np.argmin(exact)) if not exact.all() else wanted - 1  # up to one that is not
        done, values = done.append_pairs(values[:ready], Q[:, :ready]), values[ready:]
        Q = done.filter_basis(apply, Q[:, ready:], product[:, ready:], values, degree)
        passes += degree - 1
    return done.append_pairs(values[:wanted], Q[:, :wanted]).pairs(passes, converged)


def _degree(values: Array, wanted: int, tol: float, rounding: float) -> int:
    """Of the polynomial: the least of the wanted vectors must not drown beside the largest."""
    edge = max(float(values[-1]), 1e-12 * float(values[0]), 1e-300)
    first, last = np.arccosh(np.maximum(2 * values[[0, wanted - 1]] / edge - 1, 1.0))
    room = np.log(max(tol / rounding, 10.0))
    return int(np.clip(room / max(first - last, 1e-9), 1, _DEGREE))


@dataclass(frozen=True, slots=True)
class _Found:
    """Pairs that are exact enough: values (l,) and vectors (size, l)."""

    values: Array
    vectors: Array

    @property
    def count(self) -> int:
        return len(self.values)

    def append_pairs(self, values: Array, vectors: Array) -> _Found:
        return _Found(
            np.concatenate([self.values, values]), np.concatenate([self.vectors, vectors], axis=1)
        )

    def pairs(self, passes: int, converged: bool) -> Eigenpairs:
        order = np.argsort(-self.values, kind="stable")
        values = np.maximum(self.values[order], 0.0)
        return Eigenpairs(values, self.vectors[:, order], passes, converged)

    def filter_basis(
        self, apply: Callable[[Array], Array], Q: Array, product: Array, values: Array, degree: int
    ) -> Array:
        """An orthonormal basis of T(S) Q, without these pairs.

        T is the Chebyshev polynomial of [0, edge], scaled so that it is about 1 at the largest of
        the ``values``.
        """
        top, edge = float(values[0]), max(float(values[-1]), 1e-12 * float(values[0]))
        half = edge / 2
        scale = half / (top - half)  # Zhou and Saad's scaling: no overflow far from the interval
        first = scale
        before, now = Q, (product - half * Q) * (scale / half)
        for _ in range(degree - 1):
            following = 1.0 / (2.0 / first - scale)
            ahead = (apply(now) - half * now) * (2 * following / half)
            ahead -= (scale * following) * before
            before, now, scale = now, ahead, following
        for _ in range(2):
            now = np.linalg.qr(now - self.vectors @ (self.vectors.T @ now))[0]
        return np.asarray(now)
