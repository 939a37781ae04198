"""What is told of components whose covariance is at its floor."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from mixfold.contracts import Array, Context, Event, Pilot
from mixfold.families.component import ComponentFamily, dense_rows
from mixfold.math.seeding import distinct

# rows of a pilot among which copies are looked for
_LOOKED_AT = 5000
# what was counted: it is asked in every step in which a component is at the floor
_COUNTED: WeakKeyDictionary[Pilot, float] = WeakKeyDictionary()


def floor_events(
    family: ComponentFamily, components: Any, touched: Array, counts: Array, context: Context
) -> tuple[Event, ...]:
    """An event for each component at the floor: 'floor' if it stands on so few rows that it may be
    an accident of the fit, 'thin' if it has many rows which have no spread in some direction."""
    if not touched.any():
        return ()
    few = np.ones(len(touched), bool)
    if context.pilot is not None:
        n_rows = count_distinct_rows(context.pilot)
        rows = counts * n_rows / context.pilot.total_weight
        few = family.has_few_rows(components, rows, n_rows)
    return tuple(
        Event("floor", family.floor_message(int(k)), context.iteration, int(k))
        if few[k]
        else Event("thin", _describe_thin(family, int(k), counts[k]), context.iteration, int(k))
        for k in np.flatnonzero(touched)
    )


def count_distinct_rows(pilot: Pilot) -> float:
    """Rows that are no copies: a row of weight two, or one that is there twice, is one row."""
    known = _COUNTED.get(pilot)
    if known is None:
        block, known = pilot.block, float(pilot.total_rows)
        if block.n_rows <= _LOOKED_AT:
            rows, _, _ = distinct(dense_rows(block.X), block.weights(), None)
            known = pilot.total_rows * len(rows) / block.n_rows
        _COUNTED[pilot] = known
    return known


def _describe_thin(family: ComponentFamily, component: int, rows: float) -> str:
    return (
        f"component {component} has about {rows:.0f} rows without spread in some direction (equal "
        f"values, or rows on a line or plane): its variance there is the floor of {family.floor:g} "
        "relative to the data, and its density as high as that allows"
    )
