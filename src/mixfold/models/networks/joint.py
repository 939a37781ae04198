"""All sources and all layers of a stack as one vector, minimised together.

Penalties are exact: |S|, |A| and |V| are split into two parts by the minimiser. Rows of a codebook
that must not grow longer than a radius are seen through their projection on that ball.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array
from mixfold.math.link_functions import Link
from mixfold.models.networks.factorization.records import Layer
from mixfold.models.networks.quasi_newton import Descent, Minimum, Watcher, minimise_l1
from mixfold.models.networks.stack import Energy


@dataclass(frozen=True, slots=True)
class Penalties:
    """Rates of |S_l| and |A_l| by layer, and of |V|."""

    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    gamma: float = 0.0


@dataclass(frozen=True, slots=True)
class Joint:
    """The energy of all rows, of positive weight, as a function of one vector.

    ``layers`` and ``sources`` (of the free layers) lend the shapes; ``labels`` may be None.
    """

    energy: Energy
    link: Link
    penalties: Penalties
    X: Array
    labels: Array | None
    weight: Array
    layers: tuple[Layer, ...]
    sources: tuple[Array, ...]

    @property
    def _scale(self) -> Array:
        """Sources in the vector are sqrt(weight) times themselves (n, 1).

        So a row of weight two is as far from another point as two rows are, and steps are the same.
        """
        return np.sqrt(self.weight)[:, None]

    def pack(self, sources: Sequence[Array], layers: Sequence[Layer]) -> Array:
        scaled = [self._scale * source for source in sources]
        return np.concatenate([part.ravel() for part in (*scaled, *_parts(layers))])

    def unpack(self, vector: Array) -> tuple[tuple[Array, ...], tuple[Layer, ...]]:
        """Sources and layers, rows of codebooks within their radius."""
        sources, layers = self._unpack(vector)
        return sources, tuple(
            replace(layer, codebook=layer.codebook * _shrinks(layer)) for layer in layers
        )

    def _unpack(self, vector: Array) -> tuple[tuple[Array, ...], tuple[Layer, ...]]:
        parts, at = [], 0
        for like in (*self.sources, *_parts(self.layers)):
            parts.append(vector[at : at + like.size].reshape(like.shape))
            at += like.size
        n, depth = len(self.sources), len(self.layers)
        layers = [
            replace(layer, codebook=parts[n + 2 * i], bias=parts[n + 2 * i + 1])
            for i, layer in enumerate(self.layers)
        ]
        if self.layers[-1].classifier is not None:
            layers[-1] = replace(
                layers[-1], classifier=parts[n + 2 * depth], intercept=parts[n + 2 * depth + 1]
            )
        return tuple(part / self._scale for part in parts[:n]), tuple(layers)

    def function(self, vector: Array) -> tuple[float, Array]:
        """Energy without penalties, and its gradient."""
        _, raw = self._unpack(vector)
        sources, layers = self.unpack(vector)
        pull = self.energy.pull(layers, self.X, self.labels, sources)
        slopes = pull.of_layers(self.weight)
        if slopes[-1].classifier is None and layers[-1].classifier is not None:
            zeros = (np.zeros_like(part) for part in layers[-1].head())
            classifier, intercept = zeros
            last = replace(slopes[-1], classifier=classifier, intercept=intercept)
            slopes = (*slopes[:-1], last)
        slopes = tuple(
            replace(slope, codebook=_through_ball(layer, slope.codebook))
            for layer, slope in zip(raw, slopes, strict=True)
        )
        # the slope by sqrt(w) s is sqrt(w) times that of one row by s, as packing makes it
        return float(self.weight @ pull.values), self.pack(pull.sources, slopes)

    def rates(self) -> Array:
        """L1 penalty of each entry."""
        free = self.energy.free(len(self.layers))
        of_rows = [
            np.broadcast_to(self.penalties.alpha[layer] * self._scale, source.shape)
            for layer, source in zip(free, self.sources, strict=True)
        ]
        rates = []
        for layer, beta in zip(self.layers, self.penalties.beta, strict=True):
            rates += [np.full(layer.codebook.shape, beta), np.zeros(layer.bias.shape)]
        if self.layers[-1].classifier is not None:
            weights, intercept = self.layers[-1].head()
            rates += [np.full(weights.shape, self.penalties.gamma), np.zeros(intercept.shape)]
        return np.concatenate([part.ravel() for part in (*of_rows, *rates)])

    def bounds(self) -> tuple[Array, Array]:
        """Sources stay in the box of the link; all else is free."""
        low, high = source_box(self.link)
        size, at = len(self.rates()), 0
        lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
        for source in self.sources:
            scale = np.broadcast_to(self._scale, source.shape).ravel()
            lower[at : at + source.size], upper[at : at + source.size] = low * scale, high * scale
            at += source.size
        return lower, upper


def source_box(link: Link) -> tuple[float, float]:
    """Between what the sources must stay."""
    low, high = link.inverse(np.array([link.lower, link.upper]))
    return float(low), float(high)


def fit_jointly(
    joint: Joint,
    *,
    max_iter: int,
    tol: float,
    watch: Watcher | None = None,
    start: Array | Descent | None = None,
) -> tuple[tuple[Array, ...], tuple[Layer, ...], Minimum]:
    """Sources, layers and how they came about; the energy with its penalties never rises.

    ``start`` is a vector, or where an earlier search stood, as the watcher was told.
    """
    if start is None:
        start = joint.pack(joint.sources, joint.layers)
    lower, upper = joint.bounds()
    found = minimise_l1(
        joint.function, start, joint.rates(), lower, upper, max_iter=max_iter, tol=tol, watch=watch
    )
    sources, layers = joint.unpack(found.point)
    return sources, layers, found


def _parts(layers: Sequence[Layer]) -> list[Array]:
    parts = [part for layer in layers for part in (layer.codebook, layer.bias)]
    return parts if layers[-1].classifier is None else [*parts, *layers[-1].head()]


def _shrinks(layer: Layer) -> Array:
    """Factors (H, 1) that bring the rows of a codebook into the ball."""
    if not np.isfinite(layer.radius):
        return np.ones((layer.n_codes, 1))
    norms = np.linalg.norm(layer.codebook, axis=1, keepdims=True)
    return np.asarray(layer.radius / np.maximum(norms, layer.radius))


def _through_ball(layer: Layer, slope: Array) -> Array:
    """The gradient by rows before the projection, from that by projected ones."""
    shrinks = _shrinks(layer)
    outside = shrinks < 1
    if not outside.any():
        return slope
    squares = np.maximum((layer.codebook**2).sum(axis=1, keepdims=True), 1e-300)
    along = (layer.codebook * slope).sum(axis=1, keepdims=True) / squares * layer.codebook
    return np.asarray(shrinks * (slope - np.where(outside, along, 0.0)))
