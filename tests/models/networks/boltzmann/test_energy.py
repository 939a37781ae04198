"""Energies, free energies and conditional laws against sums over all states."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import expit, logsumexp

from mixfold.contracts import Block
from mixfold.models.networks.boltzmann import energy
from mixfold.models.networks.boltzmann.records import RBMParams
from mixfold.models.networks.boltzmann.statistics import positive_phase
from mixfold.models.networks.boltzmann.units import (
    UNITS,
    Bernoulli,
    Gaussian,
    bits,
    sigmoid,
    softplus,
)


def machine(rng: np.random.Generator, D: int = 4, H: int = 3, C: int = 0) -> RBMParams:
    sizes = ((D, H), (D,), (H,), (C, H), (C,))
    return RBMParams(*(rng.normal(size=size) for size in sizes))


def cube(n: int) -> np.ndarray:
    return np.array(list(product([0.0, 1.0], repeat=n)))


def minus_energy(params: RBMParams, v: np.ndarray, h: np.ndarray, y: int = -1) -> float:
    """Term by term, as the model is written."""
    W, b, c, U, d = params.arrays()
    total = sum(v[i] * W[i, j] * h[j] for i in range(len(v)) for j in range(len(h)))
    total += sum(b[i] * v[i] for i in range(len(v))) + sum(c[j] * h[j] for j in range(len(h)))
    if y >= 0:
        total += d[y] + sum(U[y, j] * h[j] for j in range(len(h)))
    return total


@pytest.mark.parametrize("C", [0, 3])
def test_free_energies_are_sums_over_hidden_units_and_labels(
    C: int, rng: np.random.Generator
) -> None:
    params = machine(rng, C=C)
    V, S = cube(4), cube(3)
    labels = range(C) if C else [-1]
    logs = np.array([[[minus_energy(params, v, h, y) for h in S] for y in labels] for v in V])
    np.testing.assert_allclose(
        -energy.free_energy(Bernoulli(), params, V), logsumexp(logs, axis=(1, 2))
    )
    if C:
        given = energy.free_energy(Bernoulli(), params, V, np.full(len(V), 1))
        np.testing.assert_allclose(-given, logsumexp(logs[:, 1], axis=1))
        log_post = logsumexp(logs, axis=2)
        scores = energy.label_scores(params, V)
        np.testing.assert_allclose(
            scores - logsumexp(scores, axis=1, keepdims=True),
            log_post - logsumexp(log_post, axis=1, keepdims=True),
        )


def test_conditional_laws(rng: np.random.Generator) -> None:
    params = machine(rng, C=3)
    V, S = cube(4), cube(3)
    joint = np.array([[[minus_energy(params, v, h, y) for y in range(3)] for h in S] for v in V])
    joint = np.exp(joint - logsumexp(joint))
    of_h = joint / joint.sum(axis=(0, 2), keepdims=True)
    visible = np.einsum("vhy,vd->hd", of_h, V)
    np.testing.assert_allclose(sigmoid(energy.visible_drive(params, S)), visible)
    np.testing.assert_allclose(energy.label_shares(params, S), of_h.sum(axis=0))
    of_v = joint.sum(axis=2) / joint.sum(axis=(1, 2))[:, None]
    np.testing.assert_allclose(positive_phase(params, Block(V)).hidden, of_v @ S)
    of_vy = joint[:, :, 2] / joint[:, :, 2].sum(axis=1, keepdims=True)
    labels = energy.one_hot(np.full(len(V), 2), 3, np.dtype(float))
    np.testing.assert_allclose(energy.hidden_means(params, V, labels), of_vy @ S)


def test_gaussian_densities_integrate_to_z(rng: np.random.Generator) -> None:
    params = machine(rng, D=2, H=3)
    units = Gaussian()
    S = cube(3)
    by_states = logsumexp(S @ params.hidden + units.log_sum(params.visible, S @ params.weights.T))

    def density(x: float, z: float) -> float:
        return float(np.exp(-energy.free_energy(units, params, np.array([[x, z]]))[0] - by_states))

    total, _ = dblquad(density, -12, 12, -12, 12, epsabs=1e-7)
    np.testing.assert_allclose(total, 1, atol=1e-5)


@pytest.mark.parametrize("name", UNITS)
def test_units_draw_what_they_say(name: str, rng: np.random.Generator) -> None:
    units = UNITS[name]
    drive = np.array([[-1.3, 0.4, 2.0]])
    mean = units.mean(drive.copy())
    drawn = units.draw(np.tile(drive, (40000, 1)), rng)
    np.testing.assert_allclose(drawn.mean(axis=0), mean[0], atol=6 / np.sqrt(40000))
    own = units.weigh(drawn[:5], drive[0]) - units.log_sum(drive[0], np.zeros((1, 3)))[0]
    np.testing.assert_allclose(units.log_density(drawn[:5], drive), own)
    alone = units.mean(units.bias(mean[0].copy()))
    np.testing.assert_allclose(alone, mean[0])


def test_constant_bits_have_a_finite_bias() -> None:
    assert np.isfinite(Bernoulli().bias(np.array([0.0, 1.0]))).all()


def test_sigmoid_and_softplus_hold_far_out() -> None:
    x = np.array([-1e4, -40.0, -1.0, 0.0, 2.0, 40.0, 1e4])
    np.testing.assert_allclose(sigmoid(x.copy()), expit(x), atol=1e-16)
    np.testing.assert_allclose(softplus(x), np.logaddexp(0, x))
    for dtype in (np.float32, np.float64):
        assert sigmoid(x.astype(dtype)).dtype == dtype
        drawn = bits(np.full((3, 2), 0.5, dtype), np.random.default_rng(0))
        assert drawn.dtype == dtype
        assert set(np.unique(drawn)) <= {0, 1}
