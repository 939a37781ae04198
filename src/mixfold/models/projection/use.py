"""A fitted mixture on one plane in the coordinates in which it is published.

The latents of the model have any coordinates; published ones have mean zero and covariance I over
all clusters, and loadings with orthogonal columns, the longest first. With one cluster that is
probabilistic PCA.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.families.projection import ProjectionParams
from mixfold.math.principal import orthonormal
from mixfold.math.signs import signs
from mixfold.models.mixtures.mixture import MixtureParams


@dataclass(frozen=True, slots=True)
class Canonical:
    """``turn`` (d, d) and ``centre`` (d,) lead from the model's latents z to (z - centre) turn.

    In data units: ``mean`` (D,), ``loadings`` (D, d), ``noise``; of the clusters ``weights`` (K,),
    ``means`` (K, d) and ``covariances`` (K, d, d) of the latents.
    """

    centre: Array
    turn: Array
    mean: Array
    loadings: Array
    noise: float
    weights: Array
    means: Array
    covariances: Array

    def enter(self, Z: Array) -> Array:
        """Latents of the model in published coordinates."""
        return np.asarray((Z - self.centre) @ self.turn)

    def decode(self, Z: Array) -> Array:
        """Rows at published latents."""
        return np.asarray(Z @ self.loadings.T + self.mean)

    @property
    def axes(self) -> Array:
        """Orthonormal directions of the loadings (D, d)."""
        return orthonormal(self.loadings)


def canonical(params: MixtureParams) -> Canonical:
    """The model, with points as components, in published coordinates."""
    components: ProjectionParams = params.components
    weights, own = params.weights, components.clusters
    scale = float(components.frame.scale[0])
    centre = weights @ own.means
    away = own.means - centre
    spread = np.tensordot(weights, own.scatter, 1) + (weights[:, None] * away).T @ away
    values, vectors = np.linalg.eigh(spread)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    loadings = components.axes @ vectors * np.sqrt(values)
    flip = signs(loadings)[0]
    # an axis along which nothing varies has no latents
    lengths = np.sqrt(values)
    gone = lengths <= 1e-12 * max(float(lengths[0]), np.finfo(float).tiny)
    turn = vectors * flip * np.where(gone, 0.0, 1 / np.where(gone, 1.0, lengths))
    return Canonical(
        centre,
        turn,
        components.frame.leave(components.offset + components.axes @ centre),
        loadings * flip * scale,
        components.noise * scale**2,
        weights,
        away @ turn,
        turn.T @ own.scatter @ turn,
    )
