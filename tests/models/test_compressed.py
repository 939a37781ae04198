"""A few rows that stand for a table: the same moments, hence the same likelihoods."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.random import RowKeys
from mixfold.engine.sources import open_source
from mixfold.families.factor import FactorFamily
from mixfold.models.factors.spectral import second_moments
from mixfold.models.factors.spectral_sums import SecondMoments
from mixfold.models.mixtures.compressed import compress_moments
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing import Case
from mixfold.testing.tables import clustered_table


def _tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X = clustered_table(120, 5, 3)
    constant = X.copy()
    constant[:, 2] = 4.0
    return {
        "ordinary": X,
        "far from zero": X + 1e5,
        "a constant column": constant,
        "collinear": np.column_stack([X, X[:, 0] + X[:, 3]]),
        "more columns than rows": rng.normal(size=(6, 15)),
        "units far apart": X * 10.0 ** np.arange(-6, 4, 2),
    }


TABLES = _tables()


@pytest.fixture(params=sorted(TABLES))
def X(request: pytest.FixtureRequest) -> np.ndarray:
    return TABLES[request.param]


def _moments(X: np.ndarray, weight: np.ndarray | None = None) -> SecondMoments:
    return second_moments(open_source(X, weight=weight), ThreadExecutor(1))


def _same(got: np.ndarray, wanted: np.ndarray, X: np.ndarray, rtol: float = 1e-9) -> None:
    """In units of the columns."""
    scale = np.maximum(np.sqrt(np.diagonal(wanted)), 1e-9 * np.abs(X).max(axis=0))
    np.testing.assert_allclose(
        got / np.outer(scale, scale), wanted / np.outer(scale, scale), atol=rtol
    )


@pytest.mark.parametrize("center", [True, False], ids=["centred", "about zero"])
def test_the_same_second_moments(X: np.ndarray, center: bool) -> None:
    weight = np.random.default_rng(1).uniform(0.2, 3, len(X))
    few = compress_moments(_moments(X, weight), center)
    assert few.weight.sum() == pytest.approx(weight.sum(), rel=1e-12)
    assert len(few.rows) <= X.shape[1]
    mean = np.average(X, axis=0, weights=weight)
    np.testing.assert_allclose(few.mean, mean if center else 0, rtol=1e-12)
    deviation = X - mean if center else X
    wanted = (deviation.T * weight) @ deviation / weight.sum()
    got = (few.rows.T * few.weight) @ few.rows / few.weight.sum()
    _same(got, wanted, X)


def test_rows_on_both_sides_have_the_mean_too(X: np.ndarray) -> None:
    rows, weight = compress_moments(_moments(X)).both_sides()
    assert weight.sum() == pytest.approx(len(X))
    mean = np.average(rows, axis=0, weights=weight)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-12, atol=1e-12)
    got = ((rows - mean).T * weight) @ (rows - mean) / weight.sum()
    _same(got, np.cov(X.T, bias=True), X)


def test_the_likelihood_of_one_component_is_that_of_the_table() -> None:
    """At any parameters, and so is a step from them."""
    X = TABLES["ordinary"]
    model = Mixture(1, FactorFamily(factors=(2,)))
    case = Case(model, X)
    params = case.after(2)
    rows, weight = compress_moments(_moments(X)).both_sides()
    reading = model.prepare(params)
    ours = model.expect(reading, Block(rows, weight=weight), RowKeys(0))
    theirs = case.stats(params)
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-10)
    a, b = (case.update(params, stats).params.components for stats in (ours, theirs))
    np.testing.assert_allclose(a.loadings, b.loadings, atol=1e-9)
    np.testing.assert_allclose(a.noise, b.noise, rtol=1e-8)


def test_collinear_columns_need_fewer_rows() -> None:
    assert len(compress_moments(_moments(TABLES["ordinary"])).rows) == 5
    assert len(compress_moments(_moments(TABLES["collinear"])).rows) == 5  # of six columns
    assert len(compress_moments(_moments(TABLES["more columns than rows"])).rows) == 5


def test_equal_rows_are_one_row_of_zeros() -> None:
    few = compress_moments(_moments(np.full((8, 3), 2.0)))
    np.testing.assert_array_equal(few.rows, np.zeros((1, 3)))
    np.testing.assert_array_equal(few.mean, 2.0)
    assert few.weight.sum() == 8
