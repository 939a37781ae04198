"""Starts made from smaller mixtures: what a split keeps, and that it only helps."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold import GaussianMixture, MixtureOfPPCA, MixtureSearch
from mixfold.estimators.mixtures.splitting import CANDIDATES, can_split, split_starts
from mixfold.families import GAUSSIAN


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0, 0], [8, 0, 300], [0, 9, -500], [5, 5, 900.0]])
    return centres[rng.integers(0, 4, 300)] + rng.normal(size=(300, 3)) * [1, 2, 80]


def moments(weights, means, covariances):
    """Mean and covariance of a mixture whose covariances are given as matrices."""
    mean = weights @ means
    spread = (means - mean).T * weights @ (means - mean)
    return mean, spread + np.einsum("k,kij->ij", weights, covariances)


def as_matrices(kind, precisions, K, D):
    if GAUSSIAN[kind].matrix:
        full = np.linalg.inv(precisions)
    elif kind in ("diag", "tied-diag"):
        full = np.apply_along_axis(np.diag, -1, 1 / precisions)
    else:
        full = np.multiply.outer(1 / precisions, np.eye(D))
    return np.broadcast_to(full, (K, D, D))


@pytest.mark.filterwarnings("ignore:the standard deviations of the columns")
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("size", [4, 6])
def test_a_split_keeps_mean_and_covariance(X, kind, size):
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    before = moments(model.weights_, model.means_, as_matrices(kind, model.precisions_, 3, 3))
    starts = list(split_starts(model, size))
    assert len(starts) == 3
    for start in starts:
        weights, means = start["weights_init"], start["means_init"]
        assert (len(weights), means.shape) == (size, (size, 3))
        assert weights.sum() == pytest.approx(1)
        after = moments(weights, means, as_matrices(kind, start["precisions_init"], size, 3))
        np.testing.assert_allclose(after[0], before[0], rtol=1e-10)
        if kind == "spherical":  # a pair of spheres has the variance of one, not its shape
            assert np.trace(after[1]) == pytest.approx(np.trace(before[1]))
        else:
            np.testing.assert_allclose(after[1], before[1], rtol=1e-8)
    # each start splits another component
    assert len({tuple(start["weights_init"]) for start in starts}) == 3


def test_no_more_than_the_heaviest_are_tried(X):
    model = GaussianMixture(6, covariance_type="tied", random_state=0).fit(X)
    assert len(list(split_starts(model, 7))) == CANDIDATES


@pytest.mark.filterwarnings("ignore:the standard deviations of the columns")
@pytest.mark.parametrize("kind", list(GAUSSIAN))
def test_near_halves_have_the_likelihood_of_the_whole(X, kind):
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    (start,) = split_starts(model, 3, far=False)
    other = GaussianMixture(3, covariance_type=kind, max_iter=0, **start).fit(X)
    assert other.score(X) == pytest.approx(model.score(X), abs=3e-3)
    assert np.ptp(other.means_[[-1, np.argmax(model.weights_)]], axis=0).max() > 0


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", list(GAUSSIAN))
def test_the_likelihood_never_falls_as_components_are_added(X, kind):
    # a single random start each is often a bad one: what splitting is for
    estimator = GaussianMixture(covariance_type=kind, init_params="random_from_data")
    options = {"n_components": range(1, 8), "random_state": 5}
    alone = MixtureSearch(estimator, split_starts=False, **options).fit(X).results_
    found = MixtureSearch(estimator, **options).fit(X).results_
    assert not found["degenerate"].any()
    assert (np.diff(found["log_likelihood"]) > 0).all()
    assert (found["log_likelihood"] >= alone["log_likelihood"]).all()
    better = found["log_likelihood"] > alone["log_likelihood"]
    np.testing.assert_array_equal(better, np.array(found["start"]) == "split")


def test_splitting_finds_what_a_bad_start_misses(X):
    """Some of the random starts miss a group; the mixture with one component less does not."""
    estimator = GaussianMixture(covariance_type="tied-diag", init_params="random_from_data")
    gains = []
    for seed in range(4):
        options = {"n_components": range(1, 6), "random_state": seed}
        alone = MixtureSearch(estimator, split_starts=False, **options).fit(X)
        found = MixtureSearch(estimator, **options).fit(X)
        assert found.best_params_ == {"n_components": 4}
        gains.append(found.results_["log_likelihood"][3] - alone.results_["log_likelihood"][3])
    assert max(gains) > 50 and min(gains) >= 0


def test_the_start_is_not_left_in_the_estimator(X):
    estimator = GaussianMixture(init_params="random_from_data")
    search = MixtureSearch(estimator, n_components=range(1, 6), random_state=0, n_jobs=2).fit(X)
    starts = search.results_["start"]
    split = [model for model, s in zip(search.estimators_, starts, strict=True) if s == "split"]
    assert split
    for model in split:
        params = model.get_params()
        assert [params[n] for n in ("weights_init", "means_init", "precisions_init")] == [None] * 3
        assert (model.max_iter, model.n_jobs, model.verbose) == (500, None, 0)


def test_starts_are_split_only_where_they_can_be_prescribed():
    assert can_split(GaussianMixture())
    assert not can_split(GaussianMixture(means_init=[[0.0]]))
    assert not can_split(MixtureOfPPCA())
    assert not can_split(GaussianMixture(covariance_type="no such"))


def test_a_constant_column_and_float32_are_split_too(X):
    flat = np.column_stack([X[:, 0], np.full(len(X), 3.0)]).astype(np.float32)
    diagonal = GaussianMixture(covariance_type="diag")
    with pytest.warns(UserWarning, match="set aside"):
        search = MixtureSearch(diagonal, n_components=(1, 2, 3), random_state=0).fit(flat)
    assert not any(search.results_["error"])
