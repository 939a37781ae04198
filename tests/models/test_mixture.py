"""The E and M step of a mixture against enumeration, and what happens to odd rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from mixfold.contracts import Block, Context, Pilot
from mixfold.engine.random import RowKeys
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures import rows as mixture_rows
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing import Case
from mixfold.testing.compare import require_same
from mixfold.testing.oracles import gaussian_log_density, in_data_coordinates, over_assignments
from mixfold.testing.tables import clustered_table, typical_components

K, D = 3, 3
WEIGHTS = np.array([0.2, 0.5, 0.3])
KEYS = RowKeys(0)


@pytest.fixture(params=sorted(GAUSSIAN))
def model(request: pytest.FixtureRequest) -> Mixture:
    return Mixture(K, GAUSSIAN[request.param]())


def _params(model: Mixture, **frame: Any) -> MixtureParams:
    return MixtureParams(WEIGHTS, typical_components(model.family, K, D, **frame))


def _rows(n: int, missing: bool) -> Block:
    X = clustered_table(max(n, 12), D, K, missing=0.3 if missing else 0.0, seed=3)[-n:]
    return Block(X, complete=not missing)


def _log_joint(model: Mixture, params: MixtureParams, X: np.ndarray) -> np.ndarray:
    dense = in_data_coordinates(model.family, params.components)
    return gaussian_log_density(X, *dense) + np.log(params.weights)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "with NaN"])
@pytest.mark.parametrize("labels", [None, [-1, 2, -1, 0, -1]], ids=["free", "labelled"])
def test_objective_is_the_sum_over_all_assignments(
    model: Mixture, missing: bool, labels: list[int] | None
) -> None:
    params, block = _params(model), _rows(5, missing)
    y = None if labels is None else np.array(labels)
    stats = model.expect(model.prepare(params), replace(block, y=y), KEYS)
    total, marginals = over_assignments(_log_joint(model, params, block.X), y)
    assert model.objective(params, stats) == pytest.approx(total, rel=1e-10)
    np.testing.assert_allclose(stats.counts, marginals.sum(axis=0), rtol=1e-9, atol=1e-12)
    logs = np.log(np.where(marginals > 0, marginals, 1))
    assert model.entropy(stats) == pytest.approx(-(marginals * logs).sum(), rel=1e-8, abs=1e-10)
    assert model.total_weight(stats) == 5


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "with NaN"])
def test_weights_multiply_the_log_densities(model: Mixture, missing: bool) -> None:
    params, block = _params(model), _rows(40, missing)
    weight = np.random.default_rng(0).uniform(0, 3, 40)
    stats = model.expect(model.prepare(params), replace(block, weight=weight), KEYS)
    weight[np.isnan(block.X).all(axis=1)] = 0  # says nothing: the next test
    L = _log_joint(model, params, block.X)
    assert stats.log_likelihood == pytest.approx(weight @ logsumexp(L, axis=1), rel=1e-10)
    shares = np.exp(L - logsumexp(L, axis=1, keepdims=True))
    np.testing.assert_allclose(stats.counts, weight @ shares, rtol=1e-9)
    assert stats.weight == pytest.approx(weight.sum())


def test_rows_with_nothing_observed_say_nothing(model: Mixture) -> None:
    params, block = _params(model), _rows(30, True)
    empty = np.isnan(block.X).all(axis=1)
    X = np.concatenate([block.X[~empty], np.full((4, D), np.nan)])
    reading = model.prepare(params)
    ours = model.expect(reading, Block(X, complete=False), KEYS)
    theirs = model.expect(reading, Block(block.X[~empty], complete=False), KEYS)
    require_same("empty rows", ours, theirs, 1e-12)
    only = model.expect(reading, Block(np.full((3, D), np.nan), complete=False), KEYS)
    require_same("empty rows", only, theirs.zero(), 1e-300)


def test_tiles_of_the_general_route_add_up(model: Mixture, monkeypatch: pytest.MonkeyPatch) -> None:
    params, block = _params(model), _rows(300, False)
    # a component far out switches the kernel off
    far = params.components.means.copy()
    far[0] += 1e5
    params = replace(params, components=replace(params.components, means=far))
    reading = model.prepare(params)
    assert model.family.fused_pass(block, reading.components, reading.log_weights) is None
    y = np.random.default_rng(0).integers(-1, K, 300)
    block = replace(block, weight=np.linspace(0, 2, 300), y=np.where(y == 0, -1, y))
    wanted = model.expect(reading, block, KEYS)
    monkeypatch.setattr(mixture_rows, "_TILE_BYTES", 1)  # 64 rows, the least
    require_same("tiles", model.expect(reading, block, KEYS), wanted, 1e-12)


# ------------------------------------------------ M step


def _context(model: Mixture, iteration: int = 7) -> tuple[Context, Pilot]:
    pilot = Case(model, clustered_table(80, D, K, seed=3)).pilot()
    return Context(pilot, np.random.default_rng(0), iteration), pilot


def test_update_is_the_family_s_and_the_mixing_s(model: Mixture) -> None:
    case = Case(model, clustered_table(80, D, K, seed=3))
    params = case.after(1)
    stats = case.stats(params)
    update = case.update(params, stats)
    components, _ = model.family.estimate(stats.components, params.components)
    require_same("update", update.params.components, components)
    np.testing.assert_allclose(update.params.weights, stats.counts / stats.counts.sum())
    assert update.monotone and not update.events


@pytest.mark.parametrize("rows, kind", [(4, "floor"), (40, "thin")])
def test_a_floored_component_is_told(rows: int, kind: str) -> None:
    model = Mixture(2, GAUSSIAN["full"](floor=1e-3))
    X = np.concatenate([np.zeros((rows, 2)), np.random.default_rng(0).normal(size=(50, 2)) + 9])
    case = Case(model, X)
    update = case.update(case.start(), case.stats(case.start()), 4)
    (event,) = update.events
    assert (event.kind, event.iteration) == (kind, 4)
    low = update.params.components.scatter[event.component]
    assert np.linalg.eigvalsh(low).max() == pytest.approx(1e-3)
    if kind == "floor":
        assert f"component {event.component} reached the floor of 0.001" in event.message
    else:
        assert f"component {event.component} has about 40 rows without spread" in event.message
    assert update.monotone  # the floor is part of the maximisation


def _emptied(model: Mixture, which: list[int]) -> tuple[MixtureParams, Any, Pilot, Context]:
    """Parameters and statistics in which some components have lost every row."""
    context, pilot = _context(model)
    params = Case(model, pilot.block.X).after(1)
    means = params.components.means.copy()
    means[which] = 1e3
    params = replace(params, components=replace(params.components, means=means))
    return params, model.expect(model.prepare(params), pilot.block, KEYS), pilot, context


@pytest.mark.parametrize("which", [[1], [0, 2]], ids=["one", "two"])
def test_empty_components_are_moved_to_badly_explained_rows(
    model: Mixture, which: list[int]
) -> None:
    params, stats, pilot, context = _emptied(model, which)
    np.testing.assert_array_equal(stats.counts[which], 0)
    update = model.update(params, stats, context)
    assert not update.monotone
    told = [e for e in update.events if e.kind == "reseed"]
    assert [e.component for e in told] == which and all(e.iteration == 7 for e in told)
    fresh = update.params
    assert fresh.weights.sum() == pytest.approx(1) and (fresh.weights[which] > 0).all()
    rows = fresh.components.frame.enter(pilot.block.X)
    # among the worst twentieth of what the others, after their own step, make of the rows
    others, _ = model.family.estimate(stats.components, params.components)
    reading = model.prepare(MixtureParams(stats.counts / stats.counts.sum(), others))
    rank = logsumexp(model.log_joint(reading, pilot.block), axis=1).argsort().argsort()
    for mean in fresh.components.means[which]:
        at = np.flatnonzero(np.isclose(rows, mean, rtol=1e-12).all(axis=1))
        assert at.size, "a component must start at a row"
        assert rank[at[0]] < 4
    # and it comes back to life
    again = model.expect(model.prepare(fresh), pilot.block, KEYS)
    assert (again.counts > 0.1).all()


@pytest.mark.parametrize("why", ["no pilot", "not asked for"])
def test_empty_components_are_dropped_where_they_cannot_be_moved(model: Mixture, why: str) -> None:
    params, stats, pilot, context = _emptied(model, [1])
    if why == "no pilot":
        context = replace(context, pilot=None)
    else:
        model = replace(model, reseed=False)
    update = model.update(params, stats, context)
    assert [(e.kind, e.component) for e in update.events] == [("drop", 1)]
    assert update.params.weights[1] == 0
    np.testing.assert_array_equal(update.params.components.means[1], params.components.means[1])
    again = model.expect(model.prepare(update.params), pilot.block, KEYS)
    assert again.counts[1] == 0 and np.isfinite(again.log_likelihood)
    later = model.update(update.params, again, context)
    assert not later.events and later.params.weights[1] == 0  # told once
    vector = model.coordinates(later.params)
    assert np.isfinite(vector).all()
    back = model.from_coordinates(later.params, vector)
    assert back is not None and back.weights[1] == 0


def test_statistics_per_unit_of_weight(model: Mixture) -> None:
    case = Case(model, clustered_table(80, D, K, seed=3), weight=np.linspace(0.1, 2, 80))
    params = case.after(1)
    per_unit = model.normalised(case.stats(params))
    assert per_unit.weight == pytest.approx(1) and per_unit.counts.sum() == pytest.approx(1)
    np.testing.assert_array_equal(per_unit.components.origin, 0)
    heavier = replace(case, weight=case.weight * 7)
    require_same("per unit", model.normalised(heavier.stats(params)), per_unit, 1e-12)


def test_number_of_free_parameters(model: Mixture) -> None:
    assert model.n_free(D) == model.family.n_free(K, D) + K - 1
    # log weights are one too many: they are shifted to sum to one
    assert model.coordinates(_params(model)).size == model.n_free(D) + 1


def test_coordinates_of_weights_are_shifted_logarithms(model: Mixture) -> None:
    params = _params(model)
    vector = model.coordinates(params)
    vector[:K] += 5
    back = model.from_coordinates(params, vector)
    assert back is not None
    np.testing.assert_allclose(back.weights, WEIGHTS, rtol=1e-12)
