"""What is said about MORP and its rivals, and whether our cells say so too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mixfold.experiments import morp_runs as runs
from mixfold.experiments.morp_runs import CORRELATED, INVERSE, MAX, PRINCIPAL, RAW
from mixfold.experiments.reference import Reference, within_errors
from mixfold.experiments.table import Cell, Check

# Computed once with other code on other divisions of Reuters, at d = 50: F1 and AUC by method.
REFERENCE_DIM = 50
REFERENCE = {
    "I": {
        RAW: (0.489, 0.958), PRINCIPAL: (0.421, 0.913), CORRELATED: (0.484, 0.933),
        MAX: (0.491, 0.939), INVERSE: (0.496, 0.942),
    },
    "II": {
        RAW: (0.338, 0.958), PRINCIPAL: (0.400, 0.911), CORRELATED: (0.394, 0.902),
        MAX: (0.431, 0.917), INVERSE: (0.429, 0.909),
    },
}  # fmt: skip
# How many repeats those are means of is not known; one repeat is the least.
REFERENCE_REPEATS = 1
# "almost all" and "most" of a text, as shares
ALMOST, MOST = 0.75, 0.5


@dataclass(frozen=True, slots=True)
class Places:
    """Our cells by table, setting, measure, method and d."""

    cells: dict[tuple[str, str, str, str, int], Cell]
    names: tuple[str, ...]
    dims: tuple[int, ...]

    def at(self, name: str, setting: str, measure: str, method: str, d: int) -> Cell:
        return self.cells[name, setting, measure, method, d]


@dataclass(frozen=True, slots=True)
class Order:
    """One method clearly above another in a setting by a measure, at a share of all d."""

    better: str
    worse: str
    setting: str
    measure: str
    share: float
    dims: tuple[int, ...]

    def claim(self, name: str) -> str:
        often = {1.0: "at every d", ALMOST: "at almost every d", MOST: "at most d"}[self.share]
        where = f"at d = {self.dims[0]}" if len(self.dims) == 1 else often
        return (
            f"{name}, setting {self.setting}: {self.measure} of {self.better} is clearly above "
            f"that of {self.worse} {where}"
        )


def checks(places: Places) -> tuple[Check, ...]:
    """Agreement with other code, then the order of methods."""
    found = []
    if "Reuters" in places.names and REFERENCE_DIM in places.dims:
        found += [_agreement(places, j, measure) for j, measure in enumerate(runs.MEASURES)]
    return (*found, *(_ordered(places, name, order) for name, order in _orders(places)))


def _agreement(places: Places, j: int, measure: str) -> Check:
    """Both settings, all methods: one row of cells each."""
    mine = [
        [places.at("Reuters", setting, measure, method, REFERENCE_DIM) for method in means]
        for setting, means in REFERENCE.items()
    ]
    theirs = tuple(tuple(pair[j] for pair in means.values()) for means in REFERENCE.values())
    return within_errors(f"Reuters, {measure}", mine, Reference(REFERENCE_REPEATS, theirs))


def _orders(places: Places) -> Iterable[tuple[str, Order]]:
    dims, last = places.dims, places.dims[-1:]
    for name in places.names:
        yield name, Order(MAX, PRINCIPAL, "I", "F1", 1.0, dims)
        yield name, Order(INVERSE, PRINCIPAL, "I", "F1", 1.0, dims)
        yield name, Order(MAX, PRINCIPAL, "I", "AUC", ALMOST, dims)
        yield name, Order(CORRELATED, PRINCIPAL, "I", "F1", ALMOST, dims)
        yield name, Order(PRINCIPAL, CORRELATED, "II", "F1", MOST, dims)
        yield name, Order(PRINCIPAL, CORRELATED, "II", "F1", 1.0, last)
        yield name, Order(MAX, PRINCIPAL, "II", "F1", ALMOST, dims)
        yield name, Order(MAX, PRINCIPAL, "II", "F1", 1.0, last)
        yield name, Order(MAX, RAW, "II", "F1", 1.0, last)


def _ordered(places: Places, name: str, order: Order) -> Check:
    """Clearly is by more than two standard errors of the difference, repeat by repeat."""
    told, above = [], 0
    for d in order.dims:
        a, b = (
            places.at(name, order.setting, order.measure, method, d)
            for method in (order.better, order.worse)
        )
        gap, error = paired(a.values, b.values)
        above += gap > 2 * error
        told.append(f"{gap:+.3f} ± {error:.3f} at d = {d}")
    detail = "by " + ", ".join(told)
    return Check(order.claim(name), above >= order.share * len(order.dims), detail)


def paired(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """Mean difference over the same repeats, and its standard error."""
    gaps = np.subtract(a, b)
    error = float(gaps.std(ddof=1)) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
    return float(gaps.mean()), error
