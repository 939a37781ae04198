"""Rotations of loadings that keep W W': varimax, quartimax, promax, oblimin.

A rotation is a matrix M with L = W M. The factors are then correlated by (M'M)^-1, which is the
identity if M is orthogonal, and W W' = L (M'M)^-1 L' always. Columns of L are put in order of their
sums of squares and their entry of largest modulus is made positive, so the result does not
depend on the rotation in which W was given (as long as the criterion has one maximum).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, record
from mixfold.math.signs import signs

# Relative length of a gradient below which nothing moves any more.
TOLERANCE, MAX_STEPS = 1e-9, 2000
# Climbs from random rotations, beside the one from the principal axes; after so many steps the
# best of them goes on alone.
STARTS, FIRST_STEPS = 3, 100
# Above this the criterion of oblimin has no minimum for most loadings.
LARGEST_GAMMA = 0.8
# Below this least singular value of their directions oblique factors are taken to coincide.
LEAST_ANGLE = 1e-6


@record
@dataclass(frozen=True, slots=True)
class Rotation:
    """Rotated loadings (D, d), the ``matrix`` (d, d) that makes them, correlations of the factors.

    ``loadings = W @ matrix``.
    """

    loadings: Array
    matrix: Array
    correlations: Array


def varimax(W: Array, normalise: bool = False) -> Rotation:
    """The orthogonal rotation of greatest variance of the squared loadings, column by column.

    Parameters
    ----------
    W : ndarray of shape (D, d)
    normalise : bool
        Whether rows are given length one first (Kaiser), so that columns of data that share
        little with the others count as much as those that share much.
    """
    return _rotate_and_order(W, lambda A: _orthomax(_unit_rows(A) if normalise else A, 1.0))


def quartimax(W: Array, normalise: bool = False) -> Rotation:
    """The orthogonal rotation of greatest sum of fourth powers of the loadings.

    Parameters
    ----------
    W : ndarray of shape (D, d)
    normalise : bool
        As in ``varimax``.
    """
    return _rotate_and_order(W, lambda A: _orthomax(_unit_rows(A) if normalise else A, 0.0))


def promax(W: Array, power: float = 4.0, normalise: bool = True) -> Rotation:
    """The oblique rotation nearest to powers of the varimax loadings (Hendrickson and White).

    Parameters
    ----------
    W : ndarray of shape (D, d)
    power : float
        Above 1: the higher, the smaller small loadings and the more correlated the factors.
    normalise : bool
        Whether rows have length one in the varimax rotation that comes first.
    """
    if not power > 1:
        raise ValueError(f"power of promax must be above 1 (4 is usual); got {power}")

    def matrix(A: Array) -> Array:
        turn = _orthomax(_unit_rows(A) if normalise else A, 1.0)
        L = A @ turn
        target = np.sign(L) * np.abs(L / np.abs(L).max()) ** power
        found = turn @ np.linalg.lstsq(L, target)[0]
        if np.linalg.svd(_unit_rows(found.T), compute_uv=False)[-1] < LEAST_ANGLE:
            return turn  # powers of next to no loadings, by which factors would coincide
        return _unit_factors(found)

    return _rotate_and_order(W, matrix)


def oblimin(W: Array, gamma: float = 0.0, normalise: bool = False) -> Rotation:
    """The oblique rotation of least sum of products of squared loadings (direct oblimin).

    Minimises the sum over pairs of columns i < j of

        sum_r l_ri^2 l_rj^2 - (gamma / D) (sum_r l_ri^2) (sum_r l_rj^2)

    by projected gradients (Jennrich 2002) from the varimax rotation.

    Parameters
    ----------
    W : ndarray of shape (D, d)
    gamma : float
        0 is quartimin; the less, the less correlated the factors. At most 0.8.
    normalise : bool
        As in ``varimax``.
    """
    if not gamma <= LARGEST_GAMMA:
        raise ValueError(
            f"gamma of oblimin must be at most {LARGEST_GAMMA}, as factors coincide beyond it; got "
            f"{gamma}. 0 is usual"
        )
    return _rotate_and_order(W, lambda A: _oblimin(_unit_rows(A) if normalise else A, gamma))


# ------------------------------------------------------------------ what all of them share


def _axes(A: Array) -> tuple[Array, Array]:
    """Singular values (d,) of A (D, d) in decreasing order, and its right vectors (d, d)."""
    size = A.shape[1]
    if A.size == 0:
        return np.zeros(size), np.eye(size)
    values, right = np.linalg.svd(np.linalg.qr(A, mode="r"))[1:]
    return np.pad(values, (0, size - len(values))), right.T


def _rotate_and_order(W: Array, matrix: Callable[[Array], Array]) -> Rotation:
    """The rotation that ``matrix`` finds for loadings without columns to spare, in order.

    Factors that load on nothing are told from the others first: they stay as they are.
    """
    values, turn = _axes(W)
    rank = int((values > 1e-10 * values.max(initial=0.0)).sum())
    M = turn.copy()
    if rank:
        M[:, :rank] = turn[:, :rank] @ matrix(W @ turn[:, :rank])
    order = np.argsort(-np.square(W @ M).sum(axis=0), kind="stable")
    return _apply_rotation(W, M[:, order])


def _apply_rotation(W: Array, M: Array) -> Rotation:
    L = W @ M
    sign = signs(L)
    M = M * sign
    return Rotation(L * sign, M, np.linalg.inv(M.T @ M))


def _unit_rows(A: Array) -> Array:
    length = np.linalg.norm(A, axis=1, keepdims=True)
    return np.asarray(np.divide(A, length, out=np.zeros_like(A), where=length > 0))


def _unit_factors(M: Array) -> Array:
    """The columns of M stretched so that the factors have variance one."""
    return np.asarray(M * np.sqrt(np.diag(np.linalg.inv(M.T @ M))))


# ------------------------------------------------------------------ orthogonal


def _orthomax(A: Array, gamma: float) -> Array:
    """The rotation T of greatest sum_rj l^4 - (gamma / D) sum_j (sum_r l_rj^2)^2, l = A T.

    The best of a few climbs: some tables of loadings are flat where they are, and not at the top.
    """
    size, rng = A.shape[1], np.random.default_rng(0)
    starts = [np.eye(size)]
    if size > 1:
        starts += [np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in range(STARTS)]
    A = A / np.linalg.norm(A)
    climbs = [_climb(A, T, gamma, FIRST_STEPS) for T in starts]
    heights = [_orthomax_criterion(A @ T, gamma)[0] for T in climbs]
    return _climb(A, climbs[int(np.argmax(heights))], gamma, MAX_STEPS)


def _climb(A: Array, T: Array, gamma: float, steps: int) -> Array:
    """Polar factors of the gradient; a multiple of T is added where the criterion would fall."""
    value, G = _orthomax_criterion(A @ T, gamma)
    damping = 0.0
    for _ in range(steps):
        B = A.T @ G
        skew = T.T @ B
        if np.linalg.norm(skew - skew.T) <= TOLERANCE * np.linalg.norm(B):
            break
        while True:
            left, _, right = np.linalg.svd(B + damping * T)
            new, new_G = _orthomax_criterion(A @ (left @ right), gamma)
            if new >= value * (1 - 1e-14):
                break
            damping = max(2 * damping, float(np.linalg.norm(B)))
        T, value, G = left @ right, new, new_G
    return T


def _orthomax_criterion(L: Array, gamma: float) -> tuple[float, Array]:
    """The criterion and a quarter of its gradient.

    Both with a multiple of the sum of squares added, which no rotation changes: without it steps
    may leap from one side of the top to the other.
    """
    means = np.mean(L**2, axis=0)
    G = L * (L**2 + gamma * (means.sum() - means))
    return float((L * G).sum()), G


# ------------------------------------------------------------------ oblique


def _oblimin(A: Array, gamma: float) -> Array:
    """M = T'^-1 for the T with columns of length one that minimises the criterion of A T'^-1."""
    T, step = _orthomax(A, 1.0), 1.0
    A = A * np.sqrt(len(A)) / np.linalg.norm(A)
    value, G = _oblimin_criterion(A, T, gamma)
    for _ in range(MAX_STEPS):
        G = G - T * (T * G).sum(axis=0)  # along the spheres of the columns
        slope = float((G**2).sum())
        if slope <= (TOLERANCE * len(A)) ** 2 or step < TOLERANCE**2:
            break
        step *= 2
        while True:
            new = T - step * G
            new /= np.linalg.norm(new, axis=0)
            new_value, new_G = _oblimin_criterion(A, new, gamma)
            if value - new_value >= 0.5 * slope * step or step < TOLERANCE**2:
                break
            step /= 2
        if new_value < value:
            T, value, G = new, new_value, new_G
    return np.asarray(np.linalg.inv(T).T)


def _oblimin_criterion(A: Array, T: Array, gamma: float) -> tuple[float, Array]:
    """The criterion of L = A T'^-1 and its gradient in T; infinite where T has no inverse."""
    if np.linalg.cond(T) > 1e8:
        return float("inf"), np.zeros_like(T)
    inverse = np.linalg.inv(T)
    L = A @ inverse.T
    others = np.square(L).sum(axis=1, keepdims=True) - np.square(L)
    others -= gamma * others.mean(axis=0)
    return float((L**2 * others).sum()) / 4, -(L.T @ (L * others) @ inverse).T
