"""The codebook for given codes: a least-squares problem of which only second moments are needed.

    tr(B'GB) / 2 - tr(B'C) + threshold sum |B_h|,   B = [A; b] (H + 1, D)

with G = F'F, C = F'X of F = [phi 1]; the bias b has no penalty. No step increases the value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mixfold.contracts import Array

# of the mean curvature: what keeps the equations regular, and the step where it is
RIDGE = 1e-9


@dataclass(frozen=True, slots=True)
class RowRule:
    """What a row of the codebook may be: L1 threshold, sign, norm at most ``radius``."""

    threshold: float = 0.0
    nonneg: bool = False
    radius: float = float("inf")
    bias: bool = True

    @property
    def is_free(self) -> bool:
        return self.threshold == 0.0 and not self.nonneg and not np.isfinite(self.radius)

    def nearest(self, u: Array, bend: float) -> Array:
        """The row that minimises bend |a - u|^2 / 2 + threshold |a|_1 among those allowed."""
        if self.nonneg:
            a = np.maximum(u - self.threshold / bend, 0.0)
        else:
            a = np.sign(u) * np.maximum(np.abs(u) - self.threshold / bend, 0.0)
        return self.within(a)

    def within(self, a: Array) -> Array:
        """Rows (..., D) drawn back to the ball."""
        if not np.isfinite(self.radius):
            return a
        norms = np.sqrt((a**2).sum(axis=-1, keepdims=True))
        return np.asarray(a * (self.radius / np.maximum(norms, self.radius)))

    def project_to_constraints(self, B: Array) -> Array:
        """The nearest [A; b] that obeys signs and norms."""
        A, b = B[:-1], B[-1]
        if self.nonneg:
            A, b = np.maximum(A, 0.0), np.maximum(b, 0.0)
        return np.vstack([self.within(A), b])

    def value(self, B: Array, gram: Array, cross: Array) -> float:
        inner = gram @ B
        smooth = float((B * (0.5 * inner - cross)).sum())
        return smooth + self.threshold * float(np.abs(B[:-1]).sum())


def solve_codebook(B: Array, gram: Array, cross: Array, rule: RowRule) -> Array:
    """The least-squares codebook, as a step from B: what G cannot tell stays as it is."""
    used = len(B) if rule.bias else len(B) - 1
    G = gram[:used, :used]
    if not (np.isfinite(G).all() and np.isfinite(cross).all()):
        raise FloatingPointError(
            "the codes of some rows are no numbers: entries of X are too large to be multiplied "
            "with each other. Rescale the columns, or correct the entries that are far out"
        )
    ridge = RIDGE * max(float(np.trace(G)) / used, np.finfo(float).tiny)
    factor = cho_factor(G + ridge * np.eye(used), lower=True)
    out = B.copy()
    for _ in range(2):  # the second one takes back what the ridge did
        out[:used] += cho_solve(factor, cross[:used] - gram[:used] @ out)
    return out


def swept(
    B: Array, gram: Array, cross: Array, rule: RowRule, most: int = 20, tol: float = 1e-6
) -> Array:
    """Rows by turns, each at its minimum: lasso, HALS, or projected rows, as the rule says."""
    B = B.copy()
    size = max(float(np.abs(B).max()), np.finfo(float).tiny)
    for _ in range(most):
        moved = 0.0
        for h in range(len(B) if rule.bias else len(B) - 1):
            bend = float(gram[h, h])
            if bend <= 0.0:
                continue
            u = B[h] + (cross[h] - gram[h] @ B) / bend
            if h < len(B) - 1:
                u = rule.nearest(u, bend)
            elif rule.nonneg:
                u = np.maximum(u, 0.0)
            moved = max(moved, float(np.abs(u - B[h]).max()))
            B[h] = u
        if moved <= tol * size:
            break
    return B
