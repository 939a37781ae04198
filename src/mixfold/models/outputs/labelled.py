"""Factor components with labels by a probit: the M step with a prior of the classifier."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Context, Update
from mixfold.families.factor.records import Latents
from mixfold.math.symmetric import roots_of
from mixfold.models.mixtures.repair import find_empty_components, repair_empty_components
from mixfold.models.outputs.model import (
    SupervisedModel,
    SupervisedParams,
    SupervisedStats,
)
from mixfold.models.outputs.outputs import latent_prior
from mixfold.models.outputs.probit_labels import ProbitLabels, ProbitParams

# axes on which the weights of a classifier are smaller than this share are not seen by it
_UNSEEN = 1e-9


@dataclass(frozen=True)
class LabelledModel(SupervisedModel):
    """A mixture of factor models with labels (``outputs`` are ``ProbitLabels``), by EM."""

    reseed: bool = True

    @property
    def labels(self) -> ProbitLabels:
        assert isinstance(self.outputs, ProbitLabels)
        return self.outputs

    # ------------------------------------------------ M step

    def update(
        self, params: SupervisedParams, stats: SupervisedStats, context: Context
    ) -> Update[SupervisedParams]:
        fresh = super().update(params, stats, context)
        empty = find_empty_components(self._plain(), _plain(params), stats.counts, context)
        if not empty.size:
            return fresh
        found = repair_empty_components(
            self._plain(), _plain(fresh.params), empty, fresh.events, _drop_labels(context)
        )
        return Update(_like(fresh.params, found.params), found.events, found.monotone)

    def _plain(self) -> Any:
        """Self, where a mixture is expected: it has what a repair asks for."""
        return self

    def _latent_prior(
        self, params: SupervisedParams, stats: SupervisedStats
    ) -> tuple[Array, Array]:
        latents, outputs = stats.components.rows, params.outputs
        if not self.labels.straight:
            return latent_prior(latents, self.labels.tied)
        if self.labels.tied and self.n_components > 1:
            return free_latents(latents, outputs, self.labels.ridge)
        mean, root = latent_prior(latents, self.labels.tied)
        return mean, root @ shrinking_root(outputs, root, latents.count, self.labels.ridge)

    # ------------------------------------------------ counting

    def n_free(self, n_features: int) -> int:
        """Free parameters: rotations of the latents that nobody can see are not counted.

        Raises
        ------
        ValueError
            With more than two classes, whose objective is no likelihood.
        """
        if self.labels.n_classes > 2:
            raise ValueError(
                "information criteria need a likelihood, and with more than two classes the "
                f"objective is a composite one; got {self.labels.n_classes} classes. Compare "
                "held-out accuracies or log-losses instead"
            )
        K, d = self.n_components, self.family.size
        free = self.family.n_free_beside_outputs(K, n_features) + self.mixing.n_free(K)
        if self.labels.own or d == 0:
            return free + self.labels.n_free(K, d)
        # a turn of the latents must keep the direction of w: d - 1 axes are free, not d
        return free + K * (d - 1) + 2


def free_latents(latents: Latents, outputs: ProbitParams, ridge: float) -> tuple[Array, Array]:
    """Means (K, d) and roots (K, d, d) of the latents of components that share a classifier.

    The axes s that its scores see have one mean and covariance in all components; of the others,
    t, each component has a regression on s of its own, t | s, k ~ N(c_k + B_k s, T_k). The scores
    then see the same latents in all of them. Were t shared too, its scale in a component would
    only be learned at the rate of the noise over the signal, which many columns make tiny.
    """
    d = latents.first.shape[1]
    sizes, axes = np.linalg.svd(outputs.weights[0])[1:]
    q = int((sizes > _UNSEEN * sizes.max(initial=0.0)).sum())
    turn = axes.T
    count, n = latents.count, np.maximum(latents.count, np.finfo(float).tiny)[:, None, None]
    first, second = latents.first @ turn, turn.T @ latents.second @ turn

    seen = replace(latents, first=first[:, :q], second=second[:, :q, :q])
    mean, root = latent_prior(seen, shared=True)
    turned = replace(outputs, weights=outputs.weights @ turn[:, :q])
    root = root @ shrinking_root(turned, root, count.sum(keepdims=True), ridge)

    known = (count > 0)[:, None, None]
    # moments of (1, s) and (1, t), of which those of (1, s) with themselves and with t are wanted
    on_s = np.concatenate([first[:, None, :], second[:, :q]], axis=1) / n
    ones = np.concatenate([count[:, None], first[:, :q]], axis=1)[:, :, None] / n
    gram, both = np.concatenate([ones, on_s[:, :, :q]], axis=2), on_s[:, :, q:]
    coef = np.linalg.solve(np.where(known, gram, np.eye(q + 1)), both)
    left = second[:, q:, q:] / n - np.swapaxes(both, 1, 2) @ coef
    rest = roots_of(np.where(known, 0.5 * (left + np.swapaxes(left, 1, 2)), np.eye(d - q)))

    means, roots = np.zeros((len(count), d)), np.zeros((len(count), d, d))
    across = np.swapaxes(coef[:, 1:], 1, 2)
    means[:, :q] = mean
    means[:, q:] = coef[:, 0] + across @ mean[0]
    roots[:, :q, :q] = root
    roots[:, q:, :q] = across @ root
    roots[:, q:, q:] = rest
    return means @ turn.T, turn @ roots @ turn.T


def shrinking_root(outputs: ProbitParams, root: Array, count: Array, ridge: float) -> Array:
    """A factor S (K or 1, d, d): latents with root L S are best where weights cost by a ridge.

    With free latents of covariance V the weights become L'w, V = LL', and cost ridge / 2 w'Vw.
    For n rows with covariance Vh = LL' the best V is L Q^-1 L', where Q^2 - Q = M and
    M = ridge / n sum_c (L'w_c)(L'w_c)': a function of the eigenvalues of M.
    """
    along = np.asarray(outputs.weights @ root)
    n = np.maximum(count, np.finfo(float).tiny)[:, None, None]
    values, axes = np.linalg.eigh(ridge / n * (np.swapaxes(along, 1, 2) @ along))
    q = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * np.maximum(values, 0.0)))
    return np.asarray((axes / np.sqrt(q)[:, None, :]) @ np.swapaxes(axes, 1, 2))


def _plain(params: SupervisedParams) -> Any:
    """Parameters where those of a mixture are expected: they have weights and components."""
    return params


def _like(params: SupervisedParams, found: Any) -> SupervisedParams:
    return replace(params, weights=found.weights, components=found.components)


def _drop_labels(context: Context) -> Context:
    """Labels here are of classes, not of components: a repair need not heed them."""
    if context.pilot is None:
        return context
    block = replace(context.pilot.block, y=None)
    return replace(context, pilot=replace(context.pilot, block=block))
