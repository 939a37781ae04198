"""The mixture of factor models with labels, as a user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import ndtr
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

import mixfold
from mixfold import MixtureOfFactorModels, MixtureOfPPCA, metrics
from mixfold.contracts import Array

D = 6


def planted(n: int = 300, n_classes: int = 2, seed: int = 0) -> tuple[Array, Array]:
    """Two groups on planes of their own; the angle of the factors is the class."""
    rng = np.random.default_rng(seed)
    W = np.random.default_rng(100).normal(size=(2, 2, D))
    k, z = rng.integers(2, size=n), rng.normal(size=(n, 2))
    X = np.einsum("nd,ndj->nj", z, W[k]) + 4.0 * k[:, None] + 0.2 * rng.normal(size=(n, D))
    angle = np.arctan2(z[:, 1] + 0.1 * rng.normal(size=n), z[:, 0])
    y = np.floor((angle + np.pi) / (2 * np.pi) * n_classes).astype(np.int64) % n_classes
    return X, y


def fitted(K: int = 2, d: int = 2, n_classes: int = 2, **settings: Any) -> Any:
    X, y = planted(n_classes=n_classes)
    return MixtureOfFactorModels(K, d, random_state=0, **settings).fit(X, y)


@pytest.fixture(scope="module")
def model() -> Any:
    return fitted()


# ------------------------------------------------ answers


def test_classes_of_new_rows(model: Any) -> None:
    X, y = planted(seed=1)
    assert model.score(X, y) > 0.93
    P, score = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), P.argmax(axis=1))
    np.testing.assert_allclose(ndtr(score), P[:, 1], atol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P)
    np.testing.assert_allclose(model.weights_, 0.5, atol=0.1)


def test_probabilities_are_those_of_the_formula(model: Any) -> None:
    """From the published attributes alone: sum_k r_k Phi(q_k / tau_k)."""
    X, _ = planted(30, seed=2)
    Z, R = model.transform(X, per_component=True), model.latent_covariances_
    w, b = model.coef_[0], model.intercept_[0]
    tau = np.sqrt(1 + np.einsum("d,kde,e->k", w, R, w))
    logs = []
    for k in range(2):
        W, v = model.loadings_[k], model.noise_variance_[k]
        C = W @ W.T + v * np.eye(D)
        away = X - model.means_[k]
        logs.append(
            np.log(model.weights_[k]) - 0.5 * np.linalg.slogdet(2 * np.pi * C)[1]
            - 0.5 * (away * np.linalg.solve(C, away.T).T).sum(axis=1)
        )  # fmt: skip
    joint = np.stack(logs, axis=1)
    share = np.exp(joint - joint.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.score_samples(X), np.logaddexp(*joint.T), rtol=1e-7)
    np.testing.assert_array_equal(model.predict_component(X), share.argmax(axis=1))
    expected = (share * ndtr((Z @ w + b) / tau)).sum(axis=1)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, atol=1e-10)
    zhat = model.transform(X)
    np.testing.assert_allclose(zhat, np.einsum("nk,nkd->nd", share, Z), atol=1e-7)
    latent = MixtureOfFactorModels(2, 2, classify_from="latent", random_state=0).fit(*planted())
    np.testing.assert_allclose(latent.decision_function(X), zhat @ w + b, atol=1e-7)


def test_risks_are_those_of_the_metrics(model: Any) -> None:
    X, y = planted(60, seed=3)
    rows, means = model.risks(X, y, per_row=True), model.risks(X, y)
    Z = model.transform(X, per_component=True)
    mixture = MixtureOfPPCA(2, 2)
    mixture.__dict__.update(_params=model._canonical(), n_features_in_=D, _dtype="float64")
    share = mixture.predict_log_proba(X)
    risk = metrics.reduction_risk(np.exp(share), Z, model.latent_covariances_, per_row=True)
    np.testing.assert_allclose(rows["reduction"], risk, rtol=1e-8)
    total = metrics.reduction_risk(np.exp(share), Z, model.latent_covariances_)
    assert means["reduction"] == pytest.approx(total)
    np.testing.assert_allclose(
        rows["clustering"], metrics.clustering_risk(share, log=True, per_row=True), rtol=1e-6
    )
    P = model.predict_proba(X)
    np.testing.assert_allclose(rows["classification"], P.min(axis=1), atol=1e-12)
    score = model.transform(X) @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(rows["classification_latent"], ndtr(-np.abs(score)), atol=1e-12)
    assert means["accuracy"] == pytest.approx(model.score(X, y))
    assert means["accuracy_latent"] == pytest.approx(np.mean((score > 0) == (y == 1)))
    weight = np.arange(60) % 2
    half = model.risks(X, y, sample_weight=weight)
    assert half["clustering"] == pytest.approx(rows["clustering"][1::2].mean())
    y[:30] = -1
    assert np.isnan(model.risks(X, y, per_row=True)["accuracy"][:30]).all()


def test_a_single_component_is_surer_of_the_class_from_latents() -> None:
    X, _ = planted()
    risks = fitted(1).risks(X, per_row=True)
    assert (risks["classification_latent"] <= risks["classification"] + 1e-15).all()
    np.testing.assert_array_equal(risks["clustering"], 0)


def test_the_axes_of_the_fit(model: Any) -> None:
    assert model.coef_.shape == (1, 2)
    assert model.coef_[0, 0] > 0
    np.testing.assert_array_equal(model.coef_[0, 1:], 0)
    X, _ = planted(20)
    for method in ("posterior", "hard", "least-squares", "weighted"):
        assert metrics.signal_to_error_ratio(X, model.reconstruct(X, method)) > 15
    back = model.inverse_transform(model.transform(X), model.predict_component(X))
    np.testing.assert_allclose(back, model.reconstruct(X, "hard"), rtol=1e-8)


def test_the_objective_is_published_and_never_falls(model: Any) -> None:
    assert (np.diff(model.lower_bounds_) >= -1e-10).all()
    X, y = planted()
    total = model.score_samples(X, y).sum() - 0.005 * (model.coef_**2).sum()
    assert model.lower_bound_ == pytest.approx(total / len(X), rel=1e-9)
    assert model.converged_


def test_information_criteria(model: Any) -> None:
    X, y = planted()
    total = model.score_samples(X, y).sum()
    free = 1 + 2 * D + 2 * (2 * D) + 2 + 2
    assert model.bic() == pytest.approx(-2 * total + free * np.log(len(X)))
    assert model.bic(X, y) == pytest.approx(model.bic())
    assert model.aic(X, y) == pytest.approx(-2 * total + 2 * free)
    with pytest.raises(ValueError, match="y must be given with X"):
        model.bic(X)
    with pytest.raises(ValueError, match="give X and y"):
        fitted(1, tradeoff=0.5).bic()
    with pytest.raises(ValueError, match="4 classes"):
        fitted(1, n_classes=4).bic()


def test_draws_follow_the_model(model: Any) -> None:
    n = 40_000
    X, y = model.sample(n, random_state=0)
    mean = model.weights_ @ model.means_
    np.testing.assert_allclose(X.mean(axis=0), mean, atol=6 * X.std() / np.sqrt(n))
    P = model.predict_proba(X)[:, 1]
    assert abs(np.mean(y == 1) - P.mean()) < 6 * 0.5 / np.sqrt(n)
    near = np.abs(P - 0.5) < 0.2
    assert abs(np.mean(y[near] == 1) - P[near].mean()) < 6 * 0.5 / np.sqrt(near.sum())
    again, _ = model.sample(5, random_state=3)
    np.testing.assert_array_equal(again, model.sample(5, random_state=3)[0])


# ------------------------------------------------ settings


@pytest.mark.parametrize("classifier", ["shared", "per_component"])
@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
def test_more_classes(classifier: str, noise: str) -> None:
    X, y = planted(n_classes=4)
    model = fitted(n_classes=4, classifier=classifier, noise=noise, max_iter=60, tol=1e-4)
    new, labels = planted(seed=1, n_classes=4)
    assert model.score(new, labels) > 0.85
    P = model.predict_proba(new)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert model.decision_function(new).shape == (300, 4)
    np.testing.assert_array_equal(model.decision_function(new).argmax(axis=1), P.argmax(axis=1))
    own = (2,) if classifier == "per_component" else ()
    assert model.coef_.shape == (*own, 4, 2)
    assert model.intercept_.shape == (*own, 4)
    risks = model.risks(X, y)
    assert 0 < risks["classification"] < 0.4


def test_own_classifiers_lift_the_restriction() -> None:
    """Clusters that are told by the class: a shared classifier cannot."""
    rng = np.random.default_rng(0)
    z, k = rng.normal(size=(400, 1)), rng.integers(2, size=400)
    X = z * [1.0, 2.0, 1.0, 0.5] + 6.0 * k[:, None] + 0.2 * rng.normal(size=(400, 4))
    y = ((z[:, 0] > 0) == (k == 1)).astype(int)  # in one of the groups the other way round
    y[z[:, 0] > 1.5] = k[z[:, 0] > 1.5]
    own = MixtureOfFactorModels(2, 1, classifier="per_component", random_state=0).fit(X, y)
    assert own.score(X, y) > 0.9
    assert own.coef_.shape == (2, 1, 1)


def test_unknown_classes_help_where_few_are_known() -> None:
    """Averaged over splits: ten labels with and without 140 rows that have none."""
    gains = []
    for seed in range(4):
        X, y = planted(150, seed=seed + 10)
        test = planted(500, seed=seed + 50)
        some = np.where(np.arange(150) < 10, y, -1)
        settings = {"random_state": 0, "tol": 1e-3}
        with_all = MixtureOfFactorModels(2, 2, **settings).fit(X, some)
        alone = MixtureOfFactorModels(1, 2, **settings).fit(X[:10], y[:10])
        gains.append(with_all.score(*test) - alone.score(*test))
    assert np.mean(gains) > 0.05


def test_without_a_single_class_it_is_a_mixture_of_ppca() -> None:
    X, _ = planted()
    model = MixtureOfFactorModels(2, 2, random_state=0, tol=1e-7).fit(X, np.full(len(X), -1))
    plain = MixtureOfPPCA(2, 2, random_state=0, tol=1e-7).fit(X)
    assert model.score_samples(X).mean() == pytest.approx(plain.score(X), abs=1e-5)
    none = MixtureOfFactorModels(2, 2, tradeoff=0.0, random_state=0, tol=1e-7).fit(*planted())
    assert none.score_samples(X).mean() == pytest.approx(plain.score(X), abs=1e-5)
    assert len(model.classes_) == 0
    with pytest.raises(ValueError, match="without a single label"):
        model.predict(X)
    np.testing.assert_array_equal(model.sample(3)[1], -1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_trade_off_stresses_the_classes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) * [3.0, 1.0, 1.0, 1.0, 1.0]
    y = np.where(X[:, 1] + 0.2 * rng.normal(size=200) > 0, "up", "down")
    plain = MixtureOfFactorModels(1, 1, random_state=0).fit(X, y)
    much = MixtureOfFactorModels(1, 1, tradeoff=100.0, max_iter=300, random_state=0).fit(X, y)
    assert much.score(X, y) > plain.score(X, y) + 0.1
    assert much.score_samples(X).mean() < plain.score_samples(X).mean()
    assert (np.diff(much.lower_bounds_) >= 0).all()
    both = much.score_samples(X, y) - much.score_samples(X)
    value = much.score_samples(X).sum() + 100 * both.sum() - 0.005 * (much.coef_**2).sum()
    assert much.lower_bound_ == pytest.approx(value / len(X), rel=1e-9)
    with pytest.raises(ValueError, match="give X"):
        much.bic()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_gradient_scheme_ends_near_em() -> None:
    X, y = planted(150)
    settings: dict[str, Any] = {"ridge": 0.1, "random_state": 0}
    em = MixtureOfFactorModels(2, 2, **settings).fit(X, y)
    slow = MixtureOfFactorModels(2, 2, label_solver="gradient", max_iter=400, **settings)
    slow.fit(X, y)
    assert em.lower_bound_ >= slow.lower_bound_ - 1e-5
    assert slow.lower_bound_ > em.lower_bound_ - 0.1


# ------------------------------------------------ data


def test_labels_of_any_kind_and_names_of_columns(tmp_path: Path) -> None:
    X, y = planted(120)
    names = np.array(["left", "right"], dtype=object)[y]
    names[::5] = None
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["side"] = names
    model = MixtureOfFactorModels(2, 2, random_state=0, max_iter=20, tol=1e-2)
    by_name = model.fit(table, "side")
    assert by_name.classes_.tolist() == ["left", "right"]
    assert by_name.feature_names_in_.tolist() == list("abcdef")
    said = by_name.predict(table)
    again = mixfold.MixtureOfFactorModels(2, 2, random_state=0, max_iter=20, tol=1e-2)
    again.fit(X, np.where(np.arange(120) % 5 == 0, -1, y))
    np.testing.assert_array_equal(said == "right", again.predict(X) == 1)
    by_name.save(tmp_path / "model.mixfold")
    back = mixfold.load(tmp_path / "model.mixfold")
    np.testing.assert_array_equal(back.predict(table), said)
    np.testing.assert_array_equal(back.coef_, by_name.coef_)
    assert back.risks(table) == by_name.risks(table)


def test_missing_entries_and_sparse_rows() -> None:
    X, y = planted()
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    settings: dict[str, Any] = {"random_state": 0, "tol": 1e-4}
    model = MixtureOfFactorModels(2, 2, **settings).fit(holes, y)
    assert model.score(holes, y) > 0.8
    assert np.isfinite(model.reconstruct(holes)).all()
    assert np.isfinite(model.impute(holes)).all()
    thin = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = MixtureOfFactorModels(2, 2, **settings).fit(thin, y)
    csr = MixtureOfFactorModels(2, 2, **settings).fit(sparse.csr_matrix(thin), y)
    assert csr.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-6)
    np.testing.assert_array_equal(csr.predict(sparse.csr_matrix(thin)), dense.predict(thin))


def test_weights_are_repetitions_and_zero_is_absence() -> None:
    X, y = planted(120)
    weight = np.random.default_rng(0).integers(0, 3, size=120)
    settings: dict[str, Any] = {"random_state": 0, "tol": 1e-3}
    heavy = MixtureOfFactorModels(2, 2, **settings).fit(X, y, sample_weight=weight)
    times = np.repeat(np.arange(120), weight)
    many = MixtureOfFactorModels(2, 2, **settings).fit(X[times], y[times])
    np.testing.assert_allclose(heavy.coef_, many.coef_, rtol=1e-6)
    np.testing.assert_allclose(heavy.means_, many.means_, rtol=1e-6, atol=1e-8)


def test_single_precision_and_large_offsets(model: Any) -> None:
    X, y = planted()
    single = fitted().fit(X.astype(np.float32), y)
    assert single.means_.dtype == np.float32
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert np.mean(single.predict(X.astype(np.float32)) == model.predict(X)) > 0.98
    far = fitted().fit(X + 1e6, y)
    assert far.lower_bound_ == pytest.approx(model.lower_bound_, abs=1e-4)
    np.testing.assert_allclose(far.coef_, model.coef_, rtol=1e-2)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_awkward_tables() -> None:
    X, y = planted(80)
    constant = np.column_stack([X, np.full(80, 7.0)])
    for noise in ("isotropic", "diagonal"):
        model = MixtureOfFactorModels(2, 2, noise=noise, max_iter=30, random_state=0)
        assert np.isfinite(model.fit(constant, y).predict_proba(constant)).all()
    wide = np.random.default_rng(0).normal(size=(20, 50))
    labels = np.arange(20) % 2
    few = MixtureOfFactorModels(2, 3, max_iter=30, random_state=0).fit(wide, labels)
    assert np.isfinite(few.score_samples(wide)).all()
    no_factor = MixtureOfFactorModels(2, 0, random_state=0).fit(X, y)
    np.testing.assert_allclose(no_factor.predict_proba(X)[:, 1], y.mean(), atol=0.02)
    apart = np.concatenate([X, X + 100.0])
    separable = MixtureOfFactorModels(1, 2, max_iter=50, random_state=0)
    separable.fit(apart, np.repeat([0, 1], 80))
    assert np.isfinite(separable.coef_).all()
    assert separable.score(apart, np.repeat([0, 1], 80)) == 1.0


@pytest.mark.parametrize(
    ("settings", "y", "words"),
    [
        ({"tradeoff": 2.0, "label_solver": "gradient"}, None, "tradeoff=2.0"),
        ({"n_factors": 7}, None, "n_factors=7 must not exceed"),
        ({}, np.zeros(300, int), "at least two classes"),
        ({}, np.full(300, np.nan), "no known entry"),
        ({"classify_from": "labels"}, None, "classify_from"),
        ({"ridge": -1.0}, None, "ridge"),
        ({"noise": "full"}, None, "noise"),
    ],
)
def test_mistakes_are_told(settings: dict[str, Any], y: Array | None, words: str) -> None:
    X, labels = planted()
    model = MixtureOfFactorModels(**{"n_components": 2, "n_factors": 2, **settings})
    with pytest.raises(ValueError, match=words):
        model.fit(X, labels if y is None else y)


def test_rows_without_y_are_refused() -> None:
    with pytest.raises(ValueError, match="requires y"):
        MixtureOfFactorModels().fit(planted()[0])


# ------------------------------------------------ digits


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("settings", "least", "ratio"),
    [
        ({"n_factors": 3}, 0.955, 9.6),
        ({"n_factors": 3, "tradeoff": 100.0, "max_iter": 400}, 0.97, 9.5),
        ({"n_components": 2, "n_factors": 3}, 0.96, 10.1),
    ],
    ids=["one", "stressed", "two"],
)
def test_digits_three_and_eight(settings: dict[str, Any], least: float, ratio: float) -> None:
    images, digits = load_digits(return_X_y=True)
    chosen = np.isin(digits, (3, 8))
    X, y = images[chosen] / 16, digits[chosen]
    right, decibel = [], []
    for train, test in StratifiedKFold(2, shuffle=True, random_state=0).split(X, y):
        model = MixtureOfFactorModels(random_state=0, tol=1e-5, **settings).fit(X[train], y[train])
        right.append(model.score(X[test], y[test]))
        decibel.append(metrics.signal_to_error_ratio(X[test], model.reconstruct(X[test], "hard")))
    assert np.mean(right) > least
    assert np.mean(decibel) == pytest.approx(ratio, abs=0.25)
