"""Every public estimator with settings that make it quick, rows that it takes, and its targets.

The one table of this kind: what is asked of all estimators is asked of these.
"""

from __future__ import annotations

import inspect
import warnings
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import mixfold

rng = np.random.default_rng(0)
N, D = 48, 4
LABELS = rng.integers(0, 2, N)
NUMBERS = rng.normal(size=(N, D)) + 3 * LABELS[:, None] * [1, -1, 0.5, 0]
COUNTS = rng.poisson(1 + 4 * (LABELS[:, None] == [0, 0, 1, 1])).astype(float)
BITS = (rng.random((N, D)) < 0.2 + 0.6 * LABELS[:, None]).astype(float)
CLASSES = np.array(["a", "b"])[LABELS]
NAMES = ["height", "weight", "age", "rate"]

# An estimator with brief settings, rows that it takes, and what it learns from besides them.
BRIEF: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "BayesianGaussianMixture": ({"n_components": 2, "max_iter": 20}, NUMBERS, None),
    "BernoulliMixture": ({"n_components": 2, "max_iter": 20}, BITS, None),
    "CategoricalMixture": ({"n_components": 2, "max_iter": 20}, BITS, None),
    "DeepBeliefNetwork": (
        {"hidden": (3, 2), "max_epochs": 1, "fine_tune_epochs": 1}, BITS, CLASSES),
    "DeepFactorNetwork": (
        {"hidden": (3, 2), "max_iter": 5, "max_epochs": 1}, NUMBERS, CLASSES),
    "FactorAnalysis": ({}, NUMBERS, None),
    "GTM": ({"n_points": 5, "n_basis": 3, "max_iter": 20}, NUMBERS, None),
    "GaussianMixture": ({"n_components": 2}, NUMBERS, None),
    "GaussianPCP": ({"n_clusters": 2, "init_params": "k-means++", "max_iter": 20}, NUMBERS, None),
    "ICA": ({"max_iter": 100, "tol": 1e-3}, NUMBERS, None),
    "KMeans": ({"n_clusters": 2}, NUMBERS, None),
    "KSubspaces": ({}, NUMBERS, None),
    "KernelCCA": ({"n_components": 1}, NUMBERS, CLASSES),
    "KernelPCA": ({}, NUMBERS, None),
    "LatentDirichletAllocation": ({"n_components": 2, "max_iter": 20}, COUNTS, None),
    "LatentDensity": ({}, NUMBERS, None),
    "MLiT": ({}, NUMBERS, None),
    "MORP": ({}, NUMBERS, CLASSES),
    "MatrixFactorization": ({"n_components": 2, "max_iter": 10}, NUMBERS, CLASSES),
    "Mixture": ({"family": "diag", "n_components": 2, "max_iter": 20}, NUMBERS, None),
    "MixtureClassifier": ({}, NUMBERS, CLASSES),
    "MixtureClustering": ({"max_components": 3}, NUMBERS, None),
    "MixtureOfFactorAnalyzers": ({"n_components": 2, "max_iter": 20}, NUMBERS, None),
    "MixtureOfFactorModels": ({"max_iter": 10}, NUMBERS, CLASSES),
    "MixtureOfPPCA": ({"n_components": 2, "max_iter": 20}, NUMBERS, None),
    "MixtureSearch": ({"n_components": [1, 2]}, NUMBERS, None),
    "MultinomialMixture": ({"n_components": 2, "max_iter": 20}, COUNTS, None),
    "NestedMixture": ({"n_components": 2, "init_params": "k-means++"}, NUMBERS, None),
    "PCP": ({"n_components": 2, "n_clusters": 2, "max_iter": 10}, COUNTS, None),
    "PLSI": ({"n_components": 2, "max_iter": 20}, COUNTS, None),
    "PPCA": ({"n_components": 2}, NUMBERS, None),
    "PoissonMixture": ({"n_components": 2, "max_iter": 20}, COUNTS, None),
    "RBM": ({"n_components": 3, "max_epochs": 1}, BITS, CLASSES),
    "SupervisedMixtureOfPPCA": ({"max_iter": 10}, NUMBERS, CLASSES),
    "SupervisedPPCA": ({}, NUMBERS, CLASSES),
}  # fmt: skip
PUBLIC = sorted(
    name
    for name in mixfold.__all__
    if inspect.isclass(getattr(mixfold, name)) and issubclass(getattr(mixfold, name), BaseEstimator)
)


def new(name: str, **changes: Any) -> Any:
    """An estimator that was not fitted."""
    return getattr(mixfold, name)(**{**BRIEF[name][0], "random_state": 0, **changes})


def fit(name: str, X: Any, **changes: Any) -> Any:
    """An estimator fitted to these rows."""
    return new(name, **changes).fit(X, BRIEF[name][2])


@cache
def fitted(name: str) -> Any:
    """A model fitted to the array of its rows, once for all tests that only ask it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few steps and rows
        return fit(name, BRIEF[name][1])
