"""One row far away from all others leaves the others their groups, and is told of."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mixfold import (
    BayesianGaussianMixture,
    DegenerateWarning,
    GaussianMixture,
    GaussianPCP,
    KMeans,
    Mixture,
    MixtureOfFactorAnalyzers,
    MixtureOfPPCA,
    MixtureSearch,
    MultinomialMixture,
    NestedMixture,
    PoissonMixture,
)
from mixfold.contracts import Event
from mixfold.engine.state import add_step_events
from mixfold.families import GAUSSIAN
from mixfold.math.frame import bulk_of, far_rows, frame_of

GROUP = np.repeat([0, 1, 2], 100)


def table(outlier=(1e6, 1e6)):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + np.array([[0, 0], [8, 0], [0, 8]])[GROUP]
    return np.vstack([X, [outlier]])


@pytest.mark.parametrize("kind", GAUSSIAN)
@pytest.mark.parametrize("outlier", [(1e6, 1e6), (-1e6, 3.0)])
def test_the_outlier_is_alone_and_the_others_keep_their_groups(kind, outlier):
    X = table(outlier)
    with pytest.warns(DegenerateWarning, match=r"a single row .* remove that row .* or add"):
        model = GaussianMixture(4, covariance_type=kind, random_state=0).fit(X)
    labels = model.predict(X)
    assert (labels == labels[-1]).sum() == 1
    assert adjusted_rand_score(GROUP, labels[:-1]) > 0.95
    # what the message says helps: with three, the outlier has one of them, which is told, too
    with pytest.warns(DegenerateWarning, match="a single row"):
        GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    without = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X[:-1])
    assert adjusted_rand_score(GROUP, without.predict(X[:-1])) > 0.95


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_units_order_and_repetition_do_not_matter():
    X = table()
    model = GaussianMixture(4, random_state=0).fit(X)
    order = np.random.default_rng(1).permutation(len(X))
    scaled = GaussianMixture(4, random_state=0).fit(X[order] * [1000, 0.5])
    np.testing.assert_allclose(
        scaled.lower_bound_, model.lower_bound_ - np.log(500), rtol=1e-6, atol=1e-6
    )
    assert adjusted_rand_score(scaled.predict(X * [1000, 0.5]), model.predict(X)) > 0.99
    twice = GaussianMixture(4, random_state=0).fit(np.vstack([X, X]))
    weighed = GaussianMixture(4, random_state=0).fit(X, sample_weight=np.full(len(X), 2.0))
    np.testing.assert_allclose(twice.lower_bound_, weighed.lower_bound_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_a_search_takes_the_outlier_for_a_group_of_its_own_and_says_so():
    search = MixtureSearch(GaussianMixture(), n_components=(2, 3, 4, 5), random_state=0)
    search.fit(table())
    assert search.best_params_ == {"n_components": 4}
    assert any("single row" in note for note in search.notes_)


def test_frames_are_robust_only_where_a_few_rows_are_all_of_the_spread():
    rng = np.random.default_rng(2)
    tame = np.column_stack(
        [rng.normal(size=2000), rng.lognormal(0, 1.5, 2000), rng.standard_t(3, 2000)]
    )
    weight = rng.uniform(0.5, 2, 2000)
    frame = frame_of(tame, weight, robust=True)
    w = weight / weight.sum()
    np.testing.assert_allclose(frame.origin, w @ tame, rtol=1e-12)
    np.testing.assert_allclose(frame.scale, np.sqrt(w @ (tame - w @ tame) ** 2), rtol=1e-12)
    wild = tame.copy()
    wild[7] = 1e9
    robust = frame_of(wild, weight, robust=True)
    assert (np.abs(robust.scale / frame.scale) < 3).all()
    # weights are repetitions
    counts = rng.integers(1, 4, 2000)
    one, other = (
        frame_of(wild, counts.astype(float), robust=True),
        frame_of(wild.repeat(counts, 0), np.ones(counts.sum()), robust=True),
    )
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-12)
    # a column of which most entries are the same has no middle to be measured
    flat = np.zeros((1000, 1))
    flat[0] = 1e6
    np.testing.assert_allclose(
        frame_of(flat, np.ones(1000), robust=True).scale, flat.std(), rtol=1e-12
    )


# ------------------------------------------------ every mixture

N = 60
OF_ROW = np.repeat([0, 1, 2], N)
CENTRES = 8 * np.array([[0, 0, 0], [1, 1, 0], [0, 1, 1]])
RATES = np.array([[5, 40, 10], [40, 5, 10], [10, 10, 80]])


def numbers():
    return np.random.default_rng(0).normal(size=(3 * N, 3)) + CENTRES[OF_ROW]


def counts():
    return np.random.default_rng(0).poisson(RATES[OF_ROW]).astype(float)


def words():
    rng = np.random.default_rng(0)
    shares = 0.1 + 0.7 * np.eye(3)
    return np.array([rng.multinomial(60, shares[k]) for k in OF_ROW]).astype(float)


def mixed():
    rng = np.random.default_rng(1)
    codes = np.where(rng.random(3 * N) < 0.8, OF_ROW, rng.integers(0, 3, 3 * N))
    return np.column_stack([numbers(), codes])


PARTS = {"diag": [0, 1, 2], "categorical": [3]}
MIXTURES = {
    "bayes-full": (lambda K: BayesianGaussianMixture(K, max_iter=500, random_state=0), numbers),
    "bayes-diag": (
        lambda K: BayesianGaussianMixture(
            K, covariance_type="diag", max_iter=500, random_state=0
        ),
        numbers,
    ),
    "bayes-spherical": (
        lambda K: BayesianGaussianMixture(
            K, covariance_type="spherical", max_iter=500, random_state=0
        ),
        numbers,
    ),
    "ppca": (lambda K: MixtureOfPPCA(K, n_factors=1, random_state=0), numbers),
    "factors": (lambda K: MixtureOfFactorAnalyzers(K, n_factors=1, random_state=0), numbers),
    "nested": (lambda K: NestedMixture(K, random_state=0), numbers),
    "pcp": (lambda K: GaussianPCP(K, random_state=0), numbers),
    "pcp-em": (lambda K: GaussianPCP(K, inference="em", random_state=0), numbers),
    "kmeans": (lambda K: KMeans(K, random_state=0), numbers),
    "poisson": (lambda K: PoissonMixture(K, random_state=0), counts),
    "negative binomial": (lambda K: Mixture("negative-binomial", K, random_state=0), counts),
    "multinomial": (lambda K: MultinomialMixture(K, random_state=0), words),
    "vb": (lambda K: Mixture("full", K, inference="vb", random_state=0), numbers),
    "vb-poisson": (lambda K: Mixture("poisson", K, inference="vb", random_state=0), counts),
    "mixed": (lambda K: Mixture(PARTS, K, random_state=0), mixed),
    "vb-mixed": (lambda K: Mixture(PARTS, K, inference="vb", random_state=0), mixed),
}  # fmt: skip


def with_outlier(X, value, columns=(0, 1, 2)):
    row = np.floor(np.median(X, axis=0))
    row[list(columns)] = value
    return np.vstack([X, row])


def fit_and_listen(model, X, **options):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, **options)
    return model.predict(X), " ".join(str(warning.message) for warning in said)


def is_told(model, said):
    return "far away from all others" in said and "outlier" in [e.kind for e in model.events_]


def check_both(make, X, **options):
    """One more component than groups: all is right. As many: right, or told."""
    n = len(OF_ROW)
    labels, _ = fit_and_listen(make(4), X, **options)
    assert adjusted_rand_score(OF_ROW, labels[:n]) > 0.95
    assert (labels == labels[-1]).sum() == 1
    model = make(3)
    labels, said = fit_and_listen(model, X, **options)
    right = adjusted_rand_score(OF_ROW, labels[:n]) > 0.95
    assert right or is_told(model, said)
    alone = np.bincount(labels)[labels[-1]] == 1
    assert is_told(model, said) or not alone
    for event in model.events_:  # the component that is named is the one of the row
        own = event.component >= 0 and not isinstance(model, NestedMixture)
        if event.kind == "outlier" and own:
            assert "single row" in event.message and event.component == labels[-1]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        (name, columns)
        for name in MIXTURES
        for columns in [(0, 1, 2), (1,), (2,)]
        # a long text of all words is no outlier for a multinomial law of words
        if name != "multinomial" or len(columns) < 3
    ],
)
def test_every_mixture_leaves_the_others_their_groups_or_tells(name, columns):
    make, rows = MIXTURES[name]
    check_both(make, with_outlier(rows(), 1e6, columns))


@pytest.mark.parametrize("name", [n for n, (_, rows) in MIXTURES.items() if rows is numbers])
@pytest.mark.parametrize("value", [-1e6, 1e3])
def test_of_either_sign_and_not_so_far(name, value):
    make, rows = MIXTURES[name]
    check_both(make, with_outlier(rows(), value, (0,)))


@pytest.mark.parametrize("name", ["bayes-full", "factors", "ppca", "vb", "vb-mixed", "poisson"])
def test_with_missing_entries_and_weights(name):
    make, rows = MIXTURES[name]
    X = with_outlier(rows(), 1e6, (1,))
    rng = np.random.default_rng(3)
    check_both(make, X, sample_weight=rng.uniform(0.5, 1.3, len(X)))
    holes = rng.random(X.shape) < 0.03
    holes[-1] = False
    holes[holes.sum(axis=1) > 1] = False
    X[holes] = np.nan
    n = len(OF_ROW)
    labels, _ = fit_and_listen(make(4), X)
    assert adjusted_rand_score(OF_ROW, labels[:n]) > 0.95
    model = make(3)
    labels, said = fit_and_listen(model, X)
    assert adjusted_rand_score(OF_ROW, labels[:n]) > 0.95 or is_told(model, said)


@pytest.mark.parametrize("name", ["bayes-full", "ppca", "factors", "kmeans", "poisson", "vb-mixed"])
def test_two_outliers(name):
    make, rows = MIXTURES[name]
    X = rows()
    both = (1e6, -2e6) if X.min() < 0 else (1e6, 3e6)
    X = with_outlier(with_outlier(X, both[0], (0,)), both[1], (0,))
    n = len(OF_ROW)
    labels, _ = fit_and_listen(make(5), X)
    assert adjusted_rand_score(OF_ROW, labels[:n]) > 0.95
    assert not np.isin(labels[:n], labels[n:]).any()
    for K in (3, 4):
        model = make(K)
        labels, said = fit_and_listen(model, X)
        assert adjusted_rand_score(OF_ROW, labels[:n]) > 0.95 or is_told(model, said)


def test_two_outliers_on_both_sides_of_the_others_are_told_of():
    X = np.vstack([numbers(), [[1e6, 0, 0]], [[-1e6, 0, 0]]])  # whose mean is among the others
    for kind in ("full", "diag", "spherical"):
        for K in (2, 3):
            model = GaussianMixture(K, covariance_type=kind, random_state=0)
            _, said = fit_and_listen(model, X)
            assert is_told(model, said)


def test_a_covariance_of_all_components_that_is_that_of_one_row_is_told_of():
    X = with_outlier(numbers(), 1e6, (0,))
    model = BayesianGaussianMixture(3, covariance_type="tied", max_iter=500, random_state=0)
    _, said = fit_and_listen(model, X)
    assert "outlier" in [event.kind for event in model.events_]
    assert "far away from all others" in said
    other = BayesianGaussianMixture(3, covariance_type="tied", max_iter=500, random_state=0)
    fit_and_listen(other, X[:-1])
    assert not other.events_


def test_what_a_tied_covariance_takes_of_one_row_is_what_the_prior_of_its_mean_says():
    """A mean that is believed to lie near the middle, as one row with the precision beta, goes only
    1 / (1 + beta) of the way to the row; beta / (1 + beta) of the squared distance stays in the
    scatter, which all components share. A weaker prior of the means leaves it to the row."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 300)
    X = np.vstack([rng.normal(size=(300, 3)) + group[:, None] * [8.0, 0, 0], [1e6, 4, 4]])
    made = {}
    for beta in (1.0, 1e-12):
        model = BayesianGaussianMixture(
            4, covariance_type="tied", mean_precision_prior=beta, random_state=0, max_iter=500
        )
        made[beta], said = fit_and_listen(model, X)
        assert "far away from all others" in said
        variance = model.covariances_[0, 0]
        if beta == 1:
            np.testing.assert_allclose(variance, beta / (1 + beta) * 1e12 / 301, rtol=0.03)
            assert "column 0 that all components share" in said  # more components are no remedy
        else:
            assert variance < 2
    assert adjusted_rand_score(group, made[1e-12][:-1]) > 0.95
    # so much for the default: the groups are lost in that column, and the row is named
    assert adjusted_rand_score(group, made[1.0][:-1]) < 0.5
    full = BayesianGaussianMixture(4, random_state=0, max_iter=500)  # "covariances of their own"
    labels, _ = fit_and_listen(full, X)
    assert adjusted_rand_score(group, labels[:-1]) > 0.95


def test_the_prior_does_not_follow_one_row():
    X = numbers()
    model = BayesianGaussianMixture(4, random_state=0).fit(X)
    far = BayesianGaussianMixture(4, random_state=0)
    fit_and_listen(far, with_outlier(X, 1e6))
    np.testing.assert_allclose(far.covariance_prior_, model.covariance_prior_, rtol=1e-6)
    np.testing.assert_allclose(far.mean_prior_, model.mean_prior_, rtol=1e-6)


def test_kmeans_in_single_precision_keeps_the_digits_of_the_others():
    X = with_outlier(numbers(), 1e9, (0,)).astype(np.float32)
    model = KMeans(4, random_state=0)
    labels, said = fit_and_listen(model, X)
    assert adjusted_rand_score(OF_ROW, labels[:-1]) > 0.95
    assert "cluster" in said and "add a cluster" in said


def test_nothing_is_told_of_heavy_tails_and_small_groups():
    rng = np.random.default_rng(0)
    heavy = rng.standard_t(3, size=(400, 2))
    small = np.vstack([numbers(), numbers()[:5] + 30])
    for X in (heavy, small):
        for make in (lambda: GaussianMixture(4, random_state=0), lambda: KMeans(4, random_state=0)):
            model = make()
            fit_and_listen(model, X)
            assert "outlier" not in [event.kind for event in model.events_]


def test_what_is_no_longer_so_is_not_told():
    """A component that held a far row on the way, and others in the end."""
    gone = add_step_events((Event("outlier", "a", 1, 0), Event("drop", "b", 1, 1)), ())
    assert [event.kind for event in gone] == ["drop"]
    before = (Event("drop", "b", 1, 1), Event("outlier", "a few", 1, 0))
    still = add_step_events(before, (Event("outlier", "one", 2, 0),))
    assert [event.message for event in still] == ["one", "b"]


def test_where_most_rows_are_is_measured_in_columns_that_are_mostly_zero_too():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(1000) < 0.92, 0.0, rng.normal(50, 5, 1000))
    x[0] = 1e6
    bulk = bulk_of(x[:, None], np.ones(1000))
    assert bulk.origin[0] == 0 and 1 < bulk.scale[0] < 30
    assert far_rows(x[:, None], bulk).nonzero()[0].tolist() == [0]
    flat = np.zeros((100, 1))
    flat[0] = 1e6
    assert not far_rows(flat, bulk_of(flat, np.ones(100))).any()
