"""Curved borders of classes in the space of the factors, as a user meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mixfold
from mixfold import MixtureOfFactorModels, MixtureSearch
from mixfold.contracts import Array
from mixfold.plots import plot_discriminant

D = 6


def ring(n: int = 240, n_classes: int = 2, seed: int = 0) -> tuple[Array, Array]:
    """The class of a row is how far out its two factors are."""
    rng = np.random.default_rng(seed)
    W = np.random.default_rng(100).normal(size=(2, D))
    z = rng.normal(size=(n, 2))
    edges = np.sqrt(-2 * np.log1p(-np.arange(1, n_classes) / n_classes))
    return z @ W + 0.2 * rng.normal(size=(n, D)), np.searchsorted(edges, np.hypot(*z.T))


def curved(K: int = 1, d: int = 2, **settings: Any) -> MixtureOfFactorModels:
    settings = {"ridge": 0.1, "tol": 1e-4, "random_state": 0, **settings}
    return MixtureOfFactorModels(K, d, discriminant="curved", **settings)


@pytest.fixture(scope="module")
def model() -> Any:
    return curved().fit(*ring())


def test_a_ring_is_told_from_what_is_in_it(model: Any) -> None:
    X, y = ring(seed=1)
    straight = MixtureOfFactorModels(1, 2, random_state=0).fit(*ring())
    assert straight.score(X, y) < 0.75
    assert model.score(X, y) > 0.93
    assert model.converged_
    assert (np.diff(model.lower_bounds_) > -1e-10).all()
    assert not model.events_


def test_the_published_features_give_the_scores(model: Any) -> None:
    X, _ = ring(seed=1)
    z = model.transform(X)
    at = z @ model.waves_.T + model.phases_
    phi = np.concatenate([at[:, :2], np.sqrt(2 / 64) * np.cos(at[:, 2:])], axis=1)
    scores = phi @ model.coef_[0] + model.intercept_[0]
    told = model.set_params(classify_from="latent").decision_function(X)
    model.set_params(classify_from="data")
    np.testing.assert_allclose(told, scores, atol=1e-8)
    # what the columns leave in doubt is averaged over
    assert np.abs(model.predict_proba(X).sum(axis=1) - 1).max() < 1e-12


def test_several_classes_and_classifiers_of_components() -> None:
    X, y = ring(300, 3)
    unseen, truth = ring(300, 3, seed=1)
    assert curved().fit(X, y).score(unseen, truth) > 0.85
    X[::2] += 20.0
    unseen[::2] += 20.0
    own = curved(2, classifier="per_component").fit(X, y)
    assert own.score(unseen, truth) > 0.75
    assert own.coef_.shape == (2, 3, 66) and own.waves_.shape == (2, 66, 2)


def test_missing_entries_unknown_classes_and_weights() -> None:
    X, y = ring()
    X, known = X.copy(), y.copy()
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    known[::3] = -1
    fitted = curved().fit(X, known)
    unseen, truth = ring(seed=1)
    assert fitted.score(unseen, truth) > 0.9
    weight = np.random.default_rng(3).integers(0, 3, len(y))
    settings: dict[str, Any] = {"max_iter": 5, "acceleration": None}
    with pytest.warns(UserWarning, match="converge"):
        weighted = curved(**settings).fit(X, known, sample_weight=weight)
        repeated = curved(**settings).fit(
            np.repeat(X, weight, axis=0), np.repeat(known, weight, axis=0)
        )
    np.testing.assert_allclose(
        weighted.predict_proba(unseen), repeated.predict_proba(unseen), atol=1e-6
    )


def test_streams_files_and_warm_starts(model: Any, tmp_path: Path) -> None:
    X, y = ring()
    unseen, truth = ring(seed=1)
    stream = curved()
    for part in range(0, len(X), 80):
        stream.partial_fit(X[part : part + 80], y[part : part + 80], classes=[0, 1])
    assert stream.score(unseen, truth) > model.score(unseen, truth) - 0.02

    model.save(tmp_path / "curved.mixfold")
    again = mixfold.load(tmp_path / "curved.mixfold")
    np.testing.assert_array_equal(again.predict_proba(unseen), model.predict_proba(unseen))
    again.set_params(warm_start=True).fit(X, y)
    assert again.n_iter_ < model.n_iter_
    assert again.lower_bound_ >= model.lower_bound_ - 1e-10
    # a straight border goes on from no curved one
    again.set_params(discriminant="straight").fit(X, y)
    assert again.coef_.shape == (1, 2) and not hasattr(again, "waves_")


def test_draws_and_likelihoods_follow_the_model(model: Any) -> None:
    X, y = model.sample(4000, random_state=0)
    chances = model.predict_proba(X)[:, 1]
    # calibrated: rows of a chance have the class as often
    for low in (0.0, 0.25, 0.5, 0.75):
        mine = (chances >= low) & (chances < low + 0.25)
        error = 6 * np.sqrt(0.25 / mine.sum())
        assert y[mine].mean() == pytest.approx(chances[mine].mean(), abs=error)
    gap = model.score_samples(X, y) - model.score_samples(X)
    np.testing.assert_allclose(gap, model.predict_log_proba(X)[np.arange(4000), y], atol=1e-8)


def test_labels_that_count_more_and_factors_that_vanish() -> None:
    X, y = ring()
    unseen, truth = ring(seed=1)
    assert curved(tradeoff=5.0, max_iter=60).fit(X, y).score(unseen, truth) > 0.9
    pruned = curved(1, 4, loadings_prior="ard").fit(X, y)
    assert pruned.n_factors_ == 2
    assert pruned.score(unseen, truth) > 0.9


def test_a_search_compares_straight_and_curved_by_held_out_classes() -> None:
    X, y = ring()
    search = MixtureSearch(
        curved(max_iter=40), n_components=[1], criterion="log-loss", cv=3, random_state=0,
        param_grid={"discriminant": ["straight", "curved"]},
    ).fit(X, y)  # fmt: skip
    assert search.best_params_["discriminant"] == "curved"
    with pytest.raises(ValueError, match=r"held by a prior.*held-out log losses"):
        search.best_estimator_.bic(X, y)


def test_the_borders_are_drawn(model: Any) -> None:
    import matplotlib.figure as figure

    X, y = ring(seed=1)
    ax = figure.Figure().subplots()
    plot_discriminant(model, X, y, ax=ax)
    (border,) = ax.collections[1:]
    line = np.concatenate([path.vertices for path in border.get_paths()])
    z = model.transform(X)
    inside = line[np.hypot(*line.T) < np.quantile(np.hypot(*z.T), 0.9)]
    # around the middle, not through it
    assert np.hypot(*inside.T).min() > 0.6
    assert len(np.unique(np.floor(np.arctan2(*inside.T) / (np.pi / 4)))) == 8


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"d": 0}, "bends over the factors, of which there must be one; got n_factors=0"),
        ({"label_solver": "gradient"}, "discriminant is straight; got discriminant='curved'"),
        ({"curve_width": 0.0}, "curve_width"),
        ({"discriminant": "bent"}, "discriminant"),
    ],
)
def test_mistakes_are_told(settings: dict[str, Any], words: str) -> None:
    X, y = ring(40)
    d = settings.pop("d", 2)
    with pytest.raises(ValueError, match=words):
        curved(1, d).set_params(**settings).fit(X, y)
