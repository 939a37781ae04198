"""Row weights and labels: read, checked and cut into blocks along with the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.sources.checks import (
    FLOAT64,
    Place,
    check_labels,
    check_weight,
    nothing_weighs,
    row_of_x,
)


@dataclass(frozen=True, slots=True)
class Sides:
    """Arrays of one entry per row, or None."""

    weight: Array | None = None
    y: Array | None = None

    def part(self, first: int, last: int) -> Sides:
        """Weights and labels of the rows ``first:last``."""
        return Sides(
            None if self.weight is None else self.weight[first:last],
            None if self.y is None else self.y[first:last],
        )

    def check_length(self, n_samples: int) -> None:
        """One entry per row."""
        for name, values in (("sample_weight", self.weight), ("y", self.y)):
            if values is not None and len(values) != n_samples:
                raise ValueError(
                    f"{name} has {len(values)} entries, the data have {n_samples} rows; give one "
                    "entry per row, in the same order."
                )

    def check_values(self, start: int = 0, whole: bool = True, place: Place = row_of_x) -> Sides:
        """Self, once every value was found to be legal.

        ``whole`` says that these are all the rows there are, so that something must weigh.
        """
        if self.weight is not None:
            check_weight(self.weight, start, place)
            if whole and not self.weight.any():
                raise nothing_weighs()
        if self.y is not None:
            check_labels(self.y, start, place)
        return self


def sides_of(weight: Any, y: Any, n_samples: int | None) -> Sides:
    """Weights and labels given as arrays, checked. Names of columns are left alone.

    Parameters
    ----------
    weight, y : array-like, str or None
    n_samples : int or None
        None defers the check of the lengths to the end of a pass.
    """
    sides = Sides(_weight(weight), _labels(y))
    if n_samples is not None:
        sides.check_length(n_samples)
    return sides.check_values()


def _weight(weight: Any) -> Array | None:
    if weight is None or isinstance(weight, str):
        return None
    values = np.asarray(weight)
    if values.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array: sample_weight has shape {values.shape}. "
            "Give one number per row."
        )
    try:
        if values.dtype.kind not in "fiubO":
            raise TypeError("convert it to float first")
        return values.astype(FLOAT64, copy=False)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"sample_weight must hold numbers, got type {values.dtype}: {error}."
        ) from error


def _labels(y: Any) -> Array | None:
    if y is None or isinstance(y, str):
        return None
    values = np.asarray(y)
    if values.ndim == 0:
        raise ValueError(f"y must have one entry per row, got the single value {y!r}.")
    return values


def refuse_names(what: str, columns: Any, weight: Any, y: Any) -> None:
    """Arrays have no column names to choose by."""
    named = {"sample_weight": isinstance(weight, str), "y": isinstance(y, str)}
    for name, wrong in ({"columns": columns is not None} | named).items():
        if wrong:
            raise ValueError(
                f"{name} chooses by name, but {what} has no column names. Give a table (pandas, "
                "polars, Arrow, Parquet, CSV), or select from the array itself."
            )
