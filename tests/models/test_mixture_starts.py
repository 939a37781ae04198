"""Where a mixture starts: rules, labels, prescribed parts, awkward tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mixfold.families import GAUSSIAN
from mixfold.models.mixtures.given_start import GivenStart
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.mixtures.starts import STARTS, KMeansStart, RandomGaussiansStart, Sample
from mixfold.testing import Case
from mixfold.testing.compare import require_same
from mixfold.testing.oracles import in_data_coordinates
from mixfold.testing.tables import clustered_table

K, D = 3, 3


@pytest.fixture(params=sorted(STARTS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _sample(labels: bool = False) -> Sample:
    U = clustered_table(100, D, K)
    y = np.where(np.arange(100) % 7 == 0, np.arange(100) % K, -1) if labels else None
    return Sample(U, np.linspace(0.5, 2, 100), y)


@pytest.mark.parametrize("attempt", [0, 1])
@pytest.mark.parametrize("labels", [False, True], ids=["free", "labelled"])
def test_rows_are_shared_out_completely(name: str, attempt: int, labels: bool) -> None:
    sample = _sample(labels)
    resp = STARTS[name](sample, K, np.random.default_rng(0), attempt)
    assert resp.shape == (100, K) and (resp >= 0).all()
    np.testing.assert_allclose(resp.sum(axis=1), 1)
    assert (resp.sum(axis=0) > 0).all()
    if sample.labels is not None:
        known = sample.labels >= 0
        np.testing.assert_array_equal(resp[known].argmax(axis=1), sample.labels[known])
        np.testing.assert_array_equal(resp[known].max(axis=1), 1)


def test_a_seed_is_a_start_and_seeds_differ(name: str) -> None:
    start = STARTS[name]
    one, again, other = (start(_sample(), K, np.random.default_rng(seed), 0) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert name == "kmeans" or (one != other).any()  # k-means may find the same clusters


def test_odd_attempts_of_kmeans_do_not_see_a_linear_map(rng: np.random.Generator) -> None:
    sample = _sample()
    turned = replace(sample, U=sample.U @ rng.normal(size=(D, D)) + 3)
    start = KMeansStart()
    ours, theirs = (start(s, K, np.random.default_rng(0), 1) for s in (sample, turned))
    np.testing.assert_array_equal(ours, theirs)
    plain = [start(s, K, np.random.default_rng(0), 0) for s in (sample, turned)]
    assert (plain[0] != plain[1]).any()  # even ones do: the map is a real one


@pytest.mark.parametrize("kind", sorted(GAUSSIAN))
def test_start_of_far_clusters_is_their_moments(kind: str, rng: np.random.Generator) -> None:
    centres = np.array([[0.0, 0], [50, 0], [0, 80]])
    X = np.repeat(centres, [30, 40, 50], axis=0) + rng.normal(size=(120, 2))
    model = Mixture(3, GAUSSIAN[kind]())
    params = Case(model, X).start()
    means, covariances = in_data_coordinates(model.family, params.components)
    order = np.argsort(params.weights)
    np.testing.assert_allclose(params.weights[order], [0.25, 1 / 3, 5 / 12], atol=2e-3)
    for k, rows in zip(order, np.split(X, [30, 70]), strict=True):
        np.testing.assert_allclose(means[k], rows.mean(axis=0), rtol=1e-9, atol=1e-9)
        if kind == "full":
            np.testing.assert_allclose(
                covariances[k], np.cov(rows.T, bias=True), rtol=1e-8, atol=1e-10
            )


def test_missing_entries_start_at_the_mean_of_their_cluster() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0, 0], [90, 90, 90]], 50, axis=0) + rng.normal(size=(100, 3))
    X[::10, 1] = np.nan
    params = Case(Mixture(2, GAUSSIAN["full"]()), X).start()
    means = params.components.frame.leave(params.components.means)
    wanted = [np.nanmean(half, axis=0) for half in (X[:50], X[50:])]
    np.testing.assert_allclose(means[np.argsort(means[:, 0])], wanted, rtol=1e-9)


@pytest.mark.parametrize("kind", sorted(GAUSSIAN))
def test_prescribed_parts_are_kept(kind: str) -> None:
    family = GAUSSIAN[kind]()
    X = clustered_table(100, D, K)
    free = Case(Mixture(K, family), X).start()
    covariances = family.covariances(free.components) * 2.5
    given = GivenStart(np.array([0.6, 0.3, 0.1]), X[[0, 50, 99]], covariances)
    params = Case(Mixture(K, family, given=given), X).start()
    np.testing.assert_array_equal(params.weights, [0.6, 0.3, 0.1])
    np.testing.assert_allclose(
        params.components.frame.leave(params.components.means), X[[0, 50, 99]]
    )
    np.testing.assert_allclose(family.covariances(params.components), covariances)
    only = Case(Mixture(K, family, given=GivenStart(means=X[[0, 50, 99]])), X).start()
    np.testing.assert_allclose(
        family.covariances(only.components), family.covariances(free.components)
    )
    assert not given.free and GivenStart().free


@pytest.mark.parametrize("kind", sorted(GAUSSIAN))
def test_awkward_tables_have_a_start(kind: str) -> None:
    rng = np.random.default_rng(0)
    tables = {
        "fewer distinct rows than components": np.repeat([[1.0, 2], [3, 4]], 5, axis=0),
        "all rows equal": np.full((10, 2), 7.0),
        "a constant column": np.column_stack([rng.normal(size=20), np.full(20, 1e6)]),
        "a column seen once": np.column_stack([rng.normal(size=20), np.r_[1.0, [np.nan] * 19]]),
        "a row of nothing": np.r_[rng.normal(size=(20, 2)), np.full((1, 2), np.nan)],
    }
    for what, X in tables.items():
        case = Case(Mixture(3, GAUSSIAN[kind]()), X)
        params = case.start()
        assert np.isfinite(params.components.means).all(), what
        assert params.weights.sum() == pytest.approx(1) and (params.weights > 0).all(), what
        assert np.isfinite(case.objective(params)), what


def test_order_of_the_rows_does_not_matter(name: str, rng: np.random.Generator) -> None:
    X = clustered_table(100, D, K)
    model = Mixture(K, GAUSSIAN["full"](), start=STARTS[name])
    shuffled = Case(model, X[rng.permutation(100)]).start()
    require_same("order of rows", shuffled, Case(model, X).start(), 1e-12)


def test_whitened_distances_of_wide_rows_are_those_of_their_covariance() -> None:
    from mixfold.models.mixtures import starts

    rng = np.random.default_rng(0)
    U = rng.normal(size=(12, 40)) * rng.gamma(2.0, size=40)
    weight = rng.gamma(2.0, size=12)
    dense = starts._whiten(Sample(U, weight, None)).U
    w = weight / weight.sum()
    wide = starts._whitened_wide(U - w @ U, w)
    np.testing.assert_allclose(
        np.linalg.norm(wide[:, None] - wide, axis=2),
        np.linalg.norm(dense[:, None] - dense, axis=2),
        rtol=1e-5, atol=1e-8,
    )  # fmt: skip


@pytest.mark.parametrize("constant", [1.0, 5.0])
def test_drawn_gaussians_share_the_rows_as_their_densities_do(constant: float) -> None:
    sample = replace(_sample(), U=np.column_stack([_sample().U, np.full(100, 7.0)]))
    resp = RandomGaussiansStart(constant)(sample, K, np.random.default_rng(3), 0)
    same = np.random.default_rng(3)
    weights = constant + same.random(K)
    standard = same.normal(size=(K, D + 1))[:, :D]
    mean = np.average(sample.U[:, :D], axis=0, weights=sample.weight)
    variance = np.average((sample.U[:, :D] - mean) ** 2, axis=0, weights=sample.weight)
    wanted = np.column_stack(
        [
            weights[k]
            * stats.multivariate_normal(
                mean + np.sqrt(variance) / constant * standard[k], np.diag(2 * variance)
            ).pdf(sample.U[:, :D])
            for k in range(K)
        ]
    )
    np.testing.assert_allclose(resp, wanted / wanted.sum(axis=1, keepdims=True), atol=1e-10)


def test_drawn_gaussians_start_rows_that_are_all_the_same() -> None:
    sample = Sample(np.ones((5, 2)), np.ones(5), None)
    resp = STARTS["randconst"](sample, K, np.random.default_rng(0), 0)
    assert np.isfinite(resp).all() and (resp == resp[0]).all()
