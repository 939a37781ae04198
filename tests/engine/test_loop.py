"""The fit as a whole: starts, restarts, checkpoints, Ctrl-C, budgets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Event
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.checkpoints import Checkpoint
from mixfold.engine.loop import Fit, Plan, _group_equal, fit, pilot_size
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing.compare import require_same
from mixfold.testing.tables import clustered_table
from mixfold.testing.toys import Bowl, Serial

RULES = {"plain": None, **ACCELERATIONS}
MODEL = Mixture(3, GAUSSIAN["full"]())


def _X(n: int = 150) -> np.ndarray:
    return clustered_table(n, 3, 3, seed=2)


def _fit(plan: Plan, checkpoint: Checkpoint | None = None, before: Any = None, **other: Any) -> Fit:
    return fit(
        other.pop("model", MODEL),
        open_source(_X()),
        Serial(before),
        plan,
        checkpoint=checkpoint,
        **other,
    )


def _interrupt(at: int) -> Any:
    def before(n: int) -> None:
        if n == at:
            raise KeyboardInterrupt

    return before


@contextmanager
def _no_escape() -> Iterator[None]:
    """An interrupt that gets through would end the test run, not the test."""
    try:
        yield
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C lost what had been found")


# ------------------------------------------------ restarts and starts


def test_the_best_restart_wins() -> None:
    """Starts 0, 10, 20 of a bowl that may take three steps: the nearest gets furthest."""

    class Starts(Bowl):
        def initialise(self, pilot: Any, rng: Any, attempt: int = 0) -> Any:
            return np.array([30.0, 10.0, 20.0])[attempt] * np.ones(3)

    model = Starts(np.eye(3), np.full(3, 4.0))
    result = _fit(Plan(0.0, 3, n_init=3, n_candidates=1), model=model)
    alone = _fit(Plan(0.0, 3, n_candidates=1), start=np.full(3, 10.0), model=model)
    require_same("best restart", result.params, alone.params)
    assert result.objective == alone.objective == result.trace[-1]


def test_candidates_are_compared_after_some_steps() -> None:
    seen: list[int] = []

    class Starts(Bowl):
        def initialise(self, pilot: Any, rng: Any, attempt: int = 0) -> Any:
            seen.append(attempt)
            return np.full(3, 10.0 * (1 + abs(attempt - 2)))

    model = Starts(np.eye(3), np.full(3, 4.0))
    _fit(Plan(0.0, 0, n_init=2, n_candidates=4), model=model)
    assert seen == list(range(8))  # each restart tries starts of its own
    seen.clear()
    result = _fit(Plan(0.0, 0, n_candidates=4), model=model)
    # the nearest of the first four, moved on towards the mean
    assert (result.params < 10).all()


def test_a_given_start_is_the_only_one() -> None:
    start = _fit(Plan(0.0, 4, n_candidates=1)).params
    result = _fit(Plan(0.0, 0, n_init=5), start=start)
    require_same("given start", result.params, start)
    assert result.n_passes == 1


def test_a_fit_is_repeatable_and_depends_on_its_seed() -> None:
    one, again = _fit(Plan(seed=3)), _fit(Plan(seed=3))
    require_same("seed", one.params, again.params)
    starts = [_fit(Plan(max_iter=0, n_candidates=1, seed=s)).objective for s in range(5)]
    assert len(set(starts)) > 1


def test_the_result_says_how_it_came_about() -> None:
    result = _fit(Plan(1e-6, 500, acceleration=ACCELERATIONS["quasi-newton"]))
    assert result.converged and result.reason == "converged"
    assert result.remaining <= 1e-6 * 150 and result.weight == 150
    assert result.trace[-1] == result.objective and len(result.trace) == result.n_iter + 1
    assert result.n_passes >= len(result.trace)
    assert not _fit(Plan(0.0, max_iter=2)).converged


def test_pilot_sizes() -> None:
    assert pilot_size(open_source(np.zeros((300, 2))), 3) == 5000
    assert pilot_size(open_source(np.zeros((200_000, 2))), 3) == 10_000
    assert pilot_size(open_source(np.zeros((30, 4000))), 60) == 1500  # 25 rows per component
    assert pilot_size(open_source(np.zeros((30, 4000))), 200) == 2 * (2**22 // 4000)  # if they fit
    assert pilot_size(open_source(np.zeros((30, 4000))), 3000) == 3000
    assert pilot_size(open_source(np.zeros((30, 9000))), 2) == 2**22 // 9000


def test_fits_with_default_settings_do_not_crash() -> None:
    """Eight easy tables, accelerated: a wild proposal must not end a fit."""
    for seed in range(8):
        X = clustered_table(300, 4, 4, seed=seed)
        model = Mixture(4, GAUSSIAN["full"]())
        plan = Plan(acceleration=ACCELERATIONS["quasi-newton"])
        result = fit(model, open_source(X), Serial(), plan)
        assert np.isfinite(result.objective)
        assert not [e for e in result.events if e.kind == "fall"]


# ------------------------------------------------ interrupts and budgets


def test_ctrl_c_ends_the_fit_with_the_best_so_far() -> None:
    with _no_escape():
        result = _fit(Plan(0.0, 50, n_candidates=1), before=_interrupt(9))
    assert result.reason == "interrupted" and result.n_passes == 8  # the first pass was the pilot's
    wanted = _fit(Plan(0.0, 7, n_candidates=1))
    require_same("best so far", result.params, wanted.params)


def test_ctrl_c_in_a_later_restart_keeps_the_earlier_ones() -> None:
    plan = Plan(0.0, 5, n_init=3, n_candidates=1)
    first = _fit(Plan(0.0, 5, n_candidates=1))
    for at in (7, 8, 10):  # pilot, six passes of the first restart, then the second
        with _no_escape():
            result = _fit(plan, before=_interrupt(at))
        assert result.reason == "interrupted"
        assert result.objective >= first.objective


def test_ctrl_c_while_starts_are_compared_ends_the_fit() -> None:
    executor = Serial(_interrupt(4))
    try:
        result = fit(MODEL, open_source(_X()), executor, Plan(0.0, 40, n_candidates=4))
    except KeyboardInterrupt:
        return
    assert result.reason == "interrupted" and executor.n_passes <= 8


def test_a_time_budget_ends_all_restarts() -> None:
    executor = Serial()
    plan = Plan(0.0, 1000, n_init=50, n_candidates=1, time_budget=1e-9)
    result = fit(MODEL, open_source(_X()), executor, plan)
    assert result.reason == "time_budget" and np.isfinite(result.objective)
    assert executor.n_passes == 2  # the pilot, and one pass


def test_starts_race_and_the_first_of_those_that_have_met_stands_for_all() -> None:
    """Groups are best first, those with spikes last; rounding does not order what has met."""

    def made(name: str, objective: float, *kinds: str) -> Climb:
        events = tuple(Event(kind, "") for kind in kinds)
        return Climb(name, trace=(objective,), weight=10.0, events=events)

    climbs = [
        made("low", -5.0),
        made("a", -1.0),
        made("spike", 9.0, "floor"),
        made("b", -1.0 + 1e-12),
        made("thin", -3.0, "thin", "outlier"),
        made("c", -1.0 - 1e-9),
    ]
    groups = [[c.params for c in group] for group in _group_equal(climbs)]
    assert groups == [["a", "b", "c"], ["thin"], ["low"], ["spike"]]
