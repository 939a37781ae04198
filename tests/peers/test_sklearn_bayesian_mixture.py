"""scikit-learn's own tests of BayesianGaussianMixture, run against ours by substitution.

The module is read from the installed wheel and executed anew, then our class takes the place of
theirs. What is left out is listed with its reason, and a test below sees to it that the list is
neither too long nor out of date.
"""

import importlib.util

import pytest

from mixfold import BayesianGaussianMixture

PRIVATE = "tests private functions or methods of scikit-learn, not BayesianGaussianMixture"
LEFT_OUT = {
    "test_log_dirichlet_norm": PRIVATE,
    "test_log_wishart_norm": PRIVATE,
    "test_compare_covar_type": PRIVATE,
}


def _substituted():
    spec = importlib.util.find_spec("sklearn.mixture.tests.test_bayesian_mixture")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.BayesianGaussianMixture = BayesianGaussianMixture
    return module


_module = _substituted()
_tests = {name: value for name, value in vars(_module).items() if name.startswith("test_")}
globals().update({name: test for name, test in _tests.items() if name not in LEFT_OUT})

pytestmark = [
    pytest.mark.filterwarnings("ignore::mixfold.estimators.shell.base.DegenerateWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def test_what_is_left_out_exists():
    assert set(LEFT_OUT) <= set(_tests)
    assert len(_tests) - len(LEFT_OUT) >= 10
