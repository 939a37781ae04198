"""Repair of components without rows: move them to other rows, in the end drop them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mixfold.contracts import Array, Context, Event, Update
from mixfold.families.component import dense_rows
from mixfold.math.softmax import normalise

if TYPE_CHECKING:
    from mixfold.models.mixtures.mixture import Mixture, MixtureParams

# how often a component that lost its rows is moved before it is dropped
MAX_RESEEDS = 3


def find_empty_components(
    model: Mixture, params: MixtureParams, counts: Array, context: Context
) -> Array:
    """The components that have too few rows to be estimated."""
    least = least_counts(model, counts, context)
    return np.flatnonzero((counts <= least) & (params.weights > 0))


def least_counts(model: Mixture, counts: Array, context: Context) -> Array:
    """What components (K,) must have more than, where all rows together are ``counts.sum()``."""
    least = np.full(len(counts), 10 * np.finfo(float).eps * counts.sum())
    if context.pilot is not None and model.reseed:
        # a row of weight two is two rows; one of weight 0.1, in a table of such, is a row
        unit = min(1.0, context.pilot.total_weight / context.pilot.total_rows)
        least = np.maximum(least, model.family.least_rows(len(counts)) * unit)
    return least


def repair_empty_components(
    model: Mixture, params: MixtureParams, empty: Array, events: tuple[Event, ...], context: Context
) -> Update[MixtureParams]:
    """Components without rows moved to rows that the mixture explains badly.

    One that was moved often enough is dropped instead.
    """
    moved = [e.component for e in context.events if e.kind == "reseed"]
    can_move = model.reseed and context.pilot is not None
    tired = np.array([not can_move or moved.count(k) >= MAX_RESEEDS for k in empty])
    if tired.any():
        params, told = _drop_components(params, empty[tired], context)
        events += told
    if not tired.all():
        params, told = _move_components(model, params, empty[~tired], context)
        events += told
    return Update(params, events, monotone=False)


def _drop_components(
    params: MixtureParams, tired: Array, context: Context
) -> tuple[MixtureParams, tuple[Event, ...]]:
    """Without some components: they have weight zero from here on."""
    if context.pilot is not None and context.pilot.block.y is not None:
        # rows that are known to belong to a component have nowhere else to go
        tired = tired[params.weights[tired] <= 10 * np.finfo(float).eps]
    if not np.delete(params.weights, tired).any():  # somebody must own the rows
        tired = tired[tired != np.argmax(params.weights)]
    weights = params.weights.copy()
    weights[tired] = 0.0
    told = _component_events("drop", "lost its rows and has weight 0 from here on", tired, context)
    return replace(params, weights=weights / weights.sum()), told


def _move_components(
    model: Mixture, params: MixtureParams, empty: Array, context: Context
) -> tuple[MixtureParams, tuple[Event, ...]]:
    assert context.pilot is not None
    pilot = context.pilot.block
    log_density, _ = normalise(model.log_joint(model.prepare(params), pilot))
    worst = np.argsort(log_density)[: max(len(empty), len(log_density) // 20)]
    chosen = context.rng.choice(worst, len(empty), replace=len(worst) < len(empty))
    points = params.components.frame.enter(dense_rows(pilot.X[chosen]))
    points = np.where(np.isnan(points), 0.0, points)
    components = model.family.place(params.components, empty, points)
    weights = params.weights.copy()
    weights[empty] = 1.0 / (10 * model.n_components)
    what = "lost its rows and was moved to badly explained rows"
    told = _component_events("reseed", what, empty, context)
    return replace(params, weights=weights / weights.sum(), components=components), told


def _component_events(kind: str, what: str, which: Array, context: Context) -> tuple[Event, ...]:
    return tuple(Event(kind, f"component {k} {what}", context.iteration, int(k)) for k in which)
