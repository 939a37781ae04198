"""Every law for every kind of factor component, with and without missing entries."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.families.factor import (
    DiagonalNoise,
    FactorFamily,
    FactorParams,
    IsotropicNoise,
    TiedLoadings,
)
from mixfold.math.frame import Frame
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing import Case, laws
from mixfold.testing.tables import clustered_table

K, D, N = 3, 4, 90
# of the code rather than of its numbers: seen once for every kind
OF_CODE = {"repeatable", "save and load", "pure functions"}
# finite differences of a float32 objective are rounding
IN_SINGLE = set(laws.MODEL_LAWS) - OF_CODE - {"gradient"} | {"labels clamp"}
LAWS = laws.MODEL_LAWS | {
    # differences of fourth order see little more where some noise is small
    "gradient": partial(laws.gradient, rtol=1e-4),
    "labels clamp": partial(laws.labels_clamp, n_labels=K),
}


def _case(family: FactorFamily, missing: bool, dtype: Any = np.float64, n: int = N) -> Case:
    X = clustered_table(n, D, K, missing=0.15 if missing else 0.0, dtype=dtype)
    rng = np.random.default_rng(5)
    y = np.where(rng.random(n) < 0.1, 1, -1)  # the other components start at random
    rtol = 1e-10 if dtype is np.float64 else 1e-4
    model = Mixture(K, replace(family, has_missing=missing))
    return Case(model, X, rng.uniform(0.5, 2, n), y, rtol=rtol)


@pytest.fixture(params=[False, True], ids=["complete", "with NaN"])
def missing(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize("law", sorted(LAWS))
def test_law(law: str, family: FactorFamily, missing: bool) -> None:
    LAWS[law](_case(family, missing))


@pytest.mark.parametrize("law", sorted(IN_SINGLE))
def test_law_in_single_precision(law: str, family: FactorFamily) -> None:
    LAWS[law](_case(family, family.noise.tied, np.float32))


SPECIAL = {
    "no means": FactorFamily(factors=(2,), fixed_means=True),
    "no means, isotropic": FactorFamily(factors=(1,), noise=IsotropicNoise(), fixed_means=True),
    "plain steps": FactorFamily(factors=(2, 2, 1), expand=False),
    "plain steps, all tied": FactorFamily(
        factors=(2,), noise=DiagonalNoise(True), loadings=TiedLoadings(), expand=False
    ),
    "no factors": FactorFamily(factors=(0,)),
    "no factors in some": FactorFamily(factors=(0, 2, 1), noise=IsotropicNoise()),
    "as many factors as columns": FactorFamily(factors=(D,), noise=IsotropicNoise()),
}

# nothing is left to the noise: it is so near its floor that differences cross it, and sums that
# cancel keep eight digits
SKIPPED = {"as many factors as columns": {"gradient"}}
LOOSE = {"as many factors as columns": 1e-8}


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_laws_of_special_kinds(name: str, missing: bool) -> None:
    case = _case(SPECIAL[name], missing, n=70)
    case = replace(case, rtol=LOOSE.get(name, case.rtol))
    for law in sorted(set(LAWS) - OF_CODE - SKIPPED.get(name, set())):
        LAWS[law](case)


# ------------------------------------------------ units and columns


def _units(family: FactorFamily) -> np.ndarray:
    """Scales that the family can follow: one noise for all columns stays one."""
    return np.array([1000.0, 0.01, 3.0, 1.0]) if family.scales_columns else np.full(D, 1000.0)


@pytest.mark.parametrize(
    "shift", [np.zeros(D), np.array([3.0, -700.0, 1e4, 0.0])], ids=["in place", "moved"]
)
def test_units_of_the_columns_do_not_matter(
    family: FactorFamily, missing: bool, shift: np.ndarray
) -> None:
    laws.equivariance(_case(family, missing), shift, _units(family))


@pytest.mark.parametrize("column", [0, D - 1])
def test_a_missing_column_is_no_column(family: FactorFamily, missing: bool, column: int) -> None:
    case = _case(family, missing)
    case = replace(case, model=Mixture(K, replace(family, has_missing=True)))
    params = case.after(2)
    old: FactorParams = params.components
    rest = FactorParams(
        Frame(np.delete(old.frame.origin, column), np.delete(old.frame.scale, column)),
        np.delete(old.means, column, axis=1),
        np.delete(old.loadings, column, axis=1),
        np.delete(old.noise, column, axis=1),
    )
    laws.missing_column(case, params, case.model, MixtureParams(params.weights, rest), column)


# ------------------------------------------------ samplers


def test_sampler_of_one_component(family: FactorFamily, typical: Any, dense: Any) -> None:
    params = typical(family, 1, D, seed=3)
    means, covariances = dense(params)
    model = Mixture(1, family)
    size = family.normals_per_row(D)

    def sample(n: int, rng: np.random.Generator) -> np.ndarray:
        return family.sample(params, np.zeros(n, int), rng.standard_normal((n, size)))

    reading = model.prepare(MixtureParams(np.ones(1), params))

    def log_density(X: np.ndarray) -> np.ndarray:
        return model.log_joint(reading, Block(X))[:, 0]

    laws.sampler_moments(sample, means[0], covariances[0])
    laws.sampler_slopes(sample, log_density)
    entropy = 0.5 * (D * (1 + np.log(2 * np.pi)) + np.linalg.slogdet(covariances[0])[1])
    laws.sampler_entropy(sample, log_density, -entropy)


def test_sampler_of_a_mixture(family: FactorFamily, typical: Any, dense: Any) -> None:
    weights = np.array([0.5, 0.15, 0.35])
    params = MixtureParams(weights, typical(family, K, D, seed=4))
    model = Mixture(K, family)
    reading = model.prepare(params)
    means, covariances = dense(params.components)
    spread = means - weights @ means
    covariance = np.einsum("k,kde->de", weights, covariances) + (spread.T * weights) @ spread

    def sample(n: int, rng: np.random.Generator) -> np.ndarray:
        return model.sample(params, n, rng)[0]

    laws.sampler_moments(sample, weights @ means, covariance)
    laws.sampler_slopes(
        sample, lambda X: np.logaddexp.reduce(model.log_joint(reading, Block(X)), axis=1)
    )
