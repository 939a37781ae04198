"""What every estimator shares: opening data, visiting rows, saving."""

from __future__ import annotations

import copy
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mixfold import store
from mixfold.contracts import Array, Block, Executor, Pilot, Source
from mixfold.engine.executors import resolve_executor
from mixfold.engine.sources import open_source
from mixfold.estimators.shell import constraints
from mixfold.estimators.shell.input_rows import (
    fill_masked_entries,
    has_column_names,
    is_plain,
    validate_plain_rows,
)
from mixfold.estimators.shell.parameters import SHARED
from mixfold.estimators.shell.reported import Reported
from mixfold.estimators.shell.trial import check_answers

# packages whose lines a warning does not point to: scikit-learn wraps our methods
_NOT_THE_USERS = ("mixfold", "sklearn")


def parameter_rules(kind: Any) -> constraints.Constraints:
    """Rules of the parameters of an estimator: its own, and those of parameters that many share."""
    if kind not in _RULES:
        _RULES[kind] = _collect_rules(kind)
    return _RULES[kind]


def _collect_rules(kind: Any) -> constraints.Constraints:
    names = inspect.signature(kind).parameters
    shared = {n: SHARED[n].rules for n in names if n in SHARED}
    return {**{n: rules for n, rules in shared.items() if rules is not None}, **kind._constraints}


# by class: signatures are slow to read
_RULES: dict[Any, constraints.Constraints] = {}
_NAMES: dict[type, list[str]] = {}


# fitted attributes of all estimators that a model file holds: columns, and the order of a stream
_OF_ALL = ("n_features_in_", "feature_names_in_", "_order")


class DegenerateWarning(UserWarning):
    """A component was floored, moved or dropped; ``events_`` tells which and when.

    Examples
    --------
    Ten equal rows make a component without spread, whose variance is held at a floor:

    >>> import warnings
    >>> import numpy as np
    >>> from mixfold import DegenerateWarning, GaussianMixture
    >>> from mixfold.plots import plot_ellipses
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> X = np.vstack([rows, np.full((10, 2), 4.0)])
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     mixture = GaussianMixture(2, random_state=0).fit(X)
    >>> said[0].category is DegenerateWarning
    True
    >>> ax = plot_ellipses(mixture, X)  # that component is a point
    """


class MixfoldEstimator(Reported, BaseEstimator):
    """Base of the estimators: data in any form, visited by the engine; files without pickle."""

    # rules of parameters that are its own, or that mean something else than the shared ones
    _constraints: ClassVar[constraints.Constraints] = {}
    # fitted attributes that a model file holds, besides the engine's own parameters
    _stored: ClassVar[tuple[str, ...]] = ()
    # whether ``partial_fit`` after ``fit`` goes on from what was fitted, instead of beginning anew
    _streams_go_on: ClassVar[bool] = False

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if issubclass(cls, TransformerMixin):
            _own_transforms(cls)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """scikit-learn's, asked several times in a fit; signatures are slow to read."""
        if cls not in _NAMES:
            _NAMES[cls] = super()._get_param_names()
        return list(_NAMES[cls])

    def _check_parameters(self) -> None:
        constraints.check(
            type(self).__name__, self.get_params(deep=False), parameter_rules(type(self))
        )

    # ------------------------------------------------ data

    def _open(
        self, X: Any, *, reset: bool, weight: Any = None, y: Any = None, min_rows: int = 1
    ) -> Source:
        """A source over X, with feature names and counts remembered or compared."""
        X = fill_masked_entries(X)
        if is_plain(X):
            return open_source(validate_plain_rows(self, X, reset, min_rows), weight=weight, y=y)
        columns = None if reset else self._known_columns(X)
        source = open_source(X, columns=columns, weight=weight, y=y)
        if reset:
            self._remember_columns(source)
        elif source.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {source.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        if source.n_samples is not None and source.n_samples < min_rows:
            raise ValueError(
                f"Found data with {source.n_samples} sample(s) while a minimum of {min_rows} is "
                f"required by {type(self).__name__}."
            )
        return source

    def _known_columns(self, X: Any) -> list[str] | None:
        """Columns of a table or file are matched by name, so that others may stand beside them."""
        names = getattr(self, "feature_names_in_", None)
        if names is None or isinstance(X, Source) or not has_column_names(X):
            return None
        return [str(name) for name in names]

    def _remember_columns(self, source: Source) -> None:
        self.n_features_in_ = source.n_features
        if source.feature_names is not None:
            self.feature_names_in_ = np.array(source.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_columns(self, pilot: Pilot) -> None:
        """A column without a single entry cannot be learned."""
        unseen = np.flatnonzero(pilot.observed == 0)
        if unseen.size:
            names = getattr(self, "feature_names_in_", None)
            which = ", ".join(repr(names[d]) if names is not None else str(d) for d in unseen[:5])
            raise ValueError(
                f"X has columns without any observed entry: {which}"
                f"{' and others' if unseen.size > 5 else ''}. Remove them before the fit."
            )

    # ------------------------------------------------ visiting rows

    def _executor(self, source: Source) -> Executor:
        return resolve_executor(self.executor, self.n_jobs, source)

    def _rows(self, X: Any, task: Callable[[Block], Any], **sides: Any) -> Iterator[Any]:
        """``task`` on each block of X, in row order."""
        check_is_fitted(self)
        source = self._open(X, reset=False, **sides)
        return self._executor(source).map_rows(task, source)

    def _concatenate_rows(self, X: Any, task: Callable[[Block], Array]) -> Array:
        return np.concatenate(list(self._rows(X, task)))

    # ------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that holds data only, never code.

        Load it with ``mixfold.load(path)``. The file appears whole or not at all.
        """
        check_is_fitted(self)
        tree = {"parameters": self._plain_parameters(), "state": self._state()}
        store.write(path, type(self).__name__, tree, self._summary())

    def _plain_parameters(self) -> dict[str, Any]:
        """Parameters a file can hold: an executor or a generator object is left out."""
        values = self.get_params(deep=False)
        return {name: v for name, v in values.items() if _is_storable(v)}

    def _state(self) -> dict[str, Any]:
        names = (*self._stored, *_OF_ALL)
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def _summary(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _from_state(cls, tree: dict[str, Any]) -> Self:
        known = cls().get_params(deep=False)
        parameters = {k: v for k, v in tree["parameters"].items() if k in known}
        estimator = cls(**parameters)
        estimator._check_parameters()
        allowed = {*cls._stored, *_OF_ALL}
        for name, value in tree["state"].items():
            if name not in allowed:
                raise ValueError(f"unknown attribute {name!r}")
            if name == "feature_names_in_":
                value = np.array([str(v) for v in value], dtype=object)
            setattr(estimator, name, value)
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None and len(names) != getattr(estimator, "n_features_in_", None):
            raise ValueError(f"{len(names)} names of columns for another number of them")
        estimator._check_state()
        return estimator

    def _check_state(self) -> None:
        """Refuse a loaded state whose parts do not fit each other, and publish what follows."""

    def _of_numbers(self) -> Self:
        """A copy that answers in numbers, if this one answers in the words of a table."""
        return copy.copy(self)

    def _check_answers(self) -> None:
        """Refuse a state that was loaded and does not answer for a few rows."""
        check_answers(self)


@contextmanager
def restore_on_error(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was if what is done to it fails; a warning is no failure."""
    before = dict(vars(estimator))
    try:
        yield
    except Warning:
        raise
    except Exception:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def _own_transforms(cls: type) -> None:
    """Give a class the ``transform`` of its mixins as its own.

    scikit-learn makes a table of the result (``set_output``) only of methods that a transformer
    itself defines: those of a mixin it would leave as they are, without a word.
    """
    for name in ("transform", "fit_transform"):
        found = getattr(cls, name, None)
        if name not in vars(cls) and found is not None and not hasattr(found, "__wrapped__"):
            setattr(cls, name, found)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called the library."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _package(frame) in _NOT_THE_USERS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).split(".")[0]


def _is_storable(value: Any) -> bool:
    if value is None or isinstance(value, bool | int | float | str | np.ndarray | np.number):
        return True
    if isinstance(value, list | tuple):
        return all(_is_storable(v) for v in value)
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_storable(v) for k, v in value.items())
    return False
