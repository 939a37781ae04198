"""Where a row sits down."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.math.cluster_draws import draw_cluster

GRID = (np.arange(2000) + 0.5) / 2000


def _shares(
    scores: list[float], counts: list[float], own: list[float], fresh: float, mass: float
) -> np.ndarray:
    """How much of the unit interval leads to each slot, and to a new one."""
    found = []
    for uniform in GRID:
        work = np.array(scores)
        found.append(draw_cluster(work, np.array(counts), np.array(own), fresh, mass, uniform))
        assert (work == 0).all()
    return np.bincount(np.array(found) % (len(counts) + 1), minlength=len(counts) + 1) / len(GRID)


def test_shares_of_a_process() -> None:
    scores, counts = [-700.0, 0.0, -701.0], [2.0, 0.0, 5.0]
    got = _shares(scores, counts, [0.0] * 3, -702.0, 3.0)
    weight = np.array([2.0, 0.0, 5 * np.exp(-1), 3 * np.exp(-2)])
    np.testing.assert_allclose(got, weight / weight.sum(), atol=1e-3)


def test_shares_of_components() -> None:
    got = _shares([-3.0, 0.0, -4.0], [2.0, 0.0, 5.0], [0.5, 0.25, 0.5], -5.0, 0.0)
    weight = np.array([2.5, 0.25 * np.exp(-2), 5.5 * np.exp(-1), 0.0])
    np.testing.assert_allclose(got, weight / weight.sum(), atol=1e-3)


@pytest.mark.parametrize("nothing", [np.nan, -np.inf])
def test_what_no_cluster_can_produce_goes_by_the_sizes(nothing: float) -> None:
    got = _shares([nothing] * 2, [3.0, 1.0], [0.0] * 2, nothing, 1.0)
    np.testing.assert_allclose(got, [0.6, 0.2, 0.2], atol=1e-3)
    got = _shares([nothing, -1.0], [3.0, 1.0], [0.0] * 2, nothing, 1.0)
    np.testing.assert_allclose(got, [0.0, 1.0, 0.0])


def test_the_end_of_the_interval_is_somewhere() -> None:
    for uniform in (np.nextafter(1.0, 0.0), 1.0, 1e-300):
        counts = np.full(7, 1 / 3)
        slot = draw_cluster(np.linspace(-1, 0, 7), counts, np.zeros(7), -1.0, 0.0, uniform)
        assert slot in (0, 6)
