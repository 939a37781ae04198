"""Starts made of a fit with as many components: two of them merged and another one split, or one
made as wide as all rows.

Which ones is judged by Gaussians in the coordinates of the starts, whatever the family: a split
gains what two Gaussians describe its rows better than one, a merger loses as much. Whether the
result is better is for the objective to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array, Block, Pilot
from mixfold.families.component import dense_rows
from mixfold.math.seeding import distinct, fill_by_cluster, lloyd, plus_plus
from mixfold.math.softmax import normalise
from mixfold.math.symmetric import pack, unpack
from mixfold.models.mixtures.rows import informative, take_rows

if TYPE_CHECKING:
    from mixfold.models.mixtures.mixture import Mixture, MixtureParams

# proposals of a round
PROPOSALS = 6
# losses per unit of weight, by the Gaussians, beyond which a proposal is not tried: of a merger and
# a split, and of a component as wide as all rows
HOPELESS, TOO_WIDE = 0.2, 0.8
# components that are made as wide as all rows
WIDENINGS = 3
# clusters within a component that are tried as the one half
PARTS = 6
# halves that hold more of one component than of the other by this share of its rows are those two
SAME_AGAIN = 0.95
# rows of a sample that they are planned on
ROWS = 2000
# columns up to which covariances are full here, and what each variance is raised by
FULL, RIDGE = 20, 1e-3


def rearrangements(
    model: Mixture, params: MixtureParams, pilot: Pilot, rng: np.random.Generator
) -> Iterator[Any]:
    """Parameters with two components merged and one split, the most promising first."""
    from mixfold.models.mixtures.mixture import Started

    block = informative(pilot.block)
    if model.n_components < 2 or block.y is not None or not model.given.free:
        return  # rows of known components, or a given start, say where components belong
    if block.n_rows > ROWS:  # evenly, so that nothing is drawn
        block = take_rows(block, np.linspace(0, block.n_rows - 1, ROWS).astype(int))
    X, weight, _ = distinct(dense_rows(block.X), block.weights(), None)
    _, resp = normalise(model.log_joint(model.prepare(params), Block(X, complete=block.complete)))
    frame = params.components.frame
    U = fill_by_cluster(model.family.view(frame, X), resp * weight[:, None])
    for moved in _plan(U, weight, resp, rng):
        yield model._first(frame, Started(X, U, moved * weight[:, None], pilot.total_weight))


def _plan(U: Array, weight: Array, resp: Array, rng: np.random.Generator) -> list[Array]:
    """The responsibilities of what is tried, the largest gain first."""
    K, total = resp.shape[1], float(weight.sum())
    shares = resp * weight[:, None]
    rows = _Rows(U, total)
    sums = rows.sums(shares.T)
    costs = rows.costs(sums)
    first, second = np.triu_indices(K, 1)
    merged = rows.costs(sums[first] + sums[second]) - costs[first] - costs[second]
    losses = sorted(zip(merged.tolist(), first.tolist(), second.tolist(), strict=True))
    splits = [_splits(rows, shares[:, k], sums[k], rng) for k in range(K)]
    found: list[tuple[float, tuple[int, int, Array, int]]] = []
    for loss, i, j in losses[: 2 * PROPOSALS]:
        keep, lose = (i, j) if shares[:, i].sum() >= shares[:, j].sum() else (j, i)
        for k in range(K):
            if k not in (i, j):
                found += [(gain - loss, (keep, lose, half, k)) for gain, half in splits[k]]
        both = shares[:, i] + shares[:, j]
        for gain, half in _splits(rows, both, sums[i] + sums[j], rng):
            if not _divides(half, shares[:, i], shares[:, j]):
                found.append((gain - loss, (keep, lose, half, keep)))
    found.sort(key=lambda pair: -pair[0])
    least = -HOPELESS * total
    moves = [_move(resp, *move) for gain, move in found[:PROPOSALS] if gain > least]
    return moves + _widenings(rows, weight, resp, costs)


def _move(resp: Array, keep: int, lose: int, half: Array, source: int) -> Array:
    """One component takes the rows of another, which is given half of those of a third."""
    moved = resp.copy()
    moved[:, keep] += moved[:, lose]
    moved[:, lose] = 0.0
    part = np.where(half, moved[:, source], 0.0)
    moved[:, lose] += part
    moved[:, source] -= part
    return moved


def _widenings(rows: _Rows, weight: Array, resp: Array, costs: Array) -> list[Array]:
    """One component as wide as all rows, for those between the others; these stay as they are.

    The components with the least to lose are tried, judged by what their rows cost then.
    """
    K, total = resp.shape[1], rows.total
    counts = weight @ resp
    wide = 0.5 * float(rows.log_volumes(rows.sums(weight[None]))[0])
    losses = counts * (wide - np.log(np.maximum(counts, np.finfo(float).tiny) / total)) - costs
    moves = []
    for k in np.argsort(losses, kind="stable")[:WIDENINGS]:
        if losses[k] > TOO_WIDE * total:
            break
        moved = (1 - 1 / K) * resp
        moved[:, k] = 1 / K
        moves.append(moved)
    return moves


def _divides(half: Array, one: Array, other: Array) -> bool:
    """Whether the halves of two components together are these components again."""
    tiny = np.finfo(float).tiny
    inside = abs(half @ one / max(one.sum(), tiny) - half @ other / max(other.sum(), tiny))
    return bool(inside > SAME_AGAIN)


@dataclass(frozen=True)
class _Rows:
    """Rows U (n, D) of this total weight, and what Gaussians of some of them cost."""

    U: Array
    total: float

    @cached_property
    def products(self) -> Array:
        """(1, u_d, u_d u_e for d <= e) of each row, (n, P); squares alone where columns are many.

        About the middle of the rows, so that rows far away take no digits from the others.
        """
        V = self.U - np.median(self.U, axis=0)
        second = V**2 if self._many else pack(V[:, :, None] * V[:, None, :])
        return np.concatenate([np.ones((len(V), 1)), V, second], axis=1)

    @property
    def _many(self) -> bool:
        return bool(self.U.shape[1] > FULL)

    def sums(self, shares: Array) -> Array:
        """Moments (m, P) of rows with these shares (m, n), which add."""
        return np.asarray(shares @ self.products)

    def costs(self, sums: Array) -> Array:
        """What a Gaussian of some rows costs (m,): minus its log-likelihood, but for constants."""
        count = sums[:, 0]
        held = np.where(count > 0, count, 1.0)
        volumes = self.log_volumes(sums)
        costs = held * (0.5 * volumes - np.log(held / self.total))
        return np.asarray(np.where(count > 0, costs, 0.0))

    def log_volumes(self, sums: Array) -> Array:
        """ln|S| of covariances, of which a ridge keeps spikes from gaining."""
        size = self.U.shape[1]
        moments = sums[:, 1:] / np.where(sums[:, :1] > 0, sums[:, :1], 1.0)
        mean, second = moments[:, :size], moments[:, size:]
        if self._many:
            return np.asarray(np.log(np.maximum(second - mean**2, 0.0) + RIDGE).sum(axis=1))
        covariance = unpack(second, size) - mean[:, :, None] * mean[:, None, :]
        # a row far away has squares that swallow the ridge: it is no less than their rounding
        ridge = np.maximum(RIDGE, 1e-13 * np.trace(unpack(second, size), axis1=1, axis2=2))
        return np.asarray(np.linalg.slogdet(covariance + ridge[:, None, None] * np.eye(size))[1])


def _splits(
    rows: _Rows, share: Array, sums: Array, rng: np.random.Generator
) -> list[tuple[float, Array]]:
    """Ways to halve the rows of a component with these sums: what each gains, and one of its
    halves."""
    own = np.flatnonzero(share > 1e-3 * share.max(initial=0.0))
    if len(own) < 4:
        return []
    masks = np.array(list(_halves(rows.U[own], share[own], rng)))
    halves = np.zeros((len(masks), len(share)), bool)
    halves[:, own] = masks
    one = (masks * share[own]) @ rows.products[own]
    gains = rows.costs(sums[None]) - rows.costs(one) - rows.costs(sums - one)
    return list(zip(gains.tolist(), halves, strict=True))


def _halves(U: Array, share: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Two clusters; the sides of the longest axis; the inner and the outer rows; a small cluster
    and the rest, such as an arc of a ring."""
    p = share / share.sum()
    centred = U - p @ U
    deviation = np.sqrt(p @ centred**2 + RIDGE)
    scaled = centred / deviation
    assigned, _ = lloyd(scaled, share, plus_plus(scaled, share, 2, rng, None), 10, None)
    yield np.asarray(assigned == 1)
    axis = np.linalg.svd(scaled * np.sqrt(p)[:, None], full_matrices=False)[2][0]
    yield np.asarray(scaled @ axis > 0)
    distance = (scaled**2).sum(axis=1)
    yield np.asarray(distance > np.median(distance))
    if len(U) > 4 * PARTS:
        assigned, _ = lloyd(scaled, share, plus_plus(scaled, share, PARTS, rng, None), 10, None)
        for part in range(PARTS):
            yield np.asarray(assigned == part)
