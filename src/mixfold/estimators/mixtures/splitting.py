"""Starts with more components, made from a fitted Gaussian mixture by splitting some of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.families import GAUSSIAN
from mixfold.math.dependent_columns import DependentColumns
from mixfold.models.mixtures.remaining_columns import select_columns

# the halves of a component lie this many standard deviations from its mean
FAR, NEAR = 0.8, 0.05
# components that are tried, heaviest first
CANDIDATES = 4

# parameters by which a start is prescribed
PRESCRIBED = ("weights_init", "means_init", "precisions_init")


def can_split(estimator: Any) -> bool:
    """Whether a start can be prescribed to the estimator, and the user has not done so."""
    params = estimator.get_params(deep=False)
    given = [params.get(name, estimator) for name in PRESCRIBED]
    return params.get("covariance_type") in GAUSSIAN and all(value is None for value in given)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A Gaussian mixture in plain arrays, in data coordinates."""

    kind: str
    weights: Array
    means: Array
    covariances: Array

    @property
    def tied(self) -> bool:
        return self.kind.startswith("tied")

    def covariance(self, k: int) -> Array:
        return np.asarray(self.covariances if self.tied else self.covariances[k])

    def scale(self) -> Array:
        """Standard deviation of each column under the whole mixture: units do not matter."""
        D = self.means.shape[1]
        own = [_variances(self.covariance(k), D) for k in range(len(self.weights))]
        between = (self.means - self.weights @ self.means) ** 2
        scale = np.sqrt(self.weights @ (np.array(own) + between))
        return np.where(scale > 0, scale, 1.0)

    def init(self) -> dict[str, Array]:
        matrix = GAUSSIAN[self.kind].matrix
        inverse = _inverse(self.covariances) if matrix else 1.0 / self.covariances
        return dict(zip(PRESCRIBED, (self.weights, self.means, inverse), strict=True))


def split_starts(model: Any, n_components: int, far: bool = True) -> Iterator[dict[str, Array]]:
    """Starts of ``n_components`` from a fitted mixture of fewer, as constructor arguments.

    Parameters
    ----------
    model : GaussianMixture
        A fitted one.
    n_components : int
        More than the model has.
    far : bool, default=True
        True: one start for each of the heaviest components, whose halves are set well apart and
        shrunk so that mean and covariance of the pair are those of the component. False: a single
        start with halves so near that its likelihood is almost that of the model.
    """
    aside = getattr(model, "_dependent", None)
    kept = np.arange(model.n_features_in_) if aside is None else aside.kept
    parts = _Parts(
        model.covariance_type,
        np.asarray(model.weights_, dtype=float) / np.sum(model.weights_, dtype=float),
        np.asarray(model.means_, dtype=float)[:, kept],
        select_columns(
            GAUSSIAN[model.covariance_type], np.asarray(model.covariances_, float), kept
        ),
    )
    heaviest = np.argsort(-parts.weights, kind="stable")
    for k in heaviest[: CANDIDATES if far else 1]:
        grown = _split_component(parts, int(k), FAR if far else NEAR)
        while len(grown.weights) < n_components:
            grown = _split_component(grown, int(np.argmax(grown.weights)), FAR if far else NEAR)
        yield grown.init() if aside is None else _with_all_columns(grown, aside)


def _with_all_columns(parts: _Parts, columns: DependentColumns) -> dict[str, Array]:
    """A start with all columns; what it says of those that are set aside is not used."""
    start = parts.init()
    start["means_init"] = columns.expand(start["means_init"])
    family, kept = GAUSSIAN[parts.kind], columns.kept
    shape = family.scatter_shape(len(parts.weights), columns.n_features)
    inverse = start["precisions_init"]
    if inverse.shape != shape:
        wide = np.broadcast_to(np.eye(columns.n_features) if family.matrix else 1.0, shape).copy()
        if family.matrix:
            wide[..., kept[:, None], kept] = inverse
        else:
            wide[..., kept] = inverse
        start["precisions_init"] = wide
    return start


def _split_component(parts: _Parts, k: int, distance: float) -> _Parts:
    """Component ``k`` as two halves: one keeps its number, the other becomes the last."""
    step = distance * _axis(parts, k)
    weights = np.append(parts.weights, parts.weights[k] / 2)
    weights[k] /= 2
    means = np.vstack([parts.means, parts.means[k] - step])
    means[k] += step
    fresh = replace(parts, weights=weights, means=means)
    if parts.tied:  # one matrix for all: the next step of the fit adapts it
        return fresh
    half = _shrunk(parts.covariances[k], step) if distance == FAR else parts.covariances[k]
    covariances = np.concatenate([parts.covariances, half[None]])
    covariances[k] = half
    return replace(fresh, covariances=covariances)


def _axis(parts: _Parts, k: int) -> Array:
    """One standard deviation of component ``k`` along its longest axis, columns scaled."""
    covariance, D = parts.covariance(k), parts.means.shape[1]
    if covariance.ndim == 0:  # a sphere has no longest axis: any will do
        direction = np.random.default_rng([D, k, len(parts.weights)]).normal(size=D)
        return np.asarray(np.sqrt(covariance) * direction / np.linalg.norm(direction))
    scale = parts.scale()
    if covariance.ndim == 1:
        longest = np.arange(D) == np.argmax(covariance / scale**2)
        return np.where(longest, np.sqrt(covariance), 0.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    return np.asarray(scale * vectors[:, -1] * np.sqrt(values[-1]))


def _shrunk(covariance: Array, step: Array) -> Array:
    """What is left of a covariance when its halves are moved by ``step`` and its negative."""
    if covariance.ndim == 0:
        return np.asarray(covariance - np.mean(step**2))
    found: Array = covariance - (step**2 if covariance.ndim == 1 else np.outer(step, step))
    return found


def _variances(covariance: Array, n_features: int) -> Array:
    if covariance.ndim == 2:
        return np.diag(covariance)
    return np.broadcast_to(covariance, n_features)


def _inverse(covariances: Array) -> Array:
    inverse = np.linalg.inv(covariances)
    return np.asarray((inverse + np.swapaxes(inverse, -1, -2)) / 2)
