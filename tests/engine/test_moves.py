"""Moves: what raises the objective is followed, nothing else is, and no key press loses a fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Array, Block, Context, Event, Pilot, Stats, Update
from mixfold.engine.budget import OVER
from mixfold.engine.climb import climb
from mixfold.engine.moves import TRIAL_STEPS, improve_by_moves
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task
from mixfold.testing.toys import Serial


@dataclass(frozen=True)
class _Weight(Stats):
    weight: float


@dataclass(frozen=True)
class Hills:
    """Steps of a tenth of the way towards the nearest whole number, worth 100 times itself.

    A climb ends on the hill where it began; proposals are other places.
    """

    proposals: tuple[float, ...] = ()
    asked: list[float] = field(default_factory=list)
    events: bool = False

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> Array:
        return np.array(0.2)

    def prepare(self, params: Array) -> Array:
        return params

    def expect(self, reading: Array, block: Block, rng: Any) -> _Weight:
        return _Weight(float(block.weights().sum()))

    def objective(self, params: Array, stats: Any) -> float:
        top = np.round(params)
        return float(100 * top - (params - top) ** 2)

    def update(self, params: Array, stats: Any, context: Context) -> Update[Array]:
        told = (Event("floor", "low", context.iteration, int(np.round(params))),)
        step = np.asarray(params + 0.7 * (np.round(params) - params))
        return Update(step, told if self.events else ())

    def total_weight(self, stats: _Weight) -> float:
        return stats.weight

    def entropy(self, stats: Any) -> float:
        return 0.0

    def derivatives(self, params: Array, stats: Any) -> None:
        return None

    def moves(self, params: Array, stats: Any, pilot: Pilot, rng: Any) -> Iterator[Array]:
        self.asked.append(float(params))
        for place in self.proposals:
            yield np.asarray(np.round(params) + place)


RULES = Rules(1e-6, 200)


def _task(model: Hills, before: Any = None) -> Task:
    source = open_source(np.zeros((10, 1)))
    executor = Serial(before)
    return Task(model, source, executor, draw_pilot(source, Serial(), 10, 0), 0)


def _climbed(model: Hills, rounds: int, before: Any = None, rules: Rules = RULES) -> Climb:
    task = _task(model)
    done = climb(task, Climb(np.array(0.2)), rules)
    assert done.reason == "converged"
    return improve_by_moves(_task(model, before), done, rules, rounds).done


def test_the_first_proposal_that_ends_above_is_followed() -> None:
    model = Hills((-1.2, 0.3, 1.3, 2.3))
    done = _climbed(model, 1)
    assert round(float(done.best)) == 1 and done.objective == pytest.approx(100, abs=1e-4)
    assert done.reason == "converged" and len(model.asked) == 1


def test_moves_go_on_while_they_help_and_no_longer_than_allowed() -> None:
    for rounds in (1, 2, 5):
        model = Hills((1.3,))
        done = _climbed(model, rounds)
        assert round(float(done.best)) == rounds and len(model.asked) == rounds


def test_nothing_above_leaves_the_climb_as_it_was() -> None:
    model = Hills((-1.3, 0.4, -0.4))
    plain = climb(_task(model), Climb(np.array(0.2)), RULES)
    done = _climbed(model, 5)
    assert len(model.asked) == 1
    # but for what it cost
    assert done.n_passes > plain.n_passes
    assert replace(done, n_passes=0) == replace(plain, n_passes=0)


def test_the_trace_rises_and_passes_are_counted() -> None:
    model = Hills((-1.3, 1.4), events=True)
    executor = Serial()
    task = replace(_task(model), executor=executor)
    done = climb(task, Climb(np.array(0.2)), RULES)
    done = improve_by_moves(task, done, RULES, 2).done
    assert (np.diff(done.trace) >= 0).all()
    assert done.n_passes == executor.n_passes
    assert done.objective == pytest.approx(200, abs=1e-4)
    assert {e.component for e in done.events} == {0, 1, 2}


def test_a_proposal_has_a_few_steps_to_show_its_worth() -> None:
    class Slow(Hills):
        def update(self, params: Array, stats: Any, context: Context) -> Update[Array]:
            if params > 0.5 and context.iteration <= TRIAL_STEPS + 5:
                return Update(np.asarray(params + 1e-9))
            return super().update(params, stats, context)

        def objective(self, params: Array, stats: Any) -> float:
            slow = 0.5 < params < 0.99
            return -5.0 + float(params) if slow else super().objective(params, stats)

    model = Slow((0.7,))
    done = _climbed(model, 3, rules=replace(RULES, tol=1e-12))
    assert round(float(done.best)) == 0


def test_earlier_values_of_a_warm_start_stay_apart() -> None:
    model = Hills((1.3,))
    done = climb(_task(model), Climb(np.array(0.2)), RULES)
    warm = improve_by_moves(_task(model), replace(done, earlier=3), RULES, 1).done
    assert warm.earlier == 3 and warm.trace[: len(done.trace)] == done.trace


@pytest.mark.parametrize("at", [0, 1, 2, 6])
def test_ctrl_c_returns_the_best_so_far(at: int) -> None:
    """Before the first proposal, in its first pass, later on, and while it is followed."""

    def interrupt(n: int) -> None:
        if n == at:
            raise KeyboardInterrupt

    try:
        done = _climbed(Hills((-1.3, 1.3)), 3, interrupt)
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C lost what had been found")
    assert done.reason == "interrupted"
    assert done.objective >= -1e-4


def test_the_deadline_ends_the_moves() -> None:
    late = replace(RULES, deadline=OVER)
    model = Hills((-1.3, 1.3))
    done = climb(_task(model), Climb(np.array(0.2)), RULES)
    done = improve_by_moves(_task(model), done, late, 3).done
    assert done.reason == "time_budget" and done.objective >= -1e-4


def test_a_climb_that_did_not_converge_is_not_moved() -> None:
    model = Hills((1.3,))
    done = climb(_task(model), Climb(np.array(0.2)), Rules(1e-6, 1))
    assert improve_by_moves(_task(model), done, RULES, 3).done is done and not model.asked
