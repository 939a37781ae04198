"""What source 003 says of the errors of its classifiers, asked of many runs instead of one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixfold.experiments.table import Cell, Check

# Components of each digit that the source chooses by its validation images.
CHOICE = 15


def chosen(validation: Sequence[Cell], components: Sequence[int]) -> Check:
    """Whether the source's choice has the lowest mean, and how often in single runs."""
    best = components[int(np.argmin([cell.ours for cell in validation]))]
    return Check(
        f"the source's choice, {CHOICE} components of each digit, has the lowest validation error",
        best == CHOICE,
        f"{_listed(validation)}; in single runs, {_lowest(validation, components)}",
    )


def rises_again(test: Sequence[Cell]) -> Check:
    """Whether the most components are too many."""
    claim = "the test error rises again with the last K, as in the source"
    return Check(claim, test[-1].ours > test[-2].ours, _listed(test))


def _listed(cells: Sequence[Cell]) -> str:
    """Means and their standard errors."""
    parts = (f"{c.ours:.2f} ± {c.spread / np.sqrt(len(c.values)):.2f}" for c in cells)
    return ", ".join(parts) + " %, with standard errors of the means"


def _lowest(cells: Sequence[Cell], components: Sequence[int]) -> str:
    """How often each number of components has the lowest error of its run, alone or not."""
    values = np.array([cell.values for cell in cells])
    shares = np.mean(values == values.min(axis=0), axis=1)
    return ", ".join(
        f"{K} components are lowest in {100 * share:.0f} %"
        for K, share in zip(components, shares, strict=True)
    )
