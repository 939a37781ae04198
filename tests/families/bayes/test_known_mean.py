"""Gaussian components around a mean that is known: search, enumeration, quadrature and the laws."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import logsumexp

from mixfold import Mixture
from mixfold.contracts import Block
from mixfold.families.bayes.known_mean import KnownMean
from mixfold.math.frame import plain_frame
from mixfold.models.mixtures.mixture import Mixture as Model
from mixfold.testing import Case, laws

MEAN = np.array([1.0, -2.0, 0.5])


def _rows(n: int = 150, missing: float = 0.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    mix = np.array([[1.0, 0.4, 0.0], [0.0, 1.0, -0.5], [0.0, 0.0, 1.0]])
    wide = (rng.random(n) < 0.4)[:, None]
    X = MEAN + rng.standard_normal((n, 3)) @ mix * np.where(wide, [4.0, 1.0, 3.0], [1.0, 1.0, 0.3])
    X[rng.random(X.shape) < missing] = np.nan
    return X


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_laws_of_models(missing: float) -> None:
    rng = np.random.default_rng(5)
    X = _rows(120, missing)
    weight, y = rng.uniform(0.5, 2, len(X)), np.where(rng.random(len(X)) < 0.1, 1, -1)
    case = Case(Model(2, KnownMean(mean=MEAN)), X, weight, y)
    for holds in laws.MODEL_LAWS.values():
        holds(case)
    laws.labels_clamp(case, 2)


def test_the_step_is_the_maximum_of_the_likelihood() -> None:
    X = _rows(60)
    weight = np.random.default_rng(3).uniform(0.2, 2, 60)
    family, frame = KnownMean(mean=MEAN), plain_frame(3)
    first = family.from_sample(frame, X, weight[:, None])
    wanted = (weight[:, None] * (X - MEAN)).T @ (X - MEAN) / weight.sum()
    np.testing.assert_allclose(first.scatter[0], wanted, rtol=1e-9)
    np.testing.assert_allclose(first.means[0], MEAN)

    def loss(vector: np.ndarray) -> float:
        law = stats.multivariate_normal(MEAN, family.from_coordinates(first, vector).scatter[0])
        return -float(weight @ law.logpdf(X))

    best = family.coordinates(first)
    assert loss(best) <= minimize(loss, best + 0.1, method="BFGS").fun + 1e-7


def test_the_predictive_density_is_students() -> None:
    """With nu - D + 1 degrees of freedom at the mean; and of one row, by the law of evidence."""
    X, family = _rows(20), KnownMean(mean=MEAN, degrees=6.0, scatter=np.diag([2.0, 1.0, 3.0]))
    frame = plain_frame(3)
    params = family.from_sample(frame, X, np.ones((20, 1)))
    reading = family.mode(params)
    moments = family.moments(family.scores(Block(X), reading), np.ones((20, 1)), reading)
    prior = family.prior(frame, moments)
    q = family.posterior(moments, prior, frame)
    away = X - MEAN
    scatter = np.diag([2.0, 1.0, 3.0]) + away.T @ away
    law = stats.multivariate_t(MEAN, scatter / (26 - 3 + 1), df=26 - 3 + 1)
    new = _rows(7, seed=1)
    np.testing.assert_allclose(family.log_predictive(q, Block(new))[:, 0], law.logpdf(new))
    chain = 0.0
    for n, x in enumerate(X):
        seen = X[:n] - MEAN
        nu = 6 + n - 2
        at = (np.diag([2.0, 1.0, 3.0]) + seen.T @ seen) / nu
        chain += float(stats.multivariate_t(MEAN, at, df=nu).logpdf(x))
    assert family.evidence(moments, prior, frame) == pytest.approx(chain, rel=1e-10)


def test_the_bound_is_below_the_evidence_of_all_assignments() -> None:
    """And is the evidence itself for one component."""
    X = _rows(7)
    settings = {"mean": MEAN.tolist(), "degrees": 5.0, "scatter": np.eye(3) * 4}
    one = Mixture("known-mean", 1, inference="vb", prior=settings, random_state=0).fit(X)
    scatter, degrees = np.eye(3) * 4, 5.0

    def log_evidence(rows: np.ndarray) -> float:
        total = 0.0
        for n in range(len(rows)):
            seen = rows[:n] - MEAN
            nu = degrees + n - 2
            at = (scatter + seen.T @ seen) / nu
            total += float(stats.multivariate_t(MEAN, at, df=nu).logpdf(rows[n]))
        return total

    assert one.evidence_bound_ == pytest.approx(log_evidence(X), rel=1e-8)
    two = Mixture(
        "known-mean", 2, inference="vb", weights=[0.5, 0.5], prior=settings, random_state=0
    ).fit(X)
    terms = []
    for z in product([0, 1], repeat=7):
        side = np.array(z, bool)
        terms.append(log_evidence(X[side]) + log_evidence(X[~side]) - 7 * np.log(2))
    exact = logsumexp(terms)
    assert two.evidence_bound_ < exact
    assert two.evidence_bound_ > exact - 4


@pytest.mark.filterwarnings("ignore:the chains have not mixed")
@pytest.mark.parametrize("inference", ["em", "vb", "gibbs", "collapsed"])
def test_scales_that_differ_are_told_apart(inference: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2)) * np.repeat([[1.0, 1.0], [9.0, 6.0]], [250, 150], axis=0)
    options: dict[str, Any] = {"n_chains": 2, "n_draws": 60, "burn_in": 40}
    mixture = Mixture("known-mean", 2, inference=inference, random_state=0, **options)
    if inference in ("gibbs", "collapsed"):
        mixture.set_params(weights="dirichlet")
    mixture.fit(X)
    np.testing.assert_allclose(mixture.means_, 0.0, atol=1e-9)
    order = np.argsort(mixture.covariances_[:, 0, 0])
    spread = np.sqrt(mixture.covariances_[order, 0, 0])
    np.testing.assert_allclose(spread, [1.0, 9.0], rtol=0.2)
    assert np.isfinite(mixture.score(X))


def test_it_goes_through_a_file_and_conditions(tmp_path: Any) -> None:
    from mixfold import load

    X = _rows(80, 0.1)
    for settings in ({}, {"inference": "vb"}):
        mixture = Mixture(
            "known-mean", 2, family_options={"mean": MEAN.tolist()}, random_state=0, **settings
        ).fit(X)
        mixture.save(tmp_path / "m")
        again = load(tmp_path / "m")
        np.testing.assert_array_equal(again.score_samples(X), mixture.score_samples(X))
        rest = mixture.condition([0], [1.5])
        whole = _rows(5)
        whole[:, 0] = 1.5
        alone = np.full((5, 3), np.nan)
        alone[:, 0] = 1.5
        wanted = mixture.score_samples(whole) - mixture.score_samples(alone)
        np.testing.assert_allclose(rest.score_samples(whole[:, 1:]), wanted, rtol=1e-8)


def test_a_column_that_does_not_vary_has_a_spread_about_the_mean() -> None:
    X = np.column_stack([_rows(60)[:, 0], np.full(60, 3.0)])
    mixture = Mixture("known-mean", 1).fit(X)
    wanted = X.T @ X / 60
    np.testing.assert_allclose(mixture.covariances_[0], wanted, rtol=1e-6)


def test_the_prior_is_learned_around_the_known_mean() -> None:
    mixture = Mixture(
        "known-mean", 4, inference="vb", family_options={"mean": MEAN.tolist()},
        learn_prior=True, random_state=0,
    ).fit(_rows(200))  # fmt: skip
    np.testing.assert_allclose(mixture.prior_["mean"], MEAN)
    np.testing.assert_allclose(mixture.means_, np.tile(MEAN, (len(mixture.means_), 1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": [0.0, 1.0]}, "mean has 2 numbers and the data have 3 columns"),
        ({"mean": np.inf}, "one finite number"),
        ({"precision": 0.1}, "has no setting 'precision'"),
    ],
)
def test_settings_are_checked(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mixture("known-mean", 2, family_options=options).fit(_rows(20))
