"""Where mixtures of factor models start: rules, labels, weights, and components that cross."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.families.factor import FactorFamily
from mixfold.models.factors.factor_starts import FACTOR_STARTS, KMeansFactorStart, SubspaceStart
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.mixtures.starts import Sample
from mixfold.testing import Case
from mixfold.testing.compare import require_same
from mixfold.testing.tables import clustered_table

K, D, N = 3, 4, 100


@pytest.fixture(params=sorted(FACTOR_STARTS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _sample(labels: bool = False) -> Sample:
    U = clustered_table(N, D, K)
    y = np.where(np.arange(N) % 7 == 0, np.arange(N) % K, -1) if labels else None
    return Sample(U, np.linspace(0.5, 2, N), y)


@pytest.mark.parametrize("attempt", range(3))
@pytest.mark.parametrize("labels", [False, True], ids=["free", "labelled"])
def test_rows_are_shared_out_completely(name: str, attempt: int, labels: bool) -> None:
    sample = _sample(labels)
    resp = FACTOR_STARTS[name](2)(sample, K, np.random.default_rng(0), attempt)
    assert resp.shape == (N, K) and (resp >= 0).all()
    np.testing.assert_allclose(resp.sum(axis=1), 1)
    if sample.labels is not None:
        known = sample.labels >= 0
        np.testing.assert_array_equal(resp[known].argmax(axis=1), sample.labels[known])
        np.testing.assert_array_equal(resp[known].max(axis=1), 1)


def test_a_seed_is_a_start_and_seeds_differ(name: str) -> None:
    start = FACTOR_STARTS[name](2)
    one, again, other = (start(_sample(), K, np.random.default_rng(seed), 0) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert name == "kmeans" or (one != other).any()  # k-means may find the same clusters
    assert start.n_candidates >= 1


def test_order_of_the_rows_does_not_matter(name: str, rng: np.random.Generator) -> None:
    X = clustered_table(N, D, K)
    model = Mixture(K, FactorFamily(factors=(2,)), start=FACTOR_STARTS[name](2))
    shuffled = Case(model, X[rng.permutation(N)]).start()
    require_same("order of rows", shuffled, Case(model, X).start(), 1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.1], ids=["complete", "with NaN"])
def test_weights_are_repetition(name: str, missing: float) -> None:
    X = clustered_table(N, D, K, missing=missing)
    times = np.arange(N) % 3
    family = FactorFamily(factors=(2,), has_missing=bool(missing))
    model = Mixture(K, family, start=FACTOR_STARTS[name](2))
    weighted = Case(model, X, weight=times.astype(float)).start()
    repeated = Case(model, np.repeat(X, times, axis=0)).start()
    require_same("weights are repetition", weighted, repeated, 1e-9)


def test_the_sample_is_left_alone(name: str) -> None:
    sample = _sample(True)
    kept = sample.U.copy(), sample.weight.copy()
    for attempt in range(3):
        FACTOR_STARTS[name](2)(sample, K, np.random.default_rng(0), attempt)
    np.testing.assert_array_equal(sample.U, kept[0])
    np.testing.assert_array_equal(sample.weight, kept[1])


# ------------------------------------------------ what the rules can see


def _agreement(resp: np.ndarray, labels: np.ndarray) -> float:
    """Share of rows in the right one of two components, whatever their numbers."""
    same = float((resp.argmax(axis=1) == labels).mean())
    return max(same, 1 - same)


def _best(start: KMeansFactorStart | SubspaceStart, sample: Sample, labels: np.ndarray) -> float:
    """Over the candidates that a fit compares."""
    tries = range(start.n_candidates)
    return max(_agreement(start(sample, 2, np.random.default_rng(i), i), labels) for i in tries)


@pytest.mark.parametrize("size", [1, 2], ids=["lines", "planes"])
def test_subspaces_find_components_that_cross(size: int) -> None:
    """Two flat clouds through one point: their centres say nothing."""
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.normal(size=(6, 2 * size)))[0]
    labels = np.arange(400) % 2
    sides = axes[:, :size], axes[:, size:]
    U = np.stack([sides[k] @ rng.normal(size=size) for k in labels])
    sample = Sample(U + 0.03 * rng.normal(size=U.shape), np.ones(400), None)
    # planes with as many axes as the clouds; one that holds both clouds tells nothing
    assert _best(SubspaceStart(size), sample, labels) > 0.9
    assert _best(KMeansFactorStart(), sample, labels) < 0.75


def test_planes_of_more_axes_than_the_clouds_may_do() -> None:
    rng = np.random.default_rng(2)
    axes = np.linalg.qr(rng.normal(size=(10, 4)))[0]
    labels = np.arange(300) % 2
    U = np.stack([axes[:, 2 * k : 2 * k + 2] @ rng.normal(size=2) for k in labels])
    sample = Sample(U + 0.03 * rng.normal(size=U.shape), np.ones(300), None)
    assert _best(SubspaceStart(3), sample, labels) > 0.9


def test_principal_axes_show_what_the_columns_hide() -> None:
    """Clusters apart along a direction of little variance."""
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 2
    hidden = 0.5 * labels + 0.03 * rng.normal(size=300)
    wide = 5 * rng.normal(size=300)
    U = np.column_stack([wide + hidden, wide - hidden])
    sample, start = Sample(U, np.ones(300), None), KMeansFactorStart()
    plain, axes = (start(sample, 2, np.random.default_rng(0), attempt) for attempt in (0, 1))
    assert _agreement(axes, labels) > 0.98
    assert _agreement(plain, labels) < 0.7


def test_principal_axes_do_not_see_a_linear_map(rng: np.random.Generator) -> None:
    sample, start = _sample(), KMeansFactorStart()
    turned = Sample(sample.U @ rng.normal(size=(D, D)) + 3, sample.weight, None)
    ours, theirs = (start(s, K, np.random.default_rng(0), 1) for s in (sample, turned))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("what", ["equal rows", "two rows", "a constant column"])
def test_awkward_samples_have_a_start(name: str, what: str) -> None:
    rng = np.random.default_rng(0)
    tables = {
        "equal rows": np.full((10, D), 7.0),
        "two rows": rng.normal(size=(2, D)),
        "a constant column": np.column_stack([rng.normal(size=(20, D - 1)), np.full(20, 1e6)]),
    }
    for attempt in range(3):
        model = Mixture(K, FactorFamily(factors=(2,)), start=FACTOR_STARTS[name](2))
        case = Case(model, tables[what])
        params = model.initialise(case.pilot(), np.random.default_rng(0), attempt)
        assert np.isfinite(case.objective(params))
        assert (params.weights > 0).all() and params.weights.sum() == pytest.approx(1)
