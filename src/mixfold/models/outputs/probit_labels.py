"""Labels by a probit in the latent space: P(y = c | z) = Phi(w_c'z + b_c).

Through the latent score a = w'z + b + noise, whose sign is the label, the classifier is a linear
regression in the M step. Two classes have one score; C classes have one each against the rest,
every labelled row counting 1 / C for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Stats, record
from mixfold.math.probit import log_probability, moments_given_sign, utility_moments
from mixfold.models.outputs.outputs import Latent, Replicate


@record
@dataclass(frozen=True, slots=True)
class ProbitParams:
    """``weights`` (1 or K, C, d) and ``biases`` (1 or K, C) of the scores."""

    weights: Array
    biases: Array


@record
@dataclass(frozen=True)
class ProbitSums(Stats):
    """Per component and score: moments of (z, 1), of them with the score, and of the score."""

    gram: Array
    target: Array
    energy: Array
    count: Array


@record
@dataclass(frozen=True, slots=True)
class ProbitMetric:
    """Inverse information of the complete data, ``inverse`` (1 or K, C, d + 1, d + 1) of (w, b)."""

    inverse: Array

    def solve(self, gradient: Array) -> Array:
        lead, size = self.inverse.shape[:2], self.inverse.shape[-1] - 1
        n_weights = lead[0] * lead[1] * size
        weights = gradient[:n_weights].reshape(*lead, size)
        both = np.concatenate([weights, gradient[n_weights:].reshape(*lead, 1)], axis=-1)
        out = (self.inverse @ both[..., None])[..., 0]
        return np.concatenate([out[..., :-1].ravel(), out[..., -1].ravel()])


@dataclass(frozen=True, slots=True)
class _Work:
    """Of one score: mean and variance of its utility, and its covariance with z."""

    mean: Array
    variance: Array
    with_latents: Array


@dataclass(frozen=True)
class ProbitLabels:
    """Probit labels.

    Parameters
    ----------
    n_classes : int
    tradeoff : float
        How much of a labelled row is read with its label: 1 is the likelihood of both, 0 leaves
        the labels out, more than 1 stresses them.
    ridge : float
        Precision of a normal prior of the weights.
    own : bool
        Whether each component has scores of its own.
    """

    n_classes: int = 2
    tradeoff: float = 1.0
    ridge: float = 0.0
    own: bool = False

    # whether scores are linear in the latents, so that weights turn with them
    straight: ClassVar[bool] = True

    @property
    def tied(self) -> bool:
        return not self.own

    @property
    def n_scores(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    def n_features(self, n_factors: int) -> int:
        """Numbers of which a score is linear."""
        return n_factors

    def has_shapes_of(self, params: ProbitParams, own: int, n_factors: int) -> bool:
        """Whether parameters have the shapes that these settings declare."""
        size = self.n_features(n_factors)
        return params.weights.shape == (own, self.n_scores, size) and params.biases.shape == (
            own,
            self.n_scores,
        )

    def from_straight(self, straight: ProbitParams) -> ProbitParams:
        """Parameters with the borders of a start, which are straight."""
        return straight

    def unknown(self, n_rows: int) -> Array:
        return np.full(n_rows, -1, dtype=np.int64)

    def read(self, params: ProbitParams, covariances: Array) -> ProbitParams:
        return params

    def signs(self, y: Array) -> Array:
        """+1 or -1 (n, C) of each score."""
        classes = np.array([1]) if self.n_classes == 2 else np.arange(self.n_classes)
        return np.where(y[:, None] == classes, 1.0, -1.0)

    # ------------------------------------------------ E step

    def scores(self, latent: Latent, params: ProbitParams) -> tuple[Array, Array, Array]:
        """Mean q (n, K, C) and variance (1 or n, K, C) of the scores, and R w (1 or n, K, C, d)."""
        K = latent.means.shape[1]
        weights = np.broadcast_to(params.weights, (K, *params.weights.shape[1:]))
        q = np.einsum("nkd,kcd->nkc", latent.means, weights) + params.biases
        spread = np.einsum("nkde,kce->nkcd", latent.covariances, weights)
        return q, 1.0 + np.einsum("nkcd,kcd->nkc", spread, weights), spread

    def workspace_per_row(self, y: Array, n_components: int, n_factors: int) -> int:
        return n_components * (n_factors + 1) ** 2

    def replicates(self, y: Array, latent: Latent, reading: ProbitParams) -> Sequence[Replicate]:
        labelled = y >= 0
        share = np.where(labelled, self.tradeoff, 0.0)
        q, tau2, spread = self.scores(latent, reading)
        signs = self.signs(y)
        found = [
            self._copy(latent, q[..., c], tau2[..., c], spread[..., c, :], signs[:, c, None],
                       share / self.n_scores)
            for c in range(self.n_scores)
        ]  # fmt: skip
        rest = Replicate(1.0 - share, np.zeros(q.shape[:2]), latent, None)
        return (*found, rest)

    def _copy(
        self, latent: Latent, q: Array, tau2: Array, spread: Array, sign: Array, share: Array
    ) -> Replicate:
        means, shrink = moments_given_sign(latent.means, spread, q, tau2, sign)
        outer = spread[..., :, None] * spread[..., None, :]
        covariances = latent.covariances - shrink[..., None, None] * outer
        a, variance, left = utility_moments(q, tau2, sign)
        work = _Work(a, variance, left[..., None] * spread)
        return Replicate(share, log_probability(q, tau2, sign), Latent(means, covariances), work)

    def sums(
        self,
        y: Array,
        replicates: Sequence[Replicate],
        resp: Sequence[Array],
        reading: ProbitParams,
    ) -> ProbitSums:
        pairs = list(zip(replicates[:-1], resp[:-1], strict=True))
        gram = np.stack([_gram(replicate.latent, r) for replicate, r in pairs], axis=1)
        target = np.stack([_target(replicate, r) for replicate, r in pairs], axis=1)
        energy = [(r * (c.work.variance + c.work.mean**2)).sum(axis=0) for c, r in pairs]
        count = [r.sum(axis=0) for _, r in pairs]
        return ProbitSums(gram, target, np.stack(energy, axis=1), np.stack(count, axis=1))

    # ------------------------------------------------ M step

    def update(
        self, sums: ProbitSums, params: ProbitParams, relevance: Array | None = None
    ) -> ProbitParams:
        gram, target, energy, count = (
            self._pooled(v) for v in (sums.gram, sums.target, sums.energy, sums.count)
        )
        size = gram.shape[-1]
        known = count > 0
        safe = np.where(known[..., None, None], gram + self._prior(size, relevance), np.eye(size))
        try:
            solved = np.linalg.solve(safe, target[..., None])[..., 0]
        except np.linalg.LinAlgError:  # latents that do not vary: the shortest of all solutions
            solved = (np.linalg.pinv(safe, hermitian=True) @ target[..., None])[..., 0]
        solved = solved / self._score_deviation(solved, target, energy, count)[..., None]
        weights = np.where(known[..., None], solved[..., :-1], params.weights)
        biases = np.where(known, solved[..., -1], params.biases)
        return replace(params, weights=weights, biases=biases)

    def _prior(self, size: int, relevance: Array | None) -> Array:
        """Precisions of (w, b), (d + 1, d + 1) or of each component (1 or K, 1, d + 1, d + 1)."""
        plain = np.append(np.full(size - 1, self.ridge), 0.0)
        if relevance is None:
            return np.diag(plain)
        zero = np.zeros((len(relevance), 1))
        return np.asarray(
            (plain + np.append(relevance, zero, axis=1))[:, None, None] * np.eye(size)
        )

    def squares_of(self, params: ProbitParams) -> Array:
        return np.asarray(np.swapaxes(params.weights, 1, 2) @ params.weights)

    def n_loadings(self, params: ProbitParams) -> int:
        return int(params.weights.shape[1])

    @staticmethod
    def _score_deviation(solved: Array, target: Array, energy: Array, count: Array) -> Array:
        """The noise of the scores set free, to be absorbed again (parameter expansion).

        A scale of the score divides residuals and the prior's penalty alike, so that it does not
        enter the regression.
        """
        known = count > 0
        left = (energy - (solved * target).sum(axis=-1)) / np.where(known, count, 1.0)
        return np.asarray(np.sqrt(np.where(known & (left > 0), left, 1.0)))

    def transform_latents(self, params: ProbitParams, mean: Array, root: Array) -> ProbitParams:
        if self.tied:  # the scores see the same latents in all components
            mean, root = mean[:1], root[:1]
        shift = np.einsum("kcd,kd->kc", params.weights, mean)
        return replace(params, weights=params.weights @ root, biases=params.biases + shift)

    def penalty(self, params: ProbitParams) -> float:
        return 0.5 * self.ridge * float((params.weights**2).sum())

    def information(self, params: ProbitParams) -> Array:
        return np.swapaxes(params.weights, 1, 2) @ params.weights

    def n_free(self, n_components: int, n_factors: int) -> int:
        return (n_components if self.own else 1) * self.n_scores * (n_factors + 1)

    def without_reference(self, sums: ProbitSums) -> ProbitSums:
        """The sums as they are: they are about zero."""
        return sums

    # ------------------------------------------------ extrapolation

    def coordinates(self, params: ProbitParams) -> Array:
        """Weights, then biases."""
        return np.concatenate([params.weights.ravel(), params.biases.ravel()])

    def from_coordinates(self, params: ProbitParams, vector: Array) -> ProbitParams:
        size = params.weights.size
        weights, biases = vector[:size], vector[size:]
        return replace(
            params,
            weights=weights.reshape(params.weights.shape),
            biases=biases.reshape(params.biases.shape),
        )

    def gradient(self, params: ProbitParams, sums: ProbitSums) -> ProbitParams:
        """Slopes of the objective in the weights and biases at which the sums were made."""
        gram, target = self._pooled(sums.gram), self._pooled(sums.target)
        both = np.concatenate([params.weights, params.biases[..., None]], axis=-1)
        slope = target - np.einsum("kcij,kcj->kci", gram, both)
        return ProbitParams(slope[..., :-1] - self.ridge * params.weights, slope[..., -1])

    def derivatives(
        self, params: ProbitParams, sums: ProbitSums, relevance: Array | None = None
    ) -> tuple[Array, ProbitMetric]:
        gram = self._pooled(sums.gram)
        size = gram.shape[-1]
        total = np.trace(gram, axis1=-2, axis2=-1)[..., None, None]
        information = gram + self._prior(size, relevance) + 1e-12 * total / size * np.eye(size)
        # scores of which no label tells stay where they are
        known = total > 0
        inverse = np.linalg.inv(np.where(known, information, np.eye(size)))
        slope = self.gradient(params, sums)
        if relevance is not None:
            slope = replace(slope, weights=slope.weights - relevance[:, None] * params.weights)
        return self.coordinates(slope), ProbitMetric(np.where(known, inverse, 0.0))

    def _pooled(self, values: Array) -> Array:
        """Sums (K, ...) of each component, or (1, ...) of all where they share the scores."""
        return values if self.own else values.sum(axis=0, keepdims=True)

    # ------------------------------------------------ prediction

    def log_signs(self, params: ProbitParams, latent: Latent, signs: Any) -> Array:
        """ln P(score c has this sign | x, k), (n, K, C); signs are one or (n, 1, C)."""
        q, tau2, _ = self.scores(latent, params)
        return log_probability(q, tau2, signs)

    def scores_at(self, params: ProbitParams, z: Array) -> Array:
        """Scores (..., K, S, C) at latents (..., K, S, d), which all components may share."""
        found = z @ np.swapaxes(params.weights, 1, 2)
        return np.asarray(found + params.biases[:, None])


def _gram(latent: Latent, resp: Array) -> Array:
    """sum r E[(z, 1)(z, 1)'], (K, d + 1, d + 1)."""
    z = latent.means
    n, K, d = z.shape
    out = np.empty((K, d + 1, d + 1))
    by_component = np.moveaxis(z, 1, 0)
    weighted = np.moveaxis(resp[..., None] * z, 0, 2)
    out[:, :d, :d] = weighted @ by_component
    spread = np.broadcast_to(latent.covariances, (n, K, d, d))
    out[:, :d, :d] += np.einsum("nk,nkij->kij", resp, spread)
    out[:, :d, d] = out[:, d, :d] = weighted.sum(axis=2)
    out[:, d, d] = resp.sum(axis=0)
    return out


def _target(replicate: Replicate, resp: Array) -> Array:
    """sum r E[a (z, 1)], (K, d + 1)."""
    work: _Work = replicate.work
    with_z = work.mean[..., None] * replicate.latent.means + work.with_latents
    first = np.einsum("nk,nkd->kd", resp, with_z)
    return np.concatenate([first, (resp * work.mean).sum(axis=0)[:, None]], axis=1)
