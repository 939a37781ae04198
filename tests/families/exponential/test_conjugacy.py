"""What a conjugate family owes: priors, posteriors, bounds and draws, by independent means."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize

from mixfold.contracts import Block
from mixfold.families.exponential.records import LinearMoments
from mixfold.families.exponential.shares import log_norm
from mixfold.testing.laws import stored_identity
from mixfold.testing.oracles import gradient_by_differences

from .conftest import (
    CONJUGATE,
    DRAWN,
    FAMILIES,
    PAIRS,
    SHARES,
    WITH_NAN,
    D,
    K,
    Sample,
    sample_of,
    table,
)
from .examples import EXAMPLES

BETA = [name for name in DRAWN if FAMILIES[name].collapsed_law == "beta"]


@pytest.fixture(params=CONJUGATE)
def name(request: pytest.FixtureRequest) -> str:
    """Here only families that have a prior."""
    return str(request.param)


def prior_fields(prior: Any) -> list[str]:
    """What a prior says, rather than what it knows of the columns."""
    return [f.name for f in fields(prior) if f.name not in ("size", "total")]


def _prior_density(name: str, a: float, b: float) -> Any:
    """The prior of one parameter as scipy has it, in p or in the rate."""
    return stats.beta(a, b) if name in BETA else stats.gamma(a, scale=1 / b)


def _theta(name: str, value: Any) -> Any:
    return np.log(value / (1 - value)) if name in BETA else np.log(value)


def _integral(name: str, function: Any, law: Any) -> float:
    """Of a function of the parameter, where a law has its mass."""
    low, high = law.ppf(1e-12), law.ppf(1 - 1e-12)
    points = law.ppf(np.linspace(0.01, 0.99, 9))
    return float(quad(function, low, high, points=points, limit=400, epsabs=0, epsrel=1e-10)[0])


# ------------------------------------------------ defaults


def test_default_priors(name: str) -> None:
    """Ones, unless the example says otherwise."""
    given = ("a", "b", "concentration", "rate") + (
        ("shape",) if name.startswith("negative") else ()
    )
    usual = type(FAMILIES[name])()
    settings = {n: getattr(usual, n) for n in given if hasattr(usual, n)}
    sample = sample_of(name)
    sample = replace(sample, family=replace(sample.family, **settings))
    prior, weight = sample.prior, sample.resp.sum(axis=1)
    wanted = EXAMPLES[name].usual(weight @ sample.X / weight.sum())
    for part in prior_fields(prior):
        value = wanted.get(part, np.ones_like(getattr(prior, part)))
        np.testing.assert_allclose(getattr(prior, part), value, rtol=1e-12)


def test_components_without_rows_are_the_prior_exactly(sample: Sample) -> None:
    resp = sample.resp.copy()
    resp[:, 1] = 0
    q = sample.family.posterior(sample.moments(resp), sample.prior, sample.frame)
    np.testing.assert_array_equal(q.a[1], sample.prior.a)
    if hasattr(q, "b"):
        np.testing.assert_array_equal(q.b[1], sample.prior.b)
    alone = sample.family.keep_posterior(q, np.array([1]))
    assert sample.family.kl(alone, sample.prior) == pytest.approx(0, abs=1e-12)
    assert sample.family.kl(q, sample.prior) > 0


# ------------------------------------------------ B, E[omega], evidence


def test_expected_reading_is_the_gradient_of_the_normaliser(name: str, sample: Sample) -> None:
    """E[log p(x)] = log h + <T(x), dB/dchi>, with dB/dchi by differences."""
    family, q = sample.family, sample.posterior
    reading = family.expected_reading(q)
    moments = sample.moments(reading=reading)
    if name in PAIRS:
        law, k = family.law, 1
        at = np.concatenate([q.a[k], q.b[k]])
        slope = gradient_by_differences(lambda v: law.log_norm(v[:D], v[D:]).sum(), at)
        slope, offset = family.terms(slope[:D], slope[D:], q.size)
        np.testing.assert_allclose(reading.slope[k], slope, rtol=1e-7)
        np.testing.assert_allclose(reading.offset[k], offset, rtol=1e-7)
    elif name in SHARES:
        starts = family.starts(q.size)
        slope = gradient_by_differences(lambda v: float(log_norm(v, starts)), q.a[1])
        np.testing.assert_allclose(reading.slope[1], slope, rtol=1e-7)
    scores = family.scores(Block(sample.X, complete=False), reading).log_density
    assert family.average(moments, reading) == pytest.approx((scores * sample.resp).sum())


@pytest.mark.parametrize("name", DRAWN)
def test_evidence_is_the_product_of_predictives(name: str) -> None:
    family, X = FAMILIES[name], table(name, 0.1 if name in WITH_NAN else 0.0, n=12)
    sample = Sample(family, X, np.ones((12, 1)))
    prior, total = sample.prior, 0.0
    for n in range(12):
        seen = np.concatenate([np.ones((n, 1)), np.zeros((12 - n, 1))])
        q = family.posterior(sample.moments(seen), prior, sample.frame)
        total += float(family.log_predictive(q, Block(X[n : n + 1], complete=False))[0, 0])
    evidence = family.evidence(sample.moments(), prior, sample.frame)
    assert evidence == pytest.approx(total, rel=1e-10)
    # and with K = 1 the bound is exact: E[log likelihood] - KL
    q = sample.posterior
    bound = family.average(sample.moments(), family.expected_reading(q)) - family.kl(q, prior)
    assert bound == pytest.approx(evidence, rel=1e-10)


@pytest.mark.parametrize("name", PAIRS)
def test_evidence_and_posterior_by_quadrature(name: str) -> None:
    """One column at a time: the integral of likelihood times prior, and its moments."""
    sample = sample_of(name, n=6)
    sample = replace(sample, resp=np.ones((6, 1)))
    family, prior, q = sample.family, sample.prior, sample.posterior
    parts = np.zeros(D)
    for d in range(D):
        law = _prior_density(name, prior.a[d], prior.b[d])
        after = _prior_density(name, q.a[0, d], q.b[0, d])
        row = family.from_rows(sample.frame, sample.X, None, sample.resp)

        def likelihood(value: float, d: int = d, row: Any = row) -> float:
            theta = row.theta.copy()
            theta[0, d] = _theta(name, value)
            X = np.full(sample.X.shape, np.nan)
            X[:, d] = sample.X[:, d]
            moved = replace(row, theta=theta)
            block = Block(X, complete=False)
            return float(np.exp(family.log_density(block, family.mode(moved)).sum()))

        def joint(value: float, law: Any = law, like: Any = likelihood) -> float:
            return float(law.pdf(value) * like(value))

        mass = _integral(name, joint, after)
        parts[d] = np.log(mass)
        mean = _integral(name, lambda v, joint=joint: v * joint(v), after) / mass
        assert mean == pytest.approx(after.mean(), rel=1e-7)
    evidence = family.evidence(sample.moments(), prior, sample.frame)
    assert evidence == pytest.approx(parts.sum(), rel=1e-8)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_kl_by_quadrature(name: str) -> None:
    sample = sample_of(name, n=8)
    prior, q, total = sample.prior, sample.posterior, 0.0
    for k in range(K):
        for d in range(D):
            p = _prior_density(name, prior.a[d], prior.b[d])
            r = _prior_density(name, q.a[k, d], q.b[k, d])
            total += _integral(
                name, lambda v, p=p, r=r: r.pdf(v) * (r.logpdf(v) - p.logpdf(v)), r
            )  # fmt: skip
    assert sample.family.kl(q, prior) == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("name", SHARES)
def test_kl_of_shares_by_sampling(name: str) -> None:
    sample = sample_of(name, n=20)
    family, prior = sample.family, sample.prior
    q = family.keep_posterior(sample.posterior, np.zeros(4000, int))
    starts, ends = family.starts(q.size), np.append(family.starts(q.size)[1:], q.a.shape[1])
    p = np.exp(family.draw(q, np.random.default_rng(0)).theta)
    ratio = np.zeros(len(p))
    for a, b in zip(starts, ends, strict=True):
        part = (p[:, a:b] / p[:, a:b].sum(axis=1, keepdims=True)).T
        ratio += stats.dirichlet.logpdf(part, q.a[0, a:b])
        ratio -= stats.dirichlet.logpdf(part, prior.a[a:b])
    wanted = family.kl(family.keep_posterior(q, np.array([0])), prior)
    assert abs(ratio.mean() - wanted) < 6 * ratio.std() / np.sqrt(len(ratio))


# ------------------------------------------------ readings


def test_point_beats_random_parameters(sample: Sample) -> None:
    """argmax of <chi, omega>: with the prior, and from the sums alone."""
    family, prior, moments = sample.family, sample.prior, sample.moments()
    best = family.point(sample.posterior)

    def value(params: Any) -> float:
        return family.average(moments, family.mode(params)) + family.log_prior(params, prior)

    ml, _ = family.estimate(moments, best)
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(10):
            step = size * rng.standard_normal(family.coordinates(best).size)
            moved = family.from_coordinates(best, family.coordinates(best) + step)
            assert value(moved) < value(best)
            other = family.from_coordinates(ml, family.coordinates(ml) + step)
            likelihood = family.average(moments, family.mode(other))
            assert likelihood <= family.average(moments, family.mode(ml)) + 1e-9


def test_point_and_means_of_a_posterior(name: str, sample: Sample) -> None:
    q = sample.posterior
    point = sample.family.point(q)
    np.testing.assert_allclose(q.means, point.means)
    if name in PAIRS:
        mean = q.a / (q.a + q.b) if name in BETA else q.a / q.b
        np.testing.assert_allclose(_theta(name, mean), point.theta, rtol=1e-10)
    else:
        np.testing.assert_allclose(sample.family.clip_coordinates(point.theta, q.size), point.theta)
    assert set(np.shape(sample.family.keep_posterior(q, np.array([2, 0])).a)) == {2, q.a.shape[1]}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_have_the_moments_of_the_posterior(name: str) -> None:
    """E[theta-linear reading] of draws is the expected reading: slopes and offsets alike."""
    sample = sample_of(name, missing=0.1 if name in WITH_NAN else 0.0)
    family, n = sample.family, 20_000
    q = family.keep_posterior(sample.posterior, np.zeros(n, int))
    drawn = family.mode(family.draw(q, np.random.default_rng(1)))
    wanted = family.expected_reading(family.keep_posterior(q, np.array([0])))
    for got, mean in ((drawn.slope, wanted.slope), (drawn.offset, wanted.offset)):
        error = got.std(axis=0) / np.sqrt(n)
        assert (np.abs(got.mean(axis=0) - mean[0]) <= 6 * error + 1e-12).all()


@pytest.mark.parametrize("name", DRAWN)
def test_draws_of_a_tiny_prior_are_finite(name: str) -> None:
    settings = {"concentration": 1e-4} if name in SHARES else {"a": 1e-4, "b": 1e-4}
    sample = replace(sample_of(name), family=replace(FAMILIES[name], **settings))
    resp = 0 * sample.resp
    q = sample.family.posterior(sample.moments(resp), sample.prior, sample.frame)
    with np.errstate(over="ignore"):  # a mean of a gamma law whose rate is nearly zero
        params = sample.family.draw(q, np.random.default_rng(0))
    assert np.isfinite(params.theta).all()


def test_predictive_draws_against_the_predictive_density(name: str, sample: Sample) -> None:
    """Ratios of another density to the predictive one average to one over its own draws."""
    family, q = sample.family, sample.posterior
    labels = np.full(20_000, 1)
    X = family.sample_predictive(q, labels, np.random.default_rng(0))
    family.check(Block(X), None)
    point = family.point(q)
    noise = 0.3 * np.random.default_rng(1).standard_normal(family.coordinates(point).size)
    other = family.from_coordinates(point, family.coordinates(point) + noise)
    log_other = family.log_density(Block(X), family.mode(other))[:, 1]
    weight = np.exp(log_other - family.log_predictive(q, Block(X))[:, 1])
    assert weight.std() > 0.05
    assert abs(weight.mean() - 1) < 6 * weight.std() / np.sqrt(len(weight))


# ------------------------------------------------ ML-II


def test_empirical_prior_against_an_optimiser(sample: Sample) -> None:
    family, prior = sample.family, sample.prior
    resp = np.eye(K)[np.random.default_rng(3).integers(0, K, len(sample.X))] * 0.2
    q = family.posterior(sample.moments(resp), prior, sample.frame)
    found = family.empirical(q, prior)
    names = prior_fields(found) if "draw" not in family.readings else ["a", "b"]
    names = [name for name in names if hasattr(prior, name)]
    sizes = np.cumsum([getattr(prior, name).size for name in names])[:-1]

    def bound(vector: np.ndarray) -> float:
        """-KL of all components, as a function of the log of the prior."""
        parts = np.split(np.exp(vector), sizes)
        return family.kl(q, replace(prior, **dict(zip(names, parts, strict=True))))

    start, got = (
        np.log(np.concatenate([getattr(p, name) for name in names])) for p in (prior, found)
    )
    best = minimize(bound, start, method="BFGS", options={"gtol": 1e-8})
    assert bound(got) <= best.fun + 1e-9
    np.testing.assert_allclose(got, best.x, atol=2e-4)
    assert family.kl(q, found) < family.kl(q, prior)


def test_empirical_prior_needs_two_components(sample: Sample) -> None:
    q = sample.family.keep_posterior(sample.posterior, np.array([0]))
    with pytest.raises(ValueError, match="at least two components"):
        sample.family.empirical(q, sample.prior)


def test_records_are_stored(sample: Sample) -> None:
    for value in (sample.prior, sample.posterior, sample.moments()):
        stored_identity(value)
    assert isinstance(sample.moments(), LinearMoments)
