"""Restarts merged: never below the best of them, above it where they were wrong in other places."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from mixfold import (
    BayesianGaussianMixture,
    GaussianMixture,
    Mixture,
    MixtureOfFactorAnalyzers,
    MixtureOfPPCA,
)
from mixfold.contracts import Array, Block
from mixfold.engine import unions
from mixfold.engine.checkpoints import Checkpoint
from mixfold.engine.climb import climb
from mixfold.engine.executors.threads import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures import mixture
from mixfold.models.mixtures.starts import STARTS
from mixfold.models.mixtures.unions import _log_density
from mixfold.testing.compare import require_same
from mixfold.testing.toys import Serial

CENTRES = 12.0 * np.array([[0, 0], [1, 0], [0, 1], [3, 3], [4, 3], [3, 4]])
PLAN = Plan(n_init=2, n_candidates=1, seed=4)
MODEL = mixture.Mixture(6, GAUSSIAN["diag"](), start=STARTS["random_from_data"])


def rows(n: int = 30) -> Array:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(centre, 1, (n, 2)) for centre in CENTRES])


def stuck(X: Array, task: Task, doubled: tuple[int, int], joined: int) -> Climb:
    """Where EM ends when one cluster has two components and two others share one."""
    assert task.pilot is not None
    resp = np.zeros((len(X), 6))
    places = [k for k in range(6) if k not in doubled]
    of = dict(zip(places, range(4), strict=True))
    for k in range(6):
        mine = np.flatnonzero(np.arange(len(X)) // (len(X) // 6) == k)
        resp[mine, of.get(k, 5)] = 1.0
    half = np.flatnonzero(resp[:, of[joined]])[::2]
    resp[half] = np.eye(6)[4]
    model: Any = task.model
    frame = model.frame_for(task.pilot)
    start = mixture.Started(X, model.family.view(frame, X), resp, float(len(X)))
    return climb(task, Climb(model._first(frame, start)), Rules())


def task_of(X: Array) -> Task:
    source = open_source(X)
    executor = ThreadExecutor(1)
    return Task(MODEL, source, executor, draw_pilot(source, executor, len(X), 0), 0)


def test_two_fits_that_are_wrong_in_different_places_mend_each_other() -> None:
    X = rows()
    task = task_of(X)
    one, other = stuck(X, task, (0, 1), 3), stuck(X, task, (4, 5), 2)
    ended = unions.keep_ended(unions.keep_ended((), one), other)
    assert len(ended) == 2
    best = max(one, other, key=lambda c: c.objective)
    merged = unions.merge_climbs(task, best, ended, Rules(), lambda state: None)
    truth = climb(task, Climb(_at_the_truth(X, task)), Rules())
    assert merged.objective == pytest.approx(truth.objective, abs=1e-3)
    assert merged.objective > best.objective + 0.3 * len(X)
    assert merged.reason == "converged" and merged.n_passes > best.n_passes
    assert merged.trace[-1] == merged.objective


def _at_the_truth(X: Array, task: Task) -> Any:
    model: Any = task.model
    resp = np.repeat(np.eye(6), len(X) // 6, axis=0)
    frame = model.frame_for(task.pilot)
    return model._first(frame, mixture.Started(X, model.family.view(frame, X), resp, float(len(X))))


def test_fits_that_are_the_same_count_once_and_are_left_alone() -> None:
    X = rows()
    task = task_of(X)
    one = stuck(X, task, (0, 1), 3)
    ended = unions.keep_ended(unions.keep_ended((), one), one)
    assert len(ended) == 1
    merged = unions.merge_climbs(task, one, ended, Rules(), lambda state: None)
    assert merged is not None and merged.objective == one.objective
    assert merged.n_passes == one.n_passes


def test_a_spike_is_no_better_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    X = rows()
    task = task_of(X)
    one, other = stuck(X, task, (0, 1), 3), stuck(X, task, (4, 5), 2)
    ended = unions.keep_ended(unions.keep_ended((), one), other)
    best = max(one, other, key=lambda c: c.objective)
    monkeypatch.setattr(unions, "has_spikes", lambda state: state is not best)
    merged = unions.merge_climbs(task, best, ended, Rules(), lambda state: None)
    assert merged.objective == best.objective and merged.best is best.best


def test_components_are_chosen_by_their_densities_without_their_weights() -> None:
    X = rows()
    params = stuck(X, task_of(X), (0, 1), 3).best
    found = _log_density(MODEL, params, Block(X, complete=True))
    parts = params.components
    means = parts.frame.leave(parts.means)
    scales = np.sqrt(MODEL.family.covariances(parts))
    np.testing.assert_allclose(found, norm.logpdf(X[:, None], means, scales).sum(axis=2), rtol=1e-6)


# ------------------------------------------------ in a fit


def run(X: Any, plan: Plan, executor: Any = None, checkpoint: Any = None, **data: Any) -> Fit:
    source = open_source(X, **data)
    return fit(MODEL, source, executor or Serial(None), plan, checkpoint=checkpoint)


MERGED = replace(PLAN, merge_starts=True)


def test_a_merged_fit_is_better_than_its_restarts_and_repeatable() -> None:
    X = rows()
    plain, merged, again = run(X, PLAN), run(X, MERGED), run(X, MERGED)
    assert merged.objective > plain.objective + 0.1 * len(X)
    assert merged.trace[-1] == merged.objective
    require_same("the same seed", merged.params, again.params)


def test_weights_repeat_rows_and_their_order_does_not_matter() -> None:
    X = rows()
    merged = run(X, MERGED)
    weight = np.where(np.arange(len(X)) % 3 == 0, 2.0, 1.0)
    weighted = run(X, MERGED, weight=weight)
    repeated = run(np.repeat(X, weight.astype(int), axis=0), MERGED)
    np.testing.assert_allclose(weighted.objective, repeated.objective, rtol=1e-9)
    np.testing.assert_allclose(
        weighted.params.components.means, repeated.params.components.means, atol=1e-6
    )
    order = np.random.default_rng(1).permutation(len(X))
    assert run(X[order], MERGED).objective == pytest.approx(merged.objective, abs=1e-6)
    absent = np.concatenate([X, 100 + X[:20]])
    ignored = run(absent, MERGED, weight=np.r_[np.ones(len(X)), np.zeros(20)])
    assert ignored.objective == pytest.approx(merged.objective, abs=1e-6)


def test_threads_do_not_matter() -> None:
    X = np.concatenate([rows(30)] * 20)  # 3,600 rows
    merged = [run(X, replace(MERGED, seed=1), ThreadExecutor(n)) for n in (1, 2)]
    np.testing.assert_array_equal(*[one.params.components.means for one in merged])


class _Killed(Exception):
    pass


@pytest.mark.parametrize("late", [1, 4, 15])
def test_a_fit_that_is_killed_while_it_merges_goes_on_to_the_same_bits(
    late: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, whole = rows(), run(rows(), MERGED)
    path = tmp_path / "fit.ckpt"
    seen = [0]
    proposals = unions._try

    def dying(*args: Any) -> Climb:
        seen[0] += 1
        if seen[0] == late:
            raise _Killed
        return proposals(*args)

    def checkpoint() -> Checkpoint:
        made = Checkpoint(path, {})
        monkeypatch.setattr(made, "offer", made.write)
        return made

    monkeypatch.setattr(unions, "_try", dying)
    try:
        run(X, MERGED, checkpoint=checkpoint())
    except _Killed:
        assert path.exists()
    monkeypatch.setattr(unions, "_try", proposals)
    resumed = run(X, MERGED, checkpoint=checkpoint())
    require_same("resumed", resumed.params, whole.params)
    assert resumed.n_passes == whole.n_passes
    assert not path.exists()


def test_ctrl_c_while_it_merges_keeps_the_best_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, plain, whole = rows(), run(rows(), PLAN), run(rows(), MERGED)
    tried = unions._try

    def interrupted(*args: Any) -> Climb:
        raise KeyboardInterrupt

    monkeypatch.setattr(unions, "_try", interrupted)
    checkpoint = Checkpoint(tmp_path / "fit.ckpt", {})
    stopped = run(X, MERGED, checkpoint=checkpoint)
    assert stopped.reason == "interrupted" and stopped.objective == plain.objective
    monkeypatch.setattr(unions, "_try", tried)
    resumed = run(X, MERGED, checkpoint=Checkpoint(tmp_path / "fit.ckpt", {}))
    require_same("resumed", resumed.params, whole.params)


def counts(X: Array) -> Array:
    return np.random.default_rng(4).poisson(np.exp(0.08 * X + 0.5)).astype(float)


SETTINGS: dict[str, Any] = {
    "full": lambda **k: GaussianMixture(6, init_params="random", **k),
    "tied": lambda **k: GaussianMixture(6, covariance_type="tied", init_params="random", **k),
    "poisson": lambda **k: Mixture("poisson", 6, init_params="random_from_data", **k),
    "product": lambda **k: Mixture({"poisson": [0], "diag": [1]}, 6, init_params="random", **k),
    "fixed weights": lambda **k: Mixture(
        "diag", 6, weights=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1], init_params="random", **k
    ),
    "variational": lambda **k: BayesianGaussianMixture(
        8, init_params="random", merge_split=False, **k
    ),
    "PPCA": lambda **k: MixtureOfPPCA(6, 1, init_params="random_from_data", **k),
    "tied factors": lambda **k: MixtureOfFactorAnalyzers(
        6, 1, tied=("loadings",), init_params="random_from_data", **k
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_merged_fit_is_never_below_the_best_restart(name: str) -> None:
    X = counts(rows(15)) if name in ("poisson", "product") else rows(15)
    if name in ("full", "product", "PPCA", "variational"):
        X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    both = [
        SETTINGS[name](n_init=2, merge_starts=merge, random_state=1, max_iter=20).fit(X)
        for merge in (False, True)
    ]
    assert both[1].lower_bound_ >= both[0].lower_bound_
    assert both[1].weights_.shape == both[0].weights_.shape


def test_rows_of_known_components_and_given_starts_are_left_alone() -> None:
    X = rows()
    known = np.where(np.arange(len(X)) % 30 == 0, np.arange(len(X)) // 30, -1)
    given = {"means_init": CENTRES}
    for settings, labels in (({"init_params": "random"}, known), (given, None)):
        both = [
            GaussianMixture(6, n_init=2, merge_starts=merge, random_state=0, **settings).fit(
                X, component_labels=labels
            )
            for merge in (False, True)
        ]
        np.testing.assert_array_equal(both[0].means_, both[1].means_)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_columns_that_are_set_aside_change_nothing(rng: np.random.Generator) -> None:
    X = np.repeat(CENTRES, 20, axis=0) + rng.normal(size=(120, 2))
    settings: dict[str, Any] = {"n_init": 3, "merge_starts": True, "random_state": 0}
    plain = GaussianMixture(6, init_params="random_from_data", **settings).fit(X)
    wider = np.column_stack([X, np.ones(120)])
    fitted = GaussianMixture(6, init_params="random_from_data", **settings).fit(wider)
    assert fitted.score(wider) == pytest.approx(plain.score(X), rel=1e-9)
