"""What is asked of fitted factor models with labels. The label of a row is never looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from mixfold.contracts import Array, Block
from mixfold.math import low_rank
from mixfold.math.softmax import log_shares
from mixfold.models.outputs import joint_posterior
from mixfold.models.outputs.label_starts import reflection
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedParams, SupervisedReading
from mixfold.models.outputs.outputs import Latent

# where an answer is read off: the whole posterior of the latents, or their expectation
READINGS = ("data", "latent")


def canonical(model: LabelledModel, params: SupervisedParams) -> SupervisedParams:
    """The same model with axes that do not depend on the start.

    With two classes and a straight border the classifier points along the first axis, and the
    others are the principal axes of what is left. With more, all components turn together to what
    both views tell.
    """
    if (
        not model.labels.straight
        or model.labels.n_scores > 1
        or model.family.size < 1
        or not params.outputs.weights.any()
    ):
        return joint_posterior.canonical(model, params)
    old, outputs = params.components, params.outputs
    turns = np.stack([reflection(w) for w in outputs.weights[:, 0]])
    loadings = old.loadings @ turns
    loadings[..., 1:] = low_rank.canonical_axes(loadings[..., 1:], old.noise)
    weights = outputs.weights @ turns
    weights[..., 1:] = 0.0
    turned = replace(old, loadings=loadings)
    return replace(params, components=turned, outputs=replace(outputs, weights=weights))


@dataclass(frozen=True, slots=True)
class Rows:
    """What rows say: log shares (n, K) of the components, latents under each of them."""

    log_shares: Array
    latent: Latent

    @property
    def shares(self) -> Array:
        return np.asarray(np.exp(self.log_shares))

    @property
    def expected(self) -> Array:
        """sum_k r_k E[z | x, k], (n, d)."""
        return np.asarray(np.einsum("nk,nkd->nd", self.shares, self.latent.means))


def rows(model: LabelledModel, reading: SupervisedReading, block: Block) -> Rows:
    joint, latent = model.latents(reading, block)
    return Rows(log_shares(joint), latent)


# ------------------------------------------------ classes


def log_signs(model: LabelledModel, reading: SupervisedReading, found: Rows, source: str) -> Array:
    """ln P(score c is not positive), ln P(it is), (n, C, 2)."""
    if source == "latent":
        score = latent_scores(model, reading, found)
        return np.stack([log_ndtr(-score), log_ndtr(score)], axis=-1)
    each = np.stack(
        [model.labels.log_signs(reading.outputs, found.latent, s) for s in (-1.0, 1.0)], axis=-1
    )
    return np.asarray(logsumexp(found.log_shares[..., None, None] + each, axis=1))


def latent_scores(model: LabelledModel, reading: SupervisedReading, found: Rows) -> Array:
    """Scores (n, C) at the expected latents.

    Where components have classifiers of their own: of the most probable one, at its own latents.
    """
    labels, outputs = model.labels, reading.outputs
    if not labels.own:
        return np.asarray(labels.scores_at(outputs, found.expected[None])[0])
    k = found.log_shares.argmax(axis=1)
    each = labels.scores_at(outputs, found.latent.means[:, :, None])[:, :, 0]
    return np.asarray(each[np.arange(len(k)), k])


def log_probabilities(
    model: LabelledModel, reading: SupervisedReading, found: Rows, source: str
) -> Array:
    """ln P(class | row), (n, C): of more than two classes, their scores normalised."""
    both = log_signs(model, reading, found, source)
    if model.labels.n_scores == 1:
        return np.asarray(both[:, 0])
    logs = both[..., 1]
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))


def decisions(model: LabelledModel, reading: SupervisedReading, found: Rows, source: str) -> Array:
    """Scores (n, C) whose normal probability is that of the class."""
    if source == "latent":
        return latent_scores(model, reading, found)
    both = log_signs(model, reading, found, source)
    # from the smaller of the two probabilities, which has all its digits
    size = ndtri_exp(both.min(axis=-1))
    return np.asarray(np.where(both[..., 1] < both[..., 0], size, -size))


def log_density(model: LabelledModel, reading: SupervisedReading, block: Block) -> Array:
    """ln p(x, y) of rows with a label, ln p(x) of the others.

    With more than two classes, whose scores do not form a likelihood, the mean of ln p(x, y_c)
    over the scores c.
    """
    joint, latent = model.latents(reading, block)
    plain = logsumexp(joint, axis=1)
    if block.y is None:
        return np.asarray(plain)
    signs_of = model.labels.signs(block.y)[:, None, :]
    each = model.labels.log_signs(reading.outputs, latent, signs_of)
    both = logsumexp(joint[..., None] + each, axis=1)
    return np.asarray(np.where(block.y >= 0, both.mean(axis=1), plain))


# ------------------------------------------------ risks


def risks(model: LabelledModel, reading: SupervisedReading, found: Rows) -> dict[str, Array]:
    """Of each row: what is lost by reducing it, by naming its component, and its class."""
    shares, z = found.shares, found.expected
    gaps = ((found.latent.means - z[:, None]) ** 2).sum(axis=2)
    spread = np.einsum("nkii->nk", found.latent.covariances)
    out = {
        "reduction": (shares * (spread + gaps)).sum(axis=1),
        "clustering": _others(found.log_shares),
    }
    for name, source in (("classification", "data"), ("classification_latent", "latent")):
        out[name] = _others(log_probabilities(model, reading, found, source))
    return out


def _others(logs: Array) -> Array:
    """The probability of all but the most probable: no difference from 1, so 1e-300 is exact."""
    chosen = logs.argmax(axis=1)[:, None] == np.arange(logs.shape[1])
    return np.asarray(np.where(chosen, 0.0, np.exp(logs)).sum(axis=1))


# ------------------------------------------------ draws


def draw(
    model: LabelledModel, params: SupervisedParams, n: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """n rows and their classes."""
    components = params.components
    k = np.searchsorted(np.cumsum(params.weights)[:-1], rng.random(n), side="right")
    normals = rng.normal(size=(n, components.n_features + components.n_factors))
    z = normals[:, components.n_features :]
    X = low_rank.draw(components.loadings, components.noise, components.means, k, normals)
    each = model.labels.scores_at(params.outputs, z[:, None, None])[:, :, 0]
    score = each[np.arange(n), k if model.labels.own else 0]
    if model.labels.n_scores == 1:
        y = (score[:, 0] + rng.normal(size=n) > 0).astype(np.int64)
    else:
        share = np.exp(log_ndtr(score))
        bounds = np.cumsum(share / share.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        y = (rng.random(n)[:, None] > bounds).sum(axis=1)
    return components.frame.leave(X), y
