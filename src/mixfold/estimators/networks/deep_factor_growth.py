"""Layers of a DeepFactorNetwork, grown one after the other, and where a fit of them stands."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, record
from mixfold.engine.budget import OVER, Deadline
from mixfold.engine.checkpoints import Checkpoint
from mixfold.engine.progress import Progress
from mixfold.estimators.networks.deep_factor_rows import TrainingRows
from mixfold.estimators.networks.matrix_factorization import MatrixFactorization
from mixfold.models.networks.use import StackParams


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """Settings of one layer, and whether labels shape it: 'auto', 'after' or False."""

    size: int
    alpha: float
    beta: float
    gamma: float
    sigma2: float | None
    supervised: Any


@record
@dataclass(frozen=True, slots=True)
class Grown:
    """Where a fit stands: the files of the layers that are done, and the training of all.

    ``sources`` are those of the top layer so far; ``tuning`` is what joint training has reached.
    """

    seed: int
    layers: tuple[Any, ...] = ()
    sources: Array | None = None
    tuning: Any = None
    reason: str = ""


@dataclass
class Fitting:
    """What stays the same through a fit, and how its time is kept.

    Once it is ``stopped``, by the clock or by Ctrl-C, each layer that is left gets one pass.
    """

    rows: TrainingRows
    seed: int
    deadline: Deadline
    progress: Progress
    checkpoint: Checkpoint | None
    options: dict[str, Any] = field(default_factory=dict)
    stopped: bool = False

    @property
    def time_left(self) -> float | None:
        """Seconds for the next layer; None without a limit."""
        return OVER.seconds_left if self.stopped else self.deadline.seconds_left

    def offer(self, grown: Grown) -> None:
        """Store where the fit stands, if there is a checkpoint and its time has come."""
        if self.checkpoint is not None:
            self.checkpoint.offer(grown)


def grow_layers(
    fitting: Fitting, plans: list[LayerPlan], grown: Grown, classes: Array
) -> tuple[list[MatrixFactorization], Grown]:
    """All layers, those that a stored fit has already among them.

    Each is a factorisation of the sources of the one below.
    """
    layers = [unpack_layer(one) for one in grown.layers]
    sources = grown.sources
    for number in range(len(layers), len(plans)):
        fitting.progress.say(
            f"layer {number + 1} of {len(plans)}: {plans[number].size} sources", due=True
        )
        layer = _make_layer(fitting, plans[number], number)
        X = fitting.rows.source if sources is None else sources
        weight = None if sources is None else fitting.rows.weight
        labels = fitting.rows.labels if plans[number].supervised else None
        layer.fit(X, labels, sample_weight=weight)
        # the file and the clock were those of this fit
        layer.set_params(checkpoint=None, time_budget=None)
        layers.append(_name_classes(layer, classes))
        sources = layer.transform(X).astype(np.float64)
        reason = layer.stop_reason_ if layer.stop_reason_ in ("time_budget", "interrupted") else ""
        fitting.stopped = fitting.stopped or bool(reason)
        grown = replace(
            grown,
            layers=(*grown.layers, pack_layer(layer)),
            sources=sources,
            reason=grown.reason or reason,
        )
        if not grown.reason:
            fitting.offer(grown)
    return layers, grown


def _name_classes(layer: MatrixFactorization, classes: Array) -> MatrixFactorization:
    """The layer, which has learned class numbers, with the classes themselves."""
    if layer._target is not None:
        layer._target = replace(layer._target, classes=classes)
        layer._publish_params()
    return layer


def _make_layer(fitting: Fitting, plan: LayerPlan, number: int) -> MatrixFactorization:
    key = np.random.SeedSequence([fitting.seed % 2**63, 11, number])
    # a layer on top of one that was cut short is not to be gone on with
    file = None if fitting.stopped else fitting.checkpoint
    options = {
        "random_state": int(key.generate_state(1, np.uint64)[0] >> 1),
        "time_budget": fitting.time_left,
        "checkpoint": None if file is None else f"{file.path}.layer{number + 1}",
        **fitting.options,
    }
    return MatrixFactorization(
        plan.size, alpha=plan.alpha, beta=plan.beta, gamma=plan.gamma, sigma2=plan.sigma2,
        supervised=plan.supervised if fitting.rows.labels is not None else False, **options,
    )  # fmt: skip


def stack_layers(layers: list[MatrixFactorization]) -> StackParams:
    """The layers as they infer their sources."""
    encoders = [layer._encoder() for layer in layers]
    return StackParams(
        tuple(one.layer for one in encoders), encoders[0].link,
        tuple(one.alpha for one in encoders), tuple(one.sigma2 for one in encoders),
    )  # fmt: skip


def put_stack_into_layers(
    layers: list[MatrixFactorization], stack: StackParams
) -> list[MatrixFactorization]:
    """The layers with codebooks and classifiers of a stack that was trained jointly."""
    for layer, trained in zip(layers, stack.layers, strict=True):
        layer._params = replace(layer._params, layer=trained)
        layer._publish_params()
    return layers


# ------------------------------------------------ layers in files


def pack_layer(layer: MatrixFactorization) -> dict[str, Any]:
    """A fitted layer as values that a file can hold."""
    return {"parameters": layer._plain_parameters(), "state": layer._state()}


def unpack_layer(tree: dict[str, Any]) -> MatrixFactorization:
    """The layer that was packed."""
    return MatrixFactorization._from_state(tree)
