"""Predictions of Gaussian outputs: means and spreads, and classes that were coded as outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr

from mixfold.contracts import Array, Block
from mixfold.math.softmax import normalise
from mixfold.math.symmetric import LOG_2PI
from mixfold.models.outputs.gaussian_outputs import GaussianOutputParams, GaussianOutputs
from mixfold.models.outputs.joint_posterior import infer_with_outputs
from mixfold.models.outputs.model import SupervisedModel, SupervisedParams, SupervisedReading
from mixfold.models.outputs.outputs import Latent


@dataclass(frozen=True, slots=True)
class Predictive:
    """Of rows: shares (n, K) of the components, E[y | k] (n, K, L), and the latents."""

    resp: Array
    means: Array
    latent: Latent
    outputs: GaussianOutputs
    params: GaussianOutputParams

    @property
    def expected(self) -> Array:
        """E[y] (n, L)."""
        return np.asarray((self.resp[..., None] * self.means).sum(axis=1))

    def variances(self) -> Array:
        """Var[y] (n, L), noise included."""
        within = self.outputs.variances(self.params, self.latent)
        away = self.means - self.expected[:, None]
        return np.asarray((self.resp[..., None] * (within + away**2)).sum(axis=1))

    def covariances(self) -> Array:
        """Cov[y] (n, L, L), noise included."""
        within = self.outputs.covariances(self.params, self.latent)
        away = self.means - self.expected[:, None]
        spread = within + away[..., :, None] * away[..., None, :]
        return np.asarray((self.resp[..., None, None] * spread).sum(axis=1))

    def above(self, level: Array) -> Array:
        """P(y > level) of each output, (n, L), for levels (L,)."""
        deviation = np.sqrt(self.outputs.variances(self.params, self.latent))
        return np.asarray(
            (self.resp[..., None] * ndtr((self.means - level) / deviation)).sum(axis=1)
        )


def predictive(model: SupervisedModel, reading: SupervisedReading, block: Block) -> Predictive:
    """What is to be expected of the outputs of rows; those in ``block.y`` are known."""
    outputs = model.outputs
    assert isinstance(outputs, GaussianOutputs)
    seen = infer_with_outputs(model, reading, block)
    _, resp = normalise(seen.log_joint)
    means = outputs.predict(reading.outputs, seen.latent)
    return Predictive(resp, means, seen.latent, outputs, reading.outputs)


def code_densities(rows: Predictive, codes: Array) -> Array:
    """ln p(y = code | x) (n, C) of each of the codes (C, L)."""
    spread = rows.outputs.covariances(rows.params, rows.latent)
    log_share = np.log(np.maximum(rows.resp, np.finfo(float).tiny))
    each = [
        log_share[:, k, None] + _densities(codes, rows.means[:, k], spread[:, k])
        for k in range(rows.resp.shape[1])
    ]
    return np.asarray(logsumexp(each, axis=0))


def prior_densities(params: SupervisedParams, codes: Array) -> Array:
    """ln p(y = code) (C,) of each of the codes, before a row is seen."""
    outputs: GaussianOutputParams = params.outputs
    V = outputs.loadings
    spread = V @ np.swapaxes(V, 1, 2) + outputs.noise[..., None] * np.eye(V.shape[1])
    each = [
        np.log(weight) + _densities(codes, outputs.means[k, None], spread[k, None])[0]
        for k, weight in enumerate(params.weights)
        if weight > 0
    ]
    return np.asarray(logsumexp(each, axis=0))


def discriminant(
    codes: Array, means: Array, spread: Array, prior_spread: Array
) -> tuple[Array, Array]:
    """The parts of ln p(y = code | x) - ln p(y = code) that depend on the code.

    Of codes (..., C, L) and predictions ``means`` (..., n, L), both about the mean of the outputs,
    whose covariances are ``spread`` (..., L, L) given the row and ``prior_spread`` before: a slope
    (..., n, C), linear in the prediction, and an intercept (..., 1, C), which costs more the better
    a code can be predicted.
    """
    certain = np.linalg.inv(spread)
    turned = codes @ certain
    gained = turned - codes @ np.linalg.inv(prior_spread)
    slope = means @ np.swapaxes(turned, -1, -2)
    return slope, -0.5 * (gained * codes).sum(axis=-1)[..., None, :]


def code_discriminants(
    rows: Predictive, params: SupervisedParams, codes: Array
) -> tuple[Array, Array]:
    """Slope and intercept of each of the codes (C, L) for rows of a single component, (n, C)."""
    outputs: GaussianOutputParams = params.outputs
    V, center = outputs.loadings[0], outputs.means[0]
    prior = V @ V.T + outputs.noise[0] * np.eye(len(V))
    spread = rows.outputs.covariances(rows.params, rows.latent)[:, 0]
    away = rows.means[:, 0] - center
    if len(spread) == 1:
        return discriminant(codes - center, away, spread[0], prior)
    slope, intercept = discriminant(codes - center, away[:, None], spread, prior)
    return slope[:, 0], intercept[:, 0]


def _densities(codes: Array, means: Array, spread: Array) -> Array:
    """ln N(code; mean, spread) (n, C) for means (n, L) and spreads (1 or n, L, L)."""
    root = np.linalg.cholesky(spread)
    whiten = np.linalg.inv(root)
    log_det = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)[:, None]
    size = codes.shape[1] * LOG_2PI
    at, of = np.swapaxes(whiten @ codes.T, 1, 2), (whiten @ means[..., None])[..., 0]
    if len(whiten) == 1:
        of = means @ whiten[0].T
    distance = (at**2).sum(axis=2) + (of**2).sum(axis=1)[:, None]
    distance = (
        distance - 2 * (at @ of[..., None])[..., 0]
        if len(whiten) > 1
        else (distance - 2 * of @ at[0].T)
    )
    return np.asarray(-0.5 * (size + log_det + distance))
