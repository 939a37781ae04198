"""Priors and posteriors of Gaussian components, in the coordinates of a frame."""

from __future__ import annotations

from dataclasses import dataclass

from mixfold.contracts import Array, Positive, record
from mixfold.math.frame import Frame


@record
@dataclass(frozen=True, slots=True)
class NormalPrior:
    """Of one component: mu | Lambda ~ N(mean, (precision Lambda)^-1), Lambda ~ Wishart(W, degrees).

    ``scatter`` is W^-1, a matrix or, for diagonal covariances, its diagonal; a gamma(a, b) is a
    Wishart of one dimension with degrees = 2a and scatter = 2b. ``precision`` and ``degrees`` may
    differ from column to column where columns are independent.
    """

    mean: Array
    precision: Array
    degrees: Array
    scatter: Array


@record
@dataclass(frozen=True, slots=True)
class NormalPosterior:
    """Of K components. ``scatter`` is W^-1 / degrees, the covariance of the point estimate, in the
    family's shape; ``precision`` is (K,), or (K, D) where columns may be missing apart."""

    frame: Frame
    means: Array
    precision: Positive
    degrees: Positive
    scatter: Array

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1])
