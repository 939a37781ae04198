"""Counts that vary more than Poisson counts do: negative binomial laws with a learned dispersion.

    x_d | k ~ NB(mean m, dispersion 1 / r),   variance m + m^2 / r,   p = m / (m + r)
    ln p(x) = ln G(x + r) - ln G(r) - ln x! + r ln(1 - p) + x ln p

Latent clusters
---------------
With r unknown this is no exponential family. But a negative binomial count is a Poisson number of
clusters whose sizes follow the logarithmic series (Quenouille 1949). With their number l beside x

    ln p(x, l) = l ln r + r ln(1 - p) + x ln p + ln |s(x, l)| - ln x!      (s: Stirling numbers)

is linear in (l, 1, x), and E[l | x, r] = r (psi(x + r) - psi(r)) is a function of the entry. So
the statistics are sums again: N of rows, S of x, and L of E[l], which is kept as S - L, the
``excess`` of counts over clusters, because it is what tells large r apart. Adamidis (1999) has this
EM algorithm, Zhou and Carin (2015) the same augmentation with priors.

The M step is exact: m = S / N, and r is the root of N r ln(1 + m / r) = L, which is unique. Its
bound of the likelihood is the tangent of ln(1 + j / r), j < x, in ln r. Where no count exceeds J
the tangent in ln(1 + J / r) is a bound as well, and closer: the equation becomes

    N (m - r ln(1 + m / r)) = (S - L) (r_0 + J) / (r + J),                 r_0: the r of the pass

from the same sums (J without end is EM). The difference counts for nearly Poisson columns, for
which EM needs steps in proportion to r, and this one far fewer. A column that varies less than
Poisson counts has no maximum: its dispersion is ``floor``, and it is a Poisson column for all
purposes.

Priors
------
r ~ gamma(shape, rate) and p ~ beta(a, b). The posterior of sums is
r^(shape + L) exp(-rate r) (1 - p)^(b + N r) p^(a + S): its mode is a root as above (MAP), and the
best q(r) q(p) is gamma(shape + L, .) times beta(a + S, b + N E[r]), where E[r] is again the root of
an increasing function (variational Bayes; the bound has a q(l), too). A draw would need a draw of l
for every entry, so chains are offered for a known dispersion only: p is then conjugate as it is.

References
----------
M. H. Quenouille (1949). A relation between the logarithmic, Poisson, and negative binomial series.
Biometrics 5, 162-164.

K. Adamidis (1999). An EM algorithm for estimating negative binomial parameters. Australian & New
Zealand Journal of Statistics 41, 213-221.

M. Zhou, L. Carin (2015). Negative binomial process count and mixture modeling. IEEE Transactions on
Pattern Analysis and Machine Intelligence 37, 307-320.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import betaln, gammaincinv, gammaln, polygamma, psi
from scipy.stats import nbinom

from mixfold.contracts import Array, Block, record
from mixfold.families.component import Scores, dense_rows
from mixfold.families.exponential.conjugate_priors import BETA, LEAST_SHARE
from mixfold.families.exponential.family import ConjugateLinearFamily
from mixfold.families.exponential.pair import refuse_single
from mixfold.families.exponential.passes import plain_scores, sums_of
from mixfold.families.exponential.records import (
    LinearMoments,
    LinearParams,
    LinearReading,
    LinearWork,
    PairPrior,
)
from mixfold.families.exponential.support import per_column, require_positive
from mixfold.math.frame import Frame, plain_frame
from mixfold.math.gamma_law import expected_log, fit_gamma, gamma_kl, log_gamma_draw
from mixfold.math.log_factorials import log_factorial_sums
from mixfold.math.prior_draws import draw_pair
from mixfold.math.roots import decreasing_root
from mixfold.math.symmetric import LOG_LIMIT

# r stays above this: counts that are nearly all zero, and huge where they are not
LEAST_SIZE = 1e-8
# where a start looks for r
_FIRST_SIZES = (0.05, 50.0)
# from here on sums over j < x are made by Stirling's series, in which large r do not cancel
_STIRLING = 20.0
# points at which a density is averaged over q(r)
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(12)
# beyond this numpy draws no Poisson counts
_MOST_EVENTS = 9e18


# ------------------------------------------------------------------ functions of a count and r


def log_rising(x: Array, r: Array) -> Array:
    """ln G(x + r) - ln G(r) - x ln r = sum over j < x of ln(1 + j / r): 0 for x = 0 and 1."""
    return _by_series(x, r, _small_rising, _large_rising)


def excess(x: Array, r: Array) -> Array:
    """x - E[l | x, r] = sum over j < x of j / (r + j): 0 for x = 0 and 1."""
    return _by_series(x, r, lambda x, r: x - r * (psi(x + r) - psi(r)), _large_excess)


def log1p_residual(u: Array) -> Array:
    """u - ln(1 + u), u >= 0, to full relative precision."""
    s = u / (2 + u)
    small, square = np.minimum(s, 1 / 3), np.minimum(s, 1 / 3) ** 2
    series = np.zeros_like(s)
    for n in range(35, 1, -2):  # artanh s, of which the first term is taken with u
        series = 1 / n + square * series
    return np.where(s < 1 / 3, u * s - 2 * small**3 * series, u - np.log1p(u))


def _by_series(
    x: Array, r: Array, direct: Callable[..., Array], series: Callable[..., Array]
) -> Array:
    x, r = np.broadcast_arrays(x, r)
    out, large = np.empty(x.shape), r > _STIRLING
    out[~large], out[large] = direct(x[~large], r[~large]), series(x[large], r[large])
    return np.where(x > 1, out, 0.0)


def _small_rising(x: Array, r: Array) -> Array:
    return np.asarray(gammaln(x + r) - gammaln(r) - x * np.log(r))


def _large_rising(x: Array, r: Array) -> Array:
    u = x / r
    tail = _stirling(x + r) - _stirling(r)
    return np.asarray((x - 0.5) * np.log1p(u) - r * log1p_residual(u) + tail)


def _stirling(z: Array) -> Array:
    """ln G(z) - ((z - 1/2) ln z - z + ln(2 pi) / 2)."""
    w = 1 / z**2
    return np.asarray((1 / 12 - w * (1 / 360 - w * (1 / 1260 - w / 1680))) / z)


def _large_excess(x: Array, r: Array) -> Array:
    tail = _psi_tail(x + r) - _psi_tail(r)
    return np.asarray(r * (log1p_residual(x / r) + x / (-2 * r * (x + r)) - tail))


def _psi_tail(z: Array) -> Array:
    """psi(z) - (ln z - 1 / (2 z))."""
    w = 1 / z**2
    return np.asarray(-w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w / 240))))


# ------------------------------------------------------------------ records


@record
@dataclass(frozen=True)
class DispersionMoments(LinearMoments):
    """``excess`` (K, D) sums r_nk (x - E[l]), and ``bound`` that times 1 + r / J, at the r of the
    pass: sums of passes with different r are blended, too. ``base`` also has what q(l) adds."""

    excess: Array
    bound: Array


@dataclass(frozen=True, slots=True)
class DispersionReading(LinearReading):
    """``r`` (K, D) of the latent clusters; ``slope`` is that of x with ln r taken out of G."""

    r: Array


@dataclass(frozen=True, slots=True)
class Positive:
    """The entries above zero, of which alone l is not known: each different count ``x`` (U,) of a
    ``column`` (U,) once, and which rows have it, a matrix (n, U) of zeros and ones."""

    rows: Any
    column: Array
    x: Array


@dataclass(frozen=True, slots=True)
class DispersionWork(LinearWork):
    """Also the counts above zero, and their ``rising`` (K, U)."""

    positive: Positive
    rising: Array


@record
@dataclass(frozen=True, slots=True)
class DispersionPrior(PairPrior):
    """p ~ beta(a, b) and r ~ gamma(shape, rate), of each column (D,)."""

    shape: Array
    rate: Array


@record
@dataclass(frozen=True, slots=True)
class DispersionPosterior:
    """r^shape exp(-rate r) (1 - p)^(b + count r) p^a of each component and column (K, D).

    ``means`` are those of the point estimate. Where r is known, ``size`` (D,) has it.
    """

    frame: Frame
    means: Array
    a: Array
    b: Array
    count: Array
    shape: Array
    rate: Array
    size: Array

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1])


@dataclass(frozen=True, slots=True)
class _Factors:
    """q(p) = beta(a, b), and q(r) = gamma(shape, rate) or, if they are None, r itself."""

    a: Array
    b: Array
    r: Array
    shape: Array | None = None
    rate: Array | None = None

    @property
    def log_r(self) -> Array:
        """E ln r."""
        if self.shape is None or self.rate is None:
            return np.asarray(np.log(self.r))
        return expected_log(self.shape, self.rate)


# ------------------------------------------------------------------ the family


@record
@dataclass(frozen=True)
class NegativeBinomial(ConjugateLinearFamily):
    """x_d | k ~ negative binomial with mean m_kd and variance m_kd + dispersion_kd m_kd^2.

    NaN is missing.

    Parameters
    ----------
    floor : float
        Smallest dispersion. Counts that vary no more than Poisson counts do end there.
    dispersion : float or array (D,), optional
        Of all columns or of each, if it is known. By default it is learned, one for each component
        and column.
    a, b : float or array (D,)
        The prior of p = m / (m + 1 / dispersion), a beta law; uniform by default.
    shape, rate : float or array (D,)
        The prior of r = 1 / dispersion, a gamma law; by default it has the mean 10.
    largest : int or array (D,), optional
        A bound of the counts of each column, with which fits take fewer steps. Estimators find it.
    """

    dispersion: Any = None
    a: Any = 1.0
    b: Any = 1.0
    shape: Any = 1.0
    rate: Any = 0.1
    largest: Any = None

    name: ClassVar[str] = "negative-binomial"
    not_collapsed: ClassVar[str] = (
        "a learned dispersion has no closed form; give it by family_options={'dispersion': ...}"
    )
    remedy: ClassVar[str] = (
        "a learned dispersion cannot be drawn. Use inference='vb' or 'em', or give the dispersion "
        "by family_options={'dispersion': ...}"
    )

    def __post_init__(self) -> None:
        for name in ("floor", "dispersion", "a", "b", "shape", "rate"):
            require_positive(getattr(self, name), name)

    # ------------------------------------------------ facts

    @property
    def learned(self) -> bool:
        """Whether dispersions are learned."""
        return self.dispersion is None

    @property
    def readings(self) -> tuple[str, ...]:  # type: ignore[override]  # they hang on a setting
        return ("mode", "expected") if self.learned else ("mode", "expected", "draw")

    @property
    def collapsed_law(self) -> str | None:
        return None if self.learned else "beta"

    @property
    def key(self) -> Any:
        return self.name if self.learned else (self.name, "known")

    def with_maxima(self, maximum: Array, occurring: Any = None) -> Self:
        if not self.learned or self.largest is not None:
            return self
        return replace(self, largest=tuple(np.nan_to_num(maximum, nan=0.0).tolist()))

    def column_constants(self, n_features: int) -> Array:
        """r if it is known, else a bound of the counts."""
        if not self.learned:
            return 1 / per_column(self.dispersion, n_features, "dispersion")
        bound = np.inf if self.largest is None else self.largest
        return np.maximum(per_column(bound, n_features, "largest"), 1.0)

    def _inverse_bound(self, n_features: int) -> Array:
        """1 / J, which is 0 where no bound of the counts is known."""
        return 1 / self.column_constants(n_features) if self.learned else np.zeros(n_features)

    def n_free(self, n_components: int, n_features: int) -> int:
        return (2 if self.learned else 1) * n_components * n_features

    def n_settled(self, n_components: int, only: Array) -> int:
        return (2 if self.learned else 1) * n_components * int((only == 0).sum())

    def workspace_per_row(self, n_components: int, n_features: int) -> int:
        return 2 * (n_components + n_features)

    # ------------------------------------------------ rows

    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x < 0) | (x != np.round(x)) | np.isinf(x))

    def rule(self, size: float) -> str:
        return "must hold counts: whole numbers from 0 up"

    def points(self, X: Array) -> Array:
        # roots of small counts, logarithms of large ones, which vary by a factor
        return 2 * np.arcsinh(np.sqrt(np.asarray(X, float) + 0.375))

    def log_base(self, block: Block, size: Array) -> Array:
        return -log_factorial_sums(block.X)

    # ------------------------------------------------ parameters: theta is (ln m, ln r)

    def _limits(self, params_size: Array) -> tuple[Array, Array]:
        """Of ln r."""
        if not self.learned:
            return np.log(params_size), np.log(params_size)
        ends = np.log([LEAST_SIZE, 1 / self.floor])
        return np.full(params_size.shape, ends[0]), np.full(params_size.shape, ends[1])

    def clip_coordinates(self, theta: Array, size: Array) -> Array:
        log_mean, log_r = _halves(theta)
        least = np.log(LEAST_SHARE)
        return np.concatenate(
            [np.clip(log_mean, least, LOG_LIMIT), np.clip(log_r, *self._limits(size))], axis=-1
        )

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        return np.asarray(np.exp(_halves(theta)[0]))

    def point_of(self, first: Array, count: Array, size: Array) -> Array:
        """ln m; what sums of x do not settle is NaN."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_mean = np.log(np.maximum(first, 0.0) / count)
        unknown = np.full(log_mean.shape, np.nan)
        theta = self.clip_coordinates(np.concatenate([log_mean, unknown], axis=-1), size)
        lacking = np.broadcast_to(count <= 0, first.shape)
        theta[:, : first.shape[1]][lacking] = np.nan
        return theta

    def linear(self, theta: Array, size: Array) -> tuple[Array, Array]:
        log_mean, log_r = _halves(theta)
        step = np.log1p(np.exp(log_mean - log_r))
        return log_mean - step, -np.exp(log_r) * step

    def mode(self, params: LinearParams) -> DispersionReading:
        slope, offset = self.linear(params.theta, params.size)
        r = np.exp(_halves(params.theta)[1])
        return DispersionReading(params.frame, np.asfortranarray(slope), offset, params, r)

    def estimate(
        self, moments: LinearMoments, previous: LinearParams
    ) -> tuple[LinearParams, Array]:
        params, touched = super().estimate(moments, previous)
        if not self.learned:
            return params, touched
        assert isinstance(moments, DispersionMoments)
        log_mean, log_r = _halves(params.theta)
        m, inverse = np.exp(log_mean), self._inverse_bound(log_mean.shape[1])
        count = np.broadcast_to(moments.count, m.shape)

        def balance(t: Array) -> tuple[Array, Array]:
            r = np.exp(t)
            left = moments.bound / (1 + r * inverse)
            slope = left * r * inverse / (1 + r * inverse) - count * _cluster_information(m, r)
            return count * r * log1p_residual(m / r) - left, slope

        low, high = np.log(LEAST_SIZE), -np.log(self.floor)
        fresh = decreasing_root(balance, log_r, low, high)
        known = (count > 0) & (moments.first > 0)
        log_r = np.where(known, fresh, log_r)
        theta = np.concatenate([log_mean, log_r], axis=1)
        # a column at the floor is a Poisson column: a limit of the family, and no degeneration
        return replace(params, theta=theta), touched

    def from_rows(self, frame: Frame, X: Array, U: Array, resp: Array) -> LinearParams:
        params = super().from_rows(frame, X, U, resp)
        if not self.learned:
            return params
        # moments of a sample: sum (x - m)^2 - m is about sum m^2 / r
        seen, m = ~np.isnan(X), params.means
        filled = np.where(seen, X, 0.0)
        more = np.stack(
            [share @ np.where(seen, (filled - mean) ** 2 - mean, 0.0)
             for share, mean in zip(resp.T, m, strict=True)]
        )  # fmt: skip
        squares = (resp.T @ seen) * m**2
        everyone = more.sum(axis=0) / np.maximum(squares.sum(axis=0), np.finfo(float).tiny)
        # a few rows say little about a variance: as if an average row were there ten times
        typical = 10 * m**2
        dispersion = (more + typical * everyone) / (squares + typical)
        r = 1 / np.clip(dispersion, 1 / _FIRST_SIZES[1], 1 / _FIRST_SIZES[0])
        return self.with_theta(params, np.concatenate([np.log(m), np.log(r)], axis=1))

    def place(self, params: LinearParams, where: Array, points: Array) -> LinearParams:
        moved = super().place(params, where, points)
        rest = np.setdiff1d(np.arange(params.n_components), where)
        typical = params.theta[rest if rest.size else where].mean(axis=0)
        return replace(moved, theta=np.where(np.isnan(moved.theta), typical, moved.theta))

    def columns(self, params: LinearParams, which: Array) -> LinearParams:
        theta = np.concatenate([half[:, which] for half in _halves(params.theta)], axis=1)
        frame = plain_frame(len(which))
        return LinearParams(frame, params.means[:, which], theta, params.size[which])

    def describe(self, params: LinearParams) -> dict[str, Any]:
        return {"means": params.means, "dispersions": np.exp(-_halves(params.theta)[1])}

    def gradient_and_information(
        self, params: LinearParams, moments: LinearMoments
    ) -> tuple[Array, Array]:
        log_mean, log_r = _halves(params.theta)
        m, r = np.exp(log_mean), np.exp(log_r)
        count = np.broadcast_to(moments.count, m.shape)
        surprise, share = moments.first - count * m, r / (m + r)
        by_mean = surprise * share
        tiny = np.finfo(float).tiny
        information = count * m * share
        if not self.learned:
            # a dispersion that is known has no slope; any information keeps it where it is
            fixed = np.concatenate([by_mean, np.zeros_like(m)], axis=1)
            return fixed, np.concatenate([information, np.ones_like(m)], axis=1)
        assert isinstance(moments, DispersionMoments)
        by_r = surprise * (1 - share) + count * r * log1p_residual(m / r) - moments.excess
        # r that is at an end has nowhere to go
        low, high = self._limits(params.size)
        stuck = ((log_r <= low) & (by_r < 0)) | ((log_r >= high) & (by_r > 0))
        of_r = count * _cluster_information(m, r)
        inverse = self._inverse_bound(m.shape[1])
        bend = moments.excess * r * inverse / (1 + r * inverse)
        of_r = np.maximum(of_r - bend, 1e-3 * of_r)
        return (
            np.concatenate([by_mean, np.where(stuck, 0.0, by_r)], axis=1),
            np.concatenate([information, np.maximum(of_r, tiny)], axis=1),
        )

    # ------------------------------------------------ E step

    def scores(self, tile: Block, reading: LinearReading) -> Scores:
        assert isinstance(reading, DispersionReading)
        plain, positive = self._work(tile, reading), _positive(tile.X)
        rising = log_rising(positive.x, reading.r[:, positive.column])
        out = plain_scores(plain, reading) + positive.rows @ rising.T
        return Scores(out, DispersionWork(plain.tile, plain.rows, plain.base, positive, rising))

    def log_density(self, block: Block, reading: LinearReading) -> Array:
        return self.scores(block, reading).log_density

    def moments(self, scores: Scores, resp: Array, reading: LinearReading) -> DispersionMoments:
        assert isinstance(reading, DispersionReading)
        work: DispersionWork = scores.work
        sums, positive = sums_of(work, resp), work.positive
        share = (positive.rows.T @ resp).T
        r = reading.r[:, positive.column]
        left = excess(positive.x, r)
        total: Array = np.stack(
            [np.bincount(positive.column, w, reading.r.shape[1]) for w in share * left]
        )
        # the entropy of q(l) and E ln |s(x, l)|, which later parameters do not change
        base = sums.base + float((share * (work.rising + left * np.log(r))).sum())
        bound = total * (1 + reading.r * self._inverse_bound(reading.r.shape[1]))
        return DispersionMoments(sums.count, sums.first, base, total, bound)

    def fused_pass(self, block: Block, reading: LinearReading, log_weights: Array) -> None:
        return None  # no fast kernel knows the terms that are not linear

    # ------------------------------------------------ prior and posterior

    def prior(self, frame: Frame, total: LinearMoments) -> DispersionPrior:
        D = frame.origin.size
        a, b, shape, rate = (
            per_column(getattr(self, name), D, name) for name in ("a", "b", "shape", "rate")
        )
        return DispersionPrior(a, b, self.column_constants(D), shape, rate)

    def describe_prior(self, prior: DispersionPrior, frame: Frame) -> dict[str, Any]:
        of_dispersion = {"shape": prior.shape, "rate": prior.rate} if self.learned else {}
        return {"a": prior.a, "b": prior.b, **of_dispersion}

    def statistics(self, first: Array, count: Array, size: Array) -> tuple[Array, Array]:
        """What rows add to a and b of the beta law if r = ``size`` is known."""
        return first, np.asarray(count * size)

    def posterior(
        self, moments: LinearMoments, prior: DispersionPrior, frame: Frame
    ) -> DispersionPosterior:
        a = prior.a + moments.first
        count = np.broadcast_to(moments.count, a.shape)
        clusters = moments.first - moments.excess if isinstance(moments, DispersionMoments) else 0.0
        shape = prior.shape + np.maximum(clusters, 0.0)
        b, rate = (np.broadcast_to(part, a.shape) for part in (prior.b, prior.rate))
        rest = DispersionPosterior(frame, a, a, b, count, shape, rate, prior.size)
        return replace(rest, means=np.exp(_halves(self._point_theta(rest))[0]))

    def _point_theta(self, posterior: DispersionPosterior) -> Array:
        """(ln m, ln r) at the mode."""
        a, b, n = posterior.a, posterior.b, posterior.count
        if self.learned:

            def balance(t: Array) -> tuple[Array, Array]:
                r = np.exp(t)
                y = b + n * r
                step = np.log1p(a / y)
                value = posterior.shape - r * (posterior.rate + n * step)
                slope = -r * (posterior.rate + n * step) + (n * r) ** 2 * a / (y * (y + a))
                return value, slope

            log_r = decreasing_root(
                balance, np.zeros(a.shape), np.log(LEAST_SIZE), -np.log(self.floor)
            )
        else:
            log_r = np.broadcast_to(np.log(posterior.size), a.shape)
        log_mean = log_r + np.log(a) - np.log(b + n * np.exp(log_r))
        return self.clip_coordinates(np.concatenate([log_mean, log_r], axis=1), posterior.size)

    def _factors(self, posterior: DispersionPosterior) -> _Factors:
        """The best q(p) q(r)."""
        a, b, n = posterior.a, posterior.b, posterior.count
        if not self.learned:
            r = np.broadcast_to(posterior.size, a.shape)
            return _Factors(a, b + n * r, r)

        def balance(t: Array) -> tuple[Array, Array]:
            r = np.exp(t)
            y = b + n * r
            step = psi(y + a) - psi(y)
            value = posterior.shape - r * (posterior.rate + n * step)
            bend = polygamma(1, y + a) - polygamma(1, y)
            return value, -r * (posterior.rate + n * step) - (n * r) ** 2 * bend

        start = _halves(self._point_theta(posterior))[1]
        r = np.exp(decreasing_root(balance, start, np.log(LEAST_SIZE), -np.log(self.floor)))
        beta = b + n * r
        rate = posterior.rate + n * (psi(beta + a) - psi(beta))
        return _Factors(a, beta, posterior.shape / rate, posterior.shape, rate)

    def posterior_of_columns(
        self, posterior: DispersionPosterior, which: Array
    ) -> DispersionPosterior:
        own = {
            f.name: np.asarray(getattr(posterior, f.name))[..., which]
            for f in fields(posterior)
            if np.shape(getattr(posterior, f.name))[-1:] == (posterior.n_features,)
        }
        return replace(posterior, frame=plain_frame(len(which)), **own)

    def keep_posterior(self, posterior: DispersionPosterior, which: Array) -> DispersionPosterior:
        names = ("means", "a", "b", "count", "shape", "rate")
        return replace(posterior, **{name: getattr(posterior, name)[which] for name in names})

    # ------------------------------------------------ readings

    def point(self, posterior: DispersionPosterior) -> LinearParams:
        theta = self._point_theta(posterior)
        return LinearParams(posterior.frame, posterior.means, theta, posterior.size)

    def expected_reading(self, posterior: DispersionPosterior) -> DispersionReading:
        q = self._factors(posterior)
        log_p, log_rest = BETA.expected(q.a, q.b)
        slope = np.asfortranarray(q.log_r + log_p)
        params = self.point(posterior)
        return DispersionReading(posterior.frame, slope, q.r * log_rest, params, np.exp(q.log_r))

    def draw(self, posterior: DispersionPosterior, rng: np.random.Generator) -> LinearParams:
        """Of q(p) q(r), which is the posterior itself only if r is known."""
        q = self._factors(posterior)
        log_r = np.log(q.r)
        if q.shape is not None and q.rate is not None:
            log_r = np.maximum(log_gamma_draw(q.shape, rng) - np.log(q.rate), np.log(LEAST_SIZE))
        theta = np.concatenate([log_r + BETA.draw(q.a, q.b, rng), log_r], axis=1)
        means = self.of_theta(theta, posterior.size, posterior.means)
        return LinearParams(posterior.frame, means, theta, posterior.size)

    # ------------------------------------------------ parts of the objectives

    def average(self, moments: LinearMoments, reading: LinearReading) -> float:
        assert isinstance(reading, DispersionReading) and isinstance(moments, DispersionMoments)
        # slopes hold ln r for each count, and there are fewer clusters than counts
        return super().average(moments, reading) - float((moments.excess * np.log(reading.r)).sum())

    def kl(self, posterior: DispersionPosterior, prior: DispersionPrior) -> float:
        q = self._factors(posterior)
        of_p = BETA.kl(q.a, q.b, prior.a, prior.b).sum()
        if q.shape is None or q.rate is None:
            return float(of_p)
        return float(of_p + gamma_kl(q.shape, q.rate, prior.shape, prior.rate).sum())

    def log_prior(self, params: LinearParams, prior: DispersionPrior) -> float:
        log_mean, log_r = _halves(params.theta)
        log_rest = -np.log1p(np.exp(log_mean - log_r))
        log_p = log_mean - log_r + log_rest
        of_p = (prior.a * log_p + prior.b * log_rest).sum()
        of_r = (prior.shape * log_r - prior.rate * np.exp(log_r)).sum() if self.learned else 0.0
        return float(of_p + of_r)

    def evidence(self, moments: LinearMoments, prior: DispersionPrior, frame: Frame) -> float:
        """Exact if r is known; else its bound by q(l), which the moments hold, and q(r) q(p)."""
        posterior = self.posterior(moments, prior, frame)
        gain = self.average(moments, self.expected_reading(posterior))
        return gain - self.kl(posterior, prior)

    def empirical(self, posterior: DispersionPosterior, prior: DispersionPrior) -> DispersionPrior:
        refuse_single(posterior.n_components)
        q = self._factors(posterior)
        one, two = BETA.expected(q.a, q.b)
        a, b = BETA.fit(one.mean(axis=0), two.mean(axis=0), prior.a, prior.b)
        fresh = replace(prior, a=a, b=b)
        if not self.learned:
            return fresh
        shape, rate = fit_gamma(q.r.mean(axis=0), q.log_r.mean(axis=0))
        return replace(fresh, shape=shape, rate=rate)

    def draw_prior(
        self,
        params: LinearParams,
        prior: DispersionPrior,
        given: DispersionPrior,
        rng: np.random.Generator,
    ) -> DispersionPrior:
        log_mean, log_r = _halves(params.theta)
        logs = BETA.omega(log_mean - log_r)
        a, b = draw_pair(BETA.log_norm, *logs, (prior.a, prior.b), (given.a, given.b), rng)
        return replace(prior, a=a, b=b)

    def log_strength(self, prior: DispersionPrior) -> float:
        return float(np.log(prior.a).mean())

    # ------------------------------------------------ prediction

    def log_predictive(self, posterior: DispersionPosterior, block: Block) -> Array:
        """Averaged over q(p) exactly, over q(r) by its quantiles."""
        positive = _positive(block.X)
        column, x = positive.column, positive.x
        seen = None
        if not (block.complete or issparse(block.X)):
            seen = (~np.isnan(dense_rows(block.X))).astype(float)
        q = self._factors(posterior)
        out = np.empty((block.n_rows, posterior.n_components))
        out[:] = self.log_base(block, posterior.size)[:, None]
        for k in range(posterior.n_components):
            nodes, logs = _quadrature(q, k)
            empty = _log_mean(logs, _beta_terms(np.zeros(1), nodes, q.a[k], q.b[k]))
            stored = _beta_terms(x, nodes[:, column], q.a[k, column], q.b[k, column])
            more = _log_mean(logs, stored) - empty[column]
            out[:, k] += empty.sum() if seen is None else seen @ empty
            out[:, k] += positive.rows @ more
            if issparse(block.X):  # a stored NaN is no zero
                where = np.isnan(block.X.data)
                rows = np.searchsorted(block.X.indptr, np.flatnonzero(where), side="right") - 1
                lost = empty[block.X.indices[where]]
                out[:, k] -= np.bincount(rows, lost, block.n_rows)
        return out

    def sample_predictive(
        self, posterior: DispersionPosterior, labels: Array, rng: np.random.Generator
    ) -> Array:
        params = self.draw(self.keep_posterior(posterior, labels), rng)
        return self.emit(params.means, params.theta, posterior.size, rng)

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        r = np.exp(_halves(theta)[1])
        return np.asarray(nbinom.ppf(uniforms, r, r / (r + means)))

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        r = np.exp(_halves(theta)[1])
        rates = np.minimum(rng.standard_gamma(r) * (means / r), _MOST_EVENTS)
        return rng.poisson(rates).astype(float)


# ------------------------------------------------------------------ parts


def _halves(theta: Array) -> tuple[Array, Array]:
    """ln m and ln r."""
    size = theta.shape[-1] // 2
    return theta[..., :size], theta[..., size:]


def _cluster_information(m: Array, r: Array) -> Array:
    """Curvature in ln r of the complete data of one row: r ln(1 + m / r) - m r / (m + r)."""
    u = m / r
    return np.asarray(m * u / (1 + u) - r * log1p_residual(u))


def _positive(X: Any) -> Positive:
    if issparse(X):
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        keep = X.data > 0
        row, column, x = row[keep], X.indices[keep].astype(np.int64), X.data[keep].astype(float)
    else:
        with np.errstate(invalid="ignore"):
            row, column = np.nonzero(X > 0)
        x = np.asarray(X[row, column], float)
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=X.shape[0]))])
    values, code = _distinct(x)
    key = column * len(values) + code
    used, where = _distinct(key)
    ones = csr_array((np.ones(x.size), where, ends), shape=(X.shape[0], used.size))
    return Positive(ones, used // max(1, len(values)), values[used % max(1, len(values))])


def _distinct(values: Array) -> tuple[Array, Array]:
    """The different values in order, and where each is; by counting if they are small."""
    if values.size and values.max() <= 4 * values.size:
        code = values.astype(np.int64)
        if (code == values).all():  # rows without weight hold anything
            present = np.bincount(code) > 0
            return np.flatnonzero(present).astype(values.dtype), (np.cumsum(present) - 1)[code]
    found, where = np.unique(values, return_inverse=True)
    return found, where


def _quadrature(q: _Factors, k: int) -> tuple[Array, Array]:
    """r (nodes, D) of component k, and the logarithms of their shares (nodes, 1)."""
    if q.shape is None or q.rate is None:
        return q.r[k][None], np.zeros((1, 1))
    nodes = gammaincinv(q.shape[k], (1 + _NODES[:, None]) / 2) / q.rate[k]
    return np.maximum(nodes, LEAST_SIZE), np.log(_NODE_WEIGHTS / 2)[:, None]


def _beta_terms(x: Array, r: Array, a: Array, b: Array) -> Array:
    """ln of E[p^x (1 - p)^r] G(x + r) / G(r), p ~ beta(a, b)."""
    return np.asarray(log_rising(x, r) + x * np.log(r) + betaln(a + x, b + r) - betaln(a, b))


def _log_mean(logs: Array, values: Array) -> Array:
    return np.asarray(np.logaddexp.reduce(logs + values, axis=0))
