"""Which family of components a user asks for, by name, by columns, or as an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, is_record
from mixfold.families.component import ComponentFamily
from mixfold.families.conjugate import ConjugateFamily
from mixfold.families.exponential.support import column_name
from mixfold.families.product import Part, PlainProduct, product
from mixfold.families.product.build import PARTS
from mixfold.families.product.records import ProductParams
from mixfold.schema import Schema

FAMILIES: dict[str, type[Any]] = dict(PARTS)
# how each inference reads the components of a mixture
_READINGS = {"em": "mode", "vb": "expected", "gibbs": "draw", "collapsed": "draw"}


def make_family(
    family: Any, options: Mapping[str, Any] | None, names: Array | None, n_features: int
) -> ComponentFamily:
    """The family that the user asks for.

    Parameters
    ----------
    family : str, mapping or ComponentFamily
        A name; or names with the columns they are for, {"full": ["height", "weight"], ...}.
    options : mapping, optional
        Settings of the family; for a mapping of families, of each by name.
    names : array of str, optional
        Names of the columns.
    n_features : int
    """
    if isinstance(family, ComponentFamily):
        if options:
            raise ValueError(
                "a family that is given as an object has its settings already; family_options and "
                f"prior give it {', '.join(map(repr, options))}. Set them on the object, and leave "
                "family_options out and prior None or 'default'"
            )
        return family
    if isinstance(family, str):
        return _make_named(family, options or {})
    if not isinstance(family, Mapping):
        raise TypeError(
            "family must be a name, a mapping from names to columns, or a family object; got "
            f"{family!r}. Names: {', '.join(FAMILIES)}"
        )
    settings = options or {}
    unknown = sorted(set(settings) - set(family))
    if unknown:
        raise ValueError(
            f"family_options names {', '.join(map(repr, unknown))}, which the family does not use; "
            f"it uses {', '.join(map(repr, family))}"
        )
    columns = {name: _positions(which, names) for name, which in family.items()}
    _check_cover(columns, names, n_features)
    parts = (
        Part(where, _make_named(name, settings.get(name, {}))) for name, where in columns.items()
    )
    return product(parts)


def check_inference(family: ComponentFamily, inference: str) -> None:
    """Refuse a mixture with priors whose family does not offer them, or not to this inference."""
    parts = [part.family for part in family.parts] if isinstance(family, PlainProduct) else [family]
    for part in parts:
        if not isinstance(part, ConjugateFamily):
            priors = (name for name, kind in FAMILIES.items() if issubclass(kind, ConjugateFamily))
            raise ValueError(
                f"the family {part.name!r} has no conjugate prior: it is fitted by maximum "
                f"likelihood alone, got inference={inference!r} or a prior of weights or "
                "components. Use inference='em' with prior=None and free or fixed weights, or a "
                f"family that has a prior: {', '.join(priors)}"
            )
        if _READINGS[inference] not in part.readings:
            raise ValueError(
                f"inference={inference!r} is not offered for the family {part.name!r} with these "
                f"settings: {part.remedy}"
            )


def takes_missing_and_sparse(family: Any) -> tuple[bool, bool]:
    """Whether rows of the family (as the user names it) may have missing entries, and be sparse."""
    if isinstance(family, ComponentFamily):
        return family.takes_missing, family.takes_sparse
    names = family if isinstance(family, Mapping) else [family]
    kinds = [FAMILIES[name] for name in names if isinstance(name, str) and name in FAMILIES]
    return all(kind.takes_missing for kind in kinds), all(kind.takes_sparse for kind in kinds)


def describe_parts(family: ComponentFamily, params: Any) -> dict[str, dict[str, Any]] | None:
    """What each part of a product publishes, by the name of its family; None of one family."""
    if not isinstance(family, PlainProduct):
        return None
    return {own.name: own.describe(part) for own, _, part in family.live(params)}


def storable_parameters(plain: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters for a file; an error if it could not say which family was chosen."""
    family = given.get("family")
    if isinstance(family, Schema):  # which is stored beside them
        plain["family"] = "auto"
    if isinstance(family, Mapping) and "family" not in plain:  # a range of columns, an index
        listed = {name: _as_list(which) for name, which in family.items()}
        plain["family"] = {
            name: [str(i) if isinstance(i, str) else int(i) for i in items]
            for name, items in listed.items()
        }
    if isinstance(family, ComponentFamily):
        if not is_record(family):
            raise TypeError(
                f"family is an object of the class {type(family).__name__}, which files do not "
                "know. Decorate the class with mixfold.contracts.record, here and where the file "
                "will be loaded"
            )
        plain["family"] = family
    for name in ("family", "family_options", "prior", "weights"):
        if name in given and name not in plain:
            raise TypeError(
                f"{name} cannot be written to a file, which holds words, numbers and arrays only; "
                f"got {given[name]!r}. Name the family, and give settings as lists or arrays"
            )
    return plain


def keep_columns(
    family: Any, options: Any, names: Array | None, rest: Array, n_features: int
) -> tuple[Any, Any]:
    """The choice of a family, and its options, for the columns ``rest`` only."""
    if isinstance(family, str):
        return family, _slice_options(options or {}, rest, n_features)
    if isinstance(family, ComponentFamily):
        return family.for_columns(rest, n_features), None
    chosen, settings = {}, {}
    for name, which in family.items():
        own = np.array(_positions(which, names), dtype=int)
        kept = np.isin(own, rest)
        if kept.any():
            chosen[name] = np.searchsorted(rest, own[kept]).tolist()
            settings[name] = _slice_options(
                (options or {}).get(name, {}), np.flatnonzero(kept), own.size
            )
    return chosen, settings


def _slice_options(options: Mapping[str, Any], rest: Array, n_features: int) -> dict[str, Any]:
    """Options that have one entry per column, for some of the columns."""
    return {
        name: np.asarray(value)[rest].tolist() if np.shape(value) == (n_features,) else value
        for name, value in options.items()
    }


def drop_empty_parts(components: Any) -> Any:
    """The components without the parts that have no column left."""
    if not isinstance(components, ProductParams):
        return components
    kept = [i for i, columns in enumerate(components.columns) if columns.size]
    return replace(
        components,
        columns=tuple(components.columns[i] for i in kept),
        parts=tuple(components.parts[i] for i in kept),
    )


def _make_named(name: str, options: Mapping[str, Any]) -> ComponentFamily:
    """A family by its name; an unknown name or option is an error."""
    if name not in FAMILIES:
        raise ValueError(f"there is no family {name!r}; choose one of: {', '.join(FAMILIES)}")
    settings = [f for f in fields(FAMILIES[name]) if f.init]
    known = [f.name for f in settings if f.metadata.get("setting", True)]
    wrong = sorted(set(options) - set(known))
    if wrong:
        raise ValueError(
            f"the family {name!r} has no setting {', '.join(map(repr, wrong))}; it has: "
            f"{', '.join(known)}"
        )
    made: ComponentFamily = FAMILIES[name](**options)
    return made


def _positions(which: Any, names: Array | None) -> tuple[int, ...]:
    return tuple(_position(item, names) for item in _as_list(which))


def _as_list(which: Any) -> list[Any]:
    return [which] if isinstance(which, str) or np.ndim(which) == 0 else list(which)


def _position(item: Any, names: Array | None) -> int:
    if not isinstance(item, str):
        if isinstance(item, bool | np.bool_) or not isinstance(item, int | np.integer):
            raise TypeError(
                f"columns of a family are names or positions, whole numbers from 0; got {item!r}"
            )
        return int(item)
    if names is None:
        raise ValueError(
            f"family speaks of the column {item!r}, but the data have no names; use positions"
        )
    found = np.flatnonzero(names == item)
    if not found.size:
        raise ValueError(f"family speaks of the column {item!r}; the columns are {list(names)}")
    return int(found[0])


def _check_cover(
    columns: Mapping[str, Sequence[int]], names: Array | None, n_features: int
) -> None:
    """Every column must have exactly one family."""
    count = np.zeros(n_features, int)
    for name, where in columns.items():
        wrong = [d for d in where if not 0 <= d < n_features]
        if wrong:
            raise ValueError(
                f"family {name!r} is for column {wrong[0]}; there are {n_features} columns, 0 to "
                f"{n_features - 1}"
            )
        np.add.at(count, list(where), 1)
    bad = np.flatnonzero(count != 1)
    if bad.size:
        problem = "has no family" if count[bad[0]] == 0 else "has several families"
        raise ValueError(
            f"column {column_name(names, int(bad[0]))} {problem}; give every column exactly one"
        )
