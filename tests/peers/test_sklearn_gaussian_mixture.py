"""scikit-learn's own tests of GaussianMixture, run against ours by substitution.

The module is read from the installed wheel and executed anew, then our class takes the place of
theirs. What is left out is listed with its reason, and a test below sees to it that the list is
neither too long nor out of date.
"""

import importlib.util

import pytest

from mixfold import GaussianMixture

PRIVATE = "tests private functions or methods of scikit-learn, not GaussianMixture"
ARRAY_API = "tests arrays on other devices through scikit-learn's array-API dispatch; ours is numpy"
LEFT_OUT = {
    "test_suffstat_sk_full": PRIVATE,
    "test_suffstat_sk_tied": PRIVATE,
    "test_suffstat_sk_diag": PRIVATE,
    "test_gaussian_suffstat_sk_spherical": PRIVATE,
    "test_compute_log_det_cholesky": PRIVATE,
    "test_gaussian_mixture_log_probabilities": PRIVATE,
    "test_gaussian_mixture_precisions_init": PRIVATE,
    "test_gaussian_mixture_all_init_does_not_estimate_gaussian_parameters": PRIVATE,
    "test_check_weights": (
        "asserts a message in which the smallest weight is called the largest; ours names them "
        "right (tests/estimators/test_gaussian_mixture.py)"
    ),
    "test_regularisation": (
        "asserts that duplicated rows end a fit with an error; ours floors the covariance, says so "
        "in events_ and goes on (tests/estimators/test_users.py)"
    ),
    "test_gaussian_mixture_array_api_compliance": ARRAY_API,
    "test_gaussian_mixture_raises_where_array_api_not_implemented": ARRAY_API,
}


def _substituted():
    spec = importlib.util.find_spec("sklearn.mixture.tests.test_gaussian_mixture")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.GaussianMixture = GaussianMixture
    return module


_module = _substituted()
_tests = {name: value for name, value in vars(_module).items() if name.startswith("test_")}
globals().update({name: test for name, test in _tests.items() if name not in LEFT_OUT})
test_init = pytest.mark.slow(_tests["test_init"])

pytestmark = [
    pytest.mark.filterwarnings("ignore::mixfold.estimators.shell.base.DegenerateWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def test_what_is_left_out_exists():
    assert set(LEFT_OUT) <= set(_tests)
    assert len(_tests) - len(LEFT_OUT) >= 25
