"""What the second view of a factor model offers, whatever its outputs are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mixfold.contracts import Array, Metric
from mixfold.families.factor.records import Latents
from mixfold.math.symmetric import roots_of


@dataclass(frozen=True, slots=True)
class Latent:
    """What a row itself says of its latents: means (n, K, d), covariances (1 or n, K, d, d)."""

    means: Array
    covariances: Array


@dataclass(frozen=True, slots=True)
class Replicate:
    """The rows once more, with one reading of their outputs, and the share of each row that it is.

    The objective is the sum of the log-likelihoods of all replicates, each times its share.

    ``share`` (n,), log probability of the outputs given the row (n, K), and the latents given row
    and outputs. ``work`` is what the view keeps for its own sums.
    """

    share: Array
    log_probability: Array
    latent: Latent
    work: Any = None


class Outputs(Protocol):
    """A kind of outputs. Parameters, readings and sums are its own records."""

    @property
    def tied(self) -> bool:
        """Whether the components share the parameters of the view."""
        ...

    def unknown(self, n_rows: int) -> Array:
        """``Block.y`` of rows of which nothing is known."""
        ...

    def read(self, params: Any, covariances: Array) -> Any:
        """What the E step reads, for latents with these covariances (K, d, d) given a row."""
        ...

    def workspace_per_row(self, y: Array, n_components: int, n_factors: int) -> int:
        """Numbers that the replicates of a complete row take, about."""
        ...

    def replicates(self, y: Array, latent: Latent, reading: Any) -> Sequence[Replicate]:
        """Readings of the outputs; shares of the ones that are unknown are zero."""
        ...

    def sums(
        self, y: Array, replicates: Sequence[Replicate], resp: Sequence[Array], reading: Any
    ) -> Any:
        """Additive statistics for weighted responsibilities (n, K) of each replicate."""
        ...

    def update(self, sums: Any, params: Any, relevance: Array | None = None) -> Any:
        """The M step; ``relevance`` (1 or K, d): precisions of a prior of the loadings."""
        ...

    def squares_of(self, params: Any) -> Array:
        """Products (1 or K, d, d) of the columns of the loadings, in units of the outputs."""
        ...

    def n_loadings(self, params: Any) -> int:
        """Loadings of a factor, of one component or of those that share them."""
        ...

    def transform_latents(self, params: Any, mean: Array, root: Array) -> Any:
        """The same view of latents z' with z = mean + root z', (K or 1, d), (K or 1, d, d)."""
        ...

    def penalty(self, params: Any) -> float:
        """What is taken from the objective."""
        ...

    def information(self, params: Any) -> Array:
        """What the outputs tell of the latents, (1 or K, d, d): V' N^-1 V for loadings V."""
        ...

    def n_free(self, n_components: int, n_factors: int) -> int: ...

    def without_reference(self, sums: Any) -> Any:
        """Sums in a form that does not depend on the parameters of their pass."""
        ...

    def coordinates(self, params: Any) -> Array:
        """The free parameters as one unconstrained vector."""
        ...

    def from_coordinates(self, params: Any, vector: Array) -> Any:
        """The inverse of ``coordinates``; ``params`` lends shapes and constants."""
        ...

    def derivatives(
        self, params: Any, sums: Any, relevance: Array | None = None
    ) -> tuple[Array, Metric]:
        """Gradient of the objective in ``coordinates``, by Fisher's identity, and a metric."""
        ...


def latent_prior(latents: Latents, shared: bool) -> tuple[Array, Array]:
    """Mean and root of the covariance of all latents, of each component or of all together."""
    count, first, second = latents.count, latents.first, latents.second
    if shared:
        count, first, second = (v.sum(axis=0, keepdims=True) for v in (count, first, second))
    n = np.maximum(count, np.finfo(float).tiny)
    mean = first / n[:, None]
    covariance = second / n[:, None, None] - mean[:, :, None] * mean[:, None, :]
    empty = (count <= 0)[:, None, None]
    covariance = np.where(empty, np.eye(mean.shape[1]), covariance)
    return mean, roots_of(0.5 * (covariance + np.swapaxes(covariance, 1, 2)))
