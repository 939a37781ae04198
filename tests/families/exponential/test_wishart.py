"""Rows that are matrices: Wishart components against scipy, against search, and by the laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from mixfold import Mixture
from mixfold.contracts import Block
from mixfold.families.exponential.wishart import Wishart, matrices, triangles
from mixfold.math.frame import plain_frame
from mixfold.models.mixtures.mixture import Mixture as Model
from mixfold.testing import Case, laws

SIDE, D = 3, 6
SCALES = np.array(
    [
        [[1.0, 0.5, 0.1], [0.5, 2.0, -0.3], [0.1, -0.3, 0.7]],
        [[3.0, -1.0, 0.0], [-1.0, 1.0, 0.2], [0.0, 0.2, 2.0]],
    ]
)
DEGREES = (5.5, 14.0)


def _rows(n: int = 120, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    size = (n // 3, n - n // 3)
    drawn = [
        stats.wishart(nu, scale).rvs(m, random_state=rng)
        for nu, scale, m in zip(DEGREES, SCALES, size, strict=True)
    ]
    return triangles(np.concatenate(drawn))


def _params(X: np.ndarray, K: int = 2) -> Any:
    family = Wishart()
    resp = np.random.default_rng(1).dirichlet(np.full(K, 0.4), len(X))
    return family.from_rows(plain_frame(D), X, family.points(X), resp)


def test_triangles_are_read_row_by_row() -> None:
    X = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    np.testing.assert_array_equal(matrices(X)[0], [[1, 2, 4], [2, 3, 5], [4, 5, 6]])
    np.testing.assert_array_equal(triangles(matrices(X)), X)


def test_log_density_is_that_of_scipy() -> None:
    X, family = _rows(), Wishart()
    params = _params(X)
    told = family.describe(params)
    wanted = np.stack(
        [
            stats.wishart(nu, scale).logpdf(np.moveaxis(matrices(X), 0, -1))
            for nu, scale in zip(told["degrees"], told["scales"], strict=True)
        ],
        axis=1,
    )
    reading = family.mode(params)
    np.testing.assert_allclose(family.log_density(Block(X), reading), wanted, rtol=1e-9)
    np.testing.assert_allclose(family.scores(Block(X), reading).log_density, wanted, rtol=1e-9)
    np.testing.assert_allclose(
        params.means, triangles(told["scales"] * told["degrees"][:, None, None])
    )


def test_the_step_is_the_maximum_of_the_likelihood() -> None:
    """Against a search over all coordinates, from another point, of scipy's density."""
    X, weight = _rows(40), np.random.default_rng(3).uniform(0.2, 2, 40)
    family = Wishart()
    params = _params(X, 1)
    scores = family.scores(Block(X), family.mode(params))
    moments = family.moments(scores, weight[:, None], family.mode(params))
    best, touched = family.estimate(moments, params)
    stacked = np.moveaxis(matrices(X), 0, -1)

    def loss(vector: np.ndarray) -> float:
        told = family.describe(family.from_coordinates(params, vector))
        law = stats.wishart(told["degrees"][0], told["scales"][0])
        return -float(weight @ law.logpdf(stacked))

    start = family.coordinates(best) + 0.1
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-6})
    assert loss(family.coordinates(best)) <= found.fun + 1e-7
    np.testing.assert_allclose(family.coordinates(best), found.x, atol=2e-4)
    assert not touched.any()


@pytest.mark.parametrize("single", [False, True])
def test_laws_of_models(single: bool) -> None:
    rng = np.random.default_rng(5)
    X = _rows()
    weight, y = rng.uniform(0.5, 2, len(X)), np.where(rng.random(len(X)) < 0.1, 1, -1)
    if single:
        X = X.astype(np.float32)
    case = Case(Model(2, Wishart()), X, weight, y, rtol=3e-5 if single else 1e-9)
    for law, holds in laws.MODEL_LAWS.items():
        if not (single and law == "gradient"):
            holds(case)
    laws.labels_clamp(case, 2)


def test_both_samplers_have_the_moments_of_the_law() -> None:
    family, params = Wishart(), _params(_rows())
    nu, means = family.describe(params)["degrees"][0], matrices(params.means)[0]
    labels, rng = np.zeros(20_000, int), np.random.default_rng(2)
    a = family.sample(params, labels, rng.standard_normal((len(labels), D)))
    b = family.draw_rows(params, labels, rng)
    wanted = (means**2 + np.outer(np.diag(means), np.diag(means))) / nu
    for rows in (a, b):
        family.check(Block(rows), None)
        W = matrices(rows)
        error = 6 * W.std(axis=0) / np.sqrt(len(W))
        assert (np.abs(W.mean(axis=0) - means) <= error).all()
        squares = (W - means) ** 2
        slack = 6 * squares.std(axis=0) / np.sqrt(len(W))
        assert (np.abs(squares.mean(axis=0) - wanted) <= slack).all()
    # a determinant is a product of chi-squares
    logs = np.linalg.slogdet(matrices(a))[1] - np.linalg.slogdet(matrices(b))[1]
    assert abs(logs.mean()) < 6 * logs.std() / np.sqrt(len(logs))


def test_planted_matrices_are_told_apart() -> None:
    X = _rows(600)
    truth = np.repeat([0, 1], [200, 400])
    mixture = Mixture("wishart", 2, random_state=0).fit(X)
    labels = mixture.predict(X)
    agree = np.mean(labels == truth)
    assert max(agree, 1 - agree) > 0.97
    order = np.argsort(mixture.degrees_)
    np.testing.assert_allclose(mixture.degrees_[order], DEGREES, rtol=0.15)
    # scales times degrees, which are better known than either
    wanted = SCALES * np.array(DEGREES)[:, None, None]
    found = (mixture.scales_ * mixture.degrees_[:, None, None])[order]
    np.testing.assert_allclose(found, wanted, atol=0.9)


def test_a_prior_counts_like_its_rows() -> None:
    """One component: the mode is the best law of the rows and of rows of the prior's mean."""
    X = _rows(30)
    mean = np.diag([2.0, 3.0, 4.0])
    settings = {"rows": 7.0, "degrees": 9.0, "mean": mean}
    mixture = Mixture("wishart", 1, prior=settings, weights=[1.0], random_state=0).fit(X)
    average = (matrices(X).sum(axis=0) + 7 * mean) / 37
    np.testing.assert_allclose(matrices(mixture.means_)[0], average, rtol=1e-6)
    told = mixture.prior_
    assert told["rows"] == 7 and told["degrees"] == pytest.approx(9.0)
    np.testing.assert_allclose(told["mean"], mean, atol=1e-9)


def test_equal_matrices_end_at_the_floor() -> None:
    X = np.concatenate([_rows(60)[20:], np.repeat(_rows(6)[:1] * 50, 30, axis=0)])
    mixture = Mixture("wishart", 2, random_state=0)
    with pytest.warns(UserWarning, match="degrees of freedom of component . reached the bound"):
        mixture.fit(X)
    assert np.isclose(mixture.degrees_.max(), 1e6, rtol=1e-3)
    assert np.isfinite(mixture.score(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[:, :4], r"lower triangles of d x d matrices.*got 4"),
        (lambda X: np.where(np.arange(len(X))[:, None] == 5, -X, X), "row 5 has the eigenvalue -"),
        (lambda X: np.where(np.arange(X.size).reshape(X.shape) == 8, np.nan, X), "is NaN"),
    ],
)
def test_rows_that_are_no_covariances_are_refused(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mixture("wishart", 2).fit(change(_rows(30)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"degrees": 5.0}, "give both or neither"),
        ({"degrees": 1.5, "mean": np.eye(3)}, "must be one number above d - 1 = 2"),
        ({"degrees": 5.0, "mean": -np.eye(3)}, "positive definite"),
        ({"degrees": 5.0, "mean": np.eye(2)}, "matrix of 2 x 2, and the 6 columns"),
        ({"rows": 0.0}, "rows must be positive"),
        ({"rows": [1.0, 2.0]}, "must be one number"),
    ],
)
def test_a_prior_that_is_none_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mixture("wishart", 2, prior=settings).fit(_rows(30))


def test_some_entries_of_a_matrix_are_no_row() -> None:
    mixture = Mixture("wishart", 2, random_state=0).fit(_rows())
    with pytest.raises(ValueError, match="a row is one matrix"):
        mixture.condition([0], [1.0])
