"""E step of rows with missing entries: the posterior of the latents given what is seen.

A row with the seen entries O tells of its latents by A = W_O'W_O and W_O'(x_O - offset_O) alone.
With S_k = R_k R_k' and z = m_k + R_k v, v ~ N(0, I), the posterior of v has the precision
I + R_k'A R_k / noise, also where S_k is singular; the missing entries do not occur. The distance of
the row from W_O z + offset_O is taken about a point z0 near its least, so that it is no difference
of large numbers:

    |x_O - offset_O - W_O z|^2 = |e|^2 - 2 (z - z0)'W_O'e + (z - z0)'A (z - z0),
    e = x_O - offset_O - W_O z0

The product with the mask that makes A, and e, are the same for all components.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.families.factor.records import Latents
from mixfold.families.gaussian import Moments
from mixfold.families.projection.reading import ProjectionReading, latent_roots
from mixfold.families.projection.records import ProjectionSums, change_origin
from mixfold.math.row_posteriors import add_outer, row_posteriors
from mixfold.math.symmetric import LOG_2PI, pack, unpack

# added to A for the point z0: it need only be near the least distance
_RIDGE = 1e-6


@dataclass(frozen=True, slots=True)
class IncompleteRows:
    """``deviation`` (n, D) of the rows from the offset, 0 where ``mask`` (n, D) is, and posteriors
    of their latents: means ``z`` (n, K, d) and packed ``covariance`` (n, K, d (d + 1) / 2)."""

    deviation: Array
    mask: Array
    z: Array
    covariance: Array


def seen_precisions(mask: Array, axes: Array) -> Array:
    """Packed A = W_O'W_O (n, d (d + 1) / 2) of rows with the given masks."""
    row, column = np.triu_indices(axes.shape[1])
    return np.asarray(mask @ (axes[:, row] * axes[:, column]))


def incomplete_scores(
    U: Array, reading: ProjectionReading, *, in_plane: bool = False
) -> tuple[Array, IncompleteRows]:
    """Log densities (n, K) of the seen entries of rows in frame coordinates.

    With ``in_plane`` less what their distance from the plane costs, which all components share.
    """
    params = reading.params
    noise, means, size = params.noise, params.clusters.means, params.n_latents
    mask = (~np.isnan(U)).astype(float)
    deviation = np.where(mask > 0, U - params.offset, 0.0)
    packed, b = seen_precisions(mask, params.axes), deviation @ params.axes
    A = unpack(packed, size)
    nearest = row_posteriors(packed / _RIDGE, b / _RIDGE)[0]
    e = deviation - mask * (nearest @ params.axes.T)
    slope, least = e @ params.axes, np.zeros(len(e)) if in_plane else np.vecdot(e, e)
    K = len(means)
    z, covariance = np.empty((len(U), K, size)), np.empty((len(U), K, packed.shape[1]))
    common = LOG_2PI + np.log(noise) + 2 * params.frame.log_scale
    out = np.repeat((-0.5 * (mask @ common))[:, None], K, axis=1) + reading.shift
    for k, root in enumerate(latent_roots(params.clusters)):
        inner = pack(root.T @ A @ root) / noise
        pull = (b - A @ means[k]) @ root / noise
        v, spread, log_det = row_posteriors(inner, pull)
        z[:, k] = means[k] + v @ root.T
        covariance[:, k] = pack(root @ unpack(spread, size) @ root.T)
        away = z[:, k] - nearest
        bent = np.einsum("nd,nde,ne->n", away, A, away)
        distance = least - 2 * np.vecdot(away, slope) + bent
        if not in_plane:
            distance = np.maximum(distance, 0.0)
        out[:, k] -= 0.5 * (log_det + distance / noise + np.vecdot(v, v))
    return out, IncompleteRows(deviation, mask, z, covariance)


def incomplete_sums(
    rows: IncompleteRows, resp: Array, reading: ProjectionReading
) -> ProjectionSums:
    """Statistics of rows with missing entries for weighted responsibilities (n, K)."""
    params = reading.params
    size = params.n_latents
    firsts = resp[:, :, None] * rows.z
    seconds = resp[:, :, None] * add_outer(rows.covariance, rows.z)
    Z, ZZ, weight = firsts.sum(axis=1), seconds.sum(axis=1), resp.sum(axis=1)
    count = np.repeat(resp.sum(axis=0)[:, None], size, axis=1)
    latents = Moments(count, firsts.sum(axis=0), seconds.sum(axis=0), np.zeros_like(firsts[0]))
    missing = 1 - rows.mask
    return ProjectionSums(
        # as those of complete rows are
        latents=change_origin(latents, params.clusters.means),
        entries=float(weight @ rows.mask.sum(axis=1)),
        first=rows.deviation.T @ weight,
        square=float(weight @ np.vecdot(rows.deviation, rows.deviation)),
        cross=rows.deviation.T @ Z,
        unseen=Latents(missing.T @ weight, missing.T @ Z, unpack(missing.T @ ZZ, size)),
        origin=params.offset,
        axes=params.axes,
        offset=params.offset,
        noise=params.noise,
    )
