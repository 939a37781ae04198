"""MORP(loss=...): classes, labels, grades, what is unknown, weights, files, and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import mixfold
from mixfold import MORP
from mixfold.contracts import Array

RNG = np.random.default_rng(11)
X = RNG.normal(size=(160, 6)) * [5, 4, 1, 1, 1, 1] + 3
SIGNAL = X[:, 2:5] - 3 + 0.3 * RNG.normal(size=(160, 3))
CLASSES = np.array(["a", "b", "c"])[SIGNAL.argmax(axis=1)]
LABELS = (SIGNAL > 0).astype(int)
STARS = np.digitize(SIGNAL[:, 0], [-0.8, 0.0, 0.8]) + 1
TASKS: dict[str, tuple[str, Any]] = {
    "softmax": ("logistic", CLASSES),
    "two classes": ("logistic", LABELS[:, 0]),
    "labels": ("logistic", LABELS),
    "hinge": ("hinge", CLASSES),
    "hinge of labels": ("hinge", LABELS),
    "rank": ("rank", STARS),
    "rank of columns": ("rank", np.column_stack([STARS, STARS[::-1]]).astype(float)),
}
tasks = pytest.mark.parametrize("name", list(TASKS))


def morp(name: str, **settings: Any) -> tuple[MORP, Any]:
    loss, y = TASKS[name]
    d = 3 if np.ndim(y) > 1 or name == "softmax" else 1
    return MORP(d, beta=0.8, loss=loss, **{"regularization": 1e-3, **settings}), y


@tasks
def test_outputs_are_predicted_in_the_form_in_which_they_were_given(name: str) -> None:
    model, y = morp(name)
    model.fit(X, y)
    guess = model.predict(X)
    assert guess.shape == np.shape(y)
    assert set(np.unique(guess)) <= set(np.unique(y))
    squared = clone(model).set_params(loss="squared").fit(X, y)
    if name != "rank of columns":  # the second of which is chance
        assert model.score(X, y) > squared.score(X, y) - 0.03
    assert model.converged_
    assert -1 < model.lower_bound_ < 0
    np.testing.assert_allclose(model.fit_transform(X, y), model.transform(X), atol=1e-9)


def test_more_axes_than_outputs_are_those_of_logistic_regression() -> None:
    y, gamma = LABELS[:, 0], 1e-3
    model = MORP(5, beta=1 - 1e-9, loss="logistic", regularization=gamma, tol=1e-12).fit(X, y)
    F = (X - X.mean(axis=0)) / np.linalg.norm(X - X.mean(axis=0))
    # the loss + gamma/8 |slopes|^2, as the penalty is c gamma / 2 with the curvature c = 1/4
    theirs = LogisticRegression(C=4 / gamma, tol=1e-12, max_iter=10_000).fit(F, y)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(F), atol=1e-5)
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(F), atol=1e-3)


def test_probabilities_are_those_of_the_logistic_loss() -> None:
    model, y = morp("softmax")
    shares = model.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (model.classes_[shares.argmax(axis=1)] == model.predict(X)).all()
    labels, Y = morp("labels")
    p = labels.fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(p > 0.5, labels.predict(X) == 1)
    # on the whole as many as there are: the intercepts are free
    np.testing.assert_allclose(p.mean(axis=0), Y.mean(axis=0), atol=1e-3)
    for loss in ("squared", "hinge"):
        with pytest.raises(AttributeError, match="no attribute 'predict_proba'") as found:
            MORP(loss=loss).predict_proba  # noqa: B018
        assert "has probabilities with loss='logistic' only" in str(found.value.__cause__)


def test_without_outputs_the_axes_are_those_of_kernel_pca() -> None:
    free = MORP(2, beta=0.0, loss="logistic", kernel="rbf", gamma=0.02).fit(X, CLASSES)
    plain = MORP(2, beta=0.0, kernel="rbf", gamma=0.02).fit(X, CLASSES)
    np.testing.assert_allclose(free.transform(X), plain.transform(X), atol=1e-9)


@tasks
def test_what_is_unknown_costs_nothing(name: str) -> None:
    model, y = morp(name)
    if name in ("softmax", "hinge"):
        holed = np.where(np.arange(160) < 120, y, None)
    elif np.ndim(y) == 2:
        holed = np.where(np.arange(160)[:, None] < 120, y, np.nan)
    else:
        holed = np.where(np.arange(160) < 120, y, -1)
    model.fit(X, holed)
    other, _ = morp(name)
    # the inputs of all rows count
    assert model.transform(X).shape == other.fit(X, y).transform(X).shape
    assert model.score(X[120:], y[120:]) > other.score(X[120:], y[120:]) - 0.25


@pytest.mark.parametrize("name", ["softmax", "rank"])
def test_a_weight_of_two_is_a_row_twice_and_of_zero_none(name: str) -> None:
    model, y = morp(name)
    weight = RNG.integers(0, 3, 160).astype(float)
    weighted = model.fit(X, y, sample_weight=weight)
    places = np.repeat(np.arange(160), weight.astype(int))
    repeated = clone(model).fit(X[places], y[places])
    np.testing.assert_allclose(weighted.lower_bound_, repeated.lower_bound_, rtol=1e-7)
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=2e-3
    )


@tasks
def test_a_saved_model_is_the_same(name: str, tmp_path: Path) -> None:
    model, y = morp(name)
    model.fit(X, y).save(tmp_path / "model")
    loaded = mixfold.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert (loaded.n_iter_, loaded.lower_bound_) == (model.n_iter_, model.lower_bound_)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("landmarks", [None, 40])
def test_every_kernel_and_landmarks(kernel: str, landmarks: Any) -> None:
    rows = X @ X.T if kernel == "precomputed" else X
    model = MORP(2, kernel=kernel, gamma=0.05, loss="logistic", beta=0.8, landmarks=landmarks,
                 random_state=0)  # fmt: skip
    assert model.fit(rows, LABELS[:, 0]).score(rows, LABELS[:, 0]) > 0.8
    assert model.transform(rows).shape == (160, 2)


def test_several_sets_have_losses_of_their_own() -> None:
    y = {"kind": CLASSES, "signs": LABELS[:, :2], "one": LABELS[:, 2]}
    model = MORP(4, beta={"kind": 0.4, "signs": 0.3, "one": 0.1}, loss="logistic").fit(X, y)
    guess = model.predict(X)
    assert {name: guess[name].shape for name in y} == {k: np.shape(v) for k, v in y.items()}
    assert model.score(X, y) > 0.7
    assert {name: len(p.T) for name, p in model.predict_proba(X).items()} == {
        "kind": 3, "signs": 2, "one": 2,
    }  # fmt: skip
    # a set that does not count is read off scores that do not look at it
    unseen = MORP(2, beta={"kind": 0.8, "signs": 0.0, "one": 0.0}, loss="logistic").fit(X, y)
    alone = MORP(2, beta=0.8, loss="logistic").fit(X, CLASSES)
    np.testing.assert_allclose(unseen.transform(X), alone.transform(X), atol=0.02)


def test_grades_lie_between_ordered_thresholds() -> None:
    model, y = morp("rank")
    function = model.fit(X, y).decision_function(X)
    guess = model.predict(X)
    tops = [function[guess == g].max() for g in range(1, 4)]
    assert all(top < function[guess > g].min() for g, top in enumerate(tops, start=1))
    assert np.abs(guess - y).mean() < 0.4
    # numbers between the grades are no matter: their order is
    stretched = clone(model).fit(X, np.array([0.0, 1.0, 7.5, 100.0, 101.5])[y])
    np.testing.assert_allclose(stretched.decision_function(X)[:, 0], function, atol=1e-6)


def test_labels_that_are_parted_wholly_have_a_bound_by_the_regularization() -> None:
    y = (X[:, 0] > 3).astype(int)
    model = MORP(1, loss="logistic", beta=0.9).fit(X, y)
    assert model.converged_
    assert np.isfinite(model.decision_function(X)).all()


# ------------------------------------------------ limits and mistakes


def test_steps_that_are_too_few_are_told_of() -> None:
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = MORP(1, loss="hinge", max_iter=1).fit(X, LABELS)
    assert not model.converged_
    assert model.stop_reason_ == "max_iter"


@pytest.mark.parametrize(("settings", "y", "words"), [
    ({"loss": "log"}, CLASSES, "The 'loss' parameter of MORP"),
    ({"loss": "logistic"}, SIGNAL, "is for classes and labels, but y has numbers"),
    ({"loss": "hinge"}, SIGNAL[:, 0], "is for classes and labels, but y has numbers"),
    ({"loss": "rank"}, SIGNAL, "takes ordered grades, at most 50 in a column; y has 160"),
    ({"loss": "rank", "form": "inverse"}, STARS, "needs form='max', got 'inverse'"),
    ({"loss": "hinge", "output_kernel": "rbf"}, CLASSES, "needs output_kernel='linear', got 'rbf'"),
    ({"loss": "hinge", "beta": "cv"}, CLASSES, "beta='cv' goes by R.2 of coded outputs"),
    ({"loss": "hinge", "tol": -1}, CLASSES, "The 'tol' parameter of MORP"),
], ids=str)  # fmt: skip
def test_settings_that_do_not_go_together(settings: dict[str, Any], y: Array, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MORP(1, **settings).fit(X, y)
