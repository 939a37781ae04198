"""Claims of pages about predictions, of rows that the fit has not seen, with weights and gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    r2_score,
    root_mean_squared_error,
)

from mixfold import GaussianMixture, MixtureClassifier, SupervisedPPCA
from mixfold.report.formatting import count, number, share
from tests.report.claims import sections, two


def test_classes_of_held_out_rows(tmp_path) -> None:
    """Weighted rows, some without a class, none of them of the fit."""
    wine = load_wine(as_frame=True)
    X, y = wine.data.iloc[:, [0, 6]], wine.target_names[wine.target].astype(object)
    train = np.arange(178) % 2 == 0
    model = MixtureClassifier(GaussianMixture(1), random_state=0).fit(
        X[train], y[train].astype(str)
    )
    rows, truth = X[~train].reset_index(drop=True), y[~train].copy()
    truth[::10] = None
    weight = np.random.default_rng(0).uniform(0.5, 2, len(rows))
    found = sections(model, tmp_path, rows, truth, sample_weight=weight)
    known = np.array([t is not None for t in truth])
    true, w = truth[known].astype(str), weight[known]
    p = model.predict_proba(rows[known])
    predicted, top = model.classes_[p.argmax(axis=1)], p.max(axis=1)
    accuracy = accuracy_score(true, predicted, sample_weight=w)
    place = np.minimum((top * 10).astype(int), 9)
    bins = [b for b in range(10) if (place == b).any()]
    right = predicted == true
    gap = sum(abs((w * (top - right))[place == b].sum()) for b in bins) / w.sum()
    table = confusion_matrix(true, predicted, sample_weight=w, labels=model.classes_)
    brier = brier_score_loss(true, p, sample_weight=w, labels=model.classes_, scale_by_half=False)
    claims = [
        f"{share(accuracy)} of the rows by weight ({count(w.sum())}) are classified correctly.",
        f"accuracy {share(accuracy)}",
        f"log loss {number(log_loss(true, p, sample_weight=w, labels=model.classes_), 4)}",
        f"Brier score {number(brier, 4)}",
        f"calibration error {share(gap)}",
        f"rows of unknown class (left out) {(~known).sum()}",
        *(f"{c} {' '.join(count(v) for v in table[k])}" for k, c in enumerate(model.classes_)),
    ]
    dots = []
    for b in bins:
        own = place == b
        mean = np.average(top[own], weights=w[own])
        correct = np.average(right[own], weights=w[own])
        size = count(w[own].sum())
        claims.append(f"{b / 10:.0%} to {(b + 1) / 10:.0%} {size} {share(mean)} {share(correct)}")
        dots += [f"probability {share(mean)}, correct {share(correct)}, weight {size}", size]
    found.check("classes", [*claims, *_digits_of(model.classes_, found.words["classes"])])
    title = "Reliability diagram: share of correct classes by predicted probability"
    found.check_charts("classes", [title, *dots])
    head = found.words["head"]
    assert f"{share(accuracy)} of the rows of this report are classified correctly" in head
    assert "3 classes for 89 rows" in head and "rows in this report 89" in head
    assert "predicts 3 classes: class_0, class_1 and class_2" in head


def _digits_of(classes, text: str) -> list[str]:
    """Names of classes have digits: what is left of them in the heads of the table."""
    return [f"true class {' '.join(classes)}"]


def test_outputs_of_held_out_rows(tmp_path) -> None:
    """Two numbers to be predicted, some of them unknown."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(300, 2))
    X = pd.DataFrame(z @ rng.normal(size=(2, 4)) + 0.4 * rng.normal(size=(300, 4)),
                     columns=list("abcd"))  # fmt: skip
    y = z @ [[2.0, 1.0], [-1.0, 3.0]] + 0.7 * rng.normal(size=(300, 2)) + [50, -3]
    model = SupervisedPPCA(2, random_state=0).fit(X[:200], y[:200])
    rows, truth = X[200:].reset_index(drop=True), y[200:].copy()
    truth[::7, 1] = np.nan
    found = sections(model, tmp_path, rows, truth)
    predicted, claims = model.predict(rows), []
    for j in range(2):
        known = ~np.isnan(truth[:, j])
        true, guess = truth[known, j], predicted[known, j]
        claims.append(
            f"target {j} {share(r2_score(true, guess))} "
            f"{number(root_mean_squared_error(true, guess))} {number(true.std())}"
        )
    found.check("predictions", claims)
    assert "predicts numbers" in found.words["head"]
    # the factors are not principal axes, and nothing says so
    L, noise = model.loadings_, np.asarray(model.noise_variance_)
    common = (L**2).sum(axis=1)
    variance = common + noise
    standard = L / np.sqrt(variance)[:, None]
    text = found.words["factors"]
    own = common.sum() / (variance.sum() if noise.ndim else common.sum() + 4 * noise)
    assert "principal" not in text
    assert f"2 factors explain {share(own)} of the total variance of all columns" in text
    for j, name in enumerate("abcd"):
        line = f"{name} {two(standard[j, 0])} {two(standard[j, 1])}"
        assert f"{line} {share(common[j] / variance[j])}" in text


def test_a_negative_r_squared_is_said_as_it_is(tmp_path) -> None:
    rng = np.random.default_rng(0)
    factor = rng.normal(size=60)  # of all columns: one of pure noise may fit the output wholly
    X, y = factor[:, None] + rng.normal(size=(60, 3)), factor + rng.normal(size=60)
    model = SupervisedPPCA(1, random_state=0).fit(X, y + 10)
    found = sections(model, tmp_path, X, y)  # of another level than those of the fit
    value = r2_score(y, model.predict(X))
    assert value < -1 and f"target {share(value)} " in found.words["predictions"]
    assert "\u2212" in share(value) and "-" not in share(value)


def test_useless_and_badly_calibrated_classes_are_told(tmp_path) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(400, 6)), np.arange(400) % 4 == 0
    model = MixtureClassifier(GaussianMixture(1), random_state=0).fit(X[:60], y[:60])
    head = sections(model, tmp_path, X[60:], y[60:]).words["head"]
    p = model.predict_proba(X[60:])
    top, right = p.max(axis=1), model.predict(X[60:]) == y[60:]
    assert right.mean() <= 0.75
    assert f"Always predicting the most common class would be correct as often ({share(0.75)})" in (
        head
    )
    place = np.minimum((top * 10).astype(int), 9)
    gap = sum(abs((top - right)[place == b].sum()) for b in range(10)) / len(top)
    assert gap == pytest.approx(gap) and gap > 0.1 and (top - right).mean() > 0
    assert f"off by {share(gap)} on average, mostly too high" in head
