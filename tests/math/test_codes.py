"""The convex problem of a row, and its free counterpart, against general minimisers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from mixfold.math.convex_codes import softmax_bound, sweep_codes
from mixfold.math.free_codes import free_codes, solve_softmax_residuals
from mixfold.math.link_functions import LINKS, Identity

H, C = 4, 3
HEADLESS = (np.zeros((H, 0)), np.zeros(0))


@pytest.fixture
def problem(rng):
    A = rng.normal(size=(H, 7))
    linear = rng.normal(size=(6, 7)) @ A.T * 1.5
    head = rng.normal(size=(H, C)), rng.normal(size=C)
    return A @ A.T, linear, head, rng.integers(0, C, 6)


def literal(phi, linear, gram, head, label, scale, tau, link):
    value = 0.5 * phi @ gram @ phi - linear @ phi
    if label is not None:
        logits = phi @ head[0] + head[1]
        value += scale * (logsumexp(logits) - logits[label])
    return value + tau * link.cost(phi).sum() if tau else value


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("tau", [0.0, 0.3])
@pytest.mark.parametrize("name", sorted(LINKS))
def test_sweeps_find_the_minimum_from_anywhere(problem, rng, name, tau, labelled) -> None:
    gram, linear, head, labels = problem
    link, scale = LINKS[name], 0.7
    known = labels if labelled else None
    answers = []
    for _ in range(2):
        low, high = max(link.lower, -3.0), min(link.upper, 3.0)
        phi = rng.uniform(low, high, size=linear.shape)
        made = sweep_codes(phi, linear, gram, head, known, scale, tau, link, 1e-13, 20000)
        assert made < 20000
        answers.append(phi)
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-9)
    for i, phi in enumerate(answers[0]):
        label = labels[i] if labelled else None
        args = (linear[i], gram, head, label, scale, tau, link)
        here = literal(phi, *args)
        bounds = [(link.lower, link.upper)] * H
        found = minimize(literal, phi, args=args, method="Nelder-Mead", bounds=bounds,
                         options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 3000})  # fmt: skip
        assert here <= found.fun + 1e-10


def test_every_sweep_lowers_the_cost(problem, rng) -> None:
    gram, linear, head, labels = problem
    head = (head[0] * 6.0, head[1])  # labels that matter
    link, phi = LINKS["tanh"], np.zeros_like(linear)
    last = np.inf
    for _ in range(30):
        sweep_codes(phi, linear, gram, head, labels, 2.0, 0.1, link, 0.0, 1)
        value = sum(
            literal(phi[i], linear[i], gram, head, labels[i], 2.0, 0.1, link) for i in range(6)
        )
        assert value <= last + 1e-12
        last = value


def test_bound_of_the_curvature_holds(rng) -> None:
    V = rng.normal(size=(H, C))
    bound = softmax_bound(V)
    for _ in range(20):
        q = rng.dirichlet(np.full(C, 0.3))
        curvature = V @ (np.diag(q) - np.outer(q, q)) @ V.T
        assert np.linalg.eigvalsh(bound - curvature).min() > -1e-12


@pytest.mark.parametrize("scale", [1e-6, 0.1, 30.0])
def test_free_codes_agree_with_sweeps(problem, scale) -> None:
    gram, linear, head, labels = problem
    for known in (None, labels):
        found = free_codes(linear, gram, head, known, scale)
        phi = np.zeros_like(linear)
        sweep_codes(phi, linear, gram, head, known, scale, 0.0, Identity(), 1e-14, 100000)
        np.testing.assert_allclose(found, phi, atol=1e-8)


def test_free_codes_refuse_a_singular_codebook(problem) -> None:
    gram, linear, _, _ = problem
    gram = gram.copy()
    gram[1] = gram[0]
    gram[:, 1] = gram[:, 0]
    assert free_codes(linear, gram, HEADLESS, None, 1.0) is None


def test_moved_shares_solve_their_equation_when_labels_are_all(rng) -> None:
    logits = rng.normal(scale=20.0, size=(50, C))
    K = np.diag([1.0, 100.0, 0.01])
    labels = rng.integers(0, C, 50)
    for scale in (1e-8, 1.0, 1e4):
        w = solve_softmax_residuals(logits, K, labels, scale)
        moved = logits + w @ K
        q = np.exp(moved - logsumexp(moved, axis=1, keepdims=True))
        np.testing.assert_allclose(w, scale * (np.eye(C)[labels] - q), atol=1e-9 * scale)
