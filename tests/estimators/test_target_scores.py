"""Scores of predictions where the truth is known in part."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from mixfold import MixtureOfFactorModels, SupervisedPPCA
from mixfold.estimators.shell.targets import make_target, score_predictions

NAN = np.nan


def test_classes_that_are_unknown_do_not_count() -> None:
    target, found = make_target(["a", "b"]), np.array(["a", "b", "b", "a"])
    assert score_predictions(target, ["a", "b", None, NAN], found) == 1.0
    assert score_predictions(target, ["a", "a", None, NAN], found, [3.0, 1.0, 9.0, 9.0]) == 0.75
    # a class that was not there in the fit is wrong, not a mistake
    assert score_predictions(target, ["a", "c", "b", "b"], found) == 0.5
    numbers = make_target([0, 1, -1])
    assert score_predictions(numbers, [0, -1, 1], np.array([0, 1, 0])) == 0.5


def test_outputs_and_labels_that_are_unknown_do_not_count() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(30, 2))
    found, weight = y + 0.3 * rng.normal(size=y.shape), rng.random(30)
    target = make_target(y)
    assert score_predictions(target, y, found, weight) == pytest.approx(
        r2_score(y, found, sample_weight=weight)
    )
    holes = y.copy()
    holes[:10, 0] = NAN
    holes[5:, 1] = NAN
    each = [r2_score(y[10:, 0], found[10:, 0]), r2_score(y[:5, 1], found[:5, 1])]
    assert score_predictions(target, holes, found) == pytest.approx(np.mean(each))
    labels = make_target([[0, 1], [1, 0]])
    truth, said = [[0, 1], [1, -1], [-1, -1]], np.array([[0, 0], [1, 0], [1, 1]])
    assert score_predictions(labels, truth, said) == 0.5


def test_nothing_to_compare_with() -> None:
    target = make_target([0, 1])
    with pytest.raises(ValueError, match="no known entry to compare with"):
        score_predictions(target, [-1, -1], np.array([0, 1]))
    with pytest.raises(ValueError, match="y has 3 entries, X has 2 rows"):
        score_predictions(target, [0, 1, 1], np.array([0, 1]))


@pytest.mark.parametrize("model", [SupervisedPPCA(1), MixtureOfFactorModels(1, 1)])
def test_a_half_labelled_table_is_scored_by_its_labels(model: SupervisedPPCA) -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=200)
    X = np.outer(z, [1.0, -1.0, 2.0]) + rng.normal(size=(200, 3))
    kind = np.where(z > 0, "up", "down").astype(object)
    y = kind.copy()
    y[::2] = None
    fitted = model.fit(X, y)
    right = accuracy_score(kind[1::2].astype(str), fitted.predict(X[1::2]))
    assert fitted.score(X, y) == pytest.approx(right)
    assert right > 0.7
