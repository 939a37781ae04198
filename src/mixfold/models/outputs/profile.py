"""Supervised PPCA in closed form: every row complete, with all its outputs, one noise per view.

For given noise variances the maximum is that of probabilistic PCA of both views, each in units of
its noise, side by side. Where noises are free, that is maximised over the one number that is
left: the ratio of the noises, or the noise that is not given. No step depends on a start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from mixfold.contracts import Array, Executor, Source
from mixfold.families.factor import FactorParams
from mixfold.math.frame import Frame
from mixfold.math.largest import largest_pairs
from mixfold.math.symmetric import LOG_2PI
from mixfold.models.factors.spectral import Spectrum, principal_axes, second_moments
from mixfold.models.factors.spectral_rows import collect
from mixfold.models.outputs.gaussian_outputs import GaussianOutputParams
from mixfold.models.outputs.model import SupervisedParams
from mixfold.models.outputs.stacked_views import StackedViews

# natural logarithms of the noise of the outputs over that of the columns, in units of their
# variances, that are tried. The noise of columns of which one varies far more than the others is a
# tiny part of their mean variance: the ends are where the floors of the noises are
_GRID = np.concatenate([np.arange(-33.0, -23.0, 2), np.arange(-23.0, 13.0), np.arange(13.0, 36, 2)])


@dataclass(frozen=True, slots=True)
class Views:
    """Sizes D, L and d, weight of the outputs, the noises that are given, and floors of them."""

    n_features: int
    n_outputs: int
    n_factors: int
    weight: float = 1.0
    input_noise: float | None = None
    output_noise: float | None = None
    input_floor: float = 0.0
    output_floor: float = 0.0

    @property
    def searched(self) -> bool:
        """Whether a noise is free."""
        return self.input_noise is None or self.output_noise is None

    def objective(self, values: Array, total: float, sx: float, sy: float) -> float:
        """Per row, from leading eigenvalues and the trace in units of the noises.

        ``sy`` is the noise of an output that counts once: that of the model over the weight.
        """
        kept = values[values > 1]
        D, L, v = self.n_features, self.n_outputs, self.weight
        size = (D + L) * LOG_2PI + D * np.log(sx) + L * np.log(sy)
        quadratic = float(np.log(kept).sum() + len(kept) + total - kept.sum())
        # p(y | z)^v is not normalised
        extra = L * (LOG_2PI + np.log(sy)) - v * L * (LOG_2PI + np.log(sy * v))
        return float(-0.5 * (size + quadratic) + 0.5 * extra)


@dataclass(frozen=True, slots=True)
class Solved:
    """Parameters, objective per row, weight of all rows, and passes over the data."""

    params: SupervisedParams
    objective: float
    weight: float
    passes: int


def solve(source: Source, executor: Executor, views: Views, rng: np.random.Generator) -> Solved:
    """The maximum of the likelihood; the blocks of the source have all outputs."""
    sx, sy, passes = _noises(source, executor, views)
    both = StackedViews(source, views.n_outputs, sx**-0.5, sy**-0.5)
    spectrum = principal_axes(both, executor, views.n_factors, rng=rng)
    objective = views.objective(spectrum.values, spectrum.total_variance, sx, sy)
    params = _params(spectrum, views, sx, sy)
    return Solved(params, objective, spectrum.weight, passes + spectrum.passes)


def _params(spectrum: Spectrum, views: Views, sx: float, sy: float) -> SupervisedParams:
    D, L = views.n_features, views.n_outputs
    loadings = spectrum.vectors * np.sqrt(np.maximum(spectrum.values - 1, 0.0))
    Wx, Wy = np.sqrt(sx) * loadings[:D], np.sqrt(sy) * loadings[D:]
    scale = float(np.sqrt(sx + (Wx**2).sum() / D))
    frame = Frame(np.sqrt(sx) * spectrum.mean[:D], np.full(D, scale))
    noise = np.full((1, D), sx / scale**2)
    components = FactorParams(frame, np.zeros((1, D)), Wx[None] / scale, noise)
    means = np.sqrt(sy) * spectrum.mean[None, D:]
    outputs = GaussianOutputParams(Wy[None], means, np.full((1, L), sy * views.weight))
    return SupervisedParams(np.ones(1), components, outputs)


# ------------------------------------------------ noises


@dataclass(frozen=True, slots=True)
class _Pair:
    """Matrices whose sum, in units of the noises, has the eigenvalues of both views together."""

    inputs: Array
    outputs: Array
    passes: int

    def leading(self, sx: float, sy: float, size: int) -> tuple[Array, Array]:
        """The largest eigenvalues, in decreasing order, and how much of each is the outputs'."""
        S = self._sum_views(sx, sy)
        size = min(size, len(S))
        if not size:
            return np.zeros(0), np.zeros(0)
        values, vectors = largest_pairs(S, size)
        return values, self._shares(vectors, sy, values)

    def _sum_views(self, sx: float, sy: float) -> Array:
        return self.inputs / sx + self.outputs / sy

    def _shares(self, vectors: Array, sy: float, values: Array) -> Array:
        return np.asarray((vectors * (self.outputs @ vectors)).sum(axis=0) / sy)

    def traces(self) -> tuple[float, float]:
        return float(np.trace(self.inputs)), float(np.trace(self.outputs))


@dataclass(frozen=True, slots=True)
class _Moments(_Pair):
    """The covariance of (x, y), in two blocks of zeros and numbers, and what links the views."""

    between: Array
    n_features: int

    def _sum_views(self, sx: float, sy: float) -> Array:
        linked = self.between / np.sqrt(sx) / np.sqrt(sy)
        return np.asarray(self.inputs / sx + self.outputs / sy + linked)

    def _shares(self, vectors: Array, sy: float, values: Array) -> Array:
        return np.asarray(values * (vectors[self.n_features :] ** 2).sum(axis=0))


def order(source: Source, n_outputs: int) -> int:
    """Order of the matrix that is decomposed again and again where a noise is free."""
    rows = source.n_samples
    wide = source.n_features + n_outputs
    return wide if rows is None else min(rows, wide)


def _pair(source: Source, executor: Executor, views: Views) -> _Pair:
    D, L = views.n_features, views.n_outputs
    rows = source.n_samples
    if rows is not None and rows < D + L:
        inputs, outputs = (_gram(StackedViews(source, L, a, 1 - a), executor) for a in (1.0, 0.0))
        return _Pair(inputs, outputs, 2)
    S = second_moments(StackedViews(source, L), executor).covariance()
    x = np.arange(D + L) < D
    inside = x[:, None] & x
    outside = ~x[:, None] & ~x
    return _Moments(S * inside, S * outside, 1, S * ~(inside | outside), D)


def _gram(source: StackedViews, executor: Executor) -> Array:
    return np.asarray(collect(source, executor, np.zeros(source.n_features), True)[0].gram())


def _noises(source: Source, executor: Executor, views: Views) -> tuple[float, float, int]:
    """Noises of columns and of outputs that count once, and passes made."""
    if views.input_noise is not None and views.output_noise is not None:
        return views.input_noise, views.output_noise / views.weight, 0
    pair = _pair(source, executor, views)
    line = _Line(pair, views, *pair.traces())
    return *line.noises(_maximum(line)), pair.passes


@dataclass(frozen=True, slots=True)
class _Line:
    """The objective along the one number that is free, the logarithm of a noise or a ratio."""

    pair: _Pair
    views: Views
    total_x: float
    total_y: float

    def noises(self, t: float) -> tuple[float, float]:
        """Noises of columns and outputs at a point."""
        views = self.views
        unit_x = self.total_x / views.n_features or 1.0
        unit_y = self.total_y / views.n_outputs or 1.0
        floor_x = max(views.input_floor * unit_x, np.finfo(float).tiny)
        floor_y = max(views.output_floor / views.weight, np.finfo(float).tiny)
        if views.input_noise is not None:
            return views.input_noise, max(unit_y * np.exp(t), floor_y)
        if views.output_noise is not None:
            return max(unit_x * np.exp(t), floor_x), views.output_noise / views.weight
        # in units of both views, whose ratio need not be a number that floats can hold
        level = self._level(unit_x, unit_y * np.exp(t))
        sx = max(unit_x * level, floor_x)
        with np.errstate(over="ignore"):  # beyond a floor near the end of the range of floats
            return sx, max(unit_y * np.exp(t) * (sx / unit_x), floor_y)

    def _level(self, sx: float, sy: float) -> float:
        """Which multiple of two noises is best: the mean of the eigenvalues that are left over."""
        views = self.views
        values, _ = self.pair.leading(sx, sy, views.n_factors)
        total = self.total_x / sx + self.total_y / sy
        free = views.n_features + views.weight * views.n_outputs
        level = 0.0
        for q in range(len(values), -1, -1):
            left = max(total - float(values[:q].sum()), 0.0)
            level = left / (free - q) if free > q else 0.0
            if q == 0 or values[q - 1] > level:
                break
        return level

    def __call__(self, t: float) -> float:
        sx, sy = self.noises(t)
        if np.isinf(sy):
            return -np.inf
        values, _ = self.pair.leading(sx, sy, self.views.n_factors)
        return self.views.objective(values, self.total_x / sx + self.total_y / sy, sx, sy)

    def slope(self, t: float) -> float:
        """The derivative, where no floor is met; the level of both noises is at its best."""
        sx, sy = self.noises(t)
        values, outputs = self.pair.leading(sx, sy, self.views.n_factors)
        kept = values > 1
        values, outputs = values[kept], outputs[kept]
        if self.views.output_noise is not None and self.views.input_noise is None:
            size, trace, part = self.views.n_features, self.total_x / sx, values - outputs
        else:
            size = self.views.weight * self.views.n_outputs  # type: ignore[assignment]
            trace, part = self.total_y / sy, outputs
        return float(-0.5 * (size - trace + ((1 - 1 / values) * part).sum()))


def _maximum(line: _Line) -> float:
    """Where the objective, which may have several maxima, is largest: a grid, refined."""
    values = np.array([line(t) for t in _GRID])
    inner = np.flatnonzero((values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])) + 1
    best, where = float(values.max()), float(_GRID[values.argmax()])
    for i in inner[np.argsort(values[inner])[::-1][:2]]:
        bounds = (float(_GRID[i - 1]), float(_GRID[i + 1]))
        found = minimize_scalar(
            lambda t: -line(t), bounds=bounds, method="bounded", options={"xatol": 1e-5}
        )
        if -found.fun >= best:
            best, where = float(-found.fun), _polish_maximum(line, float(found.x))
    return where


def _polish_maximum(line: _Line, t: float) -> float:
    """The zero of the slope near a maximum, which the flat top itself does not tell so well."""
    low, high = t - 1e-3, t + 1e-3
    if line.slope(low) > 0 > line.slope(high):
        return float(brentq(line.slope, low, high, xtol=1e-14))
    return t
