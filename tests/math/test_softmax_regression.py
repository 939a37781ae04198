"""Sparse softmax regression: gradients by differences, conditions of the minimum, the bound."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.math.softmax_regression import (
    LabelledRows,
    bound_linear_term,
    bound_value_and_gradient,
    improve_by_bound,
    improve_by_rows,
    l1_penalty,
    sum_losses,
)

H, C = 5, 3


@pytest.fixture
def parts(rng):
    phi = rng.normal(size=(80, H))
    labels = (phi @ rng.normal(size=(H, C)) + rng.gumbel(size=(80, C))).argmax(axis=1)
    weight = rng.uniform(0.5, 2.0, 80)
    return [
        LabelledRows(phi[:30], labels[:30], weight[:30]),
        LabelledRows(phi[30:], labels[30:], weight[30:]),
    ]


def loss_of(parts):
    """The log loss of rows in two parts, which add."""

    def loss(W):
        first, second = (sum_losses(W, part) for part in parts)
        both = first + second
        return both.value, both.gradient

    return loss


def sums(parts, W):
    F = np.vstack([np.column_stack([p.phi, np.ones(len(p.phi))]) for p in parts])
    weight = np.concatenate([p.weight for p in parts])
    gram = F.T @ (F * weight[:, None])
    return gram, bound_linear_term(W, gram, -loss_of(parts)(W)[1])


def test_gradient_by_differences(parts, rng) -> None:
    W = rng.normal(size=(H + 1, C))
    _, gradient = loss_of(parts)(W)
    for h in range(H + 1):
        for c in range(C):
            step = np.zeros_like(W)
            step[h, c] = 1e-6
            up, down = (
                loss_of(parts)(W + step)[0],
                loss_of(parts)(W - step)[0],
            )
            np.testing.assert_allclose(gradient[h, c], (up - down) / 2e-6, atol=1e-6)


def stationary(W, gradient, gamma, nonneg) -> float:
    """The largest breach of the conditions of a minimum."""
    V, g = W[:-1], gradient[:-1]
    if nonneg:
        breach = np.where(V > 0, np.abs(g + gamma), np.maximum(-(g + gamma), 0))
    else:
        at_zero = np.maximum(np.abs(g) - gamma, 0)
        breach = np.where(V != 0, np.abs(g + gamma * np.sign(V)), at_zero)
    return float(max(breach.max(), np.abs(gradient[-1]).max()))


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 2.0, 1e4])
def test_rows_reach_the_minimum(parts, gamma, nonneg) -> None:
    W = np.zeros((H + 1, C))
    for _ in range(30):
        W = improve_by_rows(W, loss_of(parts), gamma, nonneg, 200, tol=1e-14)
    assert stationary(W, loss_of(parts)(W)[1], gamma, nonneg) < 2e-3
    if gamma == 2.0:
        assert (W[:-1] == 0).any() and (W[:-1] != 0).any()
    if gamma == 1e4:
        assert (W[:-1] == 0).all()
    assert not nonneg or (W[:-1] >= 0).all()


@pytest.mark.parametrize("nonneg", [False, True])
def test_bound_steps_go_to_the_same_place_and_never_up(parts, nonneg) -> None:
    gamma, W = 2.0, np.zeros((H + 1, C))
    last = loss_of(parts)(W)[0]
    for _ in range(300):
        W = improve_by_bound(W, *sums(parts, W), gamma, nonneg, 5)
        value = loss_of(parts)(W)[0] + l1_penalty(W, gamma)
        assert value <= last + 1e-10
        last = value
    exact = improve_by_rows(np.zeros((H + 1, C)), loss_of(parts), gamma, nonneg, 500, tol=1e-14)
    best = loss_of(parts)(exact)[0] + l1_penalty(exact, gamma)
    np.testing.assert_allclose(last, best, rtol=1e-6)


def test_bound_is_above_and_touches(parts, rng) -> None:
    W = rng.normal(size=(H + 1, C))
    gram, pull = sums(parts, W)
    here, gradient = loss_of(parts)(W)
    base, slope = bound_value_and_gradient(W, gram, pull)
    np.testing.assert_allclose(slope, gradient, atol=1e-9)
    for size in (1e-3, 0.1, 1.0, 10.0):
        other = W + size * rng.normal(size=W.shape)
        above = bound_value_and_gradient(other, gram, pull)[0] - base
        assert loss_of(parts)(other)[0] - here <= above + 1e-9


def test_nothing_to_gain_gives_the_same_object(parts) -> None:
    W = np.zeros((H + 1, C))
    for _ in range(10):
        W = improve_by_rows(W, loss_of(parts), 2.0, False, 300)
    assert improve_by_rows(W, loss_of(parts), 2.0, False, 300) is W
