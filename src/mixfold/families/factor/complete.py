"""E step of rows without missing entries: two matrix products over all components.

With a_k = whiten_k (u - mu_k) the log density is linear in (u, u^2) but for |a_k|^2 / 2, so one
product with the stacked (whiten_k, mu_k / psi_k) scores all components, and one product of the
rows with the stacked (r_k a_k, r_k) sums them.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.factor.reading import FactorReading, factor_trust
from mixfold.families.factor.records import FactorSums, Latents, no_latents
from mixfold.families.factor.stacked_products import lift_for
from mixfold.math.compiled import kernel
from mixfold.math.exponential import exp_nonpositive
from mixfold.math.lifted import Sums, marks_of, share_rows, sums_of_pass
from mixfold.math.low_rank import log_density
from mixfold.math.tiles import row_fields

# rows of a tile: enough that the sums are written seldom, few enough for the cache
TILE_ROWS = 512
_FAR = np.float32(-1e3)


@kernel
def _scores(P, quadratic, shift, constant, out):
    """Log densities; P keeps the whitened latents."""
    K, d = shift.shape
    for n in range(P.shape[0]):
        for k in range(K):
            at = k * (d + 1)
            norm = P[n, at + d] * 2 - quadratic[n, k]
            for i in range(d):
                a = P[n, at + i] - shift[k, i]
                P[n, at + i] = a
                norm += a * a
            out[n, k] = constant[k] + norm / 2


@kernel
def _share(P, L, weight, labels, first, n_factors, R, sums, trusted, left_out):
    """Log densities (n, K) -> weighted responsibilities R; P becomes (r a, r).

    A row whose largest log density is not above ``trusted`` is left out, and its place is marked.
    """
    n_rows, K = L.shape
    for n in range(n_rows):
        label = labels[first + n] if labels.size else -1
        w = weight[first + n] if weight.size else 1.0
        if label >= 0:
            for k in range(K):
                if k != label:
                    L[n, k] = -np.inf
        top = L[n].max()
        if left_out.size and not (top > trusted):
            left_out[first + n] = w > 0
            sums[3] += 1
            w = 0.0
            L[n] = 0
            top = L[n, 0]
        total, spread = 0.0, 0.0
        for k in range(K):
            gap = L[n, k] - top
            e = exp_nonpositive(gap)
            R[n, k] = e
            total += e
            spread += e * max(gap, _FAR)
        log_total = np.log(total)
        sums[0] += w * (top + log_total)
        sums[1] += w * (log_total - spread / total)
        sums[2] += w
        for k in range(K):
            r = R[n, k] * (w / total)
            R[n, k] = r
            at = k * (n_factors + 1)
            for i in range(n_factors):
                P[n, at + i] *= r
            P[n, at + n_factors] = r


def _small_scores(P: Array, quadratic: Array, shift: Array, constant: Array) -> tuple[Array, Array]:
    """What ``_scores`` does, by numpy: for blocks that no kernel is loaded for."""
    K, d = shift.shape
    P = P.reshape(len(P), K, d + 1)
    P[:, :, :d] -= shift
    with np.errstate(over="ignore", invalid="ignore"):  # as kernels do
        norm = (P[:, :, :d] ** 2).sum(axis=2) + 2 * P[:, :, d] - quadratic
    return P.reshape(len(P), -1), constant + norm / 2


def _small_share(
    P: Array, quadratic: Array, shift: Array, constant: Array, block: Block, trusted: float,
    totals: Array, left_out: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """What ``_scores`` and ``_share`` do."""
    K, d = shift.shape
    P, L = _small_scores(P, quadratic, shift, constant)
    shares, sums = share_rows(L.T, block, trusted)
    totals += sums.log_likelihood, sums.entropy, sums.weight, len(sums.left_out)
    left_out[sums.left_out] = True
    R = np.ascontiguousarray(shares.T)
    parts = P.reshape(len(P), K, d + 1)
    parts[:, :, :d] *= R[:, :, None]
    parts[:, :, d] = R
    return P, R


def lifted_pass(
    block: Block, reading: FactorReading, log_weights: Array
) -> tuple[FactorSums, Sums]:
    """Responsibilities and sums of a block, a tile at a time."""
    lift = lift_for(block, reading)
    K, D, d = lift.reading.shape
    weight, labels = row_fields(block)
    constant = (lift.constant + log_weights).astype(lift.dtype)
    total, count, totals = np.zeros((D, K * (d + 1))), np.zeros(K), np.zeros(4)
    squares = np.zeros((K, lift.precision.shape[1]))
    part = np.empty((D, K * (d + 1)), lift.dtype)
    trusted = factor_trust(reading, block.X.dtype).least
    left_out = marks_of(block, trusted)
    for first in range(0, block.n_rows, TILE_ROWS):
        U = lift.enter(block.X[first : first + TILE_ROWS])
        P, square, quadratic = lift.products(U)
        if block.is_small:
            part_of_rows = block.part(first, first + TILE_ROWS)
            P, R = _small_share(P, quadratic, lift.shift, constant, part_of_rows, trusted,
                                totals, left_out[first:])  # fmt: skip
        else:
            L, R = np.empty(quadratic.shape, lift.dtype), np.empty(quadratic.shape, lift.dtype)
            _scores(P, quadratic, lift.shift, constant, L)
            _share(P, L, weight, labels, first, d, R, totals, trusted, left_out)
        total += lift.sums(U, P, part)
        squares += (square.T @ R).T
        count += R.sum(axis=0, dtype=float)
    sums = _about_means(lift.reading, count, total.reshape(D, K, d + 1), squares)
    sums = lift.in_frame(sums)
    return sums, sums_of_pass(count[None], totals, left_out)


def _about_means(reading: FactorReading, count: Array, total: Array, squares: Array) -> FactorSums:
    """Sums about the origin of the frame, moved to the means."""
    _, D, d = reading.shape
    means, whiten = reading.means, reading.parts.whiten
    first = total[:, :, d].T
    # sum r a, with a about the means already
    a = np.einsum("kij,kj->ki", whiten, first - count[:, None] * means)
    cross = np.moveaxis(total[:, :, :d], 0, 1) - means[:, :, None] * a[:, None]
    squares = squares if squares.shape[1] == D else np.repeat(squares / D, D, axis=1)
    deviation = first - count[:, None] * means
    squares = squares - means * (first + deviation)
    return whitened_sums(reading, count, deviation, squares, a, cross)


def whitened_sums(
    reading: FactorReading, count: Array, first: Array, squares: Array, a: Array, cross: Array
) -> FactorSums:
    """Statistics of complete rows from sums of r a (K, d) and r (u - mu) a' (K, D, d)."""
    K, D, d = reading.shape
    back = reading.parts.back
    if reading.isotropic:
        squares = np.repeat(squares.mean(axis=1, keepdims=True), D, axis=1)
    inner = reading.parts.whiten @ cross
    spread = 0.5 * (inner + np.swapaxes(inner, 1, 2)) + count[:, None, None] * np.eye(d)
    latents = Latents(
        count,
        np.einsum("kij,kj->ki", back, a),
        back @ spread @ np.swapaxes(back, 1, 2),
    )
    return FactorSums(
        first,
        squares,
        cross @ np.swapaxes(back, 1, 2),
        latents,
        latents,
        no_latents(K, D if reading.has_missing else 0, d),
        reading.means,
    )


def lifted_scores(block: Block, reading: FactorReading) -> tuple[Array, Array]:
    """Log densities (n, K) and whitened latents (n, K, d) of a block."""
    K, _, d = reading.shape
    lift = lift_for(block, reading)
    out = np.empty((block.n_rows, K), lift.dtype)
    latents = np.empty((block.n_rows, K, d), lift.dtype)
    for first in range(0, block.n_rows, TILE_ROWS):
        rows = slice(first, first + TILE_ROWS)
        P, _, quadratic = lift.products(lift.enter(block.X[rows]))
        if block.is_small:
            P, out[rows] = _small_scores(P, quadratic, lift.shift, lift.constant)
        else:
            _scores(P, quadratic, lift.shift, lift.constant, out[rows])
        latents[rows] = P.reshape(len(P), K, d + 1)[:, :, :d]
    return out.astype(float), latents.astype(float)


def careful_scores(U: Array, reading: FactorReading) -> tuple[Array, Array]:
    """The same for rows in frame coordinates, a component at a time, without cancellation."""
    K, _, d = reading.shape
    out, latents = np.empty((len(U), K)), np.empty((len(U), K, d))
    jacobian = reading.frame.log_scale.sum()
    for k in range(K):
        out[:, k], latents[:, k] = log_density(
            U, reading.means[k], reading.loadings[k], reading.noise[k], reading.parts, k
        )
    return out + (reading.gap - jacobian), latents


def careful_sums(U: Array, latents: Array, resp: Array, reading: FactorReading) -> FactorSums:
    """Statistics of complete rows with their whitened latents and weighted responsibilities."""
    K, D, d = reading.shape
    first, squares, cross = np.empty((K, D)), np.empty((K, D)), np.empty((K, D, d))
    for k in range(K):
        deviation = U - reading.means[k]
        r = resp[:, k]
        first[k], squares[k] = r @ deviation, r @ deviation**2
        cross[k] = deviation.T @ (r[:, None] * latents[:, k])
    a = np.einsum("nk,nki->ki", resp, latents)
    return whitened_sums(reading, resp.sum(axis=0), first, squares, a, cross)
