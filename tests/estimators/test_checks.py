"""scikit-learn's own checks of an estimator, for every public one, none skipped."""

from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from mixfold import (
    PPCA,
    FactorAnalysis,
    GaussianMixture,
    MixtureOfFactorAnalyzers,
    MixtureOfPPCA,
)

# These two ask of anything that takes sparse input and has predict_proba that it returns 2 or 4
# columns, as if it were a classifier: no mixture of one component can.
OF_CLASSIFIERS = {"check_estimator_sparse_array", "check_estimator_sparse_matrix"}

ESTIMATORS = [
    (GaussianMixture(random_state=0), OF_CLASSIFIERS),
    (GaussianMixture(2, random_state=0), set()),
    (GaussianMixture(2, covariance_type="tied-diag", random_state=0), set()),
    (PPCA(random_state=0), set()),
    (PPCA(1, solver="em", random_state=0), set()),
    (FactorAnalysis(random_state=0), set()),
    (FactorAnalysis(rotation="oblimin"), set()),
    (MixtureOfPPCA(random_state=0), OF_CLASSIFIERS),
    (MixtureOfPPCA(2, random_state=0), set()),
    (MixtureOfFactorAnalyzers(2, random_state=0), set()),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "impossible"), ESTIMATORS, ids=[" ".join(repr(e).split()) for e, _ in ESTIMATORS]
)
def test_scikit_learn_checks(estimator, impossible):
    failed, skipped, count = {}, {}, 0
    for checked, check in estimator_checks_generator(estimator, mark=None):
        name = check.func.__name__
        count += 1
        try:
            check(checked)
        except SkipTest as reason:
            skipped[name] = reason
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    assert count > 40
    assert not skipped, skipped
    assert failed.keys() == impossible, failed
