"""Training of all layers of a DeepFactorNetwork together.

``tune_recognition`` is fine_tune='recognition': a feed-forward network, from the codebooks to the
classes. ``tune_jointly`` is 'map' and 'decoder': the layers themselves, with their sources.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, record
from mixfold.engine.epochs import EpochPlan, Training, split_rows, train
from mixfold.engine.executors import resolve_executor
from mixfold.engine.sources import open_source
from mixfold.estimators.networks.deep_factor_growth import Fitting, Grown
from mixfold.estimators.networks.deep_factor_rows import take_labelled
from mixfold.math.frame import Frame
from mixfold.math.rates import Linear
from mixfold.math.softmax_regression import LabelledRows, improve_by_rows, value_and_gradient
from mixfold.models.networks.adam import Adam, AdamState, adam_state
from mixfold.models.networks.coordinates import coordinates_of, network_in_data_units, rows_in_frame
from mixfold.models.networks.factorization.model import dense_rows
from mixfold.models.networks.factorization.records import Layer
from mixfold.models.networks.joint import Joint, Penalties, fit_jointly
from mixfold.models.networks.quasi_newton import Descent, Watcher, minimise
from mixfold.models.networks.recognition import activations, block_sums, objective, penalised_loss
from mixfold.models.networks.records import Network, from_vector, to_vector
from mixfold.models.networks.source_inference import climb_layers
from mixfold.models.networks.starts import Spread, block_spread, stacked_start
from mixfold.models.networks.use import StackParams, fill_missing, sources_of

# from so many entries on the network is trained in single precision
SINGLE_ENTRIES = 10**6
# rows up to which all of them make one step
ALL_ROWS = 20_000
# steps of the classifier alone: on top of the codebooks, where a network begins
NETWORK_HEAD_STEPS = 60
# and on sources that are inferred without labels, where joint training has ended
JOINT_HEAD_STEPS = 200


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
class TuningResult:
    """What came out, with the curve (objective after each step, or scores after each epoch).

    ``top`` holds sources of the top layer of the labelled rows, where they are not as before.
    """

    result: Any
    curve: tuple[float, ...]
    reason: str
    n_iter: int
    top: Array | None = None


@record
@dataclass(frozen=True, slots=True)
class Tuning:
    """Where quasi-Newton steps stand, and the network at their start, whose shapes they have."""

    descent: Descent
    network: Network | None = None


# ------------------------------------------------ a recognition network


def tune_recognition(
    fitting: Fitting, stack: StackParams, n_classes: int, plan: TuningPlan, grown: Grown
) -> TuningResult:
    """A network that undoes the stack, trained to tell the classes."""
    block, frame = _recognition_rows(fitting, stack)
    source = open_source(block.X, y=block.y, weight=block.weight)
    executor = resolve_executor(plan.executor, plan.n_jobs, source)

    def spread(trial: Network) -> Spread:
        return executor.map_reduce(partial(block_spread, trial), source)

    def sums(network: Network) -> Any:
        return executor.map_reduce(partial(block_sums, network), source)

    by_rows = plan.solver == "lbfgs" or (plan.solver == "auto" and block.n_rows <= ALL_ROWS)
    start = grown.tuning.network if isinstance(grown.tuning, Tuning) else grown.tuning
    if start is None:
        codebooks = _codebooks(stack, frame)
        start = _fit_head(stacked_start(codebooks, n_classes, spread), block, plan.l2)
    if by_rows:
        tuned = _by_all_rows(fitting, plan, start, sums, grown)
    else:
        tuned = _by_batches(fitting, plan, start, block, grown)
    return replace(tuned, result=network_in_data_units(frame, tuned.result))


def _recognition_rows(fitting: Fitting, stack: StackParams) -> tuple[Block, Frame]:
    """Labelled rows in memory, missing entries as the first layer reconstructs them.

    They are in the coordinates in which a network is trained, which are given, too.
    """
    X = fill_missing(stack, fitting.rows.gather())
    block = take_labelled(fitting.rows, X)
    single = block.X.shape[0] * block.X.shape[1] >= SINGLE_ENTRIES
    frame = coordinates_of(block.X, block.weights())
    kind = np.dtype(np.float32) if single else block.X.dtype
    return replace(block, X=rows_in_frame(frame, block.X, kind)), frame


def _codebooks(stack: StackParams, frame: Frame) -> list[tuple[Array, Array]]:
    """Codebooks and biases of all layers, those of the first in the coordinates of the rows."""
    first, *above = stack.layers
    below = (first.codebook / frame.scale, frame.enter(first.bias))
    return [below, *((layer.codebook, layer.bias) for layer in above)]


def _fit_head(network: Network, block: Block, l2: float) -> Network:
    """The network with the best classifier on top of its units as they are."""
    codes = activations(network.cast(block.X.dtype), block.X)[-1]
    head = Network(network.weights[-1:], network.biases[-1:], network.units)
    rows = replace(block, X=np.asarray(codes))
    found = minimise(
        lambda v: objective(head, v, rows, l2), to_vector(head), max_iter=NETWORK_HEAD_STEPS
    )
    top = from_vector(head, found.point)
    return Network(
        (*network.weights[:-1], *top.weights), (*network.biases[:-1], *top.biases), network.units
    )


def _by_all_rows(
    fitting: Fitting, plan: TuningPlan, start: Network, sums: Callable[[Network], Any],
    grown: Grown,
) -> TuningResult:  # fmt: skip
    """Quasi-Newton steps, each over all rows."""

    def function(vector: Array) -> tuple[float, Array]:
        network = from_vector(start, vector)
        return penalised_loss(network, sums(network), plan.l2)

    words = "network  step {}  mean loss and penalty {:.6f}"
    begin = grown.tuning.descent if isinstance(grown.tuning, Tuning) else to_vector(start)
    found = minimise(
        function, begin, max_iter=plan.max_iter, tol=plan.tol,
        watch=_watcher(fitting, words, grown, start),
    )  # fmt: skip
    return TuningResult(from_vector(start, found.point), found.trace, found.reason, found.n_iter)


def _watcher(
    fitting: Fitting, words: str, grown: Grown, network: Network | None = None
) -> Watcher:  # fmt: skip
    """Tells of steps and values, offers them to the checkpoint, ends when the time is up."""

    def watch(now: Descent) -> str:
        due = now.n_iter % fitting.progress.interval == 0
        fitting.progress.say(words.format(now.n_iter, now.value), due)
        fitting.offer(replace(grown, tuning=Tuning(now, network)))
        return "time_budget" if fitting.deadline.has_passed else ""

    return watch


def _by_batches(
    fitting: Fitting, plan: TuningPlan, start: Any, block: Block, grown: Grown
) -> TuningResult:
    """Adam on mini-batches; ``start`` is a network, or a training to go on with."""
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
            fitting.offer(replace(grown, tuning=now))

    done = train(learner, begun, rows, epochs, validation=held, watch=watch)
    state: AdamState = done.result
    return TuningResult(
        state.network.cast(np.dtype(np.float64)), done.scores, done.reason, done.epoch
    )


# ------------------------------------------------ layers and sources together


def tune_jointly(
    fitting: Fitting, stack: StackParams, reading: str, penalties: Penalties, max_iter: int,
    tol: float, grown: Grown,
) -> TuningResult:  # fmt: skip
    """The stack whose energy, under this reading, is lowest downhill of the greedy one."""
    joint, labels, frame = _make_joint(fitting, replace(stack, reading=reading), penalties)
    # files of earlier versions hold the point alone
    start = grown.tuning.descent if isinstance(grown.tuning, Tuning) else grown.tuning
    watch = _watcher(fitting, reading + "  step {}  energy {:.6g}", grown)
    _, layers, found = fit_jointly(joint, max_iter=max_iter, tol=tol, watch=watch, start=start)
    layers = (_leave_frame(frame, layers[0]), *layers[1:])
    trained, top = replace(stack, layers=layers, reading=reading), None
    if labels is not None:
        known = labels >= 0
        rows = frame.leave(joint.X[known])
        sources, weight = sources_of(trained, rows), joint.weight[known]
        trained = _refit_classifiers(trained, sources, labels[known], weight, penalties.gamma)
        top = sources[-1]
    return TuningResult(trained, found.trace, found.reason, found.n_iter, top)


def _make_joint(
    fitting: Fitting, stack: StackParams, penalties: Penalties
) -> tuple[Joint, Array | None, Frame]:  # fmt: skip
    """What is minimised, from where, for the rows of positive weight; and their labels.

    Steps depend on units, the energy does not: it is minimised for rows in a frame.
    """
    weighs = fitting.rows.weights > 0
    X = dense_rows(fitting.rows.gather())[weighs]
    labels = None if fitting.rows.labels is None else fitting.rows.labels[weighs]
    weight = fitting.rows.weights[weighs]
    frame = coordinates_of(X, weight)
    X, unit = frame.enter(X), float(frame.scale[0])
    layers = (_enter_frame(frame, stack.layers[0]), *stack.layers[1:])
    sigma2 = (stack.sigma2[0] / unit**2, *stack.sigma2[1:])
    stack = replace(stack, layers=layers, sigma2=sigma2)
    penalties = replace(penalties, beta=(penalties.beta[0] * unit, *penalties.beta[1:]))
    energy = stack.energy()
    start = climb_layers(stack.layers, stack.link, X, stack.alpha, stack.sigma2)
    free = tuple(start[number] for number in energy.free(len(stack.layers)))
    seen = labels if stack.layers[-1].classifier is not None else None
    joint = Joint(energy, stack.link, penalties, X, seen, weight, stack.layers, free)
    return joint, labels, frame


def _enter_frame(frame: Frame, layer: Layer) -> Layer:
    """The layer of rows in the frame, which has one unit for all columns."""
    codebook, radius = layer.codebook / frame.scale, layer.radius / float(frame.scale[0])
    return replace(layer, codebook=codebook, bias=frame.enter(layer.bias), radius=radius)


def _leave_frame(frame: Frame, layer: Layer) -> Layer:
    codebook, radius = layer.codebook * frame.scale, layer.radius * float(frame.scale[0])
    return replace(layer, codebook=codebook, bias=frame.leave(layer.bias), radius=radius)


def _refit_classifiers(
    stack: StackParams, sources: Sequence[Array], labels: Array, weight: Array, gamma: float
) -> StackParams:
    """Classifiers fitted anew to sources that no label has moved, as those of new rows are."""
    layers = [
        _refit_classifier(layer, stack.link.value(source), labels, weight, gamma)
        for layer, source in zip(stack.layers, sources, strict=True)
    ]
    return replace(stack, layers=tuple(layers))


def _refit_classifier(
    layer: Layer, phi: Array, labels: Array, weight: Array, gamma: float
) -> Layer:
    if layer.classifier is None:
        return layer
    first = np.vstack(layer.head())
    part = LabelledRows(phi, labels, weight)
    loss = partial(value_and_gradient, rows=part)
    found = improve_by_rows(first, loss, gamma, False, JOINT_HEAD_STEPS)
    return replace(layer, classifier=found[:-1], intercept=found[-1])
