"""Labels that count more than once: steps that are taken back, and where they end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Array, Block, Context
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.sources import open_source
from mixfold.families.factor import FactorFamily
from mixfold.families.factor.noise import IsotropicNoise
from mixfold.models.outputs import label_use
from mixfold.models.outputs.label_starts import LABEL_STARTS
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedParams
from mixfold.models.outputs.probit_labels import ProbitLabels
from mixfold.models.outputs.stressed import StressedModel, StressedParams, imagined
from mixfold.testing import Case
from mixfold.testing.storage import stored_identity

D = 5
FAMILY = FactorFamily(factors=(1,), noise=IsotropicNoise(), expand=False)


def hidden(n: int = 200) -> tuple[Array, Array]:
    """The class is told by a direction of little variance, which one factor passes over."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D)) * [3.0, 1.0, 1.0, 1.0, 1.0]
    return X, (X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(np.int64)


def stressed(tradeoff: float, K: int = 1, **more: Any) -> StressedModel:
    labels = ProbitLabels(2, tradeoff, 1e-2)
    return StressedModel(K, FAMILY, labels, LABEL_STARTS["balanced"], **more)


def run(model: LabelledModel, X: Array, y: Array, **plan: Any) -> Fit:
    settings: dict[str, Any] = {"n_candidates": 1, "max_iter": 400, **plan}
    return fit(model, open_source(X, y=y), ThreadExecutor(1), Plan(**settings))


def accuracy(model: LabelledModel, params: Any, X: Array, y: Array) -> float:
    reading = model.prepare(params)
    rows = label_use.rows(model, reading, Block(X))
    score = label_use.decisions(model, reading, rows, "data")[:, 0]
    return float(np.mean((score > 0) == (y == 1)))


def test_imagined_rows_are_what_the_model_draws() -> None:
    """Statistics of many drawn rows come near the expected ones."""
    X, y = hidden()
    model = LabelledModel(2, FAMILY, ProbitLabels(), LABEL_STARTS["balanced"])
    params = run(model, X, y, max_iter=5).params
    n = 200_000
    drawn, _ = label_use.draw(model, params, n, np.random.default_rng(0))
    plain = replace(model, outputs=ProbitLabels(tradeoff=0.0))
    stats = Case(plain, drawn, y=np.full(n, -1)).stats(params)
    ours = imagined(params, stats.components)
    for name in ("first", "cross"):
        got, expected = getattr(stats.components, name) / n, getattr(ours, name)
        np.testing.assert_allclose(got, expected, atol=0.03)
    np.testing.assert_allclose(
        stats.components.squares.sum(axis=1) / n, ours.squares.sum(axis=1), rtol=0.02
    )
    np.testing.assert_allclose(stats.components.rows.second / n, ours.rows.second, atol=0.02)
    np.testing.assert_allclose(stats.components.rows.count / n, ours.rows.count, atol=0.01)


def test_steps_that_fall_are_taken_back() -> None:
    X, y = hidden()
    model = stressed(60.0)
    case = Case(model, X, y=y)
    context = Context(None, np.random.default_rng(0))
    params: Any = case.start()
    kept, fallen = [], 0
    for _ in range(120):
        stats = case.stats(params)
        value = model.objective(params, stats)
        trail = params.trail
        if trail is not None and value < trail.objective:
            fallen += 1
            again: Any = model.update(params, stats, context).params
            assert again.trail.objective == trail.objective
            assert again.trail.kappa == pytest.approx(2 * trail.kappa)
            params = again
            continue
        kept.append(value)
        update = model.update(params, stats, context)
        if update.params is params:
            break
        assert not update.monotone
        params = update.params
    assert fallen > 0
    assert (np.diff(kept) >= 0).all()
    assert kept[-1] > kept[0] + 1


def test_stress_finds_the_direction_that_tells_the_class() -> None:
    X, y = hidden()
    once = LabelledModel(1, FAMILY, ProbitLabels(ridge=1e-2), LABEL_STARTS["balanced"])
    plain = run(once, X, y)
    model = stressed(100.0)
    result = run(model, X, y)
    settled = model.settled(result.params, result.objective)
    assert type(settled) is SupervisedParams
    assert accuracy(once, plain.params, X, y) < 0.8
    assert accuracy(model, settled, X, y) > 0.88
    value = model.objective(settled, Case(model, X, y=y).stats(settled))
    assert value == pytest.approx(result.trace.max(), rel=1e-10)


def test_a_fit_ends_where_nothing_is_gained() -> None:
    X, y = hidden(100)
    model = stressed(3.0, tol=1e-5)
    result = run(model, X, y, max_iter=2000)
    assert result.reason == "converged"
    longer = run(replace(model, tol=1e-8), X, y, max_iter=2000)
    assert longer.objective - result.objective < 0.01 * len(X)


def test_a_point_without_a_way_on_is_a_fixed_point() -> None:
    X, y = hidden(60)
    model = stressed(2.0)
    case = Case(model, X, y=y)
    start = case.start()
    done = replace(StressedParams(start.weights, start.components, start.outputs), done=True)
    assert (
        model.update(done, case.stats(done), Context(None, np.random.default_rng(0))).params is done
    )
    other = case.after(2)
    stored_identity(other)


def test_small_weights_of_rows_leave_the_shares_of_components_apart() -> None:
    """All rows together weigh 0.12: a component of less than one row is no empty one."""
    X, y = hidden(120)
    case = Case(stressed(5.0, K=2), X, np.full(120, 1e-3), y)
    start = case.start()
    counts = case.stats(start).counts
    weights = case.after(1).weights
    assert counts[0] > 1.2 * counts[1]
    np.testing.assert_allclose(weights, counts / counts.sum(), atol=0.03)
