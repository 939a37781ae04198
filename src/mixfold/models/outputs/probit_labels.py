"""Labels by a probit in the latent space: P(y = c | z) = Phi(w_c'z + b_c).

Through the latent score a = w'z + b + noise, whose sign is the label, the classifier is a linear
regression in the M step. Two classes have one score; C classes have one each against the rest,
every labelled row counting 1 / C for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, Stats, record
from mixfold.math.probit import log_probability, squashed_moments, utility_moments
from mixfold.models.outputs.outputs import Copy, Latent


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

    @property
    def tied(self) -> bool:
        return not self.own

    @property
    def n_scores(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

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

    def numbers_per_row(self, y: Array, n_components: int, n_factors: int) -> int:
        return n_components * (n_factors + 1) ** 2

    def copies(self, y: Array, latent: Latent, reading: ProbitParams) -> Sequence[Copy]:
        labelled = y >= 0
        share = np.where(labelled, self.tradeoff, 0.0)
        q, tau2, spread = self.scores(latent, reading)
        signs = self.signs(y)
        found = [
            self._copy(latent, q[..., c], tau2[..., c], spread[..., c, :], signs[:, c, None],
                       share / self.n_scores)
            for c in range(self.n_scores)
        ]  # fmt: skip
        rest = Copy(1.0 - share, np.zeros(q.shape[:2]), latent, None)
        return (*found, rest)

    def _copy(
        self, latent: Latent, q: Array, tau2: Array, spread: Array, sign: Array, share: Array
    ) -> Copy:
        means, shrink = squashed_moments(latent.means, spread, q, tau2, sign)
        outer = spread[..., :, None] * spread[..., None, :]
        covariances = latent.covariances - shrink[..., None, None] * outer
        a, variance, left = utility_moments(q, tau2, sign)
        work = _Work(a, variance, left[..., None] * spread)
        return Copy(share, log_probability(q, tau2, sign), Latent(means, covariances), work)

    def sums(
        self, y: Array, copies: Sequence[Copy], resp: Sequence[Array], reading: ProbitParams
    ) -> ProbitSums:
        pairs = list(zip(copies[:-1], resp[:-1], strict=True))
        gram = np.stack([_gram(copy.latent, r) for copy, r in pairs], axis=1)
        target = np.stack([_target(copy, r) for copy, r in pairs], axis=1)
        energy = [(r * (c.work.variance + c.work.mean**2)).sum(axis=0) for c, r in pairs]
        count = [r.sum(axis=0) for _, r in pairs]
        return ProbitSums(gram, target, np.stack(energy, axis=1), np.stack(count, axis=1))

    # ------------------------------------------------ M step

    def update(self, sums: ProbitSums, params: ProbitParams) -> ProbitParams:
        gram, target, energy, count = sums.gram, sums.target, sums.energy, sums.count
        if not self.own:
            gram, target, energy, count = (
                v.sum(axis=0, keepdims=True) for v in (gram, target, energy, count)
            )
        size = gram.shape[-1]
        prior = np.append(np.full(size - 1, self.ridge), 0.0)
        known = count > 0
        safe = np.where(known[..., None, None], gram + np.diag(prior), np.eye(size))
        solved = np.linalg.solve(safe, target[..., None])[..., 0]
        # the noise of the scores set free and absorbed again (parameter expansion): a scale of the
        # score divides residuals and the prior's penalty alike, so that it does not enter above
        left = (energy - (solved * target).sum(axis=-1)) / np.where(known, count, 1.0)
        solved = solved / np.sqrt(np.where(known & (left > 0), left, 1.0))[..., None]
        weights = np.where(known[..., None], solved[..., :-1], params.weights)
        biases = np.where(known, solved[..., -1], params.biases)
        return ProbitParams(weights, biases)

    def moved(self, params: ProbitParams, mean: Array, root: Array) -> ProbitParams:
        shift = np.einsum("kcd,kd->kc", params.weights, mean)
        return replace(params, weights=params.weights @ root, biases=params.biases + shift)

    def penalty(self, params: ProbitParams) -> float:
        return 0.5 * self.ridge * float((params.weights**2).sum())

    def information(self, params: ProbitParams) -> Array:
        return np.swapaxes(params.weights, 1, 2) @ params.weights

    def n_free(self, n_components: int, n_factors: int) -> int:
        return (n_components if self.own else 1) * self.n_scores * (n_factors + 1)

    # ------------------------------------------------ prediction

    def probabilities(self, params: ProbitParams, latent: Latent) -> Array:
        """ln P(score c is positive | x, k), (n, K, C)."""
        q, tau2, _ = self.scores(latent, params)
        return log_probability(q, tau2, 1.0)


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


def _target(copy: Copy, resp: Array) -> Array:
    """sum r E[a (z, 1)], (K, d + 1)."""
    work: _Work = copy.work
    with_z = work.mean[..., None] * copy.latent.means + work.with_latents
    first = np.einsum("nk,nkd->kd", resp, with_z)
    return np.concatenate([first, (resp * work.mean).sum(axis=0)[:, None]], axis=1)
