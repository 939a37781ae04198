"""Deep belief networks against sums over all states."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from mixfold.contracts import Block
from mixfold.math.rates import Constant, Position
from mixfold.models.networks.belief import use
from mixfold.models.networks.belief.learner import (
    UpDownLearner,
    generative,
    recognition,
    up_down,
    validation_score,
)
from mixfold.models.networks.belief.records import (
    BeliefParams,
    BeliefState,
    Directed,
    tie_weights,
    untie_weights,
)
from mixfold.models.networks.boltzmann import energy, partition
from mixfold.models.networks.boltzmann.records import RBMParams
from mixfold.models.networks.boltzmann.statistics import even
from mixfold.models.networks.boltzmann.units import UNITS, Bernoulli, Gaussian, Units

BITS = Bernoulli()


def machine(rng: np.random.Generator, D: int, H: int, C: int = 0, size: float = 1.0) -> RBMParams:
    shapes = ((D, H), (D,), (H,), (C, H), (C,))
    return RBMParams(*(size * rng.normal(size=shape) for shape in shapes))


def layer(rng: np.random.Generator, D: int, H: int) -> Directed:
    return Directed(*(rng.normal(size=s) for s in ((D, H), (H,), (H, D), (D,))))


def cube(n: int) -> np.ndarray:
    return np.array(list(product([0.0, 1.0], repeat=n)))


def log_laws(params: BeliefParams, v: np.ndarray, y: int | None = None) -> np.ndarray:
    """ln p(v), or ln p(v, y), with all states of all layers summed over, from the top down."""
    top = cube(len(params.top.visible))
    codes = None if y is None else np.full(len(top), y)
    logs = -energy.free_energy(BITS, params.top, top, codes)
    logs = logs - partition.exact(BITS, params.top).value
    states = top
    for one in reversed(params.layers):
        below = v if one is params.layers[0] else cube(len(one.down_bias))
        shares = expit(states @ one.down + one.down_bias)
        given = below @ np.log(shares.T) + (1 - below) @ np.log(1 - shares.T)
        logs = logsumexp(given + logs, axis=1)
        states = below
    return logs


def test_a_tied_layer_leaves_the_law_unchanged(rng: np.random.Generator) -> None:
    below = machine(rng, 5, 4)
    V = cube(5)
    wanted = -energy.free_energy(BITS, below, V) - partition.exact(BITS, below).value
    fresh = RBMParams(np.zeros((4, 5)), *machine(rng, 4, 5).arrays()[1:])
    deep = BeliefParams((untie_weights(below),), tie_weights(below, fresh))
    np.testing.assert_allclose(log_laws(deep, V), wanted)
    # and the pass upward is the posterior, so that the bound is no bound but the value
    log_z = partition.exact(BITS, deep.top).value
    bounds = use.bounds(deep, BITS, V, log_z, 5, 4000)
    np.testing.assert_allclose(bounds, wanted, atol=0.15)


def test_a_tied_layer_with_more_units_leaves_it_unchanged_too(rng: np.random.Generator) -> None:
    below = machine(rng, 4, 3)
    V = cube(4)
    wanted = -energy.free_energy(BITS, below, V) - partition.exact(BITS, below).value
    fresh = RBMParams(np.zeros((3, 6)), *machine(rng, 3, 6).arrays()[1:])
    start = tie_weights(below, fresh)
    assert start.weights.shape == (3, 6)
    np.testing.assert_allclose(log_laws(BeliefParams((untie_weights(below),), start), V), wanted)


def test_too_few_units_are_not_tied(rng: np.random.Generator) -> None:
    fresh = machine(rng, 3, 3)
    assert tie_weights(machine(rng, 4, 3), fresh) is fresh


@pytest.mark.parametrize("labelled", [False, True])
def test_bounds_are_below_the_exact_law(labelled: bool, rng: np.random.Generator) -> None:
    params = BeliefParams((layer(rng, 5, 4), layer(rng, 4, 3)), machine(rng, 3, 6, 2))
    V = cube(5)
    assert np.isclose(logsumexp(log_laws(params, V)), 0)
    y = np.full(len(V), 1) if labelled else None
    exact = log_laws(params, V, 1 if labelled else None)
    log_z = partition.exact(BITS, params.top).value
    bounds = use.bounds(params, BITS, V, log_z, 5, 2000, y)
    assert (bounds < exact + 0.1).all()
    assert (exact - bounds).mean() > 0.5  # random recognition is far from the posterior


def test_expectation_of_the_bound_is_that_over_all_states(rng: np.random.Generator) -> None:
    params = BeliefParams((layer(rng, 4, 3),), machine(rng, 3, 5))
    V, H = cube(4)[:5], cube(3)
    one, log_z = params.layers[0], partition.exact(BITS, params.top).value
    q = expit(V @ one.up + one.up_bias)
    log_q = np.log(q) @ H.T + np.log(1 - q) @ (1 - H).T
    p = expit(H @ one.down + one.down_bias)
    joint = V @ np.log(p.T) + (1 - V) @ np.log(1 - p.T)
    joint += -energy.free_energy(BITS, params.top, H) - log_z
    wanted = (np.exp(log_q) * (joint - log_q)).sum(axis=1)
    found = use.bounds(params, BITS, V, log_z, 5, 8000)
    np.testing.assert_allclose(found, wanted, atol=0.1)


def test_bounds_depend_on_their_row_alone(rng: np.random.Generator) -> None:
    params = BeliefParams((layer(rng, 5, 4), layer(rng, 4, 3)), machine(rng, 3, 6))
    V = rng.random((40, 5))
    whole = use.bounds(params, BITS, V, 1.0, 7)
    order = rng.permutation(40)
    np.testing.assert_allclose(use.bounds(params, BITS, V[order], 1.0, 7), whole[order])
    np.testing.assert_allclose(use.bounds(params, BITS, V[3:4], 1.0, 7), whole[3:4])
    assert not np.allclose(use.bounds(params, BITS, V, 1.0, 8), whole)


def test_without_layers_the_bound_is_the_law(rng: np.random.Generator) -> None:
    params = BeliefParams((), machine(rng, 4, 3))
    V = cube(4)
    log_z = partition.exact(BITS, params.top).value
    wanted = -energy.free_energy(BITS, params.top, V) - log_z
    np.testing.assert_allclose(use.bounds(params, BITS, V, log_z, 5), wanted)


# ------------------------------------------------ up and down


@pytest.mark.parametrize("name", UNITS)
def test_updates_are_gradients_of_their_log_likelihoods(
    name: str, rng: np.random.Generator
) -> None:
    units = UNITS[name]
    one = layer(rng, 4, 3)
    below = rng.normal(size=(6, 4)) if name == "gaussian" else rng.random((6, 4)).round()
    above, weight = rng.random((6, 3)).round(), rng.random(6)
    shares = even(6, np.dtype(float), weight)

    def down_value() -> float:
        return float(shares @ units.log_density(below, use.down(one, above)))

    def up_value() -> float:
        return float(shares @ BITS.log_density(above, use.up(one, below)))

    found = [
        *generative(one, units, below, above, shares),
        *recognition(one, below, above, shares),
    ]
    arrays = [one.down, one.down_bias, one.up, one.up_bias]
    values = [down_value, down_value, up_value, up_value]
    for array, slope, value in zip(arrays, found, values, strict=True):
        flat = array.reshape(-1)
        for i, ascent in enumerate(slope.reshape(-1)):
            kept, ends = flat[i], []
            for move in (1e-5, -1e-5):
                flat[i] = kept + move
                ends.append(value())
            flat[i] = kept
            np.testing.assert_allclose(ascent, (ends[0] - ends[1]) / 2e-5, atol=1e-8)


def _network(rng: np.random.Generator, C: int = 2) -> BeliefParams:
    return BeliefParams((layer(rng, 5, 4), layer(rng, 4, 3)), machine(rng, 3, 6, C, 0.3))


@pytest.mark.parametrize("units", [Bernoulli(), Gaussian()])
def test_a_step_moves_all_parts_along_the_ascent(units: Units, rng: np.random.Generator) -> None:
    params = _network(rng)
    rows = Block(rng.random((7, 5)), y=np.array([0, 1, -1, 1, 0, 0, 1]))
    state = BeliefState(params.map(np.copy), params.map(np.zeros_like))
    learner = UpDownLearner(units, Constant(0.1), Constant(0.5), l2=0.2)
    moved = learner.step(state, rows, np.random.default_rng(3), Position(0, 0, 0.0)).params
    slope = up_down(params, units, rows, 3, np.random.default_rng(3))
    pairs = [*zip(params.layers, slope.layers, moved.layers, strict=True)]
    pairs.append((params.top, slope.top, moved.top))  # type: ignore[arg-type]
    for before, ascent, after in pairs:
        for old, along, new in zip(before.arrays(), ascent.arrays(), after.arrays(), strict=True):
            decay = 0.2 if old.ndim == 2 else 0.0
            np.testing.assert_allclose(new, old + 0.1 * (along - decay * old))


def test_up_down_raises_the_exact_likelihood_of_rows_and_labels(rng: np.random.Generator) -> None:
    X = np.repeat([[1.0, 1, 0, 0, 1], [0, 0, 1, 1, 0]], 20, axis=0)
    rows = Block(X, y=np.repeat([0, 1], 20))
    params = _network(rng)

    def exact(now: BeliefParams) -> float:
        return float(np.mean([log_laws(now, X[[0]], 0)[0], log_laws(now, X[[-1]], 1)[0]]))

    state = BeliefState(params.map(np.copy), params.map(np.zeros_like))
    learner = UpDownLearner(BITS, Constant(0.1), Constant(0.5))
    for step in range(500):
        state = learner.step(state, rows, rng, Position(0, step, step / 500))
    assert exact(params) < -4
    assert exact(state.params) > -2.0  # ln 2 is all that can be reached
    assert validation_score(state.params, BITS, rows) > -0.5
    assert learner.describe_divergence(state) == ""


def test_label_scores_are_those_of_the_top_above_the_means(rng: np.random.Generator) -> None:
    params = _network(rng)
    X = rng.random((6, 5))
    up = expit(expit(X @ params.layers[0].up + params.layers[0].up_bias) @ params.layers[1].up
               + params.layers[1].up_bias)  # fmt: skip
    np.testing.assert_allclose(use.scores(params, X), energy.label_scores(params.top, up))
    y = np.array([0, 1, -1, 1, 0, 0])
    logs = use.scores(params, X)
    logs -= logsumexp(logs, axis=1, keepdims=True)
    wanted = logs[y >= 0, y[y >= 0]].mean()
    np.testing.assert_allclose(validation_score(params, BITS, Block(X, y=y)), wanted)
    assert validation_score(params, BITS, Block(X)) < 0


def test_dreams_follow_the_law_of_the_network(rng: np.random.Generator) -> None:
    params = BeliefParams((layer(rng, 3, 4),), machine(rng, 4, 5, 2, 0.7))
    n = 20000
    V, base = cube(3), rng.normal(size=4)
    wanted = np.exp(log_laws(params, V))
    drawn, _ = use.generate_rows(params, BITS, base, None, n, 40, rng, probabilities=False)
    found = np.bincount((drawn @ [4, 2, 1]).astype(int), minlength=8) / n
    np.testing.assert_allclose(found, wanted, atol=6 * np.sqrt(0.25 / n))
    given = np.exp(log_laws(params, V, 1))
    held = np.tile([0.0, 1.0], (n, 1))
    drawn, labels = use.generate_rows(params, BITS, base, held, n, 40, rng, probabilities=False)
    found = np.bincount((drawn @ [4, 2, 1]).astype(int), minlength=8) / n
    np.testing.assert_allclose(found, given / given.sum(), atol=6 * np.sqrt(0.25 / n))
    assert (labels == held).all()
    smooth, _ = use.generate_rows(params, BITS, base, held, n, 40, rng)
    np.testing.assert_allclose(smooth.mean(axis=0), drawn.mean(axis=0), atol=0.03)


def test_trouble_of_any_layer(rng: np.random.Generator) -> None:
    params = _network(rng)
    learner = UpDownLearner(BITS, Constant(0.1), Constant(0.5))
    params.layers[1].down[0, 0] = np.inf
    assert "fine_tune_rate" in learner.describe_divergence(BeliefState(params, params))
