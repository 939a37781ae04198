"""Kernel PCA in use: files, weights, kernel matrices, corners, limits, clusters and mistakes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixfold
from mixfold import DegenerateWarning
from mixfold.contracts import Array, Block
from mixfold.estimators.kernels import kernel_fits
from mixfold.estimators.kernels.kernel_pca import KernelPCA, _Scores

MODELS = [
    KernelPCA(3, random_state=0),
    KernelPCA(3, kernel="poly", degree=2, solver="krylov", scale="white", random_state=0),
    KernelPCA(3, kernel="linear", scale="latent"),
    KernelPCA(3, kernel="linear", solver="chebyshev", random_state=0),
    KernelPCA(3, kernel="laplacian", landmarks=40, random_state=0),
    KernelPCA(None, kernel="cosine"),
]
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: " ".join(repr(m).split()))


@pytest.fixture
def rows(rng: np.random.Generator) -> Array:
    X = rng.normal(size=(120, 5)) * [3.0, 2.0, 1.0, 0.7, 0.5]
    X[:60, 0] += 5
    return X


# ------------------------------------------------ files


@models
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_a_saved_model_is_the_same(
    model: KernelPCA, kind: Any, rows: Array, tmp_path: Path
) -> None:
    fitted = clone(model).fit(kind(rows))
    fitted.save(tmp_path / "model")
    loaded = mixfold.load(tmp_path / "model")
    assert loaded.get_params() == fitted.get_params()
    Z = fitted.transform(rows)
    np.testing.assert_array_equal(loaded.transform(rows), Z)
    np.testing.assert_array_equal(loaded.score_samples(rows), fitted.score_samples(rows))
    np.testing.assert_array_equal(loaded.inverse_transform(Z), fitted.inverse_transform(Z))
    for name in vars(fitted):
        if name.endswith("_") and not name.endswith("__"):
            np.testing.assert_array_equal(getattr(loaded, name), getattr(fitted, name))
    # and a stream goes on
    again = loaded.partial_fit(kind(rows[:7])), fitted.partial_fit(kind(rows[:7]))
    np.testing.assert_allclose(again[0].transform(rows), again[1].transform(rows), atol=1e-9)


def test_a_stream_that_waits_for_landmarks_is_saved(rows: Array, tmp_path: Path) -> None:
    stream = KernelPCA(2, landmarks=50, random_state=0).partial_fit(rows[:30])
    stream.save(tmp_path / "model")
    loaded = mixfold.load(tmp_path / "model").partial_fit(rows[30:])
    whole = KernelPCA(2, landmarks=rows[:50]).fit(rows)
    np.testing.assert_allclose(loaded.transform(rows), whole.transform(rows), atol=1e-8)


def test_a_function_cannot_be_saved(rows: Array, tmp_path: Path) -> None:
    fitted = KernelPCA(2, kernel=rbf_kernel).fit(rows)
    with pytest.raises(ValueError, match=r"kernel=.* is a function.*KernelPCA cannot be saved"):
        fitted.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_rows_come_from_tables_and_files(rows: Array, tmp_path: Path) -> None:
    table = pd.DataFrame(rows, columns=list("abcde"))
    table.to_csv(tmp_path / "rows.csv", index=False)
    np.save(tmp_path / "rows.npy", rows)
    for how in ({}, {"landmarks": 60}, {"kernel": "linear"}):
        plain = KernelPCA(2, random_state=0, **how).fit(rows)
        for X in (table, tmp_path / "rows.csv", tmp_path / "rows.npy"):
            fitted = KernelPCA(2, random_state=0, **how).fit(X)
            np.testing.assert_allclose(fitted.transform(X), plain.transform(rows), atol=1e-9)
    assert fitted.n_features_in_ == 5
    named = KernelPCA(2).fit(table)
    assert list(named.feature_names_in_) == list("abcde")
    assert list(named.get_feature_names_out()) == ["kernelpca0", "kernelpca1"]


def test_the_rows_of_the_fit_are_its_own(rows: Array) -> None:
    X = rows.copy()
    fitted = KernelPCA(2).fit(X)
    before = fitted.transform(rows)
    X[:] = 0
    np.testing.assert_array_equal(fitted.transform(rows), before)


# ------------------------------------------------ weights and types


@pytest.mark.parametrize("solver", ["krylov", "dense", "chebyshev"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_a_weight_is_a_number_of_equal_rows(
    kernel: str, solver: str, rows: Array, rng: np.random.Generator
) -> None:
    weight = rng.integers(0, 4, len(rows))
    how: dict[str, Any] = {"kernel": kernel, "solver": solver, "random_state": 0, "tol": 1e-10}
    weighed = KernelPCA(3, **how)
    Z = weighed.fit_transform(rows, sample_weight=weight)
    repeated = KernelPCA(3, **how).fit(np.repeat(rows, weight, axis=0))
    scale = np.abs(Z).max()
    np.testing.assert_allclose(weighed.transform(rows), repeated.transform(rows), atol=1e-7 * scale)
    np.testing.assert_allclose(Z, repeated.transform(rows), atol=1e-7 * scale)
    variances = weighed.explained_variance_, repeated.explained_variance_
    np.testing.assert_allclose(*variances, rtol=1e-9)


def test_weights_in_streams(rows: Array, rng: np.random.Generator) -> None:
    weight = rng.integers(0, 4, len(rows)).astype(float)
    for how in ({"tol": 1e-10}, {"kernel": "linear"}, {"landmarks": rows[:50]}):
        whole = KernelPCA(2, random_state=0, **how).fit(rows, sample_weight=weight)
        stream = KernelPCA(2, random_state=0, **how)
        for part in (slice(0, 50), slice(50, 51), slice(51, 120)):
            stream.partial_fit(rows[part], sample_weight=weight[part])
        stream.partial_fit(rows[:3], sample_weight=np.zeros(3))  # nothing
        np.testing.assert_allclose(stream.transform(rows), whole.transform(rows), atol=1e-8)
    # batches whose weights are even, but not the same in both
    uneven = np.where(np.arange(120) < 60, 2.0, 1.0)
    whole = KernelPCA(2, tol=1e-10).fit(rows, sample_weight=uneven)
    stream = KernelPCA(2, tol=1e-10).partial_fit(rows[:60], sample_weight=uneven[:60])
    stream.partial_fit(rows[60:])
    np.testing.assert_allclose(stream.transform(rows), whole.transform(rows), atol=1e-8)


@pytest.mark.parametrize("solver", ["krylov", "chebyshev", "dense", "em", "auto"])
def test_single_precision(solver: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(300, 4)) * [3, 2, 1, 0.5]
    exact = KernelPCA(3, gamma=0.1, random_state=0).fit(X)
    single = KernelPCA(3, gamma=0.1, solver=solver, max_iter=400, random_state=0)
    Z = single.fit_transform(X.astype(np.float32))
    assert single.converged_
    assert Z.dtype == single.transform(X[:5].astype(np.float32)).dtype == np.float32
    assert single.score_samples(X[:5].astype(np.float32)).dtype == np.float32
    assert single.inverse_transform(Z).dtype == np.float32
    np.testing.assert_allclose(Z, exact.transform(X), atol=2e-4)


@pytest.mark.parametrize("offset", [1e4, 1e6])
def test_digits_are_kept_far_from_zero(offset: float, rows: Array) -> None:
    near = np.round(rows, 3)
    far = near + offset
    near = far - offset  # as it was rounded
    for how in ({}, {"landmarks": 120}, {"kernel": "laplacian"}, {"kernel": "linear"}):
        here = KernelPCA(3, random_state=0, tol=1e-10, **how).fit(near)
        there = KernelPCA(3, random_state=0, tol=1e-10, **how).fit(far)
        np.testing.assert_allclose(there.transform(far), here.transform(near), atol=1e-7)


# ------------------------------------------------ kernel matrices


def test_a_kernel_matrix_may_be_given(rows: Array, rng: np.random.Generator) -> None:
    new, weight = rng.normal(size=(20, 5)), rng.integers(0, 3, len(rows)).astype(float)
    G, K = rbf_kernel(rows, gamma=0.1), rbf_kernel(new, rows, gamma=0.1)
    before = G.copy(), K.copy()
    for w in (None, weight):
        by_rows = KernelPCA(3, gamma=0.1, random_state=0).fit(rows, sample_weight=w)
        given = KernelPCA(3, kernel="precomputed", random_state=0)
        Z = given.fit_transform(G, sample_weight=w)
        np.testing.assert_allclose(given.transform(K), by_rows.transform(new), atol=1e-10)
        np.testing.assert_allclose(Z, by_rows.transform(rows), atol=1e-10)
        errors = given.reconstruction_error(K, diagonal=np.ones(20))
        np.testing.assert_allclose(errors, by_rows.reconstruction_error(new), atol=1e-10)
    np.testing.assert_array_equal(G, before[0])
    np.testing.assert_array_equal(K, before[1])
    for name in ("score", "score_samples", "partial_fit", "inverse_transform"):
        assert not hasattr(given, name)
    with pytest.raises(ValueError, match="give them as diagonal"):
        given.reconstruction_error(K)
    with pytest.raises(ValueError, match="computed by the kernel"):
        by_rows.reconstruction_error(new, diagonal=np.ones(20))


def test_landmarks_of_a_kernel_matrix(rows: Array, tmp_path: Path) -> None:
    G = rbf_kernel(rows, gamma=0.1)
    exact = KernelPCA(3, kernel="precomputed").fit(G)
    weight = np.r_[np.zeros(10), np.ones(110)]
    same = KernelPCA(3, kernel="precomputed", landmarks=120).fit(G)
    np.testing.assert_allclose(np.abs(same.transform(G)), np.abs(exact.transform(G)), atol=1e-7)
    few = KernelPCA(3, kernel="precomputed", landmarks=60, random_state=1).fit(G, None, weight)
    assert (few._projector.features.columns >= 10).all()
    few.save(tmp_path / "model")
    np.testing.assert_array_equal(mixfold.load(tmp_path / "model").transform(G), few.transform(G))


def test_functions_of_two_matrices(rows: Array) -> None:
    named = KernelPCA(3, gamma=0.2).fit(rows)
    function = KernelPCA(3, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.2)).fit(rows)
    np.testing.assert_allclose(function.transform(rows), named.transform(rows), atol=1e-10)
    np.testing.assert_allclose(function.score_samples(rows), named.score_samples(rows), rtol=1e-9)
    assert function.gamma_ is None and named.gamma_ == 0.2


# ------------------------------------------------ corners


@pytest.mark.parametrize("solver", ["krylov", "chebyshev", "dense", "em", "auto"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine", "linear"])
def test_rows_that_are_all_the_same(kernel: str, solver: str) -> None:
    X = np.tile([[1.2, -0.7, 3.1]], (30, 1))
    with pytest.warns(DegenerateWarning, match="rows do not differ"):
        fitted = KernelPCA(2, kernel=kernel, solver=solver, random_state=0).fit(X)
    assert fitted.n_components_ == 0 and fitted.transform(X).shape == (30, 0)
    assert np.isfinite(fitted.score_samples(X)).all()
    assert fitted.inverse_transform(np.zeros((4, 0))).shape == (4, 3)


@pytest.mark.parametrize("solver", ["krylov", "dense", "auto"])
def test_rows_that_are_all_as_different(solver: str, rng: np.random.Generator) -> None:
    # LAPACK, asked for a few of many equal eigenvalues, finds none
    fitted = KernelPCA(2, solver=solver, random_state=0).fit(1e6 * rng.normal(size=(120, 4)))
    np.testing.assert_allclose(fitted.eigenvalues_, [1.0, 1.0], atol=1e-3)
    np.testing.assert_allclose(fitted.explained_variance_ratio_, 1 / 119, rtol=1e-3)


@pytest.mark.parametrize("solver", ["krylov", "chebyshev", "dense", "em"])
@pytest.mark.parametrize("kernel", ["rbf", "cosine"])
def test_fewer_rows_or_ranks_than_axes(kernel: str, solver: str, rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(4, 3)), 5, axis=0)
    X = X if kernel == "rbf" else X[:, :1] * [[1.0, 2.0, -1.0]]  # of the same or opposite direction
    fitted = KernelPCA(9, kernel=kernel, solver=solver, random_state=0).fit(X)
    assert fitted.n_components_ == (3 if kernel == "rbf" else 1)
    np.testing.assert_allclose(fitted.explained_variance_ratio_.sum(), 1.0)
    few = KernelPCA(9, kernel=kernel, solver=solver, random_state=0).fit(rng.normal(size=(3, 3)))
    assert few.n_components_ == 2


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_all_axes(kernel: str, rows: Array) -> None:
    fitted = KernelPCA(None, kernel=kernel).fit(rows)
    assert fitted.n_components_ == (5 if kernel == "linear" else 119)
    np.testing.assert_allclose(fitted.explained_variance_ratio_.sum(), 1.0)
    np.testing.assert_allclose(fitted.reconstruction_error(rows), 0.0, atol=1e-8)


def test_rows_of_zeros_in_the_cosine_kernel(rows: Array) -> None:
    rows[:3] = 0
    fitted = KernelPCA(2, kernel="cosine", solver="krylov").fit(rows)
    Z = fitted.transform(rows)
    assert np.isfinite(Z).all() and np.ptp(Z[:3], axis=0).max() < 1e-12


def test_a_stream_may_begin_with_one_row(rows: Array) -> None:
    stream = KernelPCA(2, tol=1e-10, random_state=0)
    for row in rows[:20]:
        stream.partial_fit(row[None])
    whole = KernelPCA(2, tol=1e-10, random_state=0).fit(rows[:20])
    np.testing.assert_allclose(stream.transform(rows), whole.transform(rows), atol=1e-8)
    first = KernelPCA(2).partial_fit(rows[:1])
    assert first.n_components_ == 0


def test_a_stream_goes_on_from_a_fit(rows: Array) -> None:
    for how in ({}, {"kernel": "linear"}, {"landmarks": rows[:30]}):
        whole = KernelPCA(2, tol=1e-10, random_state=0, **how).fit(rows)
        stream = KernelPCA(2, tol=1e-10, random_state=0, **how).fit(rows[:70])
        stream.partial_fit(rows[70:])
        np.testing.assert_allclose(stream.transform(rows), whole.transform(rows), atol=1e-8)


def test_a_linear_stream_of_many_columns_keeps_its_rows(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 2100))
    whole = KernelPCA(3, kernel="linear", solver="primal", random_state=0).fit(X)
    stream = KernelPCA(3, kernel="linear", tol=1e-10, random_state=0)
    for batch in np.split(X, [5, 30]):
        stream.partial_fit(batch)
    assert stream.solver_ == "dense"
    np.testing.assert_allclose(np.abs(stream.transform(X)), np.abs(whole.transform(X)), atol=1e-8)
    with pytest.raises(ValueError, match="kept no sums"):
        whole.partial_fit(X)


def test_wide_rows_of_a_linear_kernel_are_fitted_by_their_own_matrix(
    rng: np.random.Generator,
) -> None:
    topics = rng.gamma(0.02, 20.0, size=(5, 2500))
    words = rng.poisson(rng.dirichlet(np.full(5, 0.5), 920) @ topics)
    X, new = sparse.csr_array(words[:900] * 1.0), sparse.csr_array(words[900:] * 1.0)
    short = KernelPCA(4, kernel="linear", tol=1e-10, random_state=0).fit(X)
    long = KernelPCA(4, kernel="linear", solver="primal", tol=1e-10, random_state=0).fit(X)
    assert (short.solver_, long.solver_) == ("krylov", "primal")
    np.testing.assert_allclose(short.eigenvalues_, long.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(short.transform(new)), np.abs(long.transform(new)), atol=1e-5)


# ------------------------------------------------ pre-images


@pytest.mark.parametrize("scale", ["scores", "latent", "white"])
@pytest.mark.parametrize(
    "how", [{"kernel": "linear"}, {"gamma": 0.02}, {"gamma": 0.02, "landmarks": 80}]
)
def test_rows_are_found_again(how: dict[str, Any], scale: str, rows: Array) -> None:
    plane = rows[:, :2] @ np.array([[1.0, 0.5, -0.3, 0.2, 0.1], [0.2, -1.0, 0.4, 0.3, 0.5]]) + 7
    fitted = KernelPCA(8 if "gamma" in how else 2, scale=scale, random_state=0, **how).fit(
        plane[:100]
    )
    back = fitted.inverse_transform(fitted.transform(plane[100:]))
    error = np.linalg.norm(back - plane[100:]) / np.linalg.norm(plane[100:] - plane.mean(axis=0))
    assert error < (1e-10 if how == {"kernel": "linear"} else 0.05)


def test_pre_images_do_not_depend_on_how_gamma_is_given(rows: Array) -> None:
    plain = KernelPCA(3, random_state=0).fit(rows)
    given = KernelPCA(3, gamma=1 / 5, random_state=0).fit(rows)
    Z = plain.transform(rows)
    np.testing.assert_array_equal(plain.inverse_transform(Z), given.inverse_transform(Z))
    scaled = KernelPCA(3, gamma="scale", random_state=0).fit(rows)
    explicit = KernelPCA(3, gamma=scaled.gamma_, random_state=0).fit(rows)
    assert scaled.gamma_ == pytest.approx(1 / (5 * rows.var()))
    np.testing.assert_array_equal(scaled.inverse_transform(Z), explicit.inverse_transform(Z))


def test_points_that_are_no_scores_are_refused(rows: Array) -> None:
    with pytest.raises(ValueError, match="a column for each axis, 2; got 3"):
        KernelPCA(2).fit(rows).inverse_transform(np.zeros((4, 3)))


# ------------------------------------------------ limits


def test_too_few_iterations_are_told(rng: np.random.Generator) -> None:
    X = rng.normal(size=(900, 8))
    for solver in ("krylov", "chebyshev", "em"):
        with pytest.warns(ConvergenceWarning, match="max_iter was reached after"):
            fitted = KernelPCA(8, solver=solver, max_iter=1, tol=1e-12, random_state=0).fit(X)
        assert not fitted.converged_ and fitted.stop_reason_ == "max_iter"
        assert fitted.n_components_ == 8 and np.isfinite(fitted.transform(X)).all()


def test_time_is_kept(rng: np.random.Generator) -> None:
    X = rng.normal(size=(900, 8))
    for solver in ("krylov", "chebyshev", "em"):
        with pytest.warns(ConvergenceWarning, match="time_budget was reached"):
            fitted = KernelPCA(8, solver=solver, tol=1e-12, random_state=0, time_budget=1e-6).fit(X)
        assert fitted.stop_reason_ == "time_budget"


def test_progress_is_shown(rng: np.random.Generator, capsys: pytest.CaptureFixture[str]) -> None:
    X = rng.normal(size=(600, 5))
    KernelPCA(3, solver="krylov", random_state=0).fit(X)
    assert capsys.readouterr().err == ""
    KernelPCA(3, solver="krylov", verbose=1, random_state=0).fit(X)
    assert "largest relative residual" in capsys.readouterr().err
    KernelPCA(3, solver="em", verbose=1, max_iter=900, tol=1e-3, random_state=0).fit(X)
    assert "iteration 10 " in capsys.readouterr().err


@pytest.mark.parametrize("solver", ["krylov", "chebyshev", "em"])
def test_a_warm_start_saves_products(solver: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(500, 8)) * np.linspace(2, 1, 8)
    how: dict[str, Any] = {"solver": solver, "max_iter": 2000, "tol": 1e-5, "random_state": 0}
    model = KernelPCA(6, warm_start=True, **how).fit(X)
    cold = model.n_passes_
    model.fit(X + 1e-6)
    assert model.converged_ and model.n_passes_ <= cold // 2
    model.fit(X[:400])  # other rows: from the beginning
    fresh = KernelPCA(6, **how).fit(X[:400])
    np.testing.assert_array_equal(model.eigenvalues_, fresh.eigenvalues_)


# ------------------------------------------------ scikit-learn


def test_in_a_pipeline_and_a_search(rows: Array) -> None:
    pipeline = make_pipeline(StandardScaler(), KernelPCA(2, gamma=0.2, random_state=0))
    Z = pipeline.fit_transform(rows)
    np.testing.assert_allclose(pipeline.transform(rows), Z, atol=1e-9)
    grid = {"n_components": [1, 3], "landmarks": [None, 30]}
    search = GridSearchCV(KernelPCA(kernel="poly", degree=2, random_state=0), grid, cv=3).fit(rows)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["n_components"] == 3


def test_odd_rows_have_low_densities(rows: Array) -> None:
    fitted = KernelPCA(3, gamma=0.1).fit(rows)
    odd = np.full((1, 5), 8.0)
    assert fitted.score_samples(odd)[0] < fitted.score_samples(rows).min()
    assert fitted.reconstruction_error(odd)[0] > np.quantile(fitted.reconstruction_error(rows), 0.9)


# ------------------------------------------------ mistakes


def test_missing_entries_are_refused_with_a_remedy(rows: Array) -> None:
    holes = rows.copy()
    holes[5, 2] = np.nan
    for how in ({}, {"kernel": "linear"}, {"landmarks": 50}):
        model = KernelPCA(2, **how)
        for method in (model.fit, model.partial_fit, model.fit_transform):
            with pytest.raises(ValueError, match=r"X contains NaN .* Fill them first"):
                method(holes)
        model.fit(rows)
        for method in (model.transform, model.score_samples, model.reconstruction_error):
            with pytest.raises(ValueError, match=r"X contains NaN .* Fill them first"):
                method(holes)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"kernel": "gauss"}, "'kernel' parameter .* must be one of"),
        ({"gamma": 0}, "'gamma' parameter"),
        ({"degree": 2.5}, "'degree' parameter"),
        ({"n_components": 0}, "'n_components' parameter"),
        ({"noise_variance": 0.0}, "'noise_variance' parameter"),
        ({"forgetting": 1.5}, "'forgetting' parameter .* above 0 and up to 1"),
        ({"solver": "arpack"}, "'solver' parameter"),
        ({"scale": "unit"}, "'scale' parameter"),
        ({"solver": "primal"}, "need kernel='linear' or landmarks"),
        ({"solver": "em", "landmarks": 5}, "fitted by solver='primal'"),
        ({"landmarks": np.zeros((3, 4))}, "must have the columns of X, 5; got 4"),
        ({"kernel": "precomputed", "landmarks": np.zeros((3, 5))}, "there are no rows"),
        ({"kernel": "precomputed"}, r"must be square; got shape \(120, 5\)"),
    ],
)
def test_wrong_parameters_are_named(how: dict[str, Any], message: str, rows: Array) -> None:
    with pytest.raises(ValueError, match=message):
        KernelPCA(**how).fit(rows)


def test_what_is_no_kernel_matrix(rows: Array) -> None:
    G = rbf_kernel(rows)
    G[0, 1] = 0.9
    with pytest.raises(ValueError, match="not symmetric"):
        KernelPCA(kernel="precomputed").fit(G)


def test_a_stream_does_not_change_its_mind(rows: Array) -> None:
    stream = KernelPCA(2).partial_fit(rows)
    with pytest.raises(ValueError, match="Clone the estimator"):
        stream.set_params(landmarks=20).partial_fit(rows)
    with pytest.raises(ValueError, match="X has 4 features, but KernelPCA is expecting 5"):
        stream.set_params(landmarks=None).partial_fit(rows[:, :4])


def test_rows_that_are_kept_are_not_forgotten(rows: Array) -> None:
    with pytest.raises(ValueError, match=r"forgetting=0.5 needs sums"):
        KernelPCA(2, forgetting=0.5).partial_fit(rows)


@pytest.mark.parametrize("how", [{"n_components": None}, {"solver": "dense"}])
def test_matrices_that_are_too_large_are_refused_at_once(
    how: dict[str, Any], rows: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_fits, "LARGEST", 100)
    with pytest.raises(ValueError, match=r"kernel matrix of 120 rows is too large .* landmarks"):
        KernelPCA(**how).fit(rows)


def test_one_row_and_no_fit(rows: Array) -> None:
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        KernelPCA().fit(rows[:1])
    with pytest.raises(NotFittedError):
        KernelPCA().transform(rows)
    with pytest.raises(ValueError, match="weight is zero in every row"):
        KernelPCA().fit(rows, sample_weight=np.zeros(120))


# ------------------------------------------------ a cluster


@models
def test_fitted_models_travel(model: KernelPCA, rows: Array) -> None:
    fitted = clone(model).fit(rows)
    there = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(there.transform(rows), fitted.transform(rows))
    task = _Scores(fitted._projector, fitted._score_factor())
    block = Block(rows)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(task))(block), task(block))


@pytest.mark.filterwarnings("ignore:the axes are less exact")
def test_a_cluster_finds_the_same_axes(client: Any, rng: np.random.Generator) -> None:
    import dask.array

    X = rng.normal(size=(1100, 4)) * [3, 2, 1, 0.5]
    X[:700, 0] += 4
    lazy = dask.array.from_array(X, chunks=(500, 4))
    for how in ({}, {"solver": "em", "max_iter": 3}, {"landmarks": 40}, {"kernel": "linear"}):
        here = KernelPCA(3, gamma=0.1, random_state=0, **how).fit(X)
        there = KernelPCA(3, gamma=0.1, random_state=0, executor="dask", **how).fit(lazy)
        np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-7)
        np.testing.assert_allclose(there.transform(lazy), here.transform(X), atol=1e-5)
