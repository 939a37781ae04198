"""The Gaussian density of probabilistic PCA in feature space: axes with variances, and noise.

The noise is where the features can be beside the axes: in as many dimensions as their space has.
"""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array

# a variance of the noise is at least this share of the mean variance
_FLOOR = 1e-12


class FeatureGaussian:
    """What eigenvalues (d,), their number of rows, a dimension and a noise variance tell."""

    __slots__ = ()

    values: Array
    n_rows: float
    dimension: int
    noise: float

    @property
    def variances(self) -> Array:
        """Along the axes (d,)."""
        return np.asarray(self.values / self.n_rows)

    def log_density(self, scores: Array, squares: Array) -> Array:
        """Of features with these scores and distances (squared) from the mean."""
        scores, squares = np.asarray(scores, np.float64), np.asarray(squares, np.float64)
        rest = np.maximum(squares - (scores**2).sum(axis=1), 0.0)
        # an axis of less variance than the noise is noise
        along = np.maximum(self.variances, self.noise)
        inside = (scores**2 / along).sum(axis=1) + np.log(along).sum()
        outside = (self.dimension - len(along)) * np.log(self.noise) + rest / self.noise
        return np.asarray(-0.5 * (self.dimension * np.log(2 * np.pi) + inside + outside))

    def shrinkage(self) -> Array:
        """Posterior means of unit latents over scores (d,): sqrt(variance - noise) / variance."""
        return np.asarray(np.sqrt(np.maximum(self.variances - self.noise, 0.0)) / self.variances)


def noise_variance(values: Array, trace: float, n_rows: float, dimension: int) -> float:
    """The mean variance of the dimensions that axes with these eigenvalues leave."""
    rest = max(trace - float(values.sum()), 0.0) / n_rows
    left = max(dimension - len(values), 1)
    least = _FLOOR * (max(trace, 0.0) / n_rows / dimension or 1.0)
    return float(max(rest / left, least))
