"""Multinomial logistic regression with an L1 penalty: by rows, or by their second moments.

Coefficients are (H + 1, C), those of the constant last, which is not penalised. Rows F = [phi 1]
have labels y and weights. Two ways to improve coefficients, neither of which makes them worse:

- with the rows at hand, L-BFGS on V = P - N with P, N >= 0, which gives exact zeros;
- from sums over rows, by Boehning's bound: the Hessian of the log loss is at most
  F'F kron (I - 1 1'/C) / 2. The bound around V is tr(W'KW) / 4 (centred W) - tr(W'pull) + const,
  K = F'F, pull = F'(T - Q) + K V (I - 1 1'/C) / 2, which adds over rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from mixfold.contracts import Array, Stats
from mixfold.math.softmax import normalise

# of coefficients: the log loss and its gradient
Loss = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True)
class LossSums(Stats):
    """Weighted log loss of some rows, and its gradient (H + 1, C)."""

    value: float
    gradient: Array


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Codes (n, H), class numbers (n,) and weights (n,) of rows that all have a label."""

    phi: Array
    labels: Array
    weight: Array


def log_losses(logits: Array, labels: Array) -> tuple[Array, Array]:
    """-ln softmax_y of each row, and softmax minus truth (n, C)."""
    total, errors = normalise(logits)
    at = np.arange(len(labels))
    losses = total - logits[at, labels]
    errors[at, labels] -= 1.0
    return losses, errors


def sum_losses(W: Array, rows: LabelledRows) -> LossSums:
    """Weighted log loss of rows at coefficients (H + 1, C), and its gradient; picklable."""
    losses, errors = log_losses(rows.phi @ W[:-1] + W[-1], rows.labels)
    errors *= rows.weight[:, None]
    gradient = np.vstack([rows.phi.T @ errors, errors.sum(axis=0)])
    return LossSums(float(rows.weight @ losses), gradient)


def value_and_gradient(W: Array, rows: LabelledRows) -> tuple[float, Array]:
    """The same, as a ``Loss`` of W gives it."""
    sums = sum_losses(W, rows)
    return sums.value, sums.gradient


def l1_penalty(W: Array, gamma: float) -> float:
    return gamma * float(np.abs(W[:-1]).sum())


def improve_by_rows(
    W: Array, loss: Loss, gamma: float, nonneg: bool, steps: int, tol: float = 1e-9
) -> Array:
    """Coefficients after some steps of L-BFGS from ``W``; ``W`` itself if they gain nothing."""
    packed, unpack, bounds = _split_signs(W, gamma, nonneg)
    free = gamma == 0.0 and not nonneg
    objective = (
        _plain(W.shape, loss) if free else _objective_of_signed_parts(W.shape, loss, gamma, unpack)
    )
    options = {"maxiter": steps, "ftol": tol, "gtol": 0.0, "maxls": 30}
    found = minimize(objective, packed, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    new = unpack(found.x)
    before = loss(W)[0] + l1_penalty(W, gamma)
    after = loss(new)[0] + l1_penalty(new, gamma)
    return new if after < before - 0.1 * tol * abs(before) else W


Objective = Callable[[Array], tuple[float, Array]]


def _objective_of_signed_parts(
    shape: tuple[int, ...], loss: Loss, gamma: float, unpack: Callable[[Array], Array]
) -> Objective:
    """Of parts that are not negative: of [P, N, v], or of [P, v]."""
    size, C = shape[0] * shape[1], shape[1]

    def objective(x: Array) -> tuple[float, Array]:
        value, gradient = loss(unpack(x))
        slopes = [gradient[:-1].ravel() + gamma]
        if len(x) > size:
            slopes.append(-gradient[:-1].ravel() + gamma)
        penalty = gamma * float(x[:-C].sum())
        return value + penalty, np.concatenate([*slopes, gradient[-1]])

    return objective


def _plain(shape: tuple[int, ...], loss: Loss) -> Objective:
    def objective(x: Array) -> tuple[float, Array]:
        value, gradient = loss(x.reshape(shape))
        return value, gradient.ravel()

    return objective


def _split_signs(
    W: Array, gamma: float, nonneg: bool
) -> tuple[Array, Callable[[Array], Array], list[tuple[float | None, None]]]:
    """W as a vector for L-BFGS, the way back, and bounds: [P, N, v], [P, v] or W itself."""
    V, v = W[:-1], W[-1]
    free: tuple[float | None, None] = (None, None)
    if nonneg:
        bounds = [(0.0, None)] * V.size + [free] * len(v)
        return np.concatenate([V.ravel(), v]), lambda x: x.reshape(W.shape).copy(), bounds
    if gamma == 0.0:
        return W.ravel(), lambda x: x.reshape(W.shape).copy(), [free] * W.size
    packed = np.concatenate([np.maximum(V, 0).ravel(), np.maximum(-V, 0).ravel(), v])

    def unpack(x: Array) -> Array:
        P, N = x[: V.size].reshape(V.shape), x[V.size : 2 * V.size].reshape(V.shape)
        return np.vstack([P - N, x[2 * V.size :]])

    return packed, unpack, [(0.0, None)] * (2 * V.size) + [free] * len(v)


# ------------------------------------------------------------------ by the bound


def bound_linear_term(W: Array, gram: Array, slope: Array) -> Array:
    """The linear term of the bound around W; ``slope`` is minus the gradient there, F'(T - Q)."""
    return np.asarray(slope + 0.5 * gram @ _centre_rows(W))


def bound_value_and_gradient(W: Array, gram: Array, pull: Array) -> tuple[float, Array]:
    """The bound of the log loss at W, but for a constant."""
    inner = 0.5 * gram @ _centre_rows(W)
    return float((W * (0.5 * inner - pull)).sum()), inner - pull


def improve_by_bound(
    W: Array, gram: Array, pull: Array, gamma: float, nonneg: bool, sweeps: int
) -> Array:
    """Coefficients after sweeps over the rows of W, each to the minimum of a bound; never worse."""
    W = W.copy()
    bends = 0.5 * np.diagonal(gram)
    for _ in range(sweeps):
        for h in range(len(W)):
            if bends[h] <= 0.0:
                continue
            u = W[h] - (0.5 * gram[h] @ _centre_rows(W) - pull[h]) / bends[h]
            if h < len(W) - 1:
                u = np.sign(u) * np.maximum(np.abs(u) - gamma / bends[h], 0.0)
                u = np.maximum(u, 0.0) if nonneg else u
            W[h] = u
    return W


def _centre_rows(W: Array) -> Array:
    return np.asarray(W - W.sum(axis=1, keepdims=True) / max(W.shape[1], 1))  # or no class at all
