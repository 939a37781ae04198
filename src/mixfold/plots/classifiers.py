"""The class that a factor model gives to a row, as a function of the row's expected factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import logsumexp

from mixfold.contracts import Array
from mixfold.models.outputs.curved_labels import CurvedLabels, CurvedParams
from mixfold.models.outputs.outputs import Latent


@dataclass(frozen=True, slots=True)
class LatentClassifier:
    """The class is the one with the largest score ``coef z + intercept``, (C, d) and (C,).

    z are the expected factors of a complete row, of which the models know what is left in doubt;
    every score is linear in them, up to what all classes have in common.
    """

    coef: Array
    intercept: Array

    # of a plane, in each direction
    steps: ClassVar[int] = 301

    def scores(self, Z: Array) -> Array:
        """Scores (n, C) at latents (n, d)."""
        return np.asarray(Z @ self.coef.T + self.intercept)

    def sees_others(self, factors: tuple[int, int]) -> bool:
        """Whether classes depend on other factors than these."""
        hidden = np.delete(self.coef - self.coef[:1], list(factors), axis=1)
        return bool((np.abs(hidden) > 1e-9 * np.abs(self.coef).max()).any())


@dataclass(frozen=True, slots=True)
class CurvedClassifier:
    """The class is the one of largest probability, for scores that are not linear in z.

    ``labels`` and ``params`` are those of the model, ``doubt`` (d, d) what a row leaves of it.
    """

    labels: CurvedLabels
    params: CurvedParams
    doubt: Array

    # (each point is an average over what is in doubt)
    steps: ClassVar[int] = 101

    def scores(self, Z: Array) -> Array:
        """Log probabilities (n, C) of the classes at latents (n, d)."""
        latent = Latent(Z[:, None], self.doubt[None, None])
        each = [self.labels.log_signs(self.params, latent, s)[:, 0] for s in (-1.0, 1.0)]
        return np.concatenate(each, axis=1) if self.labels.n_scores == 1 else each[1]

    def sees_others(self, factors: tuple[int, int]) -> bool:
        """Whether classes depend on other factors than these."""
        return len(self.doubt) > len(set(factors))


def latent_classifier(model: Any, component: int | None) -> LatentClassifier | CurvedClassifier:
    """How a fitted model, or one component of it, tells classes by the factors.

    Raises
    ------
    TypeError
        If the model does not tell classes by factors.
    ValueError
        If its outputs are no classes, or the component matters and none is given.
    """
    probit, gaussian = hasattr(model, "coef_"), hasattr(model, "output_loadings_")
    if not (probit or gaussian) or not hasattr(model, "_target"):
        raise TypeError(
            f"model must be a fitted MixtureOfFactorModels, SupervisedPPCA or "
            f"SupervisedMixtureOfPPCA, which tell classes by factors; got {type(model).__name__}. "
            "plot_latents draws the factors of any model."
        )
    task = model._target.task
    if task != "classification" or not len(model.classes_):
        other = {"regression": "numbers", "multilabel": "labels"}.get(task, "from rows without one")
        raise ValueError(
            f"model must have learned one class per row, to have regions of classes; this "
            f"{type(model).__name__} has learned {other}. plot_latents draws its factors."
        )
    return _probit(model, component) if probit else _gaussian(model, component)


def _one_of(model: Any, component: int | None, apart: bool) -> int | None:
    """The component whose classifier is asked for; None for one that all of them share."""
    size = len(getattr(model, "weights_", (1.0,)))
    if size == 1:
        return 0
    if component is None and apart:
        raise ValueError(
            f"component must be given, from 0 to {size - 1}: each component of this "
            f"{type(model).__name__} has factors and a classifier of its own."
        )
    return component


def _probit(model: Any, component: int | None) -> LatentClassifier | CurvedClassifier:
    """Scores of the classes against all others, by how far the doubt about the factors goes."""
    own = model.coef_.ndim == 3
    k = _one_of(model, component, own)
    coef, intercept = (model.coef_[k], model.intercept_[k]) if own else (
        model.coef_, model.intercept_)  # fmt: skip
    doubt = np.einsum("k,kij->ij", model.weights_, model.latent_covariances_)
    if k is not None:
        doubt = model.latent_covariances_[k]
    if model.classify_from == "latent":
        doubt = np.zeros_like(doubt)
    if hasattr(model, "waves_"):
        return _curved(model, k if own else 0, doubt)
    size = np.sqrt(1 + np.einsum("ci,ij,cj->c", coef, doubt, coef))
    coef, intercept = coef / size[:, None], intercept / size
    if len(coef) == 1:  # two classes
        coef, intercept = np.vstack([-coef, coef]), np.concatenate([-intercept, intercept])
    return LatentClassifier(coef, intercept)


def _curved(model: Any, k: int | None, doubt: Array) -> CurvedClassifier:
    parts = (model.coef_, model.intercept_, model.waves_, model.phases_)
    own = [part[k] if model.coef_.ndim == 3 else part for part in parts]
    params = CurvedParams(*(np.asarray(part, float)[None] for part in own))
    return CurvedClassifier(replace(model._labels(), own=False), params, doubt.astype(float))


def _gaussian(model: Any, component: int | None) -> LatentClassifier:
    """Log densities of the codes of the classes, which are as frequent as the classes are."""
    mixed = hasattr(model, "weights_")
    k = _one_of(model, component, apart=True)
    V, m = model.output_loadings_, model.output_mean_
    doubt = model.latent_covariances_ if mixed else model.latent_covariance_[None]
    V, m = (V, m) if mixed else (V[None], m[None])
    noise = np.diag(model.output_noise_variance_.astype(float))
    weights = model.weights_ if mixed else np.ones(1)
    codes, prior = model._coding.codes, np.log(model._coding.prior)
    before = [
        np.log(weight) + _log_densities(codes, mean, loadings @ loadings.T + noise)
        for weight, mean, loadings in zip(weights, m, V, strict=True)
        if weight > 0
    ]
    pull = cho_solve(cho_factor(V[k] @ doubt[k] @ V[k].T + noise), codes.T).T
    at_mean = pull @ m[k] - 0.5 * (pull * codes).sum(axis=1)
    return LatentClassifier(pull @ V[k], at_mean + prior - logsumexp(np.array(before), axis=0))


def _log_densities(codes: Array, mean: Array, covariance: Array) -> Array:
    """ln N(code; mean, covariance) up to what all have in common, (C,).

    The noise of outputs that the factors explain wholly is next to nothing, which a Cholesky factor
    bears.
    """
    root = np.linalg.cholesky(covariance)
    away = solve_triangular(root, (codes - mean).T, lower=True)
    return np.asarray(-np.log(np.diag(root)).sum() - 0.5 * (away**2).sum(axis=0))
