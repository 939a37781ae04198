"""MORP by losses: slopes, bounds, the squared loss, scipy's minimum, and the laws of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from mixfold.contracts import Array, Block
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Plan, fit
from mixfold.engine.sources import open_source
from mixfold.estimators.kernels.morp_losses import squarem
from mixfold.models.kernels.loss_morp import LossMORP, WorkingOutputs
from mixfold.models.kernels.morp import max_form
from mixfold.models.kernels.output_losses import MarginLoss, OutputLoss, SoftmaxLoss
from mixfold.testing import Case, laws

RNG = np.random.default_rng(5)
N, R = 60, 5


@dataclass(frozen=True)
class SquaredLoss:
    """Half the squared error."""

    size: int
    curvature: float = 1.0

    @property
    def owner(self) -> Array:
        return np.arange(self.size)

    def start(self, T: Array, weight: Array) -> Array:
        return np.asarray(weight @ T / weight.sum())

    def evaluate(self, eta: Array, b: Array, T: Array) -> tuple[Array, Array]:
        rest = eta + b - T
        return 0.5 * (rest**2).sum(axis=1), rest


GRADES = MarginLoss("hinge", np.array([0, 0, 0, 1]), np.array([0.5, 1.5, 2.5, 0.5]))
LABELS = {
    "logistic": MarginLoss("logistic", np.arange(2), np.full(2, 0.5)),
    "hinge": MarginLoss("hinge", np.arange(2), np.full(2, 0.5)),
}


def table(weight: Array) -> tuple[Array, Array]:
    """Centred coordinates F (N, R) with orthogonal columns, and the squares of these."""
    X = RNG.normal(size=(N, R)) * [4, 3, 1, 0.7, 0.4]
    X -= weight @ X / weight.sum()
    values, U = np.linalg.eigh(X.T @ (weight[:, None] * X))
    return X @ U[:, ::-1], values[::-1]


WEIGHT = RNG.integers(1, 4, N).astype(float)
F, VALUES = table(WEIGHT)
W = VALUES / VALUES.sum()
SIGNAL = F[:, 2:4] @ RNG.normal(size=(2, 3)) + 0.5 * RNG.normal(size=(N, 3))
CLASSES = np.eye(3)[SIGNAL.argmax(axis=1)]
BINARY = (SIGNAL[:, :2] > 0).astype(float)
RANKS = np.column_stack([np.digitize(SIGNAL[:, 0], [-1, 0, 1]), SIGNAL[:, 1] > 0]).astype(float)
HOLED = np.where(RNG.random((N, 2)) < 0.2, np.nan, BINARY)
CASES: dict[str, tuple[OutputLoss, Array]] = {
    "softmax": (SoftmaxLoss(3), CLASSES),
    "logistic": (LABELS["logistic"], HOLED),
    "hinge": (LABELS["hinge"], BINARY),
    "rank": (GRADES, RANKS),
}
cases = pytest.mark.parametrize("name", list(CASES))


def model(loss: Any, size: int, beta: float = 0.6, gamma: float = 0.02, d: int = 2) -> LossMORP:
    return LossMORP(W, np.sqrt(VALUES), (loss,), (size,), np.array([0.05]), beta, gamma, d)


def solve(morp: LossMORP, T: Array, **how: Any) -> Any:
    plan = Plan(**{"tol": 1e-13, "max_iter": 3000, "n_candidates": 1, **how})
    start = morp.start_from(Block(F, y=T, weight=WEIGHT))
    return fit(morp, open_source(F, weight=WEIGHT, y=T), ThreadExecutor(1), plan, start=start)


# ------------------------------------------------ losses


@cases
def test_slopes_are_derivatives_and_bounds_hold(name: str) -> None:
    loss, T = CASES[name]
    eta, b = RNG.normal(size=T.shape), RNG.normal(size=len(loss.owner))
    losses, slopes = loss.evaluate(eta, b, T)
    for k in range(len(b)):
        move = 1e-6 * np.eye(len(b))[k]
        ends = [loss.evaluate(eta, b + s * move, T)[0] for s in (1, -1)]
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-6, slopes[:, k], atol=1e-7)
    for _ in range(50):
        step = RNG.normal(size=len(b)) * RNG.choice([0.1, 1, 5])
        bound = losses + slopes @ step + loss.curvature / 2 * (step**2).sum()
        assert (loss.evaluate(eta, b + step, T)[0] <= bound + 1e-9).all()
    # of a function of a column all its margins move
    move = RNG.normal(size=T.shape)
    whole = loss.evaluate(eta + move, b, T)[0]
    assert (whole <= losses + (slopes * move[:, loss.owner]).sum(axis=1)
            + loss.curvature / 2 * (move[:, loss.owner] ** 2).sum(axis=1) + 1e-9).all()  # fmt: skip


@cases
def test_intercepts_alone_begin_where_they_are_best(name: str) -> None:
    loss, T = CASES[name]
    b = loss.start(T, WEIGHT)
    _, slopes = loss.evaluate(np.zeros(T.shape), b, T)
    np.testing.assert_allclose(WEIGHT @ slopes, 0.0, atol=1e-9)


# ------------------------------------------------ the fit


@pytest.mark.parametrize("gamma", [0.0, 0.02])
def test_the_squared_loss_is_the_closed_form_in_one_step(gamma: float) -> None:
    T = SIGNAL - WEIGHT @ SIGNAL / WEIGHT.sum()
    morp = model(SquaredLoss(3), 3, gamma=gamma)
    params = solve(morp, T, max_iter=1).params
    products = F.T @ (WEIGHT[:, None] * T) / np.sqrt(VALUES)[:, None]
    closed = max_form(W, products * np.sqrt(0.05 / 2), 0.6, gamma, 2)
    np.testing.assert_allclose(params.values, closed.values, rtol=1e-10)
    np.testing.assert_allclose(params.products, products, atol=1e-9)
    scores = np.sqrt(W / (W + gamma))[:, None] * params.directions
    np.testing.assert_allclose(np.abs(scores), np.abs(closed.scores), atol=1e-9)


def cost(morp: LossMORP, loss: Any, T: Array, vector: Array) -> float:
    """What is made least, without constraints: inputs and outputs by way of d scores F Q."""
    d, L = morp.n_components, T.shape[1]
    Fx = F / np.sqrt(VALUES.sum())
    Q, A, B, b = np.split(vector, np.cumsum([R * d, d * R, d * L]))
    Mx, My = Q.reshape(R, d) @ A.reshape(d, R), Q.reshape(R, d) @ B.reshape(d, L)
    rest = Fx - Fx @ Mx
    inputs = float(WEIGHT @ (rest**2).sum(axis=1)) + morp.gamma * float((Mx**2).sum())
    bends = loss.curvature * np.bincount(loss.owner, minlength=L)
    lost = float(WEIGHT @ loss.evaluate(Fx @ My, b, T)[0])
    smooth = morp.gamma / 2 * float((My**2).sum(axis=0) @ bends)
    return (1 - morp.beta) * inputs + morp.beta * 0.05 * (lost + smooth)


def as_vector(morp: LossMORP, params: WorkingOutputs) -> Array:
    Q = params.directions / np.sqrt(W + morp.gamma)[:, None]
    A = params.directions.T * (np.sqrt(W) * np.sqrt(W / (W + morp.gamma)))
    return np.concatenate([Q.ravel(), A.ravel(), params.coefficients.ravel(), params.intercepts])


@cases
def test_the_fit_is_the_minimum_that_scipy_finds(name: str) -> None:
    loss, T = CASES[name]
    morp = model(loss, T.shape[1])
    result = solve(morp, T)
    assert result.converged
    here = as_vector(morp, result.params)

    def total(vector: Array) -> float:
        return cost(morp, loss, T, vector)

    np.testing.assert_allclose(total(here), -result.objective, rtol=1e-8)
    # from here there is no way down, and from elsewhere none that leads deeper
    onward = minimize(total, here, method="BFGS", options={"gtol": 1e-7})
    assert onward.fun >= total(here) - 1e-7
    starts = [0.5 * RNG.normal(size=len(here)) for _ in range(2)]
    found = [
        minimize(total, start, method="BFGS", options={"maxiter": 3000}).fun for start in starts
    ]
    assert min(found) >= total(here) - 1e-6
    np.testing.assert_allclose(min(found), total(here), rtol=1e-3)


@cases
def test_extrapolated_steps_end_where_plain_ones_do(name: str) -> None:
    loss, T = CASES[name]
    morp = model(loss, T.shape[1])
    plain, fast = solve(morp, T), solve(morp, T, acceleration=squarem())
    np.testing.assert_allclose(fast.objective, plain.objective, rtol=1e-7)
    assert fast.n_passes <= plain.n_passes


@cases
def test_laws(name: str) -> None:
    loss, T = CASES[name]
    laws.check_model(Case(model(loss, T.shape[1]), F, WEIGHT, T))
