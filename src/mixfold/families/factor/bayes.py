"""Factor components with priors: how many factors each of them has is learned with them.

    tau ~ Gamma,   nu ~ Gamma,   (w, mu) | tau, nu ~ N((0, m), diag(1 / nu) / tau)
    z ~ N(0, I_d),   x_j | z, k ~ N(w_kj'z + mu_kj, 1 / tau_kj)

In expectation over q the joint log density of a row and its latents is that of a Gaussian factor
component and a quadratic form of the latents, which comes from what is not known of the loadings:

    E ln p(x, z | k) = ln N(x; W z + mu, 1 / E tau) + ln N(z; 0, I) - (z, 1)' D (z, 1) / 2 + const

D is the sum of ``doubt`` over the columns that are seen. With N(z; c, R R') proportional to the
exponential of the last two, a complete row is read as one of the Gaussian component with loadings
W R and mean mu + W c, on the routes of maximum likelihood and at their speed; its latents are
z = c + R u. A row with missing entries has a D of its own (``incomplete``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.component import Scores
from mixfold.families.conjugate import ConjugateFamily
from mixfold.families.factor import complete, incomplete
from mixfold.families.factor.family import FactorFamily, Work
from mixfold.families.factor.posteriors import (
    OF_COMPONENTS,
    BelievedSums,
    FactorPosterior,
    FactorPrior,
    Hyper,
    about_origin,
    drop_factors,
    entries_of,
    expected_log_precision,
    fit_rows,
    kl_of_components,
    kl_of_noise,
    relevance_shape,
    rows_of,
    to_posterior,
    turn_latents,
    with_signs_of,
    with_spare_columns,
    without_empty_columns,
    without_spare_columns,
)
from mixfold.families.factor.reading import Belief, FactorReading, read
from mixfold.families.factor.records import FactorParams, FactorSums, Latents
from mixfold.math.frame import Frame
from mixfold.math.lifted import Sums
from mixfold.math.symmetric import LOG_2PI

# of the factors that a component may begin with: with so many it may want more
_CRAMPED = 0.75
# of the variance of all rows: what the prior of the noise expects, with the weight of one row
_NOISE_SHARE = 1e-3


@dataclass(frozen=True)
class BayesFactors(ConjugateFamily, FactorFamily):
    """Factor components with posteriors. ``factors`` is the largest number of them.

    Parameters
    ----------
    mean : array (D,), optional
        Of the prior of the means, in data coordinates; by default the mean of all rows.
    noise_shape : float
        Of the gamma prior of the precisions of the noise: half of the rows that it is worth.
    noise_variance : array (D,) or float, optional
        What the prior expects of the noise, in data coordinates; by default a thousandth of the
        variance of all rows.
    relevance_shape, relevance_rate : float
        Of the gamma prior of the precisions of the loadings (and of the means) in units of the
        noise: small ones say little.
    drop : bool
        Whether factors are left out where the bound is higher without them.
    rows_per_factor : float
        A component begins with no more factors than one for so many of its rows. Where starts of
        few and of many components race, those of many would else be judged by factors that go
        within some steps.
    """

    mean: Any = None
    noise_shape: float = 0.5
    noise_variance: Any = None
    relevance_shape: float = 0.1
    relevance_rate: float = 0.1
    drop: bool = True
    rows_per_factor: float = 0.0

    readings: ClassVar[tuple[str, ...]] = ("expected",)
    remedy: ClassVar[str] = "use inference='vb', or 'em' without a prior"
    # sums of components are in latent coordinates of their own
    sums_can_merge: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.loadings.tied or self.noise.held:
            raise ValueError(
                "with priors every component has loadings of its own and a noise that is learned; "
                "leave 'loadings' out of tied"
            )

    @property
    def _hyper(self) -> Hyper:
        return Hyper(self.noise_shape, self.relevance_shape, self.relevance_rate)

    # ------------------------------------------------ E step

    def mode(self, params: FactorParams) -> FactorReading:
        """Parameters as they are believed if there is no doubt."""
        K, d = len(params.means), params.n_factors
        belief = Belief(
            params.means,
            params.loadings,
            np.zeros((K, 1, d + 1, d + 1)),
            np.zeros(params.means.shape),
            np.broadcast_to(np.eye(d), (K, d, d)),
            np.zeros((K, d)),
        )
        return read(params, self.noise.isotropic, self.has_missing, belief=belief)

    def fused_pass(
        self, block: Block, reading: FactorReading, log_weights: Array
    ) -> tuple[Any, Sums] | None:
        found = super().fused_pass(block, reading, log_weights)
        return None if found is None else (_believed(found[0], reading), found[1])

    def moments(self, scores: Scores, resp: Array, reading: FactorReading) -> Any:
        work: Work = scores.work
        own = resp[work.whole]
        sums = complete.careful_sums(work.U[work.whole], work.latents, own, reading)
        found = _believed(sums, reading)
        if work.rows is None:
            return found
        self._check_incomplete()
        return found + _believed_incomplete(work.rows, resp[work.lacking], reading)

    def log_ratios(self, block: Block, reading: FactorReading, reference: int) -> Array:
        if not block.complete:  # the doubt of such rows depends on them
            return ConjugateFamily.log_ratios(self, block, reading, reference)
        gap = np.broadcast_to(reading.gap, len(reading.means))
        return np.asarray(super().log_ratios(block, reading, reference) + (gap - gap[reference]))

    def about_frame(self, moments: BelievedSums) -> BelievedSums:  # type: ignore[override]
        return about_origin(moments, np.zeros_like(moments.sums.origin))

    # ------------------------------------------------ prior and posterior

    def prior(self, frame: Frame, total: BelievedSums) -> FactorPrior:
        sums = total.sums
        count = np.maximum(_counts(sums), np.finfo(float).tiny)
        deviation = sums.first / count
        mean = (sums.origin + deviation)[0] if self.mean is None else frame.enter(self.mean)
        if self.noise_variance is None:
            variance = _NOISE_SHARE * np.maximum(sums.squares / count - deviation**2, self.floor)[0]
        else:
            variance = np.broadcast_to(self.noise_variance, mean.shape) / frame.scale**2
        shared = self.noise.over_columns(variance[None]) / self.noise.over_columns(
            np.ones((1, mean.size))
        )
        return FactorPrior(mean, self.noise_shape * self.noise.spread(shared, (1, mean.size))[0])

    def change_frame_of_prior(self, prior: FactorPrior, old: Frame, new: Frame) -> FactorPrior:
        rate = prior.rate * (old.scale / new.scale) ** 2
        return FactorPrior(new.enter(old.leave(prior.mean)), rate)

    def posterior(  # type: ignore[override]
        self, moments: BelievedSums, prior: FactorPrior, frame: Frame
    ) -> FactorPosterior:
        """Without an earlier one: relevances start as those of loadings as long as the noise. What
        plain factor components call so, of latents, is asked of the point only."""
        entries = entries_of(moments.sums)
        K, size = entries.rows.shape[:2]
        rates = np.full((K, size), relevance_shape(entries.n_features, self._hyper))
        most = np.minimum(self._own(K), self._most_at_first(entries.rows[:, -1, -1]))
        used = np.arange(size - 1) < most[:, None]
        rows, rates = fit_rows(entries, rates, used, prior, self.noise, self._hyper)
        return to_posterior(frame, rows, rates, used, np.zeros(K, np.int64))

    def update_posterior(
        self, previous: FactorPosterior, moments: BelievedSums, prior: FactorPrior
    ) -> FactorPosterior:
        entries, hyper = entries_of(moments.sums), self._hyper
        used, age = previous.used, previous.age + 1
        if self.drop:
            rows, rates, used = drop_factors(entries, moments, previous, prior, self.noise, hyper)
        else:
            rates = previous.rates
            rows, rates = fit_rows(entries, rates, used, prior, self.noise, hyper)
        if not self.expand:
            return to_posterior(previous.frame, rows, rates, used, age)
        rows, rates, used = turn_latents(entries, rows, rates, used, prior, hyper)
        found = without_spare_columns(to_posterior(previous.frame, rows, rates, used, age))
        return with_signs_of(found, previous)

    def keep_posterior(self, posterior: FactorPosterior, which: Array) -> FactorPosterior:
        return replace(
            posterior, **{name: getattr(posterior, name)[which] for name in OF_COMPONENTS}
        )

    def _most_at_first(self, counts: Array) -> Array:
        """Factors (K,) that components of so many rows begin with at most."""
        if not self.rows_per_factor:
            return np.full(len(counts), self.size)
        return np.maximum(1, counts // self.rows_per_factor)

    def cramped(self, posterior: FactorPosterior, counts: Array) -> Array:
        """Components with nearly as many factors as those of so many rows begin with."""
        own = posterior.used.sum(axis=1)
        return np.flatnonzero((own < self.size) & (own >= _CRAMPED * self._most_at_first(counts)))

    def renewed(self, posterior: FactorPosterior, which: Array) -> BayesFactors:
        """Rows of two components vary along the factors of both and from one to the other; one is
        made anew with twice as many factors."""
        own = int(posterior.used[which].sum())
        own = own + len(which) - 1 if len(which) > 1 else 2 * max(own, 1)
        return replace(self, factors=(min(own, self.size),), rows_per_factor=0.0)

    def replace_posteriors(
        self, posterior: FactorPosterior, which: Array, others: FactorPosterior
    ) -> FactorPosterior:
        most, rate = max(posterior.n_factors, others.n_factors), self.relevance_rate
        posterior, others = (with_spare_columns(q, most, rate) for q in (posterior, others))
        changed = {}
        for name in OF_COMPONENTS:
            changed[name] = getattr(posterior, name).copy()
            changed[name][which] = getattr(others, name)
        if self.noise.tied:  # it is that of all components
            changed["noise"], changed["shape"] = posterior.noise, posterior.shape
        return replace(posterior, **changed)

    def change_frame_of_posterior(
        self, posterior: FactorPosterior, frame: Frame
    ) -> FactorPosterior:
        params = self.change_frame(self.point(posterior), frame)
        return replace(
            posterior,
            frame=frame,
            means=params.means,
            loadings=params.loadings,
            noise=params.noise,
        )

    # ------------------------------------------------ readings

    def point(self, posterior: FactorPosterior) -> FactorParams:
        loadings = without_empty_columns(posterior.loadings)
        return FactorParams(posterior.frame, posterior.means, loadings, posterior.noise)

    def expected_reading(self, posterior: FactorPosterior) -> FactorReading:
        d, D = posterior.n_factors, posterior.n_features
        total = posterior.doubt.sum(axis=1) * (D if posterior.doubt.shape[1] == 1 else 1)
        precision = total[:, :d, :d] + np.eye(d)
        covariance = np.linalg.inv(precision)
        root = np.linalg.cholesky(0.5 * (covariance + np.swapaxes(covariance, 1, 2)))
        shift = -np.einsum("kde,ke->kd", covariance, total[:, :d, d])
        surplus = 0.5 * (expected_log_precision(posterior) + np.log(posterior.noise))
        gap = surplus.sum(axis=1) - 0.5 * np.linalg.slogdet(precision)[1]
        gap -= 0.5 * (np.einsum("kd,kd->k", shift, total[:, :d, d]) + total[:, d, d])
        means = posterior.means + np.einsum("kjd,kd->kj", posterior.loadings, shift)
        params = FactorParams(posterior.frame, means, posterior.loadings @ root, posterior.noise)
        belief = Belief(posterior.means, posterior.loadings, posterior.doubt, surplus, root, shift)
        return read(params, self.noise.isotropic, self.has_missing, gap, belief)

    def draw(self, posterior: FactorPosterior, rng: np.random.Generator) -> FactorParams:
        raise TypeError("the latents would have to be drawn too, for which there is no sampler")

    # ------------------------------------------------ parts of the objectives

    def kl(self, posterior: FactorPosterior, prior: FactorPrior) -> float:
        rows, hyper = rows_of(posterior), self._hyper
        own = kl_of_components(rows, posterior.rates, posterior.used, prior, hyper)
        return float(own.sum()) + kl_of_noise(rows, prior, self.noise, hyper)

    def average(self, moments: BelievedSums, reading: FactorReading) -> float:
        """With the latents as they were believed when the sums were made: a bound from below."""
        belief = reading.belief
        assert belief is not None
        sums = about_origin(moments, belief.means).sums
        entries = entries_of(sums)
        precision = 1 / reading.noise
        loadings = belief.loadings
        inner = entries.zz[:, :, :-1, :-1]
        if inner.shape[1] == 1:
            gain = ((loadings @ inner[:, 0] - 2 * sums.cross) * loadings).sum(axis=-1)
        else:
            gain = np.einsum("kjde,kje->kjd", inner, loadings) - 2 * sums.cross
            gain = (gain * loadings).sum(axis=-1)
        log_scale = reading.frame.log_scale
        height = belief.surplus - 0.5 * (LOG_2PI + np.log(reading.noise)) - log_scale
        value = float((entries.count * height).sum())
        value -= 0.5 * float((precision * (sums.squares + gain)).sum())
        alike = entries.zz.shape[1] == belief.doubt.shape[1] == 1
        spread = (entries.zz * belief.doubt).sum(axis=(1, 2, 3))
        value -= 0.5 * float(spread.sum()) * (loadings.shape[1] if alike else 1)
        d = loadings.shape[2]
        second = np.trace(sums.rows.second, axis1=1, axis2=2)
        return value + 0.5 * float((moments.log_det + d * sums.rows.count - second).sum())

    def evidence(self, moments: BelievedSums, prior: FactorPrior, frame: Frame) -> float:
        """A bound from below, with the latents as they were believed."""
        found = self.posterior(moments, prior, frame)
        return self.average(moments, self.expected_reading(found)) - self.kl(found, prior)

    def log_prior(self, params: FactorParams, prior: FactorPrior) -> float:
        raise TypeError("the posterior is read in expectation, not at its point")

    def empirical(self, posterior: FactorPosterior, prior: FactorPrior) -> FactorPrior:
        raise TypeError("the relevances are learned, and nothing else of the prior")

    # ------------------------------------------------ prediction

    def log_predictive(self, posterior: FactorPosterior, block: Block) -> Array:
        raise TypeError(
            "a density averaged over loadings and noise has no closed form; score the point"
        )

    def sample_predictive(
        self, posterior: FactorPosterior, labels: Array, rng: np.random.Generator
    ) -> Array:
        return self.draw_rows(self.point(posterior), labels, rng)


def _counts(sums: FactorSums) -> Array:
    count = sums.whole.count[:, None]
    return count + sums.seen.count if sums.seen.count.shape[1] else count


def _believed(sums: FactorSums, reading: FactorReading) -> BelievedSums:
    """Sums of complete rows, in the latents of the posterior."""
    assert reading.belief is not None
    root, shift = reading.belief.root, reading.belief.shift
    count, latents = sums.rows.count, _moved(sums.rows, root, shift)
    sums = replace(
        sums,
        cross=sums.cross @ np.swapaxes(root, 1, 2) + sums.first[..., None] * shift[:, None],
        rows=latents,
        whole=latents,
    )
    covariances = root @ reading.parts.covariances @ np.swapaxes(root, 1, 2)
    log_det = np.linalg.slogdet(covariances)[1]
    pivots = np.diagonal(np.linalg.inv(covariances), axis1=1, axis2=2)
    return BelievedSums(sums, count * log_det, count[:, None] * np.log(pivots))


def _moved(latents: Latents, root: Array, shift: Array) -> Latents:
    """Of z = shift + root u, from those of u."""
    first = np.einsum("kde,ke->kd", root, latents.first)
    both = shift[:, :, None] * first[:, None]
    second = root @ latents.second @ np.swapaxes(root, 1, 2)
    second = second + both + np.swapaxes(both, 1, 2)
    second += latents.count[:, None, None] * shift[:, :, None] * shift[:, None]
    return Latents(latents.count, first + latents.count[:, None] * shift, second)


def _believed_incomplete(
    rows: incomplete.IncompleteRows, resp: Array, reading: FactorReading
) -> BelievedSums:
    sums = incomplete.incomplete_sums(rows, resp, reading)
    assert rows.log_det is not None and rows.pivots is not None
    log_det = -(resp * rows.log_det).sum(axis=0)
    log_pivots = np.einsum("nk,nkd->kd", resp, np.log(rows.pivots))
    return BelievedSums(sums, log_det, log_pivots)
