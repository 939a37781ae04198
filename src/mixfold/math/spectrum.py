"""Probabilistic PCA from eigenvalues: noise variance, likelihood, number of axes.

Everything is read off the leading eigenvalues of the covariance and its trace, so the small
eigenvalues need not be known (except by the evidence).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import gammaln

from mixfold.contracts import Array

# relative to the mean variance of a column: below this, noise is not told from none
FLOOR = 1e-12


def noise_variance(leading: Array, total: float, n_features: int, floor: float = 0.0) -> float:
    """The mean of the eigenvalues that are not among the ``leading`` ones; at least ``floor``."""
    rest = n_features - len(leading)
    if rest <= 0:
        return floor
    # rounding can leave less than nothing of the trace
    return max(floor, (total - float(np.sum(leading))) / rest, 0.0)


def log_likelihood(leading: Array, total: float, n_features: int, floor: float = 0.0) -> float:
    """Greatest log-likelihood per unit of weight of PPCA with ``len(leading)`` axes.

    Parameters
    ----------
    leading : ndarray of shape (d,)
        The largest eigenvalues of the covariance.
    total : float
        Its trace.
    n_features : int
    floor : float
        Least variance of the noise. Without one, data that the axes explain in full have
        likelihood infinity.
    """
    noise = noise_variance(leading, total, n_features, floor)
    # an axis of less variance than the noise has no loading: it is noise too
    axes = np.maximum(leading, noise)
    rest = n_features - len(leading)
    if min(np.min(axes, initial=np.inf), noise if rest else np.inf) <= 0:
        return float("inf")
    log_det, fit = np.log(axes).sum(), (leading / axes).sum()
    if rest:
        log_det += rest * np.log(noise)
        fit += max(total - float(np.sum(leading)), 0.0) / noise
    return float(-(n_features * np.log(2 * np.pi) + log_det + fit) / 2)


def n_parameters(n_features: int, n_axes: int) -> int:
    """Free parameters of PPCA: loadings up to rotation, one noise variance, the mean."""
    return n_features * n_axes - n_axes * (n_axes - 1) // 2 + 1 + n_features


# ------------------------------------------------------------------ how many axes


class Rule(Protocol):
    """How many axes to keep.

    Called with the largest eigenvalues known so far, the trace of the covariance, the number of
    columns and the weight of all rows. An answer that is not less than the number of eigenvalues
    means that more of them are wanted, if there are more. A rule that says so in ``whole`` is
    asked only when all that are not zero are known.
    """

    whole: ClassVar[bool]

    def __call__(self, values: Array, total: float, n_features: int, weight: float) -> int: ...


@dataclass(frozen=True, slots=True)
class Fraction:
    """The fewest axes that hold a given share of the variance."""

    share: float
    whole: ClassVar[bool] = False

    def __call__(self, values: Array, total: float, n_features: int, weight: float) -> int:
        if total <= 0:
            return 0
        reached = np.cumsum(values) >= (self.share - 1e-12) * total
        return int(reached.argmax()) + 1 if reached.any() else len(values)


@dataclass(frozen=True, slots=True)
class EveryAxis:
    """All axes that have variance but the last, so that some is left for the noise."""

    whole: ClassVar[bool] = True

    def __call__(self, values: Array, total: float, n_features: int, weight: float) -> int:
        real = int((values > 1e-12 * total).sum()) if total > 0 else 1
        return max(1, real - 1)


@dataclass(frozen=True, slots=True)
class Bic:
    """The least Bayesian information criterion of PPCA."""

    floor: float = FLOOR
    whole: ClassVar[bool] = False

    def __call__(self, values: Array, total: float, n_features: int, weight: float) -> int:
        if total <= 0:
            return 0
        return _best(-bics(values, total, n_features, weight, self.floor), weight)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The greatest evidence of PPCA, by Laplace's approximation (T. Minka, NIPS 2000)."""

    floor: float = FLOOR
    whole: ClassVar[bool] = True

    def __call__(self, values: Array, total: float, n_features: int, weight: float) -> int:
        if total <= 0:
            return 0
        return _best(log_evidences(values, total, n_features, weight, self.floor), weight)


def dimension_rule(spec: Any) -> Rule:
    """The rule that a user names: a share of the variance, "bic" or "mle".

    Examples
    --------
    >>> from mixfold.math.spectrum import dimension_rule
    >>> dimension_rule(0.99)
    Fraction(share=0.99)
    """
    if isinstance(spec, str) and spec in ("bic", "mle"):
        return Bic() if spec == "bic" else Evidence()
    if isinstance(spec, (float, np.floating)) and 0 < spec <= 1:
        return Fraction(float(spec))
    raise ValueError(
        "n_components must be a whole number of axes, a share of the variance (a float above 0 "
        f"and up to 1.0), 'bic', 'mle' or None; got {spec!r}"
    )


def bics(
    values: Array, total: float, n_features: int, weight: float, floor: float = FLOOR
) -> Array:
    """BIC of PPCA with 0, 1, ..., len(values) axes; ``floor`` is relative to the mean variance."""
    least = floor * total / n_features
    return np.array(
        [
            -2 * weight * log_likelihood(values[:d], total, n_features, least)
            + n_parameters(n_features, d) * np.log(weight)
            for d in range(len(values) + 1)
        ]
    )


def log_evidences(
    values: Array, total: float, n_features: int, weight: float, floor: float = FLOOR
) -> Array:
    """Logarithm of Minka's evidence for 0, 1, ..., min(len(values), n_features - 1) axes.

    ``values`` must be all the eigenvalues that are not zero. With n rows in D columns, noise v and
    the values l_1 > l_2 > ..., where l^ is l for the axes that are kept and v for the others,

        p(X | d) ~ p(U) (l_1 ... l_d)^(-n/2) v^(-n (D-d)/2) (2 pi)^((m+d)/2) |A|^(-1/2) n^(-d/2),
        |A| = prod_(i <= d) prod_(j > i) n (1/l^_j - 1/l^_i) (l_i - l_j),   m = D d - d (d+1)/2,

    and 1/p(U) the area of the manifold of the axes.
    """
    size = min(len(values), n_features - 1)
    least = floor * total / n_features
    full = np.concatenate([values, np.zeros(n_features - len(values))])
    smallest = np.finfo(float).eps * max(float(full[0]), np.finfo(float).tiny)
    out = np.full(size + 1, -np.inf)
    # sums over i <= d that do not change with d: differences of values, pairs of axes, area
    gaps = pairs = area = 0.0
    for d in range(size + 1):
        if d:
            value = full[d - 1]
            if value <= max(smallest, least):
                break  # no axis without variance
            gaps += np.log(np.maximum(value - full[d:], smallest)).sum()
            inverse = 1 / value - 1 / full[: d - 1]
            pairs += np.log(np.maximum(inverse, np.finfo(float).eps / value)).sum()
            half = (n_features - d + 1) / 2
            area += np.log(2) + half * np.log(np.pi) - gammaln(half)
        noise = max(noise_variance(full[:d], total, n_features), least, smallest)
        m = n_features * d - d * (d + 1) // 2
        contrast = np.maximum(1 / noise - 1 / full[:d], np.finfo(float).eps / noise)
        log_a = m * np.log(weight) + gaps + pairs + (n_features - d) * np.log(contrast).sum()
        fit = np.log(full[:d]).sum() + (n_features - d) * np.log(noise)
        occam = (m + d) * np.log(2 * np.pi) - log_a - d * np.log(weight)
        out[d] = -area + (occam - weight * fit) / 2
    return out


def _best(scores: Array, weight: float) -> int:
    """The number of axes of the highest score, at least one where there is any.

    An axis for every row leaves no noise at all; two rows for each are asked for.
    """
    last = max(1, min(len(scores) - 1, int(weight // 2)))
    return 1 + int(np.argmax(scores[1 : last + 1])) if len(scores) > 1 else 0
