"""The kernel matrix of features about their mean, without making it.

With p the shares of the rows in all weight, G_c = (I - 1p') G (I - p1'). Weights enter as
S G_c S with S = diag(sqrt(N p)): its eigenvectors v give axes of the features whose scores, of
all rows, have weighted mean zero, and its eigenvalues over N are their variances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, Shares, record
from mixfold.models.kernels.gram import Gram


@record
@dataclass(frozen=True, slots=True)
class Centre:
    """What centring a new row takes: shares p (N,), means G p (N,) and p'G p."""

    shares: Shares
    means: Array
    mean: float

    def rows(self, K: Array) -> Array:
        """Products of new rows with the known ones (n, N), about the mean; K is overwritten."""
        own = K @ self.shares.astype(K.dtype)
        K -= own[:, None]
        K -= (self.means - self.mean).astype(K.dtype)
        return K

    def squares(self, K: Array, diagonal: Array) -> Array:
        """|phi(x) - mean|^2 of new rows, from raw products K (n, N) and k(x, x)."""
        return np.asarray(np.maximum(diagonal - 2 * (K @ self.shares) + self.mean, 0.0))


class CentredGram:
    """S G_c S (N, N) by its products. The first one also finds the centre."""

    def __init__(self, gram: Gram, weight: Array | None = None) -> None:
        self.gram = gram
        n = gram.size
        self.shares = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
        self.roots = np.sqrt(n * self.shares)
        self.passes = 0
        self._means: Array | None = None

    @property
    def size(self) -> int:
        return self.gram.size

    def times(self, Q: Array) -> Array:
        """S G_c S Q."""
        return self.after(self._raw_times(self.before(Q)))

    def before(self, Q: Array) -> Array:
        """What the raw kernel matrix is to multiply."""
        U = np.asarray(self.roots[:, None] * Q)
        U -= np.outer(self.shares, U.sum(axis=0))
        return U

    def after(self, Y: Array) -> Array:
        """What is to be done with its product; Y is left as it is."""
        return np.asarray(self.roots[:, None] * (Y - self.shares @ Y))

    def centre(self) -> Centre:
        """By a pass of its own, if no product was made before."""
        if self._means is None:
            self._raw_times(np.empty((self.size, 0)))
        assert self._means is not None
        return Centre(self.shares, self._means, float(self.shares @ self._means))

    def trace(self) -> float:
        """The total variance of the features, times N."""
        mean = self.centre().mean
        return float(self.size * (self.shares @ self.gram.diagonal() - mean))

    def _raw_times(self, U: Array) -> Array:
        self.passes += 1
        if self._means is not None:
            return self.gram.times(U)
        Y = self.gram.times(np.column_stack([U, self.shares]))
        self._means = np.ascontiguousarray(Y[:, -1])
        return Y[:, :-1]
