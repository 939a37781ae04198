"""exp for arguments <= 0, against extended precision."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import mixfold.math.vector_exponential  # noqa: F401 (what is compiled in its place)
from mixfold.math.exponential import exp_nonpositive


@njit
def _apply(values, out):  # type: ignore[no-untyped-def]
    for i in range(values.size):
        out[i] = exp_nonpositive(values[i])


def _exp(values: np.ndarray) -> np.ndarray:
    out = np.empty_like(values)
    _apply(values, out)
    return out


def _grid(dtype: type, lowest: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    spread = -(10.0 ** rng.uniform(-20, np.log10(-lowest), 20_000))
    # the reduction changes its integer at odd multiples of ln(2) / 2
    halves = -np.arange(0.5, -lowest / np.log(2) - 1) * np.log(2)
    near = np.concatenate([halves * (1 + d) for d in (-1e-12, 0, 1e-12, 1e-7)])
    values = np.concatenate([spread, near, np.linspace(lowest * 0.9999, 0, 5001), [-0.0, 0.0]])
    return values.astype(dtype)


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float64, -708.0), (np.float32, -87.0)])
def test_within_two_units_in_the_last_place(dtype: type, lowest: float) -> None:
    values = _grid(dtype, lowest)
    got = _exp(values)
    wanted = np.exp(values.astype(np.longdouble))
    ulps = np.abs(got - wanted) / np.spacing(wanted.astype(dtype))
    assert ulps.max() <= 2, values[ulps.argmax()]


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float64, -708.0), (np.float32, -87.0)])
def test_zero_from_the_end_of_the_range_on(dtype: type, lowest: float) -> None:
    below = np.array([lowest, lowest - 0.1, 10 * lowest, -1e30, -np.inf], dtype)
    np.testing.assert_array_equal(_exp(below), 0)
    above = np.nextafter(dtype(lowest), dtype(0))
    assert _exp(np.array([above], dtype))[0] >= np.finfo(dtype).tiny  # never denormal


def test_zero_gives_one_exactly() -> None:
    for dtype in (np.float64, np.float32):
        np.testing.assert_array_equal(_exp(np.zeros(3, dtype)), 1)


def test_outside_compiled_code() -> None:
    assert exp_nonpositive(-1.5) == pytest.approx(np.exp(-1.5), rel=1e-15)
    assert exp_nonpositive(-708.0) == exp_nonpositive(-np.inf) == 0.0
