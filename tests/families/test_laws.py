"""Every law for every Gaussian family, with and without missing entries, in both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.families import GAUSSIAN, GaussianFamily
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing import Case, laws
from mixfold.testing.tables import clustered_table, typical_components

K, D, N = 3, 3, 140
# finite differences of a float32 objective are rounding
IN_DOUBLE = ("gradient",)


def _case(family: GaussianFamily, missing: float, dtype: Any) -> Case:
    X = clustered_table(N, D, K, missing=missing, dtype=dtype)
    rng = np.random.default_rng(5)
    y = np.where(rng.random(N) < 0.1, 1, -1)  # the other components start at random
    rtol = 1e-10 if dtype is np.float64 else 3e-5
    return Case(Mixture(K, family), X, rng.uniform(0.5, 2, N), y, rtol=rtol)


@pytest.fixture(params=[0.0, 0.15], ids=["complete", "with NaN"])
def missing(request: pytest.FixtureRequest) -> float:
    return float(request.param)


@pytest.fixture(params=[np.float64, np.float32], ids=["double", "single"])
def case(request: pytest.FixtureRequest, family: GaussianFamily, missing: float) -> Case:
    return _case(family, missing, request.param)


@pytest.fixture
def double(family: GaussianFamily, missing: float) -> Case:
    return _case(family, missing, np.float64)


@pytest.mark.parametrize("law", [name for name in laws.MODEL_LAWS if name not in IN_DOUBLE])
def test_law_of_models(law: str, case: Case) -> None:
    laws.MODEL_LAWS[law](case)


@pytest.mark.parametrize("law", IN_DOUBLE)
def test_law_of_models_in_double_precision(law: str, double: Case) -> None:
    laws.MODEL_LAWS[law](double)


def test_labels_clamp(case: Case) -> None:
    laws.labels_clamp(case, K)


def _units(family: GaussianFamily) -> np.ndarray:
    """Scales that the family can follow: spheres stay spheres."""
    per_column = D in family.scatter_shape(-1, D)
    return np.array([1000.0, 0.01, 3.0]) if per_column else np.full(D, 1000.0)


@pytest.mark.parametrize(
    "shift", [np.zeros(D), np.array([3.0, -700.0, 1e4])], ids=["in place", "moved"]
)
def test_units_of_the_columns_do_not_matter(
    double: Case, family: GaussianFamily, shift: Any
) -> None:
    laws.equivariance(double, shift, _units(family))


@pytest.mark.parametrize("column", range(D))
def test_a_missing_column_is_no_column(case: Case, family: GaussianFamily, column: int) -> None:
    params = case.after(2)
    rest = laws.without_column(family, params.components, column)
    reduced = type(params)(params.weights, rest)
    laws.missing_column(case, params, Mixture(K, family), reduced, column)


def test_sampler_of_one_component(family: GaussianFamily) -> None:
    params = typical_components(family, 1, D, seed=3)
    scale = params.frame.scale
    covariance = family.dense(params)[0] * np.outer(scale, scale)

    def sample(n: int, rng: np.random.Generator) -> np.ndarray:
        return family.sample(params, np.zeros(n, int), rng.standard_normal((n, D)))

    laws.sampler_moments(sample, params.frame.leave(params.means)[0], covariance)
    model = Mixture(1, family)
    reading = model.prepare(MixtureParams(np.ones(1), params))

    def log_density(X: np.ndarray) -> np.ndarray:
        return model.log_joint(reading, Block(X))[:, 0]

    laws.sampler_slopes(sample, log_density)
    entropy = 0.5 * (D * (1 + np.log(2 * np.pi)) + np.linalg.slogdet(covariance)[1])
    laws.sampler_entropy(sample, log_density, -entropy)


def test_sampler_of_a_mixture(family: GaussianFamily) -> None:
    weights = np.array([0.5, 0.15, 0.35])
    params = typical_components(family, K, D, seed=4)
    mixture = MixtureParams(weights, params)
    model = Mixture(K, family)
    reading = model.prepare(mixture)
    means = params.frame.leave(params.means)
    scale = params.frame.scale
    mean = weights @ means
    spread = means - mean
    covariance = np.einsum("k,kde->de", weights, family.dense(params) * np.outer(scale, scale))
    covariance += (spread * weights[:, None]).T @ spread

    def sample(n: int, rng: np.random.Generator) -> np.ndarray:
        return model.sample(mixture, n, rng)[0]

    laws.sampler_moments(sample, mean, covariance)
    laws.sampler_slopes(
        sample, lambda X: np.logaddexp.reduce(model.log_joint(reading, Block(X)), axis=1)
    )


def test_all_six_families_are_registered() -> None:
    assert list(GAUSSIAN) == ["full", "tied", "diag", "spherical", "tied-diag", "tied-spherical"]
    assert all(family.name == name for name, family in GAUSSIAN.items())
