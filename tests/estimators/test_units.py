"""Where units decide, columns that differ by orders of magnitude are told of; elsewhere not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from mixfold import (
    GTM,
    ICA,
    PPCA,
    BayesianGaussianMixture,
    FactorAnalysis,
    GaussianMixture,
    KernelPCA,
    KMeans,
    KSubspaces,
    Mixture,
    MixtureOfPPCA,
    MixtureSearch,
    NestedMixture,
)
from mixfold.estimators.shell.units import UnitsWarning, describe_units


def factors():
    """Three factors in eight columns."""
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(3, 8))
    loadings /= np.linalg.norm(loadings, axis=0)  # the same share of noise in all columns
    return rng.normal(size=(400, 3)) @ loadings + 0.3 * rng.normal(size=(400, 8))


ODD = factors() * np.array([1000.0, 1, 1, 300, 1, 0.01, 1, 1])

MODELS = [
    PPCA("bic"),
    PPCA("mle"),
    PPCA(0.9),
    Mixture("spherical", 2, random_state=0),
    Mixture("spherical", 2, inference="vb", random_state=0),
    BayesianGaussianMixture(2, covariance_type="spherical", random_state=0, max_iter=500),
    NestedMixture(2, covariance_type="spherical", random_state=0),
    KMeans(2, random_state=0),
    MixtureOfPPCA(2, 1, random_state=0, max_iter=200, tol=1e-3),
    GaussianMixture(2, covariance_type="spherical", random_state=0),
    GaussianMixture(2, covariance_type="tied-spherical", random_state=0),
    PPCA("ard"),
    MixtureOfPPCA(2, 1, inference="vb", random_state=0),
    GTM(2, n_points=4, n_basis=2, random_state=0),
    KSubspaces(2, 1, random_state=0),
    ICA(2, random_state=0),
    KernelPCA(2),
]


@pytest.mark.filterwarnings("ignore:sources 0, 1 have no heavier tails")  # the factors are normal
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_they_say_so_and_the_remedy_helps(model):
    with pytest.warns(UserWarning, match=r"differ by orders of magnitude \(column 0 has .*Scaler"):
        model.fit(ODD)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnitsWarning)
        model.fit(StandardScaler().fit_transform(ODD))


def test_the_number_of_axes_is_found_again_after_the_remedy():
    with pytest.warns(UserWarning, match="n_components='bic'"):
        odd = PPCA("bic").fit(ODD).n_components_
    assert PPCA("bic").fit(factors()).n_components_ == 3
    assert odd != 3
    assert PPCA("bic").fit(StandardScaler().fit_transform(ODD)).n_components_ == 3


@pytest.mark.filterwarnings("ignore:sources .* have no heavier tails")
def test_models_that_units_cannot_change_say_nothing():
    for model in (
        GaussianMixture(2, random_state=0), PPCA(2), FactorAnalysis(2), ICA(random_state=0),
        KernelPCA(2, kernel="cosine"),
    ):  # fmt: skip
        model.fit(ODD)


def test_a_search_is_not_stopped_by_it():
    search = MixtureSearch(
        GaussianMixture(covariance_type="spherical"), n_components=(1, 2), random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The .* groups describe how the columns")
        warnings.filterwarnings("ignore", message="The standard deviations of the columns differ")
        search.fit(ODD)
    assert any("differ by orders of magnitude" in note for note in search.notes_)
    assert not any(search.results_["error"])


def test_what_is_looked_at():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 3)) * [1, 1, 200]
    X[3, 0] = np.nan
    assert describe_units(X, np.array(["a", "b", "c"])).count("'c' has")
    assert describe_units(X[:, :2], None) is None
    assert describe_units(np.column_stack([X[:, 0], np.ones(50)]), None) is None
    assert describe_units(sparse.csr_array(X), None) is None
    many = rng.normal(size=(50, 40))
    many[:, 0] *= 1e-3  # a pixel at the edge
    assert describe_units(many, None) is None
