"""The bootstrap likelihood-ratio test: its statistic, its tables, its p-values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from mixfold import (
    BayesianGaussianMixture,
    GaussianMixture,
    KMeans,
    MixtureOfPPCA,
    MixtureSearch,
    bootstrap_lrt,
)
from mixfold.estimators.mixtures.bootstrap import _both, _Drawn, _statistic
from mixfold.estimators.search.fits import Worker
from mixfold.estimators.search.rows import Rows

QUICK = {"covariance_type": "diag", "init_params": "random_from_data", "tol": 1e-5}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 1))
    X[:40] += 5
    return X


def test_two_groups_are_not_one_and_not_three(X):
    sizes = [GaussianMixture(k, **QUICK) for k in (1, 2, 3)]
    two = bootstrap_lrt(sizes[0], sizes[1], X, n_bootstrap=19, random_state=0)
    three = bootstrap_lrt(sizes[1], sizes[2], X, n_bootstrap=19, random_state=0)
    assert two.p_value == 1 / 20  # the least that 19 tables can show
    assert three.p_value > 0.1
    assert two.n_failed == three.n_failed == 0
    # each larger fit is at least as good as the smaller one, of drawn tables too
    assert (two.simulated > -1e-3).all() and (three.simulated > -1e-3).all()
    assert (np.diff(three.simulated) >= 0).all() and three.simulated.shape == (19,)


def test_the_statistic_and_the_p_value_are_what_they_say(X):
    small, large = (GaussianMixture(k, random_state=0, **QUICK).fit(X) for k in (1, 2))
    found = bootstrap_lrt(small, large, X, n_bootstrap=9, random_state=0)
    gain = 2 * (large.score_samples(X).sum() - small.score_samples(X).sum())
    assert found.statistic == pytest.approx(gain, rel=1e-10)
    rank = np.sum(found.simulated >= found.statistic)
    assert found.p_value == (1 + rank) / 10


def test_the_null_distribution_is_that_of_new_tables():
    """Statistics of tables from the smaller mixture, drawn here, mix with the simulated ones."""
    rng = np.random.default_rng(1)
    small, large = GaussianMixture(1, **QUICK), GaussianMixture(2, **QUICK)
    X = rng.normal(3, 2, size=(50, 1))
    simulated = bootstrap_lrt(small, large, X, n_bootstrap=24, random_state=0).simulated
    ours = []
    for seed in range(24):
        rows, worker = Rows(rng.normal(3, 2, size=(50, 1))), Worker(1, seed)
        with worker.quiet():
            ours.append(_statistic(*_both(small, large, rows, worker), rows))
    assert ks_2samp(simulated, ours).pvalue > 0.01
    assert np.median(simulated) > 1  # and is not a point mass at zero


def test_draws_have_the_holes_of_the_data(X):
    table = np.column_stack([X, X[::-1]])
    table[::3, 1] = np.nan
    model = GaussianMixture(1, random_state=0).fit(table)
    drawn = _Drawn.like(model, Rows(table)).draw(model, 7)
    np.testing.assert_array_equal(np.isnan(drawn), np.isnan(table))
    weight = np.where(np.isnan(table[:, 1]), 0.0, 3.0)
    drawn = _Drawn.like(model, Rows(table, weight)).draw(model, 7)
    assert drawn.shape == (3 * 60, 2)  # a row of weight three is three rows
    assert not np.isnan(drawn).any()  # and one of weight zero is none


def test_a_file_is_tested_as_its_rows_are(X, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    models = [GaussianMixture(k, **QUICK) for k in (1, 2)]
    options = {"n_bootstrap": 5, "random_state": 1}
    one, other = (bootstrap_lrt(*models, data, **options) for data in (X, path))
    assert one.statistic == pytest.approx(other.statistic, rel=1e-9)
    np.testing.assert_allclose(one.simulated, other.simulated, rtol=1e-6, atol=1e-6)


def test_threads_and_seeds(X):
    models = [GaussianMixture(k, **QUICK) for k in (1, 2)]
    one = bootstrap_lrt(*models, X, n_bootstrap=6, random_state=3)
    two = bootstrap_lrt(*models, X, n_bootstrap=6, random_state=3, n_jobs=2)
    np.testing.assert_array_equal(one.simulated, two.simulated)
    other = bootstrap_lrt(*models, X, n_bootstrap=6, random_state=4)
    assert (one.simulated != other.simulated).all()
    assert not hasattr(models[0], "means_")  # what the user gave is not touched


def test_mixtures_without_prescribed_starts(X):
    table = np.column_stack([X, X + np.random.default_rng(1).normal(size=X.shape)])
    models = [MixtureOfPPCA(k, tol=1e-4, init_params="random_from_data") for k in (1, 2)]
    assert bootstrap_lrt(*models, table, n_bootstrap=3, random_state=0).p_value == 1 / 4


@pytest.mark.parametrize(
    ("small", "large", "n", "error", "words"),
    [
        (KMeans(1), GaussianMixture(2), 9, TypeError, "small must be a mixture of mixfold"),
        (GaussianMixture(1), GaussianMixture, 9, TypeError, "large must be a mixture of mixfold"),
        (GaussianMixture(2), GaussianMixture(1), 9, ValueError, "more parameters than small"),
        (GaussianMixture(1), GaussianMixture(2), 0, ValueError, "n_bootstrap must be an int >= 1"),
    ],
)
def test_mistakes(X, small, large, n, error, words):
    with pytest.raises(error, match=words):
        bootstrap_lrt(small, large, X, n_bootstrap=n, random_state=0)


def test_if_no_table_can_be_fitted_it_says_why(X):
    class Stubborn(GaussianMixture):
        def fit(self, X, y=None, sample_weight=None, component_labels=None):
            raise ValueError("I will not")

    small, large = (GaussianMixture(k, random_state=0).fit(X) for k in (1, 2))
    stubborn = Stubborn(2)
    stubborn.__dict__.update(large.__dict__)
    with pytest.raises(ValueError, match=r"none of the 2 tables.*I will not"):
        bootstrap_lrt(small, stubborn, X, n_bootstrap=2, random_state=0)


def test_what_cannot_be_tested_is_told_before_the_fits(X):
    bayes = MixtureSearch(BayesianGaussianMixture(), criterion="bound", test=9)
    with pytest.raises(ValueError, match="must be fitted by maximum likelihood"):
        bayes.fit(X)
    assert not hasattr(bayes, "results_")
    with pytest.raises(ValueError, match="leave out component_labels"):
        MixtureSearch(test=9).fit(X, component_labels=np.zeros(len(X), dtype=int))


def test_weights_by_name_are_those_of_an_array(X):
    import pandas as pd

    weight = np.random.default_rng(0).integers(0, 3, len(X))
    table = pd.DataFrame({"x": X[:, 0], "count": weight})
    models = [GaussianMixture(k, **QUICK) for k in (1, 2)]
    options = {"n_bootstrap": 3, "random_state": 0}
    named = bootstrap_lrt(*models, table, sample_weight="count", **options)
    given = bootstrap_lrt(*models, X, sample_weight=weight, **options)
    assert named.statistic == pytest.approx(given.statistic, rel=1e-9)
    np.testing.assert_allclose(named.simulated, given.simulated, rtol=1e-6)


def test_a_search_tests_until_one_more_does_not_help(X):
    search = MixtureSearch(
        GaussianMixture(**QUICK), n_components=(1, 2, 3, 4), test=19, random_state=0
    ).fit(X)
    table = search.results_
    assert len(search.tests_) == 2
    np.testing.assert_array_equal(np.isnan(table["p_value"]), [True, False, False, True])
    assert table["p_value"][1] == 0.05 and table["p_value"][2] > 0.05
    gains = 2 * np.diff(table["log_likelihood"])
    np.testing.assert_allclose(table["lrt"][1:3], gains[:2], rtol=1e-9)
    assert [t.statistic for t in search.tests_] == table["lrt"][1:3].tolist()
    assert search.best_params_ == {"n_components": 2}
    assert "p = 0.05" in search.summary()
