"""A fit that died, ran out of time or was interrupted goes on from its file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mixfold import GaussianMixture
from mixfold.engine import budget
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.checkpoints import Checkpoint
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.sources import open_source
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing.compare import require_same
from mixfold.testing.tables import clustered_table
from mixfold.testing.toys import Serial

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


class Every(Checkpoint):
    """Writes at every offer, not now and then."""

    def offer(self, progressed: Any) -> None:
        self.write(progressed)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("at", [3, 10, 22])
def test_a_fit_that_died_goes_on_to_the_same_bits(rule: str, at: int, tmp_path: Path) -> None:
    plan = Plan(0.0, 12, n_init=2, n_candidates=1, acceleration=RULES[rule], seed=5)
    wanted = _fit(plan)

    def die(n: int) -> None:
        if n == at:
            raise MemoryError("the machine is gone")

    path = tmp_path / "fit.mixfold"
    with pytest.raises(MemoryError):
        _fit(plan, Every(path, {"a": 1}), die)
    assert path.exists()
    result = _fit(plan, Every(path, {"a": 1}))
    require_same("resumed", result.params, wanted.params)
    require_same("resumed", result.trace, wanted.trace)
    assert not path.exists()  # a fit that has ended needs none


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("passes", [1, 4, 9])
def test_a_fit_out_of_time_goes_on_to_the_same_bits(
    rule: str, passes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(1e-9, 40, n_candidates=1, acceleration=RULES[rule])
    wanted = _fit(plan)
    path = tmp_path / "fit.mixfold"
    clock = [0.0]
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def tick(n: int) -> None:
        clock[0] += 1.0

    short = Plan(1e-9, 40, n_candidates=1, acceleration=RULES[rule], time_budget=passes + 0.5)
    stopped = _fit(short, Every(path, {}), tick)
    assert stopped.reason == "time_budget" and path.exists()
    result = _fit(plan, Every(path, {}))
    assert result.reason == wanted.reason
    require_same("resumed", result.params, wanted.params)
    require_same("resumed", result.trace, wanted.trace)


@pytest.mark.parametrize("rule", RULES)
def test_an_interrupted_fit_goes_on_to_the_same_bits(rule: str, tmp_path: Path) -> None:
    plan = Plan(1e-9, 40, n_candidates=1, acceleration=RULES[rule])
    wanted = _fit(plan)
    path = tmp_path / "fit.mixfold"
    assert _fit(plan, Checkpoint(path, {}), _interrupt(9)).reason == "interrupted"
    assert path.exists()
    result = _fit(plan, Checkpoint(path, {}))
    require_same("resumed", result.params, wanted.params)
    require_same("resumed", result.trace, wanted.trace)


def test_the_seed_of_the_stored_fit_is_used(tmp_path: Path) -> None:
    path = tmp_path / "fit.mixfold"
    wanted = _fit(Plan(0.0, 10, n_init=2, n_candidates=1, seed=5))
    _fit(Plan(0.0, 10, n_init=2, n_candidates=1, seed=5), Every(path, {}), _interrupt(6))
    result = _fit(Plan(0.0, 10, n_init=2, n_candidates=1, seed=99), Every(path, {}))
    require_same("seed", result.params, wanted.params)


def test_a_checkpoint_of_other_settings_or_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.mixfold"
    plan = Plan(0.0, 10, n_candidates=1)
    _fit(plan, Every(path, {"tol": "0", "K": "3"}), _interrupt(5))
    with pytest.raises(ValueError, match=r"another fit: K, tol differ.*Delete the file"):
        _fit(plan, Every(path, {"tol": "1", "K": "4"}))
    with pytest.raises(ValueError, match=r"other data.*Delete the file"):
        other = open_source(_X() + 1)
        fit(MODEL, other, Serial(), plan, checkpoint=Every(path, {"tol": "0", "K": "3"}))
    assert path.exists()  # nothing was lost


def test_a_stored_setting_that_is_an_array_differs_from_a_number(tmp_path: Path) -> None:
    path = tmp_path / "fit"
    Checkpoint(path, {"l2": np.ones(3), "init": np.zeros(2)}).write(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="belongs to another fit: l2 differ"):
        Checkpoint(path, {"l2": 1.0, "init": np.zeros(2)}).read()


def test_writing_takes_a_small_share_of_the_time(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "fit.mixfold", {})
    written: list[int] = []
    write = checkpoint.write
    checkpoint.write = lambda p: (written.append(1), write(p))[1]  # type: ignore[method-assign, func-returns-value]
    _fit(Plan(0.0, 30, n_candidates=1), checkpoint)
    assert 1 <= len(written) < 10  # half a second apart at least


def test_an_estimator_goes_on_after_its_budget(tmp_path: Path) -> None:
    X, path = _X(), tmp_path / "fit.mixfold"

    def mixture(**other: Any) -> GaussianMixture:
        return GaussianMixture(3, random_state=0, max_iter=60, checkpoint=path, **other)

    with pytest.warns(UserWarning, match="time_budget"):
        mixture(time_budget=1e-9).fit(X)
    assert path.exists()
    resumed = mixture().fit(X)
    wanted = GaussianMixture(3, random_state=0, max_iter=60).fit(X)
    assert resumed.converged_ and not path.exists()
    assert resumed.lower_bound_ == pytest.approx(wanted.lower_bound_, abs=1e-5)
