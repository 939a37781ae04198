"""Partition functions, and scores that need none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import logsumexp

from mixfold.contracts import Block
from mixfold.models.networks.boltzmann import energy, partition, scores
from mixfold.models.networks.boltzmann.records import RBMParams
from mixfold.models.networks.boltzmann.units import Bernoulli, Gaussian


def machine(rng: np.random.Generator, D: int, H: int, C: int = 0, size: float = 1.0) -> RBMParams:
    shapes = ((D, H), (D,), (H,), (C, H), (C,))
    return RBMParams(*(size * rng.normal(size=shape) for shape in shapes))


@pytest.mark.parametrize("C", [0, 3])
def test_both_sides_give_the_same_sum(C: int, rng: np.random.Generator) -> None:
    for D, H in ((5, 8), (8, 5)):
        params = machine(rng, D, H, C)
        h = np.concatenate(list(partition.states(H)))
        v = np.concatenate(list(partition.states(D)))
        by_hidden = logsumexp(partition._over_hidden(Bernoulli(), params, h))
        by_visible = logsumexp(-energy.free_energy(Bernoulli(), params, v))
        np.testing.assert_allclose(by_hidden, by_visible)
        found = partition.exact(Bernoulli(), params)
        np.testing.assert_allclose(found.value, by_hidden)
        assert found.exact


def test_many_states_come_in_blocks(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch):
    params = machine(rng, 6, 7)
    whole = partition.exact(Bernoulli(), params).value
    monkeypatch.setattr(partition, "STATES", 10)
    assert sum(len(part) for part in partition.states(7)) == 2**7
    np.testing.assert_allclose(partition.exact(Bernoulli(), params).value, whole)


def test_gaussian_columns_by_quadrature(rng: np.random.Generator) -> None:
    params = machine(rng, 2, 3, size=0.8)

    def mass(x: float, z: float) -> float:
        return float(np.exp(-energy.free_energy(Gaussian(), params, np.array([[x, z]]))[0]))

    total, _ = dblquad(mass, -12, 12, -12, 12, epsabs=1e-6)
    np.testing.assert_allclose(partition.exact(Gaussian(), params).value, np.log(total), rtol=1e-5)


@pytest.mark.parametrize("C", [0, 3])
@pytest.mark.parametrize("units", [Bernoulli(), Gaussian()])
def test_annealing_is_within_its_error(units, C: int, rng: np.random.Generator) -> None:
    size = 0.6 if units.countable else 0.25
    params = machine(rng, 25, 10, C, size)
    base = rng.normal(size=25)
    exact = partition.exact(units, params).value
    betas = partition.temperatures(400)
    found = [
        partition.estimate_by_annealing(units, params, base, np.random.default_rng(seed), 60, betas)
        for seed in range(4)
    ]
    assert max(one.error for one in found) < 0.2
    for one in found:
        assert abs(one.value - exact) < 4 * one.error
        assert 10 < one.ess <= 60
        assert not one.exact


def test_annealing_of_a_machine_without_weights_is_exact(rng: np.random.Generator) -> None:
    params = machine(rng, 6, 4)
    params = replace(params, weights=np.zeros((6, 4)), hidden=np.zeros(4))
    found = partition.estimate_by_annealing(
        Bernoulli(), params, params.visible, rng, 5, np.linspace(0, 1, 3)
    )
    np.testing.assert_allclose(found.value, partition.exact(Bernoulli(), params).value)
    assert found.error == 0.0


@pytest.mark.parametrize("n", [1, 2, 10, 1000, 14500])
def test_temperatures_rise_from_zero_to_one(n: int) -> None:
    betas = partition.temperatures(n)
    assert len(betas) == n + 1
    assert (betas[0], betas[-1]) == (0.0, 1.0)
    assert (np.diff(betas) > 0).all()


def test_sizes_that_can_be_counted(rng: np.random.Generator) -> None:
    assert partition.enumerable(Bernoulli(), machine(rng, 30, 20))
    assert partition.enumerable(Bernoulli(), machine(rng, 20, 30))
    assert not partition.enumerable(Bernoulli(), machine(rng, 21, 30))
    assert not partition.enumerable(Gaussian(), machine(rng, 20, 30))


# ------------------------------------------------ scores without Z


def test_pseudo_likelihood_of_all_columns(rng: np.random.Generator) -> None:
    params = machine(rng, 5, 4)
    v = np.concatenate(list(partition.states(5)))
    logs = -energy.free_energy(Bernoulli(), params, v)
    wanted = np.zeros(len(v))
    for i in range(5):
        flipped = v.copy()
        flipped[:, i] = 1 - flipped[:, i]
        other = -energy.free_energy(Bernoulli(), params, flipped)
        wanted += logs - np.logaddexp(logs, other)
    np.testing.assert_allclose(scores.pseudo_likelihoods(params, v), wanted / 5)
    few = scores.pseudo_likelihoods(params, np.tile(v, (5, 1)), n_columns=2)
    np.testing.assert_allclose(few.mean(), wanted.mean() / 5, rtol=1e-6)


def test_score_matching_is_that_of_the_density(rng: np.random.Generator) -> None:
    params = machine(rng, 4, 3)
    v = rng.normal(size=(6, 4))

    def log_density(rows: np.ndarray) -> np.ndarray:
        return -energy.free_energy(Gaussian(), params, rows)

    step, wanted = 1e-4, np.zeros(6)
    for i in range(4):
        move = step * np.eye(4)[i]
        up, here, down = log_density(v + move), log_density(v), log_density(v - move)
        wanted += (up - 2 * here + down) / step**2 + 0.5 * ((up - down) / (2 * step)) ** 2
    np.testing.assert_allclose(scores.score_matches(params, v), -wanted / 4, rtol=1e-5)


def test_rows_with_labels_are_scored_by_them(rng: np.random.Generator) -> None:
    params = machine(rng, 5, 4, 3)
    X = rng.random((7, 5)).round()
    y = np.array([0, -1, 2, 1, -1, 0, 2])
    weight = np.arange(1.0, 8.0)
    known = y >= 0
    logs = energy.label_scores(params, X)
    logs -= logsumexp(logs, axis=1, keepdims=True)
    own = logs[np.flatnonzero(known), y[known]]
    found = scores.validation(Bernoulli(), params, Block(X, y=y, weight=weight))
    np.testing.assert_allclose(found, np.average(own, weights=weight[known]))
    unlabelled = scores.validation(Bernoulli(), params, Block(X, y=np.full(7, -1)))
    np.testing.assert_allclose(unlabelled, scores.pseudo_likelihoods(params, X).mean())
    real = scores.validation(Gaussian(), params, Block(X))
    np.testing.assert_allclose(real, scores.score_matches(params, X).mean())
