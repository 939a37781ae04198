"""A product of families from the names of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mixfold.families.bayes.known_covariance import KnownCovariance
from mixfold.families.bayes.known_mean import KnownMean
from mixfold.families.bayes.normal_gamma import (
    BayesDiagonal,
    BayesSpherical,
    BayesTiedDiagonal,
    BayesTiedSpherical,
)
from mixfold.families.bayes.normal_wishart import BayesFull, BayesTied
from mixfold.families.component import ComponentFamily
from mixfold.families.conjugate import ConjugateFamily
from mixfold.families.exponential import EXPONENTIAL_FAMILIES
from mixfold.families.exponential.wishart import Wishart
from mixfold.families.product.bayes import ProductFamily
from mixfold.families.product.family import PlainProduct
from mixfold.families.product.records import Part

# what a part may be called
PARTS: dict[str, type[ComponentFamily]] = {
    "full": BayesFull,
    "tied": BayesTied,
    "diag": BayesDiagonal,
    "spherical": BayesSpherical,
    "tied-diag": BayesTiedDiagonal,
    "tied-spherical": BayesTiedSpherical,
    "known": KnownCovariance,
    "known-mean": KnownMean,
    **EXPONENTIAL_FAMILIES,
    "wishart": Wishart,
}


def product(parts: Iterable[Part]) -> PlainProduct:
    """The product of some parts: with a conjugate prior if all of them have one."""
    parts = tuple(parts)
    conjugate = all(isinstance(part.family, ConjugateFamily) for part in parts)
    return ProductFamily(parts) if conjugate else PlainProduct(parts)


def product_of(
    columns: Mapping[str, Sequence[int] | int]
    | Iterable[tuple[str | ComponentFamily, Sequence[int] | int]],
    n_features: int | None = None,
    **settings: Any,
) -> PlainProduct:
    """A family for a table whose columns are of different kinds.

    Parameters
    ----------
    columns : mapping of names to columns, or pairs of a name or family and columns
        Names are those of ``PARTS``; columns are positions, each in exactly one part. Pairs may
        repeat a family, or hold one with settings of its own.
    n_features : int, optional
        The number of columns of the table, if it is known.
    **settings
        For every family that is named: ``floor``, say.

    Returns
    -------
    PlainProduct
        A ``ProductFamily`` if all parts have a conjugate prior.

    Raises
    ------
    ValueError
        If a name is unknown, or a column is in no part or in two.

    Examples
    --------
    >>> from mixfold.families.product import product_of
    >>> family = product_of({"full": [0, 1], "poisson": [2], "bernoulli": [3, 4]})
    >>> [(part.family.name, part.columns) for part in family.parts]
    [('full', (0, 1)), ('poisson', (2,)), ('bernoulli', (3, 4))]
    """
    pairs = list(columns.items() if isinstance(columns, Mapping) else columns)
    parts = [Part(_positions(what, where), _family(what, settings)) for what, where in pairs]
    _every_column_once(parts, n_features)
    return product(parts)


def _family(what: str | ComponentFamily, settings: dict[str, Any]) -> ComponentFamily:
    if isinstance(what, ComponentFamily):
        return what
    if what not in PARTS:
        raise ValueError(f"the family of a part must be one of {', '.join(PARTS)}; got {what!r}")
    return PARTS[what](**settings)


def _positions(what: str | ComponentFamily, where: Sequence[int] | int) -> tuple[int, ...]:
    name = what if isinstance(what, str) else what.name
    array = np.atleast_1d(np.asarray(where))
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu" or array.min() < 0:
        raise ValueError(
            f"the columns of {name!r} must be positions: one or more whole numbers from 0; got "
            f"{where!r}"
        )
    return tuple(int(column) for column in array)


def _every_column_once(parts: list[Part], n_features: int | None) -> None:
    owners: dict[int, str] = {}
    for part in parts:
        for column in part.columns:
            if column in owners:
                raise ValueError(
                    f"column {column} is in two parts, {owners[column]!r} and "
                    f"{part.family.name!r}; every column must be in exactly one"
                )
            owners[column] = part.family.name
    size = max(owners, default=-1) + 1 if n_features is None else n_features
    lacking = sorted(set(range(size)) - owners.keys())
    if lacking or not owners:
        raise ValueError(
            f"columns {lacking} are in no part; every column must be in exactly one: add them to "
            "a part, or take them out of the table"
        )
    if max(owners) >= size:
        raise ValueError(
            f"{owners[max(owners)]!r} has column {max(owners)}, and the table has {size} columns, "
            "counted from 0"
        )
