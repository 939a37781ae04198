"""One climb: when it stops, what it keeps, how it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Event, Update
from mixfold.engine import budget
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.budget import OVER, Deadline
from mixfold.engine.climb import climb
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task
from mixfold.testing.compare import require_same
from mixfold.testing.toys import Bowl, Serial

RULES = {"plain": None, **ACCELERATIONS}


@pytest.fixture
def bowl() -> Bowl:
    return Bowl(np.diag([1.0, 0.1]), np.array([1.5, 1.5]), np.array([9.0, -9.0]))


def _task(model: Any, X: Any = None, before: Any = None, **sides: Any) -> Task:
    X = np.arange(20.0).reshape(10, 2) if X is None else X
    return Task(model, open_source(X, **sides), Serial(before), None, 0)


@contextmanager
def _no_escape() -> Iterator[None]:
    """An interrupt that gets through would end the test run, not the test."""
    try:
        yield
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C lost what had been found")


# ------------------------------------------------ stopping


def test_converged_means_that_nothing_is_left(bowl: Bowl) -> None:
    task = _task(bowl)
    done = climb(task, Climb(bowl.start), Rules(1e-6, 10_000))
    assert done.reason == "converged"
    best = bowl.objective(
        np.array([9.0, 10.0]), bowl.expect(bowl.start, next(task.source.blocks()), None)
    )  # type: ignore[arg-type]
    left = best - done.objective
    assert 0 <= left <= 2e-6 * 10  # tol is per unit of weight
    assert done.remaining == pytest.approx(left, rel=0.1)
    loose = climb(task, Climb(bowl.start), Rules(1e-2, 10_000))
    assert loose.n_iter < done.n_iter
    assert 1e-5 < best - loose.objective <= 2e-2 * 10


def test_max_iter(bowl: Bowl) -> None:
    done = climb(_task(bowl), Climb(bowl.start), Rules(0.0, 7))
    assert (done.reason, done.n_iter, done.n_passes, len(done.trace)) == ("max_iter", 7, 8, 8)
    none = climb(_task(bowl), Climb(bowl.start), Rules(0.0, 0))
    assert none.reason == "max_iter" and none.n_iter == 0
    np.testing.assert_array_equal(none.best, bowl.start)  # visited, so that it has an objective


def test_the_result_belongs_to_the_last_value_of_the_trace(bowl: Bowl) -> None:
    task = _task(bowl)
    stats = bowl.expect(bowl.start, next(task.source.blocks()), None)  # type: ignore[arg-type]
    for rule in RULES.values():
        done = climb(task, Climb(bowl.start), Rules(0.0, 9, rule))
        assert done.objective == bowl.objective(done.best, stats)


def test_time_budget(bowl: Bowl, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    done = climb(_task(bowl), Climb(bowl.start), Rules(0.0, 1000, deadline=Deadline(3)))
    assert done.reason == "time_budget" and done.n_passes == 4


def test_a_deadline_in_the_past_still_gives_a_result(bowl: Bowl) -> None:
    done = climb(_task(bowl), Climb(bowl.start), Rules(0.0, 1000, deadline=OVER))
    assert done.reason == "time_budget" and np.isfinite(done.objective)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("at", [1, 6, 11])
def test_ctrl_c_in_a_pass_returns_the_best_so_far(bowl: Bowl, rule: str, at: int) -> None:
    def interrupt(n: int) -> None:
        if n == at:
            raise KeyboardInterrupt

    done = climb(_task(bowl, before=interrupt), Climb(bowl.start), Rules(0.0, 100, RULES[rule]))
    assert done.reason == "interrupted" and done.n_passes == at
    stats = bowl.expect(bowl.start, next(_task(bowl).source.blocks()), None)  # type: ignore[arg-type]
    assert bowl.objective(done.best, stats) == done.objective == max(done.trace)
    # once the hand is off the keyboard it goes on as if nothing had been
    later = climb(_task(bowl), replace(done, reason=""), Rules(0.0, 30, RULES[rule]))
    wanted = climb(_task(bowl), Climb(bowl.start), Rules(0.0, 30, RULES[rule]))
    require_same("goes on", later, wanted)


def test_ctrl_c_before_there_is_anything_is_passed_on(bowl: Bowl) -> None:
    def interrupt(n: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        climb(_task(bowl, before=interrupt), Climb(bowl.start), Rules())


def test_ctrl_c_while_the_state_is_shown_or_stored_returns_the_best_so_far(bowl: Bowl) -> None:
    def watch(state: Climb) -> None:
        if state.n_passes == 4:
            raise KeyboardInterrupt

    with _no_escape():
        done = climb(_task(bowl), Climb(bowl.start), Rules(0.0, 100), watch)
    assert done.reason == "interrupted" and len(done.trace) == 4


def test_watchers_see_every_state(bowl: Bowl) -> None:
    states: list[Climb] = []
    done = climb(_task(bowl), Climb(bowl.start), Rules(0.0, 5), states.append)
    assert [s.n_passes for s in states] == [1, 2, 3, 4, 5, 6]
    assert states[-1] is done and all(not s.reason for s in states[:-1])


# ------------------------------------------------ odd objectives


def test_an_objective_that_is_no_number_is_an_error(bowl: Bowl) -> None:
    class Broken(Bowl):
        def objective(self, params: Any, stats: Any) -> float:
            return float("nan") if params[0] < 9.3 else -float(params[0])

    model = Broken(bowl.curvature, bowl.damping, np.array([12.0, 0.0]))
    with pytest.raises(FloatingPointError, match=r"became nan in iteration \d+.*rescale"):
        climb(_task(model), Climb(model.start), Rules(0.0, 50))


def test_a_falling_objective_is_told(bowl: Bowl) -> None:
    class Falling(Bowl):
        def update(self, params: Any, stats: Any, context: Any) -> Update[Any]:
            return Update(params - (context.iteration == 3))

    model = Falling(bowl.curvature, bowl.damping, np.array([1.0, 1.0]))
    done = climb(_task(model), Climb(model.start), Rules(-1.0, 6))
    (event,) = done.events
    assert event.kind == "fall" and event.iteration == 3 and "fell from" in event.message


def test_a_repair_may_lower_the_objective_and_restarts_the_projection(bowl: Bowl) -> None:
    class Repaired(Bowl):
        def update(self, params: Any, stats: Any, context: Any) -> Update[Any]:
            if context.iteration == 4:
                told = (Event("reseed", "moved", 4, 0),)
                return Update(params - 30.0, told, monotone=False)
            return super().update(params, stats, context)

    model = Repaired(bowl.curvature, bowl.damping, bowl.start)
    states: list[Climb] = []
    done = climb(
        _task(model),
        Climb(model.start),
        Rules(1e-6, 500, ACCELERATIONS["quasi-newton"]),
        states.append,
    )
    assert [e.kind for e in done.events] == ["reseed"]
    assert done.trace[4] < done.trace[3] and done.reason == "converged"
    np.testing.assert_allclose(done.best, [9, 10], atol=0.05)
    after = next(s for s in states if len(s.trace) == 5)
    assert after.plain == 1 and after.remaining == np.inf


def test_the_same_event_is_told_once_per_component(bowl: Bowl) -> None:
    class Chatty(Bowl):
        def update(self, params: Any, stats: Any, context: Any) -> Update[Any]:
            k = context.iteration % 2
            told = (Event("drop", "gone", context.iteration, k), Event("reseed", "moved", 0, 0))
            return Update(super().update(params, stats, context).params, told)

    model = Chatty(bowl.curvature, bowl.damping, bowl.start)
    done = climb(_task(model), Climb(model.start), Rules(0.0, 6))
    drops = [(e.component, e.iteration) for e in done.events if e.kind == "drop"]
    assert drops == [(1, 1), (0, 2)]
    assert sum(e.kind == "reseed" for e in done.events) == 6


def test_a_floor_that_was_left_again_is_not_told(bowl: Bowl) -> None:
    class Rising(Bowl):
        def update(self, params: Any, stats: Any, context: Any) -> Update[Any]:
            low = (Event("floor", "low", context.iteration, 1),)
            early = (Event("floor", "low", context.iteration, 0),) if context.iteration < 3 else ()
            return Update(super().update(params, stats, context).params, low + early)

    model = Rising(bowl.curvature, bowl.damping, bowl.start)
    done = climb(_task(model), Climb(model.start), Rules(0.0, 6))
    assert [(e.component, e.iteration) for e in done.events] == [(1, 1)]
