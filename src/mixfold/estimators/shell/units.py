"""A warning of columns in units so different that those of large numbers decide alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array, Pilot
from mixfold.estimators.shell.base import warn
from mixfold.math.frame import frame_of

# standard deviations of columns that differ by more are told of
_RATIO = 100.0
# of many columns some may well vary little: those of the lower quarter are looked at
_MANY_COLUMNS = 30


class UnitsWarning(UserWarning):
    """Columns differ by orders of magnitude, and the model compares them with each other."""


def warn_about_units(estimator: Any, pilot: Pilot, what: str, other: str = "") -> None:
    """Warn if the units of the columns decide what ``what`` finds; dense rows only.

    ``other`` is what else can be done.
    """
    words = describe_comparison(estimator, pilot, what, other)
    if words is not None:
        warn(words, UnitsWarning)


def describe_comparison(estimator: Any, pilot: Pilot, what: str, other: str = "") -> str | None:
    """What ``warn_about_units`` says, or None."""
    words = describe_units(pilot.block.X, getattr(estimator, "feature_names_in_", None))
    if words is None:
        return None
    return f"{words}, and {what} compares columns with each other: {_REMEDY}{other}"


def warn_if_spherical(estimator: Any, pilot: Pilot) -> None:
    """Warn if the components of a mixture are spheres and the units of the columns differ."""
    what = compared_by(estimator)
    if what is not None:
        warn_about_units(estimator, pilot, what)


_REMEDY = (
    "those of large numbers decide. Divide each column by its standard deviation "
    "(sklearn.preprocessing.StandardScaler) unless the same units are meant"
)


def compared_by(estimator: Any) -> str | None:
    """The setting of a mixture by which its columns are compared with each other, or None."""
    for name in ("covariance_type", "family"):
        value = getattr(estimator, name, None)
        if isinstance(value, str) and value.endswith("spherical"):
            return f"{name}={value!r}"
    return None


def describe_units(X: Any, names: Array | None) -> str | None:
    """A clause about columns whose standard deviations differ by orders of magnitude, or None."""
    if not isinstance(X, np.ndarray) or X.shape[1] < 2 or len(X) < 2:
        return None
    X = X.astype(float)
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    rounding = 8 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))
    varied = np.flatnonzero(high - low > rounding)
    if len(varied) < 2:
        return None
    spread = frame_of(X, np.ones(len(X)), robust=True).scale  # that of the bulk of the rows
    order = varied[np.argsort(spread[varied], kind="stable")]
    small = order[0 if len(order) <= _MANY_COLUMNS else len(order) // 4]
    large = order[-1]
    if spread[large] <= _RATIO * spread[small]:
        return None
    pair = [
        f"{f'column {d}' if names is None else repr(str(names[d]))} has {spread[d]:.3g}"
        for d in (large, small)
    ]
    return (
        f"the standard deviations of the columns differ by orders of magnitude ({'; '.join(pair)})"
    )
