"""Priors of loadings and of noise, under which factor components are fitted by MAP.

    w_jf | a_f ~ N(0, s_j^2 / a_f),   s_j the spread of column j (the unit of its frame)
    a_f = precision,   or   a_f ~ Gamma, integrated out: automatic relevance determination

The gamma law is what as many entries as the column of a factor has, J, would say if they were next
to nothing: shape J / 2, rate e / 2 with e = J LEAST. With S_f = sum_j w_jf^2 / s_j^2 the column has
the log density -J ln(1 + S_f / e), whose peak at zero holds factors that the rows do not need.
Given S_f of the last step the expected precision is 2 J / (e + S_f), and the prior a ridge: steps
are those of EM with the precisions as latent variables (Bishop 1999, whose law is 1 / a_f).

Noise alone has axes of up to 1 + 2 r + r^2 times its variance, r^2 = D / n. By the law 1 / a_f an
axis stays from 1 + 2 r on, so that the longest of them always would; by this one from
1 + 2 sqrt(2) r on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, record

# mean square of the entries of a factor, in squared units of the columns, at which it ends
LEAST = 1e-10
# mean square of the entries below which a factor of a fit is none
NONE = 1e-6


@record
@dataclass(frozen=True, slots=True)
class LoadingsPrior:
    """Normal prior of the loadings.

    Parameters
    ----------
    precision : float, optional
        In units of the columns; None: one for each factor, integrated out.
    common : bool
        Whether a factor of all components is one, with one precision.
    """

    precision: float | None = None
    common: bool = False

    def pool(self, squares: Array) -> Array:
        """Sums of squares (K, d) over the entries that share a precision: (K or 1, d)."""
        return squares.sum(axis=0, keepdims=True) if self.common else squares

    def relevances(self, squares: Array, size: int) -> Array:
        """Expected precisions, given ``squares`` summed over ``size`` entries of each factor."""
        if self.precision is not None:
            return np.full(squares.shape, float(self.precision))
        return np.asarray(2 * size / (size * LEAST + squares))

    def penalty(self, squares: Array, size: int) -> float:
        """-ln p of all loadings, but for a constant."""
        if self.precision is not None:
            return 0.5 * float(self.precision) * float(squares.sum())
        return size * float(np.log1p(squares / (size * LEAST)).sum())

    def used(self, squares: Array, size: int) -> Array:
        """Which factors there are, of the shape of ``squares``."""
        if self.precision is not None:
            return np.ones(squares.shape, bool)
        return np.asarray(squares > NONE * size)


@record
@dataclass(frozen=True, slots=True)
class NoisePrior:
    """Gamma prior of the precision of each noise variance: that of ``rows`` rows with noise of
    ``variance``, in data units."""

    rows: float
    variance: float

    def squares(self, scale: Array) -> Array:
        """Sums of squares (D,) of these rows, in units of ``scale``."""
        return np.asarray(self.rows * self.variance / scale**2)


def turn_to_axes(squares: Array) -> Array:
    """Rotations R (G, d, d) that make R' ``squares`` R diagonal, decreasing.

    ``squares`` (G, d, d) are products of the columns of all loadings. A turn changes no density of
    a row, and of all turns this one has the highest log density of precisions that are integrated
    out: the logarithm is concave, and eigenvalues majorise diagonals. Factors that are in order
    stay as they are.
    """
    _, vectors = np.linalg.eigh(0.5 * (squares + np.swapaxes(squares, 1, 2)))
    turn = vectors[..., ::-1]
    diagonal = np.diagonal(turn, axis1=1, axis2=2)
    return np.asarray(turn * np.where(diagonal < 0, -1.0, 1.0)[:, None, :])
