"""A frozen mixture answers as its estimator does."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import mixfold
from mixfold.contracts import Array

KINDS = ("full", "tied", "diag", "spherical", "tied-diag", "tied-spherical")


@pytest.fixture(scope="module")
def X() -> Array:
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(4 * k, 1 + k, (60, 3)) for k in range(3)])


def check(model: object, rows: Array) -> None:
    frozen = pickle.loads(pickle.dumps(mixfold.freeze(model)))
    for part in (rows, rows[:1], rows[::-1]):
        np.testing.assert_array_equal(frozen.predict(part), model.predict(part))
        for name in ("predict_proba", "score_samples"):
            mine, wanted = getattr(frozen, name)(part), getattr(model, name)(part)
            np.testing.assert_allclose(mine, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_the_estimator(X: Array, kind: str) -> None:
    model = mixfold.GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    check(model, X[::7])
    check(model, X[::7] * 1e9)  # far from all components
    holes = X[::7].copy()
    holes[::2, 1] = np.nan
    check(model, holes)


def test_other_mixtures(X: Array) -> None:
    check(mixfold.MixtureOfPPCA(2, 1, random_state=0).fit(X), X[::7])
    with pytest.warns(mixfold.DegenerateWarning):  # a column is set aside
        twice = mixfold.GaussianMixture(2, random_state=0).fit(np.column_stack([X, X[:, 0]]))
    check(twice, np.column_stack([X, X[:, 0]])[::7])


def test_a_later_fit_changes_nothing(X: Array) -> None:
    model = mixfold.GaussianMixture(2, random_state=0).fit(X)
    frozen = mixfold.freeze(model)
    before = frozen.score_samples(X)
    model.fit(X[:90] + 5)
    np.testing.assert_array_equal(frozen.score_samples(X), before)


def test_refusals_name_a_remedy(X: Array) -> None:
    model = mixfold.GaussianMixture(2, random_state=0).fit(X)
    frozen = mixfold.freeze(model)
    with pytest.raises(ValueError, match=r"shape \(n_samples, 3\).*one row is X\[None\]"):
        frozen.predict(X[0])
    with pytest.raises(ValueError, match="infinity; NaN marks"):
        frozen.predict(np.full((1, 3), np.inf))
    with pytest.raises(TypeError, match="ask the estimator itself"):
        mixfold.freeze(mixfold.PPCA(2).fit(X))
    with pytest.raises(TypeError, match="got BayesianGaussianMixture"):  # averages over posteriors
        mixfold.freeze(mixfold.BayesianGaussianMixture(2, random_state=0).fit(X))
    with pytest.raises(Exception, match="not fitted yet"):
        mixfold.freeze(mixfold.GaussianMixture(2))
