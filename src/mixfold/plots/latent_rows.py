"""The rows of a plot of latents, for ``latents`` and ``discriminant``: positions, components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.plots.scatter import Groups, group_by_label


@dataclass(frozen=True, slots=True)
class LatentRows:
    """Expected latents (n, d) of the ``chosen`` of ``n_given`` rows, in their components."""

    latents: Array
    factors: tuple[int, int]
    components: Groups
    chosen: Array
    n_given: int

    @property
    def plane(self) -> Array:
        """The two factors that are drawn, (n, 2)."""
        return self.latents[:, list(self.factors)]


def latent_rows(model: Any, X: Any, factors: tuple[int, int], component: int | None) -> LatentRows:
    """The rows X, or those of one component at the factors that they have in it."""
    latents = np.asarray(model.transform(X), dtype=float)
    _check_factors(factors, latents.shape[1])
    parts, n = components_of(model, X), len(latents)
    if component is None:
        return LatentRows(latents, factors, parts, np.arange(n), n)
    rows = _rows_of(component, parts)
    if "per_component" in signature(model.transform).parameters:
        latents = np.asarray(model.transform(X, per_component=True)[:, component], dtype=float)
    return LatentRows(latents[rows], factors, parts.at(rows), rows, n)


def component_teller(model: Any) -> Callable[[Any], Array] | None:
    """What tells the components of rows; None if there is nothing to tell.

    ``predict`` of a supervised mixture gives classes, or outputs, and ``predict_component`` these.
    """
    if len(getattr(model, "weights_", ())) < 2:
        return None
    return getattr(model, "predict_component", getattr(model, "predict", None))


def groups_of(model: Any, X: Any, labels: Any = None) -> Groups:
    """Rows by their labels, else by component, or by cluster where a model has clusters only."""
    if labels is not None:
        return group_by_label(labels, np.shape(X)[0])
    if (
        component_teller(model) is None
        and hasattr(model, "n_clusters")
        and hasattr(model, "predict")
    ):
        codes = np.asarray(model.predict(X))
        return Groups(codes, [f"cluster {k}" for k in range(int(codes.max(initial=0)) + 1)])
    return components_of(model, X)


def components_of(model: Any, X: Any) -> Groups:
    """The most probable component of each row; a single group if there is only one."""
    tell = component_teller(model)
    if tell is None:
        return Groups(np.zeros(np.shape(X)[0], dtype=int), [""])
    return Groups(np.asarray(tell(X)), [f"component {k}" for k in range(len(model.weights_))])


def _check_factors(factors: tuple[int, int], size: int) -> None:
    if len(factors) != 2 or not all(0 <= factor < size for factor in factors):
        remedy = " The model needs two factors at least." if size < 2 else ""
        raise ValueError(
            f"factors must be two positions from 0 to {size - 1}; got {tuple(factors)!r}.{remedy}"
        )


def _rows_of(component: int, parts: Groups) -> Array:
    if not 0 <= component < len(parts.names):
        raise ValueError(f"component must be from 0 to {len(parts.names) - 1}; got {component}.")
    rows = np.flatnonzero(parts.codes == component)
    if rows.size == 0:
        raise ValueError(f"component: none of the rows is of component {component}; draw another.")
    return rows
