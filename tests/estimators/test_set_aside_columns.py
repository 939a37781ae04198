"""Columns that are constant or that others determine change no answer about the other columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import mixfold
from mixfold import (
    DegenerateWarning,
    GaussianMixture,
    Mixture,
    MixtureClassifier,
    MixtureOfPPCA,
    MixtureSearch,
    NestedMixture,
)
from mixfold.math.dependent_columns import propose_dependent_columns

KINDS = ["full", "tied", "diag", "spherical"]
pytestmark = pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")


def rounded():
    return np.round(np.random.default_rng(0).normal(size=(200, 3)))


def two_groups(n=300):
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, 3)) + 6 * rng.integers(0, 2, (n, 1)) * [1, 1, 0]


EXTRA = {
    "constant": lambda X: np.ones(len(X)),
    "copy": lambda X: X[:, 0],
    "units": lambda X: 1.8 * X[:, 1] + 32,
    "sum": lambda X: X[:, 0] + X[:, 1] + X[:, 2],
}


@pytest.fixture(scope="module")
def plain():
    return MixtureSearch(GaussianMixture(), n_components=range(1, 7), random_state=0).fit(rounded())


@pytest.mark.parametrize("extra", EXTRA)
def test_a_search_chooses_what_it_chooses_without_the_column(plain, extra):
    X = rounded()
    wide = np.column_stack([X, EXTRA[extra](X)])
    search = MixtureSearch(GaussianMixture(), n_components=range(1, 7), random_state=0).fit(wide)
    assert plain.best_params_ == {"n_components": 1}
    assert search.best_params_ == plain.best_params_
    np.testing.assert_array_equal(search.results_["degenerate"], plain.results_["degenerate"])
    np.testing.assert_array_equal(search.results_["n_parameters"], plain.results_["n_parameters"])
    sound = ~plain.results_["degenerate"]
    np.testing.assert_allclose(
        search.results_["bic"][sound], plain.results_["bic"][sound], rtol=1e-9
    )
    assert any("column 3" in note and "set aside" in note for note in search.notes_)
    assert "set aside" in search.summary()


@pytest.mark.parametrize("extra", EXTRA)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", [False, True])
def test_a_fit_is_that_of_the_table_without_the_column(kind, extra, missing):
    X = two_groups()
    added = EXTRA[extra](X).copy()
    if missing:
        rng = np.random.default_rng(2)
        X[rng.random(X.shape) < 0.1] = np.nan
        # where the added column is missing as well, nothing is recovered from it
        added[np.isnan(X).any(axis=1)] = np.nan
    before = extra == "copy"  # the first of a pair is kept
    wide = np.column_stack([added, X] if before else [X, added])
    own = slice(1, 4) if before else slice(0, 3)
    plain = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    with pytest.warns(DegenerateWarning, match="set aside"):
        model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(wide)
    assert model.n_features_in_ == 4
    assert model.means_.shape == (2, 4)
    assert model._n_parameters() == plain._n_parameters()
    np.testing.assert_allclose(model.score_samples(wide), plain.score_samples(X), atol=1e-9)
    np.testing.assert_allclose(model.bic(), plain.bic(), rtol=1e-12)
    np.testing.assert_allclose(model.means_[:, own], plain.means_, atol=1e-7)
    if kind == "full":  # the copy has the least variance beside that of what it copies
        atol = 2e-6 * wide[~np.isnan(wide).any(axis=1)].var(axis=0).max()
        np.testing.assert_allclose(model.covariances_[:, own, own], plain.covariances_, atol=atol)
    np.testing.assert_allclose(model.bic(wide), model.bic(), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(wide), plain.predict(X))


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_rows_that_come_out_have_all_columns(kind, tmp_path):
    X = two_groups()
    wide = np.column_stack([X, np.full(len(X), 7.0), 2 * X[:, 0] + 1])
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(wide)
    drawn = model.sample(50)[0]
    np.testing.assert_array_equal(drawn[:, 3], 7.0)
    np.testing.assert_allclose(drawn[:, 4], 2 * drawn[:, 0] + 1, atol=1e-12)
    holes = wide[:5].copy()
    holes[:, 3] = np.nan
    holes[:, 0] = np.nan  # what the copy says
    np.testing.assert_allclose(model.impute(holes), wide[:5], atol=1e-12)
    np.testing.assert_allclose(model.score_samples(holes), model.score_samples(wide[:5]))
    holes[:, 4] = np.nan
    filled = model.impute(holes)
    np.testing.assert_allclose(filled[:, 4], 2 * filled[:, 0] + 1, atol=1e-12)
    model.save(tmp_path / "m.mixfold")
    again = mixfold.load(tmp_path / "m.mixfold")
    np.testing.assert_array_equal(again.score_samples(wide), model.score_samples(wide))
    np.testing.assert_array_equal(again.means_, model.means_)
    given = model.condition(0, 1.5)
    assert given.n_features_in_ == 4
    if kind == "full":  # the others follow
        np.testing.assert_allclose(given.means_[:, 3], 4.0, atol=1e-3)


def test_a_row_that_breaks_the_rule_loses_by_the_floor():
    X = two_groups()
    wide = np.column_stack([X, 2 * X[:, 0]])
    model = GaussianMixture(2, reg_covar=1e-4, random_state=0).fit(wide)
    row = wide[:1].copy()
    row[0, 3] += 0.01 * wide[:, 3].std()
    lost = model.score_samples(wide[:1]) - model.score_samples(row)
    np.testing.assert_allclose(lost, 0.01**2 / (2 * 1e-4), rtol=1e-6)
    np.testing.assert_allclose(model.predict_proba(row), model.predict_proba(wide[:1]))


def test_a_column_that_varies_in_a_single_row_is_kept():
    X = two_groups(20_000)
    flag = np.zeros(len(X))
    flag[12_345] = 1
    almost = X[:, 0].copy()
    almost[17] += 1e-3
    model = GaussianMixture(1, random_state=0).fit(np.column_stack([X, flag, almost]))
    assert not [e for e in model.events_ if e.kind == "set-aside"]
    # whether or not the row is in the sample that a fit begins with
    for seed in range(3):
        model = GaussianMixture(1, random_state=seed).fit(np.column_stack([X, flag]))
        assert not [e for e in model.events_ if e.kind == "set-aside"]
    # rows without weight are absent
    weight = np.ones(len(X))
    weight[[17, 12_345]] = 0
    model.fit(np.column_stack([X, flag, almost]), sample_weight=weight)
    assert len([e for e in model.events_ if e.kind == "set-aside"]) == 2


def test_a_sum_is_kept_where_it_says_something_about_missing_entries():
    X = two_groups()
    total = X.sum(axis=1)
    X[:20, :2] = np.nan  # two terms are missing, and the sum is not
    model = GaussianMixture(1).fit(np.column_stack([X, total]))
    assert not [e for e in model.events_ if e.kind == "set-aside"]
    total[:20] = np.nan
    model.fit(np.column_stack([X, total]))
    assert [e for e in model.events_ if e.kind == "set-aside"]


def test_a_short_table_is_not_taken_for_a_redundant_one():
    X = np.random.default_rng(0).normal(size=(8, 7))
    assert propose_dependent_columns(X, X.min(axis=0), X.max(axis=0)) is None
    ones = np.ones((9, 2))
    assert propose_dependent_columns(ones, ones[0], ones[0]) is None


def test_other_rows_are_looked_at_anew_and_a_warm_start_is_dropped():
    X = two_groups()
    wide = np.column_stack([X, np.ones(len(X))])
    model = GaussianMixture(2, random_state=0, warm_start=True).fit(wide)
    varied = wide.copy()
    varied[:, 3] = np.random.default_rng(3).normal(size=len(X))
    model.fit(varied)
    plain = GaussianMixture(2, random_state=0).fit(varied)
    np.testing.assert_allclose(model.lower_bound_, plain.lower_bound_, rtol=1e-9)
    assert not model.events_


def test_sparse_rows_and_streams():
    X = np.abs(two_groups())
    wide = np.column_stack([X, np.zeros(len(X)), X[:, 2]])
    dense = GaussianMixture(2, covariance_type="diag", random_state=0).fit(wide)
    model = GaussianMixture(2, covariance_type="diag", random_state=0).fit(sparse.csr_array(wide))
    np.testing.assert_allclose(model.means_, dense.means_, atol=1e-6)
    np.testing.assert_allclose(
        model.score_samples(sparse.csr_array(wide)), dense.score_samples(wide), atol=1e-6
    )
    # a batch says nothing about the next
    stream = GaussianMixture(2, random_state=0).partial_fit(wide)
    assert stream._params.components.n_features == 5


def test_the_general_mixture_sets_the_same_columns_aside():
    X = two_groups()
    wide = np.column_stack([X, np.ones(len(X))])
    model = Mixture("full", 2, random_state=0).fit(wide)
    plain = Mixture("full", 2, random_state=0).fit(X)
    np.testing.assert_allclose(model.bic(), plain.bic(), rtol=1e-12)
    assert model.means_.shape == (2, 4)
    assert model.covariances_.shape == (2, 4, 4)


def test_classes_are_compared_on_all_columns():
    """What is constant in one class tells it from another."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 2))
    y = np.repeat([0, 1], 100)
    X[y == 0, 1] = 0.0
    model = MixtureClassifier(GaussianMixture()).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)


OTHER_MIXTURES = {
    "ppca": lambda D, size: mixfold.MixtureOfPPCA(size, 1, random_state=0),
    "factors": lambda D, size: mixfold.MixtureOfFactorAnalyzers(size, 1, random_state=0),
    "nested": lambda D, size: NestedMixture(size, 2, random_state=0),
    "mixed": lambda D, size: Mixture(
        {"categorical": [0], "full": range(1, D)}, size, random_state=0
    ),
    "parts": lambda D, size: Mixture(
        {"categorical": [0], "full": [1, 2, 3], **({"diag": range(4, D)} if D > 4 else {})},
        size,
        random_state=0,
    ),
}


def with_codes(kind, X):
    """The columns, after one of codes if the mixture is of a mixed table."""
    codes = np.random.default_rng(5).integers(0, 3, len(X))
    return np.column_stack([codes, X]) if kind in ("mixed", "parts") else X


# of rounded values some mixture of three would be better, were it not degenerate: both say so
@pytest.mark.filterwarnings("ignore:.* is degenerate and was refused:UserWarning")
@pytest.mark.parametrize("extra", ["constant", "copy"])
@pytest.mark.parametrize("kind", OTHER_MIXTURES)
def test_a_search_of_other_mixtures_chooses_what_it_chooses_without_the_column(kind, extra):
    X = rounded()
    X, wide = (with_codes(kind, A) for A in (X, np.column_stack([X, EXTRA[extra](X)])))
    settings = {"n_components": (1, 3), "random_state": 0}
    plain = MixtureSearch(OTHER_MIXTURES[kind](X.shape[1], 1), **settings).fit(X)
    search = MixtureSearch(OTHER_MIXTURES[kind](wide.shape[1], 1), **settings).fit(wide)
    assert plain.best_params_ == search.best_params_ == {"n_components": 1}
    np.testing.assert_array_equal(search.results_["degenerate"], plain.results_["degenerate"])
    np.testing.assert_array_equal(search.results_["n_parameters"], plain.results_["n_parameters"])
    sound = ~plain.results_["degenerate"]
    np.testing.assert_allclose(
        search.results_["bic"][sound], plain.results_["bic"][sound], rtol=1e-9
    )
    assert any(f"column {X.shape[1]}" in note and "set aside" in note for note in search.notes_)
    told = [any("was refused" in note for note in s.notes_) for s in (plain, search)]
    assert told[0] == told[1]


@pytest.mark.parametrize(("extra", "missing"), [("constant", True), ("copy", False), ("sum", True)])
@pytest.mark.parametrize("kind", OTHER_MIXTURES)
def test_a_fit_of_other_mixtures_is_that_without_the_column(kind, extra, missing, tmp_path):
    X = two_groups()
    added = EXTRA[extra](X).copy()
    if missing:
        rng = np.random.default_rng(2)
        X[rng.random(X.shape) < 0.1] = np.nan
        added[np.isnan(X).any(axis=1)] = np.nan
    X, wide = with_codes(kind, X), with_codes(kind, np.column_stack([X, added]))
    D = X.shape[1]
    plain = OTHER_MIXTURES[kind](D, 2).fit(X)
    with pytest.warns(DegenerateWarning, match="set aside"):
        model = OTHER_MIXTURES[kind](D + 1, 2).fit(wide)
    assert model.n_features_in_ == D + 1
    assert model.means_.shape[1] == D + 1
    assert model._n_parameters() == plain._n_parameters()
    np.testing.assert_allclose(model.score_samples(wide), plain.score_samples(X), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(wide), plain.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(model.bic(), plain.bic(), rtol=1e-12)
    np.testing.assert_allclose(model.means_[:, :D], plain.means_, atol=1e-7)
    drawn = model.sample(50, random_state=1)[0]
    own = slice(D - 3, D)
    np.testing.assert_allclose(drawn[:, D], EXTRA[extra](drawn[:, own]), atol=1e-12)
    np.testing.assert_allclose(drawn[:, :D], plain.sample(50, random_state=1)[0])
    if missing:
        filled = model.impute(wide)
        np.testing.assert_allclose(filled[:, :D], plain.impute(X), atol=1e-9)
        np.testing.assert_allclose(filled[:, D], EXTRA[extra](filled[:, own]), atol=1e-9)
    model.save(tmp_path / "m.mixfold")
    again = mixfold.load(tmp_path / "m.mixfold")
    np.testing.assert_array_equal(again.score_samples(wide), model.score_samples(wide))
    np.testing.assert_array_equal(again.means_, model.means_)
    # a stream begins with nothing set aside
    if kind != "nested":
        model.partial_fit(wide)
        assert model._params.components.n_features == D + 1


@pytest.mark.parametrize("kind", ["ppca", "factors"])
def test_latents_and_loadings_of_all_columns(kind):
    X = two_groups()
    wide = np.column_stack([X, np.ones(len(X)), 2 * X[:, 0] + 1])
    plain, model = OTHER_MIXTURES[kind](3, 2).fit(X), OTHER_MIXTURES[kind](5, 2).fit(wide)
    np.testing.assert_allclose(model.transform(wide), plain.transform(X), atol=1e-9)
    rebuilt = model.reconstruct(wide)
    np.testing.assert_allclose(rebuilt[:, :3], plain.reconstruct(X), atol=1e-9)
    np.testing.assert_allclose(rebuilt[:, 4], 2 * rebuilt[:, 0] + 1, atol=1e-9)
    Z = model.transform(wide)
    np.testing.assert_allclose(
        model.inverse_transform(Z)[:, :3], plain.inverse_transform(Z), atol=1e-9
    )
    np.testing.assert_allclose(model.loadings_[:, :3], plain.loadings_, atol=1e-7)
    np.testing.assert_array_equal(model.loadings_[:, 3], 0.0)
    np.testing.assert_allclose(model.loadings_[:, 4], 2 * model.loadings_[:, 0])
    if kind == "factors":
        np.testing.assert_allclose(
            model.noise_variance_[:, 4], 4 * plain.noise_variance_[:, 0], rtol=1e-2
        )
    else:
        np.testing.assert_allclose(model.noise_variance_, plain.noise_variance_, rtol=1e-9)


def test_published_covariances_of_a_mixed_table():
    X = two_groups()
    wide = with_codes("parts", np.column_stack([X, 2 * X[:, 0] + X[:, 1], np.ones(len(X))]))
    model = OTHER_MIXTURES["parts"](6, 2).fit(wide)
    full = model.parameters_["full"]["covariances"]
    diag = model.parameters_["diag"]["covariances"]
    rule = np.array([2.0, 1.0, 0.0])
    np.testing.assert_allclose(diag[:, 0], np.einsum("i,kij,j", rule, full, rule), rtol=1e-4)
    assert (diag[:, 1] > 0).all()
    assert (diag[:, 1] < 1e-3).all()
    within = Mixture({"categorical": [0], "full": range(1, 6)}, 2, random_state=0).fit(wide)
    found = within.parameters_["full"]["covariances"]
    np.testing.assert_allclose(found[:, :3, 3], found[:, :3, :3] @ rule, rtol=1e-9)
    assert (np.linalg.eigvalsh(found) > 0).all()
    # every part may be left out, if others remain
    alone = Mixture({"categorical": [0], "diag": [1]}, 2, random_state=0).fit(
        np.column_stack([wide[:, 0], np.ones(len(wide))])
    )
    assert alone.means_.shape == (2, 2)
    np.testing.assert_array_equal(alone.sample(5)[0][:, 1], 1.0)


CONDITIONED = {
    "full": lambda: GaussianMixture(2, random_state=0),
    "diag": lambda: GaussianMixture(2, covariance_type="diag", random_state=0),
    "ppca": lambda: MixtureOfPPCA(2, 1, random_state=0),
    "factors": lambda: mixfold.MixtureOfFactorAnalyzers(2, 1, random_state=0),
}


@pytest.mark.parametrize("kind", CONDITIONED)
def test_conditionals_keep_to_the_rules(kind):
    X = two_groups()
    wide = np.column_stack([X, np.full(len(X), 7.0), 2 * X[:, 0] + 1])
    plain, model = CONDITIONED[kind]().fit(X), CONDITIONED[kind]().fit(wide)
    # the copy says what the original is, and a constant says nothing
    for known, values in [([4], [4.0]), ([0], [1.5]), ([0, 4], [1.5, 4.0]), ([3, 4], [7.0, 4.0])]:
        given, wanted = model.condition(known, values), plain.condition(0, 1.5)
        rest = np.setdiff1d(np.arange(5), known)
        rows = X[:9]
        full = np.column_stack([np.full(9, 1.5), rows[:, 1:], np.full(9, 7.0), np.full(9, 4.0)])
        np.testing.assert_allclose(
            given.score_samples(full[:, rest]), wanted.score_samples(rows[:, 1:]), atol=1e-7
        )
        np.testing.assert_allclose(given.means_[:, np.isin(rest, [1, 2])], wanted.means_, atol=1e-7)
        if 4 in rest:
            np.testing.assert_allclose(given.means_[:, list(rest).index(4)], 4.0, atol=1e-9)
    nothing = model.condition(3, 7.0)
    np.testing.assert_allclose(
        nothing.score_samples(wide[:, [0, 1, 2, 4]]), model.score_samples(wide), atol=1e-7
    )
    if kind == "full":  # what is left has the least variance
        np.testing.assert_allclose(model.condition([0, 1, 2], X[0]).means_[:, 0], 7.0)
        return
    with pytest.raises(ValueError, match="determine all others"):
        model.condition([0, 1, 2], X[0])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_mixture_with_priors_keeps_such_columns_and_names_them_in_a_search():
    X = two_groups()
    wide = np.column_stack([X, np.ones(len(X))])
    search = MixtureSearch(
        mixfold.BayesianGaussianMixture(random_state=0), n_components=[1, 2]
    ).fit(wide)
    assert any("has constant columns (column 3 is 1, in all rows)" in n for n in search.notes_)


@pytest.mark.parametrize(
    "model",
    [
        mixfold.PPCA("ard"),
        mixfold.FactorAnalysis("ard"),
        mixfold.MixtureOfPPCA(2, None, inference="vb", random_state=0),
        mixfold.MixtureOfFactorAnalyzers(2, None, inference="vb", random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("extra", ["constant", "copy"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_factors_that_are_learned_with_such_columns_are_told_of(model, extra):
    X = np.random.default_rng(0).normal(size=(200, 3))
    wide = np.column_stack([X, np.ones(200) if extra == "constant" else X[:, 0]])
    rule = "constant columns .column 3 is 1" if extra == "constant" else "3 is a copy of column 0"
    with pytest.warns(mixfold.DegenerateWarning, match=f"{rule}.*leave them out"):
        clone(model).fit(wide)
    clone(model).fit(X)  # warnings are errors


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("model", "criterion"),
    [
        (mixfold.Mixture("diag", inference="vb"), "bound"),
        (mixfold.GaussianPCP(n_components=1), "bound"),
        (mixfold.PPCA(), "bic"),
    ],
    ids=["Mixture", "GaussianPCP", "PPCA"],
)
def test_a_search_of_any_density_names_columns_that_are_kept(model, criterion):
    X = two_groups()
    search = MixtureSearch(model, n_components=[1, 2], criterion=criterion, random_state=0)
    search.fit(np.column_stack([X, X[:, 0]]))
    assert any("redundant columns (column 3 is a copy" in note for note in search.notes_)


def test_columns_of_counts_are_not_looked_at():
    """Equal columns of counts say nothing about a variance."""
    counts = np.random.default_rng(0).poisson(3, (60, 2)).astype(float)
    search = MixtureSearch(mixfold.PoissonMixture(), n_components=[1, 2], random_state=0)
    assert not search.fit(np.column_stack([counts, np.full(60, 2.0)])).notes_


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e-100])
@pytest.mark.parametrize("kind", ["spherical", "diag", "full"])
def test_a_constant_beside_numbers_that_cannot_be_squared(kind, scale):
    X = np.round(np.random.default_rng(0).normal(size=(30, 1))) * scale
    fitted = GaussianMixture(2, covariance_type=kind, random_state=0)
    alone = fitted.fit(X).score_samples(X)
    wide = np.column_stack([np.zeros(30), X])
    np.testing.assert_allclose(fitted.fit(wide).score_samples(wide), alone, rtol=1e-9)
    assert np.isfinite(fitted.covariances_).all()
