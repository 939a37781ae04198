"""SupervisedPPCA and its mixture with ordered categories and counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor

import mixfold
from mixfold import MixtureSearch, SupervisedMixtureOfPPCA, SupervisedPPCA
from mixfold.contracts import Array


def table(task: str, n: int = 700, seed: int = 0) -> tuple[Array, Array]:
    """y by the first of two factors; every fourth unknown."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    X = z @ np.random.default_rng(3).normal(size=(2, 7)) + 2.0 + 0.4 * rng.normal(size=(n, 7))
    if task == "ordered":
        utility = 1.5 * z[:, 0] + rng.normal(size=n)
        y = np.array([1, 2, 3, 5])[np.searchsorted([-1.5, 0.0, 1.2], utility)]
        y[::4] = -1
        return X, y
    rate = np.exp(0.8 * z[:, 0] + 1.0)
    y = rng.negative_binomial(1 / 0.3, 1 / (1 + 0.3 * rate)).astype(float)
    y[::4] = np.nan
    return X, y


def known(y: Array) -> Array:
    return y >= 0


def test_planted_thresholds_and_slopes_are_found() -> None:
    X, y = table("ordered", 3000)
    model = SupervisedPPCA(2, task="ordered", random_state=0).fit(X, y)
    assert model.converged_
    assert (np.diff(model.lower_bounds_) >= -1e-9).all()
    np.testing.assert_array_equal(model.classes_, [1, 2, 3, 5])
    np.testing.assert_allclose(model.thresholds_, [0.0, 1.5, 2.7], atol=0.25)
    assert model.output_mean_[0] == pytest.approx(1.5, abs=0.2)
    assert np.linalg.norm(model.output_loadings_) == pytest.approx(1.5, abs=0.25)
    assert is_classifier(model)


def test_planted_rates_and_excess_are_found() -> None:
    X, y = table("count", 3000)
    model = SupervisedPPCA(2, task="count", random_state=0).fit(X, y)
    assert model.converged_
    assert (np.diff(model.lower_bounds_) >= -1e-9).all()
    assert model.output_mean_[0] == pytest.approx(1.0, abs=0.1)
    assert np.linalg.norm(model.output_loadings_) == pytest.approx(0.8, abs=0.1)
    assert model.output_noise_variance_[0] == pytest.approx(0.3, abs=0.08)
    assert is_regressor(model) and not hasattr(model, "predict_proba")
    new, truth = table("count", 4000, seed=5)
    mean, std = model.predict(new, return_std=True)
    seen = known(truth)
    left = (truth - mean)[seen] / std[seen]
    assert left.mean() == pytest.approx(0.0, abs=0.1)
    assert left.var() == pytest.approx(1.0, abs=0.25)
    held = SupervisedPPCA(2, task="count", output_noise=1e-9, random_state=0).fit(X, y)
    assert held.output_noise_variance_[0] == 1e-9
    assert held.bic() > model.bic()  # Poisson's law is not enough


def test_counts_of_rows_far_away_are_numbers() -> None:
    X, y = table("count", 200)
    model = SupervisedPPCA(1, task="count", random_state=0).fit(X, y)
    far = np.vstack([X[:3] * 1e15, -X[:3] * 1e15, X[:3]])
    mean, std = model.predict(far, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (mean >= 0).all()
    assert mean.max() == pytest.approx(np.exp(300.0))
    np.testing.assert_allclose(mean[6:], model.predict(X[:3]))


def test_ordered_probabilities_are_calibrated_and_beat_classes_without_order() -> None:
    X, y = table("ordered", 400)
    new, truth = table("ordered", 4000, seed=5)
    seen = known(truth)
    model = SupervisedPPCA(2, task="ordered", random_state=0).fit(X, y)
    chances = model.predict_proba(new)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-6)
    at = np.searchsorted(model.classes_, truth[seen])
    shares = np.bincount(at) / seen.sum()
    np.testing.assert_allclose(chances[seen].mean(axis=0), shares, atol=0.04)
    plain = SupervisedPPCA(2, task="classification", random_state=0).fit(X, y)

    def loss(p: Array) -> float:
        return float(-np.log(p[seen][np.arange(seen.sum()), at]).mean())

    assert loss(chances) < loss(plain.predict_proba(new)) - 0.02
    assert model.score(new, truth) > 0.55
    joint = model.score_samples(new, truth) - model.score_samples(new)
    np.testing.assert_allclose(
        joint[seen], np.log(chances[seen, :][np.arange(len(at)), at]), atol=1e-6
    )
    np.testing.assert_allclose(joint[~seen], 0.0, atol=1e-10)


@pytest.mark.parametrize("task", ["ordered", "count"])
def test_weights_rows_without_y_and_missing_entries(task: str) -> None:
    X, y = table(task, 240)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    weight = np.random.default_rng(2).integers(0, 3, size=240)
    settings: dict[str, Any] = {"task": task, "random_state": 0, "tol": 1e-7}
    one = SupervisedPPCA(2, **settings).fit(X, y, sample_weight=weight.astype(float))
    rows = np.repeat(np.arange(240), weight)
    other = SupervisedPPCA(2, **settings).fit(X[rows], y[rows])
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=2e-3)
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, abs=1e-5)
    # rows without y shape the columns
    few = SupervisedPPCA(2, **settings).fit(X[known(y)], y[known(y)])
    assert one.noise_variance_ != few.noise_variance_


@pytest.mark.parametrize("task", ["ordered", "count"])
def test_files_draws_and_latents(task: str, tmp_path: Path) -> None:
    X, y = table(task)
    model = SupervisedPPCA(2, task=task, random_state=0).fit(X, y)
    model.save(tmp_path / "model.mixfold")
    other = mixfold.load(tmp_path / "model.mixfold")
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    np.testing.assert_array_equal(other.score_samples(X, y), model.score_samples(X, y))
    drawn, labels = model.sample(4000, random_state=1)
    assert drawn.shape == (4000, 7)
    values = y[known(y)]
    if task == "ordered":
        shares = [np.mean(values == c) for c in model.classes_]
        np.testing.assert_allclose(
            [np.mean(labels == c) for c in model.classes_], shares, atol=0.06
        )
    else:
        assert labels.mean() == pytest.approx(values.mean(), rel=0.15)
    # what is known of y moves the factors towards it
    Z, at = model.transform(X, y), model.transform(X)
    np.testing.assert_allclose(Z[~known(y)], at[~known(y)], atol=1e-9)
    assert np.abs(Z - at)[known(y)].max() > 0.02
    again = SupervisedPPCA(2, task=task, random_state=0, warm_start=True).fit(X, y)
    assert again.fit(X, y).n_iter_ == 0


@pytest.mark.parametrize("task", ["ordered", "count"])
def test_a_mixture_has_a_line_for_each_group(task: str) -> None:
    rng = np.random.default_rng(0)
    k, z = rng.integers(2, size=800), rng.normal(size=800)
    X = 8.0 * k[:, None] + z[:, None] * np.array([1.0, 2.0, -1.0]) + 0.3 * rng.normal(size=(800, 3))
    a = np.where(k == 1, 1.2, -1.2) * z + 0.5
    if task == "ordered":
        y = np.searchsorted([0.0, 1.0], a + rng.normal(size=800))
    else:
        y = rng.poisson(np.exp(a)).astype(float)
    one = SupervisedPPCA(1, task=task, random_state=0).fit(X, y)
    two = SupervisedMixtureOfPPCA(2, 1, task=task, random_state=0).fit(X, y)
    slopes = two.output_loadings_[:, 0, 0] * np.sign(two.loadings_[:, 1, 0])
    assert sorted(np.round(slopes, 0)) == [-1.0, 1.0]
    assert two.score(X, y) > one.score(X, y) + 0.1


def test_a_search_compares_them() -> None:
    X, y = table("count", 300)
    search = MixtureSearch(
        SupervisedPPCA(task="count", random_state=0), n_components=[1, 2], criterion="log-loss",
        cv=3, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert search.best_params_["n_components"] == 2
    assert np.isfinite(search.results_["squared_error"]).all()


@pytest.mark.parametrize(
    ("settings", "y", "words"),
    [
        ({"task": "count"}, [0.5, 1, 2], "task='regression'"),
        ({"task": "count"}, [-1, 1, 2], "whole numbers >= 0"),
        ({"task": "count"}, [[1, 2], [2, 3], [3, 4]], "fit an estimator for each column"),
        ({"task": "ordered"}, ["low", "mid", "high"], "give their ranks"),
        ({"task": "ordered"}, [1, 1, 1], "at least two classes"),
        ({"task": "ordered", "output_noise": 0.5}, [0, 1, 2], "Leave it out"),
        ({"task": "ordered", "output_weight": 2.0}, [0, 1, 2], "output_weight must be 1.0"),
        ({"task": "count", "output_weight": "auto"}, [0, 1, 2], "output_weight must be 1.0"),
        ({"task": "count", "solver": "profile"}, [0, 1, 2], "use solver='em'"),
    ],
)
def test_bad_settings_say_what_to_do(settings: dict[str, Any], y: Any, words: str) -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(ValueError, match=words):
        SupervisedPPCA(1, **settings).fit(X, (y * 10))


def test_what_cannot_be_streamed_says_why() -> None:
    for task in ("ordered", "count"):
        for model in (SupervisedPPCA(task=task), SupervisedMixtureOfPPCA(task=task)):
            assert not hasattr(model, "partial_fit")
