"""Laws whose conjugate prior has no closed normaliser: steps by search, priors by their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import gammaln, psi

from mixfold import Mixture
from mixfold.contracts import Block
from mixfold.families.exponential import Beta, Dirichlet, GammaShape
from mixfold.families.exponential.beta import SharesMetric
from mixfold.math.dirichlet import expected_log
from mixfold.math.roots import decreasing_root
from mixfold.math.share_fits import best_concentration, inverse_psi

from .conftest import FAMILIES, MODE_ONLY, WITH_NAN, K, sample_of
from .examples import EXAMPLES


def test_the_inverse_of_psi() -> None:
    x = np.geomspace(1e-6, 1e9, 60)
    np.testing.assert_allclose(inverse_psi(psi(x)), x, rtol=1e-11)


def test_roots_of_decreasing_functions_and_ends() -> None:
    wanted = np.array([0.3, 2.5, 7.9])
    found = decreasing_root(lambda t: (wanted**3 - t**3, -3 * t**2), np.full(3, 9.0), 0.0, 10.0)
    np.testing.assert_allclose(found, wanted, atol=2e-12)
    assert decreasing_root(lambda t: (-1 - t, -np.ones(1)), np.ones(1), 0.0, 10.0)[0] < 1e-9


@pytest.mark.parametrize("size", [2, 3, 40])
def test_concentrations_come_back_from_their_logarithms(size: int) -> None:
    rng = np.random.default_rng(size)
    a = rng.gamma(0.7, 1.0, (200, size)) * np.geomspace(1e-2, 1e3, 200)[:, None] + 1e-6
    found, bounded = best_concentration(expected_log(a), 1e6)
    np.testing.assert_allclose(found, a, rtol=1e-7)
    assert not bounded.any()


def test_the_best_concentration_under_a_bound() -> None:
    """Against a search along the bound; shares that do not vary have no other law."""
    t = np.log([[0.2, 0.3, 0.5], [0.01, 0.19, 0.8]])
    a, bounded = best_concentration(t, 50.0)
    assert bounded.all()
    np.testing.assert_allclose(a.sum(axis=1), 50.0, rtol=1e-12)

    for row, at in zip(t, a, strict=True):

        def value(free: np.ndarray, row: np.ndarray = row) -> float:
            p = np.exp(np.append(free, 0.0))
            law = 50 * p / p.sum()
            return -float(law @ row - _log_beta(law))

        free = minimize(value, np.log(at[:2] / at[2]) + 0.3, method="BFGS", options={"gtol": 1e-9})
        np.testing.assert_allclose(np.log(at[:2] / at[2]), free.x, atol=1e-5)


def _log_beta(a: np.ndarray) -> float:
    return float(gammaln(a).sum() - gammaln(a.sum()))


@pytest.mark.parametrize("name", MODE_ONLY)
def test_the_step_is_the_maximum_of_the_likelihood(name: str) -> None:
    """Against a search over all coordinates of scipy's density, entries missing."""
    family, law = FAMILIES[name], EXAMPLES[name].log_density
    sample = sample_of(name, missing=0.15 if name in WITH_NAN else 0.0, n=50, n_components=1)
    X, weight = sample.X, sample.resp[:, 0]
    moments = sample.moments()
    first = family.from_rows(sample.frame, X, None, sample.resp)
    best, touched = family.estimate(moments, first)
    seen = ~np.isnan(X)

    def loss(theta: np.ndarray) -> float:
        logs = law(np.where(seen, X, 0.5), theta)
        if logs.ndim == 2:
            logs = np.where(seen, logs, 0.0).sum(axis=1)
        return -float(weight @ logs)

    found = minimize(loss, best.theta[0] + 0.2, method="BFGS", options={"gtol": 1e-7})
    assert loss(best.theta[0]) <= found.fun + 1e-8 * abs(found.fun)
    np.testing.assert_allclose(best.theta[0], found.x, atol=1e-4)
    assert not touched.any()


@pytest.mark.parametrize("name", MODE_ONLY)
def test_the_prior_counts_like_rows(name: str) -> None:
    """Its slope is that of so many rows with the statistics that its centre expects."""
    family = FAMILIES[name]
    sample = sample_of(name)
    prior = sample.prior
    told = family.describe_prior(prior, sample.frame)
    assert told.pop("rows") == family.rows
    for setting, value in told.items():
        np.testing.assert_allclose(
            value, np.broadcast_to(getattr(family, setting), np.shape(value))
        )
    params = family.from_rows(sample.frame, sample.X, None, sample.resp)
    # many rows drawn from the centre have these statistics: Monte Carlo, of differences
    centre = family.with_theta(family.select(params, np.zeros(1, int)), family.centre(4)[None])
    rows = family.draw_rows(centre, np.zeros(200_000, int), np.random.default_rng(0))
    other = family.select(params, np.array([1]))
    at = [family.log_density(Block(rows), family.mode(p))[:, 0] for p in (centre, other)]
    gap = at[0] - at[1]
    wanted = family.log_prior(centre, prior) - family.log_prior(other, prior)
    error = 6 * gap.std() / np.sqrt(len(gap))
    assert abs(family.rows * gap.mean() - wanted) < family.rows * error
    # and it is the mode of itself
    np.testing.assert_allclose(
        family.posterior(sample.moments(0 * sample.resp), prior, sample.frame).theta,
        np.repeat(family.centre(4)[None], K, axis=0),
        rtol=1e-6, atol=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("name", MODE_ONLY)
def test_the_posterior_mode_is_the_highest_point(name: str) -> None:
    """Of likelihood and prior together: no step of its coordinates goes up."""
    family = FAMILIES[name]
    sample = sample_of(name, missing=0.1 if name in WITH_NAN else 0.0)
    prior, moments = sample.prior, sample.moments()
    best = family.posterior(moments, prior, sample.frame)

    def height(theta: np.ndarray) -> float:
        params = family.with_theta(best, theta)
        return family.average(moments, family.mode(params)) + family.log_prior(params, prior)

    top, rng = height(best.theta), np.random.default_rng(0)
    for _ in range(40):
        step = 1e-3 * rng.standard_normal(best.theta.shape)
        assert height(best.theta + step) < top + 1e-9 * abs(top)


def test_the_metric_is_the_information() -> None:
    """Its solve undoes the second differences of ln B in ln a, gradient terms left out."""
    rng = np.random.default_rng(0)
    a, count = rng.gamma(2.0, 1.0, (3, 4)) + 0.05, np.array([3.0, 1.5, 0.0])
    g = rng.standard_normal((3, 4))
    step = SharesMetric(a, count).solve(g.ravel()).reshape(3, 4)
    h = 1e-6
    for k in range(2):
        slope = np.stack(
            [(expected_log(a[k] + h * e) - expected_log(a[k] - h * e)) / (2 * h) for e in np.eye(4)]
        )
        information = count[k] * a[k][:, None] * slope * a[k]
        np.testing.assert_allclose(information @ step[k], g[k], rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(step[2], 0.0)
    # pairs of columns: first all a, then all b
    pairs, weight = a.reshape(6, 2), np.arange(1.0, 7)
    split = np.concatenate([g.reshape(2, 3, 2)[..., 0], g.reshape(2, 3, 2)[..., 1]], axis=1)
    found = SharesMetric(pairs, weight, 3).solve(split.ravel()).reshape(2, 6)
    wanted = SharesMetric(pairs, weight).solve(g.ravel()).reshape(2, 3, 2)
    np.testing.assert_allclose(found[:, :3], wanted[..., 0])
    np.testing.assert_allclose(found[:, 3:], wanted[..., 1])


@pytest.mark.parametrize("name", ["beta", "dirichlet", "gamma-shape"])
def test_equal_rows_end_at_the_floor(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.dirichlet([2.0, 3.0, 4.0], 90)
    X[:30] = [0.01, 0.02, 0.97]
    with pytest.warns(UserWarning, match="reached the floor of 1e-06"):
        mixture = Mixture(name, 2, random_state=0).fit(X)
    assert np.isfinite(mixture.score(X))
    assert mixture.weights_.min() == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("name", ["beta", "dirichlet", "gamma-shape", "wishart"])
@pytest.mark.parametrize("inference", ["vb", "gibbs", "collapsed"])
def test_what_has_no_normaliser_is_refused(name: str, inference: str) -> None:
    X = np.random.default_rng(0).dirichlet([2.0, 3.0, 4.0], 20)
    with pytest.raises(ValueError, match="the normaliser of its prior has no closed form"):
        Mixture(name, 2, inference=inference).fit(X)


@pytest.mark.parametrize("name", ["beta", "dirichlet", "gamma-shape"])
def test_maximum_a_posteriori_goes_through_a_file(name: str, tmp_path: Any) -> None:
    """Also one component, a score of new rows, samples and a second fit from the first."""
    from mixfold import load

    X = np.random.default_rng(0).dirichlet([2.0, 3.0, 4.0], 60)
    for n_components, settings in ((1, None), (2, "default"), (2, {"rows": 3.0})):
        mixture = Mixture(name, n_components, prior=settings, random_state=0).fit(X)
        mixture.save(tmp_path / "mixture")
        again = load(tmp_path / "mixture")
        np.testing.assert_array_equal(again.score_samples(X), mixture.score_samples(X))
        drawn, _ = mixture.sample(50)
        assert np.isfinite(mixture.score_samples(drawn)).all()
        lower = mixture.lower_bound_
        assert mixture.set_params(warm_start=True).fit(X).lower_bound_ >= lower - 1e-9


def test_conditionals_of_shares() -> None:
    X = np.random.default_rng(0).dirichlet([2.0, 3.0, 4.0], 60)
    for settings in (None, "default"):
        mixture = Mixture("beta", 2, prior=settings, random_state=0).fit(X)
        rest = mixture.condition([0], [0.2])
        whole = np.column_stack([np.full(5, 0.2), X[:5, 1:]])
        alone = np.full((5, 3), np.nan)
        alone[:, 0] = 0.2
        wanted = mixture.score_samples(whole) - mixture.score_samples(alone)
        np.testing.assert_allclose(rest.score_samples(X[:5, 1:]), wanted, rtol=1e-9)
        with pytest.raises(ValueError, match="is shared by the others"):
            Mixture("dirichlet", 2, prior=settings, random_state=0).fit(X).condition([0], [0.2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Beta(a=1.0), "a and b say one beta law"),
        (lambda: Beta(a=-1.0, b=1.0), "a must be positive"),
        (lambda: Beta(rows=0), "rows must be positive"),
        (lambda: Beta(rows=[1.0, 2.0]), "rows, the weight of the prior, must be one number"),
        (lambda: Dirichlet(concentration=0.0), "concentration must be positive"),
        (lambda: GammaShape(shape=2.0), "shape and rate say one gamma law"),
        (lambda: GammaShape(floor=0.0), "floor must be positive"),
        (lambda: Dirichlet().column_constants(1), "rows of two shares or more"),
    ],
)
def test_settings_are_checked(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_rows_that_are_no_whole_are_refused() -> None:
    X = np.random.default_rng(0).dirichlet([2.0, 3.0, 4.0], 20)
    X[7] *= 1.2
    with pytest.raises(ValueError, match=r"row 7 adds to 1\.2\. Divide each row by its sum"):
        Mixture("dirichlet", 2).fit(X)
    X[7] = np.nan, 0.5, 0.5
    with pytest.raises(ValueError, match="a row that lacks a share has no total"):
        Mixture("dirichlet", 2).fit(X)


def test_the_mean_is_the_mean_of_a_column() -> None:
    """Of gamma laws, whose sums have it: the other two know sums of logarithms alone."""
    X = np.random.default_rng(0).gamma(3.0, 2.0, (50, 2))
    mixture = Mixture("gamma-shape", 1).fit(X)
    np.testing.assert_allclose(mixture.means_[0], X.mean(axis=0), rtol=1e-9)
    shape, _, scale = stats.gamma.fit(X[:, 0], floc=0)
    assert mixture.shapes_[0, 0] == pytest.approx(shape, rel=1e-6)
    assert mixture.rates_[0, 0] == pytest.approx(1 / scale, rel=1e-6)
    a, b, _, _ = stats.beta.fit(X[:, 0] / 50, floc=0, fscale=1)
    found = Mixture("beta", 1).fit(X / 50)
    assert found.a_[0, 0] == pytest.approx(a, rel=1e-5)
    assert found.b_[0, 0] == pytest.approx(b, rel=1e-5)
