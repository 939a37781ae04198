"""The decomposition of a view by sums over rows: of the columns, or coordinates by landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Executor, Source, Stats, constant
from mixfold.math.frame import subtract_origin
from mixfold.models.factors.spectral_sums import check_size
from mixfold.models.kernels.maps import FeatureMap, GivenMap, LandmarkMap, PlainMap
from mixfold.models.kernels.views.projections import KernelProjection, LinearProjection, Projection
from mixfold.models.kernels.views.rows import outputs_of, whole_rows
from mixfold.models.kernels.views.thin_svd import ULPS, ThinSVD, check_order, eigendecompose


def primal_thin(
    source: Source,
    executor: Executor,
    features: FeatureMap | LandmarkMap | GivenMap | None = None,
    origin: Array | None = None,
) -> ThinSVD:
    """The decomposition of all rows with their outputs (``Block.y``), in one pass or two.

    Parameters
    ----------
    source : Source
    executor : Executor
    features : FeatureMap, optional
        The coordinates; by default the columns.
    origin : ndarray of shape (size,), optional
        Near the mean of the coordinates; by default a pass finds it.

    Returns
    -------
    Thin
    """
    features = PlainMap(source.n_features) if features is None else features
    check_order(features.size, "columns")
    if origin is None:
        origin = executor.map_reduce(Sum(features), source).mean
    sums = executor.map_reduce(SumProducts(features, origin), source)
    values, U = eigendecompose(sums.centred_gram(), sums.rounding())
    outputs = (U.T @ sums.centred_cross_products()) / np.sqrt(values)[:, None]
    reader = Reader(features, U, sums.origin + sums.shift)
    return ThinSVD(values, outputs, sums.spread(), sums.weight, reader)


@dataclass(frozen=True, slots=True)
class Reader:
    """Projections in coordinates, from the axes U (size, r) and the mean (size,) of these."""

    features: Any
    axes: Array
    mean: Array

    def __call__(self, R: Array) -> Projection:
        P = self.axes @ R
        if isinstance(self.features, PlainMap):
            return LinearProjection(P, self.mean)
        folded = replace(self.features, root=self.features.root @ P)
        return KernelProjection(folded, self.mean @ P)


# ------------------------------------------------------------------ sums


@dataclass(frozen=True)
class Total(Stats):
    """Weight and sum of coordinates."""

    weight: float
    first: Array

    @property
    def mean(self) -> Array:
        return np.asarray(self.first / self.weight)


@dataclass(frozen=True)
class JointSums(Stats):
    """Sums of coordinates about ``origin``, of outputs, and of their squares and products."""

    weight: float
    first: Array
    targets: Array
    second: Array
    cross: Array
    squares: Array
    origin: Array = constant()  # noqa: RUF009 (it makes a field)

    @property
    def shift(self) -> Array:
        return np.asarray(self.first / self.weight)

    def centred_gram(self) -> Array:
        """F'F about the mean."""
        return np.asarray(self.second - np.outer(self.shift, self.first))

    def rounding(self) -> float:
        """What is left of the squares of equal rows."""
        digits = ULPS * float(self.shift @ self.shift) + ULPS**2 * float(self.origin @ self.origin)
        return self.weight * digits

    def centred_cross_products(self) -> Array:
        """F'Y about the mean."""
        return np.asarray(self.cross - np.outer(self.shift, self.targets))

    def spread(self) -> Array:
        """Squares (L,) of the outputs about their means."""
        return np.asarray(self.squares - self.targets**2 / self.weight)


@dataclass(frozen=True, slots=True)
class Sum:
    """The task of the first pass; picklable. Sparse columns are not moved: about zero."""

    features: Callable[[Any], Any]

    def __call__(self, block: Block) -> Total:
        F, weight = self.features(whole_rows(block)), block.weights()
        moved = 0.0 if sparse.issparse(F) else 1.0
        return Total(float(weight.sum()), np.asarray(moved * (weight @ F)))


@dataclass(frozen=True, slots=True)
class SumProducts:
    """The task of the second pass; picklable."""

    features: Callable[[Any], Any]
    origin: Array

    def __call__(self, block: Block) -> JointSums:
        F = subtract_origin(self.features(whole_rows(block)), self.origin)
        Y, weight = outputs_of(block), block.weights()
        weighted = weight[:, None] * Y
        if sparse.issparse(F):
            second = (F.T @ (sparse.diags_array(weight) @ F)).toarray()
        else:  # one factor on both sides: half the work is enough for a symmetric product
            root = F if block.weight is None else np.sqrt(weight)[:, None] * F
            with np.errstate(over="ignore", invalid="ignore"):
                second = root.T @ root
        check_size(np.diagonal(second))
        return JointSums(
            float(weight.sum()),
            np.asarray(weight @ F),
            weighted.sum(axis=0),
            second,
            np.asarray(F.T @ weighted),
            (weighted * Y).sum(axis=0),
            self.origin,
        )
