"""What users of other libraries ran into for years: one test each."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from mixfold import DegenerateWarning, GaussianMixture


def _unscaled(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three clusters six standard deviations apart, beside a column a hundred times as wide."""
    y = rng.integers(0, 3, 600)
    return np.column_stack([6 * y + rng.normal(size=600), 100 * rng.normal(size=600)]), y


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_1_the_units_of_a_column_do_not_decide_the_clusters(rng):
    X, y = _unscaled(rng)
    fits = [
        GaussianMixture(k, covariance_type=kind, random_state=0).fit(X)
        for k in range(1, 7)
        for kind in ("full", "tied", "diag", "spherical")
    ]
    best = min(fits, key=lambda mixture: mixture.bic(X))
    assert best.n_components == 3
    assert adjusted_rand_score(y, best.predict(X)) > 0.98


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "tied-diag"])
def test_1_rescaling_columns_changes_nothing(rng, kind):
    X, _ = _unscaled(rng)
    scale = np.array([1e-6, 1e3])
    one = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    other = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X * scale)
    assert np.array_equal(one.predict(X), other.predict(X * scale))
    np.testing.assert_allclose(other.means_, one.means_ * scale, rtol=1e-6)


def test_2_converged_means_converged(rng):
    """Overlapping clusters: a rule on the last step stops at .37/.63 where .25/.75 is right."""
    X = np.concatenate([rng.normal(0, 1, (2500, 1)), rng.normal(2, 1, (7500, 1))])
    mixture = GaussianMixture(2, random_state=0).fit(X)
    patient = GaussianMixture(2, random_state=0, tol=1e-12, max_iter=3000).fit(X)
    assert mixture.converged_
    assert patient.lower_bound_ - mixture.lower_bound_ < 1e-6
    np.testing.assert_allclose(mixture.weights_, patient.weights_, atol=0.01)


def test_2_the_same_without_acceleration(rng):
    X = np.concatenate([rng.normal(0, 1, (1000, 1)), rng.normal(2.5, 1, (3000, 1))])
    plain = GaussianMixture(2, random_state=0, acceleration=None, max_iter=20000).fit(X)
    fast = GaussianMixture(2, random_state=0).fit(X)
    assert plain.converged_ and fast.converged_
    assert abs(plain.lower_bound_ - fast.lower_bound_) < 2e-6
    assert fast.n_passes_ < plain.n_passes_ / 3


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_5_float32_keeps_the_variance(kind):
    """Mean of squares minus square of mean gives 112 instead of 0.1 on such data."""
    X = np.repeat(np.array([[10000.0], [10000.625]], np.float32), 50, axis=0)
    mixture = GaussianMixture(1, covariance_type=kind).fit(X)
    assert mixture.covariances_.dtype == np.float32
    np.testing.assert_allclose(np.ravel(mixture.covariances_), 0.3125**2, rtol=1e-5)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "tied-diag"])
def test_5_an_offset_of_1e8_changes_nothing(rng, kind):
    X = np.concatenate([rng.normal(0, 1, (200, 2)), rng.normal(5, 1, (200, 2))]).round(6)
    near = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    far = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X + 1e8)
    assert np.array_equal(near.predict(X), far.predict(X + 1e8))
    np.testing.assert_allclose(far.covariances_, near.covariances_, rtol=1e-5, atol=1e-6)


def test_6_every_call_of_sample_gives_new_draws(rng):
    mixture = GaussianMixture(2, random_state=0).fit(rng.normal(size=(100, 2)))
    first, second = mixture.sample(50)[0], mixture.sample(50)[0]
    assert not np.isin(first, second).any()
    a, b = mixture.sample(5, random_state=7)[0], mixture.sample(5, random_state=7)[0]
    assert np.array_equal(a, b)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_7_the_best_restart_is_kept(rng):
    X = rng.normal(size=(300, 3))
    one = [
        GaussianMixture(4, init_params="random_from_data", random_state=seed).fit(X).lower_bound_
        for seed in range(3)
    ]
    many = GaussianMixture(4, init_params="random_from_data", n_init=8, random_state=0).fit(X)
    assert many.lower_bound_ >= one[0] - 1e-9
    assert many.lower_bound_ == pytest.approx(many.score(X), abs=1e-12)
    assert many.weights_.sum() == pytest.approx(1, abs=1e-12)
    assert many.lower_bounds_[-1] == many.lower_bound_


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_13_duplicated_rows_do_not_end_a_fit(kind):
    X = np.repeat(np.eye(2), 5, axis=0)
    with pytest.warns(DegenerateWarning, match="floor"):
        mixture = GaussianMixture(3, covariance_type=kind, reg_covar=0, random_state=0).fit(X)
    assert mixture.events_[0].kind in ("floor", "thin")
    assert np.isfinite(mixture.score(X))
    assert len(np.unique(mixture.predict(X)[[0, -1]])) == 2


def test_a_fit_that_has_not_converged_says_so(rng):
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        mixture = GaussianMixture(5, max_iter=1, random_state=0).fit(rng.normal(size=(500, 3)))
    assert not mixture.converged_ and mixture.stop_reason_ == "max_iter"
