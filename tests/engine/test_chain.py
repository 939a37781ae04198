"""Chains: the same draws whoever visits the rows, kept as asked, ended with what there is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Array
from mixfold.engine import budget
from mixfold.engine.budget import OVER, Deadline
from mixfold.engine.chain import Chain, Sweeps, sample_chain
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.engine.state import Task
from mixfold.families.bayes.normal_wishart import BayesFull
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.models.mixtures.bayes_mixture import TRACES, BayesMixture
from mixfold.models.mixtures.inference import INFERENCES
from mixfold.testing.compare import require_same
from mixfold.testing.tables import clustered_table
from mixfold.testing.toys import Serial

N = 90
MODEL = BayesMixture(3, BayesFull(), SymmetricDirichlet(1.0, True), inference=INFERENCES["gibbs"])
SHORT = Sweeps(n_draws=6, burn_in=4)


def _rows(missing: float = 0.1) -> Array:
    X = clustered_table(N, 2, 3, seed=4)
    holes = np.random.default_rng(0).random(X.shape) < missing
    holes[:, 0] &= ~holes.all(axis=1)
    X[holes] = np.nan
    return X


def _task(executor: Any = None, missing: float = 0.1) -> Task:
    source = open_source(_rows(missing))
    pilot = draw_pilot(source, Serial(), N, 0)
    return Task(MODEL, source, executor or Serial(), pilot, 3)


def _chain(task: Task, sweeps: Sweeps = SHORT, number: int = 0, watch: Any = None) -> Chain:
    start = task.model.initialise(task.pilot, np.random.default_rng(0))
    return sample_chain(task, start, sweeps, number, watch)


# ------------------------------------------------ the same draws


def test_repeatable_and_different_for_other_seeds_and_chains() -> None:
    once, again = _chain(_task()), _chain(_task())
    require_same("repeatable", again.params, once.params)
    np.testing.assert_array_equal(again.labels, once.labels)
    np.testing.assert_array_equal(again.traces, once.traces)
    for other in (_chain(replace(_task(), seed=4)), _chain(_task(), number=1)):
        assert not np.array_equal(other.labels, once.labels)
        assert not np.array_equal(other.traces, once.traces)


@pytest.mark.parametrize("missing", [0.0, 0.1], ids=["complete", "with NaN"])
def test_blocks_and_threads_do_not_matter(missing: float) -> None:
    wanted = _chain(_task(missing=missing))
    for executor in (Serial(max_rows=7), Serial(max_rows=1), ThreadExecutor(2)):
        got = _chain(_task(executor, missing))
        np.testing.assert_array_equal(got.labels, wanted.labels)
        np.testing.assert_allclose(got.traces, wanted.traces, rtol=1e-9)
        require_same("blocks", got.params, wanted.params, 1e-9)


# ------------------------------------------------ what is kept


def test_what_is_kept() -> None:
    sweeps = Sweeps(n_draws=5, burn_in=3, thin=2, label_stride=2)
    assert sweeps.n_sweeps == 13
    assert [s for s in range(13) if sweeps.is_kept(s)] == [4, 6, 8, 10, 12]
    executor = Serial()
    found = _chain(_task(executor), sweeps)
    assert executor.n_passes == 13
    assert len(found.params) == 5
    assert found.labels.shape == (3, N)  # of the first, third and fifth
    assert found.traces.shape == (10, len(TRACES))
    assert (found.reason, found.n_sweeps) == ("done", 13)
    every = _chain(_task(), replace(sweeps, label_stride=1))
    np.testing.assert_array_equal(every.labels[::2], found.labels)
    require_same("stride", every.params, found.params)


def test_parameters_belong_to_the_labels_of_their_sweep() -> None:
    found = _chain(_task())
    for params, labels in zip(found.params, found.labels, strict=True):
        np.testing.assert_array_equal(params.counts, np.bincount(labels, minlength=3))


def test_burn_in_and_draws_are_one_chain() -> None:
    long = _chain(_task(), Sweeps(n_draws=10, burn_in=0))
    late = _chain(_task(), Sweeps(n_draws=6, burn_in=4))
    np.testing.assert_array_equal(late.labels, long.labels[4:])
    np.testing.assert_array_equal(late.traces, long.traces[4:])


def test_traces_tell_of_the_sweep() -> None:
    found = _chain(_task())
    told = dict(zip(TRACES, found.traces.T, strict=True))
    for n, labels in enumerate(found.labels):
        shares = np.bincount(labels, minlength=3) / N
        used = shares[shares > 0]
        assert told["n_clusters"][n] == used.size
        assert told["largest"][n] == pytest.approx(used.max())
        assert told["entropy"][n] == pytest.approx(-(used * np.log(used)).sum())
    assert np.isfinite(told["log_joint"]).all() and (told["alpha"] > 0).all()


def test_watchers_see_every_sweep() -> None:
    seen: list[tuple[int, int]] = []
    _chain(_task(), number=2, watch=lambda number, sweep, trace: seen.append((number, sweep)))
    assert seen == [(2, sweep) for sweep in range(10)]


# ------------------------------------------------ ends


def test_the_deadline_ends_a_chain_with_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Serial()
    found = _chain(_task(executor), replace(SHORT, deadline=OVER))
    assert found.reason == "time_budget" and executor.n_passes == found.n_sweeps == 1
    assert len(found.params) == len(found.labels) == len(found.traces) == 1  # never without a draw
    clock = iter(range(1000))  # looked at twice in a sweep that is kept, once in the others
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    found = _chain(_task(), replace(SHORT, deadline=Deadline(9)))
    assert found.reason == "time_budget" and len(found.params) == 3 and found.n_sweeps == 7
    clock = iter(range(1000))
    found = _chain(_task(), replace(SHORT, deadline=Deadline(2)))  # within the burn-in
    assert len(found.params) == 1 and found.n_sweeps == 3


@pytest.mark.parametrize("at", [5, 8])
def test_ctrl_c_keeps_the_draws(at: int) -> None:
    def interrupt(n: int) -> None:
        if n == at:
            raise KeyboardInterrupt

    found = _chain(_task(Serial(interrupt)))
    assert found.reason == "interrupted" and len(found.params) == at - 4
    whole = _chain(_task())
    np.testing.assert_array_equal(found.labels, whole.labels[: at - 4])


def test_ctrl_c_while_the_state_is_shown_keeps_the_draws() -> None:
    def watch(number: int, sweep: int, trace: Array) -> None:
        if sweep == 7:
            raise KeyboardInterrupt

    try:
        found = _chain(_task(), watch=watch)
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C lost what had been drawn")
    assert found.reason == "interrupted" and len(found.params) == 4


def test_ctrl_c_before_there_is_a_draw_is_passed_on() -> None:
    def interrupt(n: int) -> None:
        if n == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _chain(_task(Serial(interrupt)))
