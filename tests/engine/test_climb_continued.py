"""A climb that goes on, from a file or after an earlier one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Update
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.checkpoints import Checkpoint, Progressed
from mixfold.engine.climb import climb
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task, resume_climb
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing import Case
from mixfold.testing.compare import require_same
from mixfold.testing.tables import clustered_table
from mixfold.testing.toys import Bowl, Serial

RULES = {"plain": None, **ACCELERATIONS}


@pytest.fixture
def bowl() -> Bowl:
    return Bowl(np.diag([1.0, 0.1]), np.array([1.5, 1.5]), np.array([9.0, -9.0]))


def _task(model: Any, X: Any = None, before: Any = None, **sides: Any) -> Task:
    X = np.arange(20.0).reshape(10, 2) if X is None else X
    return Task(model, open_source(X, **sides), Serial(before), None, 0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["full", "tied", "tied-spherical"])
def test_a_stored_climb_goes_on_to_the_same_bits(rule: str, kind: str, tmp_path: Any) -> None:
    X = clustered_table(150, 3, 3, 0.1, seed=2)
    model = Mixture(3, GAUSSIAN[kind]())
    case = Case(model, X)
    rules = Rules(0.0, 25, RULES[rule])
    states: list[Climb] = []
    wanted = climb(_task(model, X), Climb(case.start()), rules, states.append)
    assert rule == "plain" or any(s.proposal is not None for s in states)
    path = tmp_path / "state.mixfold"
    for state in states[1:-1:4]:
        Checkpoint(path, {}).write(Progressed(0, 0, state, None))
        read = Checkpoint(path, {}).read()
        assert read is not None and read.climb is not None
        done = climb(_task(model, X), read.climb, rules)
        require_same("goes on", done.best, wanted.best)
        require_same("goes on", done.trace, wanted.trace)
        assert done.n_passes == wanted.n_passes and done.n_iter == wanted.n_iter


def test_a_warm_start_remembers_how_the_last_climb_ended(bowl: Bowl) -> None:
    first = climb(_task(bowl), Climb(bowl.start), Rules(1e-3, 1000))
    again = climb(_task(bowl), resume_climb(first.best, first), Rules(1e-3, 1000))
    assert again.reason == "converged" and again.n_iter == 0
    assert again.trace[again.earlier :] == first.trace[-1:]
    fresh = climb(_task(bowl), Climb(first.best), Rules(1e-3, 1000))
    assert fresh.n_iter > 0  # without the memory it must look again


@pytest.mark.parametrize("rule", RULES)
def test_a_continued_climb_makes_the_steps_of_an_unbroken_one(bowl: Bowl, rule: str) -> None:
    half = climb(_task(bowl), Climb(bowl.start), Rules(0.0, 11, RULES[rule]))
    rest = climb(_task(bowl), resume_climb(half.best, half), Rules(0.0, 9, RULES[rule]))
    whole = climb(_task(bowl), Climb(bowl.start), Rules(0.0, 20, RULES[rule]))
    assert rest.objective >= whole.trace[15]  # no worse for the break than a few steps
    assert (np.diff(rest.trace) >= -1e-12 * np.abs(rest.trace[1:])).all()


def test_the_memory_of_other_data_is_not_believed(bowl: Bowl) -> None:
    first = climb(_task(bowl), Climb(bowl.start), Rules(1e-3, 1000))
    X = np.arange(20.0).reshape(10, 2) + 5
    other = climb(_task(bowl, X), resume_climb(first.best, first), Rules(1e-3, 1000))
    wanted = climb(_task(bowl, X), Climb(first.best), Rules(1e-3, 1000))
    assert other.trace == wanted.trace and other.n_iter == wanted.n_iter > 1


def test_a_fixed_point_has_converged(bowl: Bowl) -> None:
    class Fixed(Bowl):
        def update(self, params: Any, stats: Any, context: Any) -> Update[Any]:
            stay = context.iteration == 3
            return Update(params) if stay else super().update(params, stats, context)

    model = Fixed(bowl.curvature, bowl.damping, bowl.start)
    done = climb(_task(model), Climb(model.start), Rules(0.0, 50))
    assert (done.reason, done.remaining, done.n_passes) == ("converged", 0.0, 3)


def test_rows_weigh_in_the_tolerance(bowl: Bowl) -> None:
    weights = np.full(10, 1000.0)
    light = climb(_task(bowl), Climb(bowl.start), Rules(1e-4, 5000))
    heavy = climb(_task(bowl, weight=weights), Climb(bowl.start), Rules(1e-4, 5000))
    assert light.n_iter == heavy.n_iter and heavy.weight == 10_000
    np.testing.assert_allclose(light.best, heavy.best)
