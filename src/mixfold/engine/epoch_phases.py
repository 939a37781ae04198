"""Training in several phases (layer by layer, then fine-tuning) with one checkpoint."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import RECORDS, Block, record
from mixfold.engine.checkpoints import Checkpoint, going_on
from mixfold.engine.epochs import STOPPED, EpochPlan, Learner, Training, train
from mixfold.engine.progress import Progress


@dataclass(frozen=True, slots=True)
class TrainingTask:
    """One training: who learns, from where, on which rows, and by which plan."""

    learner: Learner[Any]
    start: Any
    rows: Block
    plan: EpochPlan
    validation: Block | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """A lesson that depends on what was learned before.

    ``begin`` makes it out of what is carried along, a record or a tuple of them; ``end`` adds what
    was learned. Both are functions of their arguments alone, so that a stored fit can go on.
    """

    name: str
    begin: Callable[[Any], TrainingTask]
    end: Callable[[Any, Any], Any]


@record
@dataclass(frozen=True, slots=True)
class PhasedTraining:
    """Where the phases stand: the one under way, what is carried along, reports of those done."""

    seed: int
    carried: Any
    phase: int = 0
    training: Training | None = None
    reports: tuple[Training, ...] = ()
    reason: str = ""


RECORDS["Course"] = PhasedTraining  # the name in checkpoints of earlier versions


def run_phases(
    phases: Sequence[Phase],
    carried: Any,
    seed: int,
    *,
    data: int = 0,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> PhasedTraining:
    """All phases in turn; the course that has ended carries what was learned.

    Parameters
    ----------
    phases : sequence of Phase
    carried : record or tuple
        What the first phase begins with.
    seed : int
        Remembered in the checkpoint; a fit that goes on must use that one (``Checkpoint.seed``).
    data : int
        A number that other data will hardly share, see :func:`fingerprint_rows`.
    checkpoint : Checkpoint, optional
        The file is written at ends of epochs, and a file that is there is gone on from.
    progress : Progress, optional

    Returns
    -------
    Course
        ``reports`` holds the training of each phase that was begun, without its states. After
        Ctrl-C or at the deadline (``reason``) later phases leave what they would have begun with.
    """
    saved = checkpoint.read() if checkpoint else None
    if checkpoint:
        checkpoint.compare(saved, data)
    course: PhasedTraining = saved or PhasedTraining(seed, carried)
    with progress or Progress(0) as shown, going_on(checkpoint, saved):
        while course.phase < len(phases) and not course.reason:
            course = _one_phase(phases[course.phase], course, checkpoint, shown)
    if checkpoint:
        checkpoint.finish(course)
    return _fill_missing_phases(phases, course) if course.reason else course


def _fill_missing_phases(phases: Sequence[Phase], course: PhasedTraining) -> PhasedTraining:
    """What a course that was stopped lacks is as its phases would have begun with it."""
    carried = course.carried
    for phase in phases[course.phase + 1 :]:
        carried = phase.end(carried, phase.begin(carried).start)
    return replace(course, carried=carried)


def _one_phase(
    phase: Phase, course: PhasedTraining, checkpoint: Checkpoint | None, shown: Progress
) -> PhasedTraining:
    lesson = phase.begin(course.carried)
    whole = course.training or Training(lesson.start)

    def watch(now: Training) -> None:
        nonlocal whole
        shown.say(_line(phase.name, now, lesson.plan), due=True)
        if now.epoch > whole.epoch:
            whole = replace(now, reason="")
            if checkpoint and not now.reason:
                checkpoint.offer(replace(course, training=whole))

    done = train(lesson.learner, whole, lesson.rows, lesson.plan, validation=lesson.validation,
                 watch=watch)  # fmt: skip
    _refuse_what_cannot_go_on(course.training, done)
    report = replace(done, state=None, best=None)
    course = replace(course, reports=(*course.reports, report))
    if done.reason in STOPPED:
        if checkpoint:  # as it was after the last whole epoch, which can be gone on from
            checkpoint.write(replace(course, reports=course.reports[:-1], training=whole))
        return replace(course, carried=phase.end(course.carried, done.result), reason=done.reason)
    return replace(
        course,
        phase=course.phase + 1,
        carried=phase.end(course.carried, done.result),
        training=None,
    )


def _refuse_what_cannot_go_on(stored: Training | None, done: Training) -> None:
    """Weights that run away at once are the fault of the file, not of the learning rate: a fit
    does not store weights that have run away. One from the beginning would tell the rate's."""
    if stored is not None and done.reason == "trouble" and done.epoch <= stored.epoch + 1:
        raise ValueError("its weights run away in the first epoch")


def _line(name: str, training: Training, plan: EpochPlan) -> str:
    text = f"{name}  epoch {training.epoch} of {plan.max_epochs}"
    if training.scores:
        text += f"  validation {training.scores[-1]:.5g}"
        text += f" (best {training.best_score:.5g} after {training.best_epoch})"
    return f"{text}  {training.reason}" if training.reason else text


def fingerprint_rows(rows: Block) -> int:
    """A number that other rows, labels or weights will hardly share."""
    chosen = np.unique(np.linspace(0, rows.n_rows - 1, 1000).astype(np.int64))
    parts = [np.array(rows.X.shape, float), np.asarray(rows.X[chosen], float)]
    parts += [np.asarray(side, float) for side in (rows.y, rows.weight) if side is not None]
    return zlib.crc32(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
