"""Components that a single row far away from all others has taken for itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array, Context, Event
from mixfold.families.component import ComponentFamily

# rows that such a component has at most
_ROWS = 1.5


def outlying(family: ComponentFamily, components: Any, counts: Array, context: Context) -> Array:
    """Which components (K,) hold one row that is far away from the bulk of the others."""
    far = family.far_away(components)
    if context.pilot is None or not far.any() or len(counts) == 1:
        return np.zeros(len(counts), bool)
    # a row of weight two is two rows; one of weight 0.1, in a table of such, is a row
    unit = context.pilot.total_weight / context.pilot.total_rows
    return np.asarray(far & (counts > 0) & (counts <= _ROWS * unit))


def outlier_events(lone: Array, context: Context) -> tuple[Event, ...]:
    """What is told of such components; they are no spikes among other rows."""
    return tuple(
        Event(
            "outlier",
            f"component {k} holds a single row that is far away from all others: remove that row "
            "if it is a mistake, or add a component to have as many for the other rows",
            context.iteration,
            int(k),
        )
        for k in np.flatnonzero(lone)
    )
