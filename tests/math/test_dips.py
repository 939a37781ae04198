"""Dips between components: the p-value, and what rows can and cannot prove."""

import numpy as np
import pytest
from scipy import stats

from mixfold import GaussianMixture
from mixfold.math.dips import (
    FLAT,
    ONE_PEAK,
    Joined,
    Landscape,
    dip_p_value,
    projected_dip,
    share_p_value,
)
from mixfold.math.merging import keep_shares


@pytest.mark.parametrize(("valley", "peak"), [(0, 10), (3, 12), (7, 7), (20, 5)])
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_p_value_is_that_of_the_binomial_distribution(valley, peak, ratio):
    expected = stats.binom.cdf(valley, valley + peak, ratio / (1 + ratio))
    assert dip_p_value(valley, peak, ratio) == pytest.approx(expected)


def test_rows_that_are_taken_for_another_components():
    assert share_p_value(2, 100) == pytest.approx(stats.binom.cdf(2, 100, FLAT))
    assert share_p_value(3.0, 3.0) == 1
    # two halves of a flat density, each a Gaussian of its mean and variance
    assert pytest.approx(stats.norm.sf(0.25 / np.sqrt(0.5**2 / 12))) == FLAT
    assert pytest.approx(stats.norm.sf(1)) == ONE_PEAK


def test_expected_share_of_the_valley_is_that_of_two_gaussians():
    found = projected_dip(*two(4.0, 200_000, 0))
    rows = found.n_valley / (found.n_peak + found.n_valley)
    assert found.expected == pytest.approx(rows, abs=0.01)


def test_no_rows_prove_nothing():
    assert dip_p_value(0.0, 0.0) == 1


def two(gap, n, seed):
    """Rows of two Gaussians of variance one on a line, and whose they are."""
    y = np.arange(n) % 2
    return np.random.default_rng(seed).normal(size=n) + gap * y, 1.0 * (y == 0), 1.0 * (y == 1)


def test_four_standard_deviations_are_proven_by_200_rows_and_two_never():
    proven = [projected_dip(*two(4.0, 200, seed)).p_value < 0.05 for seed in range(50)]
    assert np.mean(proven) > 0.85
    assert all(projected_dip(*two(5.0, 200, seed)).p_value < 0.01 for seed in range(20))
    # one peak: the density of the two together has no dip at all
    assert all(projected_dip(*two(2.0, 20_000, seed)).p_value == 1 for seed in range(5))


def test_a_flat_density_is_rarely_proven_to_dip():
    """Rows between 0 and 1, wherever their halves are said to be."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(300):
        t = rng.uniform(size=120)
        left = 1.0 * (t < rng.uniform(0.3, 0.7))
        found.append(projected_dip(t, left, 1 - left).p_value)
    # a share of 0.05 within six standard errors
    assert np.mean(np.array(found) <= 0.05) < 0.05 + 6 * np.sqrt(0.05 * 0.95 / 300)


def test_few_rows_that_are_far_are_proven_and_fewer_are_not():
    rng = np.random.default_rng(0)
    t = np.r_[rng.normal(size=200), 12 + rng.normal(size=12)]
    left = np.r_[np.ones(200), np.zeros(12)]
    found = projected_dip(t, left, 1 - left)
    assert found.n_valley == 0 and found.p_value < 0.01
    kept = np.r_[np.arange(200), 200, 201]
    assert projected_dip(t[kept], left[kept], 1 - left[kept]).p_value > 0.2


def test_weights_count_as_rows():
    t, left, right = two(4.0, 100, 1)
    one = projected_dip(t, 2 * left, 2 * right)
    other = projected_dip(np.tile(t, 2), np.tile(left, 2), np.tile(right, 2))
    np.testing.assert_allclose(one, other)


def test_units_and_direction_of_the_line_do_not_matter():
    t, left, right = two(4.0, 300, 2)
    one = projected_dip(t, left, right)
    np.testing.assert_allclose(one, projected_dip(7 - 1e6 * t, left, right), rtol=1e-6)
    np.testing.assert_allclose(one, projected_dip(t, right, left), rtol=1e-6)


def test_rows_on_one_point_have_no_dip():
    assert projected_dip(np.zeros(6), np.ones(6), np.ones(6)).p_value == 1


def test_ridgeline_goes_from_mean_to_mean_and_through_the_corner():
    """Of two long Gaussians that meet at a right angle; the straight line cuts the corner."""
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(400, 2)) * [2, 0.1] + [4, 0]
    steep = rng.normal(size=(400, 2)) * [0.1, 2] + [0, 4]
    X = np.vstack([flat, steep])
    model = GaussianMixture(
        2, means_init=[[4, 0], [0, 4]], random_state=0).fit(X)  # fmt: skip
    land = Landscape(
        X, keep_shares(model.predict_log_proba(X)), np.ones(len(X)), model.score_samples
    )
    line = land.ridgelines(np.array([[0, 1]]))[0]
    np.testing.assert_allclose(line[[0, -1]], land.means, atol=1e-9)
    corner = np.abs(line * land.scale).sum(axis=1).min()
    assert corner < 1.5 < 4


@pytest.mark.parametrize("D", [1, 2, 6])
def test_rows_in_a_window_are_all_rows_in_the_ellipsoid(D):
    rng = np.random.default_rng(D)
    X, weight = rng.normal(size=(500, D)) * np.logspace(-2, 1, D), rng.random(500)
    shares = keep_shares(np.zeros((500, 1)))
    land = Landscape(X, shares, weight, lambda points: np.zeros(len(points)))
    root = rng.normal(size=(D, D)) * np.logspace(0, 3, D)
    precision = root @ root.T + 0.1 * np.eye(D)
    for radius in (0.01, 1.0, 100.0, 1e6):
        apart = X / land.scale - land.means[0]
        inside = np.einsum("nd,de,ne->n", apart, precision, apart) <= radius
        found = land._count(land.means[0], precision, radius)
        np.testing.assert_allclose(found, weight[inside].sum(), rtol=1e-12)


def test_pairs_that_were_set_apart_stay_apart_when_others_join():
    joined = Joined(4, np.array([1.0, 2.0, 3.0, 0.0]))
    joined.set_apart(0, 1)
    joined.join(2, 1)
    assert joined.apart(joined.find(0), joined.find(1))
    assert not joined.apart(joined.find(3), joined.find(1))
    assert joined.peak(joined.find(1)) == 2
    assert len(np.unique(joined.labels())) == 3
