"""Infer the sources of rows, or of a class, given all layers of a jointly trained stack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixfold.contracts import Array
from mixfold.math.link_functions import Link
from mixfold.math.softmax import normalise
from mixfold.models.networks.factorization.codes import codes
from mixfold.models.networks.factorization.records import Layer
from mixfold.models.networks.joint import source_box
from mixfold.models.networks.row_descent import RowFunction, descend
from mixfold.models.networks.stack import Energy

# steps of a row that looks for a class
CLASS_STEPS = 1000


def climb_layers(
    layers: Sequence[Layer], link: Link, X: Array, alpha: Sequence[float], sigma2: Sequence[float]
) -> tuple[Array, ...]:
    """Sources (n, H_l) of all layers, each inferred from those of the layer below, no labels."""
    below, out = X, []
    for layer, rate, s2 in zip(layers, alpha, sigma2, strict=True):
        below = link.inverse(codes(layer.without_head(), link, below, rate, s2))
        out.append(below)
    return tuple(out)


def settle(
    energy: Energy,
    layers: Sequence[Layer],
    link: Link,
    alpha: Sequence[float],
    X: Array,
    start: Sequence[Array],
    *,
    max_steps: int = 300,
    tol: float = 1e-7,
) -> tuple[Array, ...]:
    """Sources of the free layers that minimise the energy of each row, without labels.

    ``start`` holds sources of these layers. For several free layers the energy is not convex: the
    answer is the minimum that lies downhill of the start.
    """
    free = energy.free(len(layers))
    widths = [layers[number].n_codes for number in free]
    cuts = np.cumsum(widths)[:-1]
    bare = (*layers[:-1], layers[-1].without_head())

    def function(rows: Array, index: Array) -> tuple[Array, Array]:
        pull = energy.pull(bare, X[index], None, np.split(rows, cuts, axis=1))
        return pull.values, np.concatenate(pull.sources, axis=1)

    rates = np.repeat([float(alpha[number]) for number in free], widths)
    low, high = (np.full(len(rates), end) for end in source_box(link))
    points = np.clip(np.concatenate(start, axis=1), low, high)
    if not rates.any() and link.lower < link.centre:
        turn = _round_coordinates(energy, bare, link, cuts)
        points = _settle_inside(function, points, turn, low, high, max_steps, tol)
    points, _ = descend(function, points, rates, low, high, max_steps=max_steps, tol=tol)
    return tuple(np.split(points, cuts, axis=1))


def _settle_inside(
    function: RowFunction, points: Array, turn: Array, low: Array, high: Array, max_steps: int,
    tol: float,
) -> Array:  # fmt: skip
    """Rows after steps in coordinates z = s turn^-1; those that leave the box are as before."""

    def rotate(rows: Array, index: Array) -> tuple[Array, Array]:
        value, slope = function(rows @ turn, index)
        return value, slope @ turn.T

    size = len(turn)
    found, _ = descend(
        rotate, np.linalg.solve(turn.T, points.T).T, np.zeros(size), np.full(size, -np.inf),
        np.full(size, np.inf), max_steps=max_steps, tol=tol,
    )  # fmt: skip
    found = found @ turn
    inside = ((found >= low) & (found <= high)).all(axis=1, keepdims=True)
    return np.where(inside, found, points)


def _round_coordinates(
    energy: Energy, layers: Sequence[Layer], link: Link, cuts: Array
) -> Array:  # fmt: skip
    """A matrix (H, H): in z with s = z turn the energy is about as steep in all directions.

    It is made of second derivatives, by differences of the gradient, where the top sources are
    zero and all else is as they generate it.
    """
    sources = [np.zeros((1, layers[-1].n_codes))]
    for layer in layers[::-1]:
        sources.insert(0, link.value(sources[0]) @ layer.codebook + layer.bias)
    centre = np.concatenate([sources[number + 1] for number in energy.free(len(layers))], axis=1)
    unit = 1e-4 * np.eye(centre.shape[1])
    X = np.repeat(sources[0], 2 * len(unit), axis=0)
    moved = np.split(np.concatenate([centre + unit, centre - unit]), cuts, axis=1)
    slopes = np.concatenate(energy.pull(layers, X, None, moved).sources, axis=1)
    bend = (slopes[: len(unit)] - slopes[len(unit) :]) / 2e-4
    values, vectors = np.linalg.eigh((bend + bend.T) / 2)
    values = np.maximum(values, 1e-10 * max(float(values[-1]), 1e-300))
    return np.asarray((vectors / np.sqrt(values)).T)


def towards_class(
    layer: Layer, link: Link, number: int, start: Array, alpha: float, stop: float | None
) -> Array:
    """Sources that go down -ln q(class) + alpha |s| from their start (n, H).

    A row ends when the class has more probability than ``stop``; with None at the minimum, which
    is one and the same for all starts.
    """
    weights, intercept = layer.head()

    def probability(rows: Array) -> tuple[Array, Array]:
        scores = link.value(rows) @ weights + intercept
        total, share = normalise(scores)
        return total - scores[:, number], share

    def function(rows: Array, index: Array) -> tuple[Array, Array]:
        value, share = probability(rows)
        share[:, number] -= 1
        return value, (share @ weights.T) * link.slope(link.value(rows))

    def enough(rows: Array) -> Array:
        return np.asarray(probability(rows)[1][:, number] > stop)

    low, high = source_box(link)
    size = start.shape[1]
    points, _ = descend(
        function, start, np.full(size, float(alpha)), np.full(size, low), np.full(size, high),
        max_steps=CLASS_STEPS, enough=None if stop is None else enough,
    )  # fmt: skip
    return points
