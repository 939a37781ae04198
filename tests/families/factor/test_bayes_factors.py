"""Factor components with priors: the bound against a dense one, the evidence, laws of models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp

from mixfold.families.factor import DiagonalNoise, IsotropicNoise, TiedLoadings
from mixfold.families.factor.bayes import BayesFactors
from mixfold.families.factor.posteriors import (
    entries_of,
    gains_without,
    regress,
    relevance_shape,
    to_posterior,
)
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.models.factors.factor_starts import KMeansFactorStart
from mixfold.models.mixtures.bayes_mixture import BayesMixture
from mixfold.testing import Case, laws
from mixfold.testing.tables import clustered_table

K, D, d = 3, 6, 3
NOISES = {
    "isotropic": IsotropicNoise(),
    "diagonal": DiagonalNoise(),
    "tied isotropic": IsotropicNoise(tied=True),
    "tied diagonal": DiagonalNoise(tied=True),
}
of_all_noises = pytest.mark.parametrize("noise", NOISES)


def case_of(noise: str, missing: float = 0.0, n: int = 100, **settings: Any) -> Case:
    sides = {name: settings.pop(name) for name in ("weight", "rtol") if name in settings}
    mixing = settings.pop("mixing", SymmetricDirichlet(1.0))
    X = clustered_table(n, D, 3, missing, seed=4)
    family = BayesFactors(factors=(d,), noise=NOISES[noise], has_missing=missing > 0, **settings)
    model = BayesMixture(K, family, mixing, start=KMeansFactorStart())
    case = Case(model, X, **sides)
    return replace(case, model=replace(model, prior=case.start().prior))


def gamma_kl(a: Any, b: Any, a0: Any, b0: Any) -> Any:
    """By its definition, E_q[ln q - ln p]."""
    mean_log = digamma(a) - np.log(b)
    own = a * np.log(b) - gammaln(a) + (a - 1) * mean_log - a
    return own - (a0 * np.log(b0) - gammaln(a0) + (a0 - 1) * mean_log - b0 * a / b)


def dense_bound(case: Case, params: Any) -> float:
    """The bound, term by term and row by row, with q(z, k) made by dense algebra."""
    family: Any = case.model.family
    q, prior, noise = params.components, params.prior, family.noise
    U = q.frame.enter(case.X)
    n_comp, size = q.n_components, q.n_factors
    rate = q.noise * q.shape
    E_tau, E_log = q.shape / rate, digamma(q.shape) - np.log(rate)
    doubt = np.broadcast_to(q.doubt, (n_comp, D, size + 1, size + 1))
    log_weights = case.model.mixing.expected_log_weights(params.mixing)
    total = 0.0
    for u in U:
        seen = np.flatnonzero(~np.isnan(u))
        if not seen.size:
            continue
        logs = np.empty(n_comp)
        for k in range(n_comp):
            W, m = q.loadings[k, seen], u[seen] - q.means[k, seen]
            S = doubt[k, seen]
            P = np.eye(size) + (W.T * E_tau[k, seen]) @ W + S[:, :size, :size].sum(axis=0)
            C = np.linalg.inv(P)
            z = C @ ((W.T * E_tau[k, seen]) @ m - S[:, :size, size].sum(axis=0))
            zz = C + np.outer(z, z)
            value = 0.0
            for j, s in enumerate(seen):
                squares = (m[j] - W[j] @ z) ** 2 + W[j] @ C @ W[j]
                spread = np.trace(S[j, :size, :size] @ zz) + 2 * S[j, :size, size] @ z
                value += 0.5 * (E_log[k, s] - np.log(2 * np.pi)) - np.log(q.frame.scale[s])
                value -= 0.5 * (E_tau[k, s] * squares + spread + S[j, size, size])
            value += 0.5 * (np.linalg.slogdet(C)[1] + size - np.trace(zz))  # -KL(q(z) | prior)
            logs[k] = value + log_weights[k]
        total += logsumexp(logs)
    total -= case.model.mixing.kl(params.mixing)
    a = family.relevance_shape + D / 2
    for k in range(n_comp):
        active = np.append(np.flatnonzero(q.used[k]), size)
        E_nu, b = a / q.rates[k], q.rates[k]
        E_log_nu = digamma(a) - np.log(b)
        for j in range(D):
            S = doubt[k, j][np.ix_(active, active)]
            v = np.append(q.loadings[k, j], q.means[k, j] - prior.mean[j])[active]
            kl = (E_nu[active] * (np.diag(S) + E_tau[k, j] * v**2)).sum() - E_log_nu[active].sum()
            total -= 0.5 * (kl - np.linalg.slogdet(S)[1] - len(active))
        of_nu = gamma_kl(a, b[active], family.relevance_shape, family.relevance_rate)
        total -= of_nu.sum()
    of_tau = gamma_kl(q.shape, rate, family.noise_shape, np.broadcast_to(prior.rate, rate.shape))
    return float(total - noise.drop_copies(of_tau).sum())


# ------------------------------------------------ laws


@pytest.mark.parametrize("noise", ["isotropic", "diagonal", "tied diagonal"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_laws_of_models(noise: str, missing: float) -> None:
    why = "the posterior of a mixture is not extrapolated"
    skip = dict.fromkeys(("pure functions", "coordinates round trip", "gradient"), why)
    laws.check_model(case_of(noise, missing), n_labels=K, skip=skip)


@of_all_noises
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("settings", [{}, {"expand": False, "drop": False}])
def test_the_bound_is_the_dense_one_and_never_falls(
    noise: str, missing: float, settings: Any
) -> None:
    case = case_of(noise, missing, **settings)
    params, values = case.start(), []
    for step in range(8):
        stats = case.stats(params)
        values.append(case.model.objective(params, stats))
        if step in (0, 3, 7):
            assert values[-1] == pytest.approx(dense_bound(case, params), rel=1e-9)
        # the same from the sums, with the latents of this pass
        assert case.model.free_energy(params, stats) == pytest.approx(values[-1], rel=1e-9)
        params = case.update(params, stats).params
        if settings:  # latents stay as they are, and an M step raises it at once
            assert case.model.free_energy(params, stats) >= values[-1] - 1e-9 * abs(values[-1])
    assert (np.diff(values) >= -1e-9 * np.abs(values[:-1])).all()


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_factor_goes_where_the_bound_gains_what_was_foreseen(missing: float) -> None:
    """That of the bound with this factor alone left out, and its latents at the prior."""
    case = case_of("diagonal", missing, expand=False, drop=False)
    params = case.after(3)
    stats: Any = case.stats(params)
    family: Any = case.model.family
    moments, prior, hyper = stats.components, params.prior, family._hyper
    entries = entries_of(moments.sums)
    rates, used = params.components.rates, params.components.used
    rows = regress(entries, relevance_shape(D, hyper) / rates, used, prior, family.noise, hyper)
    foreseen = gains_without(entries, moments, rows, rates, used, prior, family.noise, hyper)

    def bound(rows: Any, used: Any) -> float:
        """All that depends on loadings, means, noise and relevances, at these sums."""
        q = to_posterior(params.components.frame, rows, rates, used, params.components.age)
        return family.average(moments, family.expected_reading(q)) - family.kl(q, prior)

    whole = bound(rows, used)
    seconds = np.diagonal(moments.sums.rows.second, axis1=1, axis2=2)
    for k, f in ((0, 0), (1, 2), (2, 1)):
        fewer = used.copy()
        fewer[k, f] = False
        left = regress(
            entries, relevance_shape(D, hyper) / rates, fewer, prior, family.noise, hyper
        )
        count = moments.sums.rows.count[k]
        # of the latents of the factor: entropy given the others, and prior
        latents = 0.5 * (count - moments.log_pivots[k, f] - seconds[k, f])
        found = bound(left, fewer) - whole - latents
        assert found == pytest.approx(foreseen[k, f], rel=1e-8, abs=1e-8)


def test_turned_latents_leave_the_density_and_raise_the_bound() -> None:
    case = case_of("diagonal", drop=False, expand=False)
    params = case.after(3)
    stats: Any = case.stats(params)
    plain: Any = case.model.family
    moments, prior = stats.components, params.prior
    before = plain.update_posterior(params.components, moments, prior)
    turned = replace(plain, expand=True).update_posterior(params.components, moments, prior)
    covariances = [
        q.loadings @ np.swapaxes(q.loadings, 1, 2) / q.noise[:, :, None] for q in (before, turned)
    ]
    assert not np.allclose(covariances[0], covariances[1], rtol=1e-3)
    values = [
        case.objective(replace(params, components=q)) for q in (params.components, before, turned)
    ]
    assert values[0] < values[1] < values[2]


@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
def test_the_bound_is_below_the_evidence(noise: str) -> None:
    """Of five rows and two columns, by draws from the prior."""
    rng = np.random.default_rng(0)
    X = np.array([[0.0, 0.3], [1.0, 0.8], [-0.7, -1.0], [2.5, 2.0], [0.2, -0.4]])
    settings = {"relevance_shape": 4.0, "relevance_rate": 1.0, "noise_shape": 4.0}
    family = BayesFactors(
        factors=(1,), noise=NOISES[noise], mean=np.zeros(2), noise_variance=0.5, drop=False,
        **settings,
    )  # fmt: skip
    case = Case(BayesMixture(2, family, SymmetricDirichlet(2.0), start=KMeansFactorStart()), X)
    params = case.start()
    case = replace(case, model=replace(case.model, prior=params.prior))
    bound = case.objective(case.after(150))

    draws, columns = 400_000, 1 if noise == "isotropic" else 2
    tau = rng.gamma(4.0, 1 / (4.0 * 0.5), (draws, 2, columns)) * np.ones(2)
    nu = rng.gamma(4.0, 1.0, (draws, 2, 2))
    w, mu = rng.normal(size=(2, draws, 2, 2)) / np.sqrt(tau)
    w, mu = w / np.sqrt(nu[..., :1]), mu / np.sqrt(nu[..., 1:])
    weights = rng.dirichlet([1.0, 1.0], draws)
    det = 1 / tau.prod(axis=2) * (1 + (tau * w**2).sum(axis=2))
    log_rows = np.zeros(draws)
    for x in X:
        e = x - mu
        along = (tau * w * e).sum(axis=2)
        away = (tau * e**2).sum(axis=2) - along**2 / (1 + (tau * w**2).sum(axis=2))
        log_rows += logsumexp(
            np.log(weights) - np.log(2 * np.pi) - 0.5 * (np.log(det) + away), axis=1
        )
    evidence = logsumexp(log_rows) - np.log(draws)
    spread = np.exp(log_rows - log_rows.max())
    error = spread.std() / spread.mean() / np.sqrt(draws)
    assert error < 0.1
    assert evidence - 6 < bound <= evidence + 3 * error


def test_many_rows_have_the_evidence_of_few_with_weights() -> None:
    case = case_of("diagonal", n=60)
    twice = replace(case, X=np.repeat(case.X, 2, axis=0))
    weighted = replace(case, weight=np.full(len(case.X), 2.0))
    params = case.after(2)
    assert twice.objective(params) == pytest.approx(weighted.objective(params), rel=1e-12)


def test_a_family_with_priors_refuses_what_is_not_conjugate() -> None:
    with pytest.raises(ValueError, match="loadings of its own"):
        BayesFactors(loadings=TiedLoadings())
