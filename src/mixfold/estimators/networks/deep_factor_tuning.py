"""Training of a whole stack as a recognition network: from its codebooks to its classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.engine.epochs import EpochPlan, Training, split_rows, train
from mixfold.engine.executors import resolve_executor
from mixfold.engine.sources import open_source
from mixfold.estimators.networks.deep_factor_growth import Fitting, Grown
from mixfold.estimators.networks.deep_factor_rows import labelled_block
from mixfold.math.frame import Frame
from mixfold.math.rates import Linear
from mixfold.models.networks.adam import Adam, AdamState, adam_state
from mixfold.models.networks.coordinates import coordinates_of, entered, left
from mixfold.models.networks.quasi_newton import minimise
from mixfold.models.networks.recognition import activations, block_sums, objective, penalised
from mixfold.models.networks.records import Network, from_vector, to_vector
from mixfold.models.networks.starts import Spread, block_spread, stacked_start
from mixfold.models.networks.use import StackParams, filled

# from so many entries on the network is trained in single precision
SINGLE = 10**6
# rows up to which all of them make one step
ALL_ROWS = 20_000
# steps of the classifier alone, on top of the codebooks
HEAD_STEPS = 60

Tell = Callable[[Grown], None]


@dataclass(frozen=True, slots=True)
class TuningPlan:
    """How a network is trained; ``solver`` is 'auto', 'lbfgs' or 'adam'."""

    l2: float
    solver: str
    tol: float
    max_iter: int
    learning_rate: float
    batch_size: int
    max_epochs: int
    validation_fraction: float | None
    patience: int | None
    executor: Any
    n_jobs: int | None


@dataclass(frozen=True, slots=True)
class Tuned:
    """What came out, with the curve (objective after each step, or scores after each epoch).

    ``top`` holds sources of the top layer of the labelled rows, where they are not as before.
    """

    result: Any
    curve: tuple[float, ...]
    reason: str
    n_iter: int
    top: Array | None = None


def recognition_rows(fitting: Fitting, stack: StackParams) -> tuple[Block, Frame]:
    """Labelled rows in memory, missing entries as the first layer reconstructs them.

    They are in the coordinates in which a network is trained, which are given, too.
    """
    X = fitting.rows.gathered()
    if isinstance(X, np.ndarray):
        X = filled(stack, X)
    block = labelled_block(fitting.rows, X)
    single = block.X.shape[0] * block.X.shape[1] >= SINGLE
    frame = coordinates_of(block.X, block.weights())
    kind = np.dtype(np.float32) if single else block.X.dtype
    return replace(block, X=entered(frame, block.X, kind)), frame


def tune_recognition(
    fitting: Fitting, stack: StackParams, n_classes: int, plan: TuningPlan, grown: Grown, tell: Tell
) -> Tuned:
    """A network that undoes the stack, trained to tell the classes."""
    block, frame = recognition_rows(fitting, stack)
    source = open_source(block.X, y=block.y, weight=block.weight)
    executor = resolve_executor(plan.executor, plan.n_jobs, source)

    def spread(trial: Network) -> Spread:
        return executor.map_reduce(partial(block_spread, trial), source)

    def sums(network: Network) -> Any:
        return executor.map_reduce(partial(block_sums, network), source)

    by_rows = plan.solver == "lbfgs" or (plan.solver == "auto" and block.n_rows <= ALL_ROWS)
    start = grown.tuning
    if start is None:
        codebooks = _codebooks(stack, frame)
        start = with_head(stacked_start(codebooks, n_classes, spread), block, plan.l2)
    keep = partial(_kept, grown, tell)
    if by_rows:
        tuned = _by_all_rows(fitting, plan, start, sums, keep)
    else:
        tuned = _by_batches(fitting, plan, start, block, keep)
    return replace(tuned, result=left(frame, tuned.result))


def _codebooks(stack: StackParams, frame: Frame) -> list[tuple[Array, Array]]:
    """Codebooks and biases of all layers, those of the first in the coordinates of the rows."""
    first, *above = stack.layers
    below = (first.codebook / frame.scale, frame.enter(first.bias))
    return [below, *((layer.codebook, layer.bias) for layer in above)]


def _kept(grown: Grown, tell: Tell, state: Any) -> None:
    tell(replace(grown, tuning=state))


def with_head(network: Network, block: Block, l2: float) -> Network:
    """The network with the best classifier on top of its units as they are."""
    codes = activations(network.cast(block.X.dtype), block.X)[-1]
    head = Network(network.weights[-1:], network.biases[-1:], network.units)
    rows = replace(block, X=np.asarray(codes))
    found = minimise(lambda v: objective(head, v, rows, l2), to_vector(head), max_iter=HEAD_STEPS)
    top = from_vector(head, found.point)
    return Network(
        (*network.weights[:-1], *top.weights), (*network.biases[:-1], *top.biases), network.units
    )


def _by_all_rows(
    fitting: Fitting, plan: TuningPlan, start: Network, sums: Callable[[Network], Any],
    keep: Callable[[Network], None],
) -> Tuned:  # fmt: skip
    def function(vector: Array) -> tuple[float, Array]:
        network = from_vector(start, vector)
        return penalised(network, sums(network), plan.l2)

    def watch(n: int, value: float, point: Array) -> str:
        due = n % fitting.progress.interval == 0
        fitting.progress.say(f"network  step {n}  mean loss and penalty {value:.6f}", due)
        if fitting.is_over:
            return "time_budget"
        if fitting.checkpoint is not None:
            keep(from_vector(start, point.copy()))
        return ""

    found = minimise(
        function, to_vector(start), max_iter=plan.max_iter, tol=plan.tol, watch=watch
    )  # fmt: skip
    return Tuned(from_vector(start, found.point), found.trace, found.reason, found.n_iter)


def _by_batches(
    fitting: Fitting, plan: TuningPlan, start: Any, block: Block, keep: Callable[[Any], None]
) -> Tuned:
    rows, held = split_rows(block, plan.validation_fraction, fitting.seed)
    learner = Adam(Linear(plan.learning_rate, 0.01 * plan.learning_rate), plan.l2)
    epochs = EpochPlan(
        plan.max_epochs, plan.batch_size, plan.patience, seed=fitting.seed,
        deadline=fitting.deadline,
    )  # fmt: skip
    begun = start if isinstance(start, Training) else Training(adam_state(start))

    def watch(now: Training) -> None:
        text = f"network  epoch {now.epoch} of {plan.max_epochs}"
        text += f"  validation {now.scores[-1]:.5f}" if now.scores else ""
        fitting.progress.say(text, due=True)
        if fitting.checkpoint is not None and not now.reason:
            keep(now)

    done = train(learner, begun, rows, epochs, validation=held, watch=watch)
    state: AdamState = done.result
    return Tuned(state.network.cast(np.dtype(np.float64)), done.scores, done.reason, done.epoch)
