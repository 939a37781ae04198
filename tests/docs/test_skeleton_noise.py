"""The skeleton of a factor noise by groups of columns: every law, its limits, and what it finds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import mixfold
from mixfold.contracts import Block
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.sources import open_source
from mixfold.families.factor import (
    DiagonalNoise,
    FactorFamily,
    IsotropicNoise,
    Noise,
    OwnLoadings,
    TiedLoadings,
)
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing import Case, laws
from mixfold.testing.tables import clustered_table
from tests.docs.skeletons import load_skeleton

GroupedNoise: Any = load_skeleton("factor_noise").GroupedNoise
GROUPS = (0, 1, 0, 1, 1)
K, D, N = 3, len(GROUPS), 90
LAWS = laws.MODEL_LAWS | {
    "gradient": partial(laws.gradient, rtol=1e-4),
    "labels clamp": partial(laws.labels_clamp, n_labels=K),
}


@pytest.mark.parametrize("law", sorted(LAWS))
@pytest.mark.parametrize("missing", [0.0, 0.15], ids=["complete", "with NaN"])
@pytest.mark.parametrize("tied", [False, True], ids=["own", "tied"])
def test_law(law: str, missing: float, tied: bool) -> None:
    rng = np.random.default_rng(5)
    family = FactorFamily(
        factors=(2,) if tied else (2, 1, 2),
        noise=GroupedNoise(tied=tied, groups=GROUPS),
        loadings=TiedLoadings() if tied else OwnLoadings(),
        has_missing=missing > 0,
    )
    X = clustered_table(N, D, K, missing=missing)
    y = np.where(rng.random(N) < 0.1, 1, -1)
    LAWS[law](Case(Mixture(K, family), X, rng.uniform(0.5, 2, N), y))


def _fitted(noise: Noise, X: np.ndarray) -> Fit:
    holes = bool(np.isnan(X).any())
    plan = Plan(tol=1e-9, acceleration=ACCELERATIONS["quasi-newton"], seed=0)
    model = Mixture(1, FactorFamily(factors=(1,), noise=noise, has_missing=holes))
    return fit(model, open_source(X), ThreadExecutor(1), plan)


def _rows(rng: np.random.Generator, n: int = 4000) -> np.ndarray:
    loadings, deviation = np.array([1.0, -2.0, 0.5, 1.5, 1.0]), np.array([0.5, 2.0])
    noise = deviation[list(GROUPS)] * rng.standard_normal((n, D))
    return 3.0 + rng.standard_normal((n, 1)) * loadings + noise


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "with NaN"])
def test_columns_of_a_group_share_an_absolute_variance(
    rng: np.random.Generator, missing: float
) -> None:
    X = _rows(rng)
    X[rng.random(X.shape) < missing] = np.nan
    params = _fitted(GroupedNoise(groups=GROUPS), X).params.components
    noise = params.noise[0] * params.frame.scale**2
    for group, variance in enumerate([0.25, 4.0]):
        mine = noise[np.array(GROUPS) == group]
        assert np.ptp(mine) <= 1e-12 * mine[0]
        assert mine[0] == pytest.approx(variance, rel=0.15)


def test_one_group_is_ppca_and_one_per_column_factor_analysis(rng: np.random.Generator) -> None:
    X = _rows(rng, 300)
    for groups, noise in ((((0,) * D), IsotropicNoise()), (tuple(range(D)), DiagonalNoise())):
        found, wanted = _fitted(GroupedNoise(groups=groups), X), _fitted(noise, X)
        assert found.objective == pytest.approx(wanted.objective, abs=1e-4)
        assert found.params.components.n_features == D


def test_density_and_number_of_parameters(rng: np.random.Generator) -> None:
    X = _rows(rng, 200)
    result = _fitted(GroupedNoise(groups=GROUPS), X)
    family = FactorFamily(factors=(1,), noise=GroupedNoise(groups=GROUPS))
    params = result.params.components
    W, scale = params.loadings[0], params.frame.scale
    covariance = (W @ W.T + np.diag(params.noise[0])) * np.outer(scale, scale)
    wanted = multivariate_normal(params.frame.leave(params.means)[0], covariance).logpdf(X)
    found = family.log_density(Block(X), family.mode(params))[:, 0]
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    assert family.n_free(1, D) == 2 * D + 2


def test_it_is_data_for_a_file_and_wrong_groups_are_named() -> None:
    noise = GroupedNoise(groups=GROUPS)
    laws.stored_identity(noise)
    with pytest.raises(ValueError, match="without a gap"):
        GroupedNoise(groups=(0, 2))
    with pytest.raises(ValueError, match="each of the 3 columns, got 5"):
        noise.n_columns(3)
    assert replace(noise, held=True).n_free(2, D) == 0


def test_a_mixture_of_such_components_is_saved_and_loaded(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    X = _rows(rng, 80)
    family = FactorFamily(factors=(1,), noise=GroupedNoise(groups=GROUPS))
    mixture = mixfold.Mixture(family, 1).fit(X)
    mixture.save(tmp_path / "groups.mixfold")
    loaded = mixfold.load(tmp_path / "groups.mixfold")
    np.testing.assert_array_equal(loaded.score_samples(X), mixture.score_samples(X))
