"""Columns that mixtures of Gaussians and of factor models set aside before a fit: constant ones,
and those that are exact affine functions of others (copies, other units, sums).

Their variance given the other columns is zero. In a fit to all columns every component would be
held at the floor of the variance, with one component or with many, and a degenerate fit could not
be told from a good one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Event
from mixfold.engine.loop import Fit
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.fitting import Survey
from mixfold.families.component import ComponentFamily, dense_rows
from mixfold.families.gaussian import GaussianFamily
from mixfold.families.product import Part
from mixfold.families.product.steps import ProductSteps
from mixfold.math.dependent_columns import DependentColumns, propose_dependent_columns

EVENT = "set-aside"
_SHOWN = 3


class SettingAside:
    """Base of estimators whose fits may set columns aside."""

    n_features_in_: int
    # densities that are compared with each other have to be of the same columns
    _keeps_all_columns: bool = False
    # what was set aside in the last fit, if anything
    _dependent: DependentColumns | None = None

    @property
    def _n_modelled(self) -> int:
        """Columns that the parameters speak of: all but those that were set aside."""
        return self.n_features_in_ if self._dependent is None else len(self._dependent.kept)

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = super()._state()  # type: ignore[misc]
        # a file says what was set aside only if anything was
        return {k: v for k, v in state.items() if v is not None or k != "_dependent"}


def find_dependent_columns(survey: Survey, some: Array | None = None) -> DependentColumns | None:
    """The columns to set aside, from the pilot; all rows have to obey, in a pass of their own.

    ``some`` are the columns that are looked at; None are all.
    """
    pilot = survey.pilot
    proposed = propose_dependent_columns(
        dense_rows(pilot.block.X), pilot.minimum, pilot.maximum, some
    )
    if proposed is None or not proposed.coefficients.any():
        return proposed  # extremes of all rows say that a column is constant
    checks = survey.executor.map_rows(partial(_obeyed, proposed), survey.source)
    holds = np.ones(len(proposed.aside), bool)
    for found in checks:
        holds &= found
    return proposed.only(holds)


def _obeyed(columns: DependentColumns, block: Block) -> Array:
    X = dense_rows(block.X)
    return columns.obeyed(X if block.weight is None else X[block.weight > 0])


def constants_set_aside(model: Any) -> tuple[Array, Array]:
    """The constant columns that the fit of a model set aside, and their values."""
    columns: DependentColumns | None = getattr(model, "_dependent", None)
    if columns is None:
        return np.empty(0, int), np.empty(0)
    constant = ~np.asarray(columns.coefficients).any(axis=1)
    return np.asarray(columns.aside)[constant], np.asarray(columns.offset)[constant]


def describe_set_aside(columns: DependentColumns, names: Any) -> list[str]:
    """A sentence about constant columns, and one about those that others determine."""
    return [
        f"{kind} columns were set aside ({words}, in all rows): fit, score and BIC are those of "
        "the other columns"
        for kind, words in _list_columns(columns, names)
    ]


def describe_kept(columns: DependentColumns, names: Any, what: str) -> list[str]:
    """The same, for a model that keeps such columns, in which ``what`` chooses a size."""
    return [
        f"The table has {kind.lower()} columns ({words}, in all rows): with them {what} may find "
        "too many groups or factors; leave them out"
        for kind, words in _list_columns(columns, names)
    ]


def warn_about_kept_columns(estimator: Any, survey: Survey, what: str) -> None:
    """Warn of constant and redundant columns, for a fit that keeps them and chooses a size."""
    columns = find_dependent_columns(survey)
    if columns is not None:
        for words in describe_kept(columns, getattr(estimator, "feature_names_in_", None), what):
            warn(words, DegenerateWarning)


def _list_columns(columns: DependentColumns, names: Any) -> list[tuple[str, str]]:
    constants, others = [], []
    for d, offset, row in zip(columns.aside, columns.offset, columns.coefficients, strict=True):
        name = _name(int(d), names)
        if row.any():
            others.append(f"{name} is {_describe_rule(offset, row, columns.kept, names)}")
        else:
            constants.append(f"{name} is {offset:.6g}")
    found = []
    for kind, words in (("Constant", constants), ("Redundant", others)):
        more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
        if words:
            found.append((kind, f"{'; '.join(words[:_SHOWN])}{more}"))
    return found


def _describe_rule(offset: float, row: Array, kept: Array, names: Any) -> str:
    terms = [(float(row[i]), _name(int(kept[i]), names)) for i in np.flatnonzero(row)]
    if len(terms) == 1 and terms[0][0] == 1 and offset == 0:
        return f"a copy of {terms[0][1]}"
    words = [f"{'' if c == 1 else f'{c:.6g} x '}{term}" for c, term in terms[:_SHOWN]]
    more = [f"{len(terms) - _SHOWN} more"] if len(terms) > _SHOWN else []
    return " + ".join([*words, *more, *([f"{offset:.6g}"] if offset else [])])


def _name(column: int, names: Any) -> str:
    return f"column {column}" if names is None else repr(str(names[column]))


def tell_of_columns(estimator: Any, fit: Fit) -> Fit:
    """The fit with an event for each column that was set aside."""
    columns = estimator._dependent
    if columns is None:
        return fit
    names = getattr(estimator, "feature_names_in_", None)
    events = [Event(EVENT, message) for message in describe_set_aside(columns, names)]
    return replace(fit, events=(*fit.events, *events))


def set_aside_columns(
    estimator: Any, survey: Survey, some: Array | None = None, first_batch: bool = False
) -> None:
    """Find the columns to set aside and store them; parameters of others are no start any more.

    ``some`` are those that are looked at, None all. The first batch of a stream sets none aside:
    later ones may vary where it does not.
    """
    looks = not (first_batch or estimator._keeps_all_columns)
    found = find_dependent_columns(survey, some) if looks else None
    before = estimator.__dict__.pop("_dependent", None)
    if found is not None:
        estimator._dependent = found
    if (before is not None or found is not None) and not (found and found.same(before)):
        for name in ("_params", "_climb"):
            estimator.__dict__.pop(name, None)


def gaussian_columns(family: ComponentFamily, n_features: int) -> Array:
    """The columns of a table that are Gaussian around means of their own: those of counts and
    codes are kept as they are."""
    if isinstance(family, ProductSteps):
        own = [c for p, c in zip(family.parts, family.columns, strict=True) if _is_gaussian(p)]
        return np.sort(np.concatenate([np.empty(0, int), *own]))
    free = isinstance(family, GaussianFamily) and family.free_means
    return np.arange(n_features if free else 0)


def _is_gaussian(part: Part) -> bool:
    return isinstance(part.family, GaussianFamily) and part.family.free_means
