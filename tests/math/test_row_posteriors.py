"""One small posterior per row, against dense inverses."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.math.row_posteriors import add_outer, row_posteriors
from mixfold.math.symmetric import pack, unpack


def _precisions(n: int, d: int, size: float = 1.0) -> np.ndarray:
    """M - I of n rows, positive semi-definite, some of rank one and some zero."""
    rng = np.random.default_rng(3)
    roots = size * rng.normal(size=(n, d, d))
    roots[1, :, 1:] = 0.0
    roots[2] = 0.0
    return roots @ np.swapaxes(roots, 1, 2)


@pytest.mark.parametrize("d", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_against_dense_inverses(d: int, size: float, rng: np.random.Generator) -> None:
    extra, b = _precisions(20, d, size), rng.normal(size=(20, d))
    M = extra + np.eye(d)
    z, covariance, log_det = row_posteriors(pack(extra), b)
    inverse = np.linalg.inv(M)
    tol = 1e-10 * max(1.0, size)
    np.testing.assert_allclose(unpack(covariance, d), inverse, atol=tol)
    np.testing.assert_allclose(z, np.einsum("nij,nj->ni", inverse, b), atol=tol)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(M)[1], rtol=1e-10, atol=1e-12)


def test_a_row_that_shows_nothing_has_the_prior() -> None:
    z, covariance, log_det = row_posteriors(np.zeros((1, 6)), np.zeros((1, 3)))
    np.testing.assert_array_equal(unpack(covariance, 3)[0], np.eye(3))
    assert not z.any() and log_det[0] == 0


def test_no_latents_at_all() -> None:
    z, covariance, log_det = row_posteriors(np.zeros((4, 0)), np.zeros((4, 0)))
    assert z.shape == covariance.shape == (4, 0)
    np.testing.assert_array_equal(log_det, 0)


def test_arguments_are_left_alone_and_may_be_views(rng: np.random.Generator) -> None:
    packed, b = pack(_precisions(9, 3)), rng.normal(size=(9, 3))
    wanted = row_posteriors(packed, b)
    views = np.repeat(packed, 2, axis=1)[:, ::2], np.asfortranarray(b)
    kept = [view.copy() for view in views]
    for got, right in zip(row_posteriors(*views), wanted, strict=True):
        np.testing.assert_array_equal(got, right)
    for view, before in zip(views, kept, strict=True):
        np.testing.assert_array_equal(view, before)


@pytest.mark.parametrize("lead", [(), (4,), (2, 3)], ids=str)
def test_packed_triangles_come_back(lead: tuple[int, ...], rng: np.random.Generator) -> None:
    A = rng.normal(size=(*lead, 3, 3))
    A = A + np.swapaxes(A, -1, -2)
    packed = pack(A)
    assert packed.shape == (*lead, 6)
    np.testing.assert_array_equal(unpack(packed, 3), A)


def test_second_moments_of_rows(rng: np.random.Generator) -> None:
    covariance, z = _precisions(7, 3), rng.normal(size=(7, 3))
    got = unpack(add_outer(pack(covariance), z), 3)
    np.testing.assert_allclose(got, covariance + z[:, :, None] * z[:, None], rtol=1e-13)
