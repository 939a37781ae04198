"""The online schedule: as good as EM, exact at its end, resumed bit for bit, for any model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Array
from mixfold.engine import budget, online
from mixfold.engine.checkpoints import Checkpoint
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.online import Online
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.topics.lda import LDAModel
from mixfold.models.topics.records import TopicParams
from mixfold.testing.compare import require_same
from mixfold.testing.toys import Serial

N, BATCH = 3000, 100
PLAN = Plan(1e-4, 60, n_candidates=2, online=Online(BATCH), seed=3)


class Every(Checkpoint):
    """Written after every pass."""

    def offer(self, progressed: Any) -> None:
        self.write(progressed)


@pytest.fixture(scope="module")
def X() -> Array:
    rng = np.random.default_rng(1)
    centres = np.array([[0.0, 0.0], [3.0, 1.0], [-2.0, 3.0]])
    return centres[rng.choice(3, N, p=[0.5, 0.3, 0.2])] + rng.normal(size=(N, 2))


def mixture(kind: str = "full") -> Any:
    return Mixture(3, GAUSSIAN[kind]())


def run(model: Any, X: Any, plan: Plan = PLAN, executor: Any = None, **how: Any) -> Fit:
    return fit(model, open_source(X, weight=how.pop("weight", None)), executor or ThreadExecutor(2),
               plan, **how)  # fmt: skip


# ------------------------------------------------ where it ends


@pytest.mark.parametrize("kind", ["full", "diag", "tied", "spherical"])
def test_a_gaussian_mixture_is_as_good_as_by_em(X: Array, kind: str) -> None:
    learned = run(mixture(kind), X)
    wanted = run(mixture(kind), X, replace(PLAN, online=None))
    assert learned.reason == "converged" and 3 <= learned.n_iter < 60
    assert learned.objective / N > wanted.objective / N - 2e-3
    assert not learned.events


def test_topics_are_as_good_as_by_batch() -> None:
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(3), np.full(6, 1 / 6))
    shares = rng.dirichlet(np.full(3, 0.3), 800)
    X = sparse.csr_array([rng.multinomial(30, p) for p in shares @ topics]).astype(float)
    first = TopicParams(rng.gamma(1.0, size=(3, 18)) * 100, np.ones(3), 0.1)
    plan = Plan(1e-4, 200, n_candidates=1, seed=1)
    wanted = run(LDAModel(first), X, plan)
    learned = run(LDAModel(first).for_batches(), X, replace(plan, online=Online(50)))
    assert learned.objective / learned.weight > wanted.objective / wanted.weight - 0.01


def test_the_objective_is_that_of_all_rows(X: Array) -> None:
    """Exact at the end; the last pass looks and makes no step."""
    model, weight = mixture(), np.random.default_rng(0).uniform(0.5, 2.0, N)
    executor = Serial()
    done = run(model, X, PLAN, executor, weight=weight)
    stats = executor.map_reduce(
        lambda block: model.expect(model.prepare(done.params), block, None),
        open_source(X, weight=weight),
    )
    assert done.objective == pytest.approx(model.objective(done.params, stats), rel=1e-12)
    assert done.weight == pytest.approx(weight.sum())
    assert (len(done.trace), done.n_passes) == (done.n_iter + 1, done.n_iter + 1)


def test_few_rows_are_all_looked_at_in_every_pass(X: Array) -> None:
    done = run(mixture(), X[:300], replace(PLAN, n_candidates=1))
    assert done.n_passes == done.n_iter and done.objective == done.trace[-1]


def test_averages_of_a_pass_are_better_than_its_last_batches(
    X: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large rate, which never fades: the last batches would decide."""
    noisy = replace(PLAN, tol=0.0, max_iter=6, online=Online(BATCH, decay=0.3, offset=0.0))
    averaged = run(mixture(), X, noisy)
    best = run(mixture(), X, replace(PLAN, online=None)).objective
    monkeypatch.setattr(online, "_average", lambda task, state, online: replace(
        state, memo=replace(state.memo, n_batches=0, total=None, weight=0.0)))  # fmt: skip
    last = run(mixture(), X, noisy)
    assert best - averaged.objective < 0.5 * (best - last.objective)


# ------------------------------------------------ when it ends


def climbed(trace: tuple[float, ...], looks: Any) -> Climb:
    memo = online.OnlineMemo(online.Stepwise(), tuple(np.asarray(look) for look in looks))
    remaining = max(online.remaining_gain(trace), online.remaining_gain(trace[:-1]))
    return Climb(None, n_iter=len(trace) - 1, trace=trace, weight=1.0, remaining=remaining,
                 memo=memo)  # fmt: skip


SURE = [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]  # all parts gain the same: no sampling error


def test_the_end_comes_by_the_gain_that_is_projected() -> None:
    rules = Rules(tol=0.1, max_iter=9)
    halved = (0.0, 1.0, 1.5, 1.75, 1.875)
    assert online._reason(climbed(halved, SURE), rules) == ""  # 0.125 to come, 0.25 a pass before
    assert online._reason(climbed((*halved, 1.9375, 1.96875), SURE), rules) == "converged"
    assert online._reason(climbed((*halved, 1.9375, 1.9), SURE), replace(rules, tol=0.01)) == ""
    assert online._reason(climbed(halved, SURE), replace(rules, max_iter=4)) == "max_iter"


def test_the_end_comes_when_gains_are_within_their_error() -> None:
    rules = Rules(tol=1e-6, max_iter=9)
    trace = (0.0, 1.0, 2.0, 2.9)
    unsure = [[0.0, 0.0], [0.0, 2.0], [2.0, 2.0]]
    assert online._reason(climbed(trace, unsure), rules) == "converged"
    assert online._reason(climbed(trace, SURE), rules) == ""
    assert online._reason(climbed(trace, unsure), replace(rules, tol=0.0)) == ""  # never with tol=0
    assert online._reason(climbed(trace[:3], unsure), rules) == ""  # nor before three passes
    one_part = [[0.0], [1.0], [2.0]]
    assert online._reason(climbed(trace, one_part), rules) == ""


def test_no_pass_at_all(X: Array) -> None:
    none = run(mixture(), X, replace(PLAN, max_iter=0))
    assert (none.reason, none.n_iter, len(none.trace)) == ("max_iter", 0, 1)
    assert np.isfinite(none.objective)


# ------------------------------------------------ repeated, interrupted, resumed


class Cut:
    """The same rows in other blocks."""

    def __init__(self, source: Any, rows: int) -> None:
        self._source, self._rows = source, rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_source"], name)

    def blocks(self, max_rows: int | None = None) -> Any:
        return self._source.blocks(max_rows or self._rows)


@pytest.mark.parametrize("shuffled", [True, False])
def test_blocks_and_threads_do_not_matter(X: Array, shuffled: bool) -> None:
    plan = replace(PLAN, max_iter=3, tol=0.0, n_candidates=1, online=Online(70, shuffled=shuffled))
    one = run(mixture(), X, plan, ThreadExecutor(1))
    two = run(mixture(), X, plan, ThreadExecutor(2))
    require_same("threads", two.params, one.params)
    cut = fit(mixture(), Cut(open_source(X), 137), ThreadExecutor(2), plan)
    require_same("blocks", cut.params, one.params, 1e-9)
    order = replace(plan, online=Online(70, shuffled=not shuffled))
    assert run(mixture(), X, order).objective != one.objective


def at(number: int, then: Callable[[], None]) -> Callable[[int], None]:
    """Do something before that pass over a batch or a sample."""

    def before(n: int) -> None:
        if n == number:
            then()

    return before


def interrupt() -> None:
    raise KeyboardInterrupt


# passes of the executor: pilot, statistics of the start, first look, 30 batches, look, ...
@pytest.mark.parametrize("number", [5, 20, 33, 34, 50, 66])
def test_ctrl_c_and_the_same_bits_afterwards(X: Array, tmp_path: Path, number: int) -> None:
    plan = replace(PLAN, max_iter=4, tol=0.0, n_candidates=1)
    wanted = run(mixture(), X, plan, Serial())
    path = tmp_path / "fit.mixfold"
    stopped = run(mixture(), X, plan, Serial(at(number, interrupt)), checkpoint=Every(path, {}))
    assert stopped.reason == "interrupted" and path.exists()
    assert np.isfinite(stopped.objective) and len(stopped.trace) == stopped.n_iter + 1
    done = run(mixture(), X, plan, Serial(), checkpoint=Every(path, {}))
    assert done.reason == "max_iter" and not path.exists()
    require_same("resumed", done.params, wanted.params)
    require_same("resumed", done.trace, wanted.trace)
    assert done.n_passes == wanted.n_passes


def test_a_budget_shorter_than_a_pass_goes_on_from_batch_to_batch(
    X: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run has the time of some batches; together they are the fit without a limit."""
    plan = replace(PLAN, max_iter=2, tol=0.0, n_candidates=1)
    wanted = run(mixture(), X, plan, Serial())
    clock = [0.0]
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def tick(n: int) -> None:
        clock[0] += 1.0

    path, runs = tmp_path / "fit.mixfold", 0
    while True:
        runs += 1
        assert runs < 30
        part = replace(plan, time_budget=12.5)
        done = run(mixture(), X, part, Serial(tick), checkpoint=Every(path, {}))
        if done.reason != "time_budget":
            break
        assert path.exists() and len(done.trace) == done.n_iter + 1
    assert done.reason == "max_iter" and runs > 3
    require_same("resumed", done.params, wanted.params)
    require_same("resumed", done.trace, wanted.trace)
