"""Classifiers of densities: the rule of Bayes, priors, missing entries, novelty, streams, draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from mixfold import (
    GaussianMixture,
    MixtureClassifier,
    MixtureOfPPCA,
    MLiT,
    MultinomialMixture,
)
from mixfold.contracts import Array

EXACT = GaussianMixture(1, reg_covar=0.0)


def table(n: int = 150, seed: int = 0) -> tuple[Array, Array]:
    """Three classes of other shapes, 60, 50 and 40 % apart in number."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    turns = rng.normal(size=(3, 3, 3))
    X = np.einsum("ni,nij->nj", rng.normal(size=(n, 3)), turns[y]) + 2 * rng.normal(size=(3, 3))[y]
    return X, y


def by_scipy(X: Array, y: Array, at: Array, priors: Array, weight: Array | None = None) -> Array:
    """log p(class, x) for one Gaussian per class."""
    weight = np.ones(len(X)) if weight is None else weight
    parts = []
    for c, prior in zip(np.unique(y), priors, strict=True):
        mine, w = X[y == c], weight[y == c]
        mean, covariance = np.average(mine, axis=0, weights=w), np.cov(mine.T, aweights=w, ddof=0)
        parts.append(np.log(prior) + multivariate_normal(mean, covariance).logpdf(at))
    return np.stack(parts, axis=1)


# ------------------------------------------------ the rule of Bayes


@pytest.mark.parametrize(
    ("priors", "wanted"),
    [
        ("uniform", [1 / 3, 1 / 3, 1 / 3]),
        ([1, 2, 5], [1 / 8, 2 / 8, 5 / 8]),
        (np.array([0.2, 0.2, 0.6]), [0.2, 0.2, 0.6]),
        ({2: 3.0, 0: 1.0, 1: 4.0}, [1 / 8, 4 / 8, 3 / 8]),
    ],
)
def test_probabilities_are_those_of_scipy(priors: Any, wanted: list[float]) -> None:
    X, y = table()
    fit = MixtureClassifier(EXACT, priors=priors).fit(X, y)
    np.testing.assert_allclose(fit.priors_, wanted)
    joint = by_scipy(X, y, X, np.array(wanted))
    total = logsumexp(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(fit.predict_log_proba(X), joint - total, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(fit.predict_proba(X), np.exp(joint - total), atol=1e-7)
    np.testing.assert_allclose(fit.score_samples(X), total[:, 0], rtol=1e-6)
    np.testing.assert_array_equal(fit.predict(X), joint.argmax(axis=1))


def test_empirical_priors_are_shares_by_weight() -> None:
    X, y = table()
    weight = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    fit = MixtureClassifier(EXACT, priors="empirical").fit(X, y, weight)
    shares = np.bincount(y, weight) / weight.sum()
    np.testing.assert_allclose(fit.priors_, shares)
    np.testing.assert_allclose(fit.class_weight_, np.bincount(y, weight))
    some = weight > 0
    joint = by_scipy(X[some], y[some], X, shares, weight[some])
    np.testing.assert_array_equal(fit.predict(X), joint.argmax(axis=1))
    repeated = MixtureClassifier(EXACT, priors="empirical").fit(
        np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int))
    )
    np.testing.assert_allclose(fit.predict_proba(X), repeated.predict_proba(X), atol=1e-9)


def test_one_gaussian_each_is_quadratic_discriminant_analysis() -> None:
    X, y = load_iris(return_X_y=True)
    peer = QuadraticDiscriminantAnalysis().fit(X, y)
    fit = MixtureClassifier(EXACT, priors="empirical").fit(X, y)
    np.testing.assert_array_equal(fit.predict(X), peer.predict(X))
    # it divides the scatter by n - 1
    np.testing.assert_allclose(fit.predict_proba(X), peer.predict_proba(X), atol=0.03)


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ([1, 2], "3 numbers"), ([1, 2, -1], "3 numbers"), ([0, 0, 0], "not all zero"),
        ([1, np.nan, 1], "3 numbers"), ({0: 1, 1: 1}, "name each class once"),
        ({0: 1, 1: 1, 2: 1, 7: 1}, "name each class once"), ("equal", "priors"),
    ],
)  # fmt: skip
def test_priors_are_checked(priors: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MixtureClassifier(priors=priors).fit(*table())


def test_a_class_of_prior_zero_is_never_predicted() -> None:
    X, y = table()
    fit = MixtureClassifier(EXACT, priors=[1, 0, 1]).fit(X, y)
    assert set(fit.predict(X)) == {0, 2} and (fit.predict_proba(X)[:, 1] == 0).all()
    staged = MixtureClassifier(MLiT(1, 2, max_iter=3), priors=[1, 0, 1], cv=2).fit(X, y)
    assert 1 not in staged.predict(X) and 1 not in staged.staged_predict(X)


def test_rows_far_from_everything_have_finite_answers() -> None:
    X, y = table()
    fit = MixtureClassifier(EXACT, priors=[1, 2, 5]).fit(X, y)
    proba = fit.predict_proba(np.full((1, 3), 1e6))
    assert np.isfinite(proba).all() and proba.sum() == pytest.approx(1)


# ------------------------------------------------ rows of every kind


@pytest.mark.parametrize(
    "density",
    [MixtureOfPPCA(1, 1), GaussianMixture(1)],
    ids=lambda one: type(one).__name__,
)
def test_missing_entries(density: Any) -> None:
    X, y = table(400)
    holes = X.copy()
    holes[np.random.default_rng(2).random(X.shape) < 0.15] = np.nan
    holes[np.isnan(holes).all(axis=1), 0] = 0.0
    fit = MixtureClassifier(density, random_state=0).fit(holes, y)
    whole = MixtureClassifier(density, random_state=0).fit(X, y).score(X, y)
    assert np.isnan(holes).any() and fit.score(X, y) > whole - 0.06
    assert np.isfinite(fit.predict_proba(holes)).all()


def test_a_missing_entry_is_integrated_out() -> None:
    X, y = table()
    fit = MixtureClassifier(EXACT).fit(X, y)
    at = np.array([[0.3, np.nan, -0.4]])
    parts = []
    for c in range(3):
        mean, covariance = X[y == c].mean(axis=0), np.cov(X[y == c].T, bias=True)
        seen = multivariate_normal(mean[[0, 2]], covariance[np.ix_([0, 2], [0, 2])])
        parts.append(seen.logpdf(at[0, [0, 2]]))
    wanted = np.exp(parts - logsumexp(parts))
    np.testing.assert_allclose(fit.predict_proba(at)[0], wanted, atol=1e-6)


def test_sparse_counts() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    words = rng.dirichlet(np.ones(12), 2)
    X = np.stack([rng.multinomial(30, words[c]) for c in y]).astype(float)
    fit = MixtureClassifier(MultinomialMixture(1), random_state=0).fit(sparse.csr_array(X), y)
    assert fit.score(sparse.csr_array(X), y) > 0.95
    dense = MixtureClassifier(MultinomialMixture(1), random_state=0).fit(X, y)
    np.testing.assert_allclose(fit.predict_proba(sparse.csr_array(X)), dense.predict_proba(X))


def test_settings_by_class() -> None:
    X, y = table()
    names = np.array(["a", "b", "c"])[y]
    settings = {"b": {"n_components": 3, "covariance_type": "diag"}}
    fit = MixtureClassifier(GaussianMixture(2), settings=settings, random_state=0).fit(X, names)
    assert [model.n_components for model in fit.estimators_] == [2, 3, 2]
    assert [model.covariance_type for model in fit.estimators_] == ["full", "diag", "full"]
    assert list(fit.classes_) == ["a", "b", "c"] and set(fit.predict(X)) <= {"a", "b", "c"}
    with pytest.raises(ValueError, match=r"settings names 'd', which is no class.*'a', 'b', 'c'"):
        MixtureClassifier(settings={"d": {}}).fit(X, names)
    with pytest.raises(TypeError, match="settings must be"):
        MixtureClassifier(settings=["a"]).fit(X, names)
    with pytest.raises(ValueError, match=r"class 'a' its own n_dims, but the scores of MLiT"):
        MixtureClassifier(MLiT(1, 2), settings={"a": {"n_dims": 1}}).fit(X, names)
    with pytest.raises(ValueError, match="nonsense"):
        MixtureClassifier(settings={"a": {"nonsense": 1}}).fit(X, names)


def test_threads_and_order_of_classes_do_not_matter() -> None:
    X, y = table()
    fits = [
        MixtureClassifier(GaussianMixture(2), random_state=0, n_jobs=n).fit(X, y) for n in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))
    seeds = [model.random_state for model in fits[0].estimators_]
    assert len(set(seeds)) == 3


# ------------------------------------------------ novelty


def test_novelty_is_a_quantile_of_each_class() -> None:
    X, y = table(300)
    fit = MixtureClassifier(EXACT, novelty=0.1).fit(X, y)
    for number, model in enumerate(fit.estimators_):
        below = model.score_samples(X[y == number]) < fit.novelty_threshold_[number]
        assert below.mean() == pytest.approx(0.1, abs=1 / below.size + 1e-9)
    far = np.full((2, 3), 50.0)
    assert fit.is_novel(far).all() and set(fit.predict(far)) == {-1}
    mixed = np.concatenate([X, far])
    np.testing.assert_array_equal(fit.predict(mixed) == -1, fit.is_novel(mixed))
    assert 0.02 < fit.is_novel(X).mean() < 0.12
    # what is not novel is as without the rule
    plain = MixtureClassifier(EXACT).fit(X, y)
    known = ~fit.is_novel(X)
    np.testing.assert_array_equal(fit.predict(X)[known], plain.predict(X)[known])
    with pytest.raises(ValueError, match="set novelty to a share"):
        plain.is_novel(X)


def test_novelty_knows_weights() -> None:
    X, y = table(300)
    weight = np.random.default_rng(4).integers(0, 3, 300)
    weighted = MixtureClassifier(EXACT, novelty=0.1).fit(X, y, weight)
    repeated = MixtureClassifier(EXACT, novelty=0.1).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted.novelty_threshold_, repeated.novelty_threshold_)


def test_labels_of_novel_rows() -> None:
    X, y = table()
    names, far = np.array(["ant", "bee", "cat"])[y], np.full((1, 3), 50.0)
    assert MixtureClassifier(EXACT, novelty=0.01).fit(X, names).predict(far)[0] == "novel"
    own = MixtureClassifier(EXACT, novelty=0.01, novelty_label="something else").fit(X, names)
    assert own.predict(far)[0] == "something else"
    assert set(own.predict(X)) <= {"ant", "bee", "cat", "something else"}
    assert MixtureClassifier(EXACT, novelty=0.01, novelty_label=99).fit(X, y).predict(far)[0] == 99
    mixed = MixtureClassifier(EXACT, novelty=0.01, novelty_label="new").fit(X, y)
    assert mixed.predict(far)[0] == "new"
    assert all(isinstance(label, int) for label in mixed.predict(X[:5]) if label != "new")
    of_text = MixtureClassifier(EXACT, novelty=0.01).fit(X, names.astype(object))
    assert of_text.predict(far)[0] == "novel"


# ------------------------------------------------ streams


def test_a_stream_of_batches() -> None:
    X, y = table(600)
    model = MixtureClassifier(GaussianMixture(1), priors="empirical", random_state=0)
    for first in range(0, 600, 150):
        model.partial_fit(X[first : first + 150], y[first : first + 150], classes=[0, 1, 2])
    np.testing.assert_allclose(model.priors_, np.bincount(y) / 600)
    whole = MixtureClassifier(GaussianMixture(1), priors="empirical").fit(X, y)
    assert model.score(X, y) > whole.score(X, y) - 0.02


def test_a_class_that_has_not_come_yet() -> None:
    X, y = table(400)
    model = MixtureClassifier(GaussianMixture(1), random_state=0)
    early = y != 1
    model.partial_fit(X[early], y[early], classes=[0, 1, 2])
    assert model.estimators_[1] is None
    assert (model.predict_proba(X)[:, 1] == 0).all() and 1 not in model.predict(X)
    assert np.isfinite(model.predict_proba(X)).all()
    with pytest.raises(ValueError, match="no row of class 1 has been seen"):
        model.sample(2, label=1)
    assert 1 not in model.sample(50, random_state=0)[1]
    model.partial_fit(X[~early], y[~early])
    assert model.estimators_[1] is not None and model.score(X, y) > 0.7
    with pytest.raises(ValueError, match=r"7 is no known class; the classes are 0, 1, 2"):
        model.partial_fit(X[:2], [7, 7])


def test_streams_and_what_they_cannot_have() -> None:
    X, y = table()
    with pytest.raises(ValueError, match="novelty needs all training rows at once"):
        MixtureClassifier(GaussianMixture(1), novelty=0.1).partial_fit(X, y)
    assert not hasattr(MixtureClassifier(MLiT()), "partial_fit")
    assert hasattr(MixtureClassifier(GaussianMixture()), "partial_fit")


# ------------------------------------------------ draws


def test_draws() -> None:
    X, y = table(600)
    fit = MixtureClassifier(EXACT, priors=[1, 2, 5]).fit(X, y)
    rows, labels = fit.sample(4000, random_state=0)
    assert rows.shape == (4000, 3)
    np.testing.assert_allclose(np.bincount(labels) / 4000, [1 / 8, 2 / 8, 5 / 8], atol=0.03)
    for c in range(3):
        np.testing.assert_allclose(rows[labels == c].mean(axis=0), X[y == c].mean(axis=0), atol=0.5)
    of_one, same = fit.sample(7, label=2, random_state=0)
    assert of_one.shape == (7, 3) and set(same) == {2}
    np.testing.assert_array_equal(fit.sample(7, label=2, random_state=0)[0], of_one)
    with pytest.raises(ValueError, match="9 is no known class"):
        fit.sample(1, label=9)
    with pytest.raises(ValueError, match="n_samples must be an int >= 1; got 0"):
        fit.sample(0)
    assert not hasattr(MixtureClassifier(MLiT()), "sample")


def test_probabilities_sum_to_one_however_far_a_row_is() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    fit = MixtureClassifier(random_state=0).fit(X, np.arange(60) % 3)
    far = fit.predict_proba([[1e150] * 4, [1e140] * 4, [1e10] * 4])
    np.testing.assert_allclose(far.sum(axis=1), 1.0)


def test_novel_rows_do_not_look_like_a_class() -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3 - 1
    with pytest.raises(ValueError, match="novel rows would be called -1, which is a class"):
        MixtureClassifier(novelty=0.1).fit(X, y)
    assert 9 in MixtureClassifier(novelty=0.1, novelty_label=9).fit(X, y).predict(X)
    assert -1 in MixtureClassifier(novelty=0.1, novelty_label=-1).fit(X, y).predict(X)


def test_a_stream_forgets_the_novelty_of_a_fit() -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    fit = MixtureClassifier(GaussianMixture(1), novelty=0.3, random_state=0).fit(X, y)
    assert -1 in fit.predict(X)
    fit.set_params(novelty=None).partial_fit(X, y)
    assert set(fit.predict(X)) <= {0, 1} and not hasattr(fit, "novelty_threshold_")
