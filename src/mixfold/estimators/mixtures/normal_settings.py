"""Priors of Gaussian components as users write them, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.families import GAUSSIAN


def checked_mean(value: Any, n_features: int) -> Array | None:
    """A prior mean of shape (n_features,)."""
    if value is None:
        return None
    mean = np.asarray(value, dtype=float)
    _check(mean, (n_features,), "means")
    return mean


def checked_scatter(value: Any, kind: str, n_features: int) -> Array | None:
    """W^-1 of a prior, in the shape of one covariance of the given kind."""
    if value is None:
        return None
    scatter = np.asarray(value, dtype=float)
    whole = GAUSSIAN[kind].scatter_shape(-1, n_features)
    shape = tuple(size for size in whole if size != -1)
    _check(scatter, shape, f"{kind} covariance_prior")
    if not _positive(scatter):
        rule = "symmetric, positive-definite" if scatter.ndim == 2 else "positive"
        raise ValueError(f"'{kind} covariance_prior' should be {rule}")
    return scatter


def _check(value: Array, shape: tuple[int, ...], name: str) -> None:
    if value.shape != shape:
        raise ValueError(
            f"The parameter '{name}' should have the shape of {shape}, but got {value.shape}"
        )
    if not np.isfinite(value).all():
        raise ValueError(f"The parameter '{name}' should be finite, but has NaN or infinity")


def _positive(scatter: Array) -> bool:
    if scatter.ndim < 2:
        return bool((scatter > 0).all())
    same = np.allclose(scatter, scatter.T)
    return same and bool((np.linalg.eigvalsh(scatter) > 0).all())
