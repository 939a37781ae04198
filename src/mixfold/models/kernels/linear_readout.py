"""Ridge regression of outputs, some of them unknown, on a few scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mixfold.contracts import Array, record


@record
@dataclass(frozen=True, slots=True)
class Readout:
    """Outputs are intercept (L,) + scores' slopes (d, L)."""

    slopes: Array
    intercept: Array

    def __call__(self, scores: Array) -> Array:
        return np.asarray(scores @ self.slopes + self.intercept)

    def times(self, factor: Array) -> Self:
        """For scores that were multiplied by ``factor`` (d,)."""
        return type(self)(self.slopes / factor[:, None], self.intercept)


def fit_readout(scores: Array, outputs: Array, weight: Array, ridge: float) -> Readout:
    """Each output (NaN where unknown) from the rows in which it is known.

    ``ridge`` is relative to the mean variance of the scores. An output that is never known is NaN.
    """
    d, L = scores.shape[1], outputs.shape[1]
    slopes, intercept = np.full((d, L), np.nan), np.full(L, np.nan)
    known = ~np.isnan(outputs) & (weight > 0)[:, None]
    # outputs known in the same rows have the same equations
    patterns: dict[bytes, list[int]] = {}
    for column in range(L):
        patterns.setdefault(known[:, column].tobytes(), []).append(column)
    for columns in patterns.values():
        rows = known[:, columns[0]]
        if rows.any():
            slopes[:, columns], intercept[columns] = _solve_ridge(
                scores[rows], outputs[rows][:, columns], weight[rows], ridge
            )
    return Readout(slopes, intercept)


def _solve_ridge(Z: Array, Y: Array, weight: Array, ridge: float) -> tuple[Array, Array]:
    shares = weight / weight.sum()
    mean, middle = shares @ Z, shares @ Y
    Zc = Z - mean
    S = Zc.T @ (shares[:, None] * Zc)
    least = max(ridge, 1e-12) * (np.trace(S) / max(len(S), 1) or 1.0)
    factor = cho_factor(S + least * np.eye(len(S)))
    slopes = cho_solve(factor, Zc.T @ (shares[:, None] * (Y - middle)))
    return slopes, middle - mean @ slopes
