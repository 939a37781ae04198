"""Checks of component labels given beside the rows."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_labels(labels: Any, n_components: int) -> Any:
    """Component labels as integers from -1 (unknown) to n_components - 1; names of columns pass."""
    if labels is None or isinstance(labels, str):
        return labels
    values = np.asarray(labels)
    if values.dtype.kind == "f":
        unknown = np.isnan(values)
        if not np.all(unknown | (values == np.round(values))):
            raise ValueError("component_labels must be whole numbers, -1 or NaN where unknown")
        values = np.where(unknown, -1, values).astype(np.int64)
    if values.dtype.kind not in "iub":
        raise ValueError(
            f"component_labels must be whole numbers, -1 where unknown; got dtype {values.dtype}"
        )
    bad = np.flatnonzero((values < -1) | (values >= n_components))
    if bad.size:
        raise ValueError(
            "component_labels must lie between -1 (unknown) and n_components - 1 = "
            f"{n_components - 1}; row {bad[0]} has {values.ravel()[bad[0]]}"
        )
    return values.astype(np.int64)
