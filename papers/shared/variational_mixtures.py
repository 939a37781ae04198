"""Variational Bayes as Yu (2006) runs it: one climb from random memberships, nothing moved.

``fit`` asks BayesianGaussianMixture. ``climb_by_formulas`` is the same written out from the
source's equations in numpy, for the weights that the library does not have (sticks of which the
last one is broken too) and as a reference of the bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln, logsumexp, multigammaln, psi
from sklearn.exceptions import ConvergenceWarning

from mixfold import BayesianGaussianMixture, DegenerateWarning
from mixfold.contracts import Array
from papers.frame.experiment import map_on_cores

# a component can take hundreds of steps to die, in which the bound hardly moves
TOL, CAP = 1e-9, 3000
IN_USE = 0.5
DEGREES = 2.0
# what Yu (2006) puts fifty points into, each: mean, and the entries of the covariance
GROUPS = (
    ((3, 3), (0.4, -0.3, 0.6)),
    ((3, 8), (1.0, 0.0, 0.2)),
    ((5, 6), (0.4, -0.3, 0.8)),
    ((7, 7), (0.7, 0.3, 0.6)),
    ((8, 4), (0.3, -0.2, 0.8)),
)
PER_GROUP = 50
# the weights: Dirichlet; sticks, the last one whole; sticks, the last one broken too
VBDMA, VBTDP, PRINTED = "VBDMA", "VBTDP", "VBTDP as printed"


def draw_toy(rng: np.random.Generator) -> Array:
    """A draw of the toy data of Yu (2006), section 2.1.3: 250 points of the plane."""
    parts = []
    for mean, (a, b, c) in GROUPS:
        parts.append(rng.multivariate_normal(mean, [[a, b], [b, c]], PER_GROUP))
    return np.concatenate(parts)


# ------------------------------------------------ the class


@dataclass(frozen=True, slots=True)
class Ended:
    """Where a climb ended; parameters are those of the components in use.

    ``bound`` is that of all components, ``kept`` that of a mixture without the empty ones (VBDMA,
    else NaN).
    """

    components: int
    bound: float
    kept: float
    steps: int
    converged: bool
    weights: Array
    means: Array
    covariances: Array


def make_mixture(
    X: Array, K: int, rule: str, alpha: float, precision: float, seed: int, scale: float = DEGREES
) -> BayesianGaussianMixture:
    """The mixture of the source: two degrees of freedom, and W_0^-1 = scale * precision * S.

    S is the covariance of the sample, alpha that of all components together or of the sticks.
    """
    dirichlet = rule == VBDMA
    kind = "dirichlet_distribution" if dirichlet else "dirichlet_process"
    return BayesianGaussianMixture(
        K,
        init_params="random",
        weight_concentration_prior_type=kind,
        weight_concentration_prior=alpha / K if dirichlet else alpha,
        mean_precision_prior=precision,
        mean_prior=X.mean(axis=0),
        degrees_of_freedom_prior=DEGREES,
        covariance_prior=scale * precision * np.cov(X.T, bias=True),
        tol=TOL,
        max_iter=CAP,
        # sticks stay in the order of the start only if it is to be kept for another fit
        warm_start=not dirichlet,
        n_jobs=1,
        random_state=seed,
    )


def fit_quietly(mixture: BayesianGaussianMixture, X: Array) -> BayesianGaussianMixture:
    """Fit; components without rows and climbs that were cut are counted in the tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DegenerateWarning)
        return mixture.fit(X)


def fit(
    X: Array, K: int, rule: str, alpha: float, precision: float, seed: int, scale: float = DEGREES
) -> Ended:
    """One climb from random memberships, by the class or, for the printed sticks, by formulas."""
    if rule == PRINTED:
        prior = make_prior(X, rule, alpha, precision, scale)
        return climb_by_formulas(X, K, prior, np.random.default_rng([seed, 7]))
    mixture = fit_quietly(make_mixture(X, K, rule, alpha, precision, seed, scale), X)
    used = np.flatnonzero(mixture.counts_ > IN_USE)
    kept = np.nan
    if rule == VBDMA:
        kept = compute_bound(X, read_posterior(mixture).keep(used), read_prior(mixture))
    return Ended(
        len(used), mixture.evidence_bound_, kept, mixture.n_iter_, bool(mixture.converged_),
        mixture.weights_[used], mixture.means_[used], mixture.covariances_[used],
    )  # fmt: skip


def fit_all(tasks: Sequence[tuple[Any, ...]]) -> Iterator[Ended]:
    """``fit`` for each (X, K, rule, alpha, precision, seed), in that order, on all cores."""
    return map_on_cores(fit, tasks)


# ------------------------------------------------ the formulas


@dataclass(frozen=True, slots=True)
class Prior:
    """Of the weights and of the components: N(mean, (precision L)^-1), L ~ W(scatter^-1, degrees).

    ``alpha`` is that of one component of a Dirichlet, or of the sticks.
    """

    rule: str
    alpha: float
    mean: Array
    precision: float
    degrees: float
    scatter: Array


@dataclass(frozen=True, slots=True)
class Posterior:
    """Rows ``counts`` (K,) of each component, and its normal-Wishart law."""

    counts: Array
    mean: Array
    precision: Array
    degrees: Array
    scatter: Array

    def keep(self, which: Array) -> Posterior:
        """That of some components alone."""
        return Posterior(
            self.counts[which], self.mean[which], self.precision[which], self.degrees[which],
            self.scatter[which],
        )  # fmt: skip


def make_prior(
    X: Array, rule: str, alpha: float, precision: float, scale: float, share: float = 1.0
) -> Prior:
    """That of ``make_mixture``; ``share`` is 1 / K for Dirichlet weights."""
    scatter = scale * precision * np.cov(X.T, bias=True)
    return Prior(rule, alpha * share, X.mean(axis=0), precision, DEGREES, scatter)


def read_prior(mixture: BayesianGaussianMixture) -> Prior:
    """The prior that a fitted mixture publishes."""
    dirichlet = mixture.weight_concentration_prior_type == "dirichlet_distribution"
    return Prior(
        VBDMA if dirichlet else VBTDP, mixture.weight_concentration_prior_, mixture.mean_prior_,
        mixture.mean_precision_prior_, mixture.degrees_of_freedom_prior_,
        mixture.covariance_prior_,
    )  # fmt: skip


def read_posterior(mixture: BayesianGaussianMixture) -> Posterior:
    """The posterior that a fitted mixture publishes."""
    degrees = mixture.degrees_of_freedom_
    return Posterior(
        mixture.counts_, mixture.means_, mixture.mean_precision_, degrees,
        mixture.covariances_ * degrees[:, None, None],
    )  # fmt: skip


def update_posterior(X: Array, memberships: Array, prior: Prior) -> Posterior:
    """The laws of the components that follow from memberships (N, K)."""
    counts = memberships.sum(axis=0)
    precision = prior.precision + counts
    mean = (prior.precision * prior.mean + memberships.T @ X) / precision[:, None]
    squares = np.einsum("nk,nd,ne->kde", memberships, X, X, optimize=True)
    about = prior.precision * np.outer(prior.mean, prior.mean)
    taken = precision[:, None, None] * mean[:, :, None] * mean[:, None, :]
    return Posterior(
        counts, mean, precision, prior.degrees + counts, prior.scatter + squares + about - taken
    )


def compute_log_weights(counts: Array, prior: Prior) -> tuple[Array, float]:
    """E[ln pi] (K,), and the divergence of the weights from their prior."""
    if prior.rule == VBDMA:
        lam, own = prior.alpha + counts, np.full(len(counts), prior.alpha)
        log_weights = psi(lam) - psi(lam.sum())
        gap = gammaln(lam.sum()) - gammaln(lam).sum() - gammaln(own.sum()) + gammaln(own).sum()
        return log_weights, float(gap + (lam - own) @ log_weights)
    later = np.append(np.cumsum(counts[:0:-1])[::-1], 0.0)
    first, second = 1 + counts, prior.alpha + later
    both = psi(first + second)
    broken, left = psi(first) - both, psi(second) - both
    gaps = betaln(1, prior.alpha) - betaln(first, second) + counts * broken + later * left
    if prior.rule == VBTDP:  # the last stick takes what is left
        broken[-1], gaps[-1] = 0.0, 0.0
    return broken + np.concatenate([[0.0], np.cumsum(left)[:-1]]), float(gaps.sum())


def compute_log_joint(X: Array, posterior: Posterior, log_weights: Array) -> Array:
    """Expected log-density (N, K) of rows and components."""
    D, nu = X.shape[1], posterior.degrees
    W = np.linalg.inv(posterior.scatter)
    away = X[:, None] - posterior.mean
    distance = D / posterior.precision + nu * np.einsum(
        "nkd,kde,nke->nk", away, W, away, optimize=True
    )
    spread = _expected_log_det(posterior) - D * np.log(2 * np.pi)
    return np.asarray(log_weights + 0.5 * (spread - distance))


def compute_bound(X: Array, posterior: Posterior, prior: Prior) -> float:
    """The lower bound of the log evidence, with memberships at their optimum."""
    log_weights, divergence = compute_log_weights(posterior.counts, prior)
    joint = compute_log_joint(X, posterior, log_weights)
    return float(
        logsumexp(joint, axis=1).sum()
        - divergence
        - compute_component_divergence(posterior, prior).sum()
    )


def _expected_log_det(posterior: Posterior) -> Array:
    D = posterior.mean.shape[1]
    halves = (posterior.degrees[:, None] - np.arange(D)) / 2
    log_det = -np.linalg.slogdet(posterior.scatter)[1]
    return np.asarray(psi(halves).sum(axis=1) + D * np.log(2) + log_det)


def compute_component_divergence(posterior: Posterior, prior: Prior) -> Array:
    """Kullback-Leibler divergence (K,) of each component's law from the prior."""
    D, nu = posterior.mean.shape[1], posterior.degrees
    W = np.linalg.inv(posterior.scatter)

    def norm(scatter: Array, degrees: Array | float) -> Array:
        # multigammaln takes no arrays of degrees
        gammas = np.array([multigammaln(d / 2, D) for d in np.atleast_1d(degrees)])
        logs = np.atleast_1d(np.linalg.slogdet(scatter)[1])
        return np.asarray(np.asarray(degrees) / 2 * (logs - D * np.log(2)) - gammas)

    traces = np.einsum("de,ked->k", prior.scatter, W)
    wishart = 0.5 * (nu - prior.degrees) * _expected_log_det(posterior)
    wishart += 0.5 * nu * (traces - D)
    wishart += norm(posterior.scatter, nu) - norm(prior.scatter, prior.degrees)
    ratio = prior.precision / posterior.precision
    away = posterior.mean - prior.mean
    distance = prior.precision * nu * np.einsum("kd,kde,ke->k", away, W, away)
    return np.asarray(wishart + 0.5 * (D * (ratio - 1 - np.log(ratio)) + distance))


def climb_by_formulas(
    X: Array,
    K: int,
    prior: Prior,
    rng: np.random.Generator,
    watch: Callable[[float, int], None] = lambda bound, used: None,
) -> Ended:
    """From random memberships until a step gains less than ``TOL`` a row.

    ``watch`` is told the bound and the number of components in use after each step.
    """
    memberships = rng.random((len(X), K))
    memberships /= memberships.sum(axis=1, keepdims=True)
    posterior = update_posterior(X, memberships, prior)
    bound, steps, converged = -np.inf, 0, False
    while steps < CAP and not converged:
        log_weights, divergence = compute_log_weights(posterior.counts, prior)
        joint = compute_log_joint(X, posterior, log_weights)
        total = logsumexp(joint, axis=1)
        now = float(total.sum() - divergence - compute_component_divergence(posterior, prior).sum())
        converged = now - bound < TOL * len(X)
        bound, steps = now, steps + 1
        watch(bound, int((posterior.counts > IN_USE).sum()))
        posterior = update_posterior(X, np.exp(joint - total[:, None]), prior)
    used = np.flatnonzero(posterior.counts > IN_USE)
    left = posterior.keep(used)
    weights = np.exp(compute_log_weights(posterior.counts, prior)[0][used])
    kept = compute_bound(X, left, prior) if prior.rule == VBDMA else np.nan
    covariances = left.scatter / left.degrees[:, None, None]
    return Ended(
        len(used), bound, kept, steps, converged, weights / weights.sum(), left.mean, covariances
    )


# ------------------------------------------------ priors that follow


def update_prior(posterior: Posterior, prior: Prior) -> Prior:
    """The source's M step of the components' prior, the degrees of freedom held."""
    D, nu = posterior.mean.shape[1], posterior.degrees
    expected = nu[:, None, None] * np.linalg.inv(posterior.scatter)  # E[L], (K, D, D)
    total = expected.sum(axis=0)
    mean = np.linalg.solve(total, np.einsum("kde,ke->d", expected, posterior.mean))
    away = posterior.mean - mean
    spread = np.einsum("kd,kde,ke->", away, expected, away) / (D * len(nu))
    precision = 1 / (np.mean(1 / posterior.precision) + spread)
    scatter = len(nu) * prior.degrees * np.linalg.inv(total)
    return replace(prior, mean=mean, precision=float(precision), scatter=scatter)
