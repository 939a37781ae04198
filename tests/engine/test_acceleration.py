"""Extrapolation rules on a concave quadratic, where everything is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mixfold.engine.acceleration import ACCELERATIONS, Failure, Point, QuasiNewton, Squarem
from mixfold.engine.climb import climb
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task
from mixfold.families.gaussian import DiagonalMetric
from mixfold.testing.toys import Bowl, Serial

UNIT = DiagonalMetric(np.ones(2))


def _point(x: list[float], gradient: list[float], **other: object) -> Point:
    values = {"image": np.array(x) + gradient, "objective": 0.0, "plain": True, "metric": UNIT}
    return Point(x=np.array(x), gradient=np.array(gradient), **(values | other))  # type: ignore[arg-type]


# ------------------------------------------------ SQUAREM


@pytest.mark.parametrize("rate", [0.1, 0.9, 0.999])
def test_squarem_solves_a_linear_iteration_at_one_rate(rate: float) -> None:
    fixed, x0 = np.array([2.0, -3.0]), np.array([7.0, 11.0])

    def image(x: np.ndarray) -> np.ndarray:
        return fixed + rate * (x - fixed)

    x1 = image(x0)
    points = [Point(x0, x1, -2.0, False), Point(x1, image(x1), -1.0, True)]
    proposal = Squarem().propose(points, [])
    assert proposal is not None and proposal.step == 1.0
    np.testing.assert_allclose(proposal.x, fixed, rtol=1e-9)


def test_squarem_needs_two_plain_points() -> None:
    one = Point(np.zeros(2), np.ones(2), 0.0, True)
    other = Point(np.ones(2), np.full(2, 1.5), 1.0, False)
    assert Squarem().propose([one], []) is None
    assert Squarem().propose([one, other], []) is None


def test_squarem_comes_closer_to_the_plain_step_after_a_failure_and_then_gives_up() -> None:
    x0, x1, x2 = np.zeros(1), np.ones(1), np.array([1.9])
    points = [Point(x0, x1, 0.0, True), Point(x1, x2, 1.0, True)]
    full = Squarem().propose(points, [])
    shorter = Squarem().propose(points, [Failure(1.0, -9.0)])
    assert full is not None and shorter is not None
    assert full.x[0] == pytest.approx(10.0)
    assert x2[0] < shorter.x[0] < full.x[0] and shorter.step == 0.25
    assert Squarem().propose(points, [Failure(1.0, -9.0), Failure(0.25, -9.0)]) is None


# ------------------------------------------------ quasi-Newton


def test_first_direction_is_the_metric_applied_to_the_gradient() -> None:
    metric = DiagonalMetric(np.array([4.0, 0.5]))
    here = _point([1.0, 1.0], [2.0, -1.0], metric=metric)
    proposal = QuasiNewton().propose([here], [])
    assert proposal is not None and proposal.step == 1.0
    np.testing.assert_allclose(proposal.x, [1 + 0.5, 1 - 2.0])


def test_the_last_secant_holds() -> None:
    """H y = s for the last pair: along it the rule knows the curvature."""
    s, y = np.array([0.3, -0.2]), np.array([1.5, -0.1])
    metric = DiagonalMetric(np.array([3.0, 0.7]))
    for share in (0.5, 2.0):
        older = _point([9.0, 4.0], [5.0, 1.0], metric=metric)
        before = _point([1.0, 2.0], ((1 + share) * y).tolist(), metric=metric)
        here = _point([1.3, 1.8], (share * y).tolist(), metric=metric)
        for points in ([before, here], [older, before, here]):
            proposal = QuasiNewton().propose(points, [])
            assert proposal is not None
            np.testing.assert_allclose(proposal.x - here.x, share * s, rtol=1e-9)


@pytest.mark.parametrize("n_points", [2, 5, 12])
def test_the_direction_is_that_of_the_recursion_written_pair_by_pair(n_points: int) -> None:
    rng = np.random.default_rng(n_points)
    root = rng.normal(size=(9, 9))
    slope = root @ root.T + np.eye(9)
    metric = DiagonalMetric(rng.uniform(0.5, 2, 9))
    x = rng.normal(size=(n_points, 9))
    points = [
        Point(one, one, 0.0, True, -slope @ one + 0.01 * rng.normal(size=9), metric) for one in x
    ]
    proposal = QuasiNewton().propose(points, [])
    assert proposal is not None
    np.testing.assert_allclose(proposal.x - x[-1], _recursion(points), rtol=1e-9)


def _recursion(points: list[Point]) -> np.ndarray:
    """Algorithm 7.4 of Nocedal and Wright."""
    q, moves = points[-1].gradient.copy(), []
    for a, b in reversed(list(itertools.pairwise(points))):
        s, y = b.x - a.x, a.gradient - b.gradient
        alpha = (s @ q) / (s @ y)
        q -= alpha * y
        moves.append((s, y, alpha))
    s, y, _ = moves[0]
    q = points[-1].metric.solve(q) * (s @ y) / (y @ points[-1].metric.solve(y))
    for s, y, alpha in reversed(moves):
        q += (alpha - (y @ q) / (s @ y)) * s
    return q


def test_pairs_without_curvature_are_left_out() -> None:
    before, here = _point([0.0, 0.0], [1.0, 0.0]), _point([1.0, 0.0], [2.0, 0.0])
    proposal = QuasiNewton().propose([before, here], [])  # the slope grows: convex there
    assert proposal is not None
    np.testing.assert_allclose(proposal.x, here.x + here.gradient)


def test_after_a_failure_the_parabola_decides() -> None:
    # along the direction: f(t) = t - t^2 / (2 * 0.3), best at t = 0.3
    here = _point([0.0, 0.0], [1.0, 0.0])
    proposal = QuasiNewton().propose([here], [Failure(1.0, 1 - 1 / 0.6)])
    assert proposal is not None and proposal.step == pytest.approx(0.3)
    np.testing.assert_allclose(proposal.x, [0.3, 0.0])


@pytest.mark.parametrize(
    ("value", "step"), [(-1e9, 0.1), (-np.inf, 0.1), (np.nan, 0.1), (0.999, 0.5)]
)
def test_a_shorter_step_is_within_bounds(value: float, step: float) -> None:
    proposal = QuasiNewton().propose([_point([0.0, 0.0], [1.0, 0.0])], [Failure(1.0, value)])
    assert proposal is not None and proposal.step == pytest.approx(step)


def test_quasi_newton_gives_up() -> None:
    here = _point([0.0, 0.0], [1.0, 0.0])
    assert QuasiNewton(max_failures=1).propose([here], [Failure(1.0, -1.0)] * 2) is None
    assert QuasiNewton().propose([_point([0.0, 0.0], [0.0, 0.0])], []) is None  # no way up
    assert QuasiNewton().propose([_point([0.0, 0.0], [np.nan, 1.0])], []) is None
    bare = Point(np.zeros(2), np.ones(2), 0.0, True)
    assert QuasiNewton().propose([bare], []) is None  # the model offers no derivatives


# ------------------------------------------------ whole climbs


@pytest.fixture
def task(rng: np.random.Generator) -> Task:
    X = rng.normal(size=(50, 4)) + np.array([1, -2, 3, 0])
    root = rng.normal(size=(4, 4))
    curvature = root @ root.T + 0.02 * np.eye(4)
    damping = np.full(4, 1.05 * np.linalg.eigvalsh(curvature)[-1])
    model = Bowl(curvature, damping, np.full(4, 20.0))
    return Task(model, open_source(X), Serial(), None, 0)


def _run(task: Task, name: str | None) -> Climb:
    rule = None if name is None else ACCELERATIONS[name]
    return climb(task, Climb(task.model.start), Rules(1e-10, 5000, rule))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [None, *ACCELERATIONS])
def test_every_rule_ends_at_the_optimum_and_never_falls(task: Task, name: str | None) -> None:
    done = _run(task, name)
    wanted = np.concatenate([b.X for b in task.source.blocks()]).mean(axis=0)
    assert done.reason == "converged" and not done.events
    np.testing.assert_allclose(done.best, wanted, atol=1e-3)
    steps = np.diff(done.trace)
    assert (steps >= -1e-12 * np.abs(done.trace[1:])).all()


def test_rules_save_passes(task: Task) -> None:
    plain, squarem, newton = (
        _run(task, name).n_passes for name in (None, "squarem", "quasi-newton")
    )
    assert plain > 200  # a slow case indeed
    assert squarem < plain / 2
    assert newton < plain / 5


def test_memory_is_all_a_rule_is_given(task: Task) -> None:
    seen: list[int] = []

    class Watching(Squarem):
        def propose(self, points, failures):  # type: ignore[no-untyped-def]
            seen.append(len(points))
            return super().propose(points, failures)

    climb(task, Climb(np.full(4, 20.0)), Rules(1e-6, 30, Watching()))
    assert seen and max(seen) == 2
