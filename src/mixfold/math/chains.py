"""Convergence diagnostics of Markov chains: split R-hat and effective sample size.

Both answers are for one scalar whose draws are an array (n_chains, n_draws), without the burn-in.
Every chain is split into halves first, so that a chain that drifts disagrees with itself. The
scalar must not depend on how clusters are numbered: a label-free quantity such as the log joint
density or the number of clusters.

References
----------
Gelman, Carlin, Stern, Dunson, Vehtari, Rubin (2013), Bayesian Data Analysis, 3rd ed., ch. 11.
Geyer (1992), Practical Markov chain Monte Carlo, Statistical Science 7.
Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021), Rank-normalization, folding, and
localization: an improved R-hat, Bayesian Analysis 16. (Ranks are not used here.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import fft

from mixfold.contracts import Array

# Beyond these a summary should not be trusted.
R_HAT_LIMIT, ESS_LIMIT = 1.05, 100.0
_ROUNDING = 1e-12
_FEWEST = 4  # draws of a chain: a half needs two to have a variance


class Summary(NamedTuple):
    """What the draws of one scalar say, and how far to believe it."""

    mean: float
    sd: float
    r_hat: float
    ess: float

    @property
    def reliable(self) -> bool:
        """R-hat at most 1.05 and an effective sample size of at least 100; False if undefined."""
        return self.r_hat <= R_HAT_LIMIT and self.ess >= ESS_LIMIT


def split_r_hat(draws: Array) -> float:
    """Potential scale reduction of chains that were split into halves.

    sqrt(((n - 1) / n W + B) / W) with n draws in a half, W the mean variance within halves and B
    the variance of their means. It tends to 1 from above when all halves are of one distribution.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws)
        One chain in each row. The middle draw of an odd number is left out.

    Returns
    -------
    float
        1 if all draws are equal; infinity if every half is constant but they are not equal; NaN
        if there are fewer than four draws in a chain or one of them is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.chains import split_r_hat
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> round(split_r_hat(draws), 2), round(split_r_hat(draws + np.arange(4)[:, None]), 2)
    (1.0, 1.56)
    """
    draws = _check_draws(draws)
    if _is_undefined(draws):
        return float("nan")
    halves = _halves(draws)
    within, between = _variances(halves)
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    n = halves.shape[1]
    return float(np.sqrt((n - 1) / n + between / within))


def effective_sample_size(draws: Array) -> float:
    """How many independent draws would give the mean as precisely as these.

    Autocorrelations are pooled over the halves of all chains, each about its own mean; where the
    halves disagree, all correlations rise. They are summed in pairs of lags while a pair is
    positive, no pair counting more than one before it (Geyer's initial monotone sequence).

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws)
        One chain in each row. The middle draw of an odd number is left out.

    Returns
    -------
    float
        Draws that alternate about their mean can be worth more than their number S; the answer
        is at most S log10(S). It is the number of draws if all are equal, and NaN if there are
        fewer than four draws in a chain or one of them is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.chains import effective_sample_size
    >>> steps = np.random.default_rng(0).normal(size=(4, 500))
    >>> round(effective_sample_size(steps)), round(effective_sample_size(steps.cumsum(axis=1)))
    (2007, 6)
    """
    draws = _check_draws(draws)
    if _is_undefined(draws):
        return float("nan")
    if np.ptp(draws) == 0:
        return float(draws.size)
    halves = _halves(draws)
    n = halves.shape[1]
    within, between = _variances(halves)
    correlations = 1 - (within - _autocovariances(halves).mean(axis=0)) / (
        (n - 1) / n * within + between
    )
    correlations[0] = 1.0
    # the sum over all lags, of both signs, is the variance of the mean in units of 1 / S
    time = max(_sum_autocorrelations(correlations), 1 / np.log10(halves.size))
    return float(halves.size / time)


def summary(draws: Array) -> Summary:
    """Mean, standard deviation, split R-hat and effective sample size of one scalar.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws)
        One chain in each row.

    Returns
    -------
    Summary
        The standard deviation is that of all draws about their common mean (NaN for a single
        one). Everything is NaN if a draw is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.chains import summary
    >>> found = summary(np.random.default_rng(0).normal(5, 2, size=(4, 5000)))
    >>> round(found.mean, 1), round(found.sd, 1), found.reliable
    (5.0, 2.0, True)
    """
    draws = _check_draws(draws)
    if not np.isfinite(draws).all():
        return Summary(*[float("nan")] * 4)
    mean, sd = float(draws.mean()), _deviation(draws)
    return Summary(mean, sd, split_r_hat(draws), effective_sample_size(draws))


def _check_draws(draws: Array) -> Array:
    draws = np.asarray(draws, dtype=np.float64)
    if draws.ndim != 2 or draws.size == 0:
        remedy = " Give a single chain as draws[None]." if draws.ndim == 1 else ""
        raise ValueError(
            "draws must have the shape (n_chains, n_draws) with at least one draw; got the shape "
            f"{draws.shape}.{remedy}"
        )
    # what differs by the rounding of a long sum, such as a log joint, does not differ
    if np.isfinite(draws).all() and np.ptp(draws) <= _ROUNDING * np.abs(draws).max():
        return np.full_like(draws, draws.flat[0])
    return draws


def _deviation(draws: Array) -> float:
    if draws.size == 1:
        return float("nan")
    return float(draws.std(ddof=1)) if np.ptp(draws) else 0.0  # a mean is rounded


def _is_undefined(draws: Array) -> bool:
    return draws.shape[1] < _FEWEST or not bool(np.isfinite(draws).all())


def _halves(draws: Array) -> Array:
    """(2 n_chains, n_draws // 2): first and last halves."""
    n = draws.shape[1] // 2
    return np.concatenate([draws[:, :n], draws[:, -n:]])


def _variances(halves: Array) -> tuple[float, float]:
    """Mean variance within halves, and variance of their means; exactly 0 for what is constant."""
    constant = np.ptp(halves, axis=1) == 0  # a mean is rounded, and would leave a variance
    within = np.where(constant, 0.0, halves.var(axis=1, ddof=1))
    means = np.where(constant, halves[:, 0], halves.mean(axis=1))
    return float(within.mean()), float(means.var(ddof=1)) if np.ptp(means) else 0.0


def _autocovariances(chains: Array) -> Array:
    """Sums over n of products at each lag 0..n-1, divided by n; about the mean of each chain."""
    n = chains.shape[1]
    padded = fft.next_fast_len(2 * n, real=True)  # so that the ends do not meet
    spectrum = fft.rfft(chains - chains.mean(axis=1, keepdims=True), padded, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    return np.asarray(fft.irfft(power, padded, axis=1)[:, :n] / n)


def _sum_autocorrelations(correlations: Array) -> float:
    """1 + 2 sum of correlations over lags 1, 2, ... by the initial monotone sequence."""
    even = correlations[: correlations.size // 2 * 2 : 2]
    pairs = even + correlations[1::2]
    ends = np.flatnonzero(pairs <= 0)
    n = int(ends[0]) if ends.size else pairs.size
    # the even lag of the pair that is cut counts once: it matters for alternating draws
    rest = max(float(even[n]), 0.0) if ends.size else 0.0
    return float(-1 + 2 * np.minimum.accumulate(pairs[:n]).sum() + rest)
