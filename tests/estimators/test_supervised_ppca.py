"""Supervised PPCA and mixtures of it, as a user meets them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score

import mixfold
from mixfold import PPCA, DegenerateWarning, SupervisedMixtureOfPPCA, SupervisedPPCA
from mixfold.contracts import Array
from mixfold.engine.sources import open_source

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(150, 2))
X = Z @ RNG.normal(size=(2, 6)) + 0.4 * RNG.normal(size=(150, 6)) + 5.0
REAL = Z @ [[1.0, 0.5, -1.0], [0.5, -1.0, 1.0]] + 0.3 * RNG.normal(size=(150, 3))
REAL = REAL * [1.0, 10.0, 0.1] + [0.0, 100.0, -1.0]
CLASSES = np.array(["one", "three", "two"])[(Z @ [[1, -1, 0], [1, 1, -1]]).argmax(axis=1)]
LABELS = (Z > 0).astype(int)


def some_missing(values: Array, share: float = 0.3, seed: int = 1) -> Array:
    values = np.array(values, dtype=float)
    values[np.random.default_rng(seed).random(values.shape) < share] = np.nan
    return values


# ------------------------------------------------ the chain of equal models


@pytest.mark.parametrize("settings", [{}, {"input_noise": 0.2}, {"output_noise": 0.1}])
def test_steps_on_rows_that_are_all_labelled_end_at_the_closed_form(settings: Any) -> None:
    closed = SupervisedPPCA(2, **settings).fit(X, REAL)
    steps = SupervisedPPCA(2, solver="em", tol=1e-10, **settings).fit(X, REAL)
    assert (closed.solver_, steps.solver_) == ("profile", "em")
    assert steps.lower_bound_ <= closed.lower_bound_ + 1e-9
    assert steps.lower_bound_ == pytest.approx(closed.lower_bound_, abs=1e-7)
    np.testing.assert_allclose(steps.loadings_, closed.loadings_, atol=2e-3)
    np.testing.assert_allclose(
        steps.output_noise_variance_, closed.output_noise_variance_, rtol=1e-3
    )
    np.testing.assert_allclose(steps.predict(X), closed.predict(X), rtol=1e-3)


def test_the_likelihood_is_that_of_rows_and_outputs_in_their_own_units() -> None:
    for y in (REAL, some_missing(REAL)):
        model = SupervisedPPCA(2).fit(X, y)
        W = np.vstack([model.loadings_, model.output_loadings_])
        noise = np.append(np.full(6, model.noise_variance_), model.output_noise_variance_)
        mean, S = np.append(model.mean_, model.output_mean_), W @ W.T + np.diag(noise)
        rows = np.hstack([X, y])
        wanted = [
            multivariate_normal.logpdf(r[s], mean[s], S[np.ix_(s, s)])
            for r in rows
            for s in [~np.isnan(r)]
        ]
        np.testing.assert_allclose(model.score_samples(X, y), wanted, rtol=1e-9)
        assert model.lower_bound_ == pytest.approx(np.mean(wanted), rel=1e-10)
        alone = multivariate_normal.logpdf(X, mean[:6], S[:6, :6])
        np.testing.assert_allclose(model.score_samples(X), alone, rtol=1e-9)
        n_free = 9 * 2 - 1 + 9 + 2
        expected = -2 * np.sum(wanted) + n_free * np.log(150)
        assert model.bic() == pytest.approx(expected, rel=1e-9)
        assert model.bic(X, y) == pytest.approx(expected, rel=1e-9)


def test_one_labelled_row_is_next_to_ppca() -> None:
    y = np.full(150, np.nan)
    y[0] = 1.0
    settings = {"task": "regression", "output_noise": 1.0, "standardize": False}
    model = SupervisedPPCA(2, **settings).fit(X, y)
    plain = PPCA(2).fit(X)
    subspace = plain.components_ @ np.linalg.qr(model.loadings_)[0]
    assert np.linalg.svd(subspace)[1].min() > 0.999
    with pytest.raises(ValueError, match=r"no known entry.*use PPCA"):
        SupervisedPPCA(2, task="regression").fit(X, np.full(150, np.nan))


@pytest.mark.parametrize("seed", [1, 2])
def test_axes_do_not_depend_on_the_start(seed: int) -> None:
    y = some_missing(REAL)
    one = SupervisedPPCA(2, tol=1e-12).fit(X, y)
    other = SupervisedPPCA(2, tol=1e-12, n_init=3, random_state=seed).fit(X, y)
    np.testing.assert_allclose(other.transform(X), one.transform(X), atol=1e-4)


def test_it_converges_in_tens_of_steps() -> None:
    digits, y = load_digits(return_X_y=True)
    y = np.where(np.arange(len(y)) < 100, y, -1)
    model = SupervisedPPCA(10).fit(digits, y)
    assert model.converged_
    assert model.n_iter_ < 60
    gains = np.diff(model.lower_bounds_)
    assert (gains > -1e-9 * np.abs(model.lower_bound_)).all()
    plain = SupervisedPPCA(10, acceleration=None).fit(digits, y)
    assert plain.lower_bound_ == pytest.approx(model.lower_bound_, abs=1e-3)


# ------------------------------------------------ what y may be


def test_classes_of_any_name_some_of_them_unknown() -> None:
    names = CLASSES.astype(object)
    names[::3] = None
    numbers = np.where(np.arange(150) % 3 == 0, -1, np.searchsorted(np.unique(CLASSES), CLASSES))
    model = SupervisedPPCA(2).fit(X, names)
    other = SupervisedPPCA(2).fit(X, numbers)
    assert model.classes_.tolist() == ["one", "three", "two"]
    assert (model.predict(X) == model.classes_[other.predict(X)]).all()
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances, other.predict_proba(X))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(chances), model.predict_log_proba(X), atol=1e-12)
    assert (model.classes_[chances.argmax(axis=1)] == model.predict(X)).all()
    assert model.score(X, CLASSES) > 0.8
    again = SupervisedPPCA(2).fit(X, pd.Series(names, dtype="string"))
    np.testing.assert_allclose(again.predict_proba(X), chances)


def test_a_class_is_as_probable_as_a_bayes_rule_with_dense_normals_says() -> None:
    model = SupervisedPPCA(2).fit(X, CLASSES)
    codes, W, V = model._coding.codes, model.loadings_, model.output_loadings_
    cross, S = W @ V.T, V @ V.T + np.diag(model.output_noise_variance_)
    gain = np.linalg.solve(S, cross.T).T
    spread = W @ W.T + model.noise_variance_ * np.eye(6) - gain @ cross.T
    log = [
        np.log(np.mean(c == CLASSES))
        + multivariate_normal.logpdf(X, model.mean_ + gain @ (code - model.output_mean_), spread)
        for c, code in zip(model.classes_, codes, strict=True)
    ]
    wanted = np.exp(log - np.logaddexp.reduce(log, axis=0)).T
    np.testing.assert_allclose(model.predict_proba(X), wanted, atol=1e-9)


def test_labels_and_numbers_keep_their_shape() -> None:
    model = SupervisedPPCA(2).fit(X, some_missing(LABELS))
    predicted = model.predict(X)
    assert predicted.shape == (150, 2)
    assert (predicted == LABELS).mean() > 0.9
    np.testing.assert_array_equal(model.predict_proba(X) > 0.5, predicted == 1)
    np.testing.assert_array_equal(model.decision_function(X) > 0, predicted == 1)
    flat = SupervisedPPCA(2).fit(X, some_missing(REAL[:, 0]))
    assert flat.predict(X).shape == (150,)
    assert flat.score(X, REAL[:, 0]) > 0.85
    mean, std = flat.predict(X, return_std=True)
    assert flat.predict(X, return_cov=True)[1] == pytest.approx(std**2)
    inside = np.abs(mean - REAL[:, 0]) < 1.96 * std
    assert 0.88 < inside.mean() <= 1.0
    assert not hasattr(flat, "predict_proba")


def test_outputs_in_other_units_are_the_same_outputs() -> None:
    scale, shift = np.array([1e-3, 1.0, 1e4]), np.array([0.0, -5.0, 1e6])
    y = some_missing(REAL)
    one, other = SupervisedPPCA(2).fit(X, y), SupervisedPPCA(2).fit(X, y * scale + shift)
    np.testing.assert_allclose(other.predict(X), one.predict(X) * scale + shift, rtol=1e-5)
    np.testing.assert_allclose(
        other.predict(X, return_cov=True)[1],
        one.predict(X, return_cov=True)[1] * np.outer(scale, scale),
        rtol=1e-4,
        atol=1e-12,
    )


def test_outputs_that_are_known_help_to_predict_the_others() -> None:
    noisy = X + 3.0 * np.random.default_rng(5).normal(size=X.shape)
    model = SupervisedPPCA(2).fit(noisy, REAL)
    known = np.where(np.arange(3) < 2, REAL, np.nan)
    blind, told = model.predict(noisy)[:, 2], model.predict(noisy, y=known)[:, 2]
    assert np.mean((told - REAL[:, 2]) ** 2) < 0.7 * np.mean((blind - REAL[:, 2]) ** 2)
    free = model.transform(noisy, np.full_like(REAL, np.nan))
    np.testing.assert_allclose(free, model.transform(noisy), atol=1e-12)
    spread = model.transform(noisy, REAL, return_cov=True)[1]
    assert np.trace(spread) < np.trace(model.transform(noisy, return_cov=True)[1])


def test_an_output_that_is_never_known_is_not_predicted() -> None:
    y = REAL.copy()
    y[:, 1] = np.nan
    predicted = SupervisedPPCA(2).fit(X, y).predict(X)
    assert np.isnan(predicted[:, 1]).all()
    assert np.isfinite(predicted[:, [0, 2]]).all()


@pytest.mark.parametrize(
    ("y", "settings", "message"),
    [
        (np.ones(150, int), {}, "1 class only"),
        (np.where(Z[:, 0] > 0, 1, -1), {}, "rename a class that is called -1"),
        (Z[:, 0], {"task": "classification"}, "set task='regression'"),
        (CLASSES, {"task": "regression"}, "holds '\\w+'; for classes set task='classification'"),
        (LABELS + 1, {"task": "multilabel"}, "0 or 1, NaN where unknown; y holds 2"),
        (LABELS, {"task": "classification"}, "set task='multilabel'"),
        (np.full(150, np.inf), {}, "infinity"),
        (CLASSES[:100], {}, "y has 100 entries, the data have 150 rows"),
        (None, {}, "requires y"),
        ("label", {}, "X, a ndarray, has no column names"),
        (CLASSES, {"n_components": 7}, "n_components=7 must be at most"),
        (some_missing(REAL), {"solver": "profile"}, "every output of every row"),
        (REAL, {"solver": "profile", "output_noise": "each"}, "one noise for all outputs"),
        (CLASSES, {"task": "ranking"}, "'task' parameter"),
    ],
)
def test_mistakes_are_told(y: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SupervisedPPCA(**settings).fit(X, y)


def test_mistakes_after_a_fit_are_told() -> None:
    model = SupervisedPPCA(2).fit(X, CLASSES)
    with pytest.raises(ValueError, match="'four' is no known class; the classes are 'one'"):
        model.transform(X, np.full(150, "four"))
    with pytest.raises(ValueError, match="for regression"):
        model.predict(X, return_std=True)
    with pytest.raises(ValueError, match="solver='profile' needs complete rows"):
        SupervisedPPCA(2, solver="profile").fit(some_missing(X), CLASSES)
    stressed = SupervisedPPCA(2, output_weight=2.0, output_noise=0.1).fit(X, CLASSES)
    assert not hasattr(stressed, "bic")


def test_scikit_learn_is_told_what_it_is() -> None:
    assert is_classifier(SupervisedPPCA(task="classification"))
    assert is_classifier(SupervisedPPCA(task="multilabel"))
    assert is_regressor(SupervisedPPCA(task="regression"))
    untold = SupervisedPPCA()
    assert not is_classifier(untold) and not is_regressor(untold)
    assert is_classifier(untold.fit(X, CLASSES))
    assert is_regressor(untold.fit(X, REAL))
    assert cross_val_score(SupervisedPPCA(task="classification"), X, CLASSES).mean() > 0.75


# ------------------------------------------------ what X may be


def test_rows_of_any_kind() -> None:
    y = some_missing(REAL)
    wanted = SupervisedPPCA(2).fit(X, y)
    blocks = SupervisedPPCA(2, n_jobs=2).fit(np.asfortranarray(X), y)
    np.testing.assert_allclose(blocks.loadings_, wanted.loadings_, rtol=1e-6)
    single = SupervisedPPCA(2).fit(X.astype(np.float32), y)
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.loadings_, wanted.loadings_, atol=1e-3)
    far = SupervisedPPCA(2).fit(X + 1e8, y)
    np.testing.assert_allclose(far.loadings_, wanted.loadings_, atol=1e-5)


def test_entries_of_rows_may_be_missing() -> None:
    holed = some_missing(X, 0.2)
    model = SupervisedPPCA(2).fit(holed, some_missing(REAL))
    assert model.solver_ == "em"
    assert model.score(X, REAL) > 0.85
    assert model.score(holed, REAL) > 0.8
    assert np.isfinite(model.impute(holed)).all()
    assert model.transform(holed, return_cov=True)[1].shape == (150, 2, 2)
    classes = SupervisedPPCA(2).fit(holed, CLASSES)
    assert classes.score(holed, CLASSES) > 0.7


def test_sparse_rows_are_never_made_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sparse.random_array((200, 3000), density=0.01, rng=0, format="csr")
    y = np.where(np.arange(200) < 100, rows[:, :40].sum(axis=1) > 0.1, -1).astype(int)
    dense = SupervisedPPCA(3, random_state=0).fit(rows.toarray(), y)

    make_dense = sparse.csr_array.toarray

    def refuse(self: Any, *options: Any, **more: Any) -> Array:
        # columns that are full may be looked at
        assert self.shape[0] * self.shape[1] < 50_000, "sparse rows were made dense"
        return make_dense(self, *options, **more)

    monkeypatch.setattr(sparse.csr_array, "toarray", refuse)
    monkeypatch.setattr(sparse.csr_array, "todense", refuse)
    model = SupervisedPPCA(3, random_state=0).fit(rows, y)
    np.testing.assert_allclose(model.lower_bound_, dense.lower_bound_, rtol=1e-9)
    np.testing.assert_allclose(model.transform(rows), dense.transform(rows), atol=1e-5)
    assert model.predict_proba(rows).shape == (200, 2)
    closed = SupervisedPPCA(3, input_noise=0.01, output_noise=0.01, random_state=0)
    assert closed.fit(rows[:100], y[:100]).solver_ == "profile"


@pytest.mark.parametrize("solver", ["em", "profile"])
def test_weights_are_repetitions(solver: str) -> None:
    weight = np.random.default_rng(2).integers(0, 3, 150)
    repeated = np.repeat(np.arange(150), weight)
    settings = {"solver": solver, "tol": 1e-9}
    one = SupervisedPPCA(2, **settings).fit(X, CLASSES, sample_weight=weight)
    other = SupervisedPPCA(2, **settings).fit(X[repeated], CLASSES[repeated])
    np.testing.assert_allclose(one.loadings_, other.loadings_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


def test_the_target_may_be_a_column_of_a_table_or_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=list("abcdef"))
    names = CLASSES.astype(object)
    names[::4] = None
    frame["kind"], frame["times"] = names, 1 + np.arange(150) % 2
    wanted = SupervisedPPCA(2).fit(X, names, sample_weight=frame["times"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for data in (frame, tmp_path / "t.csv", str(tmp_path / "t.parquet")):
        model = SupervisedPPCA(2).fit(data, "kind", sample_weight="times")
        assert model.feature_names_in_.tolist() == list("abcdef")
        np.testing.assert_allclose(model.loadings_, wanted.loadings_, rtol=1e-6)
        np.testing.assert_allclose(model.transform(data, "kind"), wanted.transform(X, names))
        np.testing.assert_allclose(model.predict_proba(data), wanted.predict_proba(X), rtol=1e-6)
    with pytest.raises(ValueError, match="no column 'kin'"):
        SupervisedPPCA(2).fit(frame, "kin")
    source = open_source(X, y=names)
    np.testing.assert_allclose(
        SupervisedPPCA(2).fit(source).loadings_, SupervisedPPCA(2).fit(X, names).loadings_
    )


# ------------------------------------------------ what it is good for


def test_unlabelled_rows_help_where_the_columns_show_the_factor() -> None:
    """Twenty noisy columns of which a factor tells the output; six labelled rows."""
    errors = np.zeros((12, 2))
    for seed in range(12):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=400)
        rows = np.outer(z, rng.normal(size=20)) + 1.5 * rng.normal(size=(400, 20))
        y = 2.0 * z + 0.1 * rng.normal(size=400)
        known = np.where(np.arange(400) < 6, y, np.nan)
        for j, n in enumerate((6, 200)):
            model = SupervisedPPCA(1, output_noise=0.05, tol=1e-6).fit(rows[:n], known[:n])
            errors[seed, j] = np.mean((model.predict(rows[200:]) - y[200:]) ** 2)
    assert (errors[:, 1] < errors[:, 0]).mean() > 0.8
    assert np.median(errors[:, 1]) < 0.5 * np.median(errors[:, 0])


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_given_noises_turn_the_axes_to_the_outputs() -> None:
    """A class that shows in a direction of little variance."""
    rng = np.random.default_rng(0)
    sign = rng.choice([-1.0, 1.0], 400)
    rows = np.column_stack([rng.normal(0.5 * sign, 1.5), rng.normal(sign, 0.4)])
    angle = {}
    for name, settings in {
        "learned": {},
        "given": {"input_noise": 0.1, "output_noise": 0.02},
    }.items():
        axis = (
            SupervisedPPCA(1, standardize=False, **settings).fit(rows, sign.astype(str)).loadings_
        )
        angle[name] = np.degrees(np.arctan2(*np.abs(axis[::-1, 0])))
    axis = PPCA(1).fit(rows).loadings_
    angle["ppca"] = np.degrees(np.arctan2(*np.abs(axis[::-1, 0])))
    assert angle["ppca"] < 30 < angle["given"]
    assert angle["ppca"] < angle["learned"]


def test_unit_vectors_of_classes_can_be_explained_wholly_which_is_told() -> None:
    with pytest.warns(DegenerateWarning, match="noise of the outputs reached its floor"):
        model = SupervisedPPCA(3, coding="one-of-c").fit(X, CLASSES)
    assert model.events_[-1].kind == "floor"


def test_saved_and_loaded_it_answers_the_same(tmp_path: Path) -> None:
    path = tmp_path / "m.mixfold"
    for y in (CLASSES, REAL, LABELS.astype(float)):
        for model in (SupervisedPPCA(2), SupervisedMixtureOfPPCA(2, 1, random_state=0)):
            model.fit(X, y).save(path)
            for other in (mixfold.load(path), pickle.loads(pickle.dumps(model))):
                np.testing.assert_array_equal(other.predict(X), model.predict(X))
                np.testing.assert_array_equal(other.transform(X, y), model.transform(X, y))
                assert other.get_params() == model.get_params()


@pytest.mark.parametrize("y", [CLASSES, REAL, LABELS.astype(float)], ids=["class", "real", "label"])
def test_draws_are_like_the_rows(y: Array) -> None:
    model = SupervisedPPCA(2).fit(X, y)
    rows, outputs = model.sample(4000, random_state=0)
    assert rows.shape == (4000, 6)
    assert outputs.shape == (4000, *y.shape[1:])
    np.testing.assert_allclose(rows.mean(axis=0), X.mean(axis=0), atol=0.3)
    refit = SupervisedPPCA(2).fit(rows, outputs)
    assert refit.score(X, y) > model.score(X, y) - 0.1


# ------------------------------------------------ mixtures


def bent(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    t = rng.uniform(-2, 2, size=500)
    rows = np.column_stack([t, 0.5 * t, -t]) + 0.05 * rng.normal(size=(500, 3))
    return rows, np.abs(t) + 0.05 * rng.normal(size=500)


def test_a_mixture_follows_what_one_plane_cannot() -> None:
    rows, y = bent()
    known = np.where(np.arange(500) % 3 == 0, y, np.nan)
    model = SupervisedMixtureOfPPCA(2, 1, random_state=0).fit(rows, known)
    assert model.score(rows, y) > 0.95
    assert SupervisedPPCA(1).fit(rows, known).score(rows, y) < 0.3
    mean, std = model.predict(rows, return_std=True)
    assert 0.85 < np.mean(np.abs(mean - y) < 2 * std) <= 1.0
    side = model.predict_component(rows)
    assert max(np.mean(side == (rows[:, 0] > 0)), np.mean(side == (rows[:, 0] < 0))) > 0.95
    assert model.transform(rows, known, per_component=True).shape == (500, 2, 1)
    assert model.inverse_transform(model.transform(rows)).shape == rows.shape
    gains = np.diff(model.lower_bounds_)
    assert (gains > -1e-9 * max(1.0, abs(model.lower_bound_))).all()


def test_a_mixture_of_one_is_supervised_ppca() -> None:
    y = some_missing(REAL)
    one = SupervisedMixtureOfPPCA(1, 2, noise_floor=1e-12, tol=1e-10).fit(X, y)
    other = SupervisedPPCA(2, tol=1e-10).fit(X, y)
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, abs=1e-6)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-3)


def test_classes_that_are_two_clusters_each() -> None:
    rng = np.random.default_rng(0)
    centre = rng.integers(0, 4, 400)
    rows = np.array([[0, 0], [6, 6], [0, 6], [6, 0]])[centre] + rng.normal(size=(400, 2))
    y = np.where(np.arange(400) < 120, centre // 2, -1)
    model = SupervisedMixtureOfPPCA(4, 1, output_noise=0.05, random_state=0).fit(rows, y)
    assert model.score(rows, centre // 2) > 0.95


@pytest.mark.parametrize(
    "model",
    [
        SupervisedPPCA(1, output_noise=0.5),
        SupervisedMixtureOfPPCA(2, 1, max_iter=5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_fails_leaves_the_last_one_as_it_was(
    model: Any, rng: np.random.Generator
) -> None:
    X, y = rng.normal(size=(40, 4)), rng.normal(size=40)
    before = model.fit(X, y).predict(X)
    broken = X.copy()
    broken[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.fit(broken, 1000 * y)
    np.testing.assert_array_equal(model.predict(X), before)
