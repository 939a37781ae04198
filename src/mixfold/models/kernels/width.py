"""How well the law of kernel PCA describes rows that it has not seen, for any width of the kernel.

The density of features cannot choose a kernel: its base measure, the volume of the space of
features, is another one for each kernel. Read as a function of the row x it can,

    log p(x) = -1/2 sum_k s_k(x)^2 / lambda_k - 1/2 (|phi(x) - mean|^2 - sum_k s_k(x)^2) / v

with scores s_k of variance lambda_k along the axes and the noise v, but its integral over x is not
known (with the RBF kernel it is infinite: far from all rows the density is constant). Hyvarinen's
score needs no integral,

    H(x) = 2 trace of the Hessian of log p + |gradient of log p|^2,

and is proper: its mean under a density q is least for p = q. It is in units of the rows, 1 / x^2,
whatever the kernel is. Both derivatives are sums of derivatives of k(x, x_n).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.math.kernels import RbfKernel
from mixfold.math.largest import largest_pairs

# variances below this share of the whole are rounding
_NEGLIGIBLE = 1e-10


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Parts of H of rows (n,) that were held out, for laws of 1, ..., d axes: each (n, d).

    H = 2 (along + t beside) + along2 + 2 t both + t^2 beside2 for the precision t = 1 / v of the
    noise: ``along`` and ``beside`` are Laplacians of the two terms of log p, the others products
    of their gradients. ``least`` (n, d): the precision of the last axis, below which t cannot be.
    """

    along: Array
    beside: Array
    along2: Array
    both: Array
    beside2: Array
    least: Array
    weight: Array


def held_out_parts(
    gamma: float, X: Array, weight: Array, rows: Array, row_weight: Array, size: int
) -> HeldOut:
    """Of ``rows`` (n, D) under the law of kernel PCA that was fitted to X (N, D).

    At most ``size`` axes; fewer if the features of X have variance along fewer.
    """
    shares = weight / weight.sum()
    combinations, variances, means = _axes(gamma, X, shares, size)
    # the mean of the features is one more combination of those of the rows
    values, slopes, bends = _derivatives(gamma, X, rows, np.column_stack([combinations, shares]))
    scores = values[:, :-1] - means @ combinations
    slope, bend = slopes[:, :-1], bends[:, :-1]
    # 1/2 s^2 has the gradient s grad s and the Laplacian s lap s + |grad s|^2
    half_slope = scores[:, :, None] * slope
    half_bend = scores * bend + (slope**2).sum(axis=2)
    # k(x, x) = 1, so that |phi(x) - mean|^2 / 2 is a constant less the product with the mean
    along = -np.cumsum(half_slope / variances[:, None], axis=1)
    beside = np.cumsum(half_slope, axis=1) + slopes[:, -1:]
    return HeldOut(
        along=-np.cumsum(half_bend / variances, axis=1),
        beside=np.cumsum(half_bend, axis=1) + bends[:, -1:],
        along2=(along**2).sum(axis=2),
        both=(along * beside).sum(axis=2),
        beside2=(beside**2).sum(axis=2),
        least=np.broadcast_to(1 / variances, scores.shape),
        weight=row_weight,
    )


def _axes(gamma: float, X: Array, shares: Array, size: int) -> tuple[Array, Array, Array]:
    """Coefficients (N, d) of the features of X that make the axes, and variances (d,).

    Also the products (N,) of the features of X with their mean.
    """
    n = len(X)
    G = RbfKernel(gamma).block(X, X)
    means, roots = G @ shares, np.sqrt(n * shares)
    S = (G - means[:, None] - means + shares @ means) * roots[:, None] * roots
    values, vectors = largest_pairs((S + S.T) / 2, min(size, n - 1))
    kept = values > _NEGLIGIBLE * max(float(np.trace(S)), 1e-300)
    values, vectors = values[kept], vectors[:, kept]
    coefficients = roots[:, None] * vectors / np.sqrt(values)
    return coefficients - np.outer(shares, coefficients.sum(axis=0)), values / n, means


def _derivatives(gamma: float, X: Array, rows: Array, B: Array) -> tuple[Array, Array, Array]:
    """Of f(x) = sum_n B_n k(x, x_n) at rows (n, D): values, gradients (n, m, D) and Laplacians."""
    K = RbfKernel(gamma).block(rows, X)
    values = K @ B
    slopes = np.empty((*values.shape, X.shape[1]))
    for j in range(X.shape[1]):
        slopes[:, :, j] = rows[:, j, None] * values - (K * X[:, j]) @ B
    slopes *= -2 * gamma
    squares = (rows**2).sum(axis=1)[:, None] + (X**2).sum(axis=1) - 2 * rows @ X.T
    bends = (K * (4 * gamma**2 * np.maximum(squares, 0.0) - 2 * gamma * X.shape[1])) @ B
    return values, slopes, bends


@dataclass(frozen=True, slots=True)
class Widths:
    """Mean of H for each law that was tried, its standard error, and the noise v; (n,) each."""

    gamma: Array
    n_axes: Array
    score: Array
    error: Array
    noise: Array

    def choose(self) -> int:
        """The smoothest kernel, with the fewest axes, that is within one error of the best."""
        best = int(np.nanargmin(self.score))
        good = np.flatnonzero(self.score <= self.score[best] + self.error[best])
        return int(min(good, key=lambda i: (self.gamma[i], self.n_axes[i])))


def score_widths(gammas: Array, X: Array, weight: Array, folds: list[Array], size: int) -> Widths:
    """H of all rows, each of them held out once; ``folds`` (of row numbers) part the rows."""
    found = [_score_width(float(gamma), X, weight, folds, size) for gamma in gammas]
    axes = [np.arange(1, len(score) + 1) for score, _, _ in found]
    return Widths(
        np.repeat(gammas, [len(one) for one in axes]), np.concatenate(axes),
        *(np.concatenate([one[i] for one in found]) for i in range(3)),
    )  # fmt: skip


def _score_width(
    gamma: float, X: Array, weight: Array, folds: list[Array], size: int
) -> tuple[Array, Array, Array]:
    parts = list(_hold_out(gamma, X, weight, folds, size))
    least = min(part.along.shape[1] for part in parts)

    def join(name: str) -> Array:
        return np.concatenate([getattr(part, name)[:, :least] for part in parts])

    along, beside, along2 = join("along"), join("beside"), join("along2")
    both, beside2 = join("both"), join("beside2")
    shares = np.concatenate([part.weight for part in parts])
    shares = shares / shares.sum()
    # the precision of least H; no axis has less variance than the noise
    square = shares @ beside2
    wanted = -(shares @ (beside + both)) / np.where(square > 0, square, 1.0)
    t = np.maximum(wanted, shares @ join("least"))
    H = 2 * (along + t * beside) + along2 + 2 * t * both + t**2 * beside2
    mean = shares @ H
    return mean, np.sqrt((shares**2) @ (H - mean) ** 2), 1 / t


def _hold_out(
    gamma: float, X: Array, weight: Array, folds: list[Array], size: int
) -> Iterator[HeldOut]:
    for out in folds:
        inside = np.ones(len(X), bool)
        inside[out] = False
        yield held_out_parts(gamma, X[inside], weight[inside], X[out], weight[out], size)
