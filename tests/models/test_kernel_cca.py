"""Regularised canonical correlations against dense generalised eigenproblems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from mixfold.contracts import Array
from mixfold.math.kernels import RbfKernel
from mixfold.models.kernels.kernel_cca import canonical_pairs

RNG = np.random.default_rng(5)
Z = RNG.normal(size=(30, 2))
X = Z @ RNG.normal(size=(2, 5)) + RNG.normal(size=(30, 5))
Y = Z @ RNG.normal(size=(2, 4)) + RNG.normal(size=(30, 4))
H = np.eye(30) - 1 / 30


def parts(G: Array) -> tuple[Array, Array]:
    w, V = np.linalg.eigh(G)
    kept = w > 1e-11 * w[-1]
    return w[kept], V[:, kept]


@pytest.mark.parametrize("k", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("wide", [False, True], ids=["linear", "rbf"])
def test_pairs_solve_the_generalised_problem_of_the_kernel_matrices(k: float, wide: bool) -> None:
    kernel = RbfKernel(0.1)
    Gx, Gy = (H @ (kernel.block(T, T) if wide else T @ T.T) @ H for T in (X, Y))
    (wx, Vx), (wy, Vy) = parts(Gx), parts(Gy)
    found = canonical_pairs(wx, wy, Vx.T @ Vy, k, 3)
    # coefficients a, b in the basis of eigenvectors, in which no matrix is singular
    zero = np.zeros((len(wx), len(wy)))
    Dx, Dy = np.diag((1 - k) * wx**2 + k * wx), np.diag((1 - k) * wy**2 + k * wy)
    cross = wx[:, None] * (Vx.T @ Vy) * wy
    left = np.block([[zero @ zero.T, cross], [cross.T, zero.T @ zero]])
    right = np.block([[Dx, zero], [zero.T, Dy]])
    rho, both = eigh(left, right)
    np.testing.assert_allclose(found.values, rho[:-4:-1], rtol=1e-8)
    a, b = (np.sqrt(2) * both[part, :-4:-1] for part in (slice(len(wx)), slice(len(wx), None)))
    turn = np.sign((found.inputs * (np.sqrt(wx)[:, None] * a)).sum(axis=0))
    scores = Vx @ (wx[:, None] * a), Vy @ (wy[:, None] * b)
    mine = Vx @ (np.sqrt(wx)[:, None] * found.inputs), Vy @ (np.sqrt(wy)[:, None] * found.outputs)
    for wanted, got in zip(scores, mine, strict=True):
        np.testing.assert_allclose(got * turn, wanted, atol=1e-7)
    correlations = [np.corrcoef(p, q)[0, 1] for p, q in zip(*(m.T for m in mine), strict=True)]
    np.testing.assert_allclose(found.correlations, correlations, rtol=1e-9)


def test_what_does_not_go_together_is_left_out() -> None:
    w = np.array([3.0, 2.0, 1.0])
    found = canonical_pairs(w, w, np.diag([0.9, 0.5, 0.0]), 0.0, 3)
    np.testing.assert_allclose(found.values, [0.9, 0.5])
    np.testing.assert_allclose(found.correlations, [0.9, 0.5])
