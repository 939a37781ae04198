"""Rows far from all components: shares are those of exact arithmetic.

The oracle is made of fractions of the published parameters. Where components share a covariance the
log odds of a row are linear in it, so that a row 1e8 away in a direction that tells nothing of the
components has odds of any size, while its log density is -1e16.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from mixfold import (
    BayesianGaussianMixture,
    GaussianMixture,
    GaussianPCP,
    KMeans,
    Mixture,
    MixtureOfFactorAnalyzers,
    MixtureOfPPCA,
    NestedMixture,
)
from mixfold.contracts import Block

FAR = 1e8
KINDS = ("full", "tied", "diag", "spherical", "tied-diag", "tied-spherical")
TIED = ("tied", "tied-diag", "tied-spherical")


def fractions(values: np.ndarray) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(np.asarray(values, float))


def solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """matrix^-1 right in fractions, by elimination."""
    A = np.column_stack([matrix, right])
    size = len(matrix)
    for i in range(size):
        A[i] = A[i] / A[i, i]
        for j in range(size):
            if j != i:
                A[j] = A[j] - A[j, i] * A[i]
    return A[:, size]


def determinant(matrix: np.ndarray) -> Fraction:
    A, found = matrix.copy(), Fraction(1)
    for i in range(len(A)):
        found *= A[i, i]
        for j in range(i + 1, len(A)):
            A[j] = A[j] - A[i] * (A[j, i] / A[i, i])
    return found


def dense_covariances(model) -> np.ndarray:
    """(K, D, D) of the published covariances of any kind."""
    K, D = model.means_.shape
    kind, found = model.covariance_type, np.asarray(model.covariances_, float)
    if kind == "full":
        return found
    if kind == "tied":
        return np.broadcast_to(found, (K, D, D))
    if kind in ("spherical", "tied-spherical"):
        found = np.broadcast_to(found[..., None], (K, D))
    return np.broadcast_to(found, (K, D))[..., None] * np.eye(D)


def exact_log_odds(weights, means, covariances, row) -> np.ndarray:
    """ln p(k | x) - ln p(0 | x), from the entries that are seen; quadratic forms are exact."""
    seen = np.flatnonzero(~np.isnan(row))
    x, found = fractions(row[seen]), []
    for weight, mean, covariance in zip(weights, means, covariances, strict=True):
        away = x - fractions(mean[seen])
        matrix = fractions(covariance[np.ix_(seen, seen)])
        quadratic = (away * solve(matrix, away)).sum()
        rest = np.log(weight) - 0.5 * np.log(float(determinant(matrix)))
        found.append(Fraction(rest) - quadratic / 2)
    return np.array([float(one - found[0]) for one in found])


def check(log_odds: np.ndarray, exact: np.ndarray, digits: float) -> None:
    got = log_odds - log_odds[0]
    np.testing.assert_allclose(got, exact, rtol=digits, atol=digits)


def three_groups(dtype=float) -> np.ndarray:
    rng = np.random.default_rng(3)
    centres = np.array([[0, 0, 0], [0, 3, 1], [0.0, -2, 3]])
    X = rng.normal(size=(600, 3)) + centres[np.arange(600) % 3]
    return X.astype(dtype)


def blind_direction(means: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """A direction in which the log odds of components of one covariance do not change."""
    linear = np.linalg.solve(covariance, (means - means[0]).T).T
    return np.linalg.svd(linear)[2][-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", [False, True])
def test_odds_of_a_far_row_are_exact(kind, missing):
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(three_groups())
    covariances = dense_covariances(model)
    row = np.array([FAR, 0.3, -0.2]) * [1, 1, 1]
    if not missing:
        row = FAR * blind_direction(model.means_, covariances[0]) + [0, 0.3, -0.2]
    else:
        row[2] = np.nan
    exact = exact_log_odds(model.weights_, model.means_, covariances, row)
    got = model.predict_log_proba(row[None])[0]
    check(got, exact, 1e-6)
    shares = np.exp(exact - exact.max())
    np.testing.assert_allclose(model.predict_proba(row[None])[0], shares / shares.sum(), atol=1e-6)
    assert model.predict(row[None])[0] == np.argmax(exact)


@pytest.mark.parametrize("kind", TIED)
def test_the_row_has_odds_that_are_neither_zero_nor_infinite(kind):
    """The oracle itself: the case is one in which hard or equal shares are wrong."""
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(three_groups())
    row = FAR * blind_direction(model.means_, dense_covariances(model)[0]) + [0, 0.3, -0.2]
    shares = np.sort(model.predict_proba(row[None])[0])
    assert shares[-1] < 0.9999
    assert shares[-1] - shares[0] > 1e-3


@pytest.mark.parametrize("kind", TIED)
def test_odds_of_a_far_row_of_single_precision(kind):
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(three_groups(np.float32))
    covariances = dense_covariances(model)
    # whole multiples of single precision, so that the row is the same in both
    row = (1e5 * blind_direction(model.means_, covariances[0])).astype(np.float32)
    params = model._params
    frame = params.components.frame
    means = frame.leave(params.components.means)
    own = model._model(3).family.dense(params.components) * frame.scale[:, None] * frame.scale
    exact = exact_log_odds(params.weights, means, own, row.astype(float))
    check(model.predict_log_proba(row[None])[0].astype(float), exact, 1e-3)


@pytest.mark.parametrize("kind", TIED)
@pytest.mark.parametrize("inference", ["em", "vb"])
def test_odds_of_far_rows_of_general_mixtures(kind, inference):
    model = Mixture(kind, 3, inference=inference, random_state=0).fit(three_groups())
    check_linear_odds(model, [True, True, True])
    check_linear_odds(model, [True, True, False])


def test_odds_of_far_rows_of_a_bayesian_mixture():
    X = three_groups()
    model = BayesianGaussianMixture(3, covariance_type="tied", random_state=0).fit(X)
    check_linear_odds(model, [True, True, True])


@pytest.mark.parametrize("kind", TIED)
def test_odds_of_far_rows_of_nested_mixtures(kind):
    model = NestedMixture(3, 1, covariance_type=kind, random_state=0).fit(three_groups())
    check_linear_odds(model, [True, True, True])


@pytest.mark.parametrize("kind", [MixtureOfPPCA, MixtureOfFactorAnalyzers])
def test_odds_of_far_rows_of_factor_mixtures(kind):
    model = kind(3, 1, tied=("loadings", "noise"), random_state=0).fit(three_groups())
    check_linear_odds(model, [True, True, True])
    check_linear_odds(model, [True, True, False])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_odds_of_far_rows_of_a_table_with_yes_and_no():
    """The far number tells nothing, and the answers beside it still do."""
    rng = np.random.default_rng(0)
    group = np.arange(600) % 2
    X = np.column_stack([rng.normal(size=600), rng.random(600) < np.array([0.3, 0.6])[group]])
    model = Mixture({"tied-diag": [0], "bernoulli": [1]}, 2, random_state=0, max_iter=5).fit(X)
    at = lambda x, y: np.diff(model.predict_log_proba([[x, y]]))[0, 0]  # noqa: E731
    for x in (1e8, -1e8):
        np.testing.assert_allclose(at(x, 1) - at(x, 0), at(0, 1) - at(0, 0), atol=1e-6)


def check_linear_odds(model, seen) -> None:
    """Of components that share a covariance: odds are linear, far away as nearby."""
    seen = np.asarray(seen)

    def odds(row: np.ndarray) -> np.ndarray:
        L = model.predict_log_proba(np.where(seen, row, np.nan)[None])[0]
        return L[1:] - L[0]

    start = np.array([0.0, 0.3, -0.2])
    slopes = np.stack([odds(start + step) - odds(start) for step in np.eye(3)[seen]], axis=1)
    # across the line of steepest odds, and a little along it
    direction = np.zeros(3)
    direction[seen] = np.linalg.svd(slopes)[2][-1]
    if np.abs(slopes @ direction[seen]).max() > 1e-9:  # no direction tells nothing
        direction[seen] = [slopes[0, 1], -slopes[0, 0]] / np.hypot(*slopes[0])
    row = start + FAR * direction
    expected = odds(start) + slopes @ (row - start)[seen]
    np.testing.assert_allclose(odds(row), expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("lacking", [False, True])
def test_a_row_far_from_the_plane_has_the_odds_of_its_scores(lacking):
    rng = np.random.default_rng(1)
    z = rng.normal(size=(400, 1)) + 2.0 * (np.arange(400) % 2)[:, None]
    X = z @ [[1.0, 1, 1, 1]] / 2 + 0.3 * rng.normal(size=(400, 4))
    model = GaussianPCP(n_components=1, n_clusters=2, random_state=0).fit(X)
    row = X[:1].copy()
    if lacking:
        row[0, 3] = np.nan
    W = model.components_[0] * np.array([1, 1, 1, 0 if lacking else 1])
    away = np.linalg.svd(W[None])[2][1] * np.array([1, 1, 1, 0 if lacking else 1])
    near, far = (np.diff(model.predict_log_proba(row + r * away)) for r in (1.0, 1e8))
    assert 1e-3 < abs(near[0, 0]) < 20
    np.testing.assert_allclose(far, near, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", TIED)
def test_conditions_that_are_far_away(kind):
    """The weights given far values are the shares of a row that shows only these."""
    X = three_groups()[np.arange(600) % 3 < 2]
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    covariances, known = dense_covariances(model), [0, 1]
    a, b = np.linalg.solve(covariances[0][:2, :2], np.diff(model.means_, axis=0)[0, :2])
    row = np.array([FAR * b, -FAR * a, np.nan]) / np.hypot(a, b) + [0.2, 1.4, 0]
    exact = exact_log_odds(model.weights_, model.means_, covariances, row)
    assert 0.1 < abs(exact[1]) < 10
    other = model.condition(known, row[known])
    check(np.log(other.weights_), exact, 1e-5)
    check(model.predict_log_proba(row[None])[0], exact, 1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [*KINDS, "ppca", "lacking"])
def test_a_fit_shares_far_rows_as_predictions_do(kind, dtype):
    """The sums of an E step hold far rows by their exact shares, in one block or in three."""
    X = three_groups(dtype)
    if kind == "ppca":
        model = MixtureOfPPCA(3, 1, tied=("loadings", "noise"), random_state=0).fit(X)
    else:
        name = "tied-diag" if kind == "lacking" else kind
        model = GaussianMixture(3, covariance_type=name, random_state=0).fit(X)
    X = X.copy()
    X[[5, 100, 400, 401]] += np.array([[1e7], [-1e8], [3e8], [1e6]]).astype(dtype) * [[1, 0, 0]]
    if kind == "lacking":
        X[::7, 2] = np.nan
    inner, params = model._model(3), model._params
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(X))
    reading = inner.prepare(params)
    complete = kind != "lacking"
    ends = [0, 200, 401, 600]
    blocks = [(0, 600)], list(pairwise(ends))
    shares = model.predict_proba(X).astype(float)
    for parts in blocks:
        found = [
            inner.expect(reading, Block(X[i:j], i, weight=weight[i:j], complete=complete), None)
            for i, j in parts
        ]
        counts = sum(one.counts for one in found)
        np.testing.assert_allclose(
            counts, weight @ shares, rtol=1e-4 if dtype == np.float32 else 1e-9
        )
        total = sum(one.log_likelihood for one in found)
        np.testing.assert_allclose(total, weight @ model.score_samples(X.astype(float)), rtol=1e-5)
        assert sum(one.weight for one in found) == pytest.approx(weight.sum())


def test_nearest_centre_of_a_far_row():
    X = np.array([[0.0, 0.1], [0, -0.1], [0, 3.1], [0, 2.9], [0, -2.1], [0, -1.9]])
    start = np.array([[0.0, 3], [0, 0], [0, -2]])
    model = KMeans(3, random_state=0, n_init=1, init=start).fit(X)
    rows = np.array([[1e10, 0.5], [1e10, 2.5], [-1e10, -1.7], [-1e10, 0.9], [np.nan, 2.5]])
    nearest = model.cluster_centers_[model.predict(rows), 1]
    np.testing.assert_array_equal(nearest.round(), [0, 3, -2, 0, 3])
    rows = rows[:4].astype(np.float32)
    nearest = model.cluster_centers_[model.predict(rows), 1]
    np.testing.assert_array_equal(nearest.round(), [0, 3, -2, 0])
