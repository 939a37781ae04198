"""What is told of components whose covariance is at its floor."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array, Context, Event
from mixfold.families.component import ComponentFamily


def floor_events(
    family: ComponentFamily, components: Any, touched: Array, counts: Array, context: Context
) -> tuple[Event, ...]:
    """An event for each component at the floor: 'floor' if it stands on so few rows that it may be
    an accident of the fit, 'thin' if it has many rows which have no spread in some direction."""
    if not touched.any():
        return ()
    pilot = context.pilot
    few = np.ones(len(touched), bool)
    rows = counts
    if pilot is not None:
        # a row of weight two is two rows; one of weight 0.1, in a table of such, is a row
        unit = min(1.0, pilot.total_weight / pilot.total_rows)
        rows = counts / unit
        few = family.has_few_rows(components, rows, pilot.total_weight / unit)
    return tuple(
        Event("floor", family.floor_message(int(k)), context.iteration, int(k))
        if few[k]
        else Event("thin", _describe_thin(family, int(k), rows[k]), context.iteration, int(k))
        for k in np.flatnonzero(touched)
    )


def _describe_thin(family: ComponentFamily, component: int, rows: float) -> str:
    return (
        f"component {component} has about {rows:.0f} rows without spread in some direction (equal "
        f"values, or rows on a line or plane): its variance there is the floor of {family.floor:g} "
        "relative to the data, and its density as high as that allows"
    )
