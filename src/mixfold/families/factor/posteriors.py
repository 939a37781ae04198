"""Priors and posteriors of factor components: normal-gamma rows, automatic relevance of columns.

With the row v_kj = (w_kj, mu_kj) of loadings and mean of column j, and its precision tau_kj of the
noise,

    tau_kj ~ Gamma(a, b_j),   nu_kf ~ Gamma(relevance)   (f = 1..d for loadings, d + 1 for the mean)
    v_kj | tau_kj, nu_k ~ N((0, m_j), diag(1 / nu_k) / tau_kj)
    x_j | z, k ~ N(w_kj'z + mu_kj, 1 / tau_kj),   z ~ N(0, I)

q(v, tau) q(nu) q(z, k) is the mean-field posterior. Given the others, q(v, tau) is normal-gamma:
a regression of each column on the latents and a constant, shrunk by E nu. Loadings are in units of
the noise, so that the units of the columns do not matter. A factor that a component does not use is
no part of its model: which it uses is a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import psi

from mixfold.contracts import Array, NotNegative, Positive, Stats, record
from mixfold.families.factor.noise import Noise
from mixfold.families.factor.records import FactorSums, change_origin, entries
from mixfold.math.frame import Frame
from mixfold.math.gamma_law import expected_log, gamma_kl

# arrays of a posterior with a leading axis of components
OF_COMPONENTS = ("means", "loadings", "noise", "shape", "doubt", "used", "rates", "age")
# regressions and relevances in turn, at most, in one M step; and where a factor may go, as many
_TURNS = 5
_ENOUGH = 1e-9
# steps that a component makes before a factor may go
_SETTLING = 4
# fewer than so many rows are none
_NO_ROWS = 1e-6


@record
@dataclass(frozen=True, slots=True)
class FactorPrior:
    """In frame coordinates: ``mean`` (D,), and ``rate`` (D,) of the precisions of the noise."""

    mean: Array
    rate: Positive


@record
@dataclass(frozen=True, slots=True)
class FactorPosterior:
    """Of K components, in frame coordinates.

    Expected ``means`` (K, D) and ``loadings`` (K, D, d); ``noise`` (K, D) is 1 / E tau and
    ``shape`` (K, D) the shape of the gamma law of tau. ``doubt`` (K, 1 or D, d + 1, d + 1) is the
    covariance of the rows (loadings, mean) in units of the noise, one for all columns if no entry
    lacks. ``used`` (K, d) tells which factors a component has: the others are zero. ``rates``
    (K, d + 1) are those of the gamma laws of the relevances, of the mean last. ``age`` (K,) counts
    the steps since a component was made.
    """

    frame: Frame
    means: Array
    loadings: Array
    noise: Positive
    shape: Positive
    doubt: Array
    used: Array
    rates: Positive
    age: NotNegative

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1])

    @property
    def n_factors(self) -> int:
        return int(self.loadings.shape[2])

    @property
    def rows(self) -> Array:
        """Expected (loadings, mean) of the columns, (K, D, d + 1)."""
        return np.concatenate([self.loadings, self.means[..., None]], axis=2)


@record
@dataclass(frozen=True)
class BelievedSums(Stats):
    """Sums of rows with what is believed of their latents.

    ``log_det`` (K,) sums r ln|Cov z|, ``log_pivots`` (K, d) r ln of the diagonal of its inverse:
    what the entropy of the latents, all together and one by one, is made of.
    """

    sums: FactorSums
    log_det: Array
    log_pivots: Array


@dataclass(frozen=True, slots=True)
class Hyper:
    """Settings of the priors that do not depend on units: shapes, and the rate of relevances."""

    shape: float
    relevance_shape: float
    relevance_rate: float


@dataclass(frozen=True, slots=True)
class Entries:
    """Second moments of (z, 1) and x per component and column, about ``origin`` (K, D).

    ``zz`` (K, 1 or D, d + 1, d + 1), ``xz`` (K, D, d + 1), ``xx`` (K, D), ``count`` (K, 1 or D);
    ``rows``: the same of the latents of all rows, (K, d + 1, d + 1).
    """

    origin: Array
    count: Array
    zz: Array
    xz: Array
    xx: Array
    rows: Array

    @property
    def n_features(self) -> int:
        return int(self.origin.shape[1])


def entries_of(sums: FactorSums) -> Entries:
    seen, rows = entries(sums), sums.rows
    xz = np.concatenate([sums.cross, sums.first[..., None]], axis=2)
    everything = _with_constant(rows.count, rows.first, rows.second)
    seconds = _with_constant(seen.count, seen.first, seen.second)
    return Entries(sums.origin, seen.count, seconds, xz, sums.squares, everything)


def _with_constant(count: Array, first: Array, second: Array) -> Array:
    """Second moments of (z, 1)."""
    d = first.shape[-1]
    out = np.empty((*count.shape, d + 1, d + 1))
    out[..., :d, :d] = 0.5 * (second + np.swapaxes(second, -1, -2))
    out[..., :d, d] = out[..., d, :d] = first
    out[..., d, d] = count
    return out


# ------------------------------------------------ regressions


@dataclass(frozen=True, slots=True)
class Rows:
    """q(v, tau): expected rows (K, D, d + 1) about ``origin``, ``doubt``, and the gamma laws."""

    origin: Array
    mean: Array
    doubt: Array
    shape: Array
    rate: Array

    @property
    def precision(self) -> Array:
        """E tau, (K, D)."""
        return np.asarray(self.shape / self.rate)


def _active(used: Array) -> Array:
    """Which entries of a row a component has: its factors, and the mean."""
    return np.concatenate([used, np.ones((len(used), 1), bool)], axis=1)


def regress(
    entries: Entries, relevance: Array, used: Array, prior: FactorPrior, noise: Noise, hyper: Hyper
) -> Rows:
    """q(v, tau) given the expected ``relevance`` (K, d + 1) of the entries of a row."""
    active = _active(used)
    both = active[:, None, :, None] & active[:, None, None, :]
    diagonal = np.where(active, relevance, 1.0)[:, None, :, None] * np.eye(active.shape[1])
    doubt = np.linalg.inv(np.where(both, entries.zz, 0.0) + diagonal)
    doubt = np.where(both, 0.5 * (doubt + np.swapaxes(doubt, -1, -2)), 0.0)
    away = prior.mean - entries.origin
    slope = np.where(active[:, None], entries.xz, 0.0)
    slope[..., -1] += relevance[:, None, -1] * away
    mean = _times(doubt, slope)
    left = entries.xx + ((_times(entries.zz, mean) - 2 * entries.xz) * mean).sum(axis=-1)
    left += (relevance[:, None] * _offsets(mean, away) ** 2).sum(axis=-1)
    size = mean.shape[:2]
    shape = hyper.shape + 0.5 * noise.gather(np.broadcast_to(entries.count, size))
    rate = noise.drop_copies(np.broadcast_to(prior.rate, size)) + 0.5 * noise.gather(left)
    return Rows(entries.origin, mean, doubt, noise.spread(shape, size), noise.spread(rate, size))


def _times(zz: Array, rows: Array) -> Array:
    """Matrices (K, 1 or D, ...) times rows (K, D, ...)."""
    if zz.shape[1] == 1:
        return np.asarray(rows @ zz[:, 0])
    return np.asarray(np.einsum("kjde,kje->kjd", zz, rows))


def _offsets(mean: Array, away: Array) -> Array:
    """Rows less their prior mean."""
    out = mean.copy()
    out[..., -1] -= away
    return out


def _sum_over_columns(doubt: Array, n_features: int) -> Array:
    """Covariances of the rows of all columns together, (K, ...)."""
    return np.asarray(doubt.sum(axis=1) * (n_features if doubt.shape[1] == 1 else 1))


def relevance_rates(rows: Rows, prior: FactorPrior, hyper: Hyper) -> Array:
    """Rates (K, d + 1) of q(nu)."""
    offsets = _offsets(rows.mean, prior.mean - rows.origin)
    squares = (rows.precision[..., None] * offsets**2).sum(axis=1)
    doubt = _sum_over_columns(rows.doubt, rows.mean.shape[1])
    squares += np.diagonal(doubt, axis1=1, axis2=2)
    return np.asarray(hyper.relevance_rate + 0.5 * squares)


def relevance_shape(n_features: int, hyper: Hyper) -> float:
    return hyper.relevance_shape + 0.5 * n_features


def fit_rows(
    entries: Entries, rates: Array, used: Array, prior: FactorPrior, noise: Noise, hyper: Hyper
) -> tuple[Rows, Array]:
    """q(v, tau) and the rates of q(nu), each given the other, in turn until they settle."""
    shape = relevance_shape(entries.n_features, hyper)
    # where there are no rows the turns would end there, but slowly
    settled = hyper.relevance_rate * shape / hyper.relevance_shape
    rates = np.where(entries.rows[:, -1:, -1] < _NO_ROWS, settled, rates)
    for _ in range(_TURNS):
        rows = regress(entries, shape / rates, used, prior, noise, hyper)
        fresh = relevance_rates(rows, prior, hyper)
        done = (np.abs(fresh - rates) <= _ENOUGH * rates).all()
        rates = fresh
        if done:
            break
    return rows, rates


# ------------------------------------------------ factors that go


def gains_without(
    entries: Entries,
    sums: BelievedSums,
    rows: Rows,
    rates: Array,
    used: Array,
    prior: FactorPrior,
    noise: Noise,
    hyper: Hyper,
) -> Array:
    """What the bound gains (K, d) if one factor of a component is left out, all else being equal.

    Without entry f of the rows |P| is |P| (P^-1)_ff, and squares grow by m_f^2 / (P^-1)_ff.
    """
    K, D, d = len(used), entries.n_features, used.shape[1]
    spread = np.diagonal(rows.doubt, axis1=2, axis2=3)[..., :d]
    spread = np.where(used[:, None], spread, 1.0)
    more = 0.5 * rows.mean[..., :d] ** 2 / spread
    shape, rate = (noise.drop_copies(part) for part in (rows.shape, rows.rate))
    gains = np.empty((K, d))
    for f in range(d):
        grown = noise.over_columns(more[..., f])
        own = np.broadcast_to(rate, grown.shape)
        lost = np.broadcast_to(shape, grown.shape) * np.log1p(grown / own)
        gains[:, f] = -lost.sum(axis=1)
    times = D if spread.shape[1] == 1 else 1
    gains -= 0.5 * times * np.log(spread).sum(axis=1)
    relevance = relevance_shape(D, hyper)
    gains -= 0.5 * D * expected_log(relevance, rates[:, :d])
    gains += gamma_kl(relevance, rates[:, :d], hyper.relevance_shape, hyper.relevance_rate)
    seconds = np.diagonal(entries.rows, axis1=1, axis2=2)
    gains += 0.5 * (seconds[:, :d] + sums.log_pivots - seconds[:, d:])
    return np.where(used, gains, -np.inf)


def drop_factors(
    entries: Entries,
    sums: BelievedSums,
    previous: FactorPosterior,
    prior: FactorPrior,
    noise: Noise,
    hyper: Hyper,
) -> tuple[Rows, Array, Array]:
    """q(v, tau), the rates of q(nu) and the factors in use, with those left out that the bound is
    better without: the worst one of each component, again and again. A component begins with all
    factors and a guess of them, and is given some steps to find what they are for."""
    rates, used = previous.rates, previous.used
    settled, gone = previous.age >= _SETTLING, False
    rows, rates = fit_rows(entries, rates, used, prior, noise, hyper)
    for _ in range(used.shape[1]):
        gains = gains_without(entries, sums, rows, rates, used, prior, noise, hyper)
        worst = gains.argmax(axis=1)
        going = np.flatnonzero((gains[np.arange(len(used)), worst] > 0) & settled)
        if noise.tied:  # the noise that one leaves is that of all components
            going = going[np.argsort(-gains[going, worst[going]])][:1]
        if not going.size:
            break
        used = used.copy()
        used[going, worst[going]] = False
        rows = _without(rows, going, worst[going], noise)
        gone = True
    if gone:
        rows, rates = fit_rows(entries, rates, used, prior, noise, hyper)
    return rows, rates, used


def _without(rows: Rows, which: Array, factors: Array, noise: Noise) -> Rows:
    """q(v, tau) of components ``which`` without one factor each, at the same relevances.

    The inverse of P without row and column f is P^-1 less the product of its column f with itself
    over (P^-1)_ff, and squares grow by m_f^2 / (P^-1)_ff.
    """
    mean, doubt = rows.mean.copy(), rows.doubt.copy()
    size = (mean.shape[0], mean.shape[1])
    more = np.zeros(size)
    for k, f in zip(which, factors, strict=True):
        column = doubt[k, :, :, f].copy()
        pivot = column[:, f]
        more[k] = mean[k, :, f] ** 2 / pivot
        mean[k] -= (mean[k, :, f] / pivot)[:, None] * column
        doubt[k] -= column[:, :, None] * column[:, None] / pivot[:, None, None]
        mean[k, :, f] = doubt[k, :, f] = doubt[k, :, :, f] = 0.0
    grown = noise.spread(0.5 * noise.gather(more), size)
    return replace(rows, mean=mean, doubt=doubt, rate=rows.rate + grown)


# ------------------------------------------------ divergence from the prior


def kl_of_components(
    rows: Rows, rates: Array, used: Array, prior: FactorPrior, hyper: Hyper
) -> Array:
    """KL divergence (K,) of q(v | tau) q(nu) from the prior, without that of the noise."""
    D = rows.mean.shape[1]
    active, relevance = _active(used), relevance_shape(D, hyper)
    own = gamma_kl(relevance, rates, hyper.relevance_shape, hyper.relevance_rate)
    half_squares = relevance_rates(rows, prior, Hyper(0.0, 0.0, 0.0))
    per_entry = relevance / rates * half_squares
    per_entry = per_entry - 0.5 * D * (expected_log(relevance, rates) + 1)
    doubt = np.where(active[:, None, :, None] | active[:, None, None, :], rows.doubt, 0.0)
    doubt = doubt + np.where(active, 0.0, 1.0)[:, None, :, None] * np.eye(active.shape[1])
    log_det = np.linalg.slogdet(doubt)[1]
    times = D if doubt.shape[1] == 1 else 1
    total = np.where(active, per_entry + own, 0.0).sum(axis=1)
    return np.asarray(total - 0.5 * times * log_det.sum(axis=1))


def kl_of_noise(rows: Rows, prior: FactorPrior, noise: Noise, hyper: Hyper) -> float:
    shape, rate = (noise.drop_copies(part) for part in (rows.shape, rows.rate))
    first = noise.drop_copies(np.broadcast_to(prior.rate, rows.shape.shape))
    return float(gamma_kl(shape, rate, hyper.shape, first).sum())


# ------------------------------------------------ latent coordinates


def turn_latents(
    entries: Entries, rows: Rows, rates: Array, used: Array, prior: FactorPrior, hyper: Hyper
) -> tuple[Rows, Array, Array]:
    """The rows for latents in the coordinates that the bound likes best, the longest factor first.

    With z = T z' + s for white z' of mean zero the bound has the most of the prior of the latents;
    the turn that makes the factors orthogonal in units of the noise has the most of that of their
    relevances. This is the optimum for vague priors of these. A component keeps its own
    coordinates where that is better.
    """
    K, size = len(used), used.shape[1]
    order = np.argsort(~used, axis=1, kind="stable")
    turn = np.zeros((K, size + 1, size + 1))
    turn[:, size, size] = 1.0
    gain = np.zeros(K)
    squares = np.einsum("kjd,kj,kje->kde", rows.mean, rows.precision, rows.mean)
    squares += _sum_over_columns(rows.doubt, entries.n_features)
    for k in range(K):
        own = order[k, : int(used[k].sum())]
        count = entries.rows[k, size, size]
        second = entries.rows[k][np.ix_(own, own)]
        shift = entries.rows[k, own, size] / max(count, np.finfo(float).tiny)
        covariance = second / max(count, np.finfo(float).tiny) - np.outer(shift, shift)
        root = _root(covariance) if count > len(own) + 1 else None
        if root is None:
            turn[k, own, np.arange(len(own))] = 1.0
            continue
        vectors = np.linalg.eigh(root.T @ squares[k][np.ix_(own, own)] @ root)[1]
        change = root @ vectors[:, ::-1]
        turn[k, own, : len(own)] = change
        turn[k, own, size] = shift
        # of the prior and the entropy of the latents
        gain[k] = 0.5 * (np.trace(second) - count * len(own))
        gain[k] -= count * np.log(np.diagonal(root)).sum()
    turned = _turn_rows(rows, turn)
    kept = np.arange(size) < used.sum(axis=1)[:, None]
    fresh = relevance_rates(turned, prior, hyper)
    gain += kl_of_components(rows, rates, used, prior, hyper)
    gain -= kl_of_components(turned, fresh, kept, prior, hyper)
    worse = np.flatnonzero(~(gain >= 0))
    if worse.size:  # the same factors in the same order, as they are
        plain = np.zeros((K, size + 1, size + 1))
        plain[:, size, size] = 1.0
        plain[np.arange(K)[:, None], order, np.arange(size)] = 1.0
        plain *= np.concatenate([kept, np.ones((K, 1), bool)], axis=1)[:, None]
        turn[worse] = plain[worse]
        turned = _turn_rows(rows, turn)
        fresh = relevance_rates(turned, prior, hyper)
    return turned, fresh, kept


def _root(covariance: Array) -> Array | None:
    """The lower factor; None where the latents hardly vary in some direction."""
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return None
    return root if (np.diagonal(root) > 1e-6).all() else None


def _turn_rows(rows: Rows, turn: Array) -> Rows:
    """v' = T'v for latents (z, 1) = T (z', 1)."""
    doubt = np.swapaxes(turn, 1, 2)[:, None] @ rows.doubt @ turn[:, None]
    return replace(rows, mean=rows.mean @ turn, doubt=0.5 * (doubt + np.swapaxes(doubt, 2, 3)))


# ------------------------------------------------ to and from posteriors


def to_posterior(
    frame: Frame, rows: Rows, rates: Array, used: Array, age: Array
) -> FactorPosterior:
    return FactorPosterior(
        frame,
        rows.mean[..., -1] + rows.origin,
        np.ascontiguousarray(rows.mean[..., :-1]),
        rows.rate / rows.shape,
        rows.shape,
        rows.doubt,
        used,
        rates,
        age,
    )


def rows_of(posterior: FactorPosterior) -> Rows:
    rate = posterior.noise * posterior.shape
    origin = np.zeros_like(posterior.means)
    return Rows(origin, posterior.rows, posterior.doubt, posterior.shape, rate)


def without_spare_columns(posterior: FactorPosterior) -> FactorPosterior:
    """Without latents that no component uses; factors in use come first."""
    most = int(posterior.used.sum(axis=1).max(initial=0))
    if most == posterior.n_factors:
        return posterior
    kept = np.append(np.arange(most), posterior.n_factors)
    return replace(
        posterior,
        loadings=np.ascontiguousarray(posterior.loadings[..., :most]),
        doubt=np.ascontiguousarray(posterior.doubt[:, :, kept][..., kept]),
        used=posterior.used[:, :most],
        rates=posterior.rates[:, kept],
    )


def without_empty_columns(loadings: Array) -> Array:
    """Loadings (K, D, d) with the factors of each component first, as wide as the most of them.

    A fit that ends early, or goes on with a stream, leaves columns that no component uses any more.
    """
    used = (loadings != 0).any(axis=1)
    most = int(used.sum(axis=1).max(initial=0))
    order = np.argsort(~used, axis=1, kind="stable")[:, :most]
    return np.take_along_axis(loadings, order[:, None], axis=2)


def with_spare_columns(posterior: FactorPosterior, n_factors: int, rate: float) -> FactorPosterior:
    """With latents that no component uses, up to ``n_factors`` of them."""
    K, D, d = posterior.loadings.shape
    if n_factors == d:
        return posterior
    place = np.append(np.arange(d), n_factors)
    doubt = np.zeros((*posterior.doubt.shape[:2], n_factors + 1, n_factors + 1))
    doubt[:, :, place[:, None], place] = posterior.doubt
    rates = np.full((K, n_factors + 1), rate)
    rates[:, place] = posterior.rates
    loadings = np.zeros((K, D, n_factors))
    loadings[..., :d] = posterior.loadings
    used = np.zeros((K, n_factors), bool)
    used[:, :d] = posterior.used
    return replace(posterior, loadings=loadings, doubt=doubt, used=used, rates=rates)


def with_doubt_of_entries(posterior: FactorPosterior) -> FactorPosterior:
    """With a covariance for each column, as rows with missing entries need it."""
    K, D, d = posterior.loadings.shape
    doubt = np.broadcast_to(posterior.doubt, (K, D, d + 1, d + 1)).copy()
    return replace(posterior, doubt=doubt)


def with_signs_of(posterior: FactorPosterior, previous: FactorPosterior) -> FactorPosterior:
    """Each factor in the direction of the previous one, of which it is the successor."""
    d = min(posterior.n_factors, previous.n_factors)
    along = np.ones((posterior.n_components, posterior.n_factors + 1))
    products = (posterior.loadings[..., :d] * previous.loadings[..., :d]) / posterior.noise[
        ..., None
    ]
    along[:, :d] = np.where(products.sum(axis=1) < 0, -1.0, 1.0)
    return replace(
        posterior,
        loadings=posterior.loadings * along[:, None, :-1],
        doubt=posterior.doubt * along[:, None, :, None] * along[:, None, None],
    )


def expected_log_precision(posterior: FactorPosterior) -> Array:
    """E ln tau, (K, D)."""
    return np.asarray(psi(posterior.shape) - np.log(posterior.noise * posterior.shape))


def about_origin(sums: BelievedSums, origin: Array) -> BelievedSums:
    return replace(sums, sums=change_origin(sums.sums, origin))
