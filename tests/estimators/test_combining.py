"""``combine`` of fitted mixtures: sums of probabilities, laws of the tree, bad input."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import mixfold
from mixfold import (
    BayesianGaussianMixture,
    GaussianMixture,
    KMeans,
    Mixture,
    MixtureClustering,
    MixtureSearch,
    NestedMixture,
    PoissonMixture,
)
from mixfold.estimators.mixtures.combining import look_at_rows
from tests.brief import BRIEF, fitted

COMBINED = [
    "BayesianGaussianMixture", "BernoulliMixture", "CategoricalMixture", "GaussianMixture",
    "GaussianPCP", "MLiT", "Mixture", "MixtureOfFactorAnalyzers", "MixtureOfPPCA",
    "MultinomialMixture", "NestedMixture", "PoissonMixture",
]  # fmt: skip


def ring(n=600, seed=0):
    """A ring around a blob, a third of the rows."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    X = 4 * np.c_[np.cos(angle), np.sin(angle)] + 0.3 * rng.normal(size=(n, 2))
    X[: n // 3] = 0.5 * rng.normal(size=(n // 3, 2))
    return X


X = ring()
MODEL = GaussianMixture(8, random_state=0).fit(X)


def same_clusters(one, other):
    """Whether two labelings are the same partition."""
    pairs = set(zip(np.asarray(one).tolist(), np.asarray(other).tolist(), strict=True))
    return len(pairs) == len(set(np.asarray(one).tolist())) == len(set(np.asarray(other).tolist()))


def test_every_mixture_of_the_catalogue_is_here():
    have = {n for n in BRIEF if hasattr(getattr(mixfold, n), "combine")}
    assert have == {*COMBINED, "KMeans", "MixtureSearch"}


@pytest.mark.parametrize("name", COMBINED)
def test_probabilities_are_the_sums_of_those_of_components(name):
    model, rows = fitted(name), BRIEF[name][1]
    for n_clusters in (1, 2 if len(model.weights_) > 1 else 1):
        found = model.combine(n_clusters, X=rows)
        shares = model.predict_proba(rows)
        assert found.mixture_ is model
        assert found.n_clusters_ == n_clusters
        of = found.cluster_of_component_
        sums = np.stack([shares[:, of == k].sum(axis=1) for k in range(n_clusters)], axis=1)
        np.testing.assert_allclose(found.predict_proba(rows), sums, atol=1e-12)
        np.testing.assert_allclose(found.predict_proba(rows).sum(axis=1), 1)
        np.testing.assert_allclose(np.exp(found.predict_log_proba(rows)), sums, atol=1e-9)
        np.testing.assert_array_equal(found.predict(rows), sums.argmax(axis=1))
        np.testing.assert_allclose(found.weights_.sum(), 1)


@pytest.mark.parametrize("name", COMBINED)
def test_rows_alone_decide_where_nothing_is_asked_for(name):
    model, rows = fitted(name), BRIEF[name][1]
    found = model.combine(X=rows)
    assert 1 <= found.n_clusters_ <= len(found.cluster_of_component_)
    # asking for as many as are found gives what is found
    asked = model.combine(found.n_clusters_, X=rows)
    np.testing.assert_array_equal(asked.cluster_of_component_, found.cluster_of_component_)
    with pytest.raises(ValueError, match="decided by rows: give X"):
        model.combine()


@pytest.mark.parametrize("name", [name for name in COMBINED if name != "MLiT"])
def test_a_model_alone_can_be_combined(name):
    found = fitted(name).combine(1)
    assert found.cluster_of_component_.tolist() == [0] * len(found.cluster_of_component_)


def test_a_mixture_that_learned_from_a_stream(tmp_path):
    model = GaussianMixture(8, random_state=0)
    order = np.random.default_rng(1).permutation(len(X))
    for _ in range(5):
        for part in np.array_split(X[order], 3):
            model.partial_fit(part)
    model.save(tmp_path / "stream.mixfold")
    for found in (model.combine(2), mixfold.load(tmp_path / "stream.mixfold").combine(2, X=X)):
        assert same_clusters(found.predict(X), np.arange(len(X)) < len(X) // 3)
    assert model.combine(X=X[order]).n_clusters_ == 2


def test_draws_of_the_model_give_the_tree_of_its_rows():
    one, other = MODEL.combine(2), MODEL.combine(2, X=X)
    assert same_clusters(one.cluster_of_component_, other.cluster_of_component_)
    np.testing.assert_array_equal(one.tree_.level, MODEL.combine(3).tree_.level)
    again = MODEL.combine(2, random_state=5)
    assert (again.tree_.level != one.tree_.level).any()


def test_mlit_cannot_draw_and_says_so():
    with pytest.raises(ValueError, match=r"MLiT cannot draw rows .* give combine the rows, X"):
        fitted("MLiT").combine(1)


def test_as_many_clusters_as_components_are_the_components():
    found = MODEL.combine(8, X=X)
    assert sorted(found.cluster_of_component_.tolist()) == list(range(8))
    np.testing.assert_array_equal(
        found.predict_proba(X)[:, found.cluster_of_component_], MODEL.predict_proba(X)
    )


def test_ring_and_blob_from_eight_components():
    found = MODEL.combine(2, X=X)
    truth = np.arange(len(X)) < len(X) // 3
    assert same_clusters(found.predict(X), truth)
    assert MODEL.combine(X=X).n_clusters_ == 2
    assert same_clusters(MODEL.combine(X=X).predict(X), truth)


def test_two_groups_without_a_dip_are_named_and_pieces_of_a_ring_are_not():
    rng = np.random.default_rng(3)
    long = rng.normal(size=(2, 400, 2)) * [3.0, 0.4]
    far = rng.normal(size=(200, 2)) + np.array([20, 0])
    crossed = np.concatenate([long[0], long[1][:, ::-1], far])
    start = [[0, 0], [0, 0.1], [20, 0]]
    shapes = [np.diag([1 / 9, 6.0]), np.diag([6.0, 1 / 9]), np.eye(2)]
    mixture = GaussianMixture(3, means_init=start, precisions_init=shapes).fit(crossed)
    found = mixture.combine(X=crossed)
    assert found.n_clusters_ == 2
    (words,) = (w for w in found.notes_ if "groups that overlap" in w)
    assert "components 0 and 1 are one group" in words
    # its remedy
    assert mixture.combine(3, X=crossed).n_clusters_ == 3
    assert not any("groups that overlap" in words for words in MODEL.combine(X=X).notes_)


def test_noise_between_groups_is_no_cluster_of_its_own():
    """Rows of wide noise are taken for others' less often than the groups are for each other."""
    rng = np.random.default_rng(0)
    parts = []
    for at, side in (([0, 0], 1), ([1, 0.4], -1)):
        turn = np.pi * rng.random(300)
        arc = np.column_stack([np.cos(turn), side * np.sin(turn)])
        parts.append(arc + at + 0.08 * rng.normal(size=(300, 2)))
    rows = np.concatenate([*parts, rng.uniform([-1.5, -1.2], [2.5, 1.6], (80, 2))])
    model = GaussianMixture(10, random_state=0).fit(rows)
    truth = np.repeat([0, 1], 300)
    found = model.combine(2, X=rows).predict(rows[:600])
    assert adjusted_rand_score(truth, found) > 0.95
    by_overlap = model.combine(threshold=0.0, X=rows).tree_.cut(2)[model.predict(rows[:600])]
    assert adjusted_rand_score(truth, by_overlap) < 0.1


def test_threshold_stops_the_merges():
    levels = MODEL.combine(1, X=X).tree_.level
    for t in (0.5, 0.05, 1e-3):
        assert MODEL.combine(threshold=t, X=X).n_clusters_ == 8 - np.sum(levels > t)
    assert MODEL.combine(threshold=1.0, X=X).n_clusters_ == 8


def permuted(model, order):
    """The same mixture with its components in another order."""
    other = GaussianMixture(
        len(order),
        weights_init=model.weights_[order],
        means_init=model.means_[order],
        precisions_init=np.linalg.inv(model.covariances_[order]),
        max_iter=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return other.fit(X)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_clusters", [None, 3])
def test_order_of_components_and_rows_does_not_matter(seed, n_clusters):
    rng = np.random.default_rng(seed)
    order = rng.permutation(8)
    one = permuted(MODEL, np.arange(8)).combine(n_clusters, X=X)
    other = permuted(MODEL, order).combine(n_clusters, X=X[rng.permutation(len(X))])
    np.testing.assert_array_equal(one.cluster_of_component_[order], other.cluster_of_component_)
    np.testing.assert_allclose(one.tree_.level, other.tree_.level, rtol=1e-6)


def test_blocks_and_threads_do_not_matter(tmp_path):
    one = MODEL.combine(3, X=X)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    other = MODEL.combine(3, X=path)
    few = mixfold.load(saved(MODEL, tmp_path)).set_params(n_jobs=1).combine(3, X=X)
    for found in (other, few):
        np.testing.assert_array_equal(one.tree_.linkage(), found.tree_.linkage())


def saved(model, folder):
    model.save(folder / "model.mixfold")
    return folder / "model.mixfold"


def test_more_rows_than_the_limit_are_a_seeded_sample(monkeypatch):
    monkeypatch.setattr("mixfold.estimators.mixtures.combining.ROWS", 100)
    rows = look_at_rows(MODEL, X, None, 0)
    assert rows.shares.n_rows == 100
    one, two = (MODEL.combine(2, X=X, random_state=s).tree_.level for s in (0, 0))
    np.testing.assert_array_equal(one, two)
    assert (MODEL.combine(2, X=X, random_state=1).tree_.level != one).any()


def test_weight_two_is_repetition_and_weight_zero_absence():
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    for n_clusters in (None, 2):
        one = MODEL.combine(n_clusters, X=X, sample_weight=weight)
        other = MODEL.combine(n_clusters, X=np.repeat(X, weight, axis=0))
        np.testing.assert_allclose(one.tree_.level, other.tree_.level, rtol=1e-9)
        np.testing.assert_array_equal(one.cluster_of_component_, other.cluster_of_component_)


def test_saving_and_loading_keep_it(tmp_path):
    found = MODEL.combine(3, X=X)
    found.save(tmp_path / "clusters.mixfold")
    again = mixfold.load(tmp_path / "clusters.mixfold")
    assert isinstance(again, MixtureClustering)
    np.testing.assert_array_equal(again.predict_proba(X), found.predict_proba(X))
    np.testing.assert_array_equal(again.tree_.linkage(), found.tree_.linkage())
    np.testing.assert_array_equal(again.weights_, found.weights_)
    assert again.get_params()["n_clusters"] == 3


def test_files_of_other_mixtures(tmp_path):
    for name in ("PoissonMixture", "NestedMixture", "MixtureOfPPCA", "BayesianGaussianMixture"):
        model, rows = fitted(name), BRIEF[name][1]
        found = model.combine(2, X=rows)
        found.save(tmp_path / name)
        np.testing.assert_array_equal(
            mixfold.load(tmp_path / name).predict(rows), found.predict(rows)
        )


def test_missing_entries_and_sparse_rows():
    rng = np.random.default_rng(0)
    gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    gaps[0] = np.nan  # says nothing
    model = GaussianMixture(8, random_state=0).fit(X)
    found = model.combine(X=gaps)
    assert found.n_clusters_ == 2
    np.testing.assert_allclose(found.predict_proba(gaps).sum(axis=1), 1)
    one = model.combine(X=sparse.csr_matrix(X))
    np.testing.assert_array_equal(
        one.cluster_of_component_, model.combine(X=X).cluster_of_component_
    )


def test_counts_are_told_apart_by_their_odds():
    rng = np.random.default_rng(1)
    counts = rng.poisson(np.repeat([[2.0, 20.0], [20.0, 2.0]], 150, axis=0)).astype(float)
    found = PoissonMixture(3, random_state=0).fit(counts).combine(X=counts)
    assert found.n_clusters_ == 2
    assert same_clusters(found.predict(counts), np.repeat([0, 1], 150))
    one = rng.poisson(5.0, size=(300, 2)).astype(float)
    assert PoissonMixture(3, random_state=0).fit(one).combine(X=one).n_clusters_ == 1


def test_codes_and_a_mixed_table():
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], 200)
    codes = (rng.random((400, 6)) < np.where(y[:, None] == 0, 0.05, 0.95)).astype(float)
    found = mixfold.CategoricalMixture(3, random_state=0).fit(codes).combine(X=codes)
    assert found.n_clusters_ == 2
    assert np.mean((found.predict(codes) == found.predict(codes[:1])) == (y == 0)) > 0.95
    table = np.c_[codes, 5 * y + rng.normal(size=400)]
    family = {"bernoulli": list(range(6)), "diag": [6]}
    mixed = Mixture(family, 3, random_state=0).fit(table)
    assert mixed.combine(X=table).n_clusters_ == 2


def test_columns_that_were_set_aside():
    """A column that is the sum of two others has no density of its own."""
    wide = np.c_[X, X.sum(axis=1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianMixture(8, random_state=0).fit(wide)
    assert model.combine(X=wide).n_clusters_ == 2


def test_names_of_columns():
    """Parts of a table are asked about without its names, and without a warning."""
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'mixfold[tables]'")
    table = pandas.DataFrame(X, columns=["width", "height"])
    model = GaussianMixture(8, random_state=0).fit(table)
    assert model.combine(X=table).n_clusters_ == 2
    gaps = table.mask(np.random.default_rng(0).random(X.shape) < 0.05)
    assert model.combine(X=gaps).n_clusters_ == 2


def test_variational_components_without_rows():
    model = BayesianGaussianMixture(12, random_state=0).fit(X)
    found = model.combine(2, X=X)
    assert same_clusters(found.predict(X), np.arange(len(X)) < len(X) // 3)
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1)


def test_a_component_of_weight_zero():
    base = permuted(MODEL, np.arange(8))
    weights = base.weights_.copy()
    weights[3] = 0.0
    model = Mixture("full", 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianMixture(
            8, weights_init=weights / weights.sum(), means_init=base.means_,
            precisions_init=np.linalg.inv(base.covariances_), max_iter=0,
        ).fit(X)  # fmt: skip
    found = model.combine(7, X=X)
    assert found.tree_.n_used == 7
    assert len(np.unique(found.cluster_of_component_)) == 7
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1)
    with pytest.raises(ValueError, match=r"has 8, of which 1 have no share .* at most 7"):
        model.combine(8, X=X)
    assert model.combine(threshold=1.0, X=X).n_clusters_ == 7


def test_all_rows_equal():
    same = np.zeros((30, 2))
    found = MODEL.combine(X=same)
    assert found.n_clusters_ == 1
    assert MODEL.combine(1, X=same).n_clusters_ == 1


def test_leaves_of_a_nested_mixture():
    model = NestedMixture(2, 3, random_state=0).fit(X)
    assert len(model.combine(1, X=X).cluster_of_component_) == 2
    assert len(model.flatten().combine(1, X=X).cluster_of_component_) == model.n_leaves_


def test_a_search_combines_its_best():
    search = MixtureSearch(n_components=[7, 8], random_state=0).fit(X)
    found = search.combine(2, X=X)
    assert found.mixture_ is search.best_estimator_


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_clusters": 9}, "n_clusters=9 is more than .* the mixture has 8.* at most 8"),
        ({"n_clusters": 0}, "n_clusters must be an int >= 1.* got 0"),
        ({"n_clusters": -2}, "n_clusters must be an int >= 1"),
        ({"n_clusters": True}, "n_clusters must be an int >= 1.* got True"),
        ({"n_clusters": 2.0}, "n_clusters must be an int >= 1.* got 2.0"),
        ({"n_clusters": "two"}, "n_clusters must be an int >= 1, 'auto' or None; got 'two'"),
        ({"n_clusters": 2, "threshold": 0.1}, "give n_clusters=2 or threshold=0.1, not both"),
        ({"threshold": 1.5}, "threshold must be a number between 0 and 1"),
        ({"threshold": True}, "threshold must be a number between 0 and 1"),
        ({"threshold": float("nan")}, "threshold must be a number between 0 and 1"),
        ({"alpha": 0.0}, "'alpha' .* must be a number between 0 and 1"),
        ({"n_clusters": 2, "X": np.ones((3, 5))}, "5 features"),
        ({"n_clusters": 2, "X": np.full((3, 2), np.nan)}, "no row of positive weight"),
    ],
)  # fmt: skip
def test_bad_input(options, words):
    with pytest.raises(ValueError, match=words):
        MODEL.combine(**{"X": X, **options})


def test_weights_without_rows():
    with pytest.raises(ValueError, match="sample_weight is that of the rows of X"):
        MODEL.combine(2, sample_weight=np.ones(5))


def test_unfitted_and_kmeans():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        GaussianMixture(2).combine(1)
    with pytest.raises(TypeError, match=r"KMeans has no probabilities .*tied-spherical"):
        KMeans(3, random_state=0).fit(X).combine(2)


def test_the_way_that_the_refusal_of_kmeans_names():
    kmeans = KMeans(12, random_state=0).fit(X)
    model = GaussianMixture(
        12, covariance_type="tied-spherical", means_init=kmeans.cluster_centers_
    ).fit(X)
    found = model.combine(2, X=X)
    assert same_clusters(found.predict(X), np.arange(len(X)) < len(X) // 3)


def test_a_dask_collection_gives_the_tree_of_its_table(client):
    array = pytest.importorskip("dask.array", reason="needs Dask: pip install 'mixfold[dask]'")
    X = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0], [3], [9]], 100, axis=0)
    model = GaussianMixture(3, random_state=0).fit(X)
    one, other = (model.combine(X=rows) for rows in (X, array.from_array(X, chunks=(70, 2))))
    np.testing.assert_array_equal(one.cluster_of_component_, other.cluster_of_component_)
    np.testing.assert_allclose(one.tree_.level, other.tree_.level, atol=1e-12)
