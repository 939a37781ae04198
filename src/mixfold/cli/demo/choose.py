"""The number of components and the covariance type with the lowest BIC."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mixfold.contracts import Array


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen model, and the BIC of every candidate by covariance type and size."""

    model: Any
    bic: dict[str, dict[int, float]]


def choose(X: Array, kinds: Iterable[str], sizes: Iterable[int]) -> Choice:
    """Fit a Gaussian mixture of each kind and size; keep the one with the lowest BIC.

    A fit in which a component collapsed on a few rows is passed over: its likelihood says how
    small the floor of the variances is, not how well the model explains the table.
    """
    tried = list(sizes)
    bic: dict[str, dict[int, float]] = {}
    best, lowest = None, float("inf")
    for kind in kinds:
        bic[kind] = {}
        for size in tried:
            model = _fit(X, kind, size)
            if model.events_:
                continue
            bic[kind][size] = value = float(model.bic())
            if value < lowest:
                best, lowest = model, value
    return Choice(best, bic)


def _fit(X: Array, kind: str, size: int) -> Any:
    import warnings

    from mixfold import GaussianMixture
    from mixfold.estimators.base import DegenerateWarning

    with warnings.catch_warnings():
        # What it warns of is in events_, which decides.
        warnings.simplefilter("ignore", DegenerateWarning)
        return GaussianMixture(size, covariance_type=kind, random_state=0).fit(X)
