"""Principal axes of a sample against the eigenvalues of its dense covariance."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.math.principal import sample_axes

# (rows, columns, axes): by rows, by columns, and where an iteration pays
SHAPES = {"wide": (8, 20, 3), "tall": (40, 6, 3), "large": (90, 60, 2)}


def _table(n: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows far from zero whose variances fall by half from axis to axis, and their weights."""
    rng = np.random.default_rng(n)
    turn = np.linalg.qr(rng.normal(size=(D, D)))[0]
    U = (rng.normal(size=(n, D)) * 0.5 ** np.arange(D)) @ turn.T + 7.0
    return U, rng.uniform(0.5, 3.0, n)


@pytest.fixture(params=sorted(SHAPES))
def shape(request: pytest.FixtureRequest) -> tuple[int, int, int]:
    return SHAPES[request.param]


@pytest.mark.parametrize("given", [False, True], ids=["about the mean", "about a point"])
def test_against_the_dense_covariance(shape: tuple[int, int, int], given: bool) -> None:
    n, D, size = shape
    U, weight = _table(n, D)
    centre = np.full(D, 6.5) if given else np.average(U, axis=0, weights=weight)
    dense = (U - centre).T @ ((U - centre) * weight[:, None]) / weight.sum()
    values, vectors = np.linalg.eigh(dense)
    axes = sample_axes(U, weight, size, centre if given else None)
    np.testing.assert_allclose(axes.mean, centre, rtol=1e-12)
    np.testing.assert_allclose(axes.values, values[::-1][:size], rtol=1e-6)
    assert axes.total == pytest.approx(np.trace(dense), rel=1e-12)
    np.testing.assert_allclose(axes.vectors.T @ axes.vectors, np.eye(size), atol=1e-10)
    angles = np.abs((axes.vectors * vectors[:, ::-1][:, :size]).sum(axis=0))
    np.testing.assert_allclose(angles, 1, atol=1e-6)


def test_weights_are_repetition(shape: tuple[int, int, int]) -> None:
    n, D, size = shape
    U, _ = _table(n, D)
    times = np.arange(n) % 3 + 1
    weighted = sample_axes(U, times.astype(float), size)
    repeated = sample_axes(np.repeat(U, times, axis=0), np.ones(times.sum()), size)
    np.testing.assert_allclose(weighted.values, repeated.values, rtol=1e-6)
    overlap = np.abs(weighted.vectors.T @ repeated.vectors)
    np.testing.assert_allclose(overlap, np.eye(size), atol=1e-5)


def test_the_same_rows_give_the_same_axes(shape: tuple[int, int, int]) -> None:
    n, D, size = shape
    U, weight = _table(n, D)
    one, two = sample_axes(U, weight, size), sample_axes(U, weight, size)
    np.testing.assert_array_equal(one.vectors, two.vectors)
    np.testing.assert_array_equal(one.values, two.values)


@pytest.mark.parametrize("rows", [1, 2, 3], ids="{} rows".format)
def test_axes_that_the_sample_lacks_complete_the_others(rows: int) -> None:
    U = np.random.default_rng(rows).normal(size=(rows, 6))
    axes = sample_axes(U, np.ones(rows), 4)
    assert (axes.values[: rows - 1] > 0.01).all()
    np.testing.assert_array_equal(axes.values[rows - 1 :], 0)
    np.testing.assert_allclose(axes.vectors.T @ axes.vectors, np.eye(4), atol=1e-10)
    # nothing of the rows is left outside the axes
    centred = U - U.mean(axis=0)
    np.testing.assert_allclose(centred @ axes.vectors @ axes.vectors.T, centred, atol=1e-10)


def test_equal_rows_have_no_variance_but_axes() -> None:
    # 64 rows: their mean is exact
    axes = sample_axes(np.full((64, 45), 3.0), np.ones(64), 2)
    assert axes.total == 0 and not axes.values.any()
    np.testing.assert_allclose(axes.vectors.T @ axes.vectors, np.eye(2), atol=1e-12)


def test_no_axes() -> None:
    U, weight = _table(10, 4)
    axes = sample_axes(U, weight, 0)
    assert axes.vectors.shape == (4, 0) and axes.values.shape == (0,)
    variance = np.average((U - axes.mean) ** 2, axis=0, weights=weight)
    assert axes.total == pytest.approx(variance.sum())


def test_the_sample_is_left_alone() -> None:
    U, weight = _table(30, 5)
    kept = U.copy(), weight.copy()
    sample_axes(U, weight, 2)
    np.testing.assert_array_equal(U, kept[0])
    np.testing.assert_array_equal(weight, kept[1])
