"""Mixtures: Gaussian, of counts and codes, hierarchical, and the search for their size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench.entries import draws
from bench.entries.judges import CHOSEN, INERTIA, UNSEEN, mixture_likelihood
from bench.entries.neighbours import CONVERGED
from bench.entries.record import Data, Entry, parted
from bench.problems import Problem, start_for

STEPS = 10
FULL, DIAGONAL = Problem(0, 16, 16, "full"), Problem(0, 32, 32, "diag")
OVERLAPPING = Problem(0, 8, 6, "full", separation=2.8)
BAYES = Problem(0, 16, 30, "full")
CENTRES = 50
STEPS_ONLY = {"tol": 0.0, "max_iter": STEPS, "random_state": 0}
# what a mixture does beyond plain EM is off: the number of steps is then what is equal
PLAIN = {**STEPS_ONLY, "acceleration": None}


def same_start(shape: Problem, **own: Any) -> Callable[[Data], Mapping[str, Any]]:
    """Settings of EM from parameters that both libraries are given."""

    def settings(data: Data) -> Mapping[str, Any]:
        start = start_for(data.X, shape)
        return {
            "n_components": shape.k, "covariance_type": shape.covariance, "reg_covar": 0.0,
            "weights_init": start.weights, "means_init": start.means,
            "precisions_init": start.precisions(shape.covariance), **STEPS_ONLY, **own,
        }  # fmt: skip

    return settings


def gaussian(shape: Problem, n: int) -> Entry:
    return Entry(
        "GaussianMixture", f"D = {shape.d}, K = {shape.k}", f"{STEPS} EM steps, same start",
        draws.gaussian(shape), mixture_likelihood(shape.covariance),
        same_start(shape, acceleration=None), "sklearn.mixture:GaussianMixture",
        same_start(shape, init_params="random_from_data"), (n, 2 * n, 4 * n),
        kind=shape.covariance, quick=(2000, 4000),
    )  # fmt: skip


def first_rows(data: Data) -> Mapping[str, Any]:
    return {"n_clusters": CENTRES, "init": np.array(data.X[:CENTRES]), "n_init": 1, "tol": 0.0,
            "max_iter": 20}  # fmt: skip


def counted(model: str, problem: str, draw: draws.Draw, k: int, n: int) -> Entry:
    return Entry(
        model, f"{problem}, K = {k}", f"{STEPS} EM steps and the start", draw, UNSEEN,
        {"n_components": k, **PLAIN}, sizes=(n, 2 * n, 4 * n),
    )  # fmt: skip


def mixed(n: int) -> Data:
    """Four columns of each of four kinds."""
    kinds = [draws.parted_gaussian(Problem(0, 4, 5))(n), draws.poisson(4, 5)(n),
             draws.bits(4, 5)(n), draws.codes(4, 5, 4)(n)]  # fmt: skip
    return parted(np.hstack([np.vstack([d.X, d.test]) for d in kinds]), n)


MIXED = {"full": [0, 1, 2, 3], "poisson": [4, 5, 6, 7], "bernoulli": [8, 9, 10, 11],
         "categorical": [12, 13, 14, 15]}  # fmt: skip


def searched(data: Data) -> Mapping[str, Any]:
    from mixfold import GaussianMixture

    return {"estimator": GaussianMixture(n_jobs=1), "n_components": range(1, 7), "random_state": 0}


MIXTURES = (
    gaussian(FULL, 20_000),
    gaussian(DIAGONAL, 20_000),
    Entry(
        "GaussianMixture", "D = 8, K = 6", "to convergence (peer: tol=1e-7), own starts",
        draws.gaussian(OVERLAPPING), mixture_likelihood("full"),
        {"n_components": 6, "random_state": 0}, "sklearn.mixture:GaussianMixture",
        {"n_components": 6, "random_state": 0, **CONVERGED}, kind="converged",
        quick=(1000, 2000),
    ),
    Entry(
        "BayesianGaussianMixture", "full, D = 16, K = 30",
        f"{STEPS} steps, each from random rows",
        draws.gaussian(BAYES), mixture_likelihood("full"),
        {"n_components": 30, **STEPS_ONLY, "init_params": "random_from_data"},
        "sklearn.mixture:BayesianGaussianMixture",
        {"n_components": 30, **STEPS_ONLY, "init_params": "random_from_data"},
        (10_000, 20_000, 40_000), quick=(1000, 2000),
    ),
    Entry(
        "KMeans", f"D = 16, K = {CENTRES}", "at most 20 Lloyd steps, same start",
        draws.gaussian(Problem(0, 16, 16)), INERTIA, first_rows, "sklearn.cluster:KMeans",
        lambda data: {**first_rows(data), "algorithm": "lloyd"}, (50_000, 100_000, 200_000),
    ),
    Entry(
        "Mixture", "4 Gaussian, Poisson, bit and code columns each, K = 5",
        f"{STEPS} EM steps and the start", mixed, UNSEEN,
        {"family": MIXED, "n_components": 5, **PLAIN}, sizes=(20_000, 40_000, 80_000),
    ),
    counted("PoissonMixture", "D = 50", draws.poisson(50, 10), 10, 20_000),
    counted("BernoulliMixture", "D = 100", draws.bits(100, 10), 10, 20_000),
    counted("CategoricalMixture", "D = 20, 5 codes", draws.codes(20, 10, 5), 10, 20_000),
    counted("MultinomialMixture", "sparse, 1,000 words", draws.texts(1000, 10, 60), 10, 4_000),
    Entry(
        "NestedMixture", "full, D = 4, 3 cells of 3", "own defaults, to convergence",
        draws.parted_gaussian(Problem(0, 4, 9)), UNSEEN,
        {"n_components": 3, "n_subcomponents": 3, "random_state": 0},
    ),
    Entry(
        "MixtureSearch", "D = 4, K = 1 to 6 by BIC", "each to convergence (peer: tol=1e-7)",
        draws.gaussian(Problem(0, 4, 4)), CHOSEN, searched, "bench.entries.neighbours:Loop",
        {"n_components": range(1, 7)}, (2_500, 5_000, 10_000), remark="of GaussianMixture",
    ),
)  # fmt: skip
