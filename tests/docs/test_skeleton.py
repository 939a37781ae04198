"""The skeleton of a family is one that works: what its docstring promises is checked here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.sources import open_source
from mixfold.families import DiagonalGaussian, GaussianFamily
from mixfold.families.gaussian import GaussianParams, Moments
from mixfold.math.frame import Frame
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing import Case, laws
from mixfold.testing.oracles import gaussian_log_density, in_data_coordinates
from mixfold.testing.tables import clustered_table
from tests.docs.skeletons import load_skeleton

K, D = 3, 3

skeleton = load_skeleton("family")
EqualShape: type[GaussianFamily] = skeleton.EqualShapeGaussian


@pytest.mark.parametrize("missing", [0.0, 0.15], ids=["complete", "with NaN"])
def test_laws(missing: float) -> None:
    rng = np.random.default_rng(5)
    case = Case(
        Mixture(K, EqualShape()),
        clustered_table(140, D, K, missing=missing),
        rng.uniform(0.5, 2, 140),
        np.where(rng.random(140) < 0.1, 1, -1),
    )
    laws.check_model(case, n_labels=K)
    laws.equivariance(case, np.array([3.0, -700, 1e4]), np.array([1000.0, 0.01, 3]))
    params = case.after(2)
    family = EqualShape()
    for column in range(D):
        rest = laws.without_column(family, params.components, column)
        reduced = MixtureParams(params.weights, rest)
        laws.missing_column(case, params, Mixture(K, family), reduced, column)


def _components(spread: float = 1.0) -> GaussianParams:
    rng = np.random.default_rng(2)
    scatter = spread * np.outer([0.5, 1.0, 3.0], [0.2, 1.0, 4.0])
    frame = Frame(np.array([2.0, -4, 1]), np.array([0.5, 2, 1]))
    return GaussianParams(frame, rng.normal(size=(K, D)), scatter)


def test_density_and_sampler() -> None:
    family = EqualShape()
    params = _components()
    model = Mixture(K, family)
    mixture = MixtureParams(np.array([0.5, 0.2, 0.3]), params)
    reading = model.prepare(mixture)
    means, covariances = in_data_coordinates(family, params)

    def log_density(X: np.ndarray) -> np.ndarray:
        (block,) = open_source(X).blocks(len(X))
        return np.logaddexp.reduce(model.log_joint(reading, block), axis=1)

    X, _ = model.sample(mixture, 50, np.random.default_rng(0))
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    wanted = gaussian_log_density(X, means, covariances) + np.log(mixture.weights)
    np.testing.assert_allclose(log_density(X), np.logaddexp.reduce(wanted, axis=1), rtol=1e-10)
    laws.sampler_slopes(lambda n, rng: model.sample(mixture, n, rng)[0], log_density)


def _moments(rng: np.random.Generator) -> Moments:
    count = rng.uniform(5, 50, (K, D))  # unequal counts: as with missing entries
    first = rng.normal(size=(K, D)) * count
    squares = rng.uniform(0.1, 3, (K, D)) * count
    return Moments(count, first, squares + first**2 / count, rng.normal(size=(K, D)))


def _loss(moments: Moments, variance: np.ndarray) -> float:
    """Minus the log likelihood of the complete data, as far as it depends on the variances."""
    squares = moments.second - moments.first**2 / moments.count
    return 0.5 * float((moments.count * np.log(variance) + squares / variance).sum())


def test_m_step_is_the_maximum(rng: np.random.Generator) -> None:
    """Repeated, it ends where a general optimiser ends."""
    moments, params = _moments(rng), _components()
    best = minimize(lambda v: _loss(moments, np.exp(v[:K, None] + v[K:])), np.ones(K + D))
    for _ in range(10):
        params, touched = EqualShape().estimate(moments, params)
    wanted = np.exp(best.x[:K, None] + best.x[K:])
    np.testing.assert_allclose(params.scatter, wanted, rtol=1e-4)
    means = moments.origin + moments.first / moments.count
    np.testing.assert_allclose(params.means, means, rtol=1e-12)
    assert not touched.any()


def test_steps_at_the_floor_climb_and_stay_above_it(rng: np.random.Generator) -> None:
    moments, family = _moments(rng), EqualShape(floor=1.1)
    params, losses = _components(spread=20.0), []
    for _ in range(8):
        losses.append(_loss(moments, params.scatter))
        params, touched = family.estimate(moments, params)
    assert (np.diff(losses) <= 1e-9).all() and losses[-1] < losses[0]
    assert params.scatter.min() == pytest.approx(1.1, rel=1e-9)
    assert np.array_equal(touched, params.scatter.min(axis=1) < 1.1 + 1e-9)
    assert touched.any() and not touched.all()


def test_a_component_without_rows_keeps_its_place_and_volume(rng: np.random.Generator) -> None:
    moments, before = _moments(rng), _components()
    for part in (moments.count, moments.first, moments.second):
        part[1] = 0
    after, _ = EqualShape().estimate(moments, before)
    np.testing.assert_array_equal(after.means[1], before.means[1])
    (old, _), (new, shape) = skeleton.split(before.scatter), skeleton.split(after.scatter)
    assert new[1] == pytest.approx(old[1], rel=1e-12)
    np.testing.assert_allclose(after.scatter, np.outer(new, shape), rtol=1e-12)
    assert not np.allclose(new[[0, 2]], old[[0, 2]], rtol=0.01)


def _fitted(family: GaussianFamily, X: np.ndarray) -> Fit:
    plan = Plan(n_candidates=3, acceleration=ACCELERATIONS["quasi-newton"], seed=0)
    return fit(Mixture(2, family), open_source(X), ThreadExecutor(1), plan)


def test_the_engine_fits_it_and_bic_prefers_it(rng: np.random.Generator) -> None:
    """Rows of two components of one shape: fewer parameters than 'diag', the same likelihood."""
    shape, volumes = np.array([0.25, 1.0, 2.0, 2.0]), np.array([1.0, 4.0])
    labels = (rng.random(3000) < 0.4).astype(int)
    spread = np.sqrt(volumes[labels, None] * shape)
    X = rng.standard_normal((3000, 4)) * spread + 4 * labels[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    fits = {kind: _fitted(kind(), X) for kind in (EqualShape, DiagonalGaussian)}
    assert all(f.converged and not f.events for f in fits.values())
    result = fits[EqualShape]
    variances = EqualShape().covariances(result.params.components)
    variances = variances[np.argsort(variances.sum(axis=1))]
    np.testing.assert_allclose(variances, np.outer(volumes, shape), rtol=0.15)
    bic = {
        kind: Mixture(2, kind()).n_free(4) * np.log(f.weight) - 2 * f.objective
        for kind, f in fits.items()
    }
    assert bic[EqualShape] < bic[DiagonalGaussian]
