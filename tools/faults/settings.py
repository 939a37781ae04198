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
    "gamma-shape",
    "negative-binomial",
    "beta",
    "von-mises",
    "dirichlet",
    "wishart",
    "known",
    "known-mean",
    "auto",  # by the kinds of the columns
    "columns",  # stands for a family of its own for each column, see `fit_to_columns`
)
# what rows of a family look like (of others: anything)
ROWS_OF_FAMILY = {
    "bernoulli": "bits",
    "poisson": "counts",
    "negative-binomial": "counts",
    "multinomial": "counts",
    "binomial": "codes",
    "categorical": "codes",
    "exponential": "times",
    "gamma": "times",
    "gamma-shape": "times",
    "beta": "uniform",
    "von-mises": "times",
    "dirichlet": "shares",
    "wishart": "matrices",
}
WITHOUT_PRIORS = (
    "gamma-shape",
    "negative-binomial",
    "beta",
    "von-mises",
    "dirichlet",
    "wishart",
    "auto",
    "columns",
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
    if family in WITHOUT_PRIORS and rng.random() < 0.9:  # else refused
        settings.update(inference="em", weights=pick(rng, ("auto", "ml", "dirichlet")))
    options = {"binomial": {"trials": 9}, "gamma": {"shape": 2.0}}.get(family)
    if rng.random() < 0.1:  # fixed
        settings["weights"] = rng.dirichlet(np.full(settings["n_components"], 2.0)).tolist()
    return {**settings, "family_options": options}


def fit_to_columns(rng: np.random.Generator, settings: Any, n_columns: int) -> None:
    """Give every column a family, if the settings ask for families by columns."""
    if settings.get("family") != "columns":
        return
    names = ("full", "diag", "bernoulli", "poisson", "categorical", "gamma-shape", "beta")
    family: dict[str, list[int]] = {}
    for column in range(n_columns):
        family.setdefault(pick(rng, names, (3, 3, 1, 1, 1, 1, 1)), []).append(column)
    settings["family"] = family


def _density_of_sources(rng: np.random.Generator) -> Any:
    import mixfold

    return dict(
        reducer=pick(
            rng,
            (
                mixfold.MatrixFactorization(2, max_iter=5),
                mixfold.MatrixFactorization(2, max_iter=5, nonneg_sources=True),
                mixfold.PPCA(1),
                mixfold.ICA(2, max_iter=5),
                mixfold.KernelPCA(2),
            ),
        ),
        density=pick(
            rng,
            (
                None,
                mixfold.GaussianMixture(2, max_iter=5),
                mixfold.Mixture("exponential", 2, max_iter=5),
                mixfold.PPCA(1),
            ),
        ),
    )


def _clustered(rng: np.random.Generator) -> Any:
    import mixfold

    return pick(
        rng,
        (
            None,
            None,
            mixfold.GaussianMixture(3, max_iter=5),
            mixfold.Mixture("poisson", 2, max_iter=5),
            mixfold.MixtureOfPPCA(2, max_iter=5),
            mixfold.KMeans(2),
        ),
    )


def usual_rows(rng: np.random.Generator, name: str, settings: Any) -> str | None:
    """What the rows of an estimator with these settings should look like, None for anything."""
    if name == "Mixture" and rng.random() < 0.7:
        return ROWS_OF_FAMILY.get(settings["family"])
    return ESTIMATORS[name][0]


def usual_container(rng: np.random.Generator, settings: Any) -> str:
    """What holds the rows: a table of columns of all kinds for families that are looked up."""
    return "columns of all kinds" if settings.get("family") == "auto" else "array"


def _search(rng: np.random.Generator) -> Any:
    import mixfold

    estimator = pick(
        rng,
        (
            mixfold.GaussianMixture(max_iter=5),
            mixfold.PPCA(max_iter=5),
            mixfold.Mixture("poisson", max_iter=5),
            mixfold.Mixture("negative-binomial", max_iter=5),
            mixfold.MixtureOfPPCA(max_iter=5),
            None,
            mixfold.KMeans(max_iter=5),
            mixfold.SupervisedPPCA(max_iter=5),
            mixfold.MixtureOfFactorModels(max_iter=5),
        ),
    )
    brief = estimator is not None  # the search of all defaults makes 36 fits
    return dict(
        estimator=estimator,
        n_components=pick(rng, (range(1, 3), [1, 2], 2, None), (4, 4, 4, 4 if brief else 0.5)),
        random_state=0,
        criterion=pick(
            rng,
            ("bic", "aic", "icl", "bic", "held-out", "bound", "log-loss", "squared-error", "gap"),
        ),
        n_references=2,
        attribute_weights=pick(rng, (None, None, "variance")),
        n_jobs=1,
    )


def _classifier(rng: np.random.Generator) -> Any:
    from sklearn.mixture import GaussianMixture as GaussianMixtureOfSklearn
    from sklearn.neighbors import KernelDensity

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
            mixfold.CategoricalMixture(2, max_iter=5),
            mixfold.BernoulliMixture(2, max_iter=5),
            mixfold.Mixture("negative-binomial", 2, max_iter=5),
            GaussianMixtureOfSklearn(2, max_iter=5),
            KernelDensity(),
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
            init_params=pick(r, ("kmeans", "k-means++", "random", "random_from_data", "randconst")),
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
            n_components=pick(r, (1, 2, 3, None, 0.9, "bic", "mle", "ard")),
            center=pick(r, (True, True, False)),
            solver=pick(r, ("auto", "em", "covariance", "gram", "randomized")),
            loadings_prior=pick(r, (None, None, None, "ard", 2.0)),
            noise_prior=pick(r, (None, None, (3, 0.1))),
            **_fitting(r),
        ),
    ),
    "FactorAnalysis": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2, 3, "ard")),
            rotation=pick(r, (None, None, "varimax", "promax", "quartimax")),
            loadings_prior=pick(r, (None, None, None, "ard", 2.0)),
            noise_prior=pick(r, (None, None, (3, 0.1))),
            **_fitting(r),
        ),
    ),
    "MixtureOfPPCA": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2, 3)),
            **pick(
                r, ({}, {}, {"inference": "vb"}, {"inference": "vb", "weights": "stick-breaking"})
            ),
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
            **pick(r, ({}, {}, {"inference": "vb", "alpha": "learn"})),
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
            update=pick(r, ("procrustes", "regress")),
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
            loadings_prior=pick(r, (None, None, "ard", 2.0)),
            task=pick(r, ("auto", "auto", "classification", "regression", "ordered", "count")),
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
            loadings_prior=pick(r, (None, None, "ard", 2.0)),
            discriminant=pick(r, ("straight", "straight", "curved")),
        ),
    ),
    "MixtureClassifier": (None, True, _classifier),
    "KSubspaces": (
        None,
        False,
        lambda r: dict(
            n_clusters=pick(r, (1, 2, 3)),
            n_components=pick(r, (0, 1, 2)),
            max_iter=10,
            random_state=0,
        ),
    ),
    "GTM": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2)),
            n_points=pick(r, (3, 5, 8)),
            n_basis=pick(r, (2, 3)),
            width=pick(r, (0.5, 1.0, 2.0)),
            max_iter=6,
            random_state=0,
        ),
    ),
    "MLiT": (
        None,
        False,
        lambda r: dict(
            n_components=pick(r, (1, 2)),
            n_dims=pick(r, (1, 2)),
            max_iter=6,
            random_state=0,
            method=pick(r, ("normalized", "constrained", "orthonormal")),
            n_init=pick(r, (1, 2)),
        ),
    ),
    "KernelPCA": (
        None,
        False,
        lambda r: dict(
            landmarks=pick(r, (None, None, 5)),
            max_iter=10,
            scale=pick(r, ("scores", "latent", "white")),
            missing=pick(r, ("refuse", "refuse", "expected")),
            **{
                **_kernel(r),
                **pick(
                    r,
                    (
                        {"n_components": pick(r, (1, 2, 0.9, None))},
                        {"n_components": pick(r, (1, 2, 0.9, None))},
                        {"n_components": pick(r, (1, 2, 0.9, None))},
                        {"n_components": pick(r, (1, 2, 0.9, None))},
                        {"n_components": "learn", "gamma": "learn", "kernel": "rbf"},
                        {"n_components": "learn"},
                    ),
                ),
            },
        ),
    ),
    "KernelCCA": (None, True, lambda r: dict(n_components=pick(r, (1, 2)), **_kernel(r))),
    "MORP": (
        None,
        True,
        lambda r: dict(
            n_components=pick(r, (1, 2)),
            beta=pick(r, (0.5, 0.0, 1.0)),
            loss=pick(r, ("squared", "squared", "logistic", "hinge", "rank")),
            max_iter=20,
            **_kernel(r),
        ),
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
            init_params=pick(r, ("kmeans", "random")),
            **pick(
                r,
                (
                    {"inference": "mean_field"},
                    {"document_concentration": None},
                    {"document_concentration": 3.0},
                    {},
                ),
            ),
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
            loss=pick(r, ("squared", "squared", "kullback-leibler", 1.5)),
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
    "ICA": (
        None,
        True,
        lambda r: dict(
            n_components=pick(r, (None, 1, 2)),
            sources=pick(r, ("laplace", "logistic", "cosh")),
            max_iter=20,
            random_state=0,
        ),
    ),
    "LatentDensity": (
        None,
        True,
        lambda r: dict(
            bound=pick(r, (True, False)),
            random_state=0,
            **pick(r, ({}, _density_of_sources(r))),
        ),
    ),
    "MixtureClustering": (
        None,
        False,
        lambda r: dict(
            n_clusters=pick(r, ("auto", 1, 2)),
            max_components=pick(r, (2, 3)),
            estimator=_clustered(r),
            random_state=0,
        ),
    ),
    "MixtureSearch": (None, True, _search),
}


# Parameters that the rows above leave at their defaults: at times some of them are drawn, too. A
# key is a parameter, or "Estimator.parameter" where an estimator has values of its own.
RARER = {
    "acceleration": ("auto", None, "squarem"),
    "allow_degenerate": (True,),
    "alpha": (1e-3, 10.0),
    "balance": (True, False),
    "batch_size": (1, 5, 1000),
    "beta": (0.1,),
    "cache_size": (0, 1),
    "center": (True, False),
    "checkpoint": ("fit.checkpoint",),
    "classify_from": ("data", "latent"),
    "cluster_topic_prior": (0.1, "learn"),
    "codebook_norm": (1.0,),
    "coding": ("contrast", "one-of-c"),
    "coef0": (0.0, 1.0, 5.0),
    "columns_per_iter": (1, 3),
    "covariance_prior": (1.0,),
    "cv": (2, 3),
    "curve_width": (0.1, 2.0),
    "cv_grid": ({"beta": [0.1, 0.9]},),
    "degree": (1, 2, 5),
    "degrees_of_freedom_prior": (5.0, 90.0),
    "doc_smoothing": (0.1,),
    "doc_topic_prior": (0.1, 1.0),
    "family_options": ({},),
    "fine_tune_rate": (0.01, 1.0),
    "fit_bias": (True, False),
    "forgetting": (0.5, 0.99),
    "form": ("max", "inverse"),
    "gamma": (1e-3, 1.0, "scale"),
    "gauge": (None, "codebook"),
    "init": ("random",),
    "init_params": ("kmeans", "k-means++", "random_from_data"),
    "input_noise": (0.1,),
    "iterate": (0, 1),
    "l2": (0.0, 0.1),
    "label_solver": ("em", "gradient"),
    "landmarks": (2, 5),
    "layer_options": ({"max_iter": 2},),
    "learn_concentration": (True,),
    "learn_prior": (True,),
    "learning_decay": (0.6, 1.0),
    "learning_offset": (0.0, 1.0),
    "learning_rate": (1e-3, 1.0),
    "link": ("tanh", "identity", "saturating", "logistic"),
    "mean_precision_prior": (0.01, 1.0),
    "mean_prior": ([0.0, 0.0, 0.0],),
    "means_init": ([[0.0, 0.0], [1.0, 1.0]],),
    "merge_split": (True, False),
    "merge_starts": (True,),
    "momentum": (0.0, 0.5),
    "n_effective": (2.0, 10.0, 1e6),
    "n_init": (2,),
    "n_jobs": (1, 2),
    "n_layers": (1, 3),
    "min_probability": (0.0, 0.5, 1.0),
    "n_steps": (1, 3),
    "noise_prior": ((3, 0.1),),
    "noise": ("isotropic", "diagonal"),
    "noise_floor": (0.0, 1e-12, 0.1),
    "noise_variance": (0.1,),
    "nonneg_classifier": (True,),
    "novelty_label": (-1, "new"),
    "output_gamma": ("scale", 1.0),
    "output_kernel": ("linear", "rbf", "poly"),
    "output_noise": ("shared", "each", 0.1),
    "output_weight": (0.1, 10.0, "auto"),
    "paper_protocol": (True,),
    "param_grid": ({"n_components": [1, 2]},),
    "patience": (1,),
    "persistent": (True,),
    "precisions_init": ([[1.0, 1.0], [2.0, 2.0]],),
    "prior": (None,),
    "reencode": (True, False),
    "reg_covar": (0.0, 1e-3),
    "regularization": (0.0, 0.5),
    "ridge": (0.0, 0.1),
    "rotation": ("oblimin",),
    "scale": (0.5,),
    "settings": ({},),
    "shift": (1, 3),
    "sigma2": (0.1, 1.0),
    "smoothing": (0.5,),
    "solver": ("auto",),
    "split_starts": (False,),
    "standardize": (True, False),
    "supervised": (True, False),
    "sweeps": (1, 3),
    "task": ("auto", "classification", "multilabel", "regression", "ordered", "count"),
    "tempering": (0.7, 1.0),
    "test": (3,),
    "thin": (2,),
    "threshold": (0.0, 0.5),
    "tied": (("loadings",), ("loadings", "noise")),
    "time_budget": (1e-3, 60.0),
    "tol": (0.0, 1e-8, 1.0),
    "topic_word_prior": (0.1, "learn"),
    "total_samples": (10.0, 1e6),
    "total_weight": (10.0, 1e6),
    "tradeoff": (0.0, 0.1, 10.0),
    "validation_fraction": (None, 0.2),
    "verbose": (1, 2),
    "verbose_interval": (1,),
    "visible": ("bernoulli", "gaussian"),
    "warm_start": (True, True, True),
    "weight_concentration_prior": (1e-3, 10.0),
    "whiten": (True, False),
    "weights_init": ([0.5, 0.5], [0.3, 0.7]),
    "MixtureClassifier.decision": ("reconstruction",),
    "KernelPCA.gamma": ("learn", 1e-3, "scale"),
    "DeepFactorNetwork.gamma": (0.1,),
    "DeepFactorNetwork.solver": ("auto", "lbfgs", "adam"),
    "DeepFactorNetwork.supervised": ("top", "each", False),
    "DeepFactorNetwork.hidden": ((3, 2, 2),),
    "FactorAnalysis.scale": ("latent", "scores", "white"),
    "KernelCCA.solver": ("auto", "primal", "dual"),
    "KernelPCA.scale": ("latent", "scores", "white"),
    "KernelPCA.solver": ("auto", "krylov", "chebyshev", "dense", "em", "primal"),
    "MORP.beta": ("cv", [0.5, 0.5]),
    "MORP.task": ("auto", "classification", "multilabel", "regression"),
    "MORP.tol": (0.0, 1e-3),
    "MORP.solver": ("auto", "primal", "dual"),
    "MatrixFactorization.gamma": (0.1,),
    "MatrixFactorization.init": ("auto", "pca", "nndsvd", "random"),
    "MatrixFactorization.solver": ("proximal", "gradient", "multiplicative"),
    "MatrixFactorization.supervised": (True, False, "after"),
    # joblib loses the traceback, by which an error on purpose is told from an accident
    "MixtureClassifier.n_jobs": (1,),
    "MixtureSearch.n_jobs": (1,),
    "MixtureClustering.n_jobs": (1,),
    "MLiT.norm": ("spectral", "nuclear", "l1", "linf", "entrywise"),
    "MLiT.init": ("largest", "smallest"),
    "MixtureOfFactorAnalyzers.scale": ("latent", "scores", "white"),
    "MixtureOfFactorAnalyzers.weights": ("free", "dirichlet", "stick-breaking"),
    "MixtureOfFactorAnalyzers.init_params": ("kmeans", "subspaces", "k-means++"),
    "MixtureOfFactorModels.init_params": ("balanced", "kmeans", "thesis"),
    "MixtureOfPPCA.scale": ("latent", "scores", "white"),
    "PPCA.scale": ("latent", "scores", "white"),
    "MixtureOfPPCA.init_params": ("kmeans", "subspaces", "k-means++", "random_from_data"),
    "SupervisedMixtureOfPPCA.init_params": ("kmeans", "subspaces", "k-means++"),
}
# what is not drawn, and why
NOT_DRAWN = {
    "executor": "other executors need a cluster, which `cluster` starts",
    "random_state": "a case is a function of its seed",
}


def draw_settings(rng: np.random.Generator, name: str, parameters: Any) -> Any:
    """Brief settings of an estimator: those of its row, and at times some of the rarer ones."""
    settings = ESTIMATORS[name][2](rng)
    rarer = [p for p in sorted(parameters) if f"{name}.{p}" in RARER or p in RARER]
    if rarer and rng.random() < 0.6:
        chosen = rng.choice(rarer, min(len(rarer), pick(rng, (1, 2, 4))), replace=False)
        for key in chosen.tolist():
            settings[key] = pick(rng, RARER.get(f"{name}.{key}", RARER.get(key)))
    if "warm_start" in parameters and rng.random() < 0.1:
        settings["warm_start"] = True
    return settings
