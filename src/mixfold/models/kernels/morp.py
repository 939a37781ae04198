"""Multi-output regularised projection (MORP): axes from inputs and outputs together.

With K = (1 - beta) Gx + beta Y Y' for centred inputs and outputs, score vectors z in the range of
Gx are sought for which z'Kz is large, as functions of x. All of it happens in the coordinates of a
thin decomposition Gx = V diag(w) V', of which w (r,) and C = V'Y (r, L) are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.math.largest import largest_pairs

FORMS = ("max", "inverse")
# eigenvalues below this share of the largest are rounding
_NEGLIGIBLE = 1e-12
# share of the outputs that the inputs may leave over where they are to span them: a few rows are
# equal and have other outputs, or a kernel is smooth beyond the digits
_LEFT_OVER = 0.01


@dataclass(frozen=True, slots=True)
class MorpAxes:
    """Eigenvalues (d,), weights R (r, d) of the coordinates V diag(sqrt(w)), scores V'z (r, d).

    ``inputs`` and ``outputs`` (d,): the shares of the variance of each that the score vectors
    explain, each beyond those before it.
    """

    values: Array
    weights: Array
    scores: Array
    inputs: Array
    outputs: Array


def max_form(w: Array, C: Array, beta: float, gamma: float, size: int) -> MorpAxes:
    """Largest z'Kz for |z|^2 + gamma |coefficients|^2 = 1.

    Primal: X'KX a = lambda (X'X + gamma I) a. beta = 0 is kernel PCA (its scores, if gamma is 0),
    beta = 1 orthonormalised partial least squares.
    """
    values, E = max_directions(w, C, beta, gamma, size)
    return max_axes(values, E, w, C, gamma)


def max_directions(w: Array, C: Array, beta: float, gamma: float, size: int) -> tuple[Array, Array]:
    """Eigenvalues (d,) and orthonormal E (r, d) of scores V diag(sqrt(w / (w + gamma))) E."""
    shrunk = np.sqrt(w / (w + gamma))
    crossed = np.sqrt(beta) * shrunk[:, None] * C
    K = crossed @ crossed.T
    K[np.diag_indices_from(K)] += (1 - beta) * shrunk**2 * w
    return leading(K, size)


def max_axes(values: Array, E: Array, w: Array, C: Array, gamma: float) -> MorpAxes:
    """The axes of these directions."""
    scores = np.sqrt(w / (w + gamma))[:, None] * E
    weights = E * np.sqrt(values) / np.sqrt(w + gamma)[:, None]
    return _make_axes(values, weights, scores, w, C)


def inverse_form(
    w: Array, C: Array, beta: float, gamma: float, ridge: float, size: int
) -> MorpAxes:
    """X'X a = lambda (X'K^-1 X + gamma I) a; gamma = 0 is the simplified algorithm.

    Outputs of new rows are unknown; kernel ridge regression, of this ``ridge``, stands for them.
    Right where the inputs span the outputs (``check_spanned``) and beta < 1; what is left over of
    the outputs has no part in it.
    """
    a: float = 1 - beta
    q = 1 / a + gamma
    left: Array = np.zeros((C.shape[1], len(w)))
    predicted = C / (w + ridge)[:, None]
    if beta > 0:  # S^-1 C'
        S = (1 + a * gamma) * (a / beta) * np.eye(C.shape[1]) + a * gamma * (C.T @ predicted)
        left = np.linalg.solve(S, C.T)
    M = C @ left
    M[np.diag_indices_from(M)] += w
    values, Z = leading(M / q, size)
    coefficients = (Z + predicted @ (left @ Z)) / (values * q) * np.sqrt(values)
    return _make_axes(values, np.sqrt(w)[:, None] * coefficients, Z, w, C)


def check_spanned(C: Array, squares: Array) -> None:
    """Refuse outputs (of ``squares``) that are, for more than a little, no functions of the inputs.

    If [X Y] has independent columns, X'K^-1 X = I / (1 - beta) whatever Y is: the axes of PCA.
    """
    total = float(squares.sum())
    left = 1 - float((C**2).sum()) / total if total > 0 else 0.0
    if left > _LEFT_OVER:
        raise ValueError(
            "form='inverse' needs inputs that span the outputs (as many independent columns or "
            f"features as rows, less one), but {left:.2g} of the variance of the outputs is left "
            "over; use form='max', or a kernel with more features, such as 'rbf' with a larger "
            "gamma"
        )


def leading(S: Array, size: int) -> tuple[Array, Array]:
    """The largest eigenvalues, in decreasing order, and vectors; what is rounding is left out."""
    order = len(S)
    size = min(size, order)
    values, vectors = largest_pairs((S + S.T) / 2, size)
    kept = values > _NEGLIGIBLE * max(float(values[0]), 0.0)
    return values[kept], np.ascontiguousarray(vectors[:, kept])


def _make_axes(values: Array, weights: Array, scores: Array, w: Array, C: Array) -> MorpAxes:
    Q = np.linalg.qr(scores)[0]
    inputs = w @ Q**2 / w.sum()
    outputs = ((Q.T @ C) ** 2).sum(axis=1) / (float((C**2).sum()) or 1.0)
    return MorpAxes(values, weights, scores, inputs, outputs)
