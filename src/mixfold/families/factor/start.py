"""Factor components from a sample that is already shared among them: PCA in each."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.math.frame import bulk_of, far_rows
from mixfold.math.principal import Axes, sample_axes

# of the noise: the least length of a loading, since one of zero would stay zero
_LEAST_SIGNAL = 1e-2
# of the mean noise: where the noise of a column starts at least
_LEAST_NOISE = 0.1


def component_axes(U: Array, resp: Array, size: int, fixed: Array | None) -> list[Axes]:
    """The axes of each component; one with too few rows takes those of all rows about its mean."""
    out = []
    everybody: Axes | None = None
    for weight in resp.T:
        mine = weight > 0
        if mine.sum() >= size + 2:
            out.append(sample_axes(U[mine], weight[mine], size, fixed))
            continue
        if everybody is None:
            weight_of = resp.sum(axis=1)
            near = ~far_rows(U, bulk_of(U, weight_of))  # their shape is that of no component
            everybody = sample_axes(U[near], weight_of[near], size, fixed)
        mean = everybody.mean
        if fixed is None and mine.any():
            mean = weight @ U / weight.sum()
        out.append(Axes(mean, everybody.values, everybody.vectors, everybody.total))
    return out


def pooled_axes(U: Array, resp: Array, size: int, fixed: Array | None) -> list[Axes]:
    """One set of axes for all components: of the rows about the mean of their own component."""
    count = np.maximum(resp.sum(axis=0), np.finfo(float).tiny)
    means = (resp.T @ U) / count[:, None] if fixed is None else np.tile(fixed, (len(count), 1))
    weight = resp.sum(axis=1)
    centred = U - (resp / weight[:, None]) @ means
    common = sample_axes(centred, weight, size, np.zeros(U.shape[1]))
    return [Axes(mean, common.values, common.vectors, common.total) for mean in means]


def loadings_and_noise(axes: Axes, n_factors: int, size: int) -> tuple[Array, float]:
    """Loadings (D, size), of which ``n_factors`` are not zero, and the mean variance left over."""
    n_features = len(axes.mean)
    left = max(axes.total - float(axes.values[:n_factors].sum()), 0.0)
    noise = left / max(n_features - n_factors, 1)
    scale = max(noise, 1e-6 * axes.total / n_features, np.finfo(float).tiny)
    signal = np.maximum(axes.values[:n_factors] - noise, _LEAST_SIGNAL * scale)
    loadings = np.zeros((n_features, size))
    loadings[:, :n_factors] = axes.vectors[:, :n_factors] * np.sqrt(signal)
    return loadings, noise


def column_noise(variances: Array, loadings: Array, noise: float) -> Array:
    """What the loadings leave of the variances (D,) of a component's columns."""
    return np.asarray(np.maximum(variances - (loadings**2).sum(axis=1), _LEAST_NOISE * noise))
