"""Rows, weights and settings at the edge of what floats can hold: an answer, or words of ours."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import poisson
from sklearn.mixture import GaussianMixture as TheirMixture
from sklearn.neighbors import KernelDensity

import mixfold
from mixfold.families.dense import distance_gaps
from mixfold.families.exponential.large_counts import poisson_quantile
from mixfold.families.gaussian import DiagonalMetric
from mixfold.math import free_codes
from mixfold.math.free_codes import solve_softmax_residuals
from mixfold.math.student import fit_student
from mixfold.models.networks.boltzmann.units import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
COUNTS = RNG.poisson(2.0, (30, 5)).astype(float)


@pytest.fixture(autouse=True)
def _only_our_warnings() -> Iterator[None]:
    """A warning of numpy is an error here; those of a fit that ends early are not looked at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning)
        yield


def test_values_that_are_no_numbers_are_named_by_condition() -> None:
    with pytest.raises(ValueError, match="values must hold numbers, got"):
        mixfold.GaussianMixture().fit(X).condition([0], ["x"])


@pytest.mark.parametrize(
    "estimator",
    [mixfold.SupervisedPPCA(1), mixfold.MixtureClassifier(), mixfold.MatrixFactorization(1)],
    ids=lambda one: type(one).__name__,
)
def test_several_sets_of_outputs_are_refused_where_one_is_taken(estimator: Any) -> None:
    with pytest.raises(ValueError, match=r"y must be one array.*column_stack"):
        estimator.fit(X, [Y, RNG.normal(size=(40, 2))])


@pytest.mark.parametrize("name", ["RBM", "DeepBeliefNetwork", "DeepFactorNetwork"])
def test_a_time_budget_that_is_no_number_is_named(name: str) -> None:
    with pytest.raises(ValueError, match="time_budget"):
        getattr(mixfold, name)(time_budget="auto").fit(Y[:, None] * np.ones((1, 2)), Y)


@pytest.mark.parametrize("value", [5e-324, 1e300])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_weights_out_of_range_are_named_before_they_are_added(value: float, method: str) -> None:
    weight = np.full(40, value)
    for estimator in (mixfold.KernelCCA(1), mixfold.MatrixFactorization(1)):
        if hasattr(estimator, method):
            with pytest.raises(ValueError, match=r"weight of row \d+ of X"):
                getattr(estimator, method)(X, Y, sample_weight=weight)


@pytest.mark.parametrize("name", ["LatentDirichletAllocation", "PLSI", "PCP"])
def test_counts_have_a_range(name: str) -> None:
    estimator = getattr(mixfold, name)(2, max_iter=3, random_state=0)
    many = COUNTS.copy()
    many[3, 2] = 1e60
    with pytest.raises(ValueError, match=r"X holds 1e\+60 in row 3, column 2 .*at most 1e\+30"):
        estimator.fit(many)
    with pytest.raises(ValueError, match=r"counts of row \d+ .*sum to .*Multiply X by a constant"):
        estimator.fit(COUNTS * 5e-324)
    many[3, 2] = 1e25
    assert np.isfinite(estimator.fit(many).transform(many)).all()
    assert np.isfinite(estimator.fit(COUNTS * 1e-90).transform(COUNTS * 1e-90)).all()


@pytest.mark.parametrize(
    "estimator",
    [
        mixfold.KernelPCA(1, kernel="poly"),
        mixfold.SupervisedPPCA(1, kernel="poly"),
        mixfold.MORP(1, kernel="poly"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_polynomial_that_floats_cannot_hold_is_refused(estimator: Any) -> None:
    far = X.copy()
    far[3, 1] = 1e120
    with pytest.raises(ValueError, match=r"kernel 'poly' of degree 3 is too large.*StandardScaler"):
        estimator.fit(far, Y)


def test_rows_that_lack_entries_and_weigh_nothing_are_absent() -> None:
    lacking, weight = X.copy(), np.ones(40)
    lacking[[4, 9]], weight[[4, 9]] = np.nan, 0.0
    model = mixfold.MixtureOfFactorModels(2, random_state=0, max_iter=5)
    model.fit(lacking, Y, sample_weight=weight)
    seen = weight > 0
    without = mixfold.MixtureOfFactorModels(2, random_state=0, max_iter=5).fit(X[seen], Y[seen])
    assert model.lower_bound_ == pytest.approx(without.lower_bound_, rel=0.1)
    assert np.isfinite(model.predict_proba(X)).all()


def test_labels_of_no_influence_leave_the_classifier_of_factor_models_finite() -> None:
    model = mixfold.MixtureOfFactorModels(
        1, 1, tradeoff=0.0, label_solver="gradient", tol=1.0, max_iter=8, random_state=0
    )
    assert np.isfinite(model.fit(X[:17, :1], Y[:17]).predict_proba(X[:, :1])).all()


def test_latents_that_are_singular_up_to_rounding_have_a_root() -> None:
    from mixfold.families.factor import FactorFamily
    from mixfold.families.factor.steps import FactorSteps

    assert issubclass(FactorFamily, FactorSteps)
    family = FactorFamily(2)
    singular = np.array([[[1.0, 1.0], [1.0, 1.0 - 1e-15]], [[2.0, 0.5], [0.5, 1.0]]])
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(singular)
    root = family._root(singular, np.ones(2))
    np.testing.assert_allclose(root @ np.swapaxes(root, 1, 2), singular, atol=1e-14)


def test_noises_of_views_whose_units_have_no_ratio() -> None:
    """The closed form is in units of each view: those of X cancel from what is said of y."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    y = rows @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=60)
    settings = {"task": "regression", "solver": "profile", "standardize": False, "random_state": 0}
    plain = mixfold.SupervisedPPCA(2, **settings).fit(rows, y)
    for unit in (1e148, 1e-100):
        scaled = mixfold.SupervisedPPCA(2, **settings).fit(rows * unit, y)
        assert np.isfinite(scaled.lower_bound_)
        # the search for the ratio of both noises ends where its objective is flat: 25 seeds
        # differ by up to 1.5e-3, of outputs that vary by 1.5
        np.testing.assert_allclose(scaled.predict(rows * unit), plain.predict(rows), atol=5e-3)


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e140])
def test_a_plane_without_variance_in_it_stays(unit: float) -> None:
    model = mixfold.GaussianPCP(
        2, 2, inference="em", update="regress", max_iter=8, random_state=0
    ).fit(X * unit)
    assert np.isfinite(model.components_).all()


def test_a_coordinate_without_information_stays() -> None:
    step = DiagonalMetric(np.array([2.0, 0.0, 1e-320])).solve(np.array([4.0, 1.0, 1e3]))
    np.testing.assert_array_equal(step, [2.0, 0.0, 0.0])


@pytest.mark.parametrize("unit", [1e-200, 1e100])
def test_layers_have_a_range_of_entries(unit: float) -> None:
    model = mixfold.DeepFactorNetwork((2,), max_epochs=1, max_iter=2, random_state=0)
    with pytest.raises(ValueError, match=r"largest entry of X is .* Divide X by a constant"):
        model.fit(X * unit, Y)
    assert np.isfinite(model.fit(X, Y).loss_curve_).all()


def test_batches_without_classes_have_no_loss_of_them() -> None:
    model = mixfold.MatrixFactorization(
        1, link="identity", batch_size=5, supervised="after", init="random", random_state=0
    )
    assert np.isfinite(model.fit(X, Y).lower_bound_)


@pytest.mark.parametrize("name", ["PPCA", "RBM"])
def test_float32_rows_of_a_model_in_larger_numbers_have_finite_answers(name: str) -> None:
    rows = X * 1e60
    if name == "PPCA":
        model = mixfold.PPCA(1).fit(rows)
    else:
        model = mixfold.RBM(2, visible="gaussian", max_epochs=1, random_state=0).fit(rows)
    found = model.reconstruct(np.zeros((2, 3), np.float32))
    assert np.isfinite(found).all()
    assert model.reconstruct(X[:2]).dtype == np.float64


def test_cells_of_a_kernel_are_no_cells_of_the_table() -> None:
    model = mixfold.SupervisedPPCA(1, kernel="rbf").fit(X, Y)
    assert model.oddness(X, n_draws=50).shape == (40,)
    with pytest.raises(ValueError, match="by='cell' needs a model of the columns"):
        model.oddness(X, by="cell")


def test_a_classifier_of_other_packages_says_that_they_take_no_weights() -> None:
    with pytest.raises(ValueError, match=r"GaussianMixture\.fit takes no sample_weight"):
        mixfold.MixtureClassifier(TheirMixture()).fit(X, Y, sample_weight=np.ones(40))


def test_densities_of_zero_of_other_packages_are_minus_infinity() -> None:
    model = mixfold.MixtureClassifier(KernelDensity(kernel="tophat")).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba([[1e6, 0, 0]]), [[0.5, 0.5]])


def test_iterates_that_are_not_kept_are_not_asked_for() -> None:
    with pytest.raises(AttributeError, match=r"does not keep iterates.*Use predict"):
        mixfold.MixtureClassifier().fit(X, Y).staged_predict(X)


def test_documents_of_one_word_can_be_drawn() -> None:
    for name in ("LatentDirichletAllocation", "PCP"):
        model = getattr(mixfold, name)(3, max_iter=3, random_state=0).fit(COUNTS[:, :1])
        for seed in range(20):
            assert model.sample(3, random_state=seed)[0].shape == (3, 1)


def test_a_classifier_that_calls_novel_rows_by_a_text_has_a_score() -> None:
    model = mixfold.MixtureClassifier(novelty=0.1, novelty_label="new").fit(X, Y)
    predicted = model.predict(X)
    assert "new" in predicted.tolist()
    assert model.score(X, Y) == np.mean([a == b for a, b in zip(predicted, Y, strict=True)])


def test_a_projection_onto_nothing_reads_out_the_mean() -> None:
    model = mixfold.MORP(1, beta=1.0).fit(X, np.full(40, 2.5))
    np.testing.assert_allclose(model.predict(X[:3]).ravel(), 2.5)


def test_the_inference_of_a_stream_is_checked() -> None:
    with pytest.raises(ValueError, match="inference"):
        mixfold.PoissonMixture(inference=np.array([1.0, 2.0])).partial_fit(COUNTS)


def test_an_entry_that_is_a_list_is_named_by_its_place() -> None:
    rows: list[Any] = X.tolist()
    rows[4][1] = [1.0, 2.0]
    with pytest.raises(ValueError, match=r"entry 1 of row 4 of X .* is a list"):
        mixfold.KernelPCA(1).fit(rows)


def test_a_fold_without_weight_is_refused() -> None:
    weight = np.zeros(len(X))
    weight[7] = 1.0
    with pytest.raises(ValueError, match="without a row of positive weight to learn from: only 1"):
        mixfold.MORP(1, beta="cv", cv=3).fit(X, X[:, 0], sample_weight=weight)


def test_residuals_of_softmax_beside_a_huge_matrix() -> None:
    K = 1e30 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    labels = np.array([0, 1, 1])
    found = solve_softmax_residuals(np.zeros((3, 2)), K, labels, 1.0)
    assert np.isfinite(found).all()
    assert (np.abs(found @ np.ones(2)) <= 1e-9).all()


def test_newton_steps_by_eigenvalues_are_those_by_elimination(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    half = rng.normal(size=(4, 4))
    q, right = rng.dirichlet(np.ones(4), 6), rng.normal(size=(6, 4))
    expected = free_codes._solve_newton(q, half @ half.T, 0.7, right)

    def refuse(*_: object) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "solve", refuse)
    found = free_codes._solve_newton(q, half @ half.T, 0.7, right)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_condition_on_columns_with_unequal_numbers_of_categories() -> None:
    codes = np.column_stack([RNG.integers(0, k, 60) for k in (2, 3, 4)]).astype(float)
    model = mixfold.CategoricalMixture(1, random_state=0).fit(codes)
    drawn = model.condition([1], [2.0]).sample(5, random_state=0)[0]
    assert drawn.shape == (5, 2)


def test_a_task_that_is_no_word_is_refused() -> None:
    with pytest.raises(ValueError, match="'task' parameter of MORP"):
        mixfold.MORP(1, task={"a": 1}).fit(X, Y)


def test_a_label_of_novel_rows_is_one_label() -> None:
    with pytest.raises(ValueError, match="novelty_label must be one label"):
        mixfold.MixtureClassifier(novelty=0.05, novelty_label=()).fit(X, Y)


@pytest.mark.parametrize("size", [1e25, 1e-30])
@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("GaussianMixture", "covariances_"),
        ("BayesianGaussianMixture", "precisions_"),
        ("PPCA", "explained_variance_"),
        ("FactorAnalysis", "noise_variance_"),
        ("MixtureOfFactorAnalyzers", "noise_variance_"),
        ("KernelPCA", "noise_variance_"),
    ],
)
def test_variances_of_rows_of_float32_are_published(name: str, attribute: str, size: float) -> None:
    estimator = getattr(mixfold, name)(random_state=0)
    found = np.asarray(getattr(estimator.fit((X * size).astype(np.float32)), attribute))
    assert np.isfinite(found).all()
    assert np.abs(found).max() > 0


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
@pytest.mark.parametrize("batch_size", [1, 20])
def test_a_prior_is_learned_from_a_column_that_does_not_vary(
    covariance_type: str, batch_size: int
) -> None:
    rows = X.copy()
    rows[:, 1:] = 2.0
    model = mixfold.BayesianGaussianMixture(
        3, covariance_type=covariance_type, batch_size=batch_size, learn_prior=True, max_iter=60,
        random_state=0,
    )  # fmt: skip
    assert np.isfinite(model.fit(rows).score(rows))


def test_leading_axes_of_rows_whose_squares_are_near_the_end_of_the_range() -> None:
    wide = mixfold.PPCA(2, solver="randomized", random_state=0)
    scaled = wide.fit(X * 2.0**330).explained_variance_
    plain = wide.fit(X).explained_variance_
    np.testing.assert_allclose(scaled / 2.0**660, plain, rtol=1e-9)


def test_fewer_rows_than_components_when_one_is_lost() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(3, 6))
        rows[1] = np.nan
        weight = rng.random(3)
        for name in ("MixtureOfPPCA", "MixtureOfFactorAnalyzers"):
            model = getattr(mixfold, name)(3, 1, max_iter=8, random_state=0)
            model.fit(rows, sample_weight=weight)
            assert model.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["MORP", "KernelCCA", "KernelPCA"])
def test_a_kernel_model_does_not_change_with_the_rows_it_was_fitted_to(name: str) -> None:
    rows = X.copy()
    model = getattr(mixfold, name)(2, kernel="rbf", random_state=0).fit(rows, Y)
    before = model.transform(X)
    rows[:] = 0.0
    np.testing.assert_array_equal(model.transform(X), before)


def test_quantiles_of_large_counts() -> None:
    uniforms = np.linspace(0.001, 0.999, 300)
    means = np.full(300, 3e6)
    found = poisson_quantile(uniforms, means)
    assert np.abs(found - poisson.ppf(uniforms, means)).max() <= 1
    assert (np.diff(poisson_quantile(uniforms, np.full(300, 1e25))) > 0).all()


def test_weights_of_a_machine_that_diverged_are_refused() -> None:
    bits = (X > 0).astype(float)
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match=r"training has diverged.*lower learning_rate"),
    ):
        mixfold.RBM(4, visible="gaussian", l2=1e30, batch_size=1, random_state=0).fit(bits)


def test_labels_of_novel_rows_may_be_of_another_kind() -> None:
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")[Y]
    for y in (dates, Y, Y.astype(str)):
        for label in (-1, "new", 0.5):
            model = mixfold.MixtureClassifier(novelty=0.05, novelty_label=label, random_state=0)
            assert 0 <= model.fit(X, y).score(X, y) <= 1


def test_oddness_with_a_column_that_follows_from_others() -> None:
    rows = np.column_stack([X, X[:, 0]])
    model = mixfold.GaussianMixture(1, reg_covar=0.0, random_state=0).fit(rows)
    odd = model.oddness(rows)
    assert ((odd >= 0) & (odd <= 1)).all()


def test_distances_of_rows_of_float32_to_far_centres() -> None:
    rows = X.copy()
    rows[::2] *= 1e80
    model = mixfold.KMeans(3, random_state=0).fit(rows)
    assert np.isfinite(model.transform(X.astype(np.float32))).all()


def test_a_bootstrap_does_not_draw_more_rows_than_there_is_memory() -> None:
    search = mixfold.MixtureSearch(n_components=[1, 2], test=3, random_state=0)
    with pytest.raises(ValueError, match="divide sample_weight by a constant"):
        search.fit(X, sample_weight=np.full(40, 1e15))


def test_classes_of_rows_far_from_all_components_sum_to_one() -> None:
    """Log densities of -1e22 leave no digits for shares if their log-sum is subtracted."""
    rows = np.full((40, 4), 1e8)
    model = mixfold.MixtureOfFactorModels(2, n_factors=1, label_solver="gradient", random_state=0)
    found = model.fit(rows, Y)
    for far in (np.zeros((2, 4)), rows[:2] + 1e3, rows[:2] + 1e15):
        np.testing.assert_allclose(found.predict_proba(far).sum(axis=1), 1.0, rtol=1e-12)


def test_missing_entries_of_sparse_rows_are_those_of_dense_rows_in_a_recognition_network() -> None:
    rows = np.abs(X) * (RNG.random(X.shape) < 0.7)
    rows[3, 0] = rows[7, 2] = rows[7, 1] = np.nan
    network = mixfold.DeepFactorNetwork(
        (3, 2), max_iter=4, max_epochs=2, fine_tune="recognition", random_state=0
    )
    found = network.fit(sparse.csr_matrix(rows), Y)
    assert np.isfinite(found.loss_curve_).all()
    for given in (sparse.csr_matrix(rows), sparse.csr_array(rows)):
        np.testing.assert_allclose(found.predict_proba(given), found.predict_proba(rows))


@pytest.mark.parametrize("table", [3.5, {"a": [1, 2]}, np.float64(2), {1, 2}])
def test_what_has_no_rows_is_named(table: Any) -> None:
    search = mixfold.MixtureSearch(mixfold.GaussianMixture(), n_components=[1, 2], cv=2)
    with pytest.raises((ValueError, TypeError), match=r"has no rows; give a table of shape"):
        search.fit(table)
    if isinstance(table, dict | set):
        with pytest.raises(TypeError, match=r"has no rows; give a table of shape"):
            mixfold.GaussianMixture().fit(table)


@pytest.mark.parametrize("name", ["LatentDirichletAllocation", "PLSI", "PCP"])
def test_counts_that_are_next_to_nothing_are_none(name: str) -> None:
    """Shares of a word below 1e-300 underflow: the documents that hold it became impossible."""
    rows = np.column_stack([COUNTS, np.full(len(COUNTS), 1e-310)])
    none = np.column_stack([COUNTS, np.zeros(len(COUNTS))])
    settings: dict[str, Any] = {"smoothing": 0.0} if name == "PLSI" else {}
    found = getattr(mixfold, name)(2, max_iter=5, random_state=0, **settings).fit(rows)
    scores = found.score_samples(rows)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores, found.score_samples(none))
    assert rows[0, -1] == 1e-310


@pytest.mark.parametrize("name", ["LatentDirichletAllocation", "PLSI", "PCP"])
def test_topics_that_no_memory_holds_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"n_components=2147483648 topics of 5 words .* <= \d+$"):
        getattr(mixfold, name)(2**31, max_iter=2).fit(COUNTS)


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
@pytest.mark.parametrize("name", ["GaussianMixture", "BayesianGaussianMixture"])
def test_precisions_of_columns_whose_variances_underflow_are_finite(name: str, kind: str) -> None:
    model = getattr(mixfold, name)(2, covariance_type=kind, max_iter=5, random_state=0)
    found = model.fit(X * [1e-160, 1.0, 1e37])
    assert np.isfinite(found.precisions_).all()
    assert np.isfinite(found.precisions_cholesky_).all()
    assert found.precisions_.max() == np.finfo(float).max
    same = model.fit(X)
    np.testing.assert_allclose(
        same.precisions_.ravel()[0],
        (np.linalg.inv(same.covariances_) if kind != "diag" else 1 / same.covariances_).ravel()[0],
        rtol=1e-8,
    )


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("name", ["GaussianMixture", "BayesianGaussianMixture"])
def test_rows_beyond_all_range_of_a_column_have_shares(
    tmp_path: Path, name: str, kind: str
) -> None:
    """Squares of both signs that are infinite have no difference, but one of them is larger."""
    rows = X * [1e-160, 1.0, 1.0]
    model = getattr(mixfold, name)(2, covariance_type=kind, max_iter=5, random_state=0)
    found = model.fit(rows)
    for size in (1.0, 1e140, 1e149):
        shares = found.predict_proba(X * [size, 1.0, 1.0])
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    found.save(tmp_path / "small")
    again = mixfold.load(tmp_path / "small")
    np.testing.assert_array_equal(again.predict_proba(rows), found.predict_proba(rows))


def test_gaps_of_distances_whose_terms_overflow_have_the_sign_of_smaller_ones() -> None:
    rng = np.random.default_rng(1)
    means, whiten = rng.normal(size=(2, 3)), np.tril(rng.normal(size=(2, 3, 3)))
    U = rng.normal(size=(200, 3))
    near = distance_gaps(1e8 * U, means, whiten, 0)[:, 1]
    far = distance_gaps(1e170 * U, means, whiten, 0)[:, 1]
    assert not np.isnan(far).any()
    clear = np.abs(near) > 1e12
    assert clear.sum() > 150
    np.testing.assert_array_equal(np.sign(far[clear]), np.sign(near[clear]))


@pytest.mark.parametrize("family", ["exponential", "gamma"])
def test_times_whose_rate_overflows_are_refused(family: str) -> None:
    options = {"shape": 2.0} if family == "gamma" else None
    model = mixfold.Mixture(family, 2, inference="vb", family_options=options, random_state=0)
    rows = np.column_stack([np.abs(X) + 0.1, np.full(len(X), 1e-310)])
    with pytest.raises(ValueError, match=r"column 3 must hold .* of at least 1e-300; row 0 has 1e"):
        model.fit(rows)
    rows[:, 3] = 1e-299
    assert np.isfinite(model.fit(rows).score_samples(rows)).all()


def test_a_floor_of_noise_near_the_end_of_the_range_of_floats() -> None:
    model = mixfold.SupervisedPPCA(1, noise_floor=1e300, random_state=0).fit(X, Y)
    assert np.isfinite(model.lower_bound_)


def test_a_search_starts_no_more_threads_than_it_makes_fits() -> None:
    search = mixfold.MixtureSearch(
        mixfold.GaussianMixture(max_iter=5), n_components=[1, 2], n_jobs=2**31, random_state=0
    )
    before = threading.active_count()
    search.fit(X)
    assert len(search.results_["bic"]) == 2 and threading.active_count() <= before + 4


@pytest.mark.parametrize("size", [1e60, 1e150])
def test_laws_of_heavy_tails_are_not_asked_of_rows_beyond_squares(size: float) -> None:
    rows = X.copy()
    assert fit_student(rows, np.ones(len(rows))) is not None
    rows[0] *= size
    assert fit_student(rows, np.ones(len(rows))) is None


def test_visible_numbers_whose_squares_need_double_precision() -> None:
    units = Gaussian()
    v, none = np.full((2, 3), 1e30, np.float32), np.zeros(3, np.float32)
    np.testing.assert_allclose(units.weigh(v, none), -1.5e60, rtol=1e-6)
    np.testing.assert_allclose(units.log_density(v, 0 * v), -1.5e60, rtol=1e-6)
    np.testing.assert_allclose(units.log_sum(none, v), 1.5e60, rtol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e6, 1e8])
def test_a_learned_prior_of_few_means_far_apart(scale: float) -> None:
    """Fewer means than columns, and each known far better than they are spread."""
    rng = np.random.default_rng(0)
    rows = np.round(rng.normal(size=(27, 4)) * scale)
    model = mixfold.Mixture("known", 3, inference="vb", learn_prior=True, random_state=0)
    found = model.set_params(max_iter=6).fit(rows)
    assert np.isfinite(found.lower_bounds_).all() and np.isfinite(found.score(rows))


@pytest.mark.parametrize("seed", [4, 9, 29])
def test_rearrangements_of_rows_of_all_sizes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.random((20 + seed, 5)) * 10.0 ** rng.uniform(-150, 150, (20 + seed, 1))
    model = mixfold.NestedMixture(2, 2, covariance_type="tied", max_iter=6, random_state=0)
    assert np.isfinite(model.fit(rows).score_samples(rows)).all()
