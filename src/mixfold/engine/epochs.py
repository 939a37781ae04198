"""Mini-batch training: epochs, validation, patience, checkpoints. Networks are trained by it.

A ``Training`` is the whole state between two epochs, as a value: it can be stored, and one that
goes on from a stored state ends in the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from mixfold.contracts import Block, record
from mixfold.engine.batches import take_rows
from mixfold.engine.budget import NEVER, Deadline
from mixfold.math.rates import Position

T = TypeVar("T")
# what the loop ends by when it is not by itself
STOPPED = ("time_budget", "interrupted")


class Learner(Protocol[T]):
    """WHAT is learned: configuration only; what has been learned is in the state, a record."""

    def step(self, state: T, batch: Block, rng: np.random.Generator, position: Position) -> T:
        """The state after one more batch; it may be the same object, changed in place.

        Weights of the batch average 1 over all rows, so that a mean over ``batch.n_rows`` of
        weighted terms is the right gradient. Labels below 0 are unknown.
        """
        ...

    def score(self, state: T, rows: Block) -> float:
        """How well rows that are not trained on are told; higher is better."""
        ...

    def describe_divergence(self, state: T) -> str:
        """What makes it senseless to go on (weights that explode), empty if nothing does."""
        ...


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """How training runs.

    It ends after ``max_epochs``, or once ``patience`` epochs have not raised the best score of
    the validation rows by more than ``tol`` (None: never).
    """

    max_epochs: int = 10
    batch_size: int = 100
    patience: int | None = None
    tol: float = 0.0
    seed: int = 0
    deadline: Deadline = NEVER


@record
@dataclass(frozen=True, slots=True)
class Training:
    """The state between two epochs.

    ``best`` is the state of the highest validation score so far, after ``best_epoch`` epochs; None
    without validation rows. ``reason`` is empty until the training has ended: 'max_epochs',
    'patience', 'trouble' (``trouble`` says which), 'time_budget' or 'interrupted'.
    """

    state: Any
    epoch: int = 0
    n_steps: int = 0
    scores: tuple[float, ...] = ()
    best: Any = None
    best_score: float = -float("inf")
    best_epoch: int = 0
    reason: str = ""
    trouble: str = ""

    @property
    def result(self) -> Any:
        """What the training is worth: the best state, without validation the last one."""
        return self.state if self.best is None else self.best


Watcher = Callable[[Training], None]


def train(
    learner: Learner[T],
    training: Training,
    rows: Block,
    plan: EpochPlan,
    *,
    validation: Block | None = None,
    watch: Watcher | None = None,
) -> Training:
    """Go on from ``training`` until a rule says stop; ``result`` then holds what was learned.

    Parameters
    ----------
    learner : Learner
    training : Training
        ``Training(first_state)``, or where an earlier run has ended. Its state is not changed.
    rows : Block
        All rows, in memory or mapped from a file; batches are drawn from them without replacement,
        in an order that depends on the seed and the epoch alone.
    plan : EpochPlan
    validation : Block, optional
        Rows that are not trained on; after each epoch they are scored, and the best state is kept.
    watch : callable, optional
        Called with the training after each epoch, and once more at the end.

    Returns
    -------
    Training
        With a ``reason``. Ctrl-C and the deadline may end an epoch half way: the state is then that
        of the last batch, and the epoch does not count.
    """
    rows = normalise_row_weights(rows)
    training = replace(training, reason="", trouble="")
    while not training.reason:
        if training.epoch >= plan.max_epochs:
            training = replace(training, reason="max_epochs")
        else:
            training = _run_epoch_or_stop(learner, training, rows, plan, validation)
        if watch is not None:
            watch(training)
    return training


def _run_epoch_or_stop(
    learner: Learner[T], training: Training, rows: Block, plan: EpochPlan, validation: Block | None
) -> Training:
    """An epoch; a Ctrl-C while it is scored ends the training before it."""
    try:
        return _epoch(learner, training, rows, plan, validation)
    except KeyboardInterrupt:
        if not training.n_steps:
            raise
        return replace(training, reason="interrupted")


def _epoch(
    learner: Learner[T], training: Training, rows: Block, plan: EpochPlan, validation: Block | None
) -> Training:
    """One more epoch, or what Ctrl-C and the clock have left of it."""
    state, done, reason = deepcopy(training.state), 0, ""
    rng = np.random.default_rng([plan.seed % 2**63, training.epoch])
    try:
        for batch, position in _batches(rows, plan, training.epoch, rng):
            state = learner.step(state, batch, rng, position)
            done += 1
            if plan.deadline.has_passed:
                reason = "time_budget"
                break
    except KeyboardInterrupt:
        if not training.n_steps + done:
            raise
        reason = "interrupted"
    whole = done * plan.batch_size >= rows.n_rows
    training = replace(training, state=state, n_steps=training.n_steps + done)
    if not whole:
        return replace(training, reason=reason)
    return _judge_epoch(
        learner, replace(training, epoch=training.epoch + 1), plan, validation, reason
    )


def _batches(
    rows: Block, plan: EpochPlan, epoch: int, rng: np.random.Generator
) -> Iterator[tuple[Block, Position]]:
    order = rng.permutation(rows.n_rows)
    n_steps = -(-rows.n_rows // plan.batch_size)
    for step in range(n_steps):
        share = (epoch + step / n_steps) / plan.max_epochs
        chosen = order[step * plan.batch_size : (step + 1) * plan.batch_size]
        yield take_rows(rows, chosen), Position(epoch, step, share)


def _judge_epoch(
    learner: Learner[T], training: Training, plan: EpochPlan, validation: Block | None, reason: str
) -> Training:
    """After a whole epoch: is it the best so far, and is it the last?"""
    trouble = learner.describe_divergence(training.state)
    if validation is not None and not trouble:
        score = float(learner.score(training.state, validation))
        training = replace(training, scores=(*training.scores, score))
        if training.best is None or score > training.best_score + plan.tol:
            training = replace(
                training, best=training.state, best_score=score, best_epoch=training.epoch
            )
    waited = training.epoch - training.best_epoch
    if trouble:
        reason = "trouble"
    elif validation is not None and plan.patience is not None and waited >= plan.patience:
        reason = "patience"
    elif training.epoch >= plan.max_epochs:
        reason = "max_epochs"
    return replace(training, reason=reason, trouble=trouble)


# ------------------------------------------------ rows


def normalise_row_weights(rows: Block) -> Block:
    """Rows of positive weight, with weights that average 1; without weights where all are equal."""
    if rows.weight is None:
        return rows
    weighs = rows.weight > 0
    if not weighs.any():
        raise ValueError("all sample weights are zero: give at least one row a positive weight")
    if not weighs.all():
        rows = take_rows(rows, np.flatnonzero(weighs))
    weight = np.asarray(rows.weight)
    even = bool((weight == weight[0]).all())
    return replace(rows, weight=None if even else weight / weight.mean())


def split_rows(rows: Block, fraction: float | None, seed: int) -> tuple[Block, Block | None]:
    """Rows to train on, and a seeded share of the rows of positive weight to validate by.

    At least one row goes to each side; a single row, or ``fraction=None``, is not split.
    """
    weighs = np.arange(rows.n_rows) if rows.weight is None else np.flatnonzero(rows.weight)
    if fraction is None or len(weighs) < 2:
        return rows, None
    rng = np.random.default_rng([seed % 2**63, 2**32])
    n_held = int(np.clip(round(fraction * len(weighs)), 1, len(weighs) - 1))
    order = rng.permutation(weighs)
    return take_rows(rows, np.sort(order[n_held:])), take_rows(rows, np.sort(order[:n_held]))
