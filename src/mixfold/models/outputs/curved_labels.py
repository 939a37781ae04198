"""Labels by a probit of features of the latents, whose borders are curved.

    P(y = c | z) = Phi(w_c'phi(z) + b_c)
    phi(z) = (F_1 z + g_1, sqrt(2 / M) cos(F_2 z + g_2))

The M waves F_2, g_2 are fixed: F_2 as if drawn from N(0, 1 / width^2), g_2 between 0 and 2 pi, so
that a prior of the weights is about that of a Gaussian process with the kernel
exp(-|z - z'|^2 / (2 width^2)) (Rahimi and Recht, 2007). F_1 = I and g_1 = 0 make the straight
border.
Another choice of latent coordinates turns F and g and leaves the weights, and their prior, alone.

Given a row z is normal. Its law given the label too is taken at nodes of that normal law, of equal
weight, with its mean and its covariance. Given the nodes, the latent scores make the classifier a
linear regression on phi, as with straight borders; the error of the nodes is in the latents alone
and falls with what a row leaves in doubt of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri
from scipy.stats import qmc

from mixfold.contracts import Array, Context, Update, record
from mixfold.math.probit import utility_moments
from mixfold.math.symmetric import roots_of
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedParams, SupervisedStats
from mixfold.models.outputs.outputs import Latent, Replicate
from mixfold.models.outputs.probit_labels import (
    ProbitLabels,
    ProbitMetric,
    ProbitParams,
    ProbitSums,
)

# pairs of nodes z and -z, of which there are at least twice as many as latents
_PAIRS = 32
# numbers that the nodes of a tile of rows may take
_TILE_NUMBERS = 2**22


@record
@dataclass(frozen=True, slots=True)
class CurvedParams(ProbitParams):
    """``weights`` (1 or K, C, F) and ``biases`` (1 or K, C) of the scores; ``waves`` (1 or K, F, d)
    and ``phases`` (1 or K, F) of the features, the straight ones first."""

    waves: Array
    phases: Array


@dataclass(frozen=True, slots=True)
class _Work:
    """Of one score: shares (n, K, S) of the nodes, and mean and variance of its utility there."""

    shares: Array
    mean: Array
    variance: Array
    features: Array


@lru_cache(maxsize=16)
def normal_nodes(d: int) -> Array:
    """Nodes (S, d) of N(0, I): of mean zero, odd moments zero and covariance one."""
    pairs = _PAIRS
    while pairs < 2 * d:
        pairs *= 2
    half = ndtri(qmc.Sobol(d, seed=0).random(pairs))
    root = np.linalg.cholesky(half.T @ half / pairs)
    half = np.linalg.solve(root, half.T).T
    nodes = np.concatenate([half, -half])
    nodes.setflags(write=False)
    return np.asarray(nodes)


@lru_cache(maxsize=16)
def _unit_waves(d: int, size: int) -> tuple[Array, Array]:
    """Waves (M, d) of width 1, and their phases (M,)."""
    found = qmc.Sobol(d + 1, seed=1).random(size)
    return ndtri(found[:, :d]), 2 * np.pi * found[:, d]


@dataclass(frozen=True)
class CurvedLabels(ProbitLabels):
    """Probit labels of features of the latents.

    Parameters
    ----------
    width : float
        Over how many standard deviations of the latents scores bend.
    n_waves : int
        Number of features beside the latents themselves; a power of two.
    """

    width: float = 1.0
    n_waves: int = 64

    straight: ClassVar[bool] = False

    def from_straight(self, straight: ProbitParams) -> CurvedParams:
        lead, d = len(straight.weights), straight.weights.shape[-1]
        unit, phases = _unit_waves(d, self.n_waves)
        waves = np.concatenate([np.eye(d), unit / self.width])
        phases = np.concatenate([np.zeros(d), phases])
        bent = np.zeros((*straight.weights.shape[:2], self.n_waves))
        return CurvedParams(
            np.concatenate([straight.weights, bent], axis=2),
            straight.biases,
            np.tile(waves, (lead, 1, 1)),
            np.tile(phases, (lead, 1)),
        )

    def n_features(self, n_factors: int) -> int:
        return n_factors + self.n_waves

    def has_shapes_of(self, params: Any, own: int, n_factors: int) -> bool:
        size = self.n_features(n_factors)
        return (
            isinstance(params, CurvedParams)
            and super().has_shapes_of(params, own, n_factors)
            and params.waves.shape == (own, size, n_factors)
            and params.phases.shape == (own, size)
        )

    # ------------------------------------------------ features

    def features(self, params: CurvedParams, z: Array) -> Array:
        """phi (..., K, S, F) at latents (..., K, S, d)."""
        found = np.asarray(z @ np.swapaxes(params.waves, 1, 2))
        found += params.phases[:, None, :]
        bent = found[..., -self.n_waves :]
        np.cos(bent, out=bent)
        bent *= np.sqrt(2.0 / self.n_waves)
        return found

    def scores_at(self, params: Any, z: Array) -> Array:
        found = self.features(params, z) @ np.swapaxes(params.weights, 1, 2)
        return np.asarray(found + params.biases[:, None])

    def log_signs(self, params: Any, latent: Latent, signs: Any) -> Array:
        n, K, d = latent.means.shape
        each = np.broadcast_to(signs, (n, 1, self.n_scores))
        out = np.empty((n, K, self.n_scores))
        size = max(1, _TILE_NUMBERS // self.workspace_per_row(out, K, d))
        for first in range(0, n, size):
            rows = slice(first, first + size)
            own = latent.covariances if len(latent.covariances) == 1 else latent.covariances[rows]
            a = self.scores_at(params, _at_nodes(Latent(latent.means[rows], own)))
            out[rows] = logsumexp(log_ndtr(each[rows, :, None] * a), axis=2)
        return np.asarray(out - np.log(len(normal_nodes(d))))

    # ------------------------------------------------ E step

    def workspace_per_row(self, y: Array, n_components: int, n_factors: int) -> int:
        numbers = 2 * self.n_features(n_factors) + 4 * self.n_scores
        return n_components * len(normal_nodes(n_factors)) * numbers

    def replicates(self, y: Array, latent: Latent, reading: Any) -> Sequence[Replicate]:
        share = np.where(y >= 0, self.tradeoff, 0.0)
        root = roots_of(latent.covariances)
        features = self.features(reading, _at_nodes(latent))
        scores = features @ np.swapaxes(reading.weights, 1, 2) + reading.biases[:, None]
        signs = self.signs(y)
        found = []
        for c in range(self.n_scores):
            sign, a = signs[:, c, None, None], scores[..., c]
            logs = log_ndtr(sign * a)
            total = logsumexp(logs, axis=2)
            shares = np.exp(logs - total[..., None])
            mean, variance, _ = utility_moments(a, 1.0, sign)
            work = _Work(shares, mean, variance, features)
            given = _latent_at(latent.means, root, shares)
            log_p = total - np.log(a.shape[2])
            found.append(Replicate(share / self.n_scores, log_p, given, work))
        return (*found, Replicate(1.0 - share, np.zeros(latent.means.shape[:2]), latent, None))

    def sums(
        self, y: Array, replicates: Sequence[Replicate], resp: Sequence[Array], reading: Any
    ) -> ProbitSums:
        pairs = list(zip(replicates[:-1], resp[:-1], strict=True))
        _, K, S, F = pairs[0][0].work.features.shape
        C = len(pairs)
        gram, target = np.zeros((K, C, F + 1, F + 1)), np.zeros((K, C, F + 1))
        energy, count = np.zeros((K, C)), np.zeros((K, C))
        for c, (replicate, r) in enumerate(pairs):
            work: _Work = replicate.work
            used = np.flatnonzero(r.any(axis=1))
            weight = work.shares[used] * r[used][..., None]
            means = work.mean[used]
            energy[:, c] = (weight * (work.variance[used] + means**2)).sum(axis=(0, 2))
            count[:, c] = r.sum(axis=0)
            for k in range(K):
                phi = np.ones((len(used) * S, F + 1))
                phi[:, :F] = work.features[used, k].reshape(-1, F)
                own = weight[:, k].ravel()
                target[k, c] = (own * means[:, k].ravel()) @ phi
                half = np.sqrt(own)[:, None] * phi
                gram[k, c] = half.T @ half
        return ProbitSums(gram, target, energy, count)

    # ------------------------------------------------ M step

    def _prior(self, size: int, relevance: Array | None) -> Array:
        """A prior of the loadings is that of the columns alone."""
        return super()._prior(size, None)

    def derivatives(
        self, params: ProbitParams, sums: ProbitSums, relevance: Array | None = None
    ) -> tuple[Array, ProbitMetric]:
        return super().derivatives(params, sums, None)

    def squares_of(self, params: ProbitParams) -> Array:
        return self.information(params)

    def n_loadings(self, params: ProbitParams) -> int:
        return 0

    def information(self, params: Any) -> Array:
        """None that is the same at all latents."""
        lead, _, d = params.waves.shape
        return np.zeros((lead, d, d))

    def transform_latents(self, params: Any, mean: Array, root: Array) -> Any:
        if self.tied:  # the scores see the same latents in all components
            mean, root = mean[:1], root[:1]
        phases = params.phases + np.einsum("kfd,kd->kf", params.waves, mean)
        return replace(params, waves=params.waves @ root, phases=phases)


def _at_nodes(latent: Latent) -> Array:
    """The latents (n, K, S, d) at the nodes of their law given a row."""
    root = roots_of(latent.covariances)
    nodes = normal_nodes(latent.means.shape[2])
    return np.asarray(latent.means[:, :, None] + nodes @ np.swapaxes(root, 2, 3))


def _latent_at(means: Array, root: Array, shares: Array) -> Latent:
    """Mean and covariance of latents that take nodes by these shares (n, K, S)."""
    nodes = normal_nodes(means.shape[2])
    first = shares @ nodes
    seconds = (nodes[:, :, None] * nodes[:, None]).reshape(len(nodes), -1)
    inner = (shares @ seconds).reshape(*first.shape, means.shape[2])
    inner -= first[..., :, None] * first[..., None, :]
    moved = means + (root @ first[..., None])[..., 0]
    return Latent(moved, root @ inner @ np.swapaxes(root, 2, 3))


@dataclass(frozen=True)
class CurvedModel(LabelledModel):
    """A mixture of factor models with ``CurvedLabels``.

    Steps are tentative: those of the loadings ascend but for the error of the nodes, and near a
    maximum that is no longer small beside what they gain.
    """

    def update(
        self, params: SupervisedParams, stats: SupervisedStats, context: Context
    ) -> Update[SupervisedParams]:
        if context.length == 0:
            return Update(params)
        found = super().update(params, stats, context)
        if not found.monotone:
            return found
        length = min(context.length, 1.0)
        return replace(found, params=_between(params, found.params, length), length=length)

    def n_free(self, n_features: int) -> int:
        raise ValueError(
            "information criteria count free numbers, and the weights of a curved discriminant "
            "are held by a prior; got discriminant='curved'. Compare held-out log losses instead"
        )


def _between(old: SupervisedParams, new: SupervisedParams, length: float) -> SupervisedParams:
    """A part of the way from one point to another."""
    if length == 1:
        return new

    def part(a: Any, b: Any, names: Sequence[str]) -> Any:
        moved = {n: getattr(a, n) + length * (getattr(b, n) - getattr(a, n)) for n in names}
        return replace(b, **moved)

    found: SupervisedParams = part(old, new, ("weights",))
    return replace(
        found,
        components=part(old.components, new.components, ("means", "loadings", "noise")),
        outputs=part(old.outputs, new.outputs, ("weights", "biases")),
    )
