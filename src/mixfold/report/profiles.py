"""What the columns are like in each group: by the parameters, else by the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.report.subject import Subject


@dataclass(frozen=True, slots=True)
class Profiles:
    """Means and deviations (K, D) of groups, mean and deviation (D,) of all rows.

    ``deviations`` is None if nothing is known of it; ``fitted`` if they are the model's own.
    """

    means: Array
    deviations: Array | None
    mean: Array
    deviation: Array
    fitted: bool

    @property
    def apart(self) -> Array:
        """How far the mean of each group is from that of all, in deviations of all rows (K, D)."""
        scale = np.where(self.deviation > 0, self.deviation, np.inf)
        return np.asarray((self.means - self.mean) / scale)


def profiles_of(subject: Subject) -> Profiles | None:
    """Profiles of the groups that are in use; None without groups or without anything to tell."""
    groups = subject.groups
    if groups is None or hasattr(subject.model, "topics_"):
        return None
    own = _centres(subject.model, len(groups.names))
    seen = None if subject.look is None else subject.look.groups
    if own is None and seen is None:
        return None
    shown = groups.shown
    if own is None:
        assert seen is not None and subject.look is not None
        columns = subject.look.columns
        return Profiles(seen.means[shown], seen.deviations[shown], columns.mean, columns.deviation,
                        False)  # fmt: skip
    spread = deviations_of(subject.model)
    if spread is None and seen is not None:
        spread = seen.deviations
    spread = None if spread is None else spread[shown]
    if subject.look is not None:
        columns = subject.look.columns
        return Profiles(own[shown], spread, columns.mean, columns.deviation, True)
    return _without_rows(own[shown], spread, groups.weights, shown)


def _without_rows(
    means: Array, spread: Array | None, weights: Array | None, shown: Array
) -> Profiles:
    """Mean and deviation of all rows as the mixture has them."""
    parts = np.ones(len(means)) if weights is None else weights[shown]
    parts = parts / parts.sum()
    mean = parts @ means
    variance = parts @ (means - mean) ** 2
    if spread is not None:
        variance = variance + parts @ spread**2
    return Profiles(means, spread, mean, np.sqrt(variance), True)


def _centres(model: Any, size: int) -> Array | None:
    """Expected rows (K, D) of groups that the model publishes, in units of the columns."""
    if hasattr(model, "transforms_"):  # means of transformed rows
        return None
    for name in ("means_", "cluster_centers_"):
        found = getattr(model, name, None)
        if found is not None and np.shape(found) == (size, model.n_features_in_):
            return np.asarray(found, float)
    return None


def deviations_of(model: Any) -> Array | None:
    """Standard deviations (K, D) by the parameters; None if those do not tell."""
    means = getattr(model, "means_", None)
    if means is None:
        return None
    shape = np.shape(means)
    if hasattr(model, "loadings_") and hasattr(model, "noise_variance_"):
        return _of_factors(model, shape)
    covariances = getattr(model, "covariances_", None)
    if covariances is None or isinstance(covariances, list | tuple | dict):
        return None
    kind = str(getattr(model, "covariance_type", getattr(model, "family", "")))
    return _of_covariances(np.asarray(covariances, float), shape, "tied" in kind)


def _of_factors(model: Any, shape: tuple[int, ...]) -> Array | None:
    loadings = np.asarray(model.loadings_, float)
    if loadings.ndim != 3 or loadings.shape[:2] != shape:
        return None
    noise = np.asarray(model.noise_variance_, float)
    noise = noise[:, None] if noise.shape == shape[:1] else noise
    return np.sqrt(np.broadcast_to((loadings**2).sum(axis=2) + noise, shape))


def _of_covariances(found: Array, shape: tuple[int, ...], tied: bool) -> Array | None:
    """From any of the shapes of ``covariances_``."""
    size, width = shape
    if found.shape == (size, width, width):
        variance = np.diagonal(found, axis1=1, axis2=2)
    elif found.shape == (size, width) and not tied:
        variance = found
    elif found.shape == (width, width):
        variance = np.broadcast_to(np.diagonal(found), shape)
    elif found.shape == (size,) and not tied:
        variance = np.broadcast_to(found[:, None], shape)
    elif found.shape in ((width,), ()):
        variance = np.broadcast_to(found, shape)
    else:
        return None
    return np.sqrt(variance)
