"""The gap statistic against its definition and on planted clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixfold import GaussianMixture, KMeans, gap_statistic
from mixfold.contracts import Array
from mixfold.estimators.mixtures.gap import dispersion


@pytest.fixture
def three(rng: np.random.Generator) -> Array:
    centres = np.repeat([[0, 0], [7, 0], [3, 7]], 30, axis=0)
    return np.asarray(rng.normal(size=(90, 2)) + centres)


def test_dispersion_is_the_sum_over_pairs(rng: np.random.Generator) -> None:
    X, labels = rng.normal(size=(20, 3)), rng.integers(0, 3, 20)
    wanted = 0.0
    for k in range(3):
        rows = X[labels == k]
        pairs = ((rows[:, None] - rows[None]) ** 2).sum()
        wanted += pairs / (2 * len(rows))
    assert np.isclose(dispersion(X, labels), wanted)
    weight = rng.integers(1, 4, 20).astype(float)
    copies = np.repeat(np.arange(20), weight.astype(int))
    assert np.isclose(dispersion(X, labels, weight), dispersion(X[copies], labels[copies]))


def test_one_cluster_is_a_known_integral(rng: np.random.Generator) -> None:
    X = rng.normal(size=(400, 2))
    found = gap_statistic(X, n_clusters=[1], n_references=40, random_state=0)
    observed = np.log(((X - X.mean(axis=0)) ** 2).sum())
    expected = np.log(400 * (np.ptp(X, axis=0) ** 2 / 12).sum())  # of a uniform box
    assert np.isclose(found.log_dispersion[0], observed)
    assert np.isclose(found.gap[0], expected - observed, atol=4 * found.standard_error[0])


def test_planted_clusters_are_found_and_uniform_rows_have_none(
    three: Array, rng: np.random.Generator
) -> None:
    settings: Any = dict(n_clusters=range(1, 5), n_references=6, random_state=1)
    assert gap_statistic(three, **settings).best == 3
    assert (
        gap_statistic(
            three, GaussianMixture(covariance_type="diag", init_params="k-means++"), **settings
        ).best
        == 3
    )
    assert gap_statistic(rng.random((100, 2)), **settings).best == 1
    aslant = rng.normal(size=(120, 2)) * [1, 30] @ [[0.7, 0.7], [-0.7, 0.7]]
    assert gap_statistic(aslant, reference="pca", **settings).best == 1


def test_missing_entries_and_weights(three: Array, rng: np.random.Generator) -> None:
    settings: Any = dict(n_clusters=range(1, 5), n_references=5, random_state=1)
    holed = np.where(rng.random(three.shape) < 0.1, np.nan, three)
    holed[np.isnan(holed).all(axis=1), 0] = 0.0
    assert gap_statistic(holed, **settings).best == 3
    twice = gap_statistic(np.repeat(three, 2, axis=0), **settings)
    heavy = gap_statistic(three, sample_weight=np.full(90, 2.0), **settings)
    np.testing.assert_allclose(heavy.log_dispersion, twice.log_dispersion, rtol=1e-6)
    np.testing.assert_allclose(heavy.gap, twice.gap, atol=0.2)
    none = np.vstack([three, 100 * np.ones((1, 2))])
    light = gap_statistic(none, sample_weight=np.r_[np.ones(90), 0.0], **settings)
    np.testing.assert_array_equal(light.gap, gap_statistic(three, **settings).gap)


def test_weights_of_attributes_make_units_equal(three: Array, rng: np.random.Generator) -> None:
    settings: Any = dict(n_clusters=range(1, 5), n_references=5, random_state=1)
    wide = np.column_stack([three, 1000 * rng.random(90)])  # a column that tells nothing
    assert gap_statistic(wide, **settings).best == 1
    assert gap_statistic(wide, attribute_weights=[1, 1, 0], **settings).best == 3
    one = gap_statistic(three, attribute_weights="variance", **settings)
    other = gap_statistic(three * [1, 1e4], attribute_weights="variance", **settings)
    np.testing.assert_allclose(one.gap, other.gap, rtol=1e-6)
    same = gap_statistic(three / np.sqrt(2 * three.var(axis=0)), **settings)
    np.testing.assert_allclose(one.gap, same.gap, rtol=1e-6)


def test_the_result_depends_on_the_seed_alone(three: Array) -> None:
    settings: Any = dict(n_clusters=[1, 2], n_references=4)
    one = gap_statistic(three, random_state=3, **settings)
    np.testing.assert_array_equal(
        one.gap, gap_statistic(three, random_state=3, n_jobs=2, **settings).gap
    )
    assert (one.gap != gap_statistic(three, random_state=4, **settings).gap).any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_clusters": [3, 2]}, r"n_clusters must be whole numbers >= 1, ascending.*\[3, 2\]"),
        ({"n_clusters": []}, "n_clusters must be"),
        ({"n_clusters": [90]}, "n_clusters=90 leaves no dispersion.*lower n_clusters"),
        ({"n_references": 1}, "n_references must be an int >= 2.*got 1"),
        ({"reference": "ball"}, "reference must be 'box' or 'pca'; got 'ball'"),
        ({"attribute_weights": "sd"}, "attribute_weights must be 'variance'.*got 'sd'"),
        ({"attribute_weights": [1, -1]}, "attribute_weights must be 2 numbers >= 0"),
        ({"sample_weight": [1.0]}, "sample_weight must be 90 numbers"),
    ],
)
def test_bad_settings(three: Array, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        gap_statistic(three, **{"n_references": 2, **changes})


def test_what_finds_no_clusters_is_refused(three: Array) -> None:
    with pytest.raises(TypeError, match=r"estimator must have n_clusters.*got 3"):
        gap_statistic(three, 3)
    holed = three.copy()
    holed[0, 0] = np.nan
    with pytest.raises(ValueError, match="reference='pca' needs complete rows"):
        gap_statistic(holed, KMeans(), reference="pca")
