"""Starts whose first steps are made together are where they would be by themselves."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Array, Event, changed
from mixfold.engine import loop
from mixfold.engine.acceleration import QuasiNewton
from mixfold.engine.climb import climb
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import LateGenerator
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task
from mixfold.engine.together import first_steps
from mixfold.families.diagonal import DiagonalGaussian
from mixfold.families.full import FullGaussian
from mixfold.families.spherical import SphericalGaussian
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing.toys import Serial

RULES = Rules(tol=1e-6, acceleration=QuasiNewton())


def table(seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(3 * k, 1 + 0.3 * k, (40, 3)) for k in range(3)])


def task_of(X: Array, K: int = 3, family: type[Any] = FullGaussian, **sides: Any) -> Task:
    source = open_source(X, **sides)
    pilot = draw_pilot(source, Serial(), len(X), 0)
    model = Mixture(K, family(floor=1e-6))
    return Task(model, source, Serial(), pilot, 0)


def starts(task: Task, n: int) -> list[Climb]:
    rng = np.random.default_rng(1)
    return [Climb(task.model.initialise(task.pilot, rng, i)) for i in range(n)]


def check_same(one: Any, other: Any) -> None:
    """Climbs, points and parameters, whose numbers may differ by rounding."""
    if isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            check_same(a, b)
    elif hasattr(one, "__dataclass_fields__"):
        assert type(one) is type(other)
        for name, f in one.__dataclass_fields__.items():
            if f.compare:
                check_same(getattr(one, name), getattr(other, name))
    elif isinstance(one, float | np.ndarray):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    else:
        assert one == other


@pytest.mark.parametrize("family", [FullGaussian, DiagonalGaussian, SphericalGaussian])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_climb_is_where_it_would_be_by_itself(weighted: bool, family: type[Any]) -> None:
    X = table(0)
    weight = np.random.default_rng(2).integers(1, 4, len(X)) if weighted else None
    task = task_of(X, family=family, weight=weight)
    climbs = starts(task, 6)
    made = first_steps(task, climbs, RULES, 4)
    assert made is not None and sum(c is not None for c in made.climbs) >= 4
    for place, (start, known) in enumerate(zip(climbs, made.climbs, strict=True)):
        if known is None:
            continue
        alone = climb(task, start, replace(RULES, max_iter=10**9), max_passes=4)
        whole = made.whole(task, RULES, place)
        check_same(whole, alone)
        assert whole.best is made.steps[place][-1].params
        # and so is what follows
        check_same(
            climb(task, whole, RULES, max_passes=6).objective,
            climb(task, alone, RULES, max_passes=6).objective,
        )


def test_a_start_that_needs_more_than_steps_is_left_to_itself() -> None:
    task = task_of(table(0)[::3], 5)  # few rows for so many components: some are spikes
    climbs = starts(task, 8)
    made = first_steps(task, climbs, RULES, 4)
    assert made is not None
    alone = [climb(task, c, replace(RULES, max_iter=10**9), max_passes=4) for c in climbs]
    told = [bool(c.events) for c in alone]
    assert any(told) and not all(told)
    assert sum(c is not None for c in made.climbs) >= 2
    for known, events in zip(made.climbs, told, strict=True):
        assert known is None or not events


@pytest.mark.parametrize(
    "change",
    [
        lambda X: {"X": X, "y": np.where(np.arange(len(X)) < 3, 0, -1)},
        lambda X: {"X": np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X)},
        lambda X: {"X": X.astype(np.float32)},
        lambda X: {"X": np.tile(X, (12, 1))},  # more rows than a small block has
    ],
)
def test_what_is_not_offered_is_refused(change: Any) -> None:
    task = task_of(**change(table(0)))
    assert first_steps(task, starts(task, 3), RULES, 4) is None


def test_more_steps_than_plain_ones_are_refused() -> None:
    task = task_of(table(0))
    assert first_steps(task, starts(task, 3), RULES, RULES.warm_up + 1) is None
    assert first_steps(task, starts(task, 1), RULES, 4) is None


def test_a_race_ends_as_it_would_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of(table(5))
    mine = loop._race(task, starts(task, 12), RULES, loop.RACE)
    monkeypatch.setattr(loop, "first_steps", lambda *_: None)
    theirs = loop._race(task, starts(task, 12), RULES, loop.RACE)
    assert len(mine) == len(theirs)
    np.testing.assert_allclose(
        [c.objective for c in mine], [c.objective for c in theirs], rtol=1e-9
    )
    assert [c.n_passes for c in mine] == [c.n_passes for c in theirs]


# ------------------------------------------------ what makes passes cheap


def test_changed_is_replace() -> None:
    one = Climb("params", trace=(1.0,), events=(Event("floor", "low"),))
    assert changed(one, n_iter=3, reason="x") == replace(one, n_iter=3, reason="x")
    assert one.n_iter == 0
    with pytest.raises(TypeError, match="no field 'n_itre'"):
        changed(one, n_itre=3)


def test_a_late_generator_draws_what_the_generator_draws() -> None:
    late = LateGenerator(3, 5)
    copy = pickle.loads(pickle.dumps(late))
    wanted = np.random.default_rng([3, 5])
    np.testing.assert_array_equal(late.random(3), wanted.random(3))
    np.testing.assert_array_equal(late.integers(9, size=3), wanted.integers(9, size=3))
    np.testing.assert_array_equal(copy.random(3), np.random.default_rng([3, 5]).random(3))
