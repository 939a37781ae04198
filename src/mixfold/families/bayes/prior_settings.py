"""Settings of Gaussian priors, checked when the number of columns is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array


def as_numbers(value: Any, name: str) -> Array:
    """A setting as an array of float64."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"the setting {name!r} of the prior must be a number or an array of numbers, got "
            f"{value!r}"
        ) from error


def check_mean(value: Any, size: int) -> Array:
    """The mean of the prior, (D,)."""
    mean = as_numbers(value, "mean")
    if mean.shape not in ((), (size,)) or not np.isfinite(mean).all():
        raise ValueError(
            f"mean must be one finite number for each of the {size} columns, or None for the mean "
            f"of all rows; got {value!r}"
        )
    return np.broadcast_to(mean, (size,))


def check_weight(value: Any, name: str, size: int, per_column: bool, least: float) -> Array:
    """How much a prior weighs, above ``least``: one number or, if columns have their own, (D,)."""
    number = as_numbers(value, name)
    fits = number.ndim == 0 or (per_column and number.shape == (size,))
    if fits and np.isfinite(number).all() and (number > least).all():
        return number
    more = f", or one for each of the {size} columns" if per_column else ""
    raise ValueError(
        f"the setting {name!r} of the prior must be a finite number above {least:g}{more}; got "
        f"{value!r}. Leave it out for the usual one"
    )


def check_variances(value: Any, name: str, size: int, per_column: bool) -> Array:
    """Variances of a prior: one number or, if columns have their own, (D,)."""
    return check_weight(value, name, size, per_column, 0.0)


def check_matrix(value: Any, name: str, size: int) -> Array:
    """A positive definite matrix (D, D) of a prior."""
    matrix = as_numbers(value, name)
    good = bool(matrix.shape == (size, size) and np.isfinite(matrix).all())
    scale = np.sqrt(np.abs(np.diagonal(matrix))) if good else np.ones(1)
    good = good and bool((scale > 0).all())
    if good:
        unit = matrix / scale[:, None] / scale
        good = bool(np.abs(unit - unit.T).max() < 1e-8 and np.linalg.eigvalsh(unit)[0] > 0)
    if not good:
        raise ValueError(
            f"the setting {name!r} of the prior must be a symmetric, positive definite matrix of "
            f"shape ({size}, {size}); got {value!r}. Leave it out for the usual one, or give the "
            "covariance that you expect of a component times the degrees of freedom"
        )
    return matrix
