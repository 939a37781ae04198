"""Supervised PPCA of what a kernel makes of the rows."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score

import mixfold
from mixfold import SupervisedPPCA
from mixfold.contracts import Array
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.sources import open_source
from mixfold.estimators.shell import kernel_features

RNG = np.random.default_rng(0)
X, NEW = (RNG.normal(np.array([0.5, -1.0, 2.0]), size=(n, 3)) for n in (60, 15))
REAL = np.column_stack([X[:, 0] * X[:, 1], X[:, 2] ** 2]) + 0.1 * RNG.normal(size=(60, 2))
CLASSES = (X[:, 0] * X[:, 1] > -0.5).astype(int)
HELD = {"input_noise": 0.05, "output_noise": 0.1}
RBF = {"kernel": "rbf", "gamma": 0.3, **HELD}


def half_known(y: Array) -> Array:
    y = np.array(y, dtype=float)
    y[20:] = np.nan
    return y


def products(Z: Array) -> Array:
    """What neither rotations nor signs of the factors change."""
    return Z @ Z.T


# ------------------------------------------------ the model is that of the features


def quadratic_features(X: Array, gamma: float, coef0: float) -> Array:
    """Their products are (gamma a'b + coef0)^2, but for the constant."""
    pairs = itertools.combinations(range(X.shape[1]), 2)
    crossed = [np.sqrt(2) * gamma * X[:, i] * X[:, j] for i, j in pairs]
    return np.column_stack([np.sqrt(2 * gamma * coef0) * X, gamma * X**2, *crossed])


@pytest.mark.parametrize("y", [REAL, half_known(REAL)], ids=["labelled", "half"])
@pytest.mark.parametrize("noises", [HELD, {}], ids=["held", "free"])
def test_a_polynomial_kernel_is_the_model_of_all_monomials(y: Array, noises: Any) -> None:
    size = 2 if noises else 1  # as many factors as outputs would explain them without noise
    settings = {"n_components": size, "task": "regression", "tol": 1e-10, **noises}
    dual = SupervisedPPCA(kernel="poly", degree=2, gamma=0.4, coef0=1.5, **settings).fit(X, y)
    primal = SupervisedPPCA(**settings).fit(quadratic_features(X, 0.4, 1.5), y)
    assert dual.n_features_in_ == 3 and dual.loadings_.shape == (9, size)
    assert dual.lower_bound_ == pytest.approx(primal.lower_bound_, abs=1e-6)
    seen, features = NEW, quadratic_features(NEW, 0.4, 1.5)
    np.testing.assert_allclose(dual.predict(seen), primal.predict(features), atol=1e-3)
    np.testing.assert_allclose(
        products(dual.transform(seen)), products(primal.transform(features)), atol=2e-3
    )
    np.testing.assert_allclose(
        dual.score_samples(seen), primal.score_samples(features), rtol=1e-4, atol=1e-3
    )
    assert dual.bic() == pytest.approx(primal.bic(), abs=1e-3)


def test_the_closed_form_is_that_of_the_kernel_matrix() -> None:
    sx2, sy2, n = 0.02, 0.1, len(X)
    y = REAL - REAL.mean(axis=0)
    G, K = rbf_kernel(X, gamma=0.3), rbf_kernel(NEW, X, gamma=0.3)
    Gc = G - G.mean(axis=0) - G.mean(axis=1)[:, None] + G.mean()
    Kc = K - K.mean(axis=1)[:, None] - G.mean(axis=0) + G.mean()
    values, vectors = np.linalg.eigh(Gc / sx2 + y @ y.T / sy2)
    values, V = values[:-4:-1], vectors[:, :-4:-1]
    D = 1 - n / values
    assert D.min() > 0.1
    Z = np.sqrt(n) * V * np.sqrt(D)
    inner = V.T @ Gc @ V + n * sx2 * np.diag(1 / D)
    new = np.sqrt(n) * np.linalg.solve(inner, V.T @ Kc.T).T / np.sqrt(D)
    settings = {"task": "regression", "standardize": False, "kernel": "rbf", "gamma": 0.3}
    model = SupervisedPPCA(3, input_noise=sx2, output_noise=sy2, **settings).fit(X, y)
    assert model.solver_ == "profile" and model.loadings_.shape == (n - 1, 3)
    np.testing.assert_allclose(products(model.transform(X, y)), products(Z), atol=1e-7)
    np.testing.assert_allclose(products(model.transform(NEW)), products(new), atol=1e-7)
    np.testing.assert_allclose(model.predict(NEW), new @ Z.T @ y / n, atol=1e-7)


def dual_steps(G: Array, y: Array, sx2: float, sy2: float, n_steps: int) -> tuple[Array, Array]:
    """EM by blocks of the kernel matrix: factors of the rows, the first labelled, and outputs."""
    n, n1 = len(G), len(y)
    rng = np.random.default_rng(5)
    Z, C = rng.normal(size=(n, 2)), n * np.eye(2)
    C1 = n1 * np.eye(2)
    for _ in range(n_steps):
        s, s1 = Z.sum(axis=0), Z[:n1].sum(axis=0)
        B = np.linalg.solve(C - np.outer(s, s) / n, (Z - s / n).T).T
        b = (1 - B @ s) / n  # the mean is a combination of the features, too
        W = np.linalg.solve(C1 - np.outer(s1, s1) / n1, (Z[:n1] - s1 / n1).T @ y).T
        mean = (y.sum(axis=0) - W @ s1) / n1
        centred = (G - G @ b) @ B  # Phi Wx - mx'Wx
        A2 = np.eye(2) + B.T @ G @ B / sx2
        A1 = A2 + W.T @ W / sy2
        Z = np.vstack([
            np.linalg.solve(A1, (centred[:n1] / sx2 + (y - mean) @ W / sy2).T).T,
            np.linalg.solve(A2, (centred[n1:] / sx2).T).T,
        ])  # fmt: skip
        C1 = n1 * np.linalg.inv(A1) + Z[:n1].T @ Z[:n1]
        C = C1 + (n - n1) * np.linalg.inv(A2) + Z[n1:].T @ Z[n1:]
    return Z, mean + Z @ W.T


def test_steps_with_half_of_the_labels_end_where_those_of_the_kernel_matrix_do() -> None:
    G = rbf_kernel(X, gamma=0.3)
    Z, outputs = dual_steps(G, REAL[:20], 0.01, 0.2, 4000)
    settings = {"task": "regression", "standardize": False, "kernel": "rbf", "gamma": 0.3}
    model = SupervisedPPCA(2, input_noise=0.01, output_noise=0.2, tol=1e-12, **settings)
    model.fit(X, half_known(REAL))
    assert model.solver_ == "em"
    np.testing.assert_allclose(
        products(model.transform(X, half_known(REAL))), products(Z), atol=1e-4
    )
    np.testing.assert_allclose(model.predict(X[20:]), outputs[20:], atol=1e-4)


@pytest.mark.parametrize("noises", [HELD, {"output_noise": 0.1}], ids=["held", "free"])
def test_steps_on_rows_that_are_all_labelled_end_at_the_closed_form(noises: Any) -> None:
    settings = {"kernel": "laplacian", "gamma": 0.2, "task": "regression", **noises}
    closed = SupervisedPPCA(2, **settings).fit(X, REAL)
    steps = SupervisedPPCA(2, solver="em", tol=1e-11, **settings).fit(X, REAL)
    assert (closed.solver_, steps.solver_) == ("profile", "em")
    assert steps.lower_bound_ == pytest.approx(closed.lower_bound_, abs=1e-7)
    np.testing.assert_allclose(steps.predict(NEW), closed.predict(NEW), atol=1e-3)
    np.testing.assert_allclose(steps.transform(NEW), closed.transform(NEW), atol=1e-3)


@pytest.mark.parametrize("kernel", [None, "linear"])
def test_no_kernel_and_the_linear_one_are_the_model_of_the_columns(kernel: Any) -> None:
    plain = SupervisedPPCA(1).fit(X, REAL)  # two factors would explain both outputs wholly
    model = SupervisedPPCA(1, kernel=kernel, gamma=7.0, landmarks=5).fit(X, REAL)
    np.testing.assert_array_equal(model.loadings_, plain.loadings_)
    Z = np.array([[1.0], [-2.0]])
    np.testing.assert_array_equal(model.inverse_transform(Z), plain.inverse_transform(Z))


# ------------------------------------------------ four clusters, two classes


def crossed_clusters(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    corners = np.repeat([[2.0, 2.0], [-2.0, -2.0], [2.0, -2.0], [-2.0, 2.0]], 25, axis=0)
    return corners + 0.5 * rng.normal(size=(100, 2)), np.repeat([1, 0], 50)


def parted(scores: Array, y: Array) -> float:
    """Share of the rows that the best cut of one axis gives to the right one of two classes."""
    cuts = np.concatenate([[-np.inf], np.sort(scores)])
    right = np.array([((scores > cut) == y).mean() for cut in cuts])
    return float(max(right.max(), 1 - right.min()))


@pytest.mark.parametrize("noises", [{"input_noise": 1e-3, "output_noise": 1e-3}, {}])
def test_the_first_axis_parts_crossed_clusters_even_with_few_labels(noises: Any) -> None:
    unsupervised = []
    for seed in range(5):
        rows, y = crossed_clusters(seed)
        G = rbf_kernel(rows, gamma=0.5)
        Gc = G - G.mean(axis=0) - G.mean(axis=1)[:, None] + G.mean()
        unsupervised.append(parted(np.linalg.eigh(Gc)[1][:, -1], y))
        settings = {"kernel": "rbf", "gamma": 0.5, "random_state": 0, **noises}
        model = SupervisedPPCA(3, **settings).fit(rows, y)
        assert parted(model.transform(rows)[:, 0], y) == 1.0
        few = np.full(100, -1)
        for first in range(0, 100, 25):
            outermost = first + np.argsort(-(rows[first : first + 25] ** 2).sum(axis=1))[:5]
            few[outermost] = y[outermost]
        model = SupervisedPPCA(3, **settings).fit(rows, few)
        assert parted(model.transform(rows)[:, 0], y) == 1.0
        assert model.score(rows, y) == 1.0
    assert 0.7 < np.mean(unsupervised) < 0.85


# ------------------------------------------------ landmarks


@pytest.mark.parametrize("landmarks", [60, 1000])
def test_as_many_landmarks_as_rows_are_all_of_them(landmarks: int) -> None:
    exact = SupervisedPPCA(2, random_state=0, **RBF).fit(X, REAL)
    model = SupervisedPPCA(2, landmarks=landmarks, random_state=0, **RBF).fit(X, REAL)
    np.testing.assert_array_equal(model.predict(NEW), exact.predict(NEW))


@pytest.mark.parametrize("kernel", ["poly", "precomputed"])
def test_landmarks_that_span_all_features_lose_nothing(kernel: str) -> None:
    G, K = ((A @ X.T / 3 + 1.0) ** 2 for A in (X, NEW))
    rows, new = (G, K) if kernel == "precomputed" else (X, NEW)
    settings = {"kernel": kernel, "degree": 2, "task": "regression", "tol": 1e-10, **HELD}
    weight = np.repeat([0.0, 1.0, 2.0], [5, 30, 25])
    for y in (REAL, half_known(REAL)):
        exact = SupervisedPPCA(2, **settings).fit(rows, y, weight)
        few = SupervisedPPCA(2, landmarks=25, random_state=3, **settings).fit(rows, y, weight)
        assert few.loadings_.shape == (10, 2)  # the constant among them
        np.testing.assert_allclose(few.predict(new), exact.predict(new), atol=1e-4)
        np.testing.assert_allclose(
            products(few.transform(new)), products(exact.transform(new)), atol=1e-4
        )


def test_landmarks_are_drawn_by_the_seed() -> None:
    fits = [SupervisedPPCA(2, landmarks=20, random_state=s, **RBF).fit(X, REAL) for s in (1, 1, 2)]
    first, again, other = (model.predict(NEW) for model in fits)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3
    assert fits[0].loadings_.shape == (20, 2)


@pytest.mark.parametrize("y", [CLASSES, np.where(np.arange(60) < 30, CLASSES, -1)])
def test_coordinates_that_are_not_kept_are_mapped_at_each_visit(
    y: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = RNG.random(60) + 0.5
    settings = {"landmarks": 20, "random_state": 0, **RBF}
    kept = SupervisedPPCA(2, **settings).fit(X, y, sample_weight=weight)
    monkeypatch.setattr(kernel_features, "_KEPT", 0)
    model = SupervisedPPCA(2, **settings).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(NEW), kept.predict_proba(NEW), rtol=1e-6)
    assert model.lower_bound_ == pytest.approx(kept.lower_bound_, rel=1e-9)


class Watched(ThreadExecutor):
    """Threads that remember what they were sent to visit."""

    def __init__(self) -> None:
        super().__init__(1)
        self.visited: list[Any] = []

    def map_reduce(self, task: Any, source: Any) -> Any:
        self.visited.append(source)
        return super().map_reduce(task, source)

    def map_rows(self, task: Any, source: Any) -> Any:
        self.visited.append(source)
        return super().map_rows(task, source)


def test_rows_are_mapped_where_they_are_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_features, "_KEPT", 0)
    executor = Watched()
    model = SupervisedPPCA(2, executor=executor, **RBF).fit(X, half_known(REAL))
    model.predict(NEW)
    assert len(executor.visited) > 5
    assert {source.n_features for source in executor.visited} == {3}


def test_more_rows_than_can_be_compared_ask_for_landmarks() -> None:
    rows = np.random.default_rng(0).normal(size=(5000, 2))
    y = (rows.prod(axis=1) > 0).astype(int)
    with pytest.raises(ValueError, match=r"at most 4000 rows; X has 5000. Set landmarks"):
        SupervisedPPCA(2, kernel="rbf").fit(rows, y)
    model = SupervisedPPCA(3, kernel="rbf", landmarks=100, random_state=0, **HELD).fit(rows, y)
    assert model.score(rows, y) > 0.9


# ------------------------------------------------ the forms of data


@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine", "laplacian"])
def test_sparse_rows_are_rows(kernel: str) -> None:
    rows = np.where(np.random.default_rng(1).random((60, 8)) < 0.4, 1.0, 0.0) * RNG.random((60, 8))
    y = rows[:, 0] - rows[:, 1]
    settings = {"kernel": kernel, "task": "regression", **HELD}
    dense = SupervisedPPCA(2, **settings).fit(rows, y)
    model = SupervisedPPCA(2, **settings).fit(sparse.csr_array(rows), y)
    np.testing.assert_allclose(
        model.predict(sparse.csr_array(rows)), dense.predict(rows), atol=1e-6
    )
    np.testing.assert_allclose(model.transform(rows), dense.transform(rows), atol=1e-6)
    mixed = dense.transform(sparse.csr_matrix(rows))
    np.testing.assert_allclose(mixed, dense.transform(rows), atol=1e-9)


def test_products_that_are_given() -> None:
    model = SupervisedPPCA(2, **RBF).fit(X, REAL)
    given = SupervisedPPCA(2, **{**RBF, "kernel": "precomputed"})
    given.fit(rbf_kernel(X, gamma=0.3), REAL)
    K = rbf_kernel(NEW, X, gamma=0.3)
    np.testing.assert_allclose(given.predict(K), model.predict(NEW), atol=1e-8)
    np.testing.assert_allclose(given.transform(K), model.transform(NEW), atol=1e-7)
    weight = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    given.fit(rbf_kernel(X, gamma=0.3), REAL, sample_weight=weight)
    model.fit(X[weight > 0], REAL[weight > 0])
    np.testing.assert_allclose(given.predict(K), model.predict(NEW), atol=1e-8)
    for wrong, words in [
        (K, r"must be square; got shape \(15, 60\)"),
        (np.triu(rbf_kernel(X)), "not symmetric"),
    ]:
        with pytest.raises(ValueError, match=words):
            given.fit(wrong, REAL[: len(wrong)])


def test_a_function_of_ones_own() -> None:
    model = SupervisedPPCA(2, **RBF).fit(X, REAL)
    own = SupervisedPPCA(2, **{**RBF, "kernel": lambda A, B: rbf_kernel(A, B, gamma=0.3)})
    np.testing.assert_allclose(own.fit(X, REAL).predict(NEW), model.predict(NEW), atol=1e-8)
    single = own.fit(X.astype(np.float32), REAL).transform(NEW.astype(np.float32))
    assert single.dtype == np.float32


@pytest.mark.parametrize("noises", [HELD, {"output_noise": 0.1}], ids=["held", "free"])
def test_a_weight_of_two_is_the_row_twice_and_of_zero_none(noises: Any) -> None:
    weight = np.arange(60) % 3
    twice = np.repeat(np.arange(60), weight)
    for y in (REAL, half_known(REAL)):
        settings = {"kernel": "rbf", "gamma": 0.02, "task": "regression", "tol": 1e-12, **noises}
        model = SupervisedPPCA(2, **settings).fit(X, y, sample_weight=weight)
        other = SupervisedPPCA(2, **settings).fit(X[twice], y[twice])
        assert model.loadings_.shape == other.loadings_.shape
        # the coordinates themselves are the same, small ones but for rounding
        np.testing.assert_allclose(model.loadings_[:3], other.loadings_[:3], atol=1e-4)
        np.testing.assert_allclose(model.predict(NEW), other.predict(NEW), atol=1e-5)
        np.testing.assert_allclose(model.transform(NEW), other.transform(NEW), atol=1e-5)
        assert model.lower_bound_ == pytest.approx(other.lower_bound_, abs=1e-7)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_rows_may_be_far_from_zero(kernel: str) -> None:
    settings = {**RBF, "kernel": kernel}
    model, moved = (SupervisedPPCA(2, **settings).fit(X + far, REAL) for far in (0.0, 1e8))
    np.testing.assert_allclose(moved.predict(NEW + 1e8), model.predict(NEW), atol=1e-4)


def test_labels_of_which_several_hold() -> None:
    labels = np.column_stack([X[:, 0] * X[:, 1] > -0.5, X[:, 2] > 2.0]).astype(int)
    labels[40:] = -1
    settings = {**RBF, "input_noise": 1e-3, "output_noise": 1e-2}
    model = SupervisedPPCA(4, task="multilabel", **settings).fit(X, labels)
    assert model.predict_proba(NEW).shape == model.decision_function(NEW).shape == (15, 2)
    assert (model.predict(X[:40]) == labels[:40]).mean() > 0.9


def test_the_order_of_the_rows_does_not_matter() -> None:
    order = np.random.default_rng(2).permutation(60)
    model = SupervisedPPCA(2, **RBF).fit(X, REAL)
    other = SupervisedPPCA(2, **RBF).fit(X[order], REAL[order])
    np.testing.assert_allclose(other.transform(NEW), model.transform(NEW), atol=1e-7)


def test_single_precision() -> None:
    exact = SupervisedPPCA(2, **RBF).fit(X, REAL)
    model = SupervisedPPCA(2, **RBF).fit(X.astype(np.float32), REAL)
    found = model.transform(NEW.astype(np.float32))
    assert found.dtype == np.float32 == model.loadings_.dtype
    np.testing.assert_allclose(products(found), products(exact.transform(NEW)), atol=1e-2)


def test_tables_files_and_sources(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=CLASSES)
    table.to_parquet(tmp_path / "rows.parquet")
    plain = SupervisedPPCA(2, **RBF).fit(X, CLASSES)
    wanted = plain.predict_proba(X)
    model = SupervisedPPCA(2, **RBF).fit(tmp_path / "rows.parquet", "kind")
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(model.predict_proba(table), wanted, atol=1e-8)
    model = SupervisedPPCA(2, **RBF).fit(open_source(X), CLASSES)
    np.testing.assert_allclose(model.predict_proba(open_source(X)), wanted, atol=1e-8)
    np.testing.assert_allclose(
        model.transform(open_source(X), CLASSES), plain.transform(X, CLASSES), atol=1e-8
    )


def test_threads_and_blocks_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(2500, 3))
    y = np.where(np.arange(2500) < 300, (rows[:, 0] * rows[:, 1] > 0), -1)
    settings = {"landmarks": 40, "random_state": 0, "kernel": "rbf", **HELD}
    fits = [SupervisedPPCA(2, n_jobs=n, **settings).fit(rows, y) for n in (1, 2)]
    np.testing.assert_allclose(fits[0].transform(rows), fits[1].transform(rows), atol=1e-8)


# ------------------------------------------------ what is asked


def test_outputs_that_are_known_are_looked_at() -> None:
    y = REAL[:, :1] + 0.1 * np.random.default_rng(4).normal(size=(60, 2))
    settings = {"task": "regression", **RBF, "input_noise": 0.1}
    model = SupervisedPPCA(2, **settings).fit(X, y)
    known = np.column_stack([y[:, 0], np.full(60, np.nan)])
    Z, covariance = model.transform(X, known, return_cov=True)
    assert np.abs(Z - model.transform(X)).max() > 1e-3
    assert covariance.shape[-2:] == (2, 2)
    mean, std = model.predict(X, return_std=True, y=known)
    assert mean.shape == std.shape == (60, 2)
    error = [((p[:, 1] - y[:, 1]) ** 2).mean() for p in (model.predict(X), mean)]
    assert error[1] < 0.8 * error[0]
    density = model.score_samples(X, y).mean()
    assert density == pytest.approx(model.lower_bound_, rel=1e-9)
    assert model.score_samples(NEW).shape == (15,)


def test_there_is_no_way_back_to_rows() -> None:
    model = SupervisedPPCA(2, **RBF).fit(X, REAL)
    for name in ("inverse_transform", "reconstruct", "impute", "sample"):
        assert not hasattr(model, name)
        assert hasattr(SupervisedPPCA(2), name)
        with pytest.raises(AttributeError, match=name) as told:
            getattr(model, name)
        assert "rows cannot be reconstructed or imputed. Use kernel=None" in str(
            told.value.__cause__
        )


def test_missing_entries_are_refused() -> None:
    holes = X.copy()
    holes[3, 1] = np.nan
    model = SupervisedPPCA(2, **RBF)
    with pytest.raises(ValueError, match=r"X contains NaN.*impute"):
        model.fit(holes, REAL)
    model.fit(X, REAL)
    for ask in (model.predict, model.transform, model.score_samples):
        with pytest.raises(ValueError, match=r"X contains NaN.*impute"):
            ask(holes)
    for rows in (pd.DataFrame(holes), sparse.csr_array(holes), open_source(holes)):
        with pytest.raises(ValueError, match=r"X contains NaN.*impute"):
            model.predict(rows)
        with pytest.raises(ValueError, match=r"X contains NaN.*impute"):
            SupervisedPPCA(2, **RBF).fit(rows, REAL)
    with pytest.raises(ValueError, match="X contains NaN"):
        SupervisedPPCA(2, kernel="precomputed").fit(np.where(np.eye(60) > 0, np.nan, 1.0), REAL)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": "gauss"}, "'kernel' parameter"),
        ({"kernel": "rbf", "gamma": -1.0}, "'gamma' parameter"),
        ({"kernel": "rbf", "landmarks": 0}, "'landmarks' parameter"),
        ({"kernel": "poly", "degree": 2.5}, "'degree' parameter"),
        ({"kernel": "rbf", "n_components": 60}, "n_coordinates = 59"),
        ({"kernel": "rbf", "gamma": 1e-18}, "all rows are alike"),
    ],
)
def test_what_cannot_be_is_told(settings: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SupervisedPPCA(**settings).fit(X, REAL)


# ------------------------------------------------ scikit-learn and files


@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine", "laplacian", "precomputed"])
@pytest.mark.parametrize("landmarks", [None, 15])
def test_files_and_pickles(kernel: str, landmarks: int | None, tmp_path: Path) -> None:
    rows = rbf_kernel(X) if kernel == "precomputed" else X
    model = SupervisedPPCA(2, kernel=kernel, landmarks=landmarks, random_state=0, **HELD)
    model.fit(rows, CLASSES)
    model.save(tmp_path / "model.mixfold")
    for other in (mixfold.load(tmp_path / "model.mixfold"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(rows), model.predict_proba(rows))
        np.testing.assert_array_equal(other.transform(rows), model.transform(rows))
        assert other.n_features_in_ == rows.shape[1]
    if kernel != "precomputed":
        sparse_rows = sparse.csr_array(rows)
        model.fit(sparse_rows, CLASSES).save(tmp_path / "model.mixfold")
        other = mixfold.load(tmp_path / "model.mixfold")
        np.testing.assert_array_equal(other.transform(sparse_rows), model.transform(sparse_rows))


def test_a_function_is_not_written(tmp_path: Path) -> None:
    model = SupervisedPPCA(2, kernel=rbf_kernel, **HELD).fit(X, CLASSES)
    with pytest.raises(ValueError, match=r"is a function.*cannot be saved"):
        model.save(tmp_path / "model.mixfold")
    assert not list(tmp_path.iterdir())


def test_a_map_of_another_shape_is_refused() -> None:
    model = SupervisedPPCA(2, **RBF).fit(X, CLASSES)
    tree = {"parameters": model.get_params(), "state": model._state()}
    assert SupervisedPPCA._from_state(tree).predict(NEW).shape == (15,)
    for state, words in [
        ({"n_features_in_": 4}, "another shape"),
        ({"_feature_map": None}, "kind"),
    ]:
        with pytest.raises(ValueError, match=words):
            SupervisedPPCA._from_state({**tree, "state": tree["state"] | state})


def test_a_fit_without_a_kernel_forgets_the_map(tmp_path: Path) -> None:
    model = SupervisedPPCA(2, **RBF).fit(X, CLASSES)
    model.set_params(kernel=None).fit(X, CLASSES)
    assert model.loadings_.shape == (3, 2)
    model.save(tmp_path / "model.mixfold")
    assert mixfold.load(tmp_path / "model.mixfold").inverse_transform([[0, 0]]).shape == (1, 3)


def test_a_checkpoint_of_sampled_landmarks_is_gone_on_with(tmp_path: Path) -> None:
    settings = {"landmarks": 20, "kernel": "rbf", "task": "regression", "tol": 1e-9}
    settings |= {"checkpoint": tmp_path / "fit", "output_noise": 0.1, "acceleration": None}
    y = half_known(REAL)
    with pytest.warns(match="time_budget"):
        SupervisedPPCA(2, time_budget=1e-9, **settings).fit(X, y)
    assert (tmp_path / "fit").exists()
    model = SupervisedPPCA(2, **settings).fit(X, y)
    assert model.converged_ and not (tmp_path / "fit").exists()


def test_scikit_learn_searches_gamma() -> None:
    rows, y = crossed_clusters(0)
    order = np.random.default_rng(0).permutation(100)
    model = SupervisedPPCA(3, kernel="rbf", task="classification", input_noise=1e-3,
                           output_noise=1e-3)  # fmt: skip
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(model, {"gamma": [50.0, 0.5], "kernel": ["rbf"]}, cv=3)
    search.fit(rows[order], y[order])
    assert search.best_params_ == {"gamma": 0.5, "kernel": "rbf"}
    assert search.cv_results_["mean_test_score"][0] < 0.9
    assert search.best_score_ == 1.0
    model.set_params(kernel="precomputed")
    scores = cross_val_score(model, rbf_kernel(rows[order], gamma=0.5), y[order], cv=3)
    assert scores.min() == 1.0
