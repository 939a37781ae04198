"""ln x! of counts against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln

from mixfold.math.log_factorials import TABLE, log_factorial_sums, log_factorials

COUNTS = np.array([[0.0, 1.0, 2.0, len(TABLE) - 1], [5.0, len(TABLE), 1e6, 0.5]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_entries_and_rows(dtype: type) -> None:
    X = COUNTS.astype(dtype)
    wanted = gammaln(X.astype(float) + 1)
    np.testing.assert_allclose(log_factorials(X), wanted, rtol=1e-14)
    np.testing.assert_allclose(log_factorial_sums(X), wanted.sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(log_factorial_sums(csr_array(X)), wanted.sum(axis=1), rtol=1e-14)


def test_missing_entries_add_nothing() -> None:
    X = COUNTS.copy()
    X[:, 1] = np.nan
    wanted = np.nansum(gammaln(X + 1), axis=1)
    np.testing.assert_allclose(log_factorial_sums(X), wanted)
    np.testing.assert_allclose(log_factorial_sums(csr_array(X)), wanted)
    assert np.isnan(log_factorials(X)[:, 1]).all()


def test_any_layout() -> None:
    X = np.asfortranarray(COUNTS)[:, ::2]
    np.testing.assert_allclose(log_factorial_sums(X), gammaln(X + 1).sum(axis=1))
    assert log_factorials(np.array(3.0)) == pytest.approx(np.log(6))
    assert log_factorial_sums(np.empty((0, 3))).shape == (0,)
