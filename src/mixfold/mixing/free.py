"""Free mixing weights, by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array


@dataclass(frozen=True)
class FreeWeights:
    """pi_k = N_k / sum N. A component without rows gets weight zero."""

    def posterior(self, counts: Array) -> Array:
        return np.asarray(counts / counts.sum())

    def mode(self, weights: Array) -> Array:
        """Log weights for the E step."""
        with np.errstate(divide="ignore"):
            return np.log(weights)

    def n_free(self, n_components: int) -> int:
        return n_components - 1
