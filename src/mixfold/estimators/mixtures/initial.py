"""Starts prescribed by the user, checked and turned into covariances."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures.given import Given


def given_start(estimator: Any, n_features: int) -> Given:
    """``weights_init``, ``means_init`` and ``precisions_init`` of a Gaussian mixture."""
    K, kind = estimator.n_components, estimator.covariance_type
    weights, means, precisions = (
        None if value is None else np.asarray(value, dtype=float)
        for value in (estimator.weights_init, estimator.means_init, estimator.precisions_init)
    )
    if weights is not None:
        _check_weights(weights, K)
    if means is not None:
        _check_shape(means, (K, n_features), "means")
        _check_finite(means, "means")
    covariances = None
    if precisions is not None:
        shape = GAUSSIAN[kind].scatter_shape(K, n_features)
        _check_shape(precisions, shape, f"{kind} precision")
        covariances = _inverted(precisions, kind)
    return Given(weights, means, covariances)


def _check_shape(value: Array, shape: tuple[int, ...], name: str) -> None:
    if value.shape != shape:
        raise ValueError(
            f"The parameter '{name}' should have the shape of {shape}, but got {value.shape}"
        )


def _check_finite(value: Array, name: str) -> None:
    if not np.isfinite(value).all():
        raise ValueError(f"The parameter '{name}' should be finite, but has NaN or infinity")


def _check_weights(weights: Array, n_components: int) -> None:
    _check_shape(weights, (n_components,), "weights")
    _check_finite(weights, "weights")
    if weights.min() < 0 or weights.max() > 1:
        raise ValueError(
            "The parameter 'weights' should be in the range [0, 1], but got "
            f"min value {weights.min():.5f}, max value {weights.max():.5f}"
        )
    if not np.isclose(weights.sum(), 1.0, atol=1e-6):
        raise ValueError(
            "The parameter 'weights' should be normalized, but got "
            f"sum(weights) = {weights.sum():.5f}"
        )


def _inverted(precisions: Array, kind: str) -> Array:
    name = f"{kind} precision"
    _check_finite(precisions, name)
    if not GAUSSIAN[kind].matrix:
        if (precisions <= 0).any():
            raise ValueError(f"'{name}' should be positive")
        return np.asarray(1.0 / precisions)
    stacked = precisions.reshape(-1, *precisions.shape[-2:])
    symmetric = np.allclose(stacked, np.swapaxes(stacked, 1, 2))
    if not symmetric or (np.linalg.eigvalsh(stacked) <= 0).any():
        raise ValueError(f"'{name}' should be symmetric, positive-definite")
    return np.linalg.inv(precisions)
