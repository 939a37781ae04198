"""Statistics of factor components whose latents were inferred from more than the row itself.

Where a row has outputs beside its columns, responsibilities and latents are made elsewhere; what
is left to do here are the products of the rows with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.component import dense_rows
from mixfold.families.factor.incomplete import IncompleteRows, incomplete_sums
from mixfold.families.factor.reading import FactorReading, in_data_units
from mixfold.families.factor.records import FactorSums, Latents, no_latents
from mixfold.families.factor.stacked_products import can_lift
from mixfold.math.symmetric import pack

# numbers of a tile of dense rows
_TILE_NUMBERS = 2**21


@dataclass(frozen=True, slots=True)
class Inference:
    """What is believed of the latents of some rows under each component.

    Weighted responsibilities ``resp`` (n, K), means (n, K, d), covariances (1 or n, K, d, d).
    """

    resp: Array
    means: Array
    covariances: Array

    def part(self, which: Array) -> Inference:
        """Some of the rows."""
        one = len(self.covariances) == 1
        covariances = self.covariances if one else self.covariances[which]
        return Inference(self.resp[which], self.means[which], covariances)

    def latents(self) -> Latents:
        """Sums over the rows."""
        weighted = self.resp[..., None] * self.means
        second = np.moveaxis(weighted, 0, 2) @ np.swapaxes(self.means, 0, 1)
        if len(self.covariances) == 1:
            second += self.resp.sum(axis=0)[:, None, None] * self.covariances[0]
        else:
            second += np.einsum("nk,nkij->kij", self.resp, self.covariances)
        return Latents(self.resp.sum(axis=0), weighted.sum(axis=0), second)


def sum_inferred_latents(
    block: Block, reading: FactorReading, beliefs: Sequence[Inference]
) -> FactorSums:
    """Statistics of a block with these inferences about its rows, added up."""
    if not block.complete:
        return _sum_incomplete_block(block, reading, beliefs)
    resp = reduce(np.add, [belief.resp for belief in beliefs])
    weighted = reduce(np.add, [belief.resp[..., None] * belief.means for belief in beliefs])
    latents = reduce(add, [belief.latents() for belief in beliefs])
    if not isinstance(block.X, np.ndarray) and can_lift(block, reading):
        return _sparse(block, reading, resp, weighted, latents)
    return _dense(block, reading, resp, weighted, latents)


def _sum_incomplete_block(
    block: Block, reading: FactorReading, beliefs: Sequence[Inference]
) -> FactorSums:
    """Of a block in which entries lack: its whole rows as such, whatever the other rows are."""
    lacks: Array = np.asarray(np.isnan(dense_rows(block.X)).any(axis=1))
    if not reading.has_missing:  # the rows that lack entries weigh nothing
        rows = Block(block.X[np.flatnonzero(~lacks)], complete=True)
        return sum_inferred_latents(rows, reading, [belief.part(~lacks) for belief in beliefs])
    parts = []
    for complete, which in ((True, ~lacks), (False, lacks)):
        if not which.any():
            continue
        rows = Block(block.X[np.flatnonzero(which)], complete=complete)
        some = [belief.part(which) for belief in beliefs]
        parts += [sum_inferred_latents(rows, reading, some)] if complete else [
            _incomplete_row_sums(rows, reading, belief) for belief in some
        ]  # fmt: skip
    return reduce(add, parts)


def _incomplete_row_sums(block: Block, reading: FactorReading, belief: Inference) -> FactorSums:
    U = reading.frame.enter(dense_rows(block.X))
    shape = (*belief.means.shape, belief.means.shape[-1])
    covariances = pack(np.broadcast_to(belief.covariances, shape))
    rows = IncompleteRows(U, (~np.isnan(U)).astype(float), belief.means, covariances)
    return incomplete_sums(rows, belief.resp, reading)


def _dense(
    block: Block, reading: FactorReading, resp: Array, weighted: Array, latents: Latents
) -> FactorSums:
    """A component at a time, about its mean: nothing cancels."""
    K, D, d = reading.shape
    first, squares, cross = np.zeros((K, D)), np.zeros((K, D)), np.zeros((K, D, d))
    rows = max(64, _TILE_NUMBERS // D)
    for start in range(0, block.n_rows, rows):
        part = slice(start, start + rows)
        U = reading.frame.enter(dense_rows(block.X[part]))
        for k in range(K):
            deviation = U - reading.means[k]
            first[k] += resp[part, k] @ deviation
            cross[k] += deviation.T @ weighted[part, k]
            squares[k] += resp[part, k] @ deviation**2
    return _sums(reading, first, squares, cross, latents)


def _sparse(
    block: Block, reading: FactorReading, resp: Array, weighted: Array, latents: Latents
) -> FactorSums:
    """From the stored entries, about zero, moved to the means afterwards."""
    K, D, d = reading.shape
    means = in_data_units(reading).means
    count, z = latents.count[:, None], latents.first
    n = block.n_rows
    first = np.asarray((block.X.T @ resp).T)
    cross = np.asarray(block.X.T @ weighted.reshape(n, K * d)).reshape(D, K, d)
    squares = _squares(block.X, resp, reading.isotropic)
    scale = reading.frame.scale
    return _sums(
        reading,
        (first - count * means) / scale,
        (squares - means * (2 * first - count * means)) / scale**2,
        (np.moveaxis(cross, 0, 1) - means[:, :, None] * z[:, None]) / scale[:, None],
        latents,
    )


def _squares(X: Any, resp: Array, isotropic: bool) -> Array:
    """(K, D) sums of r x^2; those of a row together, spread evenly, if columns share noise."""
    if not isotropic:
        return np.asarray((X.multiply(X).T @ resp).T)
    of_rows = np.add.reduceat(np.append(X.data.astype(float) ** 2, 0.0), X.indptr[:-1])
    of_rows[np.diff(X.indptr) == 0] = 0.0
    return np.repeat((of_rows @ resp)[:, None] / X.shape[1], X.shape[1], axis=1)


def _sums(
    reading: FactorReading, first: Array, squares: Array, cross: Array, latents: Latents
) -> FactorSums:
    K, D, d = reading.shape
    if reading.isotropic:
        squares = np.repeat(squares.mean(axis=1, keepdims=True), D, axis=1)
    seen = no_latents(K, D if reading.has_missing else 0, d)
    return FactorSums(first, squares, cross, latents, latents, seen, reading.means)
