"""scikit-learn's own checks of an estimator, for every public one, none skipped."""

from dataclasses import replace
from unittest import SkipTest

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.utils.estimator_checks import estimator_checks_generator

import mixfold
from mixfold import (
    GTM,
    ICA,
    MORP,
    PCP,
    PLSI,
    PPCA,
    RBM,
    BayesianGaussianMixture,
    BernoulliMixture,
    CategoricalMixture,
    DeepBeliefNetwork,
    DeepFactorNetwork,
    FactorAnalysis,
    GaussianMixture,
    GaussianPCP,
    KernelCCA,
    KernelPCA,
    KMeans,
    KSubspaces,
    LatentDensity,
    LatentDirichletAllocation,
    MatrixFactorization,
    Mixture,
    MixtureClassifier,
    MixtureClustering,
    MixtureOfFactorAnalyzers,
    MixtureOfFactorModels,
    MixtureOfPPCA,
    MixtureSearch,
    MLiT,
    MultinomialMixture,
    NestedMixture,
    PoissonMixture,
    SupervisedMixtureOfPPCA,
    SupervisedPPCA,
)
from tests.brief import PUBLIC

# These two ask of anything that takes sparse input and has predict_proba that it returns 2 or 4
# columns, as if it were a classifier: no mixture of one component can (a search may find one).
OF_CLASSIFIERS = {"check_estimator_sparse_array", "check_estimator_sparse_matrix"}

# A sampler gives each row to one component, so that a weight of three has no meaning, and visits
# all rows again and again: it says so where weights or a batch of a stream are given.
OF_SAMPLERS = {
    "check_fit_score_takes_y",
    "check_n_features_in_after_fitting",
    "check_sample_weights_list",
    "check_sample_weights_not_overwritten",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


# One of the classes of this check is called -1, which here is a row without a class.
SEMI_SUPERVISED = {"check_classifiers_classes"}

# Its rows are negative, which counts cannot be.
OF_COUNTS = {"check_clustering"}


class Moved:
    """A source whose entries were moved to where a family can have them, after all other checks."""

    def __init__(self, source, change):
        self._source, self._change = source, change

    def __getattr__(self, name):
        return getattr(self.__dict__["_source"], name)

    def blocks(self, max_rows=None):
        for block in self._source.blocks(max_rows):
            X = block.X.copy()
            if issparse(X):
                X.data = self._change(X.data)
            else:
                X = self._change(X)
            yield replace(block, X=X)


def counts(x):
    return np.floor(np.abs(x) * 2)


class Counted:
    """scikit-learn's checks fit real numbers, which counts, codes and answers are not."""

    def _open(self, X, **how):
        return Moved(super()._open(X, **how), self._change)

    @staticmethod
    def _change(x):
        return counts(x)


class CountedPoisson(Counted, PoissonMixture):
    pass


class CountedMultinomial(Counted, MultinomialMixture):
    pass


class CountedBernoulli(Counted, BernoulliMixture):
    @staticmethod
    def _change(x):
        return np.where(np.isnan(x), x, x > 0).astype(x.dtype)


class CountedCategories(Counted, CategoricalMixture):
    @staticmethod
    def _change(x):
        return counts(x) % 3


class SharesRBM(Counted, RBM):
    @staticmethod
    def _change(x):
        return np.where(np.isnan(x), x, 0.5 + 0.5 * np.tanh(x)).astype(x.dtype)


class SharesNetwork(Counted, DeepBeliefNetwork):
    _change = staticmethod(SharesRBM._change)


# Batches are drawn from the rows that are there: a row of weight two is learned from with twice the
# step, where two rows would be in different batches.
OF_BATCHES = {
    "check_sample_weight_equivalence_on_dense_data",
}

BRIEF = {"init_params": "k-means++", "max_iter": 12, "random_state": 0}
QUICK = {"init_params": "k-means++", "max_iter": 40, "random_state": 0}
SHORT = {"n_chains": 1, "n_draws": 8, "burn_in": 4, "random_state": 0}
EASY = GaussianMixture(init_params="random_from_data", tol=1e-4)
FLAT = MixtureOfPPCA(init_params="random_from_data", tol=1e-4)
ESTIMATORS = [
    (GaussianMixture(random_state=0), OF_CLASSIFIERS),
    (GaussianMixture(2, random_state=0), set()),
    (GaussianMixture(2, covariance_type="tied-diag", random_state=0), set()),
    (KMeans(3, random_state=0), set()),
    (PPCA(random_state=0), set()),
    (PPCA(1, solver="em", random_state=0), set()),
    (FactorAnalysis(random_state=0), set()),
    (FactorAnalysis(rotation="oblimin"), set()),
    (MixtureOfPPCA(random_state=0), OF_CLASSIFIERS),
    (MixtureOfPPCA(2, random_state=0), set()),
    # 15 rows in 15 columns: extrapolations amplify rounding, also that of another order of rows
    (MixtureOfFactorAnalyzers(2, acceleration=None, random_state=0), set()),
    (GTM(n_points=5, n_basis=3, random_state=0), set()),
    (KSubspaces(2, 0, random_state=0), set()),
    (GaussianPCP(2, 1, init_params="k-means++", random_state=0), set()),
    (
        GaussianPCP(2, 1, inference="em", update="regress", acceleration=None, **QUICK),
        set(),
    ),
    (MixtureOfFactorModels(1, 2, max_iter=20, random_state=0), SEMI_SUPERVISED),
    (
        MixtureOfFactorModels(2, 2, classifier="per_component", max_iter=4, random_state=0),
        SEMI_SUPERVISED,
    ),
    (
        MixtureOfFactorModels(1, 2, discriminant="curved", max_iter=5, random_state=0),
        SEMI_SUPERVISED,
    ),
    (MixtureOfFactorModels(1, 2, tradeoff=5.0, max_iter=10, random_state=0), SEMI_SUPERVISED),
    (SupervisedPPCA(random_state=0), set()),
    (SupervisedPPCA(task="classification", random_state=0), SEMI_SUPERVISED),
    (SupervisedPPCA(task="regression", solver="em"), set()),
    # as many factors as outputs would explain the few rows of the checks without noise
    (SupervisedPPCA(1, kernel="rbf", random_state=0), set()),
    (SupervisedPPCA(kernel="rbf", task="classification", output_noise=0.1), SEMI_SUPERVISED),
    (
        SupervisedPPCA(kernel="precomputed", task="regression", solver="em", output_noise=0.1),
        set(),
    ),
    (SupervisedMixtureOfPPCA(2, task="classification", **BRIEF), SEMI_SUPERVISED),
    (SupervisedMixtureOfPPCA(2, task="regression", **BRIEF), set()),
    (KernelPCA(random_state=0), set()),
    (KernelPCA(kernel="linear"), set()),
    (KernelPCA(landmarks=200, random_state=0), set()),
    (KernelPCA(kernel="precomputed"), set()),
    (KernelPCA(solver="chebyshev", random_state=0), set()),
    (MORP(random_state=0), set()),
    (MORP(task="classification"), SEMI_SUPERVISED),
    (MORP(task="regression", kernel="rbf", output_kernel="rbf"), set()),
    (MORP(1, beta="cv", cv=3, random_state=0), set()),
    (KernelCCA(), set()),
    (KernelCCA(1, kernel="rbf", output_kernel="rbf"), set()),
    (MLiT(), set()),
    (MLiT(2, 1, "orthonormal", random_state=0), set()),
    (MLiT(1, 1, "constrained"), set()),
    (MixtureClassifier(), set()),
    (MixtureClassifier(MLiT(1, 1, max_iter=10)), set()),
    (MixtureClassifier(MixtureOfPPCA(1, 1)), set()),
    (NestedMixture(2, init_params="k-means++", random_state=0), set()),
    (BayesianGaussianMixture(random_state=0), OF_CLASSIFIERS),
    (BayesianGaussianMixture(2, init_params="k-means++", random_state=0), set()),
    (
        BayesianGaussianMixture(
            2, covariance_type="tied-diag", merge_split=True, init_params="random", random_state=0
        ),
        set(),
    ),
    (Mixture("full", 2, init_params="k-means++", random_state=0), set()),
    (Mixture("diag", 2, inference="vb", random_state=0), set()),
    (Mixture("diag", 2, inference="gibbs", **SHORT), OF_SAMPLERS),
    (PLSI(2, random_state=0), set()),
    (LatentDirichletAllocation(2, random_state=0), set()),
    (LatentDirichletAllocation(2, learning_method="online", random_state=0), set()),
    (PCP(2, 3, max_iter=30, random_state=0), OF_CLASSIFIERS | OF_COUNTS),
    (PCP(2, 2, alpha=20.0, max_iter=30, random_state=0), OF_COUNTS),
    (PCP(2, 2, inference="mean_field", max_iter=30, random_state=0), OF_COUNTS),
    (DeepFactorNetwork((3, 2), max_iter=10, random_state=0), SEMI_SUPERVISED),
    (SharesRBM(3, max_epochs=2, random_state=0), OF_BATCHES),
    (RBM(3, visible="gaussian", max_epochs=2, random_state=0), OF_BATCHES),
    (SharesNetwork((3, 2), max_epochs=2, fine_tune_epochs=2, random_state=0), OF_BATCHES),
    (
        DeepBeliefNetwork(
            (3, 2), visible="gaussian", max_epochs=1, fine_tune_epochs=1, random_state=0
        ),
        OF_BATCHES,
    ),
    (MatrixFactorization(2, gamma=0.1, max_iter=40, random_state=0), set()),
    (
        MatrixFactorization(2, supervised=True, gamma=0.1, max_iter=40, random_state=0),
        SEMI_SUPERVISED,
    ),
    (MatrixFactorization(2, link="logistic", alpha=0.1, supervised=False), set()),
    (MatrixFactorization.module(4, n_components=2, random_state=0), SEMI_SUPERVISED),
    (
        MatrixFactorization.module(
            1, n_components=2, solver="multiplicative", supervised=False, max_iter=30
        ),
        set(),
    ),
    (
        MatrixFactorization(
            2,
            loss=1,
            link="identity",
            nonneg_codebook=True,
            nonneg_sources=True,
            supervised=False,
            max_iter=30,
        ),
        set(),
    ),
    (ICA(random_state=0), set()),
    (LatentDensity(random_state=0), OF_CLASSIFIERS),
    (MixtureClustering(estimator=EASY, max_components=3, random_state=0), OF_CLASSIFIERS),
    (MixtureClustering(2, EASY, max_components=3, random_state=0), set()),
    (MixtureSearch(EASY, n_components=(1, 2), random_state=0), set()),
    (MixtureSearch(EASY, n_components=2, criterion="held-out", cv=2, random_state=0), set()),
    (MixtureSearch(FLAT, n_components=2, random_state=0), set()),
    (CountedPoisson(2, **QUICK), set()),
    (CountedMultinomial(2, **QUICK), set()),
    (CountedBernoulli(2, **QUICK), set()),
    (CountedCategories(2, family_options={"n_categories": 3}, **QUICK), set()),
]


def _checks():
    """Each check of each estimator. The first settings of a class are checked on every change."""
    seen = set()
    for estimator, impossible in ESTIMATORS:
        kind = type(estimator)
        marks = [pytest.mark.slow] if kind in seen else []
        seen.add(kind)
        for checked, check in estimator_checks_generator(estimator, mark=None):
            name = check.func.__name__
            more = "".join(f" {key}={value}" for key, value in check.keywords.items())
            identity = f"{' '.join(repr(estimator).split())} {name}{more}"
            yield pytest.param(checked, check, name in impossible, id=identity, marks=marks)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check", "impossible"), list(_checks()))
def test_scikit_learn_check(estimator, check, impossible):
    if impossible:
        with pytest.raises(Exception):  # noqa: B017
            check(estimator)
        return
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"scikit-learn skips this check: {reason}")


def test_every_public_estimator_is_checked():
    checked = {kind for estimator, _ in ESTIMATORS for kind in type(estimator).__mro__}
    missing = [name for name in PUBLIC if getattr(mixfold, name) not in checked]
    assert missing == []


def test_impossible_checks_exist():
    """A check that scikit-learn renames must not be skipped by its old name."""
    for estimator, impossible in ESTIMATORS:
        names = {c.func.__name__ for _, c in estimator_checks_generator(estimator, mark=None)}
        assert len(names) > 40
        assert impossible <= names


@pytest.mark.parametrize(
    "estimator", [CountedPoisson(2), CountedBernoulli(2)], ids=["counts", "yes"]
)
def test_entries_outside_the_support_are_refused_by_the_estimator_itself(estimator):
    kind = type(estimator).__mro__[2]
    X = np.array([[0.0, 1.0], [1.0, 0.5], [1.0, 0.0]])
    estimator.fit(X)
    with pytest.raises(ValueError, match=r"column 1 must hold .*; row 1 has 0\.5"):
        kind(2).fit(X)
