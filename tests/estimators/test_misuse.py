"""Uses that once gave a silent wrong answer."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mixfold import GaussianMixture, KMeans


@pytest.fixture
def X(rng) -> np.ndarray:
    return np.concatenate([rng.normal(0, 1, (150, 3)), rng.normal(5, 1, (150, 3))])


def test_criteria_of_a_stream_need_data(X):
    stream = GaussianMixture(2, random_state=0)
    for batch in np.array_split(np.random.default_rng(0).permutation(X), 3):
        stream.partial_fit(batch)
    with pytest.raises(ValueError, match="not kept: give X"):
        stream.bic()
    assert stream.bic(X) > 1000


def test_a_conditioned_mixture_does_not_claim_the_likelihood_of_the_joint(X):
    mixture = GaussianMixture(2, random_state=0, means_init=[[0, 0, 0], [5, 5, 5]]).fit(X)
    rest = mixture.condition(0, 1.0)
    assert rest.predict([[1.0, 1.0]]).shape == (1,)
    with pytest.raises(ValueError, match="not kept: give X"):
        rest.bic()


def test_warm_start_with_other_settings_starts_afresh(X):
    mixture = GaussianMixture(2, warm_start=True, random_state=0).fit(X)
    mixture.set_params(n_components=3).fit(X)
    assert mixture.weights_.shape == (3,)
    mixture.set_params(covariance_type="diag").fit(X)
    assert mixture.covariances_.shape == (3, 3)
    stream = GaussianMixture(2, random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match="clone the estimator"):
        stream.set_params(n_components=3).partial_fit(X)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_warm_start_on_other_units_has_other_floors(X):
    mixture = GaussianMixture(2, warm_start=True, random_state=0).fit(X)
    mixture.fit(X * 1e-5)
    fresh = GaussianMixture(2, random_state=0).fit(X * 1e-5)
    assert mixture.lower_bound_ == pytest.approx(fresh.lower_bound_, abs=1e-5)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_a_column_that_is_constant_in_the_sample_keeps_its_variance(rng, kind):
    Z = np.column_stack([rng.normal(0, 1e4, 60000), np.zeros(60000)])
    Z[rng.choice(60000, 3, replace=False), 1] = 1.0
    mixture = GaussianMixture(1, covariance_type=kind, random_state=0).fit(Z)
    variance = np.ravel(mixture.covariances_)[-1]
    assert variance == pytest.approx(Z[:, 1].var(), rel=0.01)


@pytest.mark.filterwarnings("ignore:.*have no observed entry")  # a row may be masked wholly
def test_masked_entries_are_missing(X):
    masked = np.ma.masked_array(np.where(X > 6, 1e6, X), mask=X > 6)
    holes = np.where(X > 6, np.nan, X)
    one = GaussianMixture(1).fit(masked)
    np.testing.assert_array_equal(one.means_, GaussianMixture(1).fit(holes).means_)
    assert KMeans(1).fit(masked).cluster_centers_.max() < 10


def test_a_component_that_can_own_no_row_is_dropped(X):
    labels = np.repeat([0, 1], 150)
    with pytest.warns(UserWarning, match="component 2"):
        mixture = GaussianMixture(3, random_state=0).fit(X, component_labels=labels)
    assert mixture.weights_[2] == 0 and mixture.converged_
    two = GaussianMixture(2, random_state=0).fit(X, component_labels=labels)
    assert mixture.score(X) == pytest.approx(two.score(X), abs=1e-6)


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_sparse_rows_far_from_zero_keep_their_digits(X, kind):
    dense = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X + 1e8)
    thin = GaussianMixture(2, covariance_type=kind, random_state=0).fit(sparse.csr_array(X + 1e8))
    assert thin.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-6)


def test_labels_in_a_column_are_checked(X):
    table = pd.DataFrame(X, columns=list("abc"))
    table["z"] = np.where(np.arange(300) % 2, np.nan, np.repeat([0.0, 1.0], 150))
    mixture = GaussianMixture(2, random_state=0).fit(table, component_labels="z")
    assert mixture.means_[0, 0] < mixture.means_[1, 0]
    with pytest.raises(ValueError, match="row 4 has 7"):
        GaussianMixture(2).fit(
            table.assign(z=np.where(np.arange(300) == 4, 7, 0)), component_labels="z"
        )


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_far_rows_have_density_zero(X, kind, dtype):
    mixture = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X.astype(dtype))
    far = np.full((1, 3), 1e149 if dtype == np.float64 else 1e30, dtype)
    assert mixture.score_samples(far)[0] == -np.inf or mixture.score_samples(far)[0] < -1e30
    assert np.isfinite(mixture.predict_proba(far)).all()


def test_values_that_cannot_be_squared_are_named(X):
    with pytest.raises(ValueError, match=r"column 1 row 0 of X is .* too large to be squared"):
        GaussianMixture(2).fit(X * [1, 1e200, 1])


def test_criteria_of_nothing(X):
    with pytest.raises(ValueError, match="no row of positive weight"):
        GaussianMixture(1).fit(X).score(np.full((2, 3), np.nan))
