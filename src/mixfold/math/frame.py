"""The coordinates in which moments are kept: centred and scaled by a pilot sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, record

# columns of a sample that are looked at together: temporaries stay small beside the sample
_COLUMNS = 16


@record
@dataclass(frozen=True, slots=True)
class Frame:
    """u = (x - origin) / scale, frozen for the life of a fit.

    Sums of squares about the origin of the data cancel catastrophically when the data sit far
    from zero; about a pilot mean they do not, and statistics stay additive over blocks.
    """

    origin: Array
    scale: Array

    @property
    def log_scale(self) -> Array:
        return np.asarray(np.log(self.scale))

    def enter(self, X: Array) -> Array:
        """Data to frame coordinates, in float64."""
        return np.asarray((X - self.origin) / self.scale)

    def leave(self, U: Array) -> Array:
        """Frame coordinates to data."""
        return np.asarray(U * self.scale + self.origin)


def same_frame(one: Frame, other: Frame) -> bool:
    """Whether two frames are the same coordinates."""
    same = np.array_equal(one.origin, other.origin) and np.array_equal(one.scale, other.scale)
    return bool(same)


def frame_of(X: Array, weight: Array) -> Frame:
    """Weighted mean and standard deviation of the observed entries of each column.

    A constant column has no scale of its own and borrows the root mean square of the others.
    """
    columns = range(0, X.shape[1], _COLUMNS)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [_mean_and_variance(X[:, d : d + _COLUMNS], weight) for d in columns]
    origin, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not np.isfinite(variance).all():
        raise ValueError(
            f"column {int(np.argmin(np.isfinite(variance)))} holds values too large to be squared; "
            "divide it by a large number first"
        )
    # deviations of the size of the rounding of the entries are no variance
    noise = (8 * np.finfo(X.dtype).eps * np.abs(origin)) ** 2
    positive = variance > noise
    common = variance[positive].mean() if positive.any() else 1.0
    return Frame(origin, np.sqrt(np.where(positive, variance, common)))


def widened(frame: Frame, X: Array, spread: Array) -> Frame:
    """A column that is constant in the sample X, but not in all rows, with a scale of its own."""
    constant = np.nanmax(X, axis=0) == np.nanmin(X, axis=0)
    # of n sampled rows none differs: at most about one in n does
    scale = np.where(constant & (spread > 0), spread / np.sqrt(len(X)), frame.scale)
    return Frame(frame.origin, scale)


def plain_frame(n_features: int) -> Frame:
    """Data coordinates as they are: counts have an origin and a unit."""
    return Frame(np.zeros(n_features), np.ones(n_features))


def frame_about_zero(X: Array, weight: Array) -> Frame:
    """Origin zero and the root mean square of each column, for models without means."""
    centred = frame_of(X, weight)
    varies = np.nanmax(X, axis=0) > np.nanmin(X, axis=0)
    scale = np.hypot(centred.origin, np.where(varies, centred.scale, 0.0))
    positive = scale > 0
    common = np.sqrt(np.mean(scale[positive] ** 2)) if positive.any() else 1.0
    return Frame(np.zeros_like(centred.origin), np.where(positive, scale, common))


def _mean_and_variance(X: Array, weight: Array) -> tuple[Array, Array]:
    """Of the observed entries of some columns; 0 where there are none."""
    seen = ~np.isnan(X)
    w = weight[:, None] * seen
    total = np.maximum(w.sum(axis=0), np.finfo(float).tiny)
    # two steps, each about the last: exact enough for a column such as 1e8 +- 1e-3
    origin = np.where(seen, X, 0.0).max(axis=0, initial=0.0).astype(float)
    for _ in range(2):
        origin = origin + (w * np.where(seen, X - origin, 0.0)).sum(axis=0) / total
    variance = (w * np.where(seen, X - origin, 0.0) ** 2).sum(axis=0) / total
    return np.where(seen.any(axis=0), origin, 0.0), variance


def uniform(frame: Frame) -> Frame:
    """The same origin with one scale for all columns, so that spheres stay spheres."""
    scale = np.sqrt(np.mean(frame.scale**2))
    return Frame(frame.origin, np.full_like(frame.scale, scale))
