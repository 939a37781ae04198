"""The coordinates of a fit: about a mean and in units of a spread, far from zero too."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from mixfold.math import frame
from mixfold.math.frame import Frame, frame_of, same_frame, uniform


@pytest.mark.parametrize("offset", [0.0, -3e5, 1e8, -1e8])
def test_mean_and_deviation_of_observed_weighted_entries(
    offset: float, rng: np.random.Generator
) -> None:
    X = rng.normal(size=(400, 3)) * [1, 0.01, 30] + [1, -2, 3]
    X[rng.random(X.shape) < 0.2] = np.nan
    weight = rng.uniform(0.1, 3, 400)
    frame = frame_of(X + offset, weight)
    seen = ~np.isnan(X)
    for d in range(3):
        x, w = X[seen[:, d], d], weight[seen[:, d]]
        mean = np.average(x, weights=w)
        deviation = np.sqrt(np.average((x - mean) ** 2, weights=w))
        # an entry near 1e8 is itself rounded to 1.5e-8
        assert frame.origin[d] - offset == pytest.approx(mean, abs=1e-12 + 3e-16 * abs(offset))
        assert frame.scale[d] == pytest.approx(deviation, rel=1e-12 + 1e-14 * abs(offset))


def test_enter_and_leave_are_inverse(rng: np.random.Generator) -> None:
    frame = Frame(np.array([1e3, -2.0]), np.array([0.5, 40.0]))
    X = rng.normal(size=(5, 2))
    np.testing.assert_allclose(frame.leave(frame.enter(X)), X, atol=1e-12)
    np.testing.assert_allclose(frame.enter(frame.origin + frame.scale), 1)
    np.testing.assert_allclose(frame.log_scale, np.log([0.5, 40]))


def test_single_precision_enters_double_coordinates() -> None:
    frame = Frame(np.zeros(1), np.ones(1))
    assert frame.enter(np.ones((2, 1), np.float32)).dtype == np.float64


@pytest.mark.parametrize("value", [0.0, 7.3, 1e9])
def test_constant_column_borrows_the_scale_of_the_others(
    value: float, rng: np.random.Generator
) -> None:
    X = np.column_stack([2 * rng.normal(size=500), np.full(500, value), 4 * rng.normal(size=500)])
    frame = frame_of(X, np.ones(500))
    spread = X[:, [0, 2]].var(axis=0)
    assert frame.scale[1] == pytest.approx(np.sqrt(spread.mean()), rel=1e-12)
    assert frame.origin[1] == value
    np.testing.assert_allclose(frame.scale[[0, 2]], np.sqrt(spread), rtol=1e-12)


def test_nothing_but_constants_have_scale_one() -> None:
    frame = frame_of(np.full((4, 2), 3.0), np.ones(4))
    np.testing.assert_array_equal(frame.scale, 1)


def test_uniform_keeps_spheres(rng: np.random.Generator) -> None:
    frame = uniform(Frame(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    np.testing.assert_allclose(frame.scale, np.sqrt(12.5))
    np.testing.assert_array_equal(frame.origin, [1, 2])


def test_frames_are_the_same_in_origin_and_scale() -> None:
    frame = Frame(np.zeros(2), np.ones(2))
    assert same_frame(frame, Frame(np.zeros(2), np.ones(2)))
    assert not same_frame(frame, Frame(np.ones(2), np.ones(2)))
    assert not same_frame(frame, Frame(np.zeros(2), np.array([1.0, 2.0])))


def test_the_resolution_of_a_column_is_its_smallest_step(rng: np.random.Generator) -> None:
    tenths = rng.integers(0, 50, 200) / 10  # steps that are no binary numbers
    two = rng.choice([0.48, 1.0], 200)
    missing = np.where(rng.random(200) < 0.3, np.nan, rng.integers(0, 5, 200) * 7.0)
    X = np.column_stack([tenths, two, missing, np.full(200, 3.0), np.full(200, np.nan)])
    np.testing.assert_allclose(frame.resolution(X), [0.1, 0.52, 7, 0, 0])
    np.testing.assert_allclose(frame.resolution(1e8 + X)[:3], [0.1, 0.52, 7], rtol=1e-6)
    assert frame.resolution(rng.normal(size=(500, 1)))[0] < 1e-3


def test_a_normal_for_each_value_has_the_likelihood_of_their_shares(
    rng: np.random.Generator,
) -> None:
    step = 0.7
    X = step * rng.integers(0, 4, (500, 1))
    made = frame.with_rounding(frame.frame_of(X, np.ones(len(X))), X)
    least = made.rounding[0] * made.scale[0] ** 2
    assert norm.pdf(0, scale=np.sqrt(least)) == pytest.approx(1 / step)
    X = np.round(3 * rng.normal(size=(500, 1)))
    both = np.column_stack([X, 100 * X])
    one = frame.uniform(frame.with_rounding(frame.frame_of(both, np.ones(len(both))), both))
    np.testing.assert_allclose(one.rounding * one.scale**2, (1 + 1e4) / 2 / (2 * np.pi))
