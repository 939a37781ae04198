"""Phases of training: carried along, stored, gone on with to the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.engine.budget import OVER
from mixfold.engine.checkpoints import Checkpoint
from mixfold.engine.epoch_phases import Phase, TrainingTask, fingerprint_rows, run_phases
from mixfold.engine.epochs import EpochPlan
from mixfold.engine.progress import Progress
from mixfold.testing.toy_learner import Toy, ToyState

ROWS = Block(np.random.default_rng(1).normal(size=(20, 2)))


class Every(Checkpoint):
    """Writes at every offer, not now and then."""

    def offer(self, progressed: Any) -> None:
        self.write(progressed)


def _phases(toys: list[Toy], plan: EpochPlan, validated: bool = False) -> list[Phase]:
    def begin(number: int) -> Any:
        def made(carried: tuple[ToyState, ...]) -> TrainingTask:
            assert len(carried) == number
            first = carried[-1].point if carried else np.zeros(2)
            lesson = TrainingTask(
                toys[number], ToyState(first + 1), ROWS, replace(plan, seed=number)
            )
            return replace(lesson, validation=ROWS) if validated else lesson

        return made

    def end(carried: tuple[ToyState, ...], state: ToyState) -> tuple[ToyState, ...]:
        return (*carried, state)

    return [Phase(f"toy {i}", begin(i), end) for i in range(len(toys))]


def _course(toys: list[Toy], plan: EpochPlan, validated: bool = False, **how: Any) -> Any:
    return run_phases(_phases(toys, plan, validated), (), 0, **how)


def test_phases_follow_each_other() -> None:
    course = _course([Toy(), Toy()], EpochPlan(3, 5))
    assert [r.epoch for r in course.reports] == [3, 3]
    assert course.reason == ""
    assert len(course.carried) == 2
    alone = _course([Toy()], EpochPlan(3, 5))
    np.testing.assert_array_equal(alone.carried[0].point, course.carried[0].point)


@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize("at", [(6, -1), (3, -1), (99, 5), (99, 9)])
def test_an_interrupted_course_goes_on_to_the_same_bits(
    at: tuple[int, int], validated: bool, tmp_path: Path
) -> None:
    plan = EpochPlan(3, 5)
    whole = _course([Toy(), Toy()], plan, validated)
    path = tmp_path / "course"
    toys = [Toy(interrupt_at=at[0]), Toy(interrupt_at=at[1])]
    stopped = _course(toys, plan, validated, checkpoint=Every(path, {}))
    assert stopped.reason == "interrupted"
    assert len(stopped.carried) == 2  # what is lacking is as it would begin
    assert path.exists()
    course = _course([Toy(), Toy()], plan, validated, checkpoint=Every(path, {}))
    assert course.reason == ""
    assert not path.exists()
    for one, other in zip(course.carried, whole.carried, strict=True):
        np.testing.assert_array_equal(one.point, other.point)
    assert [r.scores for r in course.reports] == [r.scores for r in whole.reports]


def test_a_process_that_died_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    class Dead(Toy):
        def describe_divergence(self, state: ToyState) -> str:
            if len(self.positions) >= 8:
                raise RuntimeError("power failure")
            return ""

    plan, path = EpochPlan(4, 5), tmp_path / "course"
    with pytest.raises(RuntimeError, match="power"):
        _course([Toy(), Dead()], plan, checkpoint=Every(path, {}))
    course = _course([Toy(), Toy()], plan, checkpoint=Every(path, {}))
    whole = _course([Toy(), Toy()], plan)
    np.testing.assert_array_equal(course.carried[1].point, whole.carried[1].point)


def test_the_clock_ends_all_phases() -> None:
    plan = EpochPlan(3, 5, deadline=OVER)
    course = _course([Toy(), Toy()], plan)
    assert course.reason == "time_budget"
    assert [r.n_steps for r in course.reports] == [1]
    np.testing.assert_array_equal(course.carried[1].point, course.carried[0].point + 1)


def test_other_data_or_settings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "course"
    plan = EpochPlan(3, 5)
    data = fingerprint_rows(ROWS)
    how = {"data": data, "checkpoint": Every(path, {"l2": "0"})}
    _course([Toy(interrupt_at=6)], plan, **how)
    with pytest.raises(ValueError, match="other data"):
        _course([Toy()], plan, data=data + 1, checkpoint=Every(path, {"l2": "0"}))
    with pytest.raises(ValueError, match="l2 differ"):
        _course([Toy()], plan, data=data, checkpoint=Every(path, {"l2": "1"}))


def test_fingerprints_differ_where_rows_labels_or_weights_do() -> None:
    X = ROWS.X.copy()
    X[7, 1] += 1e-9
    labelled = Block(ROWS.X, y=np.zeros(20, int))
    blocks = [ROWS, Block(X), Block(ROWS.X[:-1]), labelled, Block(ROWS.X, weight=np.arange(20.0))]
    assert len({fingerprint_rows(block) for block in blocks}) == len(blocks)
    assert fingerprint_rows(Block(ROWS.X.copy())) == fingerprint_rows(ROWS)


def test_progress_tells_phase_epoch_and_scores(capsys: pytest.CaptureFixture[str]) -> None:
    _course([Toy()], EpochPlan(2, 5), True, progress=Progress(1))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("toy 0  epoch 1 of 2  validation -")
    assert "max_epochs" in lines[1]
