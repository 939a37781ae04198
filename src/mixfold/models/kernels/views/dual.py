"""The decomposition of a view by products of all pairs of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Executor, Source
from mixfold.math.kernels import Kernel, LinearKernel
from mixfold.models.kernels.known_rows import KnownRows, stack_blocks
from mixfold.models.kernels.maps import GivenMap, LandmarkMap
from mixfold.models.kernels.views.projections import KernelProjection, LinearProjection, Projection
from mixfold.models.kernels.views.rows import outputs_of, whole_rows
from mixfold.models.kernels.views.thin_svd import ULPS, ThinSVD, check_order, eigendecompose


@dataclass(frozen=True, slots=True)
class Known:
    """The rows of positive weight: X (n, D), outputs (n, L), weights (n,), places in the source."""

    X: Any
    outputs: Array
    weight: Array
    places: Array


def collect_known_rows(source: Source, executor: Executor) -> Known:
    """All rows in memory."""
    parts = list(executor.map_rows(_collect_block, source))
    X = stack_blocks([part[0] for part in parts])
    if len(parts) == 1:  # rows of the user, who may change them
        X = X.copy()
    outputs, weight = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    places = np.flatnonzero(weight > 0)
    if len(places) == len(weight):
        return Known(X, outputs, weight, places)
    return Known(X[places], outputs[places], weight[places], places)


def _collect_block(block: Block) -> tuple[Any, Array, Array]:
    return whole_rows(block), outputs_of(block), block.weights()


def dual_thin(
    source: Source, executor: Executor, choice: Callable[[Any], Kernel] | None = None
) -> ThinSVD:
    """The decomposition of all rows with their outputs (``Block.y``), from their kernel matrix.

    Parameters
    ----------
    source : Source
    executor : Executor
    choice : callable, optional
        The kernel of all rows. None: the rows are those of the kernel matrix itself.

    Returns
    -------
    Thin
    """
    if source.n_samples is not None:
        check_order(source.n_samples, "rows")
    rows = collect_known_rows(source, executor)
    check_order(len(rows.weight), "rows")
    if choice is None:
        return _thin(rows, rows.X[:, rows.places], None)
    kernel = choice(rows.X)
    if isinstance(kernel, LinearKernel) and not sparse.issparse(rows.X):
        # far from zero products of rows would lose their digits
        mean = rows.weight @ rows.X / rows.weight.sum()
        rows = Known(rows.X - mean, rows.outputs, rows.weight, rows.places)
        return _thin(rows, kernel.block(rows.X, rows.X), kernel, mean)
    return _thin(rows, kernel.block(rows.X, rows.X), kernel)


def _thin(rows: Known, G: Array, kernel: Kernel | None, moved: Array | None = None) -> ThinSVD:
    """Of a kernel matrix G, which is overwritten, of rows that were ``moved`` by so much."""
    roots, shares = np.sqrt(rows.weight), rows.weight / rows.weight.sum()
    means = G @ shares
    rounding = ULPS * float(rows.weight @ np.abs(np.diagonal(G)))
    if moved is not None:  # so far that this is what is left of equal rows
        rounding = ULPS**2 * float(rows.weight.sum() * (moved @ moved))
    G -= means[:, None]
    G -= means - shares @ means
    G *= roots[:, None]
    G *= roots
    values, V = eigendecompose(G, rounding)
    A = roots[:, None] * V / np.sqrt(values)
    A -= np.outer(shares, A.sum(axis=0))  # zero but for rounding: products need not be centred
    Y = roots[:, None] * (rows.outputs - shares @ rows.outputs)
    if kernel is None:
        reader: Callable[[Array], Projection] = _GivenReader(rows.places, A, means)
    elif isinstance(kernel, LinearKernel):
        reader = _LinearReader(rows.X, A, shares, moved)
    else:
        reader = _Reader(kernel, rows.X, A, means)
    return ThinSVD(values, V.T @ Y, (Y**2).sum(axis=0), float(rows.weight.sum()), reader)


@dataclass(frozen=True, slots=True)
class _Reader:
    """k(x, rows)' A R, about the mean."""

    kernel: Kernel
    X: Any
    A: Array
    means: Array

    def __call__(self, R: Array) -> KernelProjection:
        root = self.A @ R
        return KernelProjection(
            LandmarkMap(self.kernel, KnownRows.of(self.X), root), self.means @ root
        )


@dataclass(frozen=True, slots=True)
class _GivenReader:
    """The same of rows that are products with the known rows already."""

    places: Array
    A: Array
    means: Array

    def __call__(self, R: Array) -> KernelProjection:
        root = self.A @ R
        return KernelProjection(GivenMap(self.places, root), self.means @ root)


@dataclass(frozen=True, slots=True)
class _LinearReader:
    """The same of the linear kernel: a matrix, and no known row is kept."""

    X: Any
    A: Array
    shares: Array
    moved: Array | None

    def __call__(self, R: Array) -> LinearProjection:
        mean = np.asarray(self.shares @ self.X)
        matrix = np.asarray(self.X.T @ (self.A @ R))
        return LinearProjection(matrix, mean if self.moved is None else mean + self.moved)
