"""Where the centres of k-means start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Array, Block, Pilot
from mixfold.engine.draws import draw_rows
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import RowKeys
from mixfold.engine.sources import open_source
from mixfold.models.mixtures.kmeans import KMeansModel
from mixfold.models.mixtures.kmeans_starts import CENTRE_STARTS, sample_rows
from mixfold.models.mixtures.oversampling import oversample


def _pilot(X: Any) -> Pilot:
    return draw_pilot(open_source(X), ThreadExecutor(1), 1000, 0)


@pytest.mark.parametrize("name", CENTRE_STARTS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_starts_are_rows(rng: np.random.Generator, name: str, kind: Any) -> None:
    X = np.where(rng.random((100, 4)) < 0.5, 0.0, rng.normal(size=(100, 4)))
    params = KMeansModel(6, CENTRE_STARTS[name]).initialise(_pilot(kind(X)), rng)
    centres = params.frame.leave(params.centres)
    apart = np.abs(X[:, None] - centres).max(axis=2)
    assert (apart.min(axis=0) < 1e-12).all()
    assert len(np.unique(centres, axis=0)) == 6


@pytest.mark.parametrize("name", CENTRE_STARTS)
def test_starts_do_not_depend_on_order_repetition_or_precision(
    rng: np.random.Generator, name: str
) -> None:
    X = rng.normal(size=(60, 3)).astype(np.float32)
    weight = rng.integers(1, 4, 60)
    order = rng.permutation(weight.sum())
    model = KMeansModel(5, CENTRE_STARTS[name])

    def start(X: Array, weight: Any = None) -> Array:
        pilot = draw_pilot(open_source(X, weight=weight), ThreadExecutor(1), 1000, 0)
        params = model.initialise(pilot, np.random.default_rng(4))
        return params.frame.leave(params.centres)

    weighted = start(X, weight)
    np.testing.assert_allclose(start(np.repeat(X, weight, axis=0)[order]), weighted, rtol=1e-12)
    np.testing.assert_allclose(start(X.astype(float), weight), weighted, rtol=1e-12)


def test_wide_sparse_pilots_are_cut_before_they_are_dense(rng: np.random.Generator) -> None:
    X = sparse.random_array((600, 300_000), density=2e-4, format="csr", rng=rng)
    rows = sample_rows(Block(X), 5, rng)
    assert rows.U.size <= 2**23 and len(rows.U) > 10
    assert rows.whole(rows.U[:2]).shape == (2, 300_000)


def test_oversampling_finds_what_a_sample_misses(rng: np.random.Generator) -> None:
    X = rng.normal(size=(30_000, 2))
    X[12_345] = [500.0, 0.0]
    X[23_456] = [0.0, 700.0]
    weight = rng.integers(1, 3, 30_000).astype(float)
    source, model = open_source(X, weight=weight), KMeansModel(3)
    pilot = draw_pilot(source, ThreadExecutor(1), 500, 0)
    assert pilot.maximum[0] == 500 and pilot.block.X.max() < 100

    def candidates(n_jobs: int) -> Any:
        executor = ThreadExecutor(n_jobs)
        return oversample(
            model,
            pilot,
            np.random.default_rng(0),
            lambda mass, size, r: draw_rows(source, executor, mass, size, RowKeys(0, r, 4)),
            lambda task: executor.map_reduce(task, source),
        )

    found = candidates(1)
    assert len(found.points) <= 31 and found.weight.sum() == pytest.approx(weight.sum())
    for k in (12_345, 23_456):
        alone = np.flatnonzero((np.abs(found.points - X[k]) < 1e-9).all(axis=1))
        assert found.weight[alone] == weight[k]
    again = candidates(2)
    np.testing.assert_array_equal(again.points, found.points)
    np.testing.assert_array_equal(again.weight, found.weight)
    centres = found(sample_rows(pilot.block, 3, rng), 3, np.random.default_rng(1))
    frame = sample_rows(pilot.block, 3, rng).frame
    assert np.isclose(frame.leave(centres).max(axis=0), [500, 700]).all()
