"""The projection of what is still to be gained."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.engine.stopping import fell, remaining_gain, rounding


@pytest.mark.parametrize("rate", [0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("n", [3, 4, 9])
def test_exact_for_a_geometric_series(rate: float, n: int) -> None:
    limit = -1234.5
    values = [limit - 7.0 * rate**t for t in range(n)]
    assert remaining_gain(values) == pytest.approx(limit - values[-1], rel=1e-6)


def test_a_slow_series_is_not_over_when_its_steps_are_small() -> None:
    values = [-(0.9999**t) for t in range(50)]
    assert values[-1] - values[-2] < 1e-4  # a rule on the last step would stop here
    assert remaining_gain(values) > 0.9


@pytest.mark.parametrize("values", [[], [-3.0], [-3.0, -2.0]])
def test_fewer_than_three_values_say_nothing(values: list[float]) -> None:
    assert remaining_gain(values) == np.inf


def test_growing_gains_have_no_end_in_sight() -> None:
    assert remaining_gain([0.0, 1.0, 2.0]) == np.inf
    assert remaining_gain([0.0, 1.0, 3.0]) == np.inf


def test_one_lucky_step_does_not_end_a_fit() -> None:
    # gains 1, 0.9, 0.009: the larger ratio counts
    assert remaining_gain([0.0, 1.0, 1.9, 1.909]) == pytest.approx(0.009 * 0.9 / 0.1)


def test_only_the_last_four_values_count() -> None:
    tail = [-1.0, -0.5, -0.25, -0.125]
    assert remaining_gain([-99.0, -98.0, *tail]) == remaining_gain(tail) == pytest.approx(0.125)


@pytest.mark.parametrize("last", [-100.0, -100.0 + 1e-12, -100.5])
def test_nothing_is_left_when_a_step_gains_no_more_than_rounding(last: float) -> None:
    assert remaining_gain([-102.0, -101.0, -100.0, last]) == 0.0


def test_a_start_after_a_fall_is_no_ratio() -> None:
    # the fall makes the next ratio meaningless, not small
    assert remaining_gain([-1.0, -1.5, -1.0, -0.9]) == np.inf


def test_rounding_grows_with_the_objective() -> None:
    assert rounding(-1e6) == pytest.approx(1e-7, rel=1e-3)
    assert 0 < rounding(0.0) < 1e-12


def test_a_fall_is_one_beyond_the_precision_of_the_sums() -> None:
    assert fell(-1000.0, -1000.1, False) and fell(-1000.0, -1000.1, True)
    assert fell(-1000.0, -1000.0001, False) and not fell(-1000.0, -1000.0001, True)
    assert not fell(-1000.0, -1000.0 - 1e-7, False)
    assert not fell(-1000.0, -999.0, False)
