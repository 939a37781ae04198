"""Every public estimator with small settings, drawn at random among those that are allowed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.faults.tables import pick

K = (1, 2, 3, 5)
COVARIANCES = ("full", "tied", "diag", "spherical", "tied-diag", "tied-spherical")
KERNELS = ("rbf", "linear", "poly", "cosine", "laplacian")
FAMILIES = (
    "full",
    "tied",
    "diag",
    "spherical",
    "tied-diag",
    "tied-spherical",
    "bernoulli",
    "poisson",
    "exponential",
    "categorical",
    "multinomial",
    "binomial",
    "gamma",
    "negative-binomial",
    "known",
)
INFERENCES = {
    "em": ("auto", "ml", "dirichlet", "stick-breaking"),
    "vb": ("auto", "dirichlet", "stick-breaking"),
    "gibbs": ("auto", "dirichlet", "stick-breaking"),
    "collapsed": ("auto", "dirichlet"),
}


def _bayes(rng: np.random.Generator) -> Any:
    inference = pick(rng, tuple(INFERENCES), (4, 4, 1, 1))
    return dict(
        n_components=pick(rng, K),
        inference=inference,
        weights=pick(rng, INFERENCES[inference]),
        max_iter=6,
        n_chains=1,
        n_draws=3,
        burn_in=2,
        random_state=0,
        init_params=pick(rng, ("auto", "kmeans", "random")),
        merge_split=pick(rng, (True, False)),
        alpha=pick(rng, (1.0, "learn", 1e-3, 100.0), (6, 1, 1, 1)),
    )


def _fitting(rng: np.random.Generator, n: Any = 8) -> Any:
    return dict(max_iter=n, random_state=0, acceleration=pick(rng, ("auto", None, "squarem")))


def _kernel(rng: np.random.Generator) -> Any:
    return dict(
        kernel=pick(rng, KERNELS), gamma=pick(rng, (None, "scale", 1e-3, 1e3)), random_state=0
    )


def _options(rng: np.random.Generator, **choices: Any) -> Any:
    return {name: pick(rng, values) for name, values in choices.items()}


def _mixture(rng: np.random.Generator) -> Any:
    settings = _bayes(rng)
    family = pick(rng, FAMILIES)
    settings["family"] = family
    options = {"binomial": {"trials": 9}, "gamma": {"shape": 2.0}}.get(family)
    return {**settings, "family_options": options}


def _search(rng: np.random.Generator) -> Any:
    import mixfold

    estimator = pick(
        rng,
        (
            mixfold.GaussianMixture(max_iter=5),
            mixfold.PPCA(max_iter=5),
            mixfold.Mixture("poisson", max_iter=5),
            None,
            mixfold.KMeans(max_iter=5),
        ),
    )
    return dict(
        estimator=estimator,
        n_components=pick(rng, (range(1, 3), [1, 2], 2, None)),
        random_state=0,
        criterion=pick(rng, ("bic", "aic", "icl", "bic")),
        n_jobs=1,
    )


def _classifier(rng: np.random.Generator) -> Any:
    import mixfold

    estimator = pick(
        rng,
        (
            None,
            mixfold.GaussianMixture(2, max_iter=5),
            mixfold.PPCA(1, max_iter=5),
            mixfold.Mixture("poisson", 2, max_iter=5),
            mixfold.FactorAnalysis(1, max_iter=5),
            mixfold.MixtureOfPPCA(2, max_iter=5),
        ),
    )
    return dict(
        estimator=estimator,
        priors=pick(rng, ("uniform", "empirical")),
        random_state=0,
        novelty=pick(rng, (None, 0.05), (4, 1)),
        n_jobs=1,
    )


# name: (what the rows should look like or None, whether it takes labels, settings)
ESTIMATORS = {
    "GaussianMixture": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, K),
            covariance_type=pick(r, COVARIANCES),
            init_params=pick(r, ("kmeans", "k-means++", "random", "random_from_data")),
            reg_covar=pick(r, (1e-6, 0.0, 1e-3), (6, 1, 1)),
            **_fitting(r),
        ),
    ),
    "BayesianGaussianMixture": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, K),
            covariance_type=pick(r, COVARIANCES),
            max_iter=8,
            random_state=0,
            weight_concentration_prior_type=pick(
                r, ("dirichlet_process", "dirichlet_distribution")
            ),
        ),
    ),
    "Mixture": (None, False, _mixture),
    "BernoulliMixture": ("bits", False, _bayes),
    "PoissonMixture": ("counts", False, _bayes),
    "MultinomialMixture": ("counts", False, _bayes),
    "CategoricalMixture": ("codes", False, _bayes),
    "KMeans": (
        None,
        False,
        lambda r: dict(
            n_clusters=pick(r, K),
            max_iter=8,
            random_state=0,
            init=pick(r, ("k-means++", "random", "k-means||")),
        ),
    ),
    "NestedMixture": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2)),
            n_subcomponents=pick(r, (1, 2)),
            max_iter=6,
            random_state=0,
            covariance_type=pick(r, COVARIANCES),
            refine=pick(r, (True, False)),
        ),
    ),
    "PPCA": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2, 3, None, 0.9, "bic", "mle")),
            center=pick(r, (True, True, False)),
            solver=pick(r, ("auto", "em", "covariance", "gram", "randomized")),
            **_fitting(r),
        ),
    ),
    "FactorAnalysis": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2, 3)),
            rotation=pick(r, (None, None, "varimax", "promax", "quartimax")),
            **_fitting(r),
        ),
    ),
    "MixtureOfPPCA": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2, 3)),
            n_factors=pick(r, (0, 1, 2)),
            tied=pick(r, ((), ("noise",))),
            **_fitting(r),
        ),
    ),
    "MixtureOfFactorAnalyzers": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2, 3)),
            n_factors=pick(r, (1, 2)),
            tied=pick(r, ((), ("noise",))),
            **_fitting(r),
        ),
    ),
    "GaussianPCP": (
        None,
        False,
        lambda r: dict(
            n_clusters=pick(r, K),
            n_components=pick(r, (1, 2)),
            inference=pick(r, ("vb", "em")),
            max_iter=8,
            update=pick(r, ("procrustes", "procrustes")),
            random_state=0,
        ),
    ),
    "SupervisedPPCA": (
        None,
        True,
        lambda r: dict(
            n_components=pick(r, (1, 2)),
            kernel=pick(r, (None, None, "rbf", "linear", "poly")),
            max_iter=8,
            random_state=0,
            solver=pick(r, ("auto", "auto", "em", "profile")),
            task=pick(r, ("auto", "auto", "classification", "regression")),
        ),
    ),
    "SupervisedMixtureOfPPCA": (
        None,
        True,
        lambda r: dict(n_components=pick(r, (1, 2)), n_factors=1, max_iter=8, random_state=0),
    ),
    "MixtureOfFactorModels": (
        None,
        True,
        lambda r: dict(
            n_components=pick(r, (1, 2)),
            n_factors=1,
            max_iter=8,
            random_state=0,
            classifier=pick(r, ("shared", "per_component")),
        ),
    ),
    "MixtureClassifier": (None, True, _classifier),
    "MLiT": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2)),
            n_dims=pick(r, (1, 2)),
            max_iter=6,
            random_state=0,
            method=pick(r, ("normalized", "constrained", "orthonormal")),
        ),
    ),
    "KernelPCA": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2, None)),
            landmarks=pick(r, (None, None, 5)),
            max_iter=10,
            scale=pick(r, ("scores", "latent", "white")),
            **_kernel(r),
        ),
    ),
    "KernelCCA": (None, True, lambda r: dict(n_components=pick(r, (1, 2)), **_kernel(r))),
    "MORP": (
        None,
        True,
        lambda r: dict(n_components=pick(r, (1, 2)), beta=pick(r, (0.5, 0.0, 1.0)), **_kernel(r)),
    ),
    "LatentDirichletAllocation": (
        "counts",
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2, 3)),
            max_iter=5,
            random_state=0,
            learning_method=pick(r, ("batch", "online")),
            init=pick(r, ("plsi", "random")),
        ),
    ),
    "PLSI": (
        "counts",
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2, 3)),
            max_iter=5,
            random_state=0,
            smoothing=pick(r, (0.0, 0.1)),
        ),
    ),
    "PCP": (
        "counts",
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2, 3)),
            n_clusters=pick(r, (1, 3, "documents")),
            max_iter=4,
            random_state=0,
            inference=pick(r, ("structured", "mean_field")),
        ),
    ),
    "MatrixFactorization": (
        None,
        True,
        lambda r: dict(
            n_components=pick(r, (1, 2, 4)),
            max_iter=5,
            random_state=0,
            link=pick(r, ("tanh", "identity", "saturating", "logistic")),
            nonneg_codebook=pick(r, (False, False, True)),
            nonneg_sources=pick(r, (False, False, True)),
        ),
    ),
    "DeepFactorNetwork": (
        None,
        True,
        lambda r: dict(
            hidden=pick(r, ((3,), (3, 2))),
            max_iter=4,
            max_epochs=2,
            random_state=0,
            fine_tune=pick(r, (None, "recognition", "decoder", "map")),
        ),
    ),
    "RBM": (
        "bits",
        True,
        lambda r: dict(
            n_components=pick(r, (1, 4)),
            max_epochs=2,
            random_state=0,
            visible=pick(r, ("bernoulli", "gaussian")),
            batch_size=pick(r, (1, 10, 100)),
        ),
    ),
    "DeepBeliefNetwork": (
        "bits",
        True,
        lambda r: dict(
            hidden=pick(r, ((4,), (4, 3))),
            max_epochs=2,
            fine_tune_epochs=2,
            chain_epochs=1,
            random_state=0,
            visible=pick(r, ("bernoulli", "gaussian")),
            fine_tune=pick(r, (None, "up-down", "discriminative", "both")),
        ),
    ),
    "MixtureSearch": (None, False, _search),
}
