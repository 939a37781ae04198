"""Starts made of a fit with as many components: two of them merged and another one split, or one
made as wide as all rows.

Which ones is judged by Gaussians in the coordinates of the starts, whatever the family: a split
gains what two Gaussians describe its rows better than one, a merger loses as much. Whether the
result is better is for the objective to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array, Block, Pilot
from mixfold.families.component import dense_rows
from mixfold.math.seeding import distinct, fill_by_cluster, lloyd, plus_plus
from mixfold.math.softmax import normalise
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
    costs = np.array([_cost(U, shares[:, k], total) for k in range(K)])
    losses = sorted(
        (_cost(U, shares[:, i] + shares[:, j], total) - costs[i] - costs[j], i, j)
        for i in range(K)
        for j in range(i + 1, K)
    )[: 2 * PROPOSALS]
    splits = [_splits(U, shares[:, k], total, costs[k], rng) for k in range(K)]
    found: list[tuple[float, tuple[int, int, Array, int]]] = []
    for loss, i, j in losses:
        keep, lose = (i, j) if shares[:, i].sum() >= shares[:, j].sum() else (j, i)
        for k in range(K):
            if k not in (i, j):
                found += [(gain - loss, (keep, lose, half, k)) for gain, half in splits[k]]
        both = shares[:, i] + shares[:, j]
        for gain, half in _splits(U, both, total, loss + costs[i] + costs[j], rng):
            if not _divides(half, shares[:, i], shares[:, j]):
                found.append((gain - loss, (keep, lose, half, keep)))
    found.sort(key=lambda pair: -pair[0])
    least = -HOPELESS * total
    moves = [_move(resp, *move) for gain, move in found[:PROPOSALS] if gain > least]
    return moves + _widenings(U, weight, resp, costs)


def _move(resp: Array, keep: int, lose: int, half: Array, source: int) -> Array:
    """One component takes the rows of another, which is given half of those of a third."""
    moved = resp.copy()
    moved[:, keep] += moved[:, lose]
    moved[:, lose] = 0.0
    part = np.where(half, moved[:, source], 0.0)
    moved[:, lose] += part
    moved[:, source] -= part
    return moved


def _widenings(U: Array, weight: Array, resp: Array, costs: Array) -> list[Array]:
    """One component as wide as all rows, for those between the others; these stay as they are.

    The components with the least to lose are tried, judged by what their rows cost then.
    """
    K, total = resp.shape[1], float(weight.sum())
    counts = weight @ resp
    wide = 0.5 * _log_volume(U, weight / total)
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


def _cost(U: Array, share: Array, total: float) -> float:
    """What a Gaussian of some rows costs: minus its log-likelihood, but for constants."""
    count = share.sum()
    if count <= 0:
        return 0.0
    return float(count * (0.5 * _log_volume(U, share / count) - np.log(count / total)))


def _log_volume(U: Array, share: Array) -> float:
    """ln|S| of the covariance of weighted rows, of which a ridge keeps spikes from gaining."""
    centred = U - share @ U
    if U.shape[1] > FULL:
        return float(np.log(share @ centred**2 + RIDGE).sum())
    covariance = (centred * share[:, None]).T @ centred
    # a row far away has squares that swallow the ridge: it is no less than their rounding
    ridge = max(RIDGE, 1e-13 * float(np.trace(covariance)))
    return float(np.linalg.slogdet(covariance + ridge * np.eye(len(covariance)))[1])


def _splits(
    U: Array, share: Array, total: float, cost: float, rng: np.random.Generator
) -> list[tuple[float, Array]]:
    """Ways to halve the rows of a component: what each gains, and one of its halves."""
    own = np.flatnonzero(share > 1e-3 * share.max(initial=0.0))
    if len(own) < 4:
        return []
    found = []
    for mask in _halves(U[own], share[own], rng):
        half = np.zeros(len(U), bool)
        half[own[mask]] = True
        one, other = np.where(half, share, 0.0), np.where(half, 0.0, share)
        found.append((cost - _cost(U, one, total) - _cost(U, other, total), half))
    return found


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
