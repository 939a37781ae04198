"""Starts made of several fits: of the components of all, as many are kept as one of them has.

A local maximum has some of its components right and others wrong, and different ones have others
wrong. Rows are shared among the components that are kept, and a start is made of these shares, so
that this serves every family. Whether the result is better is for the objective to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array, Block, Pilot
from mixfold.families.component import dense_rows
from mixfold.math.component_choice import choose_components
from mixfold.math.seeding import distinct, fill_by_cluster
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.rows import informative, take_rows

if TYPE_CHECKING:
    from mixfold.models.mixtures.mixture import Mixture

# rows of a sample that a start is made of, and those that components are chosen by: fewer of them
# where there are many components, but so many for each that is kept
ROWS, CHOOSING_ROWS, CHOOSING_NUMBERS, ROWS_EACH = 5000, 2000, 2**18, 20


def unions(model: Mixture, fits: Sequence[Any], pilot: Pilot) -> Iterator[Any]:
    """Parameters made of components of all fits, then of the first and each of the others.

    ``fits`` are parameters, the best first.
    """
    from mixfold.models.mixtures.mixture import Started

    block = informative(pilot.block)
    if model.n_components < 2 or block.y is not None or not model.given.free:
        return  # rows of known components, or a given start, say where components belong
    block = _evenly(block, ROWS)
    X, weight, _ = distinct(dense_rows(block.X), block.weights(), None)
    rows = Block(X, complete=block.complete)
    densities = [_log_density(model, params, rows) for params in fits]
    frame = fits[0].components.frame
    view = model.family.view(frame, X)
    for shares in share_rows(densities, weight):
        # the largest takes the place of the largest, where places have fixed weights
        resp = np.empty_like(shares)
        resp[:, np.argsort(-fits[0].weights, kind="stable")] = shares
        resp *= weight[:, None]
        U = fill_by_cluster(view, resp)
        yield model.from_shares(fits[0], Started(X, U, resp, pilot.total_weight))


def share_rows(densities: Sequence[Array], weight: Array) -> Iterator[Array]:
    """Shares (n, K) of rows, the largest component first, among components of several fits with
    log ``densities`` (n, K): of all, then of the first and each of the others.

    A choice that is a fit as it was is left out.
    """
    K = densities[0].shape[1]
    groups = [list(range(len(densities)))] if len(densities) > 2 else []
    groups += [[0, other] for other in range(1, len(densities))]
    for group in groups:
        together = np.concatenate([densities[i] for i in group], axis=1)
        some = _even_places(len(weight), max(CHOOSING_NUMBERS // together.shape[1], ROWS_EACH * K))
        chosen, a = choose_components(together[some], weight[some], K)
        if len(np.unique(chosen // K)) == 1:
            continue
        _, shares = normalise(together[:, chosen] + np.log(a))
        yield shares[:, np.argsort(-(weight @ shares), kind="stable")]


def _log_density(model: Mixture, params: Any, rows: Block) -> Array:
    """log p(x_n | k) (n, K); components without weight explain nothing."""
    reading = model.prepare(params)
    weights = np.broadcast_to(reading.log_weights, params.weights.shape)
    used = np.isfinite(weights)
    joint = model.log_joint(reading, rows)
    return np.where(used, joint - np.where(used, weights, 0.0), -np.inf)


def _evenly(block: Block, most: int) -> Block:
    """At most so many rows of a block, so that nothing is drawn."""
    if block.n_rows <= most:
        return block
    return take_rows(block, np.linspace(0, block.n_rows - 1, most).astype(int))


def _even_places(n: int, most: int) -> Array:
    most = min(most, CHOOSING_ROWS)
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)
