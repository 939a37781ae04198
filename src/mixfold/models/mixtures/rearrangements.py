"""Starts made of a fit with as many components: two of them merged, another one split.

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
# a loss per unit of weight, by the Gaussians, beyond which a proposal is not tried
HOPELESS = 0.2
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
    for merged, half, slot, source in _plan(U, weight, resp, rng):
        keep, lose = merged
        moved = resp.copy()
        moved[:, keep] += moved[:, lose]
        moved[:, lose] = 0.0
        part = np.where(half, moved[:, source], 0.0)
        moved[:, slot] += part
        moved[:, source] -= part
        yield model._first(frame, Started(X, U, moved * weight[:, None], pilot.total_weight))


Proposal = tuple[tuple[int, int], Array, int, int]


def _plan(U: Array, weight: Array, resp: Array, rng: np.random.Generator) -> list[Proposal]:
    """Mergers (kept, emptied), rows that go to the emptied component, it, and whose rows they are;
    those with the largest gain first."""
    K = resp.shape[1]
    shares = resp * weight[:, None]
    costs = np.array([_cost(U, shares[:, k], weight.sum()) for k in range(K)])
    losses = sorted(
        (_cost(U, shares[:, i] + shares[:, j], weight.sum()) - costs[i] - costs[j], i, j)
        for i in range(K)
        for j in range(i + 1, K)
    )[: 2 * PROPOSALS]
    splits = [_split(U, shares[:, k], weight.sum(), costs[k], rng) for k in range(K)]
    found: list[tuple[float, Proposal]] = []
    for loss, i, j in losses:
        keep, lose = (i, j) if shares[:, i].sum() >= shares[:, j].sum() else (j, i)
        for k in range(K):
            if k not in (i, j):
                found.append((splits[k][0] - loss, ((keep, lose), splits[k][1], lose, k)))
        both = shares[:, i] + shares[:, j]
        gain, half = _split(U, both, weight.sum(), loss + costs[i] + costs[j], rng)
        if not _divides(half, shares[:, i], shares[:, j]):
            found.append((gain - loss, ((keep, lose), half, lose, keep)))
    found.sort(key=lambda pair: -pair[0])
    least = -HOPELESS * weight.sum()
    return [proposal for gain, proposal in found[:PROPOSALS] if gain > least]


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


def _split(
    U: Array, share: Array, total: float, cost: float, rng: np.random.Generator
) -> tuple[float, Array]:
    """The gain of the best of some ways to halve the rows of a component, and one of the halves."""
    own = np.flatnonzero(share > 1e-3 * share.max(initial=0.0))
    if len(own) < 4:
        return -np.inf, np.zeros(len(U), bool)
    best, half = -np.inf, np.zeros(len(U), bool)
    for mask in _halves(U[own], share[own], rng):
        chosen = np.zeros(len(U), bool)
        chosen[own[mask]] = True
        one, other = np.where(chosen, share, 0.0), np.where(chosen, 0.0, share)
        gain = cost - _cost(U, one, total) - _cost(U, other, total)
        if gain > best:
            best, half = gain, chosen
    return best, half


def _halves(U: Array, share: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Two clusters; the sides of the longest axis; the inner and the outer rows."""
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
