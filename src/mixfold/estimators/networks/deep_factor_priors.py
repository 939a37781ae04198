"""Where the top sources of generated rows of a DeepFactorNetwork come from: priors of a class."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mixfold.contracts import Array, record
from mixfold.estimators.factors.mixture_of_factor_analyzers import MixtureOfFactorAnalyzers
from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture
from mixfold.estimators.shell.base import DegenerateWarning
from mixfold.models.networks.source_inference import towards_class
from mixfold.models.networks.use import StackParams

# sources of so many labelled rows are kept for the priors, at most
KEPT = 20_000
# the mixture of a class: rows for each of its components, and at most so many of these
ROWS_PER_COMPONENT, MOST_COMPONENTS, FACTORS = 80, 10, 10
# least noise of a source, relative to its variance
FLOOR = 1e-3


@record
@dataclass(frozen=True, slots=True)
class TopSources:
    """Sources of labelled training rows, inferred without labels, with classes and weights."""

    sources: Array
    labels: Array
    weight: Array

    def of(self, number: int) -> tuple[Array, Array]:
        """Sources and weights of the rows of one class."""
        rows = self.labels == number
        return self.sources[rows].astype(np.float64), self.weight[rows]


def keep_top_sources(sources: Array, labels: Array, weight: Array, seed: int) -> TopSources:
    """Those of labelled rows: all of them, or a seeded sample."""
    chosen = np.arange(len(labels))
    if len(chosen) > KEPT:
        rng = np.random.default_rng([seed % 2**63, 13])
        chosen = np.sort(rng.choice(chosen, KEPT, replace=False))
    return TopSources(sources[chosen].astype(np.float32), labels[chosen], weight[chosen])


def search_sources(
    stack: StackParams, kept: TopSources | None, number: int, n: int, prior: str, stop: float,
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    """Sources moved until the class is as probable as ``stop``: 'laplace' and 'prototype'."""
    top, alpha = stack.layers[-1], stack.alpha[-1]
    start = np.zeros((1 if prior == "prototype" else n, top.n_codes))
    if prior == "laplace":
        assert kept is not None
        # the Laplace prior that suits the sources best; alpha = 0 would be no distribution
        scale = np.average(np.abs(kept.sources), axis=0, weights=kept.weight)
        start = rng.laplace(size=start.shape) * scale
    found = towards_class(top, stack.link, number, start, alpha, stop)
    return np.repeat(found, n, axis=0) if prior == "prototype" else found


def fit_class_prior(kept: TopSources, number: int, prior: str, seed: int) -> Any:
    """The model of the sources of a class, 'mixture' or 'gaussian'; one row if all are alike."""
    key = np.random.SeedSequence([seed % 2**63, 17, number])
    seed = int(key.generate_state(1, np.uint64)[0] >> 1)
    sources, weight = kept.of(number)
    size = sources.shape[1]
    distinct = len(np.unique(sources, axis=0))
    if distinct < 3:
        return np.average(sources, axis=0, weights=weight)[None]
    if prior == "gaussian":
        kind = "full" if distinct > size else "diag"
        gaussian = GaussianMixture(1, covariance_type=kind, reg_covar=1e-6, random_state=seed)
        return gaussian.fit(sources, sample_weight=weight)
    components = int(np.clip(distinct // ROWS_PER_COMPONENT, 1, MOST_COMPONENTS))
    factors = int(np.clip((size - 1) // 2, 0, min(FACTORS, distinct // components - 1)))
    mixture = MixtureOfFactorAnalyzers(
        components, factors, noise_floor=FLOOR, tol=1e-4, max_iter=200, random_state=seed
    )
    with warnings.catch_warnings():  # the floor is there to be reached: it smooths
        warnings.simplefilter("ignore", DegenerateWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mixture.fit(sources, sample_weight=weight)


def draw_sources(model: Any, n: int, seed: int) -> Array:
    """Sources from what ``fit_class_prior`` has made, (n, H)."""
    if isinstance(model, np.ndarray):  # one row, or equal ones
        return np.repeat(model, n, axis=0)
    return np.asarray(model.sample(n, random_state=seed)[0])
