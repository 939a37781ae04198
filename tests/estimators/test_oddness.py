"""Oddness is a tail probability: exact for one Gaussian, uniform under the model, fair to holes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

import mixfold
from mixfold import (
    PPCA,
    BayesianGaussianMixture,
    BernoulliMixture,
    FactorAnalysis,
    GaussianMixture,
    Mixture,
    MixtureOfPPCA,
    NestedMixture,
    PoissonMixture,
)
from tests.brief import BRIEF, fitted


def holes(X: np.ndarray, rng: np.random.Generator, part: float = 0.3) -> np.ndarray:
    X = np.where(rng.random(X.shape) < part, np.nan, X)
    return X[~np.isnan(X).all(axis=1)]


def test_an_odd_value_in_a_row_with_few_entries_is_at_the_top() -> None:
    rng = np.random.default_rng(0)
    covariance = 0.4 * np.ones((10, 10)) + 0.6 * np.eye(10)
    X = rng.multivariate_normal(np.full(10, 50.0), 9 * covariance, 500)
    X[7, 2:] = np.nan
    X[7, 0], X[7, 1] = 50 + 5 * 3, 50.0
    model = GaussianMixture(1).fit(X)
    density, oddness = model.score_samples(X), model.oddness(X)
    assert (density < density[7]).sum() > 400  # few entries have a high density: it looks ordinary
    assert (oddness > oddness[7]).sum() <= 1
    cells = model.oddness(X[[7]], by="cell")[0]
    assert cells[0] > 0.9999 and np.isnan(cells[2:]).all()


@pytest.mark.parametrize("model", [GaussianMixture(1), FactorAnalysis(2), PPCA(2)])
def test_one_gaussian_is_chi_square(model, rng) -> None:
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 5)) + rng.normal(size=(300, 5)) + 3
    model.fit(X)
    W = getattr(model, "loadings_", None)
    if W is None:
        mean, covariance = model.means_[0], model.covariances_[0]
    else:
        mean, covariance = model.mean_, W @ W.T + model.noise_variance_ * np.eye(5)
    new = holes(X[:60], rng)
    expected, cells = [], np.full(new.shape, np.nan)
    for i, x in enumerate(new):
        seen = np.flatnonzero(~np.isnan(x))
        precision = np.linalg.inv(covariance[np.ix_(seen, seen)])
        apart = x[seen] - mean[seen]
        expected.append(chi2.cdf(apart @ precision @ apart, len(seen)))
        z = precision @ apart / np.sqrt(np.diag(precision))
        cells[i, seen] = 2 * norm.cdf(np.abs(z)) - 1
    np.testing.assert_allclose(model.oddness(new), expected, atol=1e-7)
    np.testing.assert_allclose(model.oddness(new, by="cell"), cells, atol=1e-6)


def two_groups(rng: np.random.Generator) -> np.ndarray:
    return np.concatenate(
        [rng.normal(size=(200, 4)), 3 + rng.normal(size=(300, 4)) * [1, 2, 0.5, 1]]
    )


@pytest.mark.parametrize(
    "model",
    [
        GaussianMixture(1),
        GaussianMixture(2, random_state=0),
        BayesianGaussianMixture(3, random_state=0, max_iter=2000),
        MixtureOfPPCA(2, 1, random_state=0),
        NestedMixture(random_state=0),
        Mixture({"full": [0, 1], "diag": [2, 3]}, 2, random_state=0),
    ],
)
def test_rows_of_the_model_have_uniform_oddness(model, rng) -> None:
    model.fit(two_groups(rng))
    drawn = np.array(model.sample(1000, random_state=3)[0])
    new = holes(drawn, rng, 0.25)
    assert kstest(model.oddness(new, n_draws=8000), "uniform").pvalue > 1e-3
    cells = model.oddness(new[:100], by="cell", n_draws=400)
    assert kstest(cells[~np.isnan(cells)], "uniform").pvalue > 1e-4


def test_counts_and_codes_against_sums(rng) -> None:
    ones = BernoulliMixture(2, random_state=0).fit((rng.random((300, 3)) < [0.2, 0.6, 0.7]) * 1.0)
    every = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], float)
    p = np.exp(ones.score_samples(every))
    expected = [p[p > own * (1 + 1e-9)].sum() for own in p]
    np.testing.assert_allclose(ones.oddness(every, n_draws=40_000), expected, atol=0.012)
    assert ones.oddness([[np.nan, np.nan, np.nan]]) == 0
    counts = PoissonMixture(1).fit(rng.poisson(5.0, (400, 1)))
    support = np.arange(40.0)[:, None]
    p = np.exp(counts.score_samples(support))
    expected = [p[p > own * (1 + 1e-9)].sum() for own in p[:12]]
    found = counts.oddness(support, n_draws=40_000)
    np.testing.assert_allclose(found[:12], expected, atol=0.012)
    assert (np.diff(found[8:]) >= -1e-12).all() and found[25] > 0.999


def test_blocks_and_threads_change_nothing_and_the_seed_does(rng, monkeypatch) -> None:
    X = holes(two_groups(rng), rng)
    model = GaussianMixture(2, random_state=0, n_jobs=1).fit(X)
    whole, cells = model.oddness(X), model.oddness(X[:40], by="cell", n_draws=50)
    cut = np.concatenate([model.oddness(part) for part in np.array_split(X, 7)])
    np.testing.assert_allclose(cut, whole, rtol=1e-9)
    np.testing.assert_array_equal(model.set_params(n_jobs=2).oddness(X), whole)
    np.testing.assert_allclose(model.oddness(X[20:40], by="cell", n_draws=50), cells[20:])
    other = model.oddness(X, random_state=1)
    assert 0 < np.abs(other - whole).max() < 0.06


def test_mistakes_are_told() -> None:
    model = GaussianMixture(1).fit(np.random.default_rng(0).normal(size=(30, 2)))
    with pytest.raises(ValueError, match="by must be 'row' or 'cell', got 'column'"):
        model.oddness([[0, 0]], by="column")
    with pytest.raises(ValueError, match="n_draws"):
        model.oddness([[0, 0]], n_draws=0)


@pytest.mark.parametrize("name", [n for n in BRIEF if hasattr(getattr(mixfold, n), "oddness")])
@pytest.mark.filterwarnings("ignore")
def test_every_density_has_it(name: str) -> None:
    model, X = fitted(name), BRIEF[name][1]
    found = model.oddness(X, n_draws=200)
    assert found.shape == (len(found),) and (found >= 0).all() and (found <= 1).all()
    # the densest rows are the least odd where all entries are seen
    dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    if not np.isnan(dense.astype(float)).any():
        assert np.argmax(model.score_samples(X)) in np.flatnonzero(found <= np.quantile(found, 0.2))


def test_a_search_asks_its_best_estimator(rng) -> None:
    X = two_groups(rng)
    search = mixfold.MixtureSearch(GaussianMixture(random_state=0), n_components=[1, 2]).fit(X)
    np.testing.assert_array_equal(search.oddness(X), search.best_estimator_.oddness(X))
