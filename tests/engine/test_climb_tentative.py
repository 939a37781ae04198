"""Tentative steps: a plain step that lowers the objective is taken back and made shorter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Array, Context, Event, Update
from mixfold.engine import budget
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.budget import Deadline
from mixfold.engine.climb import LENGTHEN, SHORTEST, climb
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task, resume_climb
from mixfold.engine.stopping import STEPS_TOGETHER, remaining_gain
from mixfold.testing.compare import require_same
from mixfold.testing.toys import Bowl, BowlStats, Serial

RULES = {"plain": None, **ACCELERATIONS}
BEST = np.array([9.0, 10.0])


@dataclass(frozen=True)
class Overshooting(Bowl):
    """A step of length 1 is eight times as long as one that would end at the optimum."""

    def update(self, params: Array, stats: BowlStats, context: Context) -> Update[Array]:
        gradient, metric = self.derivatives(params, stats)
        if not context.length:
            return Update(params)
        fresh = params + context.length * metric.solve(gradient)
        told = (Event("floor", "told once", context.iteration),)
        return Update(fresh, told, length=context.length)


@pytest.fixture
def model() -> Overshooting:
    return Overshooting(np.diag([1.0, 0.5]), np.array([0.125, 0.125]), np.array([1.0, -9.0]))


def _task(model: Any, X: Any = None, before: Any = None) -> Task:
    X = np.arange(20.0).reshape(10, 2) if X is None else X
    return Task(model, open_source(X), Serial(before), None, 0)


def _objective(model: Overshooting, params: Array) -> float:
    (block,) = _task(model).source.blocks(10)
    return model.objective(params, model.expect(params, block, None))  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", RULES)
def test_the_trace_never_falls_and_ends_at_the_optimum(model: Overshooting, rule: str) -> None:
    one = model.update(model.start, BowlStats(10.0, 10 * BEST, 0.0), Context(None, None))  # type: ignore[arg-type]
    assert _objective(model, one.params) < _objective(model, model.start)  # it does overshoot
    done = climb(_task(model), Climb(model.start), Rules(1e-9, 500, RULES[rule]))
    assert done.reason == "converged"
    assert (np.diff(done.trace) >= 0).all()
    np.testing.assert_allclose(done.best, BEST, atol=1e-3)
    assert done.objective == _objective(model, done.best)


def test_steps_that_were_taken_back_cost_passes_and_no_iterations(model: Overshooting) -> None:
    states: list[Climb] = []
    done = climb(_task(model), Climb(model.start), Rules(0.0, 12), states.append)
    assert (done.reason, done.n_iter, len(done.trace)) == ("max_iter", 12, 13)
    back = [b for a, b in pairwise(states) if len(a.trace) == len(b.trace)]
    assert len(back) == done.n_passes - len(done.trace) > 3
    for before, after in pairwise(states):
        if len(before.trace) == len(after.trace):
            assert after.length == 0.5 * before.length
            assert after.n_iter == before.n_iter and after.best is before.best
        elif not after.reason:
            assert after.length == pytest.approx(LENGTHEN * before.length) or len(after.trace) == 1
    assert [e.iteration for e in done.events] == [1]
    assert done.stats is None  # an ended climb has nothing to go back to


@pytest.mark.parametrize("rule", RULES)
def test_a_climb_goes_on_from_any_state_to_the_same_bits(model: Overshooting, rule: str) -> None:
    states: list[Climb] = []
    rules = Rules(0.0, 25, RULES[rule])
    wanted = climb(_task(model), Climb(model.start), rules, states.append)
    for state in states[:-1]:
        require_same("goes on", climb(_task(model), state, rules), wanted)


@pytest.mark.parametrize("at", [1, 2, 5, 9])
def test_ctrl_c_gives_the_last_step_that_was_kept(model: Overshooting, at: int) -> None:
    def interrupt(n: int) -> None:
        if n == at:
            raise KeyboardInterrupt

    done = climb(_task(model, before=interrupt), Climb(model.start), Rules(0.0, 100))
    assert done.reason == "interrupted" and done.n_passes == at
    assert done.objective == _objective(model, done.best) == max(done.trace)
    later = climb(_task(model), replace(done, reason=""), Rules(0.0, 30))
    require_same("goes on", later, climb(_task(model), Climb(model.start), Rules(0.0, 30)))


def test_the_time_budget_may_end_between_a_step_and_its_return(
    model: Overshooting, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end in range(1, 8):
        clock = iter(range(100))
        monkeypatch.setattr(
            budget, "time", SimpleNamespace(monotonic=lambda clock=clock: next(clock))
        )
        done = climb(_task(model), Climb(model.start), Rules(0.0, 100, deadline=Deadline(end)))
        assert done.reason == "time_budget" and done.n_passes == end + 1
        assert done.objective == _objective(model, done.best)


def test_a_warm_start_takes_the_length_over(model: Overshooting) -> None:
    rules = Rules(1e-6, 500)
    first = climb(_task(model), Climb(model.start), rules)
    again = climb(_task(model), resume_climb(first.best, first), rules)
    assert again.reason == "converged" and again.n_iter == 0
    half = climb(_task(model), Climb(model.start), Rules(0.0, 10))
    rest = climb(_task(model), resume_climb(half.best, half), Rules(0.0, 5))
    whole = climb(_task(model), Climb(model.start), Rules(0.0, 15))
    require_same("goes on", rest.trace, whole.trace)
    X = np.arange(20.0).reshape(10, 2) + 5
    other = climb(_task(model, X), resume_climb(half.best, half), Rules(0.0, 5))
    fresh = climb(_task(model, X), Climb(half.best), Rules(0.0, 5))
    require_same("other data", other.trace, fresh.trace)


def test_where_no_length_gains_the_model_is_asked_once_more(model: Overshooting) -> None:
    """It may know another step, and has found its end if it does not."""

    class Downhill(Overshooting):
        def update(self, params: Array, stats: BowlStats, context: Context) -> Update[Array]:
            if not context.length:
                return Update(params if np.allclose(params, BEST) else BEST)
            return Update(params - context.length, length=context.length)

        def objective(self, params: Array, stats: BowlStats) -> float:
            return -float(np.abs(params - BEST).sum())  # falls beyond rounding at any length

    downhill = Downhill(model.curvature, model.damping, BEST)
    done = climb(_task(downhill), Climb(BEST), Rules(1e-6, 500))
    assert (done.reason, done.n_iter, len(done.trace)) == ("converged", 0, 1)
    assert done.remaining == 0 and done.best is BEST
    assert done.n_passes == pytest.approx(1 + np.log2(1 / SHORTEST), abs=1)
    elsewhere = climb(_task(downhill), Climb(BEST - 1), Rules(1e-6, 500))
    assert elsewhere.best is BEST and elsewhere.n_iter == 1 and elsewhere.reason == "converged"


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_step_to_no_objective_is_taken_back(model: Overshooting, value: float) -> None:
    class Walled(Overshooting):
        def objective(self, params: Array, stats: BowlStats) -> float:
            return value if (params > 11).any() else super().objective(params, stats)

    walled = Walled(model.curvature, model.damping, model.start)
    done = climb(_task(walled), Climb(model.start), Rules(1e-9, 500))
    np.testing.assert_allclose(done.best, BEST, atol=1e-3)
    assert np.isfinite(done.trace).all()


def test_a_model_may_end_a_step_shorter_than_it_was_allowed(model: Overshooting) -> None:
    class Careful(Overshooting):
        def update(self, params: Array, stats: BowlStats, context: Context) -> Update[Array]:
            return super().update(params, stats, replace(context, length=min(context.length, 0.1)))

    careful = Careful(model.curvature, model.damping, model.start)
    done = climb(_task(careful), Climb(model.start), Rules(0.0, 9))
    assert done.n_passes == 10  # no step was too long
    assert done.length == pytest.approx(0.1 * LENGTHEN)


def test_models_without_tentative_steps_keep_no_statistics() -> None:
    bowl = Bowl(np.diag([1.0, 0.1]), np.array([1.5, 1.5]), np.array([9.0, -9.0]))
    states: list[Climb] = []
    climb(_task(bowl), Climb(bowl.start), Rules(0.0, 5), states.append)
    assert all(s.stats is None and s.length == 1 and not s.tentative for s in states)


def test_gains_of_steps_whose_lengths_differ_are_taken_together() -> None:
    """Gains that halve every four steps, each four of them uneven: what is left is known."""
    uneven = np.array([0.1, 0.4, 0.2, 0.3])
    gains = np.concatenate([uneven * 0.5**i for i in range(5)])
    values = np.concatenate([[0.0], np.cumsum(gains)])
    assert remaining_gain(values, tentative=True) == pytest.approx(2.0 - values[-1])
    assert remaining_gain(values) == np.inf
    assert remaining_gain(values[: 2 * STEPS_TOGETHER], tentative=True) == np.inf
