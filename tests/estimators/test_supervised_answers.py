"""Answers of supervised models, from nothing but what a fit publishes, by brute force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import mixfold
from mixfold import MixtureOfFactorModels, SupervisedMixtureOfPPCA, SupervisedPPCA
from mixfold.contracts import Array

N, D = 60, 4


def table(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(N, 2))
    X = 2 * Z @ rng.normal(size=(2, D)) + 0.5 * rng.normal(size=(N, D)) + [1, 30, -5, 0]
    X[: N // 2, 0] += 8
    return X, Z + 0.4 * rng.normal(size=Z.shape)


def kinds(scores: Array) -> Array:
    """Three classes."""
    return (scores[:, 0] > 0).astype(int) + (scores[:, 1] > 0.3)


# ------------------------------------------------ Gaussian outputs


def joint(model: Any, k: int) -> tuple[Array, Array]:
    """Mean and covariance of (x, y) in a component."""
    one = isinstance(model, SupervisedPPCA)
    W = model.loadings_ if one else model.loadings_[k]
    V = model.output_loadings_ if one else model.output_loadings_[k]
    noise = model.noise_variance_ if one else model.noise_variance_[k]
    mean = model.mean_ if one else model.means_[k]
    own = model.output_mean_ if one else model.output_mean_[k]
    both = np.vstack([W, V])
    diagonal = np.append(np.full(D, noise), np.broadcast_to(model.output_noise_variance_, len(V)))
    return np.append(mean, own), both @ both.T + np.diag(diagonal)


def density(mean: Array, cov: Array, rows: Array) -> Array:
    """ln N of the entries that are there."""
    out = []
    for row in rows:
        there = ~np.isnan(row)
        law = multivariate_normal(mean[there], cov[np.ix_(there, there)])
        out.append(law.logpdf(row[there]))
    return np.array(out)


def class_chances(model: Any, X: Array, y: Array) -> Array:
    """P(class | x): codes are as frequent as the classes, not as a normal has it."""
    codes, share = model._coding.codes, np.bincount(y) / len(y)
    weights = getattr(model, "weights_", np.ones(1))
    logs = []
    for code, prior in zip(codes, share, strict=True):
        rows = np.column_stack([X, np.tile(code, (len(X), 1))])
        with_x, alone = [], []
        for k, weight in enumerate(weights):
            mean, cov = joint(model, k)
            with_x.append(np.log(weight) + density(mean, cov, rows))
            alone.append(np.log(weight) + density(mean[D:], cov[D:, D:], code[None]))
        logs.append(logsumexp(with_x, axis=0) - logsumexp(alone, axis=0) + np.log(prior))
    found = np.stack(logs, axis=1)
    return np.asarray(np.exp(found - logsumexp(found, axis=1, keepdims=True)))


@pytest.mark.parametrize("coding", ["contrast", "one-of-c"])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        SupervisedPPCA(2, output_noise=0.1),
        SupervisedMixtureOfPPCA(2, 1, output_noise=0.1, random_state=0),
    ],
    ids=["one", "two"],
)
def test_chances_of_classes_are_those_of_the_joint_normal(
    model: Any, coding: str, holes: bool
) -> None:
    X, scores = table()
    y = kinds(scores)
    if holes:
        X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
        y = y[-len(X) :]
    fitted = model.set_params(coding=coding).fit(X, y)
    np.testing.assert_allclose(fitted.predict_proba(X), class_chances(fitted, X, y), atol=1e-9)


@pytest.mark.parametrize("weight", [1.0, 4.0])
def test_axes_are_those_of_what_both_views_tell(weight: float) -> None:
    X, scores = table()
    model = SupervisedPPCA(2, output_weight=weight, output_noise=0.2).fit(X, scores)
    assert model._target.task == "regression"
    W, V = model.loadings_, model.output_loadings_
    told = W.T @ W / model.noise_variance_
    told += weight * (V.T / model.output_noise_variance_) @ V
    assert abs(told[0, 1]) < 1e-8 * told[0, 0]
    assert told[0, 0] > told[1, 1]
    # neither view alone has these axes
    assert abs((W.T @ W)[0, 1]) > 1e-6 * (W.T @ W)[0, 0]


@pytest.mark.parametrize("unit", [1e3, 1e4])
@pytest.mark.parametrize("given", [{}, {"output_noise": 0.3}])
def test_the_closed_form_is_the_best_where_one_column_outweighs_the_others(
    unit: float, given: dict[str, float]
) -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(120, 2))
    X = Z @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(120, 6))
    X[:, 2] *= unit
    y = Z[:, 0] + 0.3 * rng.normal(size=120)
    closed = SupervisedPPCA(2, solver="profile", **given).fit(X, y)
    steps = SupervisedPPCA(2, solver="em", tol=1e-9, random_state=0, **given).fit(X, y)
    assert closed.lower_bound_ >= steps.lower_bound_ - 1e-5
    np.testing.assert_allclose(closed.noise_variance_, steps.noise_variance_, rtol=1e-3)


def test_what_is_known_of_classes_and_labels_is_what_is_predicted() -> None:
    X, scores = table()
    y = kinds(scores)
    half = np.where(np.arange(N) % 2, y, -1)
    classes = SupervisedPPCA(1).fit(X, y)
    assert (classes.predict(X) != y)[1::2].any()
    known = classes.predict(X, y=half)
    assert (known == y)[1::2].all()
    assert (known == classes.predict(X))[::2].all()
    Y = np.column_stack([scores[:, 0] > 0, scores[:, 1] > 0]).astype(float)
    labels = SupervisedPPCA(1).fit(X, Y)
    assert (labels.predict(X)[:, 0] != Y[:, 0]).any()
    Y[:, 1] = np.nan
    assert (labels.predict(X, y=Y)[:, 0] == Y[:, 0]).all()


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(
    "model", [SupervisedPPCA(1), SupervisedMixtureOfPPCA(2, 1, random_state=0)], ids=["one", "two"]
)
def test_a_noise_of_the_columns_that_is_given_is_kept_in_their_units(
    model: Any, holes: bool
) -> None:
    X, scores = table()
    if holes:
        X[::7, 1] = np.nan
    fitted = model.set_params(input_noise=2e4).fit(100 * X, scores)
    np.testing.assert_allclose(fitted.noise_variance_, 2e4)


# ------------------------------------------------ labels in the latent space


def posteriors(model: MixtureOfFactorModels, X: Array) -> tuple[Array, list[tuple[Array, Array]]]:
    """ln pi_k p(x | k) (n, K); mean and covariance of the factors in each component."""
    joint_logs, latents = [], []
    for weight, mean, W, noise in zip(
        model.weights_, model.means_, model.loadings_, model.noise_variance_, strict=True
    ):
        d = W.shape[1]
        law = multivariate_normal(mean, W @ W.T + noise * np.eye(len(mean)))
        joint_logs.append(np.log(weight) + law.logpdf(X))
        cov = np.linalg.inv(np.eye(d) + W.T @ W / noise)
        latents.append(((X - mean) @ W @ cov / noise, cov))
    return np.stack(joint_logs, axis=1), latents


@pytest.mark.parametrize("classifier", ["shared", "per_component"])
def test_classes_by_the_expected_factors_alone(classifier: str) -> None:
    X, scores = table()
    y = (scores[:, 0] > 0).astype(int)
    model = MixtureOfFactorModels(
        2, 2, classifier=classifier, classify_from="latent", ridge=1.0, random_state=0
    ).fit(X, y)
    logs, latents = posteriors(model, X)
    z = np.stack([m for m, _ in latents], axis=1)
    if classifier == "shared":
        share = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        score = (share[..., None] * z).sum(axis=1) @ model.coef_[0] + model.intercept_[0]
    else:
        k = logs.argmax(axis=1)
        assert set(k) == {0, 1}
        own = z[np.arange(len(X)), k]
        score = (own * model.coef_[k, 0]).sum(axis=1) + model.intercept_[k, 0]
    np.testing.assert_allclose(model.decision_function(X), score, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], norm.cdf(score), atol=1e-9)


def test_the_risk_of_a_reduction_holds_what_components_disagree_on() -> None:
    X, scores = table()
    model = MixtureOfFactorModels(2, 2, random_state=0).fit(X, (scores[:, 0] > 0).astype(int))
    rows = np.linspace(*model.means_, 4001)
    # somewhere between the components both are possible
    rows = rows[np.argsort(model.risks(rows, per_row=True)["clustering"])[-5:]]
    logs, latents = posteriors(model, rows)
    share = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    assert share.min() > 0.4
    rng = np.random.default_rng(0)
    expected, squares = model.transform(rows), np.zeros(len(rows))
    for k, (mean, cov) in enumerate(latents):
        draws = mean[:, None] + rng.multivariate_normal(np.zeros(2), cov, size=(len(rows), 4000))
        squares += share[:, k] * ((draws - expected[:, None]) ** 2).sum(axis=2).mean(axis=1)
    risks = model.risks(rows, per_row=True)["reduction"]
    np.testing.assert_allclose(risks, squares, rtol=0.08)
    alone = sum(share[:, k] * np.trace(cov) for k, (_, cov) in enumerate(latents))
    assert (risks > 1.5 * alone).any()  # the example is one where it matters


def test_the_density_with_one_of_several_classes_is_the_mean_over_their_scores() -> None:
    X, scores = table()
    y = kinds(scores)
    model = MixtureOfFactorModels(2, 2, ridge=1.0, random_state=0).fit(X, y)
    logs, latents = posteriors(model, X)
    each = []
    for c, (coef, bias) in enumerate(zip(model.coef_, model.intercept_, strict=True)):
        sign = np.where(y == c, 1.0, -1.0)
        chances = [
            norm.logcdf(sign * (mean @ coef + bias) / np.sqrt(1 + coef @ cov @ coef))
            for mean, cov in latents
        ]
        each.append(logsumexp(logs + np.stack(chances, axis=1), axis=1))
    np.testing.assert_allclose(model.score_samples(X, y), np.mean(each, axis=0), atol=1e-9)
    unknown = np.full(len(X), -1)
    np.testing.assert_allclose(model.score_samples(X, unknown), model.score_samples(X), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_drawn_classes_are_as_uncertain_as_the_model_says(n_classes: int) -> None:
    X, scores = table()
    y = kinds(scores) if n_classes == 3 else (scores[:, 0] > 0).astype(int)
    model = MixtureOfFactorModels(2, 2, ridge=5.0, random_state=0).fit(X, y)
    rows, drawn = model.sample(40000, random_state=1)
    chances = model.predict_proba(rows)
    said = chances.max(axis=1).mean()
    assert 0.5 < said < 0.97
    if n_classes == 2:
        assert np.mean(drawn == model.predict(rows)) == pytest.approx(said, abs=0.01)
    share = np.bincount(drawn, minlength=n_classes) / len(drawn)
    # chances of more classes are normalised before the factors are averaged, or after
    np.testing.assert_allclose(share, chances.mean(axis=0), atol=0.01 if n_classes == 2 else 0.03)


@pytest.mark.parametrize("model", [SupervisedPPCA(2), SupervisedMixtureOfPPCA(1, 2)], ids=repr)
def test_a_model_of_three_labels_is_saved_and_loaded(model: Any, tmp_path: Path) -> None:
    X, scores = table()
    labels = (np.column_stack([scores, scores.sum(axis=1)]) > 0).astype(int)
    model.fit(X, labels).save(tmp_path / "model")
    loaded = mixfold.load(tmp_path / "model")
    assert loaded.predict_proba(X).shape == (N, 3)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
