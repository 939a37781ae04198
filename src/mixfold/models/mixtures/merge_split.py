"""Moves of a Bayesian mixture: two components that share rows merged, one that hides two split,
one made anew with more factors.

Both make parameters from which a climb starts; whether they are kept is the objective's affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array, Context, Pilot, Stats
from mixfold.families.component import dense_rows
from mixfold.math.seeding import lloyd, plus_plus
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.mixture import MixtureStats, Started
from mixfold.models.mixtures.rows import informative

if TYPE_CHECKING:
    from mixfold.models.mixtures.bayes_mixture import BayesMixture, BayesParams

# proposals of each kind in one round
CANDIDATES = 5
# a component with less than this many rows is not in use
IN_USE = 0.5
# rows of a sample that a split is planned on
SPLIT_ROWS = 2000


@dataclass(frozen=True, slots=True)
class _Rows:
    """A sample: rows, their view without holes, weights, responsibilities (n, K)."""

    X: Array
    U: Array
    weight: Array
    resp: Array
    log_joint: Array


def proposals(
    model: BayesMixture,
    params: BayesParams,
    stats: MixtureStats,
    pilot: Pilot,
    rng: np.random.Generator,
) -> Iterator[Any]:
    """Parameters after a merge or a split, made one by one as they are asked for."""
    rows = _sample(model, params, pilot)
    used = np.flatnonzero(stats.counts > IN_USE)
    if model.conjugate.sums_can_merge:
        for pair in _overlapping(rows, used):
            yield _merged(model, params, stats, pair, Context(pilot, rng))
    else:
        for pair in [*_overlapping(rows, used), *_small(rows, used)]:
            resp = np.zeros((len(rows.U), 2))
            resp[:, 0] = rows.resp[:, pair].sum(axis=1)
            yield _made_anew(model, params, stats, pair, rows, resp, pilot)
        cramped = model.conjugate.cramped(params.components, stats.counts)
        for k in np.intersect1d(used, cramped):
            resp = rows.resp[:, [k]]
            yield _made_anew(model, params, stats, (int(k),), rows, resp, pilot)
    free = np.flatnonzero(stats.counts <= IN_USE)
    if free.size:
        slot = int(free[0])
        for k, resp in _splits(model, params, rows, used, slot, rng):
            if model.conjugate.sums_can_merge:
                yield _started(model, params, rows, resp, pilot)
            else:
                pair = (k, slot)
                yield _made_anew(model, params, stats, pair, rows, resp[:, pair], pilot)


def _merged(
    model: BayesMixture, params: BayesParams, stats: MixtureStats, pair: tuple[int, int],
    context: Context,
) -> Any:  # fmt: skip
    """The parameters with the rows of two components in the first of them."""
    keep, lose = pair
    counts = stats.counts.copy()
    counts[keep], counts[lose] = counts[keep] + counts[lose], 0.0
    moments = merge_moments(model.family.about_frame(stats.components), keep, lose)
    merged = replace(stats, counts=counts, components=moments)
    return model.update(params, merged, context).params


def _made_anew(
    model: BayesMixture, params: BayesParams, stats: MixtureStats, chosen: tuple[int, ...],
    rows: _Rows, resp: Array, pilot: Pilot,
) -> Any:  # fmt: skip
    """The parameters with these components made anew, of rows of the sample by ``resp``, a column
    for each."""
    frame, which = params.components.frame, np.array(chosen)
    some = np.flatnonzero(resp.sum(axis=1) > 1e-6)
    resp = resp[some] * rows.weight[some, None]
    total = float(stats.counts[which].sum())
    started = Started(rows.X[some], rows.U[some], resp, total)
    family = model.conjugate.renewed(params.components, which)
    moments = replace(model, family=family).sample_moments(frame, started, resp)
    share = total / max(float(resp.sum()), np.finfo(float).tiny)
    fresh = family.posterior(moments.scale(share), params.prior, frame)
    counts = stats.counts.copy()
    counts[which] = resp.sum(axis=0) * share
    state = model.mixing.posterior(counts, model.alpha_of(params), params.mixing)
    return replace(
        params,
        mixing=state,
        components=model.conjugate.replace_posteriors(params.components, which, fresh),
        counts=counts,
        weights=model.mixing.mean(state),
    )


def _started(
    model: BayesMixture, params: BayesParams, rows: _Rows, resp: Array, pilot: Pilot
) -> Any:
    """Parameters that start from these responsibilities of the sample."""
    started = Started(rows.X, rows.U, resp * rows.weight[:, None], pilot.total_weight)
    return model.from_shares(params, started)


def _sample(model: BayesMixture, params: BayesParams, pilot: Pilot) -> _Rows:
    block = informative(pilot.block)
    if block.n_rows > SPLIT_ROWS:  # evenly, so that nothing is drawn
        chosen = np.linspace(0, block.n_rows - 1, SPLIT_ROWS).astype(int)
        y = None if block.y is None else block.y[chosen]
        block = replace(block, X=block.X[chosen], y=y, weight=block.weights()[chosen])
    log_joint = model.log_joint(model.prepare(params), block)
    _, resp = normalise(log_joint)
    X = dense_rows(block.X)
    U = model.family.view(params.components.frame, X)
    return _Rows(X, np.where(np.isnan(U), 0.0, U), block.weights(), resp, log_joint)


def _overlapping(rows: _Rows, used: Array) -> list[tuple[int, int]]:
    """Pairs of components that share most of their rows, the larger first."""
    resp = rows.resp[:, used] * np.sqrt(rows.weight)[:, None]
    together = resp.T @ resp
    size = np.sqrt(np.maximum(np.diagonal(together), np.finfo(float).tiny))
    share = np.triu(together / size[:, None] / size, 1)
    order = np.argsort(-share, axis=None)[:CANDIDATES]
    pairs = [np.unravel_index(flat, share.shape) for flat in order if share.flat[flat] > 1e-6]
    mass = rows.resp.sum(axis=0)
    found = [(int(used[i]), int(used[j])) for i, j in pairs]
    return [(i, j) if mass[i] >= mass[j] else (j, i) for i, j in found]


def _small(rows: _Rows, used: Array) -> list[tuple[int, int]]:
    """The smallest components that share their rows with no other, each with the one that likes
    them next best."""
    mass = (rows.resp * rows.weight[:, None]).sum(axis=0)
    found = []
    for k in used[np.argsort(mass[used], kind="stable")][: min(CANDIDATES, len(used) - 1)]:
        others = used[used != k]
        mine = rows.resp[:, k] * rows.weight
        if mine.sum() > 0:
            found.append((int(others[(mine @ rows.log_joint[:, others]).argmax()]), int(k)))
    return found


def merge_moments(moments: Any, keep: int, lose: int) -> Any:
    """Moments (about one origin) with the rows of two components in one of them."""
    if isinstance(moments, tuple):
        return tuple(merge_moments(part, keep, lose) for part in moments)
    if isinstance(moments, Stats):
        changed = {
            f.name: merge_moments(getattr(moments, f.name), keep, lose)
            for f in fields(moments)
            if not f.metadata.get("constant")
        }
        return replace(moments, **changed)
    if np.ndim(moments) < 2:  # shared by all components
        return moments
    array = np.array(moments)
    array[keep] += array[lose]
    array[lose] = 0.0
    return array


def _splits(
    model: BayesMixture,
    params: BayesParams,
    rows: _Rows,
    used: Array,
    slot: int,
    rng: np.random.Generator,
) -> list[tuple[int, Array]]:
    """Components and responsibilities with them in two halves, by how much the evidence gains."""
    owner = rows.resp.argmax(axis=1)
    found = []
    for k in used:
        mine = np.flatnonzero(owner == k)
        if len(mine) < 4:
            continue
        half = _halves(rows.U[mine], rows.weight[mine], rng)
        if half.all() or not half.any():
            continue
        resp = rows.resp.copy()
        moved = mine[half]
        resp[moved, slot] += resp[moved, k]
        resp[moved, k] = 0.0
        found.append((_gain(model, params, rows, mine, half), int(k), resp))
    found.sort(key=lambda one: -one[0])
    return [(k, resp) for gain, k, resp in found[:CANDIDATES] if gain > 0]


def _halves(U: Array, weight: Array, rng: np.random.Generator) -> Array:
    """Two clusters of points, as a mask of one of them."""
    centres = plus_plus(U, weight, 2, rng, None)
    assigned, _ = lloyd(U, weight, centres, 10, None)
    return np.asarray(assigned == 1)


def _gain(model: BayesMixture, params: BayesParams, rows: _Rows, mine: Array, half: Array) -> float:
    """Evidence of the rows of one component in two halves, less that of the whole."""
    frame = params.components.frame
    weight = rows.weight[mine, None]

    def evidence(resp: Array) -> float:
        started = Started(rows.X[mine], rows.U[mine], resp, float(weight.sum()))
        moments = model.sample_moments(frame, started, resp)
        return model.conjugate.evidence(moments, params.prior, frame)

    two = np.stack([~half, half], axis=1) * weight
    return evidence(two) - evidence(weight)
