"""The recognition network: gradients, sums over blocks, both ways of training."""

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Block
from mixfold.math.rates import Constant, Position
from mixfold.models.networks.adam import Adam, adam_state
from mixfold.models.networks.quasi_newton import minimise, minimise_l1
from mixfold.models.networks.recognition import (
    block_sums,
    log_probabilities,
    objective,
    value_and_gradient,
)
from mixfold.models.networks.records import Network, check_network, from_vector, to_vector
from mixfold.models.networks.starts import block_spread, random_start, stacked_start
from mixfold.testing.oracles import gradient_by_differences as differences


def case(units="tanh", n=23, seed=0):
    rng = np.random.default_rng(seed)
    network = random_start([5, 4, 3, 3], rng, units)
    network = from_vector(
        network, to_vector(network) + 0.1 * rng.normal(size=to_vector(network).size)
    )
    X = rng.normal(size=(n, 5))
    y = rng.integers(-1, 3, n)
    return network, Block(X, y=y, weight=rng.uniform(0, 2, n))


@pytest.mark.parametrize("units", ["tanh", "logistic"])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_gradient_against_finite_differences(units, l2):
    network, block = case(units)
    vector = to_vector(network)
    _, slope = objective(network, vector, block, l2)
    found = differences(lambda v: objective(network, v, block, l2)[0], vector)
    np.testing.assert_allclose(slope, found, rtol=1e-5, atol=1e-7)


def test_the_value_is_the_cross_entropy_of_labelled_rows():
    network, block = case()
    known = block.y >= 0
    logs = log_probabilities(network, block.X[known])
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)
    own = logs[np.arange(known.sum()), block.y[known]]
    weight = block.weight[known]
    value, _ = objective(network, to_vector(network), block)
    assert value == pytest.approx(-(weight @ own) / weight.sum())


def test_sums_do_not_depend_on_blocks_and_sparse_rows_are_rows():
    network, block = case()
    whole = block_sums(network, block)
    parts = block_sums(network, block.part(0, 9)) + block_sums(network, block.part(9, 23))
    np.testing.assert_allclose(parts.gradient, whole.gradient)
    assert parts.loss == pytest.approx(whole.loss)
    thin = Block(sparse.csr_matrix(block.X), y=block.y, weight=block.weight)
    np.testing.assert_allclose(block_sums(network, thin).gradient, whole.gradient)


def test_weight_two_is_repetition_and_unlabelled_rows_do_not_count():
    network, block = case()
    twice = Block(block.X, y=block.y, weight=np.full(23, 2.0))
    again = Block(np.concatenate([block.X] * 2), y=np.concatenate([block.y] * 2))
    np.testing.assert_allclose(
        block_sums(network, twice).gradient, block_sums(network, again).gradient
    )
    nothing = block_sums(network, Block(block.X, y=np.full(23, -1)))
    assert nothing.weight == nothing.loss == 0 and not nothing.gradient.any()


def test_single_precision_stays_single():
    network, block = case()
    X = block.X.astype(np.float32)
    value, gradient = value_and_gradient(network.cast(X.dtype), X, np.maximum(block.y, 0))
    exact, _ = value_and_gradient(network, block.X, np.maximum(block.y, 0))
    assert all(w.dtype == np.float32 for w in gradient.weights)
    assert value == pytest.approx(exact, rel=1e-5)


def test_vector_goes_round_and_shapes_are_checked():
    network, _ = case()
    back = from_vector(network, to_vector(network))
    for one, other in zip(network.weights, back.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    check_network(network)
    with pytest.raises(ValueError, match="layer 1 of the network"):
        check_network(Network(network.weights[:2], (network.biases[0], np.zeros(7)), "tanh"))
    with pytest.raises(ValueError, match="one bias for each"):
        check_network(Network(network.weights, network.biases[:1], "tanh"))


def rings(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (np.linalg.norm(X, axis=1) > 1.2).astype(int)


def test_quasi_newton_learns_what_no_line_parts_and_never_goes_up():
    X, y = rings()
    network = random_start([2, 8, 2], np.random.default_rng(1))
    block = Block(X, y=y)
    found = minimise(lambda v: objective(network, v, block, 1e-5), to_vector(network), max_iter=200)
    assert (np.diff(found.trace) <= 1e-12).all()
    assert found.value == min(found.trace)
    fitted = from_vector(network, found.point)
    assert (log_probabilities(fitted, X).argmax(axis=1) == y).mean() > 0.97


def test_quasi_newton_ends_when_told_and_keeps_the_best():
    X, y = rings()
    network = random_start([2, 8, 2], np.random.default_rng(1))
    block = Block(X, y=y)
    seen = []

    def watch(now):
        seen.append(now.value)
        assert objective(network, now.point, block)[0] == pytest.approx(now.value)
        return "time_budget" if now.n_iter == 5 else ""

    found = minimise(lambda v: objective(network, v, block), to_vector(network), watch=watch)
    assert found.reason == "time_budget" and found.n_iter == 5 and len(seen) == 5

    def interrupted(now):
        raise KeyboardInterrupt

    found = minimise(lambda v: objective(network, v, block), to_vector(network), watch=interrupted)
    assert found.reason == "interrupted" and found.value <= found.trace[0]


def test_no_steps_is_the_start():
    found = minimise(lambda v: (float(v @ v), 2 * v), np.ones(3), max_iter=0)
    assert found.value == 3 and found.reason == "max_iter" and found.n_iter == 0


def test_l1_penalty_is_that_of_soft_thresholds():
    wish = np.array([3.0, 0.4, -0.2, -2.0, 1.5, -1.0])
    rates = np.array([1.0, 1.0, 1.0, 1.0, 0.5, 0.0])
    lower = np.array([-np.inf, -np.inf, -np.inf, -np.inf, 0.0, -np.inf])
    upper = np.array([1.5, np.inf, np.inf, np.inf, np.inf, np.inf])

    def function(v):
        return 0.5 * float((v - wish) @ (v - wish)), v - wish

    found = minimise_l1(function, np.zeros(6), rates, lower, upper, tol=1e-14)
    np.testing.assert_allclose(found.point, [1.5, 0, 0, -1, 1, -1], atol=1e-6)
    assert (found.point[1:3] == 0).all()
    value = 0.5 * np.sum((found.point - wish) ** 2) + rates @ np.abs(found.point)
    assert found.value == pytest.approx(value)


def test_adam_learns_and_its_first_step_is_the_sign_of_the_gradient():
    X, y = rings()
    network = random_start([2, 8, 2], np.random.default_rng(1))
    learner = Adam(Constant(0.02))
    state = adam_state(network, np.float64)
    batch, rng = Block(X, y=y), np.random.default_rng(0)
    moved = learner.step(adam_state(network, np.float64), batch, rng, Position())
    _, slope = value_and_gradient(network, X, y)
    np.testing.assert_allclose(
        network.weights[0] - moved.network.weights[0], 0.02 * np.sign(slope.weights[0]), rtol=1e-4
    )
    before = learner.score(state, batch)
    for _ in range(300):
        state = learner.step(state, batch, rng, Position())
    assert learner.score(state, batch) > max(before, 0.95)
    assert state.steps == 300 and not learner.describe_divergence(state)
    broken = adam_state(Network((np.full((2, 2), np.nan),), (np.zeros(2),)))
    assert "learning_rate" in learner.describe_divergence(broken)


def test_l2_of_adam_is_that_of_the_objective():
    network, block = case()
    known = Block(block.X[block.y >= 0], y=block.y[block.y >= 0])
    plain = adam_state(network, np.float64)
    learner = Adam(Constant(1.0), l2=0.3)
    after = learner.step(plain, known, np.random.default_rng(0), Position())
    _, slope = objective(network, to_vector(network), known, 0.3)
    np.testing.assert_allclose(to_vector(after.first), 0.1 * slope, rtol=1e-9, atol=1e-12)


def test_stacked_start_undoes_codebooks_and_scales_units():
    rng = np.random.default_rng(0)
    A1, A2 = rng.normal(size=(4, 7)), rng.normal(size=(2, 4)) * 0.01
    phi = rng.normal(size=(300, 2)) @ A2
    X = phi @ A1 + 3 + 1e-6 * rng.normal(size=(300, 7))
    weight = rng.uniform(0.5, 2, 300)
    block = Block(X, weight=weight)
    codebooks = [(A1, np.full(7, 3.0)), (A2, np.zeros(4))]
    network = stacked_start(codebooks, 3, lambda trial: block_spread(trial, block))
    check_network(network)
    assert [w.shape for w in network.weights] == [(7, 4), (4, 2), (2, 3)]
    first = X @ network.weights[0] + network.biases[0]
    second = np.tanh(first) @ network.weights[1] + network.biases[1]
    for inputs in (first, second):
        mean = np.average(inputs, axis=0, weights=weight)
        np.testing.assert_allclose(mean, 0, atol=1e-6)
        np.testing.assert_allclose(np.average(inputs**2, axis=0, weights=weight), 1, rtol=1e-6)
    # units of the first layer are the codes, up to scale
    one = np.abs(np.corrcoef(first.T, phi.T)[:4, 4:]).diagonal()
    np.testing.assert_allclose(one, 1, atol=1e-3)


def test_a_dead_unit_stays_finite():
    A = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    block = Block(np.random.default_rng(0).normal(size=(20, 3)))
    network = stacked_start([(A, np.zeros(3))], 2, lambda trial: block_spread(trial, block))
    assert all(np.isfinite(w).all() for w in (*network.weights, *network.biases))
