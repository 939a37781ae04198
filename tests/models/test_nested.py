"""Trees of mixtures: joining, growing, pooling; and mixtures in given coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from mixfold.contracts import Block
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Plan, fit
from mixfold.engine.sources import open_source
from mixfold.families import GAUSSIAN
from mixfold.families.gaussian import GaussianFamily
from mixfold.math.frame import plain_frame
from mixfold.models.mixtures import nested
from mixfold.models.mixtures.fixed_frame import FramedMixture
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing.oracles import gaussian_log_density, in_data_coordinates
from mixfold.testing.tables import typical_components

SIZES, A = (3, 1, 2), np.array([0.5, 0.2, 0.3])
D = 3


@pytest.fixture(params=sorted(GAUSSIAN))
def family(request: pytest.FixtureRequest) -> GaussianFamily:
    return GAUSSIAN[request.param]()


def _children(family: GaussianFamily) -> list[MixtureParams]:
    rng = np.random.default_rng(8)
    every = typical_components(family, sum(SIZES), D)
    parts = np.split(np.arange(sum(SIZES)), np.cumsum(SIZES)[:-1])
    return [
        MixtureParams(rng.dirichlet(np.ones(len(part))), family.select(every, part))
        for part in parts
    ]


def test_a_joined_mixture_is_the_mixture_of_mixtures(
    family: GaussianFamily, rng: np.random.Generator
) -> None:
    children = _children(family)
    flat = nested.flatten_mixture(A, children, family)
    X = 3 * rng.normal(size=(50, D))
    model = Mixture(sum(SIZES), family)
    ours = logsumexp(model.log_joint(model.prepare(flat), Block(X)), axis=1)
    parts = []
    for child in children:
        log_density = gaussian_log_density(X, *in_data_coordinates(family, child.components))
        parts.append(logsumexp(log_density + np.log(child.weights), axis=1))
    expected = logsumexp(np.stack(parts, axis=1) + np.log(A), axis=1)
    np.testing.assert_allclose(ours, expected, rtol=1e-10)
    starts = np.array([0, 3, 4])
    cells = nested.log_cells(model, model.prepare(flat), Block(X), starts)
    np.testing.assert_allclose(cells, np.stack(parts, axis=1) + np.log(A), rtol=1e-10)


def test_a_shared_covariance_is_the_pooled_one() -> None:
    """Scatter within each of three groups, averaged: that within all of them."""
    rng = np.random.default_rng(2)
    groups = [rng.normal(size=(40, 2)) * s + m for s, m in ((1, 0), (3, 20), (0.5, -20))]
    model = FramedMixture(1, GAUSSIAN["tied"](), frame=plain_frame(2))
    plan = Plan(n_candidates=1, max_iter=3)
    children = [fit(model, open_source(g), ThreadExecutor(1), plan).params for g in groups]
    flat = nested.flatten_mixture(np.full(3, 1 / 3), children, model.family)
    within = np.concatenate([group - group.mean(axis=0) for group in groups])
    np.testing.assert_allclose(flat.components.scatter, within.T @ within / 120, rtol=1e-9)


def test_components_in_order_of_weight() -> None:
    family = GAUSSIAN["full"]()
    params = MixtureParams(np.array([0.2, 0.5, 0.3]), typical_components(family, 3, D))
    sorted_ = nested.by_weight(params, family)
    np.testing.assert_array_equal(sorted_.weights, [0.5, 0.3, 0.2])
    order = [1, 2, 0]
    np.testing.assert_array_equal(sorted_.components.means, params.components.means[order])
    np.testing.assert_array_equal(sorted_.components.scatter, params.components.scatter[order])


def test_paths_of_a_growing_tree() -> None:
    two = nested.extend_paths(np.array([[0], [1], [2]]), [2, 1, 3])
    np.testing.assert_array_equal(two, [[0, 0], [0, 1], [1, 0], [2, 0], [2, 1], [2, 2]])
    three = nested.extend_paths(two, [1, 2, 1, 1, 1, 1])
    np.testing.assert_array_equal(three[:4], [[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(nested.cell_starts(three), [0, 3, 4])


def test_weights_of_cells_and_within_them() -> None:
    paths = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    a, b = nested.pool_weights(np.array([0.6, 0.4, 0.0, 0.0]), paths)
    np.testing.assert_allclose(a, [1, 0])
    np.testing.assert_allclose(b, [[0.6, 0.4], [0.5, 0.5]])


def test_rows_that_say_nothing_have_no_label() -> None:
    family = GAUSSIAN["diag"]()
    params = MixtureParams(np.array([0.5, 0.5]), typical_components(family, 2, D))
    model = Mixture(2, family)
    X = model.sample(params, 30, np.random.default_rng(0))[0]
    X[3] = np.nan
    weight = np.ones(30)
    weight[5] = 0
    reading = model.prepare(params)
    labels = nested.row_labels(model, reading, Block(X, weight=weight, complete=False))
    np.testing.assert_array_equal(np.flatnonzero(labels < 0), [3, 5])
    speaks = labels >= 0
    expected = model.log_joint(reading, Block(X[speaks])).argmax(axis=1)
    np.testing.assert_array_equal(labels[speaks], expected)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_a_floor_in_the_units_of_the_data(scale: float, rng: np.random.Generator) -> None:
    """A column of variance 1e-6 scale^2 beside one of scale^2: the floor is 0.01 all the same."""
    X = rng.normal(size=(200, 2)) * [scale, 1e-3 * scale]
    model = FramedMixture(1, GAUSSIAN["diag"](floor=0.01), frame=plain_frame(2))
    done = fit(model, open_source(X), ThreadExecutor(1), Plan(n_candidates=1))
    expected = np.maximum(X.var(axis=0), 0.01)
    np.testing.assert_allclose(model.family.covariances(done.params.components)[0], expected)
    own = fit(Mixture(1, model.family), open_source(X), ThreadExecutor(1), Plan(n_candidates=1))
    np.testing.assert_allclose(model.family.covariances(own.params.components)[0], X.var(axis=0))
