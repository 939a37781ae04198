"""A search fits what it says, compares by what it says, and hands out the best."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import KFold

import mixfold
import mixfold.engine.sources
from mixfold import (
    PPCA,
    BayesianGaussianMixture,
    DegenerateWarning,
    GaussianMixture,
    KMeans,
    Mixture,
    MixtureOfFactorAnalyzers,
    MixtureOfPPCA,
    MixtureSearch,
)
from mixfold.estimators.search.candidates import settings

KINDS = {"covariance_type": ["full", "diag"]}


@pytest.fixture(scope="module")
def X():
    """Three groups in two columns, one of which has far larger units."""
    rng = np.random.default_rng(5)
    group = rng.integers(0, 3, 240)
    return rng.normal(size=(240, 2)) * [1, 100] + group[:, None] * [7, 0]


def same_tables(one, other):
    assert one.keys() == other.keys()
    for name in one.keys() - {"seconds"}:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


# ------------------------------------------------ what is tried


def test_every_estimator_parameter_and_size_is_tried_once():
    grid = {"covariance_type": ["full", "diag"], "n_factors": [1, 2]}
    found = settings([GaussianMixture(), MixtureOfPPCA()], grid, (3, 1))
    tried = [(s.name, s.params) for s in found]
    assert tried == [
        ("GaussianMixture", {"n_components": k, "covariance_type": kind})
        for kind in ("full", "diag")
        for k in (1, 3)
    ] + [("MixtureOfPPCA", {"n_components": k, "n_factors": d}) for d in (1, 2) for k in (1, 3)]
    assert [s.group for s in found] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert all(s.estimator.get_params()["n_components"] == s.n_components for s in found)


def test_parameters_of_one_estimator_leave_the_others_alone():
    named = {"a": GaussianMixture(), "b": GaussianMixture(tol=1e-3), "c": MixtureOfPPCA()}
    found = settings(named, [{"a__covariance_type": ["tied", "diag"]}], 2)
    assert [(s.name, s.params.get("covariance_type")) for s in found] == [
        ("a", "tied"), ("a", "diag"), ("b", None), ("c", None),
    ]  # fmt: skip
    assert found[2].estimator.tol == 1e-3


def test_a_list_of_grids_may_have_sizes_of_its_own():
    grids = [{"covariance_type": ["full"], "n_components": [1, 2]}, {"covariance_type": ["diag"]}]
    found = settings(None, grids, [4])
    assert [(s.params["covariance_type"], s.n_components) for s in found] == [
        ("full", 1), ("full", 2), ("diag", 4),
    ]  # fmt: skip


def test_defaults_are_gaussian_mixtures_of_one_to_nine():
    found = settings(None, None, None)
    assert [s.n_components for s in found] == 4 * list(range(1, 10))
    assert {type(s.estimator) for s in found} == {GaussianMixture}
    kinds = {s.params["covariance_type"] for s in found}
    assert kinds == {"full", "tied", "diag", "tied-diag"}
    alone = settings(GaussianMixture(), None, None)
    assert [s.params for s in alone] == [{"n_components": k} for k in range(1, 10)]


def test_two_of_a_class_have_names_of_their_own():
    found = settings([GaussianMixture(), GaussianMixture(tol=1e-3)], None, 1)
    assert [s.name for s in found] == ["GaussianMixture", "GaussianMixture-2"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"estimator": GaussianMixture}, TypeError, "must be an estimator object"),
        ({"estimator": []}, ValueError, "estimator is empty"),
        ({"estimator": KMeans()}, ValueError, "KMeans has none"),
        ({"estimator": GaussianMixture(checkpoint="f")}, ValueError, "leave checkpoint at None"),
        ({"param_grid": {"covarance_type": ["full"]}}, ValueError, "mean 'covariance_type'"),
        ({"param_grid": ["full"]}, TypeError, "param_grid must be a dict"),
        ({"n_components": 0}, ValueError, "n_components must be an int >= 1"),
        ({"n_components": []}, ValueError, "n_components must be an int >= 1"),
        ({"n_components": "3"}, ValueError, "n_components must be an int >= 1"),
        ({"n_components": [1, 2.5]}, ValueError, "n_components must be an int >= 1"),
        ({"criterion": "dic"}, ValueError, "'criterion' parameter of MixtureSearch"),
        ({"cv": 1}, ValueError, "'cv' parameter of MixtureSearch"),
        ({"cv": 1.5}, ValueError, "'cv' parameter of MixtureSearch"),
        ({"test": 0}, ValueError, "'test' parameter of MixtureSearch"),
    ],
)
def test_mistakes_are_told_before_the_work(X, arguments, error, words):
    with pytest.raises(error, match=words):
        MixtureSearch(**arguments).fit(X)


# ------------------------------------------------ what is compared


def test_the_table_holds_the_numbers_of_single_fits(X):
    search = MixtureSearch(
        GaussianMixture(), KINDS, n_components=(1, 2, 3), split_starts=False, random_state=3
    ).fit(X)
    table = search.results_
    for i, params in enumerate(table["params"]):
        fit = GaussianMixture(**params, random_state=3).fit(X)
        for name in ("bic", "aic", "icl"):
            assert table[name][i] == pytest.approx(getattr(fit, name)(), rel=1e-12)
        assert table["log_likelihood"][i] == pytest.approx(fit.score_samples(X).sum(), rel=1e-12)
        free = (fit.bic() - fit.aic()) / (np.log(len(X)) - 2)
        assert table["n_parameters"][i] == pytest.approx(free)
        assert (table["n_iter"][i], table["converged"][i]) == (fit.n_iter_, fit.converged_)
    assert search.best_index_ == np.argmin(table["bic"])
    np.testing.assert_allclose(table["delta"], table["bic"] - table["bic"].min())


@pytest.mark.parametrize("criterion", ["bic", "aic", "icl"])
def test_the_best_is_that_of_the_criterion(X, criterion):
    search = MixtureSearch(
        GaussianMixture(), n_components=range(1, 6), criterion=criterion, random_state=0
    ).fit(X)
    values = search.results_[criterion]
    assert search.best_score_ == values.min() == values[search.best_index_]
    assert search.best_params_ == {"n_components": search.best_estimator_.n_components}
    assert search.estimators_[search.best_index_] is search.best_estimator_


def test_unscaled_columns_do_not_hide_the_groups():
    """Groups six deviations apart beside a column a hundred times as wide: three, not one."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 100)
    X = np.column_stack([rng.normal(6 * group), 100 * rng.normal(size=300)])
    grid = {"covariance_type": ["full", "tied", "diag", "spherical"]}
    search = MixtureSearch(GaussianMixture(), grid, n_components=range(1, 5), random_state=0)
    search.fit(X)
    assert search.best_params_["n_components"] == 3
    assert adjusted_rand_score(group, search.predict(X)) > 0.98


# BIC of mclust (its models VVV, EEE and VVI) for the iris, with the sign that lower is better
PUBLISHED = {
    "full": [829.9782, 574.0178, 580.8396, 630.6000],
    "tied": [829.9782, 688.0972, 632.9647, 646.0258],
    "diag": [1522.1202, 857.5515, 744.6382, 751.0198],
}


def test_the_iris_as_by_mclust_or_better():
    from sklearn.datasets import load_iris

    grid = {"covariance_type": list(PUBLISHED)}
    search = MixtureSearch(GaussianMixture(), grid, n_components=(1, 2, 3, 4), random_state=0)
    found = search.fit(load_iris().data).results_["bic"].reshape(3, 4)
    published = np.array(list(PUBLISHED.values()))
    assert (found < published + 0.01).all()
    np.testing.assert_allclose(found[:, :2], published[:, :2], atol=1e-2)
    assert search.best_params_ == {"n_components": 2, "covariance_type": "full"}


def test_old_faithful_as_by_mclust(shared_data):
    X = np.loadtxt(shared_data("old_faithful.csv"), delimiter=",", skiprows=1)
    grid = {"covariance_type": ["full", "tied", "diag"]}
    search = MixtureSearch(GaussianMixture(), grid, n_components=(1, 2, 3, 4), random_state=0)
    assert search.fit(X).best_params_ == {"n_components": 3, "covariance_type": "tied"}
    assert search.best_score_ == pytest.approx(2314.316, abs=0.03)  # log-likelihood -1126.326
    assert search.best_score_ < 2314.316


def test_of_equals_the_one_with_fewer_parameters_is_best():
    class Flat(GaussianMixture):
        def _totals(self, X, sample_weight=None):
            return 0.0, 1.0, 0.0  # BIC 0 whatever the parameters, of which ln 1 charges nothing

    X = np.random.default_rng(0).normal(size=(50, 1))
    search = MixtureSearch(Flat(), {"covariance_type": ["full"]}, n_components=(3, 1, 2)).fit(X)
    np.testing.assert_array_equal(search.results_["bic"], 0)
    assert search.best_params_["n_components"] == 1


def test_weights_count_rows(X):
    weight = np.random.default_rng(2).integers(0, 3, len(X))
    options = {"n_components": (1, 2, 3), "random_state": 0}
    weighted = MixtureSearch(GaussianMixture(), **options).fit(X, sample_weight=weight)
    with pytest.warns(UserWarning, match="equal to another row"):
        repeated = MixtureSearch(GaussianMixture(), **options).fit(np.repeat(X, weight, axis=0))
    for name in ("log_likelihood", "bic", "icl"):
        np.testing.assert_allclose(weighted.results_[name], repeated.results_[name], rtol=1e-5)


def test_labels_reach_the_fits_and_too_few_components_for_them_fail(X):
    labels = np.full(len(X), -1)
    first, last = np.argmin(X[:, 0]), np.argmax(X[:, 0])
    labels[first], labels[last] = 0, 2
    search = MixtureSearch(GaussianMixture(), n_components=(2, 3), random_state=0)
    search.fit(X, component_labels=labels)
    assert "component_labels" in search.results_["error"][0]
    assert search.best_params_ == {"n_components": 3}
    np.testing.assert_array_equal(search.predict(X[[first, last]]), [0, 2])


def test_several_kinds_of_mixture(X):
    rng = np.random.default_rng(0)
    wide = np.column_stack([X, X @ [[1, 2], [0, 1]] + rng.normal(size=X.shape)])
    kinds = [GaussianMixture(), MixtureOfPPCA(), MixtureOfFactorAnalyzers()]
    search = MixtureSearch(kinds, {"n_factors": [1, 2]}, n_components=(1, 2), random_state=0)
    table = search.fit(wide).results_
    assert list(dict.fromkeys(table["label"])) == [
        "GaussianMixture",
        "MixtureOfPPCA, n_factors=1",
        "MixtureOfPPCA, n_factors=2",
        "MixtureOfFactorAnalyzers, n_factors=1",
        "MixtureOfFactorAnalyzers, n_factors=2",
    ]
    assert table["param_n_factors"] == [None, None, 1, 1, 2, 2, 1, 1, 2, 2]
    for model, bic in zip(search.estimators_, table["bic"], strict=True):
        assert model.bic() == pytest.approx(bic, rel=1e-12)


def test_bounds_count_the_numberings_of_components(X):
    """ln K! where components are exchangeable and in use; nothing where sticks have an order."""
    options = {"max_iter": 300, "tol": 1e-5}
    kinds = {
        "equal": BayesianGaussianMixture(
            weight_concentration_prior_type="dirichlet_distribution", **options
        ),
        "sticks": BayesianGaussianMixture(**options),
        "likelihood": GaussianMixture(),
    }
    search = MixtureSearch(kinds, n_components=(1, 3, 6), criterion="bound", random_state=0)
    table = search.fit(X).results_
    for i, model in enumerate(search.estimators_[:6]):
        used = [n for n in range(model.n_components) if n < model.effective_components_]
        numberings = np.prod([model.n_components - n for n in used]) if i < 3 else 1
        expected = model.evidence_bound_ + np.log(numberings)
        assert table["bound"][i] == pytest.approx(expected, rel=1e-12)
        # criteria are those of the density at the point of the posterior
        assert table["bic"][i] == pytest.approx(model.bic(X), rel=1e-12)
        assert table["icl"][i] == pytest.approx(model.icl(X), rel=1e-12)
    assert np.isnan(table["bound"][6:]).all()
    assert search.best_score_ == np.nanmax(table["bound"])
    assert search.best_estimator_.effective_components_ == 3


def test_counts_and_their_families():
    rng = np.random.default_rng(0)
    counts = rng.poisson([[3, 30]] * 80 + [[30, 3]] * 60 + [[40, 40]] * 60)
    search = MixtureSearch(Mixture("poisson"), n_components=range(1, 6), random_state=0)
    assert search.fit(counts).best_params_ == {"n_components": 3}
    whole = MixtureSearch(Mixture("poisson"), n_components=(3,), random_state=0)
    csr = whole.fit(sparse.csr_array(counts.astype(float)))
    assert csr.best_score_ == pytest.approx(search.best_score_, rel=1e-9)


# ------------------------------------------------ what goes wrong


class Fragile(GaussianMixture):
    """Cannot have two components."""

    def fit(self, X, y=None, sample_weight=None, component_labels=None):
        if self.n_components == 2:
            raise RuntimeError("two is one too many")
        return super().fit(X, y, sample_weight, component_labels)


def test_a_failure_is_a_row_of_the_table(X):
    search = MixtureSearch(Fragile(), n_components=(1, 2, 3), random_state=0).fit(X)
    assert search.results_["error"] == ["", "RuntimeError: two is one too many", ""]
    assert search.estimators_[1] is None
    assert np.isnan([search.results_[n][1] for n in ("bic", "log_likelihood", "delta")]).all()
    assert search.best_params_ == {"n_components": 3}
    assert "two is one too many" in search.summary()


def test_if_all_fail_the_first_failure_is_raised(X):
    with pytest.raises(ValueError, match=r"None of the 2 settings.*n_components = 500"):
        MixtureSearch(GaussianMixture(), n_components=(500, 600)).fit(X)
    with pytest.raises(RuntimeError, match="two is one too many") as caught:
        MixtureSearch(Fragile(), n_components=2).fit(X)
    assert "None of the 1 settings" in caught.value.__notes__[0]


def test_an_interrupted_fit_ends_the_search(X):
    class Interrupted(GaussianMixture):
        def fit(self, X, y=None, sample_weight=None, component_labels=None):
            super().fit(X, y, sample_weight, component_labels)
            self.stop_reason_ = "interrupted"
            return self

    with pytest.raises(KeyboardInterrupt):
        MixtureSearch(Interrupted(), n_components=(1, 2)).fit(X)


@pytest.fixture(scope="module")
def heaps():
    """Two groups, and four times the same row: a component of no width fits it perfectly."""
    rng = np.random.default_rng(1)
    groups = rng.normal(size=(120, 2))
    groups[60:, 0] += 6
    return np.concatenate([groups, np.tile([[3.0, 9.0]], (4, 1))])


def test_a_collapsed_component_cannot_win(heaps):
    with pytest.warns(UserWarning, match=r"n_components=3\) would have a better BIC"):
        search = MixtureSearch(GaussianMixture(), n_components=(1, 2, 3), random_state=0).fit(heaps)
    table = search.results_
    assert table["degenerate"].tolist() == [False, False, True]
    assert np.argmin(table["bic"]) == 2  # what plain BIC would have chosen
    assert search.best_params_ == {"n_components": 2}
    assert np.isnan(table["delta"][2])
    assert "floor" in table["events"][2] and "floor" in search.summary()


def test_a_collapsed_component_wins_if_it_may_or_must(heaps):
    options = {"random_state": 0, "n_components": (1, 2, 3)}
    with pytest.warns(DegenerateWarning, match="best setting"):
        search = MixtureSearch(GaussianMixture(), allow_degenerate=True, **options).fit(heaps)
    assert search.best_params_ == {"n_components": 3}
    must = {**options, "n_components": (3, 4)}  # every setting has a component on one point
    with (
        pytest.warns(DegenerateWarning, match="best setting"),
        pytest.warns(UserWarning, match="In every setting"),
    ):
        MixtureSearch(GaussianMixture(), **must).fit(heaps)


def test_only_the_best_fit_warns(X):
    options = {"random_state": 0, "split_starts": False}
    slow = GaussianMixture(max_iter=1, tol=0)
    with pytest.warns(ConvergenceWarning, match="best setting") as caught:
        MixtureSearch(slow, n_components=(3, 4, 5), **options).fit(X)
    assert len(caught) == 1


def test_a_criterion_that_nothing_has_is_an_error(X):
    with pytest.raises(ValueError, match="criterion='bound' compares variational bounds"):
        MixtureSearch(GaussianMixture(), n_components=(1, 2), criterion="bound").fit(X)
    with pytest.raises(ValueError, match="criterion='icl' has no finite value"):
        MixtureSearch(PPCA(), n_components=1, criterion="icl").fit(X)


# ------------------------------------------------ held-out rows


def test_y_is_ignored_by_searches_of_mixtures(X):
    search = MixtureSearch(GaussianMixture(), n_components=[1, 2], random_state=0)
    y = np.zeros(len(X))
    found = search.fit(X, y).score_samples(X, y)
    np.testing.assert_array_equal(found, search.score_samples(X))


def test_held_out_numbers_are_those_of_a_loop_over_folds(X):
    weight = np.random.default_rng(4).integers(0, 4, len(X)).astype(float)
    pairs = list(KFold(3, shuffle=True, random_state=0).split(X))
    search = MixtureSearch(
        GaussianMixture(), n_components=(1, 3), criterion="held-out", cv=pairs, random_state=0
    )
    search.fit(X, sample_weight=weight)
    for i, size in enumerate((1, 3)):
        scores, used = [], []
        for train, test in pairs:
            fit = GaussianMixture(size, random_state=0).fit(X[train], sample_weight=weight[train])
            # a row of weight two is two rows
            scores.append(np.repeat(fit.score_samples(X[test]), weight[test].astype(int)))
            used.append(weight[test].sum())
        rows = np.concatenate(scores)
        error = rows.std(ddof=1) / np.sqrt(sum(used))
        assert search.results_["held_out"][i] == pytest.approx(rows.mean(), rel=1e-12)
        assert search.results_["held_out_se"][i] == pytest.approx(error, rel=1e-10)
    assert search.best_score_ == search.results_["held_out"].max()
    assert search.best_params_ == {"n_components": 3}
    # the best is fitted to all rows
    whole = GaussianMixture(3, random_state=0).fit(X, sample_weight=weight)
    assert search.best_estimator_.bic() == pytest.approx(whole.bic(), rel=1e-6)


def test_folds_are_drawn_by_seed_and_partition_the_rows():
    from mixfold.estimators.search.rows import folds

    X = np.zeros((23, 2))
    pairs = folds(X, 4, seed=1)
    assert sorted(np.concatenate([test for _, test in pairs])) == list(range(23))
    for train, test in pairs:
        assert sorted([*train, *test]) == list(range(23))
    assert [t.tolist() for _, t in folds(X, 4, 1)] == [t.tolist() for _, t in pairs]
    assert [t.tolist() for _, t in folds(X, 4, 2)] != [t.tolist() for _, t in pairs]
    ((train, test),) = folds(X, 0.3, 1)
    assert (len(train), len(test)) == (16, 7)
    (first, *_) = folds(X, KFold(2), 0)
    np.testing.assert_array_equal(first[1], np.arange(12))
    with pytest.raises(ValueError, match="n_samples=3"):
        folds(X[:3], 3.0 / 4, 0)


def test_rows_in_any_form_are_held_out_alike(X):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    holes = X.copy()
    holes[::7, 1] = np.nan
    holes[5] = np.nan  # says nothing, and is left out
    count = np.random.default_rng(0).integers(1, 3, len(X))
    columns = {"a": holes[:, 0], "b": holes[:, 1], "count": count}
    options = {"n_components": (1, 2), "criterion": "held-out", "cv": 2, "random_state": 0}
    diagonal = GaussianMixture(covariance_type="diag")
    with pytest.warns(UserWarning, match="no observed entry"):
        expected = MixtureSearch(diagonal, **options).fit(holes, sample_weight=count).results_
        for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
            search = MixtureSearch(diagonal, **options).fit(table, sample_weight="count")
            for name in ("held_out", "held_out_se", "bic"):
                np.testing.assert_allclose(search.results_[name], expected[name], rtol=1e-9)
            assert list(search.feature_names_in_) == ["a", "b"]


def test_sparse_rows_are_held_out_without_being_made_dense(rng):
    X = sparse.random_array((200, 6), density=0.3, format="csr", rng=rng)
    options = {"n_components": (1, 2), "criterion": "held-out", "cv": 2, "random_state": 0}
    diagonal = GaussianMixture(covariance_type="tied-diag")
    found = MixtureSearch(diagonal, **options).fit(X).results_
    dense = MixtureSearch(diagonal, **options).fit(X.toarray()).results_
    np.testing.assert_allclose(found["held_out"], dense["held_out"], rtol=1e-6)


def test_a_row_without_entries_is_not_scored(X):
    holes = np.concatenate([X, np.full((20, 2), np.nan)])
    pairs = [(np.arange(120), np.arange(120, 240))]
    with_empty = [(np.arange(120), np.arange(120, 260))]
    options = {"n_components": 2, "criterion": "held-out", "random_state": 0}
    expected = MixtureSearch(GaussianMixture(), cv=pairs, **options).fit(X).results_
    with pytest.warns(UserWarning, match="no observed entry"):
        found = MixtureSearch(GaussianMixture(), cv=with_empty, **options).fit(holes).results_
    for name in ("held_out", "held_out_se"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)


def test_a_fold_that_cannot_be_fitted_says_so(X):
    few = X[:12]
    search = MixtureSearch(
        GaussianMixture(), n_components=(1, 7), criterion="held-out", cv=2, random_state=0
    )
    search.fit(few)
    assert np.isnan(search.results_["held_out"][1])
    assert "n_components = 7" in search.results_["error"][1]
    assert search.best_params_ == {"n_components": 1}


def test_files_are_searched_but_not_held_out(X, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    options = {"n_components": (1, 2, 3), "random_state": 0}
    found = MixtureSearch(GaussianMixture(), **options).fit(path)
    np.testing.assert_allclose(
        found.results_["bic"],
        MixtureSearch(GaussianMixture(), **options).fit(X).results_["bic"],
        rtol=1e-9,
    )
    for files in (path, str(path), [path], mixfold.engine.sources.open_source(X)):
        with pytest.raises(ValueError, match="held-out rows are picked from data in memory"):
            MixtureSearch(GaussianMixture(), criterion="held-out", **options).fit(files)


# ------------------------------------------------ how it runs


def test_the_result_does_not_depend_on_the_number_of_threads(X):
    options = {"n_components": (1, 2, 3), "random_state": 0, "cv": 2}
    one = MixtureSearch(GaussianMixture(), KINDS, **options).fit(X)
    two = MixtureSearch(GaussianMixture(), KINDS, n_jobs=2, **options).fit(X)
    same_tables(one.results_, two.results_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert two.best_estimator_.n_jobs is None  # one thread was for the search only


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_source_that_counts_its_rows_as_it_reads_gives_the_same_for_any_threads(tmp_path):
    # more rows than the sample from which a fit starts
    X = np.random.default_rng(0).normal(size=(6000, 1))
    np.savetxt(tmp_path / "rows.csv", X, fmt="%.4f", header="a", comments="")
    quick = GaussianMixture(init_params="random_from_data", max_iter=1, tol=1e9)
    tables = []
    for n_jobs in (1, 4):
        source = mixfold.engine.sources.open_source(tmp_path / "rows.csv")
        search = MixtureSearch(quick, n_components=(2, 3, 4, 5), random_state=0, n_jobs=n_jobs)
        tables.append(search.set_params(split_starts=False).fit(source).results_)
    same_tables(*tables)


def test_seeds(X):
    options = {"n_components": (2, 4), "split_starts": False}
    random = GaussianMixture(init_params="random")
    first = MixtureSearch(random, random_state=1, **options).fit(X).results_
    same_tables(first, MixtureSearch(random, random_state=1, **options).fit(X).results_)
    other = MixtureSearch(random, random_state=2, **options).fit(X).results_
    assert (first["n_iter"] != other["n_iter"]).any()
    own = clone(random).set_params(random_state=1)
    same_tables(first, MixtureSearch(own, random_state=7, **options).fit(X).results_)


def test_verbose_tells_of_each_fit(X, capsys):
    MixtureSearch(GaussianMixture(), n_components=(1, 2), random_state=0).fit(X)
    assert capsys.readouterr() == ("", "")
    MixtureSearch(GaussianMixture(), n_components=(1, 2), random_state=0, verbose=1).fit(X)
    told = capsys.readouterr().err
    assert "fit 1 of 2: GaussianMixture(n_components=1)" in told and "fit 2 of 2" in told


# ------------------------------------------------ what is handed out


def test_the_best_estimator_answers(X):
    search = MixtureSearch(GaussianMixture(), n_components=(1, 3), random_state=0)
    with pytest.raises(NotFittedError):
        search.predict(X)
    search.fit(X)
    best = search.best_estimator_
    for name in ("predict", "predict_proba", "predict_log_proba", "score_samples", "score"):
        np.testing.assert_array_equal(getattr(search, name)(X), getattr(best, name)(X))
    holes = np.where(np.arange(2) == 1, np.nan, X[:5])
    np.testing.assert_array_equal(search.impute(holes), best.impute(holes))
    np.testing.assert_array_equal(search.sample(9, 1)[0], best.sample(9, 1)[0])
    assert search.score(X, sample_weight=np.arange(len(X))) != search.score(X)
    assert not hasattr(search, "transform")
    assert search.n_features_in_ == 2
    np.testing.assert_array_equal(search.fit_predict(X), search.predict(X))


def test_latents_are_offered_where_the_estimator_has_them(X):
    search = MixtureSearch(MixtureOfPPCA(), n_components=(1, 2), random_state=0)
    assert hasattr(search, "transform")
    assert search.fit_transform(X).shape == (len(X), 1)
    mixed = MixtureSearch([MixtureOfPPCA(), GaussianMixture()])
    assert not hasattr(mixed, "transform")


def test_saving_keeps_the_best_estimator(X, tmp_path):
    search = MixtureSearch(GaussianMixture(), KINDS, n_components=(2, 3), random_state=0).fit(X)
    search.save(tmp_path / "best.mixfold")
    loaded = mixfold.load(tmp_path / "best.mixfold")
    assert type(loaded) is GaussianMixture
    assert loaded.means_init is None
    np.testing.assert_array_equal(loaded.predict_proba(X), search.predict_proba(X))


def test_the_table_as_a_frame_and_as_text(X):
    search = MixtureSearch(GaussianMixture(), KINDS, n_components=(1, 3), random_state=0).fit(X)
    frame = search.to_frame()
    assert list(frame["param_covariance_type"]) == ["full", "full", "diag", "diag"]
    assert frame["bic"].idxmin() == search.best_index_
    lines = search.summary().splitlines()
    assert len(lines) == 5
    assert lines[1].startswith("*") and f"{search.best_score_:.6g}" in lines[1]
    quick = GaussianMixture(covariance_type="tied-diag", init_params="random_from_data")
    many = MixtureSearch(quick, n_components=range(1, 23), random_state=0, split_starts=False)
    assert "... and 2 more" in many.fit(X[:60]).summary()
