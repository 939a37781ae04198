"""MixtureClustering: groups of any shape, their number, and what the rows do not tell."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import mixfold
from mixfold import GaussianMixture, KMeans, MixtureClustering, MixtureSearch, PoissonMixture
from mixfold.estimators.search.mixture_clustering import describe_clusters, expected_loss


def ring(n, rng):
    angle, inner = rng.uniform(0, 2 * np.pi, n), np.arange(n) < n // 3
    X = 4 * np.c_[np.cos(angle), np.sin(angle)] + 0.3 * rng.normal(size=(n, 2))
    X[inner] = 0.5 * rng.normal(size=(inner.sum(), 2))
    return X, inner * 1


def banana(n, rng):
    angle = rng.uniform(-1.4, 1.4, n)
    return 5 * np.c_[np.sin(angle), np.cos(angle)] + 0.5 * rng.normal(size=(n, 2)), np.zeros(n)


def blobs(n, rng):
    y = np.arange(n) % 5
    centres = np.array([[0, 0], [4, 0], [0, 4], [4, 4], [8, 2]])
    return 0.75 * rng.normal(size=(n, 2)) + centres[y], y


def square(n, rng):
    return rng.uniform(size=(n, 2)), np.zeros(n)


def noisy(n, rng):
    """Two groups, with a seventh of the rows anywhere."""
    y = np.arange(n) % 2
    X = 0.5 * rng.normal(size=(n, 2)) + 6 * y[:, None] * [1, 0]
    X[::7] = rng.uniform(-4, 10, size=X[::7].shape)
    return X, y


def close(n, rng):
    """Two standard deviations apart: a single peak."""
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + 2 * y[:, None] * [1, 0], np.zeros(n)


def skewed(n, rng):
    return rng.lognormal(0, 0.9, size=(n, 2)), np.zeros(n)


def quiet_fit(estimator, X, **sides):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimator.fit(X, **sides)


@pytest.mark.parametrize(
    ("make", "clusters"),
    [(ring, 2), (blobs, 5), (square, 1), (noisy, 2), (close, 1)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_the_number_of_clusters_is_found(make, clusters):
    X, y = make(600, np.random.default_rng(0))
    found = quiet_fit(MixtureClustering(max_components=12, random_state=0), X)
    assert found.n_clusters_ == clusters
    if make in (ring, blobs):
        assert adjusted_rand_score(y, found.labels_) > 0.9
    if make is ring:
        assert found.mixture_.n_components > 2


RING, INNER = ring(300, np.random.default_rng(1))
FOUND = quiet_fit(MixtureClustering(max_components=10, random_state=0), RING)


def test_attributes_agree_with_each_other():
    P = FOUND.predict_proba(RING)
    np.testing.assert_array_equal(FOUND.labels_, P.argmax(axis=1))
    np.testing.assert_array_equal(FOUND.labels_, FOUND.predict(RING))
    np.testing.assert_array_equal(FOUND.probabilities_, P.max(axis=1))
    np.testing.assert_array_equal(FOUND.between_, P.max(axis=1) < 0.8)
    assert FOUND.weights_.shape == (2,) and FOUND.weights_[0] > FOUND.weights_[1]
    np.testing.assert_allclose(FOUND.score_samples(RING), FOUND.mixture_.score_samples(RING))
    assert FOUND.score(RING) == pytest.approx(FOUND.score_samples(RING).mean())
    drawn, labels = FOUND.sample(200, random_state=0)
    assert np.mean(FOUND.predict(drawn) == labels) > 0.95
    assert FOUND.search_.best_estimator_ is FOUND.mixture_
    K = FOUND.mixture_.n_components
    assert describe_clusters(FOUND) == f"2 clusters made of {K} components"
    assert FOUND.summary().startswith(f"2 clusters made of {K} components")


def test_a_number_of_clusters_that_is_asked_for():
    found = quiet_fit(MixtureClustering(3, max_components=10, random_state=0), RING)
    assert found.n_clusters_ == 3 == len(np.unique(found.labels_))
    assert found.search_.results_["n_components"].min() == 3
    two = quiet_fit(MixtureClustering(2, max_components=10, random_state=0), RING)
    assert adjusted_rand_score(two.labels_, INNER) > 0.95


def squares(n, rng):
    """Four squares of even density, close to each other, which are no Gaussians."""
    y = np.arange(n) % 4
    return rng.random((n, 2)) + 1.15 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[y], y


def test_nothing_is_combined_where_each_cluster_is_a_component():
    X, y = squares(900, np.random.default_rng(0))
    found = quiet_fit(MixtureClustering(4, max_components=12, random_state=0), X)
    search = found.search_
    most = search.best_estimator_.n_components
    assert most > 4 == found.mixture_.n_components
    assert adjusted_rand_score(y, found.labels_) > 0.98
    icl = dict(zip(search.results_["n_components"], search.results_["icl"], strict=True))
    assert icl[4] < icl[most]
    assert sum(note.startswith("clusters are components: ICL") for note in found.notes_) == 1
    # the groups of RING are no components: there ICL has nothing against more of them
    two = quiet_fit(MixtureClustering(2, max_components=10, random_state=0), RING)
    assert two.mixture_ is two.search_.best_estimator_
    assert not any("ICL" in note for note in two.notes_)


def test_threshold_instead_of_the_test():
    found = quiet_fit(MixtureClustering(threshold=0.01, max_components=10, random_state=0), RING)
    assert found.n_clusters_ == found.tree_.count_above(0.01)


def test_rows_between_clusters_are_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) + 5 * (np.arange(400) % 2)[:, None] * [1, 0]
    found = quiet_fit(MixtureClustering(max_components=3, random_state=0), X)
    assert found.n_clusters_ == 2
    rows, pairs = found.find_between([[2.5, 0.0], [0.0, 0.0], [2.5, 0.3]])
    assert rows.tolist() == [0, 2]
    assert sorted(pairs[0].tolist()) == [0, 1]


def test_overlapping_groups_stay_what_they_are():
    """Three standard deviations apart: too near to prove a dip, and right as Gaussians."""
    rng = np.random.default_rng(1)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 2)) + 3 * y[:, None] * [1, 0]
    model = GaussianMixture(2, random_state=0).fit(X)
    found = model.combine(X=X)
    assert found.n_clusters_ == 2
    assert "no dip of the density is proven" in found.notes_[-1]
    # a narrow group on the flank of a wide one has no dip, however many rows there are
    y = (np.arange(4000) % 5 < 2) * 1
    wide = 2 * rng.normal(size=(4000, 2))
    X = np.where(y[:, None] == 1, 0.2 * rng.normal(size=(4000, 2)) + [2, 0], wide)
    found = GaussianMixture(2, random_state=0).fit(X).combine(X=X)
    assert found.n_clusters_ == 2 and found.notes_ == []


@pytest.mark.parametrize("make", [banana, skewed])
def test_one_group_of_another_shape_is_one_cluster_or_a_note(make):
    X, _ = make(600, np.random.default_rng(0))
    found = quiet_fit(MixtureClustering(max_components=12, random_state=0), X)
    assert found.n_clusters_ == 1 or "for one cluster set n_clusters=1" in found.notes_[-1]
    far = np.r_[X, X + np.array([30, 0])]  # two of them are told apart, each of them whole
    assert quiet_fit(MixtureClustering(max_components=12, random_state=0), far).n_clusters_ == 2


def test_few_rows_do_not_tell_and_a_note_says_so():
    rng = np.random.default_rng(3)
    X = np.r_[rng.normal(size=(40, 1)), 9 + 0.3 * rng.normal(size=(4, 1))]
    model = GaussianMixture(2, random_state=0).fit(X)
    found = model.combine(X=X)
    assert "the data do not tell whether there are clusters" in found.notes_[0]
    more = np.r_[X, 9 + 0.3 * rng.normal(size=(20, 1))]
    assert GaussianMixture(2, random_state=0).fit(more).combine(X=more).n_clusters_ == 2
    with pytest.warns(UserWarning, match="the data do not tell"):
        MixtureClustering(estimator=GaussianMixture(), max_components=2, random_state=0).fit(X)


def test_weight_two_is_repetition():
    weight = np.random.default_rng(0).integers(0, 3, len(RING))
    settings = {"max_components": 8, "random_state": 0}
    one = quiet_fit(MixtureClustering(**settings), RING, sample_weight=weight)
    other = quiet_fit(MixtureClustering(**settings), np.repeat(RING, weight, axis=0))
    used = weight > 0
    assert one.n_clusters_ == other.n_clusters_ == 2
    assert adjusted_rand_score(one.labels_[used], other.predict(RING[used])) > 0.99


def test_saving_and_loading_keep_it(tmp_path):
    FOUND.save(tmp_path / "clusters")
    again = mixfold.load(tmp_path / "clusters")
    np.testing.assert_array_equal(again.predict_proba(RING), FOUND.predict_proba(RING))
    assert again.notes_ == FOUND.notes_
    assert not hasattr(again, "labels_")  # rows are not part of a model
    assert mixfold.load(tmp_path / "clusters").n_clusters == "auto"


def test_missing_entries_and_files(tmp_path):
    gaps = np.where(np.random.default_rng(0).random(RING.shape) < 0.05, np.nan, RING)
    np.save(tmp_path / "rows.npy", gaps)
    found = quiet_fit(MixtureClustering(max_components=8, random_state=0), tmp_path / "rows.npy")
    assert found.n_clusters_ == 2
    assert adjusted_rand_score(found.labels_, INNER) > 0.8


def test_counts_of_another_family():
    rng = np.random.default_rng(1)
    counts = rng.poisson(np.repeat([[2.0, 20.0], [20.0, 2.0]], 100, axis=0)).astype(float)
    found = quiet_fit(MixtureClustering(estimator=PoissonMixture(), max_components=4), counts)
    assert found.n_clusters_ == 2


def test_kinds_of_covariances_of_many_columns():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    X = rng.normal(size=(200, 8)) + 4 * np.eye(8)[y]
    found = quiet_fit(MixtureClustering(max_components=5, random_state=0), X)
    assert found.mixture_.covariance_type == "diag"
    assert adjusted_rand_score(found.labels_, y) > 0.9


def test_as_many_components_as_clusters_decide_the_kind_of_covariance():
    rng = np.random.default_rng(1)
    y = np.arange(300) % 2
    # skewed groups whose columns depend on each other
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.6 * rng.normal(size=(300, 6))
    X = np.exp(0.5 * (X + 2.0 * y[:, None] * [1, -1, 1, 0, 0, 0]))
    found = quiet_fit(MixtureClustering(2, max_components=8, random_state=0), X)
    assert found.mixture_.covariance_type == "full"
    assert "param_covariance_type" not in found.search_.results_  # of one kind
    # few rows of many columns without correlations
    y = np.arange(150) % 3
    X = rng.normal(size=(150, 20)) + 4 * np.eye(20)[y]
    found = quiet_fit(MixtureClustering(3, max_components=6, random_state=0), X)
    assert found.mixture_.covariance_type == "diag"
    assert adjusted_rand_score(found.labels_, y) > 0.9


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_the_loss_that_is_expected_of_new_rows(kind):
    """Against new rows of the same Gaussian, few beside the columns."""
    rng = np.random.default_rng(3)
    differences = []
    for _ in range(200):
        X, fresh = rng.normal(size=(2, 16, 5))
        model = GaussianMixture(1, covariance_type=kind, reg_covar=0).fit(X)
        differences.append(expected_loss(model, 5) + 2 * 16 * model.score(fresh))
    error = np.std(differences) / np.sqrt(len(differences))
    assert abs(np.mean(differences)) < 3 * error
    # twice the number of parameters is too little
    assert expected_loss(model, 5) - model.aic() > (5 * error if kind == "full" else 0)
    few = quiet_fit(GaussianMixture(2, covariance_type=kind, reg_covar=0.1), X[:14])
    assert np.isinf(expected_loss(few, 5)) == (kind == "full")


def test_classes_of_few_rows_do_not_hide_correlations():
    """Full covariances of so many components end at their floor; those of fewer are looked at."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [150, 120, 60, 3])
    mix = np.eye(6) + 0.5 * rng.normal(size=(4, 6, 6))
    X = 2.5 * rng.normal(size=(4, 6))[y] + np.einsum(
        "nd,nde->ne", rng.normal(size=(333, 6)), mix[y]
    )
    X = np.c_[X.round(1), y == 3]
    found = quiet_fit(MixtureClustering(4, max_components=6, random_state=0), X)
    assert found.mixture_.covariance_type == "full"
    assert adjusted_rand_score(y, found.labels_) > 0.8


def test_all_rows_equal():
    found = quiet_fit(MixtureClustering(max_components=3), np.ones((20, 2)))
    assert found.n_clusters_ == 1
    assert found.labels_.tolist() == [0] * 20


def test_more_components_end_the_search_when_they_are_no_better():
    X, _ = blobs(300, np.random.default_rng(2))
    full = GaussianMixture()
    search = MixtureSearch(full, n_components=range(1, 31), patience=2, random_state=0).fit(X)
    tried = search.results_["n_components"]
    assert tried.tolist() == list(range(1, search.best_params_["n_components"] + 3))
    whole = MixtureSearch(full, n_components=tried, random_state=0).fit(X)
    assert whole.best_params_ == search.best_params_
    # the best size and those that could be as good have starts of their own, others may be worse
    bic, all_bic = search.results_["bic"], whole.results_["bic"]
    best = search.best_index_
    np.testing.assert_allclose(bic[best : best + 2], all_bic[best : best + 2], rtol=1e-6)
    assert (bic >= all_bic - 1e-6 * abs(all_bic)).all()
    # what is far behind was grown from smaller ones alone, which is what makes the search cheap
    assert (np.array(search.results_["start"])[1 : best - 1] == "split").all()


def test_a_search_that_ends_at_its_limit_says_so():
    words = "largest that was tried, 3"
    found = quiet_fit(MixtureClustering(max_components=3, random_state=0), RING)
    assert sum(words in note for note in found.notes_) == 1
    assert not any("largest that was tried" in note for note in FOUND.notes_)
    asked = quiet_fit(MixtureClustering(3, max_components=3, random_state=0), RING)
    assert not any(words in note for note in asked.notes_)


@pytest.mark.slow
def test_thin_rings_need_more_components_than_are_usual():
    rng = np.random.default_rng([9, 1000])
    rows = []
    for radius in (1.0, 1.5, 2.0):
        turn = 2 * np.pi * rng.random(333)
        at = np.column_stack([np.cos(turn), np.sin(turn)])
        rows.append((radius + 0.03 * rng.normal(size=(333, 1))) * at)
    found = quiet_fit(MixtureClustering(random_state=0), np.concatenate(rows))
    assert found.mixture_.n_components > 30
    assert adjusted_rand_score(found.labels_, np.repeat([0, 1, 2], 333)) > 0.99


def test_a_search_that_grows_finds_what_fits_of_all_sizes_find():
    """On groups that splits alone do not find: a ring around a blob, in noise."""
    X, _ = ring(400, np.random.default_rng(3))
    X = np.r_[X, np.random.default_rng(4).uniform(X.min(0), X.max(0), (40, 2))]
    full = GaussianMixture()
    sizes = range(1, 13)
    grown = MixtureSearch(full, n_components=sizes, patience=5, random_state=0).fit(X)
    tried = grown.results_["n_components"]
    whole = MixtureSearch(full, n_components=tried, random_state=0).fit(X)
    assert grown.best_score_ <= whole.best_score_ + 2  # a difference that says nothing


def test_a_kind_that_is_far_behind_gets_no_starts_of_its_own():
    rng = np.random.default_rng(5)
    shape = np.array([[1.0, 0.95], [0.95, 1.0]])
    X = np.r_[
        rng.multivariate_normal([0, 0], shape, 150), rng.multivariate_normal([4, -4], shape, 150)
    ]
    grid = {"covariance_type": ["full", "diag"]}
    search = MixtureSearch(
        GaussianMixture(), grid, n_components=range(1, 8), patience=2, random_state=0
    ).fit(X)
    assert search.best_params_ == {"n_components": 2, "covariance_type": "full"}
    diag = np.array(search.results_["param_covariance_type"]) == "diag"
    larger = np.array(search.results_["n_components"]) > 1
    assert (np.array(search.results_["start"])[diag & larger] == "split").all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_clusters": 0}, "'n_clusters' parameter of MixtureClustering must be an int >= 1"),
        ({"n_clusters": True}, "'n_clusters' parameter"),
        ({"n_clusters": "some"}, "'n_clusters' parameter"),
        ({"n_clusters": 51}, "n_clusters=51 is more than max_components=50"),
        ({"n_clusters": 2, "threshold": 0.1}, "n_clusters=2 or threshold=0.1, not both"),
        ({"threshold": 2}, "threshold must be a number between 0 and 1"),
        ({"max_components": 0}, "'max_components' parameter"),
        ({"alpha": 1.5}, "'alpha' parameter"),
        ({"min_probability": 0}, "'min_probability' parameter"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        MixtureClustering(**settings).fit(RING)


@pytest.mark.parametrize("estimator", [KMeans(), GaussianMixture, "full", mixfold.GaussianPCP()])
def test_what_has_no_components_is_refused(estimator):
    with pytest.raises(TypeError, match="estimator must be a mixture"):
        MixtureClustering(estimator=estimator).fit(RING)


def test_patience_and_rows_held_out():
    with pytest.raises(ValueError, match="patience=2 ends a search before rows are held out"):
        MixtureSearch(patience=2, cv=3).fit(RING)
    with pytest.raises(ValueError, match="'patience' parameter"):
        MixtureSearch(patience=0).fit(RING)
