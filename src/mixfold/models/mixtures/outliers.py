"""A few rows far away from all others: the components that they take for themselves, and where
most rows are without them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from mixfold.contracts import Array, Block, Context, Event, Pilot
from mixfold.families.component import ComponentFamily, dense_rows
from mixfold.math.frame import FAR_AWAY, Frame, far_rows
from mixfold.models.mixtures.rows import take_rows

# rows that such a component has, at least and at most, in rows of average weight
_LEAST, _SINGLE, _MOST = 0.5, 1.5, 3.5
# standard deviations from the mean at which a row is looked at, which is far for any table
_FAR_FOR_ONE_COLUMN = 10.0
# in units of the spread of most rows: wider than that are no components without rows far away
_WIDE = 3.0
# share of all rows that are few
_FEW = 0.01
# entries of the pilot that tell where most rows are
_ENTRIES = 2**20


# what tells where most rows of a sample are: a rule of the family, or ``bulk_of``
BulkRule = Callable[[Array, Array], Frame]


# what was found for a pilot, the last rule and the last frame: it is asked in every pass of every
# start
_KNOWN: WeakKeyDictionary[Pilot, dict[str, tuple[Any, Any]]] = WeakKeyDictionary()


def _once(
    pilot: Pilot, what: str, given: Any, find: Callable[[Any, Pilot], Any],
    same: Callable[[Any, Any], bool] = operator.is_,
) -> Any:  # fmt: skip
    """``find(given, pilot)``, found once as long as the same is given."""
    known = _KNOWN.setdefault(pilot, {})
    found = known.get(what)
    if found is None or not same(found[0], given):
        found = known[what] = given, find(given, pilot)
    return found[1]


def bulk_of_rows(rule: BulkRule, pilot: Pilot) -> Frame | None:
    """Where most rows are, if any row of the whole table is far away from them."""
    found: Frame | None = _once(pilot, "bulk", rule, _look_at_bulk, operator.eq)
    return found


def _look_at_bulk(rule: BulkRule, pilot: Pilot) -> Frame | None:
    block = pilot.block
    step = max(1, block.X.shape[0] * block.X.shape[1] // _ENTRIES)
    # no fewer rows than tell a spread, however wide they are
    step = min(step, max(1, block.n_rows // 50))
    bulk = rule(dense_rows(block.X[::step]), block.weights()[::step])
    extremes = np.stack([pilot.minimum, pilot.maximum])
    return bulk if far_rows(extremes, bulk).any() else None


def near_rows(block: Block, bulk: Frame | None) -> Block:
    """The rows of a block that are not far away."""
    if bulk is None:
        return block
    return take_rows(block, np.flatnonzero(~far_rows(dense_rows(block.X), bulk)))


def without_far_rows(block: Block, bulk: Frame | None) -> Block:
    """The block with rows that are far away at weight zero."""
    if bulk is None:
        return block
    far = far_rows(dense_rows(block.X), bulk)
    return replace(block, weight=np.where(far, 0.0, block.weights())) if far.any() else block


@dataclass(frozen=True, slots=True)
class Place:
    """Where components are, in data coordinates: centres (K, D), how far their rows are from those,
    and the weight of the entries that centres are the means of, (K, D) or (K, 1)."""

    centres: Array
    extent: Array | float
    entries: Array


def outlier_events(
    rule: BulkRule, place: Callable[[], Place], counts: Array, context: Context,
    name: str = "component",
) -> tuple[Event, ...]:  # fmt: skip
    """What is told of components that rows far away from most others have taken for themselves.

    They are no spikes among other rows. ``place`` is asked only if it matters.
    """
    pilot = context.pilot
    if pilot is None or len(counts) == 1:
        return ()
    # a row of weight two is two rows; one of weight 0.1, in a table of such, is a row
    unit = pilot.total_weight / pilot.total_rows
    if _is_complete(pilot) and not _few(counts / unit).any():
        return ()
    where = place()
    rows = np.broadcast_to(where.entries, where.centres.shape) / unit
    if not _few(rows).any():
        return ()
    bulk = bulk_of_rows(rule, pilot)
    if bulk is None:
        return ()
    reach = np.hypot(where.centres - bulk.origin, where.extent) / bulk.scale
    far = _few(rows) & (reach > FAR_AWAY)
    return tuple(
        _event(f"{name} {k}", int(k), int(np.argmax(np.where(far[k], reach[k], 0.0))),
               counts[k], rows[k], context)
        for k in np.flatnonzero(far.any(axis=1))
    )  # fmt: skip


def _few(rows: Array) -> Array:
    return np.asarray((rows > _LEAST) & (rows <= _MOST))


def _event(
    what: str, component: int, column: int, count: float, rows: Array, context: Context
) -> Event:
    assert context.pilot is not None
    total, single = context.pilot.total_weight, rows[column] <= _SINGLE
    all_rows = count / total * context.pilot.total_rows
    whose = "a single row that is" if single else "few rows that are"
    if all_rows > rows[column] + _LEAST:  # others of its rows lack this entry
        whose = f"the mean of {what} in column {column} is that of {whose} far away from all others"
    elif single:
        whose = f"{what} holds {whose} far away from all others"
    else:
        whose = (
            f"{what} holds few rows (weight {count:.3g} of {total:.6g}) far away from all others"
        )
    name = what.split()[0]
    remedy = (
        f"remove that row if it is a mistake, or add a {name} to have as many for the other rows"
        if single
        else f"remove these rows if they are mistakes, or add a {name} for each to have as many "
        "for the other rows"
    )
    return Event("outlier", f"{whose}: {remedy}", context.iteration, component)


def lone(events: tuple[Event, ...], n_components: int) -> Array:
    """Which components (K,) such events speak of."""
    which = np.zeros(n_components, bool)
    which[[event.component for event in events if event.component >= 0]] = True
    return which


def may_be_outliers(frame: Frame, counts: Array, context: Context) -> Array:
    """Of which mixtures (C,), with counts (C, K), more than these numbers has to be asked before
    nothing can be told."""
    pilot = context.pilot
    if pilot is None or counts.shape[1] == 1:
        return np.zeros(len(counts), bool)
    if not _is_complete(pilot) or _has_far_extremes(frame, pilot):
        return np.ones(len(counts), bool)
    return np.asarray(_few(counts / (pilot.total_weight / pilot.total_rows)).any(axis=1))


def _is_complete(pilot: Pilot) -> bool:
    """Whether no row of the whole table lacks an entry."""
    return bool(_once(pilot, "complete", None, _count_entries))


def _count_entries(_: None, pilot: Pilot) -> bool:
    return bool((pilot.observed == pilot.total_rows).all())


def _has_far_extremes(frame: Frame, pilot: Pilot) -> bool:
    return bool(_once(pilot, "extremes", frame, _look_at_extremes))


def _look_at_extremes(frame: Frame, pilot: Pilot) -> bool:
    extremes = np.stack([pilot.minimum, pilot.maximum])
    far = np.nanmax(np.abs((extremes - frame.origin) / frame.scale)) > _FAR_FOR_ONE_COLUMN
    return bool(far)


def tell_of_outliers(
    family: ComponentFamily, point: Callable[[], Any], stats: Any, context: Context
) -> tuple[Event, ...]:
    """The same of the components of a mixture, whose parameters ``point`` gives."""

    def place() -> Place:
        components = point()
        centres = components.frame.leave(components.means)
        entries = family.entries(stats.components, stats.counts)
        return Place(centres, family.extent(components), entries)

    told = outlier_events(family.bulk, place, stats.counts, context)
    if told and family.shared_extent(point()) is None:
        return told
    # by a prior the far rows of a component of their own may widen the covariance of all, and no
    # number of components mends that
    return _tell_of_wide(family, point(), context) or told


def _tell_of_wide(family: ComponentFamily, components: Any, context: Context) -> tuple[Event, ...]:
    """What is told of a covariance, of one component or of all, that is that of rows far away."""
    pilot, frame = context.pilot, components.frame
    if pilot is None or components.n_components == 1:
        return ()
    if not _has_far_extremes(frame, pilot):
        return ()  # nearly always: no further look at the rows
    bulk = bulk_of_rows(family.bulk, pilot)
    if bulk is None:
        return ()
    far = np.count_nonzero(far_rows(dense_rows(pilot.block.X), bulk))
    if far > max(_MOST, _FEW * pilot.block.n_rows):
        return ()
    shared = family.shared_extent(components)
    extent = (family.extent(components) if shared is None else shared[None]) / bulk.scale
    which = np.flatnonzero((extent > _WIDE).any(axis=1))
    return tuple(_wide_event(k, extent[k], shared is not None, context) for k in which.tolist())


def _wide_event(component: int, extent: Array, shared: bool, context: Context) -> Event:
    column = int(np.argmax(extent))
    whose = "that all components share" if shared else f"of component {component}"
    remedy = (
        "give each component a covariance" if shared else "add a component for each, to have one"
    )
    message = (
        f"the variance of column {column} {whose} is that of a few rows far away from all others: "
        f"remove these rows if they are mistakes, or {remedy} of its own"
    )
    return Event("outlier", message, context.iteration, -1 if shared else component)
