"""Gradient of the likelihood of factor components, and the curvature of the complete data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, record
from mixfold.families.factor.loadings import Loadings
from mixfold.families.factor.noise import Noise
from mixfold.families.factor.records import FactorParams, FactorSums, Latents, entries
from mixfold.families.factor.regression import times, weighted_sum

_TINY = float(np.finfo(float).tiny)


@record
@dataclass(frozen=True, slots=True)
class FactorMetric:
    """Inverse information of the complete data: blocks for each row of loadings, else diagonal.

    ``means`` and ``noise`` are flat; ``inverse`` (L, J, d, d) times ``variance`` (L, D) is that
    of the loadings.
    """

    means: Array
    inverse: Array
    variance: Array
    noise: Array

    def solve(self, gradient: Array) -> Array:
        L, D = self.variance.shape
        size = self.inverse.shape[-1]
        first, last = self.means.size, self.means.size + L * D * size
        slope = gradient[first:last].reshape(L, D, size)
        loadings = times(self.inverse, slope)
        return np.concatenate(
            [
                gradient[:first] / self.means,
                (loadings * self.variance[..., None]).ravel(),
                gradient[last:] / self.noise,
            ]
        )


def gradient_and_metric(
    params: FactorParams, sums: FactorSums, noise: Noise, loadings: Loadings, fixed_means: bool,
    floor: float, relevance: Array | None = None,
) -> tuple[Array, FactorMetric]:  # fmt: skip
    """By Fisher's identity, from the sums at ``params`` (about their means).

    Coordinates are the means (unless fixed), one copy of the loadings, and deviations of the noise
    (unless it is given). ``relevance`` (K or 1, d): precisions of a prior of the loadings.
    """
    seen = entries(sums)
    W, psi = params.loadings, params.noise
    spread = times(seen.second, W)
    by_mean = (sums.first - (seen.first * W).sum(axis=-1)) / psi
    by_loading = loadings.gather((sums.cross - spread) / psi[..., None])
    if relevance is not None:
        by_loading = by_loading - relevance[:, None] * W
    count = np.broadcast_to(seen.count, psi.shape)
    by_noise, of_noise = np.zeros(0), np.zeros(0)
    if not noise.held:
        left = sums.squares + ((spread - 2 * sums.cross) * W).sum(axis=-1)
        deviation = np.sqrt(noise.drop_copies(psi))
        by_noise = noise.gather(left / psi - seen.count) / deviation
        # noise that has reached the floor has nowhere to go
        by_noise = np.where((deviation**2 <= floor * (1 + 1e-9)) & (by_noise < 0), 0.0, by_noise)
        of_noise = np.maximum(noise.gather(2 * count) / deviation**2, _TINY).ravel()
    metric = FactorMetric(
        np.zeros(0) if fixed_means else np.maximum(count / psi, _TINY).ravel(),
        *_information(seen, psi, loadings, relevance),
        of_noise,
    )
    parts = [by_loading.ravel(), by_noise.ravel()]
    return np.concatenate(parts if fixed_means else [by_mean.ravel(), *parts]), metric


def _information(
    seen: Latents, psi: Array, loadings: Loadings, relevance: Array | None
) -> tuple[Array, Array]:
    """The inverse of sum_k E[zz'] / psi, as ``inverse`` and ``variance`` of the metric."""
    size = seen.second.shape[-1]
    trace = np.trace(seen.second, axis1=-2, axis2=-1)[..., None, None]
    second = seen.second + (_TINY + 1e-12 * trace / max(size, 1)) * np.eye(size)
    if relevance is not None:
        alike = seen.second.shape[1] == 1 and (psi == psi[:, :1]).all()
        own = (psi[:, :1] if alike else psi)[..., None] * relevance[:, None]
        second = second + own[..., None] * np.eye(size)
    if not loadings.tied:
        return (np.linalg.inv(second) if size else second), psi
    weighted = weighted_sum(1 / psi, second)
    return (np.linalg.inv(weighted) if size else weighted), np.ones((1, psi.shape[1]))
