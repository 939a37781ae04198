"""How targets become the outputs of a factor model, and what is known of these beforehand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, record
from mixfold.math.contrasts import contrasts


@record
@dataclass(frozen=True, slots=True)
class Coding:
    """How targets are outputs: codes (C, L) of classes, or (y - center) / scale (L,).

    ``means`` and ``variances`` (L,) of the outputs that are known; ``prior`` (C,) of the classes;
    ``seen`` (L,): whether an output is ever known.
    """

    codes: Array
    center: Array
    scale: Array
    means: Array
    variances: Array
    prior: Array
    seen: Array


def class_coding(encoded: Array, weight: Array, n_classes: int, plain: bool) -> Coding:
    """Of classes (n,), -1 where unknown: unit vectors if ``plain``, else corners of a simplex."""
    codes = np.eye(n_classes) if plain else contrasts(n_classes)
    known = encoded >= 0
    prior = np.bincount(encoded[known], weight[known], minlength=n_classes) / weight[known].sum()
    means, deviations = _moments(np.where(known[:, None], codes[encoded], np.nan), weight)
    seen = np.ones(codes.shape[1], bool)
    return Coding(codes, np.zeros(1), np.ones(1), means, deviations**2, prior, seen)


def number_coding(encoded: Array, weight: Array, standardized: bool) -> Coding:
    """Of outputs (n, L), NaN where unknown: about their means, ``standardized`` or as they are."""
    center, deviations = _moments(encoded, weight)
    scale = np.ones(len(center))
    if standardized:
        scale = np.where(deviations > 0, deviations, 1.0)
    means, deviations = _moments((encoded - center) / scale, weight)
    seen = np.asarray(~np.isnan(encoded).all(axis=0))
    nothing = np.zeros((0, 0))
    return Coding(nothing, center, scale, means, deviations**2, np.zeros(0), seen)


def _moments(values: Array, weight: Array) -> tuple[Array, Array]:
    """Means and standard deviations of the known entries; 0 and 1 where there are none."""
    known = ~np.isnan(values)
    count = weight @ known
    total = np.where(count > 0, count, 1.0)
    mean = weight @ np.where(known, values, 0.0) / total
    variance = weight @ np.where(known, (values - mean) ** 2, 0.0) / total
    return mean, np.where(count > 0, np.sqrt(variance), 1.0)
