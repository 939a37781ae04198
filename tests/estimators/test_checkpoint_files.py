"""Checkpoints of estimators: out of time, another fit's, damaged, on a disk that fills up."""

from __future__ import annotations

import errno
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixfold import RBM, GaussianMixture, store
from mixfold.contracts import Array, Block, Source
from mixfold.engine.executors import ThreadExecutor

pytestmark = pytest.mark.filterwarnings(
    "ignore:Best performing:sklearn.exceptions.ConvergenceWarning"
)

SMALL: dict[str, Any] = {
    "n_components": 3,
    "tol": 0,
    "max_iter": 60,
    "init_params": "k-means++",
    "random_state": 0,
}


def table(n: int = 400, n_features: int = 3, n_clusters: int = 3) -> Array:
    """Clusters that overlap, so that a fit goes on for long."""
    rng = np.random.default_rng(4)
    centres = 1.5 * rng.standard_normal((n_clusters, n_features))
    return centres[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, n_features))


def bits(fitted: GaussianMixture) -> bytes:
    parts = (fitted.weights_, fitted.means_, fitted.covariances_, np.array(fitted.lower_bounds_))
    return b"".join(part.tobytes() for part in parts)


class Slow(ThreadExecutor):
    """A pass takes a while, but no processor."""

    def map_reduce(self, task: Callable[[Block], Any], source: Source) -> Any:
        time.sleep(0.05)
        return super().map_reduce(task, source)


def test_a_time_budget_keeps_the_best_so_far(tmp_path: Path) -> None:
    options, X, path = {**SMALL, "acceleration": None}, table(), tmp_path / "fit.ckpt"
    whole = GaussianMixture(**options).fit(X)  # first, so that nothing is compiled on the clock
    with pytest.warns(ConvergenceWarning, match=r"time_budget was used up after \d+ iterations"):
        short = GaussianMixture(**options, checkpoint=path, time_budget=0.4, executor=Slow(1)).fit(
            X
        )
    assert short.stop_reason_ == "time_budget" and not short.converged_
    assert 1 <= len(short.lower_bounds_) < 10
    same = GaussianMixture(**{**options, "max_iter": len(short.lower_bounds_)}).fit(X)
    assert bits(same) == bits(short)
    again = GaussianMixture(**options, checkpoint=path).fit(X)
    assert bits(again) == bits(whole) and not path.exists()


# ------------------------------------------------ a checkpoint that does not fit


@pytest.fixture
def left_behind(tmp_path: Path) -> Path:
    """The checkpoint of a fit that ran out of time."""
    path = tmp_path / "fit.ckpt"
    with pytest.warns(ConvergenceWarning, match="time_budget"):
        GaussianMixture(**SMALL, checkpoint=path, time_budget=1e-6).fit(table())
    return path


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"n_components": 4}, table(), r"another fit: n_components differ.*Delete the file"),
        ({"tol": 1.0, "max_iter": 9}, table(), r"another fit: max_iter, tol differ"),
        ({}, table() * 2, r"was written for other data.*Delete the file"),
        ({}, table(399), r"was written for other data.*Delete the file"),
    ],
)
def test_another_fit(left_behind: Path, options: dict[str, Any], X: Array, message: str) -> None:
    content = left_behind.read_bytes()
    with pytest.raises(ValueError, match=message) as caught:
        GaussianMixture(**{**SMALL, **options}, checkpoint=left_behind).fit(X)
    assert str(left_behind) in str(caught.value)
    assert left_behind.read_bytes() == content  # the fit it belongs to can still go on


@pytest.mark.parametrize("kept", [0, 5, 200, -1])
def test_a_truncated_checkpoint(left_behind: Path, kept: int) -> None:
    left_behind.write_bytes(left_behind.read_bytes()[:kept])
    with pytest.raises(store.ModelFileError) as caught:
        GaussianMixture(**SMALL, checkpoint=left_behind).fit(table())
    assert str(left_behind) in str(caught.value)


def test_a_disk_that_fills_up_later(left_behind: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, X = left_behind, table()
    earlier = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"No space left on device; nothing was left.*free some"):
            GaussianMixture(**SMALL, checkpoint=path).fit(X)
    assert list(path.parent.iterdir()) == [path] and path.read_bytes() == earlier
    again = GaussianMixture(**SMALL, checkpoint=path).fit(X)
    assert bits(again) == bits(GaussianMixture(**SMALL).fit(X))


@pytest.mark.parametrize("kind", ["mixture", "network"])
def test_a_checkpoint_whose_parts_do_not_fit_each_other_says_so(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "fit.checkpoint"
    rows = np.random.default_rng(0).normal(size=(200, 3))

    def begin() -> Any:
        if kind == "mixture":
            quick = {"tol": 0, "max_iter": 10**6, "time_budget": 0.05}
            return GaussianMixture(3, random_state=0, checkpoint=path, **quick)
        quick = {"max_epochs": 10**6, "time_budget": 0.05}
        return RBM(2, visible="gaussian", random_state=0, checkpoint=path, **quick)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin().fit(rows)
    tree = store.read(path, "checkpoint")
    standing = tree["progressed"]
    if kind == "mixture":
        components = replace(
            standing.climb.params.components,
            means=standing.climb.params.components.means[:, :2],
        )
        params = replace(standing.climb.params, components=components)
        standing = replace(standing, climb=replace(standing.climb, params=params))
    else:
        state = standing.training.state
        velocity = replace(state.velocity, hidden=state.velocity.hidden[:1].repeat(5))
        state = replace(state, velocity=velocity)
        standing = replace(standing, training=replace(standing.training, state=state))
    store.write(path, "checkpoint", {**tree, "progressed": standing})
    with pytest.raises(
        store.ModelFileError, match=r"cannot go on.*delete the file to fit|delete this checkpoint"
    ):
        begin().fit(rows)


@pytest.mark.parametrize("part", ["params", "velocity"])
@pytest.mark.parametrize("damage", [1e9, 1e37])
def test_weights_of_a_damaged_checkpoint_that_run_away_are_no_matter_of_the_learning_rate(
    tmp_path: Path, part: str, damage: float
) -> None:
    path = tmp_path / "fit.checkpoint"
    rows = np.random.default_rng(0).normal(size=(200, 3))

    def begin() -> RBM:
        quick: dict[str, Any] = {"max_epochs": 10**6, "time_budget": 0.05}
        return RBM(2, visible="gaussian", random_state=0, checkpoint=path, **quick)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin().fit(rows)
        tree = store.read(path, "checkpoint")
        standing = tree["progressed"]
        state = standing.training.state
        damaged = replace(getattr(state, part), weights=np.full_like(state.params.weights, damage))
        state = replace(state, **{part: damaged})
        standing = replace(standing, training=replace(standing.training, state=state))
        store.write(path, "checkpoint", {**tree, "progressed": standing})
        with pytest.raises(store.ModelFileError, match=r"weights run away.*delete the file to fit"):
            begin().set_params(time_budget=None).fit(rows)
        path.unlink()
        begin().fit(rows)
