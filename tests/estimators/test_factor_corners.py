"""Corners of the factor models where an answer could be wrong without a word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

from mixfold import PPCA, DegenerateWarning, FactorAnalysis, MixtureOfPPCA
from mixfold.contracts import Array
from mixfold.families.factor import FactorFamily, IsotropicNoise
from mixfold.families.factor.stacked_products import can_lift
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing import Case


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def incomes(rng: np.random.Generator) -> Array:
    """Columns whose units differ by five orders."""
    g, z, e, h = rng.normal(size=(4, 500))
    return np.c_[4e4 + 3e4 * g, 40 + 12 * z, 25 + 4 * z + e, 1.7 + 0.1 * h]


@pytest.mark.parametrize("solver", ["covariance", "em"])
def test_columns_of_small_units_keep_their_axes(incomes: Array, solver: str) -> None:
    ours = PPCA(3, solver=solver, tol=1e-9).fit(incomes)
    theirs = PCA(3).fit(incomes)
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_ * 499 / 500, rel=1e-3)
    np.testing.assert_allclose(np.abs(ours.components_), np.abs(theirs.components_), atol=1e-4)


def test_axes_are_orthonormal_where_nothing_is_left_to_explain(rng: np.random.Generator) -> None:
    X = np.outer(rng.normal(size=50), [1.0, 2.0, 3.0, 4.0])
    with pytest.warns(DegenerateWarning, match="leave no noise"):
        ppca = PPCA(3).fit(X)
    np.testing.assert_allclose(ppca.components_ @ ppca.components_.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(ppca.reconstruct(X, "least-squares"), X, atol=1e-9)


@pytest.mark.parametrize("rule", ["bic", "mle"])
@pytest.mark.parametrize("noise", [0.03, 1e-4])
def test_the_number_of_axes_is_found_below_little_noise(
    rng: np.random.Generator, rule: str, noise: float
) -> None:
    X = 30 * rng.normal(size=(600, 2)) @ rng.normal(size=(2, 20))
    assert PPCA(rule).fit(X + noise * rng.normal(size=X.shape)).n_components_ == 2


def test_float32_moments_keep_the_noise(rng: np.random.Generator) -> None:
    X = 10 * rng.normal(size=(3000, 2)) @ rng.normal(size=(2, 20)) + 0.03 * rng.normal(
        size=(3000, 20)
    )
    X = X.astype(np.float32)
    for estimator in (PPCA(2), FactorAnalysis(2, noise_floor=1e-12)):
        single, double = (estimator.fit(data).lower_bound_ for data in (X, X.astype(np.float64)))
        assert single == pytest.approx(double, abs=1e-4)


def test_a_warm_start_does_not_bring_a_mean_along(rng: np.random.Generator) -> None:
    X = rng.normal(size=(100, 4)) @ rng.normal(size=(4, 4)) + 10
    warm = PPCA(2, solver="em", warm_start=True).fit(X).set_params(center=False).fit(X)
    assert not warm.mean_.any()
    cold = PPCA(2, solver="em", center=False).fit(X)
    assert warm.lower_bound_ == pytest.approx(cold.lower_bound_, abs=1e-4)


def test_a_warm_start_does_not_bring_other_factors_along(rng: np.random.Generator) -> None:
    X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))
    mixture = MixtureOfPPCA(2, [2, 1], warm_start=True, random_state=0).fit(X)
    mixture.set_params(n_factors=[1, 2]).fit(X)
    np.testing.assert_array_equal((mixture.loadings_ != 0).any(axis=1).sum(axis=1), [1, 2])


def _holed(rng: np.random.Generator) -> Array:
    X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4))
    X[::3, 1] = np.nan
    return X


def test_what_cannot_be_searched_for_is_told(rng: np.random.Generator, tmp_path: Path) -> None:
    H = _holed(rng)
    with pytest.raises(ValueError, match="cannot be chosen in a stream"):
        PPCA(0.9).partial_fit(H)
    with pytest.raises(ValueError, match="a checkpoint holds one"):
        PPCA("bic", checkpoint=tmp_path / "c").fit(H)
    with pytest.raises(ValueError, match="cannot be chosen in a stream"):
        PPCA(0.5).fit(H).partial_fit(H)  # what a search found is not for a stream


def test_latents_of_each_component_are_no_table(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 4))
    mixture = MixtureOfPPCA(2, random_state=0, max_iter=5, tol=1).fit(X)
    mixture.set_output(transform="pandas")
    assert mixture.transform(X).shape == (60, 1)
    with pytest.raises(ValueError, match="three dimensions"):
        mixture.transform(X, per_component=True)


def test_the_log_likelihoods_of_a_stream_are_not_those_of_a_fit(rng: np.random.Generator) -> None:
    X = np.outer(rng.normal(size=100), [1, 1, 1, 1]) + rng.normal(size=(100, 4))
    H = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    analysis = FactorAnalysis(1).fit(X)
    assert len(analysis.loglike_) > 1
    assert analysis.loglike_[-1] == pytest.approx(analysis.score_samples(X).sum(), rel=1e-6)
    assert FactorAnalysis(1).partial_fit(H).partial_fit(H).loglike_ == []


def test_a_heywood_case_names_its_columns(rng: np.random.Generator) -> None:
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install 'mixfold[tables]'")
    z = rng.normal(size=200)
    X = np.c_[z, z + 0.5 * rng.normal(size=200), z + rng.normal(size=200), z]
    with pytest.warns(DegenerateWarning, match="columns (age|size)"):
        FactorAnalysis(1).fit(pd.DataFrame(X, columns=["age", "b", "c", "size"]))


def test_sparse_rows_far_from_zero_are_summed_a_tile_at_a_time(rng: np.random.Generator) -> None:
    """One column at 1e7 keeps the fast route away; the answers are those of the dense rows."""
    dense = rng.poisson(0.3, size=(300, 12)) * rng.uniform(0.5, 2, 12)
    dense[:, -1] = 1e7 + rng.normal(size=300)
    case = Case(Mixture(2, FactorFamily(factors=(2,), noise=IsotropicNoise())), dense)
    params = case.after(2)
    reading = case.model.prepare(params).components
    thin = Case(case.model, sparse.csr_array(dense))
    assert can_lift(case.block, reading) and not can_lift(thin.block, reading)
    assert case.objective(params) == pytest.approx(thin.objective(params), rel=1e-9)
    family = case.model.family
    assert family.numbers_of_row(thin.block, reading) == 12
    ours = family.posterior(thin.block, reading)
    np.testing.assert_allclose(ours.means, family.posterior(case.block, reading).means, atol=1e-6)
    assert ours.covariances is None  # nobody asked
