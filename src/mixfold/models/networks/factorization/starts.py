"""Starts of a factorisation, and the scale of its codes.

The scale of a source is arbitrary without penalties of sources and codebook, but the classifier
and a next layer see it. So rows of the codebook have one norm, such that nearly all codes are well
within their range (the gauge); the sources then keep their order of importance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixfold.contracts import Array
from mixfold.math.link_functions import Identity, Link
from mixfold.math.principal import Axes, sample_axes
from mixfold.models.networks.factorization.codes import CodeProblem
from mixfold.models.networks.factorization.records import Layer

# this share of the codes is within this part of their range
SHARE, PART = 0.999, 0.95
# rows of a sample that are looked at for the gauge
GAUGE_ROWS = 5000


def fill_with_mean(X: Array, mean: Array) -> Array:
    """Rows with the mean where entries are missing."""
    return np.where(np.isnan(X), mean, X)


def axes_directions(axes: Axes, size: int, one_sided: bool) -> Array:
    """Unit rows (size, D): principal axes, or each with both signs where codes have only one."""
    vectors = axes.vectors.T
    if not one_sided:
        return np.array(vectors[:size])
    both = np.repeat(vectors[: (size + 1) // 2], 2, axis=0)
    both[1::2] *= -1.0
    return both[:size]


def random_directions(D: int, size: int, nonneg: bool, rng: np.random.Generator) -> Array:
    rows = rng.standard_normal((size, D))
    return unit_rows(np.abs(rows) if nonneg else rows)


def nonneg_directions(X: Array, weight: Array, size: int, rng: np.random.Generator) -> Array:
    """NNDSVD: of each singular pair the signs that weigh more; zeros become a little."""
    axes = sample_axes(X, weight, min(size, *X.shape), np.zeros(X.shape[1]))
    scores = (X @ axes.vectors) * np.sqrt(weight)[:, None]
    out = random_directions(X.shape[1], size, True, rng)
    for h in range(int((axes.values > 1e-20 * axes.total).sum())):
        out[h] = _dominant(scores[:, h], axes.vectors[:, h])
    little = 1e-2 * out.mean(axis=1, keepdims=True)
    return unit_rows(np.maximum(out, little))


def _dominant(u: Array, v: Array) -> Array:
    plus = np.linalg.norm(np.maximum(u, 0)) * np.linalg.norm(np.maximum(v, 0))
    minus = np.linalg.norm(np.maximum(-u, 0)) * np.linalg.norm(np.maximum(-v, 0))
    return np.maximum(v if plus >= minus else -v, 0.0)


def unit_rows(rows: Array) -> Array:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1.0))


def gauge_norm(
    directions: Array, mean: Array, X: Array, weight: Array, link: Link, one_sided: bool
) -> float:
    """The norm of rows of the codebook at which the codes of a sample X are within their range."""
    free = Identity(lower=0.0) if one_sided else Identity()
    problem = CodeProblem(Layer(directions, mean), free, 0.0, 1.0, 1e-4, 100)
    return _norm_of(problem.solve(X[:GAUGE_ROWS]), weight[:GAUGE_ROWS], link, one_sided)


def _norm_of(amounts: Array, weight: Array, link: Link, one_sided: bool) -> float:
    reach = 1.0 if one_sided else link.half
    most = _weighted_quantile(np.abs(amounts), weight)
    return most / (PART * reach) if most > 0 else 1.0


def _weighted_quantile(sizes: Array, weight: Array) -> float:
    """The value that this share of the entries does not exceed; of a row of weight two, twice."""
    order = np.argsort(sizes, axis=None, kind="stable")
    if not order.size:
        return 0.0
    weights = np.repeat(weight, sizes.shape[1])[order]
    reached = np.cumsum(weights)
    at = int(np.searchsorted(reached, (SHARE - 1e-12) * reached[-1]))
    return float(sizes.ravel()[order[at]])


def first_layer(
    directions: Array, mean: Array, X: Array, weight: Array, link: Link, one_sided: bool
) -> Layer:
    """Rows of the gauge's norm; the bias is such that codes at the centre give the mean."""
    norm = gauge_norm(directions, mean, X, weight, link, one_sided)
    codebook = norm * directions
    bias = mean if one_sided else mean - link.centre * codebook.sum(axis=0)
    return Layer(codebook, bias)


def normalise_codebook(
    layer: Layer, phi: Array, weight: Array, link: Link, one_sided: bool
) -> Layer:
    """The same layer with rows of one norm: reconstructions and classes stay what they are.

    ``phi`` are codes of a sample at ``layer``, of rows with weights.
    """
    norms = np.linalg.norm(layer.codebook, axis=1)
    if not (norms > 0).all():
        return layer
    centre = 0.0 if one_sided else link.centre
    norm = _norm_of((phi - centre) * norms, weight, link, one_sided)
    shrunk = (norm / norms)[:, None]  # of the codebook; codes move by the inverse about the centre
    codebook = layer.codebook * shrunk
    bias = layer.bias + centre * (layer.codebook - codebook).sum(axis=0)
    new = replace(layer, codebook=codebook, bias=bias)
    if layer.classifier is None or layer.intercept is None:
        return new
    classifier = layer.classifier * shrunk
    intercept = layer.intercept + centre * (layer.classifier - classifier).sum(axis=0)
    return replace(new, classifier=classifier, intercept=intercept)
