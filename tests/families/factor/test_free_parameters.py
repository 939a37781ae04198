"""The number of free parameters is the rank of the Jacobian of the density."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mixfold import FactorAnalysis, Mixture, MixtureOfFactorAnalyzers
from mixfold.contracts import Block
from mixfold.families import GAUSSIAN
from mixfold.families.factor.family import FactorFamily
from mixfold.families.factor.loadings import OwnLoadings, TiedLoadings
from mixfold.families.factor.noise import DiagonalNoise, IsotropicNoise
from mixfold.families.factor.records import FactorParams
from mixfold.math.frame import plain_frame
from mixfold.math.softmax import normalise
from mixfold.mixing.fixed import FixedWeights
from mixfold.models.mixtures.mixture import Mixture as Model
from mixfold.models.mixtures.mixture import MixtureParams

NOISES = [DiagonalNoise(), DiagonalNoise(tied=True), IsotropicNoise(), IsotropicNoise(tied=True)]


def jacobian_rank(model, params, n_features):
    """Directions in which the log densities of many rows can be moved."""
    X = 2 * np.random.default_rng(0).normal(size=(300, n_features))
    at = model.coordinates(params)

    def values(vector):
        moved = model.from_coordinates(params, vector)
        if isinstance(model.mixing, FixedWeights):
            moved = replace(moved, weights=params.weights)
        return normalise(model.log_joint(model.prepare(moved), Block(X)))[0]

    h = 1e-5
    columns = [(values(at + h * e) - values(at - h * e)) / (2 * h) for e in np.eye(len(at))]
    scaled = [c / max(np.linalg.norm(c), 1e-12) for c in columns]
    sizes = np.linalg.svd(np.stack(scaled, axis=1), compute_uv=False)
    return int((sizes > 1e-7 * sizes[0]).sum())


def factor_mixture(n_features, factors, n_components, noise, loadings):
    rng = np.random.default_rng(1)
    K, D, d = n_components, n_features, max(factors)
    W = rng.normal(size=(K, D, d)) * (np.arange(d) < np.broadcast_to(factors, (K,))[:, None, None])
    W = np.repeat(loadings.drop_copies(W), K // len(loadings.drop_copies(W)), axis=0)
    variances = noise.spread(noise.drop_copies(rng.uniform(0.5, 1.5, size=(K, D))), (K, D))
    components = FactorParams(plain_frame(D), rng.normal(size=(K, D)), W, variances)
    family = FactorFamily(factors=factors, noise=noise, loadings=loadings)
    return Model(K, family), MixtureParams(rng.dirichlet(np.full(K, 5.0)), components)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("loadings", [OwnLoadings(), TiedLoadings()], ids=repr)
@pytest.mark.parametrize("D", [2, 3, 4])
def test_more_factors_than_can_be_identified_add_no_parameters(D, noise, loadings):
    for d in range(D + 1):
        for K in (1, 2, 3):
            model, params = factor_mixture(D, (d,), K, noise, loadings)
            assert model.n_free(D) == jacobian_rank(model, params, D), (d, K)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_components_with_different_numbers_of_factors(noise):
    model, params = factor_mixture(4, (1, 3), 2, noise, OwnLoadings())
    assert model.n_free(4) == jacobian_rank(model, params, 4)


def test_fixed_weights_are_no_parameters_and_free_ones_are():
    rng = np.random.default_rng(3)
    K, D = 2, 4
    family = GAUSSIAN["full"]()
    root = rng.normal(size=(K, D, D))
    covariances = root @ np.swapaxes(root, 1, 2) + np.eye(D)
    components = family.from_covariances(plain_frame(D), rng.normal(size=(K, D)), covariances)
    params = MixtureParams(np.array([0.3, 0.7]), components)
    free, fixed = Model(K, family), Model(K, family, FixedWeights([0.3, 0.7]))
    assert free.n_free(D) == jacobian_rank(free, params, D) == 29
    assert fixed.n_free(D) == jacobian_rank(fixed, params, D) == 28


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_criteria_count_what_can_be_identified():
    X = np.random.default_rng(0).normal(size=(200, 6))
    log_weight = np.log(200)
    model = FactorAnalysis(4, max_iter=5, random_state=0)
    model.fit(X)
    mixture = MixtureOfFactorAnalyzers(2, 4, max_iter=5, random_state=0).fit(X)
    fixed = Mixture("full", 2, weights=[0.5, 0.5], max_iter=5, random_state=0).fit(X)
    total = 200 * model.score(X)
    assert model.bic(X) == pytest.approx(-2 * total + 27 * log_weight)
    total = 200 * mixture.score(X)
    assert mixture.bic(X) == pytest.approx(-2 * total + (2 * 27 + 1) * log_weight)
    total = 200 * fixed.score(X)
    assert fixed.bic(X) == pytest.approx(-2 * total + 2 * 27 * log_weight)
