"""What is asked of fitted factor models with outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.signs import signs
from mixfold.models.mixtures.mixture import MixtureParams
from mixfold.models.outputs.model import SupervisedModel, SupervisedParams, SupervisedReading
from mixfold.models.outputs.outputs import Latent


def take_columns(params: SupervisedParams) -> MixtureParams:
    """The mixture that is left of the model where outputs are not looked at."""
    return MixtureParams(params.weights, params.components)


def canonical(model: SupervisedModel, params: SupervisedParams) -> SupervisedParams:
    """The same model with the latents turned to the axes of what both views tell of them.

    W' Psi^-1 W and the same of the outputs, added, become diagonal and decreasing; the largest
    entry of each column of W is positive. Components whose outputs are shared turn together.
    """
    old = params.components
    if not old.n_factors:
        return params
    told = np.swapaxes(old.loadings / old.noise[..., None], 1, 2) @ old.loadings
    told = told + model.outputs.information(params.outputs)
    if model.outputs.tied:
        told = np.einsum("k,kij->ij", params.weights, told)[None]
    turn = np.linalg.eigh(told)[1][..., ::-1]
    turned = old.loadings @ turn
    turn = turn * (signs(turned[:1]) if model.outputs.tied else signs(turned))
    outputs = model.outputs.transform_latents(params.outputs, np.zeros(turn.shape[::2]), turn)
    return replace(params, components=replace(old, loadings=old.loadings @ turn), outputs=outputs)


@dataclass(frozen=True, slots=True)
class JointPosterior:
    """Of rows with the outputs that they have: ln p(row, k) (n, K), and their latents."""

    log_joint: Array
    latent: Latent


def infer_with_outputs(
    model: SupervisedModel, reading: SupervisedReading, block: Block
) -> JointPosterior:
    """What rows and their Gaussian outputs, ``block.y``, say together; None reads the rows alone.

    Rows whose outputs are all unknown are read by their columns.
    """
    joint, latent = model.latents(reading, block)
    if block.y is None:
        return JointPosterior(joint, latent)
    labelled, *_, rest = model.outputs.replicates(block.y, latent, reading.outputs)
    known = np.asarray(~np.isnan(block.y).all(axis=1))
    n, K, d = latent.means.shape
    means = np.where(known[:, None, None], labelled.latent.means, rest.latent.means)
    log_joint = joint + np.where(known[:, None], labelled.log_probability, 0.0)
    ours, theirs = labelled.latent.covariances, rest.latent.covariances
    if known.all():
        return JointPosterior(log_joint, Latent(means, ours))
    spread = np.where(known[:, None, None, None], ours, theirs)
    return JointPosterior(log_joint, Latent(means, np.broadcast_to(spread, (n, K, d, d))))
