"""Losses of outputs that are predicted by functions of the row, with bounded second derivatives.

A loss of targets T (n, L), NaN where unknown, looks at margins u_k = eta_l + b_k, where eta (n, L)
are centred functions of the rows and b (K,) intercepts, of which each belongs to a column l. What
is unknown has no loss. Since no second derivative is above ``curvature``,

    loss(u) <= loss(u0) + gradient' (u - u0) + curvature/2 |u - u0|^2,

the least of which is a regression of eta0 - gradient / curvature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, log_softmax, softmax

from mixfold.contracts import Array, record

LOSSES = ("squared", "logistic", "hinge", "rank")
# the smallest share of a side that the intercept of a constant margin is computed for
_LEAST_SHARE = 1e-6


class OutputLoss(Protocol):
    """What a set of outputs loses; ``owner`` (K,): the column of each intercept."""

    @property
    def owner(self) -> Array: ...

    @property
    def curvature(self) -> float:
        """The largest second derivative along a margin."""
        ...

    def start(self, T: Array, weight: Array) -> Array:
        """Intercepts (K,) of least loss where there is nothing else."""
        ...

    def evaluate(self, eta: Array, b: Array, T: Array) -> tuple[Array, Array]:
        """Losses (n,) of the rows and gradients (n, K) by the margins."""
        ...


@record
@dataclass(frozen=True, slots=True)
class SoftmaxLoss:
    """-log of the share of the class, T unit vectors of C classes: Boehning's bound is 1/2."""

    n_classes: int

    @property
    def owner(self) -> Array:
        return np.arange(self.n_classes)

    @property
    def curvature(self) -> float:
        return 0.5

    def start(self, T: Array, weight: Array) -> Array:
        counts = weight @ np.nan_to_num(T)
        return np.asarray(np.log(np.maximum(counts / counts.sum(), _LEAST_SHARE)))

    def evaluate(self, eta: Array, b: Array, T: Array) -> tuple[Array, Array]:
        known = ~np.isnan(T[:, :1])
        u, Y = eta + b, np.where(known, T, 0.0)
        losses = -np.where(known, Y * log_softmax(u, axis=1), 0.0).sum(axis=1)
        return losses, np.where(known, softmax(u, axis=1) - Y, 0.0)


@record
@dataclass(frozen=True, slots=True)
class MarginLoss:
    """A loss of each margin, by whether the target of its column is above a level.

    ``owner`` (K,) and ``levels`` (K,): labels have one margin for each column, at one half; ordered
    grades one between each grade and the next (all thresholds; Rennie and Srebro). ``kind`` is
    'logistic', log(1 + exp(-m)), or 'hinge', which is round about its corner:

        1/2 - m for m < 0,   (1 - m)^2 / 2 for 0 <= m <= 1,   0 for m > 1.
    """

    kind: str
    owner: Array
    levels: Array

    @property
    def curvature(self) -> float:
        return 0.25 if self.kind == "logistic" else 1.0

    def start(self, T: Array, weight: Array) -> Array:
        known = ~np.isnan(T[:, self.owner])
        total = weight @ known
        above = weight @ np.where(known, T[:, self.owner] > self.levels, False)
        p = np.clip(above / np.where(total > 0, total, 1.0), _LEAST_SHARE, 1 - _LEAST_SHARE)
        if self.kind == "logistic":
            return np.asarray(np.log(p) - np.log1p(-p))
        return np.asarray(np.where(p >= 0.5, (2 * p - 1) / p, (2 * p - 1) / (1 - p)))

    def evaluate(self, eta: Array, b: Array, T: Array) -> tuple[Array, Array]:
        target = T[:, self.owner]
        known, sign = ~np.isnan(target), np.where(target > self.levels, 1.0, -1.0)
        m = sign * (eta[:, self.owner] + b)
        if self.kind == "logistic":
            losses, slopes = np.logaddexp(0.0, -m), -expit(-m)
        else:
            within = np.clip(1 - m, 0.0, 1.0)
            losses, slopes = 0.5 * within**2 + np.maximum(-m, 0.0), -within
        return np.where(known, losses, 0.0).sum(axis=1), np.where(known, sign * slopes, 0.0)
