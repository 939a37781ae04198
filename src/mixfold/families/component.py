"""What a mixture asks of a family of components, whatever their distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Block, Metric
from mixfold.math.frame import Frame, frame_of
from mixfold.math.lifted import Sums


@dataclass(frozen=True, slots=True)
class Scores:
    """Log densities (n, K) of the rows of a tile, and what the M step can use again."""

    log_density: Array
    work: Any


@dataclass(frozen=True)
class ComponentFamily(ABC):
    """A family of components. Parameters, statistics and readings are the family's own records.

    Parameters hold ``frame``, ``means`` (K, D) in its coordinates, and ``n_features``.

    Parameters
    ----------
    floor : float
        Smallest variance in any direction, relative to the data's own (frame coordinates).
    """

    floor: float = 1e-6

    name: ClassVar[str]
    readings: ClassVar[tuple[str, ...]] = ("mode",)

    @property
    def scales_columns(self) -> bool:
        """Whether each column of the frame has its own scale."""
        return True

    def numbers_per_row(self, n_components: int, n_features: int) -> int:
        """What the general E step holds for a row with missing entries."""
        return n_components * n_features

    def numbers_of_row(self, block: Block, reading: Any) -> int:
        """What the general E step holds for a complete row: sparse rows are made dense."""
        return int(block.X.shape[1])

    # ------------------------------------------------ parameters

    def frame(self, X: Array, weight: Array) -> Frame:
        """The coordinates for a fit that starts from this (dense) sample."""
        return frame_of(X, weight)

    @abstractmethod
    def reframed(self, params: Any, frame: Frame) -> Any:
        """The same components in other coordinates."""

    @abstractmethod
    def estimate(self, moments: Any, previous: Any) -> tuple[Any, Array]:
        """The maximum-likelihood M step under the floor, and which components touched it."""

    def floor_words(self, component: int) -> str:
        """What is told when a component touched the floor."""
        return (
            f"the covariance of component {component} reached the floor of {self.floor:g} "
            "relative to the data (duplicated rows, too few rows, or collinear columns)"
        )

    @abstractmethod
    def from_sample(self, frame: Frame, U: Array, resp: Array) -> Any:
        """Parameters from a complete sample with given responsibilities (n, K)."""

    @abstractmethod
    def n_free(self, n_components: int, n_features: int) -> int:
        """Number of free parameters of the components."""

    def least_rows(self, n_components: int) -> Array:
        """Rows (K,) that a component needs; one that has fewer is moved to other rows."""
        return np.zeros(n_components)

    @abstractmethod
    def coordinates(self, params: Any) -> Array: ...

    @abstractmethod
    def from_coordinates(self, params: Any, vector: Array) -> Any: ...

    @abstractmethod
    def derivatives(self, params: Any, moments: Any) -> tuple[Array, Metric]:
        """Gradient of the log likelihood in ``coordinates``; the metric of the complete data."""

    @abstractmethod
    def place(self, params: Any, where: Array, points: Array) -> Any:
        """Components ``where`` moved to ``points`` with a typical covariance."""

    @abstractmethod
    def keep(self, params: Any, which: Array) -> Any:
        """Only the components ``which``."""

    # ------------------------------------------------ E step

    @abstractmethod
    def mode(self, params: Any) -> Any:
        """The reading of point estimates: factors and the lifted form."""

    @abstractmethod
    def scores(self, tile: Block, reading: Any) -> Scores:
        """Log densities of a tile of rows of any kind."""

    @abstractmethod
    def log_density(self, block: Block, reading: Any) -> Array:
        """Log densities (n, K) of a block by the fastest route that is exact for it."""

    @abstractmethod
    def moments(self, scores: Scores, resp: Array, reading: Any) -> Any:
        """Additive statistics of a tile for weighted responsibilities (n, K)."""

    @abstractmethod
    def fused(self, block: Block, reading: Any, log_weights: Array) -> tuple[Any, Sums] | None:
        """Both at once over a whole block by the fast kernel; None if the block is not for it."""

    @abstractmethod
    def about_frame(self, moments: Any) -> Any:
        """The same moments about the origin of the frame, so that passes can be blended."""

    # ------------------------------------------------ using a fit

    def normals_per_row(self, n_features: int) -> int:
        """Standard normals that a draw of one row takes."""
        return n_features

    @abstractmethod
    def completed(
        self, scores: Scores, reading: Any, component: int, normals: Array | None
    ) -> Array:
        """Rows in frame coordinates with missing entries at their conditional mean under one
        component, or at a conditional draw made of standard normals (n, ``normals_per_row``)."""

    @abstractmethod
    def condition(self, params: Any, known: Array, values: Array) -> tuple[Array, Any]:
        """Log density (K,) of known columns and the components of the others given them."""

    @abstractmethod
    def sample(self, params: Any, labels: Array, normals: Array) -> Array:
        """Rows of the given components from standard normals, in data coordinates."""


def dense_rows(X: Any) -> Array:
    """A tile as an ordinary array."""
    return np.asarray(X.toarray()) if hasattr(X, "toarray") else np.asarray(X)
