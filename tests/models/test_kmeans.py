"""K-means as a model: laws, fixed points, repairs, starts."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Array, Block, Context, Pilot
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Plan, fit
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.math.frame import Frame
from mixfold.models.mixtures.kmeans import KMeansModel, KMeansParams
from mixfold.models.mixtures.kmeans_starts import CENTRE_STARTS, GivenCentres, sample_rows
from mixfold.testing import Case, laws

NO_GRADIENT = {"gradient": "the objective is not smooth"}


def blobs(rng: np.random.Generator, n: int = 240, D: int = 3, K: int = 4) -> Array:
    return np.asarray(
        4 * rng.normal(size=(K, D))[rng.integers(K, size=n)] + rng.normal(size=(n, D))
    )


def run(model: KMeansModel, X: Any, *, weight: Any = None, **plan: Any) -> Any:
    return fit(
        model, open_source(X, weight=weight), ThreadExecutor(1), Plan(**{"tol": 0.0, **plan})
    )


def inertia(X: Array, weight: Array, labels: Array) -> float:
    """Within-cluster sum of squares about the means of the observed entries."""
    total = 0.0
    for k in np.unique(labels):
        rows, w = X[labels == k], weight[labels == k][:, None]
        seen = ~np.isnan(rows)
        mass = np.maximum((w * seen).sum(axis=0), 1e-300)
        mean = (w * np.where(seen, rows, 0.0)).sum(axis=0) / mass
        total += float((w * np.where(seen, rows - mean, 0.0) ** 2).sum())
    return total


# ------------------------------------------------ laws


def _tables(rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    X = blobs(rng)
    has_missing = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    thin = sparse.csr_array(np.where(rng.random(X.shape) < 0.6, 0.0, X))
    return {
        "plain": {"X": X},
        "weights": {"X": X, "weight": rng.integers(1, 4, len(X)).astype(float)},
        "missing": {"X": has_missing},
        "float32": {"X": X.astype(np.float32), "rtol": 1e-5},
        "offset": {"X": X + 1e8, "rtol": 1e-7},
        "sparse": {"X": thin},
    }


@pytest.mark.parametrize("kind", _tables(np.random.default_rng(0)))
def test_laws(rng: np.random.Generator, kind: str) -> None:
    skip = dict(NO_GRADIENT)
    if kind == "sparse":
        skip["pure functions"] = "the law compares dense tables; the model never writes to one"
    laws.check_model(Case(KMeansModel(3), **_tables(rng)[kind]), skip=skip)


# ------------------------------------------------ oracles


@pytest.mark.parametrize("missing", [False, True])
def test_best_of_many_starts_is_the_best_of_all_assignments(
    rng: np.random.Generator, missing: bool
) -> None:
    X, weight = rng.normal(size=(8, 2)), rng.integers(1, 4, 8).astype(float)
    if missing:
        X[[0, 3, 5], [0, 1, 0]] = np.nan
    best = min(inertia(X, weight, np.array(z)) for z in product(range(3), repeat=8))
    model = KMeansModel(3)
    found = []
    for seed in range(20):
        result = run(model, X, weight=weight, seed=seed, n_candidates=1, n_init=3)
        found.append(model.inertia(result.params, result.objective))
    assert min(found) == pytest.approx(best, rel=1e-12)
    assert min(found) >= best * (1 - 1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_result_is_a_fixed_point(rng: np.random.Generator, missing: float) -> None:
    X, weight = blobs(rng, 500), rng.integers(0, 3, 500).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    model = KMeansModel(4)
    result = run(model, X, weight=weight, seed=1)
    assert result.reason == "converged" and result.remaining == 0
    centres = result.params.frame.leave(result.params.centres)
    squared = np.nansum((X[:, None] - centres) ** 2, axis=2)
    labels = np.argmin(squared, axis=1)
    objective = model.inertia(result.params, result.objective)
    assert objective == pytest.approx(weight @ squared.min(axis=1), rel=1e-10)
    assert objective == pytest.approx(inertia(X, weight, labels), rel=1e-10)


def test_a_fixed_point_ends_the_climb_without_another_pass() -> None:
    X = np.array([[0.0], [2.0], [10.0], [12.0]])
    result = run(KMeansModel(2, GivenCentres(np.array([[1.0], [11.0]]))), X, n_candidates=1)
    assert (result.reason, result.n_passes, result.n_iter) == ("converged", 1, 0)


def test_never_rises_whatever_the_start(rng: np.random.Generator) -> None:
    X = np.where(rng.random((400, 5)) < 0.3, np.nan, rng.normal(size=(400, 5)))
    for seed in range(5):
        result = run(KMeansModel(25, CENTRE_STARTS["random"]), X, seed=seed, n_candidates=1)
        assert (np.diff(result.trace) >= -1e-12 * np.abs(result.trace[:-1])).all()
        assert not [event for event in result.events if event.kind == "fall"]


# ------------------------------------------------ units


def test_offset_and_unit_of_the_data_change_nothing(rng: np.random.Generator) -> None:
    X = np.round(blobs(rng, 300), 6)
    model = KMeansModel(4)
    plain = run(model, X, seed=3)
    for shift, factor in [(1e8, 1.0), (0.0, 2.0**40), (-(2.0**20), 2.0**-30)]:
        other = run(model, (X + shift) * factor, seed=3)
        assert len(other.trace) == len(plain.trace)
        np.testing.assert_allclose(other.trace, plain.trace, rtol=1e-6)
        centres = other.params.frame.leave(other.params.centres) / factor - shift
        expected = plain.params.frame.leave(plain.params.centres)
        np.testing.assert_allclose(centres, expected, atol=2e-7)


def test_whole_numbers_enter_the_frame_exactly(rng: np.random.Generator) -> None:
    X = rng.integers(-1000, 5000, (200, 3)).astype(float)
    frame = sample_rows(Block(X), 3, rng).frame
    np.testing.assert_array_equal(frame.leave(frame.enter(X)), X)
    assert (np.log2(frame.scale) % 1 == 0).all() and np.ptp(frame.scale) == 0


# ------------------------------------------------ repairs


def _params(centres: list[list[float]]) -> KMeansParams:
    D = len(centres[0])
    return KMeansParams(Frame(np.zeros(D), np.ones(D)), np.array(centres), 1.0)


def _pilot(X: Any) -> Pilot:
    return draw_pilot(open_source(X), ThreadExecutor(1), 1000, 0)


def _context(X: Any) -> Context:
    return Context(_pilot(X), np.random.default_rng(0), 7)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_empty_clusters_take_far_rows(kind: Any) -> None:
    X = kind(np.array([[0.0, 1.0], [0.0, -1.0], [9.0, 0.0], [0.0, 5.0]]))
    model, params = KMeansModel(3), _params([[0.0, 0.0], [99.0, 0.0], [-99.0, 0.0]])
    block = next(iter(open_source(X).blocks()))
    stats = model.tally(model.prepare(params), block)
    update = model.update(params, stats, _context(X))
    np.testing.assert_array_equal(update.params.centres, [[2.25, 1.25], [9.0, 0.0], [0.0, 5.0]])
    assert [(e.kind, e.component, e.iteration) for e in update.events] == [
        ("reseed", 1, 7), ("reseed", 2, 7),
    ]  # fmt: skip
    after = model.tally(model.prepare(update.params), block)
    assert update.monotone and after.inertia < stats.inertia


def test_a_far_row_with_holes_borrows_from_its_centre() -> None:
    X = np.array([[0.0, 1.0], [0.0, 3.0], [9.0, np.nan]])
    model, params = KMeansModel(2), _params([[0.0, 0.0], [99.0, 99.0]])
    stats = model.tally(model.prepare(params), Block(X, complete=False))
    update = model.update(params, stats, _context(X))
    np.testing.assert_array_equal(update.params.centres, [[3.0, 2.0], [9.0, 2.0]])


def test_fewer_distinct_rows_than_clusters() -> None:
    X = np.repeat([[0.1, 0.2], [0.7, 0.4]], [30, 17], axis=0)
    result = run(KMeansModel(4), X, seed=0)
    assert result.reason == "converged" and result.objective == pytest.approx(0, abs=1e-25)
    assert {event.kind for event in result.events} == {"empty"}


def test_without_a_pilot_an_empty_cluster_stays() -> None:
    model, params = KMeansModel(2), _params([[0.0], [99.0]])
    stats = model.tally(model.prepare(params), Block(np.array([[1.0], [3.0]])))
    update = model.update(params, stats, Context(None, np.random.default_rng(0)))
    np.testing.assert_array_equal(update.params.centres, [[2.0], [99.0]])
    assert update.events == ()


def test_a_column_that_a_cluster_never_sees_keeps_its_centre() -> None:
    X = np.array([[0.0, np.nan], [2.0, np.nan], [50.0, 7.0]])
    model, params = KMeansModel(2), _params([[0.0, 3.0], [50.0, 0.0]])
    stats = model.tally(model.prepare(params), Block(X, complete=False))
    centres = model.update(params, stats, _context(X)).params.centres
    np.testing.assert_array_equal(centres, [[1.0, 3.0], [50.0, 7.0]])
