"""Gradients against exact enumeration and finite differences; what the chains tend to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.math.rates import Constant, Position
from mixfold.math.softmax import normalise
from mixfold.models.networks.boltzmann import energy, partition
from mixfold.models.networks.boltzmann.gibbs import ContrastiveDivergence, PersistentChains
from mixfold.models.networks.boltzmann.learner import RBMLearner
from mixfold.models.networks.boltzmann.records import RBMParams, RBMState, first_params, first_state
from mixfold.models.networks.boltzmann.statistics import Seen, contrast, even, positive_phase
from mixfold.models.networks.boltzmann.units import UNITS, Bernoulli, Units


def machine(rng: np.random.Generator, D: int, H: int, C: int = 0, size: float = 0.5) -> RBMParams:
    shapes = ((D, H), (D,), (H,), (C, H), (C,))
    return RBMParams(*(size * rng.normal(size=shape) for shape in shapes))


def exact_model(units: Units, params: RBMParams) -> Seen:
    """The model phase without any sampling: all hidden states, each with its probability."""
    h = np.concatenate(list(partition.states(len(params.hidden))))
    logs = partition._over_hidden(units, params, h)
    shares = normalise(logs[None])[1][0]
    v = units.mean(energy.visible_drive(params, h))
    return Seen(v, energy.label_shares(params, h), h, shares)


def mean_log_density(units: Units, params: RBMParams, rows: Block) -> float:
    y = np.full(rows.n_rows, -1) if rows.y is None else rows.y
    found = -energy.free_energy(units, params, rows.X)
    known = y >= 0
    if known.any():
        found[known] = -energy.free_energy(units, params, rows.X[known], y[known])
    weight = rows.weights()
    log_z = partition.exact(units, params).value
    return float((weight * (found - log_z)).sum() / rows.n_rows)


def differences(units: Units, params: RBMParams, rows: Block, step: float = 1e-5) -> RBMParams:
    out = params.map(np.zeros_like)
    for value, slope in zip(params.arrays(), out.arrays(), strict=True):
        flat, found = value.reshape(-1), slope.reshape(-1)
        for i in range(len(flat)):
            kept, ends = flat[i], []
            for move in (step, -step):
                flat[i] = kept + move
                ends.append(mean_log_density(units, params, rows))
            flat[i] = kept
            found[i] = (ends[0] - ends[1]) / (2 * step)
    return out


CASES: dict[str, dict[str, Any]] = {
    "rows": {},
    "weights": {"weight": np.array([0.5, 2.0, 1.0, 0.3, 1.2, 1.0])},
    "labels": {"y": np.array([0, 1, 2, 2, 0, 1])},
    "some labels": {"y": np.array([0, -1, 2, -1, 0, -1])},
    "some labels and weights": {
        "y": np.array([0, -1, 2, -1, -1, 1]),
        "weight": np.array([0.5, 2.0, 1.0, 0.3, 1.2, 1.0]),
    },
    "no label at all": {"y": np.full(6, -1)},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", UNITS)
def test_gradient_of_ten_hidden_units_is_that_of_the_exact_likelihood(
    name: str, case: str, rng: np.random.Generator
) -> None:
    units, sides = UNITS[name], CASES[case]
    params = machine(rng, 4, 10, 3 if "y" in sides else 0)
    X = rng.random((6, 4)).round() if name == "bernoulli" else rng.normal(size=(6, 4))
    rows = Block(X, **sides)
    model = exact_model(units, params)
    if rows.weight is not None:  # the model's share of a weighted mean is that of the weights
        model = Seen(model.v, model.labels, model.hidden, model.shares * rows.weight.mean())
    found = contrast(positive_phase(params, rows), model)
    wanted = differences(units, params, rows)
    for one, other in zip(found.arrays(), wanted.arrays(), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-8)


@pytest.mark.parametrize("name", UNITS)
def test_long_chains_give_the_gradient_and_one_step_does_not(name: str) -> None:
    rng = np.random.default_rng(5)
    units = UNITS[name]
    params = machine(rng, 4, 10, 3, size=0.7 if name == "bernoulli" else 0.5)
    X = rng.random((2, 4)).round() if name == "bernoulli" else rng.normal(size=(2, 4))
    n = 20000  # chains from each of two rows
    rows = Block(np.repeat(X, n, axis=0), y=np.repeat([0, 2], n))
    data = positive_phase(params, rows)
    exact = exact_model(units, params)
    none = np.zeros((0, 10))
    errors = {}
    for k in (1, 2, 5, 25):
        found, _ = ContrastiveDivergence(k).negative(units, params, data, none, rng)
        gap = contrast(exact, found)
        errors[k] = np.sqrt(sum((array**2).sum() for array in gap.arrays()))
    noise = 6 * np.sqrt((4 * 10 + 17 + 30) * 2 / (2 * n))
    assert errors[25] < noise < errors[1]
    assert max(errors[25], errors[5]) < errors[2] < errors[1]


def test_persistent_chains_tend_to_the_model(rng: np.random.Generator) -> None:
    units, n = Bernoulli(), 4000
    params = machine(rng, 4, 6, 3)
    chains = first_state(params, n, rng).chains
    assert chains.shape == (n, 6)
    negative = PersistentChains(1, n)
    data = positive_phase(params, Block(np.zeros((3, 4)), y=np.zeros(3, int)))
    for _ in range(30):
        found, chains = negative.negative(units, params, data, chains, rng)
    gap = contrast(exact_model(units, params), found)
    worst = max(np.abs(array).max() for array in gap.arrays())
    assert worst < 6 / np.sqrt(n)
    assert set(np.unique(chains)) <= {0, 1}


def test_a_step_is_momentum_rate_and_decay(rng: np.random.Generator) -> None:
    params, velocity = machine(rng, 4, 3, 2), machine(rng, 4, 3, 2)
    rows = Block(rng.random((5, 4)), y=np.array([0, 1, 1, -1, 0]))
    state = RBMState(params.map(np.copy), velocity.map(np.copy), np.zeros((0, 3)))
    learner = RBMLearner(
        Bernoulli(), ContrastiveDivergence(1), Constant(0.1), Constant(0.6), l2=0.3
    )
    moved = learner.step(state, rows, np.random.default_rng(7), Position())
    data = positive_phase(params, rows)
    model, _ = learner.negative.negative(
        Bernoulli(), params, data, state.chains, np.random.default_rng(7)
    )
    slope = contrast(data, model)
    for number, (old, speed, ascent, new) in enumerate(
        zip(params.arrays(), velocity.arrays(), slope.arrays(), moved.params.arrays(), strict=True)
    ):
        decay = 0.3 if number in (0, 3) else 0.0
        np.testing.assert_allclose(new, old + 0.6 * speed + 0.1 * (ascent - decay * old))


def test_training_raises_the_exact_likelihood(rng: np.random.Generator) -> None:
    X = np.repeat([[1.0, 1, 0, 0], [0, 0, 1, 1]], 10, axis=0)
    rows = Block(X, y=np.repeat([0, 1], 10))
    params = first_params(np.zeros(4), 5, np.zeros(2), rng, np.dtype(float))
    state = first_state(params, 0, rng)
    before = mean_log_density(Bernoulli(), params, rows)
    learner = RBMLearner(Bernoulli(), ContrastiveDivergence(1), Constant(0.1), Constant(0.5))
    for step in range(400):
        state = learner.step(state, rows, rng, Position(0, step))
    after = mean_log_density(Bernoulli(), state.params, rows)
    np.testing.assert_allclose(before, -5 * np.log(2), atol=0.05)
    assert after > 1.5 * np.log(0.5)  # half a row less than all that can be known


def test_weights_that_run_away_are_trouble(rng: np.random.Generator) -> None:
    learner = RBMLearner(Bernoulli(), ContrastiveDivergence(1), Constant(0.1), Constant(0.5))
    state = first_state(machine(rng, 3, 2), 0, rng)
    assert learner.describe_divergence(state) == ""
    state.params.weights[1, 1] = -51
    assert "has grown to 51" in learner.describe_divergence(state)
    state.params.hidden[0] = np.nan
    assert "no longer finite" in learner.describe_divergence(state)


def test_both_phases_weigh_the_same(rng: np.random.Generator) -> None:
    params = machine(rng, 4, 3, 2)
    rows = Block(rng.random((5, 4)), y=np.array([0, 1, 1, -1, 0]), weight=rng.random(5))
    data = positive_phase(params, rows)
    chains = first_state(params, 7, rng).chains
    for negative in (ContrastiveDivergence(1), ContrastiveDivergence(3), PersistentChains(1, 7)):
        found, _ = negative.negative(Bernoulli(), params, data, chains, rng)
        np.testing.assert_allclose(found.shares.sum(), rows.weights().sum() / 5)
    # a row of no weight leaves no trace
    rows = Block(rows.X, y=np.zeros(5, int), weight=np.array([1.0, 2, 0, 1, 1]))
    other = Block(rows.X + np.eye(5)[2][:, None], y=rows.y, weight=rows.weight)
    slopes = []
    for block in (rows, other):
        data = positive_phase(params, block)
        model, _ = ContrastiveDivergence(1).negative(
            Bernoulli(), params, data, chains, np.random.default_rng(3)
        )
        slopes.append(contrast(data, model).weights)
    np.testing.assert_allclose(slopes[0], slopes[1])


def test_shares_of_rows_in_a_mean() -> None:
    np.testing.assert_allclose(even(4, np.dtype(float)), 0.25)
    np.testing.assert_allclose(even(2, np.dtype(float), np.array([1.0, 3.0])), [0.5, 1.5])
