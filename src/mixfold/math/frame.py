"""The coordinates in which moments are kept: centred and scaled by a pilot sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, NotNegative, Positive, record

# columns of a sample that are looked at together: temporaries stay small beside the sample
_COLUMNS = 16
# a standard deviation that is larger than that of the middle of the rows by this factor is that of
# a few rows far away
_OUTLYING = 30.0
# what 10 and 90 % quantiles of a standard normal are apart
_NORMAL_RANGE = 2.5631031310892007
# steps between values, relative to the range of a column, that are errors of arithmetic
_NO_STEP = 1e-9
# no column with less kurtosis can have such rows: a fifth of the weight would hold all variance
_LEAST_KURTOSIS = 4.5
# of the entries of a column that is mostly one number: those whose spread is looked at
_NEAREST = 0.95
# in units of the spread of most rows: a row beyond it is far away from them
FAR_AWAY = 50.0
# origins and scales of data that can be squared, and some room
_FARTHEST = 1e155
# scales whose squares can be told from zero, and some room
LEAST_SCALE = 1e-165


@record
@dataclass(frozen=True, slots=True)
class Frame:
    """u = (x - origin) / scale, frozen for the life of a fit.

    Sums of squares about the origin of the data cancel catastrophically when the data sit far
    from zero; about a pilot mean they do not, and statistics stay additive over blocks.
    """

    origin: Array
    scale: Positive
    # the least variance that a column recorded in steps can tell, here, if that counts
    rounding: NotNegative | None = None

    @property
    def log_scale(self) -> Array:
        return np.asarray(np.log(self.scale))

    def enter(self, X: Array) -> Array:
        """Data to frame coordinates, in float64."""
        return np.asarray((X - self.origin) / self.scale)

    def leave(self, U: Array) -> Array:
        """Frame coordinates to data."""
        return np.asarray(U * self.scale + self.origin)


def check_frames(value: Any) -> None:
    """Refuse frames that no data have given, in what was read from a file.

    Compiled code takes a frame as it is, so it has the columns of its parameters; entries of data
    lie within 1e150 of zero, and so do origin and scale.
    """
    if isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            check_frames(item)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        frame, means = parts.get("frame"), parts.get("means", parts.get("centres"))
        if isinstance(frame, Frame):
            if isinstance(means, np.ndarray):
                wanted = means.shape[-1:]
                if means.ndim != 2 or frame.origin.shape != wanted or frame.scale.shape != wanted:
                    raise ValueError(f"a frame of other columns than the parameters ({wanted})")
            if frame.rounding is not None and frame.rounding.shape != frame.scale.shape:
                raise ValueError("a frame whose steps are those of other columns")
            for name, array in (("origin", frame.origin), ("scale", frame.scale)):
                if np.abs(array).max(initial=0.0) > _FARTHEST:
                    raise ValueError(f"the {name} of a frame is beyond {_FARTHEST:g}")
            if frame.scale.min(initial=1.0) < LEAST_SCALE:
                raise ValueError(f"the scale of a frame is below {LEAST_SCALE:g}")
        for part in parts.values():
            check_frames(part)


def same_frame(one: Frame, other: Frame) -> bool:
    """Whether two frames are the same coordinates."""
    same = np.array_equal(one.origin, other.origin) and np.array_equal(one.scale, other.scale)
    return bool(same)


def similar_frame(one: Frame, other: Frame) -> bool:
    """Whether data that one frame was made for are computed with as well in the other."""
    ratio = one.scale / other.scale
    near = np.abs(one.origin - other.origin) <= 0.5 * other.scale
    return bool(near.all() and (ratio <= 2).all() and (ratio >= 0.5).all())


def frame_of(X: Array, weight: Array, robust: bool = False) -> Frame:
    """Weighted mean and standard deviation of the observed entries of each column.

    A constant column has no scale of its own and borrows the root mean square of the others. With
    ``robust``, median and quantiles take their place in columns in which a few entries are so far
    away that the standard deviation speaks of them alone.
    """
    origin, variance, kurtosis = _column_moments(X, weight)
    if not np.isfinite(variance).all():
        raise ValueError(
            f"column {int(np.argmin(np.isfinite(variance)))} holds values too large to be squared; "
            "divide it by a large number first"
        )
    # deviations of the size of the rounding of the entries are no variance
    noise = (8 * np.finfo(X.dtype).eps * np.abs(origin)) ** 2
    positive = variance > noise
    for d in np.flatnonzero(positive & robust & (kurtosis > _LEAST_KURTOSIS)):
        centre, scale = _median_and_scale(X[:, d], weight)
        if noise[d] < scale**2 < variance[d] / _OUTLYING**2:
            origin[d], variance[d] = centre, scale**2
    common = variance[positive].mean() if positive.any() else 1.0
    return Frame(origin, np.sqrt(np.where(positive, variance, common)))


def bulk_of(X: Array, weight: Array) -> Frame:
    """Where most rows are: the middle of each column and the spread about it, which a few entries
    far away do not change. The scale is infinite where there is no spread to measure by."""
    origin, variance, kurtosis = _column_moments(X, weight)
    scale = np.sqrt(variance)
    tailed = np.flatnonzero(kurtosis > _LEAST_KURTOSIS)
    if tailed.size:
        origin[tailed], scale[tailed] = _medians_and_scales(X[:, tailed], weight)
    noise = 8 * np.finfo(X.dtype if X.dtype.kind == "f" else float).eps * np.abs(origin)
    return Frame(origin, np.where(scale > noise, scale, np.inf))


def far_rows(X: Array, bulk: Frame) -> Array:
    """Which rows (n,) have an entry that is far away from most others of its column."""
    with np.errstate(invalid="ignore"):  # comparisons with missing entries are False
        return np.asarray((np.abs(X - bulk.origin) > FAR_AWAY * bulk.scale).any(axis=1))


def widen_constant_columns(frame: Frame, X: Array, spread: Array) -> Frame:
    """A column that is constant in the sample X, but not in all rows, with a scale of its own."""
    constant = np.nanmax(X, axis=0) == np.nanmin(X, axis=0)
    # of n sampled rows none differs: at most about one in n does
    own = spread / np.sqrt(len(X))
    scale = np.where(constant & (own > LEAST_SCALE), own, frame.scale)
    return Frame(frame.origin, scale, frame.rounding)


def with_rounding(frame: Frame, X: Array) -> Frame:
    """The frame with the least variance that a column recorded in steps can tell.

    A value says that the truth is within a step s of it, so its density is 1 / s at most: that of a
    normal of variance s^2 / (2 pi) at its mean. A normal for each value of a column has then the
    likelihood of the shares of the values, and none has a higher one. The variance of a uniform
    error, s^2 / 12, is not enough: it would make each value 1.38 times as dense, in each column.
    """
    least = (resolution(X) / frame.scale) ** 2 / (2 * np.pi)
    return Frame(frame.origin, frame.scale, least)


def resolution(X: Array) -> Array:
    """The smallest step between two distinct values of each column; 0 where there are not two.

    Values are recorded in steps: years, tenths of a degree, yes or no. Of values without any the
    smallest step is tiny beside the spread of the column, about 1 / n^2 of its range.
    """
    found = np.zeros(X.shape[1])
    for d in range(0, X.shape[1], _COLUMNS):
        steps = np.diff(np.sort(X[:, d : d + _COLUMNS].astype(float), axis=0), axis=0)
        steps = np.nan_to_num(steps, nan=0.0)  # missing entries come last
        steps[steps <= _NO_STEP * steps.sum(axis=0)] = np.inf
        least = steps.min(axis=0, initial=np.inf)
        found[d : d + _COLUMNS] = np.where(np.isinf(least), 0.0, least)
    return found


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


def _medians_and_scales(X: Array, weight: Array) -> tuple[Array, Array]:
    """``_median_and_scale`` of many columns, at once where nothing is missing and rows weigh the
    same."""
    found = np.empty((2, X.shape[1]))
    left = np.arange(X.shape[1])
    if np.ptp(weight) == 0 and not np.isnan(X).any():
        low, middle, high = np.quantile(X, (0.1, 0.5, 0.9), axis=0, method="inverted_cdf")
        found[0], found[1] = middle, (high.astype(float) - low) / _NORMAL_RANGE
        left = np.flatnonzero(high <= low)
    for d in left:
        found[:, d] = _median_and_scale(X[:, d], weight)
    return found[0], found[1]


def _median_and_scale(x: Array, weight: Array) -> tuple[float, float]:
    """Median and standard deviation of a normal with the same 10 and 90 % quantiles.

    If these are equal, of a column that is mostly zero, say: the spread of the entries nearest to
    the median.
    """
    seen = ~np.isnan(x)
    x, weight = x[seen].astype(float), weight[seen]
    low, middle, high = np.quantile(x, (0.1, 0.5, 0.9), weights=weight, method="inverted_cdf")
    if high > low:
        return float(middle), float(high - low) / _NORMAL_RANGE
    away = np.abs(x - middle)
    near = away <= np.quantile(away, _NEAREST, weights=weight, method="inverted_cdf")
    return float(middle), float(np.sqrt(np.average(away[near] ** 2, weights=weight[near])))


def _column_moments(X: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Mean, variance and kurtosis of the observed entries of each column."""
    columns = range(0, X.shape[1], _COLUMNS)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [_mean_and_variance(X[:, d : d + _COLUMNS], weight) for d in columns]
    origin, variance, kurtosis = (np.concatenate(part) for part in zip(*parts, strict=True))
    return origin, variance, kurtosis


def _mean_and_variance(X: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Of the observed entries of some columns, with their kurtosis; 0 where there are none."""
    seen = ~np.isnan(X)
    if seen.all():
        return _moments_about(lambda origin: X - origin, X, weight, weight.sum())
    total = np.maximum(weight @ seen, np.finfo(float).tiny)
    X = np.where(seen, X, 0.0)
    found = _moments_about(lambda origin: (X - origin) * seen, X, weight, total)
    return np.where(seen.any(axis=0), found[0], 0.0), found[1], found[2]


def _moments_about(
    deviate: Callable[[Array], Array], X: Array, weight: Array, total: Any
) -> tuple[Array, Array, Array]:
    """Mean, variance and kurtosis; ``deviate`` gives deviations from an origin, 0 where missing."""
    # two steps, each about the last: exact enough for a column such as 1e8 +- 1e-3
    origin = X.max(axis=0, initial=0.0).astype(float)
    for _ in range(2):
        origin = origin + weight @ deviate(origin) / total
    away = deviate(origin)
    variance = weight @ away**2 / total
    away /= np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    away *= away
    kurtosis = weight @ np.square(away, out=away) / total  # a power of four takes ten times as long
    return origin, variance, kurtosis


def uniform(frame: Frame) -> Frame:
    """The same origin with one scale for all columns, so that spheres stay spheres."""
    scale = np.sqrt(np.mean(frame.scale**2))
    rounding = frame.rounding
    if rounding is not None:
        rounding = np.full_like(rounding, np.mean(rounding * frame.scale**2) / scale**2)
    return Frame(frame.origin, np.full_like(frame.scale, scale), rounding)


def subtract_origin(X: Any, origin: Array) -> Any:
    """X - origin in the type of X; X itself if the origin is zero.

    A CSR matrix gets entries where the origin is not zero, and nowhere else.
    """
    if not origin.any():
        return X
    shift = origin.astype(X.dtype)
    if not sparse.issparse(X):
        return X - shift
    columns = np.flatnonzero(shift)
    pointers = np.arange(X.shape[0] + 1) * len(columns)
    entries = np.tile(shift[columns], X.shape[0]), np.tile(columns, X.shape[0]), pointers
    return sparse.csr_array(X - sparse.csr_array(entries, shape=X.shape))
