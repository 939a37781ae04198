"""Extrapolation between steps is guarded: it may cost passes, never the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mixfold.engine.acceleration import ACCELERATIONS, Proposal
from mixfold.engine.climb import climb
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task
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


@dataclass(frozen=True)
class Astray:
    """Proposes the same place again and again."""

    x: np.ndarray
    memory: int = 1

    def propose(self, points: Any, failures: Any) -> Proposal | None:
        return None if len(failures) > 1 else Proposal(self.x)


@pytest.mark.parametrize("where", [1e6, np.inf, np.nan], ids=["far", "inf", "nan"])
def test_nonsense_costs_passes_but_changes_nothing(bowl: Bowl, where: float) -> None:
    plain = climb(_task(bowl), Climb(bowl.start), Rules(0.0, 12))
    astray = climb(_task(bowl), Climb(bowl.start), Rules(0.0, 12, Astray(np.full(2, where))))
    assert astray.trace == plain.trace
    np.testing.assert_array_equal(astray.best, plain.best)
    # of the 7 steps after the warm-up it is tried at the 1st, 3rd and 6th, twice each: after
    # giving up it rests for 1, then 2, then 4 steps
    assert Rules().warm_up == 5
    rejected = 2 * 3 if where == 1e6 else 0
    assert astray.n_passes == plain.n_passes + rejected


def test_a_place_without_parameters_is_left_out(bowl: Bowl) -> None:
    class Picky(Bowl):
        def from_coordinates(self, params: Any, vector: Any) -> Any:
            return None

    model = Picky(bowl.curvature, bowl.damping, bowl.start)
    done = climb(_task(model), Climb(bowl.start), Rules(0.0, 12, ACCELERATIONS["quasi-newton"]))
    assert done.trace == climb(_task(bowl), Climb(bowl.start), Rules(0.0, 12)).trace


@pytest.mark.parametrize("seed", [1, 5, 7])
def test_an_extrapolation_without_a_covariance_does_not_end_a_fit(seed: int) -> None:
    """A long step in log-Cholesky coordinates can overflow what a matrix can hold."""

    @dataclass(frozen=True)
    class Long:
        memory: int = 1

        def propose(self, points: Any, failures: Any) -> Proposal | None:
            rng = np.random.default_rng(seed)
            step = 60 * rng.standard_normal(points[-1].x.shape)
            return None if failures else Proposal(points[-1].x + step)

    case = Case(Mixture(3, GAUSSIAN["full"]()), clustered_table(120, 4, 3))
    plain = climb(_task(case.model, case.X), Climb(case.start()), Rules(0.0, 8))
    done = climb(_task(case.model, case.X), Climb(case.start()), Rules(0.0, 8, Long()))
    assert done.trace == plain.trace


@pytest.mark.parametrize("kind", sorted(GAUSSIAN))
@pytest.mark.parametrize("rule", ACCELERATIONS)
@pytest.mark.parametrize("missing", [0.0, 0.1], ids=["complete", "with NaN"])
def test_accelerated_mixtures_end_where_em_ends(kind: str, rule: str, missing: float) -> None:
    case = Case(Mixture(2, GAUSSIAN[kind]()), clustered_table(200, 2, 2, missing, seed=4))
    task, start = _task(case.model, case.X), case.start()
    plain = climb(task, Climb(start), Rules(1e-10, 3000))
    fast = climb(task, Climb(start), Rules(1e-10, 3000, ACCELERATIONS[rule]))
    assert plain.reason == fast.reason == "converged"
    assert fast.objective == pytest.approx(plain.objective, abs=1e-6)
    require_same("same optimum", fast.best, plain.best, 1e-3)
    for done in (plain, fast):
        assert not [e for e in done.events if e.kind == "fall"]
        assert (np.diff(done.trace) >= -1e-9 * abs(done.objective)).all()
