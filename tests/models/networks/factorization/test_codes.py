"""Codes of rows given a layer: gradients by differences, one answer, missing entries, labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from mixfold.math.link_functions import LINKS
from mixfold.models.networks.factorization.codes import CodeProblem, codes
from mixfold.models.networks.factorization.records import Layer
from mixfold.models.networks.factorization.remembered import KnownCodes
from mixfold.models.networks.factorization.source_rules import (
    Asked,
    GradientSources,
    MultiplicativeSources,
    row_energies,
    smooth_slope,
)

H, D, C, N = 3, 7, 3, 8


@pytest.fixture
def layer(rng) -> Layer:
    A, V = rng.normal(size=(H, D)), rng.normal(size=(H, C))
    return Layer(A, rng.normal(size=D), V, rng.normal(size=C))


@pytest.fixture
def rows(rng):
    return rng.normal(scale=1.5, size=(N, D)), rng.integers(-1, C, N)


@pytest.mark.parametrize("name", sorted(LINKS))
def test_gradient_in_the_sources(layer, rows, rng, name) -> None:
    X, y = rows
    X[2, 3] = np.nan
    link = LINKS[name]
    problem = CodeProblem(layer, link, 0.2, 0.4)
    s = rng.uniform(0.2, 1.5, (N, H)) * (1 if name == "saturating" else rng.choice([-1, 1], (N, H)))
    phi = link.value(s)
    slope = smooth_slope(problem, X, y, phi) * link.slope(phi) + 0.2 * np.sign(s)
    for h in range(H):
        step = np.zeros(H)
        step[h] = 1e-6
        up = row_energies(problem, X, y, link.value(s + step))
        down = row_energies(problem, X, y, link.value(s - step))
        np.testing.assert_allclose(slope[:, h], (up - down) / 2e-6, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.2])
@pytest.mark.parametrize("name", sorted(LINKS))
def test_one_answer_and_the_least(layer, rows, rng, name, alpha) -> None:
    X, y = rows
    X[3, 2] = X[5, 1] = X[5, 4] = np.nan
    link = LINKS[name]
    problem = CodeProblem(layer, link, alpha, 0.3, 1e-13, 50000)
    phi = problem.solve(X, y)
    low, high = max(link.lower, -2.0), min(link.upper, 2.0)
    again = problem.solve(X, y, rng.uniform(low, high, phi.shape))
    np.testing.assert_allclose(again, phi, atol=1e-8)
    for i in range(N):
        one = slice(i, i + 1)
        found = minimize(
            lambda p, one=one: float(row_energies(problem, X[one], y[one], p[None])[0]),
            phi[i], method="Nelder-Mead", bounds=[(link.lower, link.upper)] * H,
            options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 2000},
        )  # fmt: skip
        assert row_energies(problem, X[one], y[one], phi[one])[0] <= found.fun + 1e-9


def test_sigma2_only_scales_the_cost_without_labels(layer, rows) -> None:
    X, _ = rows
    one = codes(layer, LINKS["tanh"], X, 0.2, 1e-3)
    other = codes(layer, LINKS["tanh"], X, 2e-4, 1.0)
    np.testing.assert_allclose(one, other, atol=1e-8)


def test_labels_that_are_unknown_do_not_matter(layer, rows) -> None:
    X, y = rows
    all_unknown = codes(layer, LINKS["tanh"], X, 0.1, 0.5, np.full(N, -1))
    np.testing.assert_allclose(all_unknown, codes(layer, LINKS["tanh"], X, 0.1, 0.5), atol=1e-12)
    some = codes(layer, LINKS["tanh"], X, 0.1, 0.5, y)
    np.testing.assert_allclose(some[y < 0], all_unknown[y < 0], atol=1e-12)
    assert np.abs(some[y >= 0] - all_unknown[y >= 0]).max() > 1e-3


def test_a_row_without_entries_has_codes_at_the_centre(layer) -> None:
    X = np.full((1, D), np.nan)
    for link in LINKS.values():
        np.testing.assert_array_equal(codes(layer, link, X, 0.1, 1.0), link.centre)
        np.testing.assert_array_equal(codes(layer, link, X, 0.0, 1.0), link.centre)


def test_no_rows(layer) -> None:
    assert codes(layer, LINKS["tanh"], np.zeros((0, D)), 0.1, 1.0).shape == (0, H)


# ------------------------------------------------ the published rules


def asked(problem, X, y, phi, size):
    known = KnownCodes(phi, np.full(len(X), size))
    return Asked(problem, X - problem.layer.bias, y, known, True, False)


def nonneg(layer, rows):
    X, y = np.abs(rows[0]), rows[1]
    A, b, V = np.abs(layer.codebook), np.abs(layer.bias), np.abs(layer.classifier)
    return Layer(A, b, V, layer.intercept), X, y


def test_a_step_that_is_much_too_long_is_halved_until_it_gains(layer, rows, rng) -> None:
    layer, X, _ = nonneg(layer, rows)
    problem = CodeProblem(layer, LINKS["saturating"], 0.0, 0.5)
    phi = 0.9 * problem.solve(X, None) + 0.05  # near the optimum, which a long step overshoots
    before = row_energies(problem, X, None, phi)
    found, steps = GradientSources().infer(asked(problem, X, None, phi, 32.0))
    assert (row_energies(problem, X, None, found) < before).mean() > 0.7
    assert (steps < 16).any()  # after more than one halving


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("labelled", [False, True])
def test_adaptive_rules_never_increase_the_cost_of_a_row(layer, rows, rng, labelled, alpha) -> None:
    layer, X, y = nonneg(layer, rows)
    labels = y if labelled else None
    problem = CodeProblem(layer, LINKS["saturating"], alpha, 0.5)
    best = row_energies(problem, X, labels, problem.solve(X, labels))
    for rule in (MultiplicativeSources(), GradientSources()):
        phi, size = rng.uniform(0.1, 0.9, (N, H)), rule.size
        last = row_energies(problem, X, labels, phi)
        steps = np.full(N, size)
        for _ in range(60):
            known = KnownCodes(phi, steps)
            phi, steps = rule.infer(Asked(problem, X - layer.bias, labels, known, True, False))
            value = row_energies(problem, X, labels, phi)
            assert (value <= last + 1e-12).all()
            last = value
        assert (last - best).max() < 0.1 * (1 + np.abs(best).max())


def test_multiplicative_rule_descends_by_itself_without_labels(layer, rows, rng) -> None:
    """With the power 1 it needs no accept test."""
    layer, X, _ = nonneg(layer, rows)
    for alpha in (0.0, 0.3):
        problem = CodeProblem(layer.without_head(), LINKS["saturating"], alpha, 0.5)
        phi = rng.uniform(0.05, 0.95, (N, H))
        for _ in range(100):
            move = MultiplicativeSources().mover(problem, X, None, phi)
            new = move(np.arange(N), np.ones(N))
            before, after = (row_energies(problem, X, None, p) for p in (phi, new))
            assert (after <= before + 1e-10).all()
            phi = new


def test_zero_stays_zero_and_zero_by_zero_is_one(layer, rows) -> None:
    layer, X, _ = nonneg(layer, rows)
    problem = CodeProblem(layer.without_head(), LINKS["saturating"], 0.0, 1.0)
    phi, _ = MultiplicativeSources().infer(asked(problem, X, None, np.zeros((N, H)), 1.0))
    assert (phi == 0).all()
    empty = CodeProblem(Layer(np.zeros((H, D)), np.zeros(D)), LINKS["saturating"], 0.0, 1.0)
    phi, _ = MultiplicativeSources().infer(asked(empty, X, None, np.full((N, H), 0.5), 1.0))
    np.testing.assert_allclose(phi, 0.5)
