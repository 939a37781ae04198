"""Training of all layers of a stack together, with their sources: 'map' and 'decoder'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.networks.deep_factor_growth import Fitting, Grown
from mixfold.estimators.networks.deep_factor_tuning import Tell, Tuned
from mixfold.math.frame import Frame
from mixfold.math.softmax_regression import LabelledRows, improve_by_rows
from mixfold.models.networks.coordinates import coordinates_of
from mixfold.models.networks.factorization.model import dense_rows
from mixfold.models.networks.factorization.records import Layer
from mixfold.models.networks.joint import Joint, Penalties, fit_jointly
from mixfold.models.networks.settle import climb_layers
from mixfold.models.networks.use import StackParams, sources_of

# steps of the classifier, once the sources are inferred without labels
HEAD_STEPS = 200


def tune_jointly(
    fitting: Fitting, stack: StackParams, reading: str, penalties: Penalties, max_iter: int,
    tol: float, grown: Grown, tell: Tell,
) -> Tuned:  # fmt: skip
    """The stack whose energy, under this reading, is lowest downhill of the greedy one."""
    joint, labels, frame = _joint(fitting, replace(stack, reading=reading), penalties)
    if grown.tuning is not None:
        sources, layers = joint.unpack(grown.tuning)
        joint = replace(joint, sources=sources, layers=layers)

    def watch(n: int, value: float, point: Array) -> str:
        due = n % fitting.progress.interval == 0
        fitting.progress.say(f"{reading}  step {n}  energy {value:.6g}", due)
        if fitting.is_over:
            return "time_budget"
        if fitting.checkpoint is not None:
            tell(replace(grown, tuning=point.copy()))
        return ""

    _, layers, found = fit_jointly(joint, max_iter=max_iter, tol=tol, watch=watch)
    layers = (_left(frame, layers[0]), *layers[1:])
    trained, top = replace(stack, layers=layers, reading=reading), None
    if labels is not None:
        known = labels >= 0
        rows = frame.leave(joint.X[known])
        sources, weight = sources_of(trained, rows), joint.weight[known]
        trained = with_heads(trained, sources, labels[known], weight, penalties.gamma)
        top = sources[-1]
    return Tuned(trained, found.trace, found.reason, found.n_iter, top)


def _joint(
    fitting: Fitting, stack: StackParams, penalties: Penalties
) -> tuple[Joint, Array | None, Frame]:  # fmt: skip
    """What is minimised, from where, for the rows of positive weight; and their labels.

    Steps depend on units, the energy does not: it is minimised for rows in a frame.
    """
    weighs = fitting.rows.weights > 0
    X = dense_rows(fitting.rows.gathered())[weighs]
    labels = None if fitting.rows.labels is None else fitting.rows.labels[weighs]
    weight = fitting.rows.weights[weighs]
    frame = coordinates_of(X, weight)
    X, unit = frame.enter(X), float(frame.scale[0])
    layers = (_entered(frame, stack.layers[0]), *stack.layers[1:])
    sigma2 = (stack.sigma2[0] / unit**2, *stack.sigma2[1:])
    stack = replace(stack, layers=layers, sigma2=sigma2)
    penalties = replace(penalties, beta=(penalties.beta[0] * unit, *penalties.beta[1:]))
    energy = stack.energy()
    start = climb_layers(stack.layers, stack.link, X, stack.alpha, stack.sigma2)
    free = tuple(start[number] for number in energy.free(len(stack.layers)))
    seen = labels if stack.layers[-1].classifier is not None else None
    joint = Joint(energy, stack.link, penalties, X, seen, weight, stack.layers, free)
    return joint, labels, frame


def _entered(frame: Frame, layer: Layer) -> Layer:
    """The layer of rows in the frame, which has one unit for all columns."""
    codebook, radius = layer.codebook / frame.scale, layer.radius / float(frame.scale[0])
    return replace(layer, codebook=codebook, bias=frame.enter(layer.bias), radius=radius)


def _left(frame: Frame, layer: Layer) -> Layer:
    codebook, radius = layer.codebook * frame.scale, layer.radius * float(frame.scale[0])
    return replace(layer, codebook=codebook, bias=frame.leave(layer.bias), radius=radius)


def with_heads(
    stack: StackParams, sources: Sequence[Array], labels: Array, weight: Array, gamma: float
) -> StackParams:
    """Classifiers fitted anew to sources that no label has moved, as those of new rows are."""
    layers = [
        _with_head(layer, stack.link.value(source), labels, weight, gamma)
        for layer, source in zip(stack.layers, sources, strict=True)
    ]
    return replace(stack, layers=tuple(layers))


def _with_head(layer: Layer, phi: Array, labels: Array, weight: Array, gamma: float) -> Layer:
    if layer.classifier is None:
        return layer
    first = np.vstack(layer.head())
    part = LabelledRows(phi, labels, weight)
    found = improve_by_rows(first, [part], gamma, False, HEAD_STEPS)
    return replace(layer, classifier=found[:-1], intercept=found[-1])
