"""Probabilistic PCA in closed form against dense Gaussians and its neighbours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.sources import open_source
from mixfold.models.factors.ppca import closed_form, log_likelihood_of
from mixfold.models.factors.spectral import Spectrum, principal_axes
from mixfold.models.mixtures.mixture import MixtureParams
from mixfold.testing.tables import clustered_table

D, FLOOR = 5, 1e-6


def _spectrum(
    X: np.ndarray, d: int, center: bool = True, weight: np.ndarray | None = None
) -> Spectrum:
    source = open_source(X, weight=weight)
    rng = np.random.default_rng(0)
    return principal_axes(source, ThreadExecutor(1), d, rng=rng, center=center)


def _dense(params: MixtureParams) -> tuple[np.ndarray, np.ndarray]:
    p = params.components
    C = p.loadings[0] @ p.loadings[0].T + np.diag(p.noise[0])
    return p.frame.leave(p.means)[0], C * np.outer(p.frame.scale, p.frame.scale)


def _log_likelihood(X: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    return float(multivariate_normal(mean, covariance).logpdf(X).mean())


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("center", [True, False], ids=["centred", "about zero"])
def test_the_covariance_keeps_the_leading_axes_and_the_trace(d: int, center: bool) -> None:
    X = clustered_table(100, D, 2)
    params = closed_form(_spectrum(X, d, center), FLOOR)
    mean, C = _dense(params)
    wanted_mean = X.mean(axis=0) if center else np.zeros(D)
    S = (X - wanted_mean).T @ (X - wanted_mean) / 100
    np.testing.assert_allclose(mean, wanted_mean, rtol=1e-10, atol=1e-12)
    values, vectors = np.linalg.eigh(S)
    np.testing.assert_allclose(np.linalg.eigvalsh(C)[::-1][:d], values[::-1][:d], rtol=1e-9)
    np.testing.assert_allclose(np.trace(C), np.trace(S), rtol=1e-10)
    top = vectors[:, ::-1][:, :d]
    np.testing.assert_allclose(C @ top, top * values[::-1][:d], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(np.linalg.eigvalsh(C)[: D - d], values[: D - d].mean(), rtol=1e-9)


@pytest.mark.parametrize("d", [1, 3, 5])
def test_likelihood_of_the_closed_form(d: int) -> None:
    X = clustered_table(100, D, 2)
    spectrum = _spectrum(X, d)
    value = log_likelihood_of(spectrum, FLOOR)
    assert value == pytest.approx(
        _log_likelihood(X, *_dense(closed_form(spectrum, FLOOR))), rel=1e-9
    )


def test_no_neighbour_is_better() -> None:
    X = clustered_table(100, D, 2)
    params = closed_form(_spectrum(X, 2), FLOOR)
    best = _log_likelihood(X, *_dense(params))
    rng = np.random.default_rng(0)
    p = params.components
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(10):
            moved = replace(
                p,
                means=p.means + size * rng.normal(size=p.means.shape),
                loadings=p.loadings + size * rng.normal(size=p.loadings.shape),
                noise=p.noise * np.exp(size * rng.normal()),
            )
            assert _log_likelihood(X, *_dense(replace(params, components=moved))) < best


def test_weights_are_repetition() -> None:
    X = clustered_table(60, D, 2)
    times = np.arange(60) % 3 + 1
    a = closed_form(_spectrum(X, 2, weight=times.astype(float)), FLOOR)
    b = closed_form(_spectrum(np.repeat(X, times, axis=0), 2), FLOOR)
    for ours, theirs in zip(_dense(a), _dense(b), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_the_floor_holds_where_nothing_is_left_over() -> None:
    """Fewer directions than axes: noise at the floor, surplus loadings zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2)) @ rng.normal(size=(2, D))
    spectrum = _spectrum(X, 3)
    params = closed_form(spectrum, FLOOR)
    np.testing.assert_allclose(params.components.noise, FLOOR, rtol=1e-9)
    lengths = np.linalg.norm(params.components.loadings[0], axis=0)
    assert (lengths[:2] > 0.1).all() and lengths[2] < 1e-6
    mean, C = _dense(params)
    assert log_likelihood_of(spectrum, FLOOR) == pytest.approx(
        _log_likelihood(X, mean, C), rel=1e-6
    )
    # under the floor's constraint it is the maximum too
    for factor in (1.5, 4.0):
        worse = replace(params.components, noise=params.components.noise * factor)
        assert _log_likelihood(X, *_dense(replace(params, components=worse))) < _log_likelihood(
            X, mean, C
        )


def test_as_many_axes_as_columns() -> None:
    X = clustered_table(100, D, 2)
    params = closed_form(_spectrum(X, D), FLOOR)
    _, C = _dense(params)
    np.testing.assert_allclose(C, np.cov(X.T, bias=True), rtol=1e-9)


def test_equal_rows_have_a_model() -> None:
    params = closed_form(_spectrum(np.full((6, 3), 2.0), 1), FLOOR)
    p = params.components
    assert (p.noise > 0).all() and not p.loadings.any()
    np.testing.assert_array_equal(p.frame.leave(p.means), 2.0)


def test_fewer_rows_than_columns() -> None:
    X = np.random.default_rng(0).normal(size=(6, 30))
    params = closed_form(_spectrum(X, 3), FLOOR)
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))
    _, C = _dense(params)
    np.testing.assert_allclose(np.linalg.eigvalsh(C)[-3:], values[-3:], rtol=1e-9)
    np.testing.assert_allclose(np.linalg.eigvalsh(C)[0], values[:-3].sum() / 27, rtol=1e-9)
