"""Labels that count more than once: tentative steps, and where they end."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Array, Block, Context
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.checkpoints import Checkpoint, Progressed
from mixfold.engine.climb import climb
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task
from mixfold.families.factor import FactorFamily
from mixfold.families.factor.noise import IsotropicNoise
from mixfold.models.outputs import label_predictions
from mixfold.models.outputs.label_starts import LABEL_STARTS
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.overweighted_labels import OverweightedLabelModel, expected_sums
from mixfold.models.outputs.probit_labels import ProbitLabels
from mixfold.testing import Case, laws
from mixfold.testing.compare import require_same

D = 5
FAMILY = FactorFamily(factors=(1,), noise=IsotropicNoise(), expand=False)


def hidden(n: int = 200) -> tuple[Array, Array]:
    """The class is told by a direction of little variance, which one factor passes over."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D)) * [3.0, 1.0, 1.0, 1.0, 1.0]
    return X, (X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(np.int64)


def overweighted(tradeoff: float, K: int = 1) -> OverweightedLabelModel:
    labels = ProbitLabels(2, tradeoff, 1e-2)
    return OverweightedLabelModel(K, FAMILY, labels, LABEL_STARTS["balanced"])


def run(model: LabelledModel, X: Array, y: Array, **plan: Any) -> Fit:
    settings: dict[str, Any] = {"n_candidates": 1, "max_iter": 400, **plan}
    return fit(model, open_source(X, y=y), ThreadExecutor(1), Plan(**settings))


def accuracy(model: LabelledModel, params: Any, X: Array, y: Array) -> float:
    reading = model.prepare(params)
    rows = label_predictions.rows(model, reading, Block(X))
    score = label_predictions.decisions(model, reading, rows, "data")[:, 0]
    return float(np.mean((score > 0) == (y == 1)))


def test_expected_sums_are_those_of_rows_that_the_model_draws() -> None:
    """Statistics of many drawn rows come near the expected ones."""
    X, y = hidden()
    model = LabelledModel(2, FAMILY, ProbitLabels(), LABEL_STARTS["balanced"])
    params = run(model, X, y, max_iter=5).params
    n = 200_000
    drawn, _ = label_predictions.draw(model, params, n, np.random.default_rng(0))
    plain = replace(model, outputs=ProbitLabels(tradeoff=0.0))
    stats = Case(plain, drawn, y=np.full(n, -1)).stats(params)
    ours = expected_sums(params, stats.components)
    for name in ("first", "cross"):
        got, expected = getattr(stats.components, name) / n, getattr(ours, name)
        np.testing.assert_allclose(got, expected, atol=0.03)
    np.testing.assert_allclose(
        stats.components.squares.sum(axis=1) / n, ours.squares.sum(axis=1), rtol=0.02
    )
    np.testing.assert_allclose(stats.components.rows.second / n, ours.rows.second, atol=0.02)
    np.testing.assert_allclose(stats.components.rows.count / n, ours.rows.count, atol=0.01)


def test_a_shorter_step_is_nearer_and_a_short_enough_one_gains() -> None:
    X, y = hidden()
    model = overweighted(60.0)
    case = Case(model, X, y=y)
    start = run(model, X, y, max_iter=60).params
    stats = case.stats(start)
    here, away, gains = model.objective(start, stats), [], []
    for length in (1e3, 1.0, 0.1, 0.01, 1e-3):
        context = Context(None, np.random.default_rng(0), length=length)
        update = model.update(start, stats, context)
        assert update.length is not None and update.length <= length
        away.append(np.abs(update.params.components.loadings - start.components.loadings).max())
        gains.append(case.objective(update.params) - here)
    assert (np.diff(away) < 0).all()
    assert min(gains[:2]) < 0 < gains[-1]
    none = Context(None, np.random.default_rng(0), length=0.0)
    assert model.update(start, stats, none).params is start


def test_the_objective_never_falls_though_steps_were_too_long() -> None:
    X, y = hidden()
    result = run(overweighted(60.0), X, y, max_iter=80)
    assert result.n_passes > result.n_iter + 1
    assert (np.diff(result.trace) >= 0).all()
    assert result.trace[-1] > result.trace[0] + 1
    assert not any(event.kind == "fall" for event in result.events)


def test_labels_that_count_more_find_the_direction_that_tells_the_class() -> None:
    X, y = hidden()
    once = LabelledModel(1, FAMILY, ProbitLabels(ridge=1e-2), LABEL_STARTS["balanced"])
    plain = run(once, X, y)
    model = overweighted(100.0)
    result = run(model, X, y)
    assert accuracy(once, plain.params, X, y) < 0.8
    assert accuracy(model, result.params, X, y) > 0.88
    value = model.objective(result.params, Case(model, X, y=y).stats(result.params))
    assert value == pytest.approx(result.objective, rel=1e-10)


@pytest.mark.parametrize("K", [1, 2])
def test_a_converged_fit_leaves_no_more_than_its_tolerance(K: int) -> None:
    X, y = hidden(100)
    model = overweighted(3.0, K)
    result = run(model, X, y, max_iter=5000, tol=1e-5)
    assert result.reason == "converged"
    source, again = open_source(X, y=y), Plan(tol=1e-8, max_iter=20000)
    longer = fit(model, source, ThreadExecutor(1), again, start=result.params)
    assert longer.objective - result.objective < 5e-5 * len(X)


def test_a_stored_climb_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    """Also from a state whose next point is about to be taken back."""
    X, y = hidden()
    model = overweighted(60.0)
    task = Task(model, open_source(X, y=y), ThreadExecutor(1), None, 0)
    rules, states = Rules(0.0, 25), list[Climb]()
    wanted = climb(task, Climb(Case(model, X, y=y).start()), rules, states.append)
    fallen = [a for a, b in pairwise(states) if len(a.trace) == len(b.trace)]
    assert len(fallen) > 3
    for state in (*fallen[:3], states[5]):
        Checkpoint(tmp_path / "fit", {}).write(Progressed(0, 0, state, None))
        read = Checkpoint(tmp_path / "fit", {}).read()
        require_same("goes on", climb(task, read.climb, rules), wanted)


@pytest.mark.parametrize("K", [1, 2])
def test_laws(K: int) -> None:
    X, y = hidden(90)
    y[::4] = -1
    reason = "a step may be too long: the engine takes it back"
    laws.check_model(Case(overweighted(5.0, K), X, y=y), skip={"monotone objective": reason})


def test_quasi_newton_steps_are_quicker_and_end_as_high() -> None:
    X, y = hidden()
    plain = run(overweighted(60.0), X, y, tol=1e-5, max_iter=1000)
    rule = ACCELERATIONS["quasi-newton"]
    quick = run(overweighted(60.0), X, y, tol=1e-5, max_iter=1000, acceleration=rule)
    assert quick.converged and (np.diff(quick.trace) >= 0).all()
    assert quick.objective > plain.objective - 1e-4 * len(X)
    assert quick.n_passes < 0.2 * plain.n_passes


def test_small_weights_of_rows_leave_the_shares_of_components_apart() -> None:
    """All rows together weigh 0.12: a component of less than one row is no empty one."""
    X, y = hidden(120)
    case = Case(overweighted(5.0, K=2), X, np.full(120, 1e-3), y)
    start = case.start()
    counts = case.stats(start).counts
    weights = case.after(1).weights
    assert counts[0] > 1.2 * counts[1]
    np.testing.assert_allclose(weights, counts / counts.sum(), atol=0.03)
