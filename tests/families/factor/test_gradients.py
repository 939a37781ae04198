"""The metric of factor components: the curvature of the complete data, block by block.

That the gradient is right is a law (``test_laws``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.families.factor import FactorFamily, FactorParams
from mixfold.families.factor.records import FactorSums
from mixfold.testing.tables import clustered_table

K, D, N = 3, 4, 60


@pytest.fixture(params=[False, True], ids=["complete", "with NaN"])
def kind(request: pytest.FixtureRequest, family: FactorFamily) -> FactorFamily:
    return replace(family, has_missing=bool(request.param), expand=False)


def _sums(family: FactorFamily, params: FactorParams) -> FactorSums:
    X = clustered_table(N, D, K, missing=0.2 if family.has_missing else 0.0, seed=1)
    resp = np.random.default_rng(1).dirichlet(np.ones(K), N)
    reading = family.mode(params)
    scores = family.scores(Block(X, complete=not family.has_missing), reading)
    return family.moments(scores, resp, reading)


def _bends(family: FactorFamily, at: FactorParams, sums: FactorSums) -> np.ndarray:
    """Minus the second derivative of the expected likelihood with these sums, by differences."""
    vector, step = family.coordinates(at), 1e-5

    def slope(v: np.ndarray) -> np.ndarray:
        return family.derivatives(family.from_coordinates(at, v), sums)[0]

    units = step * np.eye(vector.size)
    return np.stack([(slope(vector - u) - slope(vector + u)) / (2 * step) for u in units])


def test_the_metric_is_the_curvature_of_the_complete_data(kind: FactorFamily, typical: Any) -> None:
    """For the means alone, for each row of loadings, and for each noise at its optimum."""
    start = typical(kind, K, D, origin=np.zeros(D))
    sums = _sums(kind, start)
    best, _ = kind.estimate(sums, start)
    bends, metric = _bends(kind, best, sums), kind.derivatives(best, sums)[1]
    inverse = np.stack([metric.solve(unit) for unit in np.eye(len(bends))], axis=1)
    n_means, size = K * D, start.n_factors
    n_noise = kind.noise.n_free(K, D)
    single = [[i] for i in range(n_means)]
    single += [[i] for i in range(len(bends) - n_noise, len(bends))]
    rows = [list(range(i, i + size)) for i in range(n_means, len(bends) - n_noise, size)]
    for block in single + rows:
        bend, inner = bends[np.ix_(block, block)], inverse[np.ix_(block, block)]
        free = np.abs(bend).max(axis=0) > 0  # not a factor that the component lacks
        inside = np.ix_(free, free)
        if not free.all():
            # with some factors locked, what remains is the inverse of its own part
            inner = np.linalg.inv(np.linalg.inv(inner)[inside])
            bend = bend[inside]
        np.testing.assert_allclose(inner @ bend, np.eye(len(bend)), atol=2e-5)
    # and nothing links the blocks
    mask = np.zeros(inverse.shape, bool)
    for block in single + rows:
        mask[np.ix_(block, block)] = True
    np.testing.assert_array_equal(inverse[~mask], 0)


def test_coordinates_are_one_copy_of_what_is_free(kind: FactorFamily, typical: Any) -> None:
    params = typical(kind, K, D)
    vector = kind.coordinates(params)
    loadings = D * 2 * (1 if kind.loadings.tied else K)
    assert vector.size == K * D + loadings + kind.noise.n_free(K, D)
    # far below the floor, and without the factors that a component lacks
    moved = kind.from_coordinates(params, np.where(vector > 0, 1e-9, vector))
    assert moved.noise.min() == kind.floor
    if not kind.loadings.tied:
        shaken = kind.from_coordinates(params, vector + 1.0)
        assert not shaken.loadings[1, :, 1].any() and shaken.loadings[0].all()


def test_fixed_means_are_no_coordinates(typical: Any) -> None:
    family = FactorFamily(factors=(2,), fixed_means=True)
    params = typical(family, K, D)
    vector = family.coordinates(params)
    # beside outputs only rotations are hidden, one for each component
    assert vector.size == family.n_free_beside_outputs(K, D) + K
    np.testing.assert_array_equal(family.from_coordinates(params, vector + 1).means, 0)


def test_the_noise_is_a_deviation(typical: Any) -> None:
    """Its square is the variance, so that a Heywood case is an ordinary maximum at zero."""
    family = FactorFamily(factors=(1,))
    params = typical(family, K, D)
    vector = family.coordinates(params)
    np.testing.assert_allclose(vector[-K * D :].reshape(K, D) ** 2, params.noise, rtol=1e-14)
    mirrored = family.from_coordinates(params, np.r_[vector[: -K * D], -vector[-K * D :]])
    np.testing.assert_allclose(mirrored.noise, params.noise, rtol=1e-14)


def test_noise_at_the_floor_has_no_slope_downwards(kind: FactorFamily, typical: Any) -> None:
    """It has nowhere to go; elsewhere, and upwards, the slope is as it was."""
    params = typical(kind, K, D, origin=np.zeros(D))
    n_noise = kind.noise.n_free(K, D)
    floored = replace(kind, floor=float(params.noise.max()))
    shared = replace(params, noise=np.full((K, D), floored.floor))
    held, loose = (
        f.derivatives(shared, _sums(f, shared))[0] for f in (floored, replace(kind, floor=1e-9))
    )
    np.testing.assert_array_equal(held[:-n_noise], loose[:-n_noise])
    np.testing.assert_array_equal(held[-n_noise:], np.maximum(loose[-n_noise:], 0))


def test_a_slope_is_held_back_somewhere(typical: Any) -> None:
    """Noise far above what the rows leave would shrink if it could."""
    family = FactorFamily(factors=(2,), floor=1e4)
    params = replace(typical(family, K, D, origin=np.zeros(D)), noise=np.full((K, D), 1e4))
    held = family.derivatives(params, _sums(family, params))[0][-K * D :]
    loose = replace(family, floor=1e-6).derivatives(params, _sums(family, params))[0][-K * D :]
    assert (loose < 0).any() and (held >= 0).all()
