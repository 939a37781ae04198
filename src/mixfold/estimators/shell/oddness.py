"""How odd rows are: the probability of a row that is less dense, given which entries are seen.

The log density of a row that lacks entries is not comparable with that of a complete one, nor is a
density in two columns with one in ten. The tail probability is: of rows with the same entries
seen, drawn from the model, the part that is less dense. It is uniform for rows of the model itself.

One Gaussian has it exactly: twice the loss of log density against the mean is chi-square with as
many degrees of freedom as there are entries. Of other models rows are drawn once, by the seed; for
each pattern of missing entries their densities in the entries that are seen make the scale. So
blocks and threads change nothing. Beyond the outermost draws the tail is taken as exponential.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import chi2

from mixfold.contracts import Array, Block, RowRandom
from mixfold.engine.random import RowKeys
from mixfold.families.component import dense_rows
from mixfold.families.factor import FactorFamily
from mixfold.families.gaussian import GaussianFamily
from mixfold.math.missing import patterns_of
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.mixture import Mixture, MixtureParams, MixtureReading

# the stream of random numbers of draws, apart from those of fits and of imputation
STREAM = 5
# part of the draws by which the tail is fitted, that of the last few on; densities that are the
# same but for rounding
_OUTER, _FEW, _SAME = 0.05, 20, 1e-9
# draws of a pattern where there are many patterns, and patterns that are remembered
_LEAST_DRAWS, _MOST_SCALES = 100, 2000
# rows whose entries are left out at a time
_AT_ONCE = 20_000


@dataclass(frozen=True)
class PointDensity:
    """The density of a mixture at its point estimate."""

    model: Mixture
    params: MixtureParams
    reading: MixtureReading = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reading", self.model.prepare(self.params))

    def log_density(self, X: Array) -> Array:
        """Of the entries of rows that are seen; zero of none."""
        missing = np.isnan(X)
        block = Block(X, complete=not missing.any())
        found = normalise(self.model.log_joint(self.reading, block))[0]
        return np.where(missing.all(axis=1), 0.0, found)

    def impute(self, block: Block, rng: RowRandom, draw: bool) -> Array:
        return self.model.impute(self.reading, block, rng, draw=draw)

    def draw(self, n: int, seed: int) -> Array:
        rng = np.random.default_rng([seed % 2**63, STREAM])
        return np.asarray(self.model.sample(self.params, n, rng)[0], float)

    @property
    def mean(self) -> Array | None:
        """The mean, if this is one Gaussian."""
        if not isinstance(self.model.family, GaussianFamily | FactorFamily):
            return None
        used = np.flatnonzero(self.params.weights > 0)
        if len(used) != 1:
            return None
        components = self.params.components
        return np.asarray(components.frame.leave(components.means[used[0]]))


@dataclass(frozen=True)
class DrawnDensity:
    """The density of any estimator that scores and draws rows."""

    estimator: Any

    def log_density(self, X: Array) -> Array:
        return np.asarray(self.estimator.score_samples(X), float)

    def draw(self, n: int, seed: int) -> Array:
        drawn = self.estimator.sample(n, random_state=seed)
        return np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn, float)

    @property
    def mean(self) -> None:
        return None


@dataclass(frozen=True)
class RowTails:
    """Logarithms of tail probabilities of rows; scales of patterns are made once."""

    density: Any
    n_draws: int
    seed: int
    # densities of draws for all patterns of a block together; None: all draws for each of them
    budget: int | None = None
    scales: dict[tuple[bytes, int], Array] = field(default_factory=dict)
    drawn: list[Array] = field(default_factory=list)

    def __call__(self, block: Block) -> Array:
        X = np.asarray(dense_rows(block.X), float)
        found = np.zeros(len(X))
        log_density = self.density.log_density(X)
        patterns = patterns_of(X)
        n_draws = self.n_draws
        if self.budget is not None:
            n_draws = min(n_draws, max(_LEAST_DRAWS, self.budget // len(patterns.missing)))
        for p, missing in enumerate(patterns.missing):
            rows = patterns.order[patterns.start[p] : patterns.start[p + 1]]
            if not missing.all():
                found[rows] = self._tails(log_density[rows], missing, n_draws)
        return found

    def _tails(self, log_density: Array, missing: Array, n_draws: int) -> Array:
        mean = self.density.mean
        # (columns that follow from others have no mean of their own in the model)
        if mean is not None and len(mean) == len(missing):
            top = self.density.log_density(np.where(missing, np.nan, mean)[None])[0]
            squared = np.maximum(2 * (top - log_density), 0.0)
            return np.asarray(chi2.logsf(squared, int((~missing).sum())))
        return log_tails(-log_density, self._scale(missing, n_draws))

    def _scale(self, missing: Array, n_draws: int) -> Array:
        """Surprises of drawn rows in the entries that are seen, ascending."""
        key = (missing.tobytes(), n_draws)
        found = self.scales.get(key)
        if found is None:
            if not self.drawn:
                self.drawn.append(self.density.draw(self.n_draws, self.seed))
            rows = np.where(missing, np.nan, self.drawn[0][:n_draws])
            found = np.sort(-self.density.log_density(rows))
            if len(self.scales) >= _MOST_SCALES:
                self.scales.clear()
            self.scales[key] = found
        return found


def log_tails(surprise: Array, drawn: Array) -> Array:
    """ln P(a draw is as surprising or more), from draws in ascending order.

    Examples
    --------
    >>> drawn = np.sort(np.random.default_rng(0).exponential(size=4000))
    >>> log_tails(np.array([0.0, 1.0, 4.0]), drawn).round()
    array([ 0., -1., -4.])
    """
    n = len(drawn)
    slack = _SAME * (1 + np.abs(surprise))
    above = n - np.searchsorted(drawn, surprise - slack, side="left")
    tails = np.log(np.maximum(above, 0.5) / n)
    outer = drawn[int((1 - _OUTER) * n) :]
    rate = float((outer - outer[0]).mean())
    anchor = drawn[max(n - _FEW, int((1 - _OUTER) * n))]
    if rate > 0:
        part = float((drawn >= anchor - _SAME * (1 + abs(anchor))).mean())
        beyond = np.log(part) - (surprise - anchor) / rate
        tails = np.where(surprise > anchor + slack, beyond, tails)
    return np.asarray(np.minimum(tails, 0.0))


def cell_tails(density: PointDensity, n_draws: int, seed: int, block: Block) -> Array:
    """ln P(an entry as surprising or more | the other entries), (n, D); NaN where there is none.

    All rows share their random numbers, so that the place of a row does not matter.
    """
    X = np.asarray(dense_rows(block.X), float)
    n, width = X.shape
    found = np.full(X.shape, np.nan)
    exact = density.mean is not None
    draws = 1 if exact else n_draws
    rows_at_once = max(1, _AT_ONCE // width) if exact else 1
    for first in range(0, n, rows_at_once):
        part = X[first : first + rows_at_once]
        rows = _without_one(part, draws)
        size = len(part) * width * draws
        filled = density.impute(Block(rows, complete=False), RowKeys(seed, 0, STREAM), not exact)
        column = np.tile(np.repeat(np.arange(width), draws), len(part))
        original = np.repeat(part, width * draws, axis=0)
        other = original.copy()
        other[np.arange(size), column] = filled[np.arange(size), column]
        drawn = density.log_density(other).reshape(len(part), width, draws)
        own = density.log_density(part)[:, None]
        if exact:
            tails = chi2.logsf(np.maximum(2 * (drawn[:, :, 0] - own), 0.0), 1)
        else:
            tails = _simulated(own, drawn)
        found[first : first + len(part)] = np.where(np.isnan(part), np.nan, tails)
    return found


def _without_one(X: Array, draws: int) -> Array:
    """Each row for each column and draw, without that entry."""
    n, width = X.shape
    rows = np.repeat(X, width * draws, axis=0)
    column = np.tile(np.repeat(np.arange(width), draws), n)
    rows[np.arange(len(rows)), column] = np.nan
    return rows


def _simulated(own: Array, drawn: Array) -> Array:
    tails = np.zeros(drawn.shape[:2])
    for i in range(drawn.shape[0]):
        for j in range(drawn.shape[1]):
            tails[i, j] = log_tails(-own[i], np.sort(-drawn[i, j]))[0]
    return tails


def oddness_of(tails: Array) -> Array:
    """1 - tail probability, exact where that is small."""
    return np.abs(np.expm1(tails))
