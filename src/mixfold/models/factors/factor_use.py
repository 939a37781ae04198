"""Latents, projections and reconstructions of rows by fitted factor models.

Readings here are of parameters in canonical coordinates (``canonical``), so that all answers of
one fit speak of the same axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.component import dense_rows
from mixfold.families.factor import FactorFamily, FactorParams, Posterior
from mixfold.families.factor.reading import FactorReading
from mixfold.math.low_rank import canonical_axes
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.far_rows import separate_far_rows
from mixfold.models.mixtures.mixture import Mixture, MixtureParams, MixtureReading


def canonical(params: MixtureParams) -> MixtureParams:
    """The same mixture with the latents of each component turned to their principal axes.

    W' Psi^-1 W is diagonal and decreasing, and the largest entry of each column positive.
    """
    old: FactorParams = params.components
    loadings = canonical_axes(old.loadings, old.noise)
    return replace(params, components=replace(old, loadings=loadings))


def common_axes(params: MixtureParams) -> MixtureParams:
    """As ``canonical`` with one turn for all components, which share their loadings."""
    old: FactorParams = params.components
    noise = old.noise.mean(axis=0, keepdims=True)
    one = canonical_axes(old.loadings[:1], noise)
    loadings = np.repeat(one, len(old.loadings), axis=0)
    return replace(params, components=replace(old, loadings=loadings))


@dataclass(frozen=True, slots=True)
class Inferred:
    """Shares (n, K) of the components and the posteriors of the latents, of some rows."""

    resp: Array
    latents: Posterior

    @property
    def expected(self) -> Array:
        """sum_k r_k E[z | x, k], (n, d)."""
        return np.asarray(np.einsum("nk,nkd->nd", self.resp, self.latents.means))


# ------------------------------------------------ scales

SCALES = ("latent", "scores", "white")


def score_maps(params: MixtureParams, scale: str, unit_axes: bool) -> Array:
    """A (K, d, d) with A E[z | x] the latents of a row x in another scale, of each component.

    With G = W' Psi^-1 W the posterior mean is (I + G)^-1 G b, where b are the coordinates of the
    nearest point of the plane (weighted least squares, Bartlett's scores) and Cov[E[z | x]] is
    (I + G)^-1 G. An axis without variance (G = 0) tells nothing, and its scores are zero.

    Parameters
    ----------
    scale : {'scores', 'white'}
        'scores': b. 'white': E[z | x] with covariance I under the model.
    unit_axes : bool
        Whether 'scores' are coordinates along axes of length one, as those of PCA, instead of
        along the loadings.
    """
    old: FactorParams = params.components
    maps = []
    for loadings, noise in zip(old.loadings, old.noise, strict=True):
        gains, axes = _gains(loadings, noise)
        growth = np.divide(1 + gains, gains, out=np.zeros_like(gains), where=gains > 0)
        found = (axes * (growth if scale == "scores" else np.sqrt(growth))) @ axes.T
        if scale == "scores" and unit_axes:
            found *= np.linalg.norm(loadings * old.frame.scale[:, None], axis=0)[:, None]
        maps.append(found)
    return np.stack(maps)


def _gains(loadings: Array, noise: Array) -> tuple[Array, Array]:
    """Eigenvalues (d,) and eigenvectors of W' Psi^-1 W, which is nearly always diagonal."""
    G = (loadings / noise[:, None]).T @ loadings
    gains = np.diagonal(G)
    bound = 1e-8 * np.sqrt(np.outer(gains, gains))
    if (np.abs(G - np.diag(gains)) <= bound).all():
        return gains, np.eye(len(G))
    values, vectors = np.linalg.eigh(G)
    return np.where(values > len(G) * np.finfo(float).eps * values[-1], values, 0.0), vectors


def undo_maps(maps: Array, Z: Array) -> Array:
    """Posterior means (n, K, d) of latents (n, d) that are scaled by ``maps`` (K, d, d)."""
    return np.asarray(np.einsum("kab,nb->nka", np.linalg.pinv(maps), Z))


def infer(
    model: Mixture,
    reading: MixtureReading,
    block: Block,
    covariances: bool = False,
    maps: Array | None = None,
) -> Inferred:
    """Shares and posteriors of the rows of a block, with covariances if asked for.

    ``maps`` (K, d, d) are what the posterior means are multiplied by.
    """
    family = model.family
    assert isinstance(family, FactorFamily)
    block = model.narrow(block)
    latents = family.posterior(block, reading.components, covariances)
    log_joint = latents.log_density + reading.log_weights
    parts = reading.components, reading.log_weights
    _, resp = normalise(separate_far_rows(family, block, *parts, log_joint)[0])
    if maps is not None:
        latents = replace(latents, means=np.einsum("kab,nkb->nka", maps, latents.means))
    return Inferred(resp, latents)


# ------------------------------------------------ reconstruction

Rebuild = Callable[[FactorReading, Inferred, Array], Array]


def _posterior(reading: FactorReading, inferred: Inferred, X: Array) -> Array:
    """sum_k r_k (W_k E[z | x, k] + mu_k)."""
    resp = inferred.resp
    out = resp @ reading.means
    for k, loadings in enumerate(reading.loadings):
        out += (resp[:, k, None] * inferred.latents.means[:, k]) @ loadings.T
    return np.asarray(reading.frame.leave(out))


def _hard(reading: FactorReading, inferred: Inferred, X: Array) -> Array:
    """The most probable component at the expected latents."""
    chosen, expected = inferred.resp.argmax(axis=1), inferred.expected
    out = reading.means[chosen]
    for k in np.unique(chosen):
        mine = chosen == k
        out[mine] += expected[mine] @ reading.loadings[k].T
    return np.asarray(reading.frame.leave(out))


def _projection(reading: FactorReading, inferred: Inferred, X: Array, roots: Array) -> Array:
    """The nearest point of the most probable component's plane, in the metric 1 / roots^2."""
    scale = reading.frame.scale
    means = reading.frame.leave(reading.means)
    chosen = inferred.resp.argmax(axis=1)
    out = np.empty(X.shape)
    for k in np.unique(chosen):
        mine = np.flatnonzero(chosen == k)
        axes = reading.loadings[k] * (scale / roots[k])[:, None]
        deviation = (X[mine] - means[k]) / roots[k]
        out[mine] = means[k] + _nearest(axes, deviation) * roots[k]
    return out


def _nearest(axes: Array, deviation: Array) -> Array:
    """Rows projected on the span of ``axes`` (D, d) by least squares over their seen entries."""
    lacks = np.isnan(deviation)
    whole = ~lacks.any(axis=1)
    out = np.empty(deviation.shape)
    used = axes[:, (axes**2).sum(axis=0) > 0]
    basis, _ = np.linalg.qr(used)
    out[whole] = (deviation[whole] @ basis) @ basis.T
    for n in np.flatnonzero(~whole):
        seen = ~lacks[n]
        z, *_ = np.linalg.lstsq(used[seen], deviation[n, seen], rcond=None)
        out[n] = used @ z
    return out


def _least_squares(reading: FactorReading, inferred: Inferred, X: Array) -> Array:
    return _projection(reading, inferred, X, np.ones_like(reading.noise))


def _project_by_noise(reading: FactorReading, inferred: Inferred, X: Array) -> Array:
    roots = np.sqrt(reading.noise) * reading.frame.scale
    return _projection(reading, inferred, X, roots)


RECONSTRUCTIONS: dict[str, Rebuild] = {
    "posterior": _posterior,
    "hard": _hard,
    "least-squares": _least_squares,
    "weighted": _project_by_noise,
}


def reconstruct(rebuild: Rebuild, model: Mixture, reading: MixtureReading, block: Block) -> Array:
    """Rows (n, D) as the model sees them, in data coordinates."""
    X = np.asarray(dense_rows(model.narrow(block).X), dtype=float)
    return model.widen(rebuild(reading.components, infer(model, reading, block), X))


def decode(params: MixtureParams, Z: Array, shares: Array) -> Array:
    """sum_k shares_nk (W_k z_nk + mu_k) in data coordinates, for shares (n, K).

    The latents are (n, d), or (n, K, d) if each component has its own.
    """
    old: FactorParams = params.components
    each = Z[:, None] if Z.ndim == 2 else Z
    each = np.broadcast_to(each, (len(Z), len(old.loadings), Z.shape[-1]))
    out = shares @ old.means
    for k, loadings in enumerate(old.loadings):
        out += (shares[:, k, None] * each[:, k]) @ loadings.T
    return np.asarray(old.frame.leave(out))


def unshrunk(params: MixtureParams, Z: Array) -> Array:
    """Posterior means of one component's latents, in canonical coordinates, as least squares.

    The posterior mean is drawn towards zero by g / (1 + g) along each axis, g = w' Psi^-1 w.
    """
    old: FactorParams = params.components
    gain = (old.loadings[0] ** 2 / old.noise[0][:, None]).sum(axis=0)
    return np.asarray(Z * np.where(gain > 0, (1 + gain) / np.where(gain > 0, gain, 1.0), 0.0))
