"""Codes of classes."""

import numpy as np
import pytest

from mixfold.math.simplex_codes import simplex_codes


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_codes_are_orthonormal_contrasts_equally_far_from_each_other(n_classes: int) -> None:
    Q = simplex_codes(n_classes)
    assert Q.shape == (n_classes, n_classes - 1)
    np.testing.assert_allclose(Q.T @ Q, np.eye(n_classes - 1), atol=1e-12)
    np.testing.assert_allclose(Q.sum(axis=0), 0.0, atol=1e-12)
    apart = ((Q[:, None] - Q[None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(apart, 2.0 * (1 - np.eye(n_classes)), atol=1e-12)
