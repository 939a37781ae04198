"""The candidates of a search: estimators x parameters x numbers of components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture

# numbers of components that are tried unless the user says which
DEFAULT_SIZES = range(1, 10)
# and the kinds of covariance, without those that compare columns of different units
DEFAULT_GRID = {"covariance_type": ["full", "tied", "diag", "tied-diag"]}
SIZE = "n_components"


@dataclass(frozen=True, slots=True)
class Setting:
    """One fit of a search. Settings of a ``group`` differ in the number of components alone."""

    name: str
    estimator: Any
    params: dict[str, Any]
    group: int

    @property
    def n_components(self) -> int:
        return int(self.params[SIZE])


def name_estimators(estimator: Any) -> dict[str, Any]:
    """The estimators by name: one, a list or a dict of them; None is a Gaussian mixture."""
    if estimator is None:
        estimator = GaussianMixture()
    if isinstance(estimator, Mapping):
        named = {str(name): value for name, value in estimator.items()}
    elif isinstance(estimator, list | tuple):
        named = {}
        for value in estimator:
            named[_free_name(type(value).__name__, named)] = value
    else:
        named = {type(estimator).__name__: estimator}
    if not named:
        raise ValueError("estimator is empty; give at least one mixture, such as GaussianMixture()")
    for name, value in named.items():
        _check_estimator(name, value)
    return named


def _free_name(name: str, taken: Iterable[str]) -> str:
    names, number = set(taken), 2
    free = name
    while free in names:
        free, number = f"{name}-{number}", number + 1
    return free


def _check_estimator(name: str, value: Any) -> None:
    if isinstance(value, type) or not hasattr(value, "get_params") or not hasattr(value, "fit"):
        raise TypeError(
            f"estimator {name!r} must be an estimator object, such as GaussianMixture(); got "
            f"{value!r}"
        )
    if SIZE not in value.get_params(deep=False):
        raise ValueError(
            f"estimator {name!r} must have a parameter {SIZE!r} to search; "
            f"{type(value).__name__} has none"
        )
    if getattr(value, "checkpoint", None) is not None:
        raise ValueError(
            f"estimator {name!r} has checkpoint={value.checkpoint!r}; the fits of a search cannot "
            "share a file: leave checkpoint at None"
        )


def sizes_of(n_components: Any) -> list[int]:
    """Numbers of components, ascending; None is 1 to 9, a number is that one alone."""
    if n_components is None:
        return list(DEFAULT_SIZES)
    single = isinstance(n_components, Integral)
    values = [n_components] if single or isinstance(n_components, str) else _as_list(n_components)
    good = [isinstance(v, Integral) and not isinstance(v, bool) and int(v) >= 1 for v in values]
    if not values or not all(good):
        raise ValueError(
            "n_components must be an int >= 1 or a sequence of them, such as range(1, 10); got "
            f"{n_components!r}"
        )
    return sorted({int(v) for v in values})


def _as_list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, Iterable) else [values]


def settings(estimator: Any, param_grid: Any, n_components: Any) -> list[Setting]:
    """All settings, those of a group together and from few components to many."""
    named = name_estimators(estimator)
    sizes = sizes_of(n_components)
    grids = _grids(DEFAULT_GRID if estimator is None and param_grid is None else param_grid)
    _check_keys(grids, named)
    found: list[Setting] = []
    groups: dict[str, int] = {}
    seen: set[str] = set()
    for name, prototype in named.items():
        for point in _points(grids, name, prototype):
            for size in sizes_of(point[SIZE]) if SIZE in point else sizes:
                fixed = {k: v for k, v in point.items() if k != SIZE}
                group = groups.setdefault(_key(name, fixed), len(groups))
                params = {SIZE: size, **fixed}
                if _key(name, params) in seen:
                    continue  # grids for several estimators may say the same of one
                seen.add(_key(name, params))
                ready = clone(prototype).set_params(**params)
                found.append(Setting(name, ready, params, group))
    return sorted(found, key=lambda s: (s.group, s.n_components))


def _key(name: str, params: Mapping[str, Any]) -> str:
    return repr((name, sorted(params.items(), key=lambda item: item[0])))


def _grids(param_grid: Any) -> list[dict[str, Any]]:
    if param_grid is None:
        return [{}]
    grids = [param_grid] if isinstance(param_grid, Mapping) else _as_list(param_grid)
    for grid in grids:
        if not isinstance(grid, Mapping):
            raise TypeError(
                "param_grid must be a dict of parameter names to lists of values, or a list of "
                f"such dicts; got {grid!r}"
            )
    return [dict(grid) for grid in grids]


def _check_keys(grids: list[dict[str, Any]], named: Mapping[str, Any]) -> None:
    """A parameter that no estimator has is a slip of the pen."""
    for key in {key for grid in grids for key in grid}:
        if not any(_own_key(key, name, value) for name, value in named.items()):
            known = sorted({p for value in named.values() for p in value.get_params(deep=True)})
            close = get_close_matches(key, known, n=1)
            guess = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"param_grid names {key!r}, which is a parameter of none of the estimators "
                f"({', '.join(named)}){guess} The parameters are: {', '.join(known)}"
            )


def _own_key(key: str, name: str, estimator: Any) -> str | None:
    """The estimator's own name of a parameter of the grid; None if it does not have it."""
    own = key.removeprefix(f"{name}__")
    return own if own in estimator.get_params(deep=True) else None


def _points(grids: list[dict[str, Any]], name: str, prototype: Any) -> Iterator[dict[str, Any]]:
    """The points of the grids that concern an estimator; its defaults if none does."""
    own_grids = []
    for grid in grids:
        pairs = ((_own_key(key, name, prototype), values) for key, values in grid.items())
        own_grids.append({key: values for key, values in pairs if key is not None})
    for own in [grid for grid in own_grids if grid] or [{}]:
        yield from ParameterGrid(own)


def find_varied(found: list[Setting]) -> list[str]:
    """Names of the parameters, other than the number of components, that differ somewhere."""
    names = dict.fromkeys(key for s in found for key in s.params if key != SIZE)
    absent = object()
    return [n for n in names if len({repr(s.params.get(n, absent)) for s in found}) > 1]


def label_settings(found: list[Setting]) -> list[str]:
    """A few words for the group of each setting: what it is beside its number of components."""
    names = find_varied(found)
    several = len({s.name for s in found}) > 1
    out = []
    for setting in found:
        own = {name: setting.params[name] for name in names if name in setting.params}
        # a lone word, such as a covariance type, speaks for itself; a number does not
        bare = len(names) == 1 and all(isinstance(value, str) for value in own.values())
        parts = [str(value) if bare else f"{name}={value}" for name, value in own.items()]
        out.append(", ".join([setting.name] * (several or not parts) + parts))
    return out
