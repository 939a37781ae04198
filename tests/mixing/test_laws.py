"""Laws that every prior of the mixing weights obeys, none of which knows its formulas."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from mixfold import store
from mixfold.mixing import FixedWeights, FreeWeights, Mixing, StickBreaking, SymmetricDirichlet

COUNTS = np.array([6.5, 0.0, 2.0, 11.0, 0.25])
FIXED = FixedWeights([0.1, 0.2, 0.3, 0.15, 0.25])
BAYES: dict[str, Any] = {
    "dirichlet": SymmetricDirichlet(1.7),
    "dirichlet, sparse": SymmetricDirichlet(0.02),
    "dirichlet, unequal": SymmetricDirichlet([0.2, 1.0, 3.0, 0.5, 0.5]),
    "sticks": StickBreaking(1.7),
    "sticks, sparse": StickBreaking(0.02),
}
LEARNED: dict[str, Any] = {
    "dirichlet": SymmetricDirichlet(1.7, learn_alpha=True),
    "dirichlet, other hyper": SymmetricDirichlet(9.0, learn_alpha=True, hyper=(2.5, 0.3)),
    "dirichlet, flat": SymmetricDirichlet(1.7, learn_alpha=True, hyper=None),
    "dirichlet, unequal": SymmetricDirichlet([0.2, 1.0, 3.0, 0.5, 0.5], learn_alpha=True),
    "sticks": StickBreaking(1.7, learn_alpha=True),
    "sticks, other hyper": StickBreaking(9.0, learn_alpha=True, hyper=(2.5, 0.3)),
    "sticks, flat": StickBreaking(1.7, learn_alpha=True, hyper=None),
}
POINTS: dict[str, Any] = {"free": FreeWeights(), "fixed": FIXED}


def _of(mixings: dict[str, Any]) -> Any:
    return pytest.mark.parametrize("mixing", mixings.values(), ids=mixings.keys())


def _bound(mixing: Any, state: Any, counts: np.ndarray = COUNTS) -> float:
    return float(counts @ mixing.expected_log_weights(state) - mixing.kl(state))


def _map(mixing: Any, state: Any, counts: np.ndarray = COUNTS) -> float:
    return float(counts @ mixing.mode(state) + mixing.log_prior(state))


@_of(BAYES | LEARNED | POINTS)
def test_readings_are_log_weights(mixing: Any, rng: np.random.Generator) -> None:
    counts = COUNTS + 0.5
    state = mixing.posterior(counts)
    for log_weights in (mixing.mode(state), mixing.draw(state, rng), np.log(mixing.mean(state))):
        assert log_weights.shape == (5,)
        np.testing.assert_allclose(np.exp(log_weights).sum(), 1)
    # Jensen: expected log weights add up to less than one, unless the state is a point
    total = np.exp(mixing.expected_log_weights(state)).sum()
    assert total <= 1 + 1e-12
    assert (total > 1 - 1e-9) == (not hasattr(state, "alpha"))


@_of(BAYES | LEARNED)
def test_state_tells_the_alpha_it_was_made_with(mixing: Any) -> None:
    own = sum(mixing.alpha) if isinstance(mixing.alpha, tuple) else mixing.alpha
    assert mixing.posterior(COUNTS).alpha == pytest.approx(own)
    assert mixing.posterior(COUNTS, 0.3).alpha == 0.3
    assert _bound(mixing, mixing.posterior(COUNTS, 0.3)) != _bound(mixing, mixing.posterior(COUNTS))


@_of(BAYES | LEARNED)
def test_states_can_be_stored(mixing: Any, tmp_path: Path) -> None:
    state = mixing.posterior(COUNTS)
    store.write(tmp_path / "state.mixfold", "test", {"state": state})
    found = store.read(tmp_path / "state.mixfold")["state"]
    assert type(found) is type(state)
    assert mixing.kl(found) == mixing.kl(state)


@_of(BAYES | LEARNED | POINTS)
def test_the_protocol_is_complete(mixing: Any) -> None:
    names = [name for name in vars(Mixing) if not name.startswith("_")]
    assert len(names) == 15
    for name in names:
        asked, offered = getattr(Mixing, name), getattr(mixing, name)
        if callable(offered):  # a bound method has no self
            required = list(inspect.signature(asked).parameters.values())[1:]
            given = list(inspect.signature(offered).parameters.values())
            assert [p.default for p in given] == [p.default for p in required], name


# ------------------------------------------------ the assignment law


@_of(BAYES | {"fixed": FIXED})
def test_assignments_have_total_probability_one(mixing: Any) -> None:
    total = 0.0
    for labels in itertools.product(range(5), repeat=4):
        total += np.exp(mixing.log_prob(np.bincount(labels, minlength=5)))
    assert total == pytest.approx(1, rel=1e-10)


@_of(BAYES)
def test_assignment_law_integrates_the_weights_out(mixing: Any, rng: np.random.Generator) -> None:
    prior = mixing.posterior(np.zeros(5), 2.0)
    log_weights = np.stack([mixing.draw(prior, rng) for _ in range(8000)])
    counts = np.array([2, 0, 1, 1, 0])
    values = np.exp(log_weights @ counts)
    error = values.std() / np.sqrt(len(values))
    assert abs(np.exp(mixing.log_prob(counts, 2.0)) - values.mean()) < 4 * error


@_of(BAYES)
def test_bound_is_the_assignment_law_at_its_own_counts_and_less_elsewhere(
    mixing: Any, rng: np.random.Generator
) -> None:
    exact = mixing.log_prob(COUNTS)
    assert _bound(mixing, mixing.posterior(COUNTS)) == pytest.approx(exact, rel=1e-9)
    for _ in range(30):
        other = mixing.posterior(rng.gamma(0.5, 5, 5))
        assert _bound(mixing, other) < exact


@_of(BAYES)
def test_divergence_by_monte_carlo(mixing: Any, rng: np.random.Generator) -> None:
    """E_q ln q/p: by Bayes q(pi) / p(pi) is prod pi^N / P(z)."""
    counts = np.array([2.0, 1.0, 4.0, 1.0, 3.0])
    state = mixing.posterior(counts)
    ratio = np.stack([mixing.draw(state, rng) for _ in range(4000)]) @ counts
    ratio -= mixing.log_prob(counts)
    error = ratio.std() / np.sqrt(len(ratio))
    assert abs(mixing.kl(state) - ratio.mean()) < 4 * error
    assert mixing.kl(mixing.posterior(np.zeros(5))) == pytest.approx(0, abs=1e-10)


# ------------------------------------------------ readings


@_of(BAYES)
def test_draws_have_the_stated_expectations(mixing: Any, rng: np.random.Generator) -> None:
    state = mixing.posterior(COUNTS)
    draws = np.stack([mixing.draw(state, rng) for _ in range(4000)])
    for values, expected in (
        (draws, mixing.expected_log_weights(state)),
        (np.exp(draws), mixing.mean(state)),
    ):
        error = values.std(axis=0) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - expected) < 4.5 * error + 1e-12).all()


@_of(BAYES | POINTS)
def test_mode_is_the_best_point(mixing: Any, rng: np.random.Generator) -> None:
    counts = COUNTS + 0.1
    best = _map(mixing, mixing.posterior(counts), counts)
    for _ in range(50):
        other = mixing.posterior(counts * rng.gamma(20.0, 1 / 20.0, 5))
        assert _map(mixing, other, counts) <= best + 1e-12


@_of(BAYES)
def test_tiny_concentrations_give_finite_draws(mixing: Any, rng: np.random.Generator) -> None:
    for _ in range(200):
        prior = mixing.posterior(np.zeros(5), 5e-4)
        log_weights = mixing.draw(prior, rng)
        assert np.isfinite(log_weights).all()
        assert np.isfinite(mixing.log_prob(np.array([3, 0, 0, 1, 0]), 5e-4))
        alpha = replace(mixing, learn_alpha=True).draw_alpha(prior, log_weights, rng)
        assert 0 < alpha < 1


# ------------------------------------------------ alpha


@_of(LEARNED)
def test_learned_alpha_is_the_best_for_the_state(mixing: Any) -> None:
    state = mixing.posterior(COUNTS)
    for learned, loss in (
        (mixing.update_alpha(state), lambda s: mixing.kl(s)),
        (mixing.update_alpha(state, mixing.mode(state)), lambda s: -mixing.log_prior(s)),
    ):
        best = minimize_scalar(
            lambda t, loss=loss: loss(replace(state, alpha=float(np.exp(t)))),
            bounds=(-8, 8),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert learned == pytest.approx(np.exp(best.x), rel=1e-5)
        assert abs(np.log(learned)) < 7  # inside the interval searched


@_of(LEARNED)
@pytest.mark.parametrize("start", [1e-3, 1.0, 300.0])
def test_learning_alpha_never_lowers_the_objective(mixing: Any, start: float) -> None:
    for objective, point in ((_bound, False), (_map, True)):
        state = mixing.posterior(COUNTS, start)
        trace = [objective(mixing, state)]
        for _ in range(40):
            alpha = (
                mixing.update_alpha(state, mixing.mode(state))
                if point
                else mixing.update_alpha(state)
            )
            state = mixing.posterior(COUNTS, alpha)
            trace.append(objective(mixing, state))
        assert (np.diff(trace) >= -1e-10).all()
        assert trace[-1] - trace[0] > 1e-3


@_of(LEARNED)
def test_learned_alpha_with_one_component_is_harmless(mixing: Any) -> None:
    if isinstance(mixing.alpha, tuple):
        mixing = replace(mixing, alpha=1.0)
    counts = np.array([7.0])
    state = mixing.posterior(counts)
    alpha = mixing.update_alpha(state)
    assert np.isfinite(alpha) and alpha > 0
    after = mixing.posterior(counts, alpha)
    assert _bound(mixing, after, counts) >= _bound(mixing, state, counts) - 1e-12
    assert _bound(mixing, after, counts) == pytest.approx(0, abs=1e-12)  # one way to assign
    np.testing.assert_array_equal(mixing.mode(after), [0.0])


@pytest.mark.parametrize("kind", ["dirichlet", "dirichlet, other hyper", "sticks"])
def test_drawn_alpha_keeps_its_prior(kind: str, rng: np.random.Generator) -> None:
    """alpha ~ prior, weights | alpha, alpha' | weights: alpha' ~ prior."""
    mixing = LEARNED[kind]
    shape, rate = mixing.hyper
    found, moved = [], 0
    for alpha in rng.gamma(shape, 1 / rate, 2000):
        state = mixing.posterior(np.zeros(4), alpha)
        found.append(mixing.draw_alpha(state, mixing.draw(state, rng), rng))
        moved += found[-1] != alpha
    assert moved == 2000
    assert stats.kstest(found, stats.gamma(shape, scale=1 / rate).cdf).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["dirichlet", "dirichlet, unequal", "sticks"])
def test_drawn_alpha_has_its_conditional_law(kind: str, rng: np.random.Generator) -> None:
    """p(alpha | pi) on a grid, from the densities of scipy."""
    mixing = LEARNED[kind]
    log_weights = np.log([0.5, 0.3, 0.15, 0.03, 0.02])
    weights = np.exp(log_weights)
    grid = np.linspace(1e-3, 25, 20_000)
    log_p = stats.gamma(1.0).logpdf(grid)
    if kind == "sticks":
        sticks = weights[:-1] / (1 - np.concatenate([[0], np.cumsum(weights[:-2])]))
        log_p += sum(stats.beta.logpdf(v, 1, grid) for v in sticks)
    else:
        shares = np.asarray(mixing.alpha) if isinstance(mixing.alpha, tuple) else np.ones(5)
        shares = shares / shares.sum()
        log_p += [stats.dirichlet.logpdf(weights, a * shares) for a in grid]
    p = np.exp(log_p - log_p.max())
    cdf = np.cumsum(p) / p.sum()
    state = mixing.posterior(np.zeros(5), 2.0)
    draws = []
    for _ in range(8000):
        state = replace(state, alpha=mixing.draw_alpha(state, log_weights, rng))
        draws.append(state.alpha)
    thinned = np.array(draws[::4])  # nearly independent
    assert stats.kstest(np.interp(thinned, grid, cdf), "uniform").pvalue > 1e-3


@_of(BAYES)
def test_alpha_that_is_not_learned_stays(mixing: Any, rng: np.random.Generator) -> None:
    state = mixing.posterior(COUNTS, 0.7)
    assert mixing.update_alpha(state) == 0.7
    assert mixing.draw_alpha(state, mixing.mode(state), rng) == 0.7


@_of(POINTS)
def test_points_have_no_alpha_and_cost_nothing(mixing: Any, rng: np.random.Generator) -> None:
    state = mixing.posterior(COUNTS, 3.0)
    assert not mixing.learn_alpha and mixing.hyper is None
    assert np.isnan(mixing.update_alpha(state)) and np.isnan(mixing.draw_alpha(state, state, rng))
    assert mixing.kl(state) == mixing.log_prior(state) == 0
    for reading in (mixing.expected_log_weights(state), mixing.draw(state, rng)):
        np.testing.assert_array_equal(reading, mixing.mode(state))
    np.testing.assert_array_equal(mixing.mean(state), state)
    expected = (COUNTS * np.log(np.where(COUNTS > 0, state, 1.0))).sum()
    assert mixing.log_prob(COUNTS) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["dirichlet, flat", "sticks, flat"])
def test_alpha_cannot_be_drawn_from_a_flat_prior(kind: str, rng: np.random.Generator) -> None:
    mixing = LEARNED[kind]
    state = mixing.posterior(COUNTS)
    with pytest.raises(ValueError, match=r"hyper must be given to draw alpha.*None"):
        mixing.draw_alpha(state, mixing.mode(state), rng)


# ------------------------------------------------ parameters


@pytest.mark.parametrize("kind", [SymmetricDirichlet, StickBreaking])
def test_wrong_parameters_are_refused(kind: Any) -> None:
    for alpha in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="alpha must be positive and finite, got"):
            kind(alpha)
    for alpha in ("many", None, True):
        with pytest.raises(TypeError, match=f"alpha must be a number, got {alpha!r}"):
            kind(alpha)
    with pytest.raises(TypeError, match=r"hyper must be None or the pair .* got 1\.0"):
        kind(1.0, hyper=1.0)
    with pytest.raises(ValueError, match="the rate of hyper must be positive and finite, got 0"):
        kind(1.0, hyper=(1.0, 0))


@_of(BAYES | {"free": FreeWeights()})
def test_one_weight_is_not_free(mixing: Any) -> None:
    assert [mixing.n_free(k) for k in (1, 2, 5)] == [0, 1, 4]
