"""What the second view of a factor model offers, whatever its outputs are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mixfold.contracts import Array
from mixfold.families.factor.records import Latents


@dataclass(frozen=True, slots=True)
class Latent:
    """What a row itself says of its latents: means (n, K, d), covariances (1 or n, K, d, d)."""

    means: Array
    covariances: Array


@dataclass(frozen=True, slots=True)
class Copy:
    """The rows with one reading of their outputs, and how much of each row that reading is.

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

    def read(self, params: Any, covariances: Array) -> Any:
        """What the E step reads, for latents with these covariances (K, d, d) given a row."""
        ...

    def numbers_per_row(self, y: Array, n_components: int, n_factors: int) -> int:
        """Numbers that the copies of a complete row take, about."""
        ...

    def copies(self, y: Array, latent: Latent, reading: Any) -> Sequence[Copy]:
        """Readings of the outputs; shares of the ones that are unknown are zero."""
        ...

    def sums(self, y: Array, copies: Sequence[Copy], resp: Sequence[Array], reading: Any) -> Any:
        """Additive statistics for weighted responsibilities (n, K) of each copy."""
        ...

    def update(self, sums: Any, params: Any) -> Any: ...

    def moved(self, params: Any, mean: Array, root: Array) -> Any:
        """The same view of latents z' with z = mean + root z', (K or 1, d), (K or 1, d, d)."""
        ...

    def penalty(self, params: Any) -> float:
        """What is taken from the objective."""
        ...

    def information(self, params: Any) -> Array:
        """What the outputs tell of the latents, (1 or K, d, d): V' N^-1 V for loadings V."""
        ...

    def n_free(self, n_components: int, n_factors: int) -> int: ...


def unlabelled(y: Array, latent: Latent, share: Array) -> Copy:
    """The rows without their outputs."""
    return Copy(share, np.zeros(latent.means.shape[:2]), latent)


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
    return mean, np.linalg.cholesky(0.5 * (covariance + np.swapaxes(covariance, 1, 2)))
