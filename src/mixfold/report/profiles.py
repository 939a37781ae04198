"""Means, deviations and shares of codes of the columns in each group, by parameters or else rows.

Numbers have means and deviations; codes have shares, since a mean of codes means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.mixtures.category_shares import (
    information_of_codes,
    information_of_numbers,
)
from mixfold.estimators.mixtures.set_aside import constants_set_aside
from mixfold.report.capabilities import Groups, units_matter
from mixfold.report.subject import Subject

_LEAST_RATE = 1e-9


@dataclass(frozen=True, slots=True)
class Profiles:
    """Means and deviations (K, D) of groups, mean and deviation (D,) of all rows.

    ``deviations`` is None if nothing is known of it; ``fitted`` if means are the model's own,
    ``spread_by_model`` if deviations are: not of counts, whose parameters do not tell them apart
    from the means, nor of models with one noise for columns in all units.
    ``codes`` has the shares (K, C) of columns of codes, whose means mean nothing; ``information``
    (D,) is the mutual information of a column and the groups, in bits.
    """

    means: Array
    deviations: Array | None
    mean: Array
    deviation: Array
    fitted: bool
    parts: Array
    codes: Mapping[int, Array] = field(default_factory=dict)
    spread_by_model: bool = False

    @property
    def information(self) -> Array:
        """How much a column tells about the group of a row, in bits (D,)."""
        spread = self.deviation - np.zeros_like(self.means)
        if self.deviations is not None:
            spread = np.where(np.isfinite(self.deviations), self.deviations, spread)
        found = information_of_numbers(self.means, np.maximum(spread, 1e-300), self.parts)
        for j, shares in self.codes.items():
            found[j] = information_of_codes(shares, self.parts)
        return found

    @property
    def order(self) -> Array:
        """Columns, those that tell most about the groups first."""
        return np.argsort(-self.information, kind="stable")

    @property
    def numbers(self) -> Array:
        """Which columns are numbers (D,)."""
        return np.array([j not in self.codes for j in range(self.means.shape[1])], dtype=bool)

    def code_apart(self, i: int, j: int) -> tuple[int, float]:
        """The code that group i has most beyond all rows, and how far its shares are from theirs.

        The distance is the root of chi-square per row, sqrt(sum (p - q)^2 / q); of two codes it is
        the difference of their shares in standard deviations, as for numbers.
        """
        shares = self.codes[j]
        together = self.parts @ shares / self.parts.sum()
        excess = shares[i] - together
        distance = np.divide(excess**2, together, out=np.zeros_like(excess), where=together > 0)
        rest = 1 - together.max()
        return int(np.argmax(excess)), float(np.sqrt(distance.sum())) if rest > 0 else 0.0

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
    found = _numbers_of(subject, groups)
    if found is None or not subject.codes:
        return found
    shown = groups.shown
    return replace(found, codes={j: shares[shown] for j, shares in subject.codes.items()})


def _parts(groups: Groups, subject: Subject) -> Array:
    """The sizes of the groups in use."""
    seen = None if subject.look is None else subject.look.groups
    trained = getattr(subject.model, "class_weight_", None)
    if trained is not None and len(trained) == len(groups.names):  # not the priors, as given
        return np.asarray(trained, float)[groups.shown]
    if groups.weights is not None:
        return np.asarray(groups.weights[groups.shown], float)
    if seen is not None and seen.mass.sum() > 0:
        return np.asarray(seen.mass[groups.shown])
    return np.ones(len(groups.shown))


def _numbers_of(subject: Subject, groups: Groups) -> Profiles | None:
    """Means and deviations of all columns."""
    own = _centres(subject.model, len(groups.names))
    seen = None if subject.look is None else subject.look.groups
    if own is None and seen is None:
        return None
    shown, parts = groups.shown, _parts(groups, subject)
    if own is None:
        assert seen is not None and subject.look is not None
        columns = subject.look.columns
        return Profiles(seen.means[shown], seen.deviations[shown], columns.mean, columns.deviation,
                        False, parts)  # fmt: skip
    spread = deviations_of(subject.model)
    constant, values = constants_set_aside(subject.model)
    own[:, constant] = values
    if spread is not None:
        spread = np.array(spread)
        spread[:, constant] = 0.0  # what the model has is a floor
    by_model = spread is not None and (seen is None or not units_matter(subject.model))
    if not by_model and seen is not None:
        spread = seen.deviations
    spread = None if spread is None else spread[shown]
    if subject.look is not None:
        columns = subject.look.columns
        zero = (columns.minimum == 0) & (columns.maximum == 0)
        own[(np.abs(own) <= _LEAST_RATE) & zero] = 0.0  # the mean of counts has a floor
        return Profiles(own[shown], spread, columns.mean, columns.deviation, True, parts,
                        spread_by_model=by_model)  # fmt: skip
    return replace(_without_rows(own[shown], spread, parts), spread_by_model=by_model)


def _without_rows(means: Array, spread: Array | None, parts: Array) -> Profiles:
    """Mean and deviation of all rows as the mixture has them."""
    parts = parts / parts.sum()
    mean = parts @ means
    variance = parts @ (means - mean) ** 2
    if spread is not None:
        variance = variance + parts @ spread**2
    return Profiles(means, spread, mean, np.sqrt(variance), True, parts)


def _centres(model: Any, size: int) -> Array | None:
    """Expected rows (K, D) of groups that the model publishes, in units of the columns."""
    if hasattr(model, "transforms_"):  # means of transformed rows
        return None
    for name in ("means_", "cluster_centers_"):
        found = getattr(model, name, None)
        if found is not None and np.shape(found) == (size, model.n_features_in_):
            return np.array(found, float)
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
