"""Intervals of weights: against brute force, and by how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from mixfold import (
    BayesianGaussianMixture,
    CategoricalMixture,
    GaussianMixture,
    MixtureOfPPCA,
    PoissonMixture,
)
from mixfold.contracts import Block
from mixfold.engine.random import RowKeys
from mixfold.estimators.mixtures.weight_intervals import weight_intervals
from mixfold.models.mixtures.standard_errors import (
    Likelihood,
    logit_errors,
    observed_information,
    profile_intervals,
)


def two_groups(apart: float, weight: float, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=n) + apart * (rng.random(n) < weight))[:, None]


def likelihood_of(mixture, X) -> Likelihood:
    model, params = mixture._model(X.shape[1]).plug_in(mixture._params)
    return Likelihood(model, params, Block(X, complete=not np.isnan(X).any()), RowKeys(0))


def log_likelihood(theta: np.ndarray, x: np.ndarray) -> float:
    """Of two Gaussians: logit of the weight, means, logarithms of deviations."""
    w = 1 / (1 + np.exp(-theta[0]))
    logs = norm.logpdf(x[:, None], theta[1:3], np.exp(theta[3:5])) + np.log([w, 1 - w])
    return float(np.logaddexp(logs[:, 0], logs[:, 1]).sum())


def brute_start(mixture) -> np.ndarray:
    w = mixture.weights_[0]
    deviations = np.sqrt(mixture.covariances_.ravel())
    return np.concatenate([[np.log(w / (1 - w))], mixture.means_.ravel(), np.log(deviations)])


def test_information_is_the_curvature_of_the_likelihood() -> None:
    X = two_groups(3.0, 0.4, 400, 0)
    mixture = GaussianMixture(2, random_state=0, tol=1e-9).fit(X)
    theta, h = brute_start(mixture), 1e-3
    curvature = np.empty((5, 5))
    for i in range(5):
        for j in range(5):
            a, b = h * np.eye(5)[i], h * np.eye(5)[j]
            signs = ((1, a + b), (-1, a - b), (-1, b - a), (1, -a - b))
            found = sum(s * log_likelihood(theta + move, X[:, 0]) for s, move in signs)
            curvature[i, j] = -found / (4 * h * h)
    expected = np.sqrt(np.linalg.inv(curvature)[0, 0])
    errors = logit_errors(observed_information(likelihood_of(mixture, X)), mixture.weights_)
    np.testing.assert_allclose(errors, expected, rtol=1e-3)


def test_limits_are_where_the_best_likelihood_has_fallen() -> None:
    X = two_groups(2.6, 0.4, 800, 3)
    mixture = GaussianMixture(2, random_state=0, tol=1e-9).fit(X)
    found = profile_intervals(likelihood_of(mixture, X))
    assert found.identified.all()
    start = brute_start(mixture)
    top = log_likelihood(start, X[:, 0])
    for limit in (found.low[0], found.high[0]):
        fixed = np.log([limit / (1 - limit)])

        def worse(free: np.ndarray, fixed: np.ndarray = fixed) -> float:
            return -log_likelihood(np.concatenate([fixed, free]), X[:, 0])

        best = minimize(worse, start[1:])
        # these groups overlap, so that the chance of error is halved
        assert 2 * (top + best.fun) == pytest.approx(norm.ppf(1 - 0.025 / 2) ** 2, abs=0.2)
    np.testing.assert_allclose(found.low + found.high[::-1], 1.0, atol=0.01)


def test_a_component_is_judged_by_the_mixture_without_it() -> None:
    """One of next to no weight would still gain what a row far out gives it."""
    rng = np.random.default_rng(2)
    X = np.repeat([0.0, 4.0, 8.0], [40, 40, 40])[:, None] + rng.normal(size=(120, 1))
    X = np.vstack([X, [[25.0]]])
    mixture = GaussianMixture(3, covariance_type="tied", random_state=0, n_init=5).fit(X)
    found = profile_intervals(likelihood_of(mixture, X))
    for k, identified in enumerate(found.identified):
        others = np.delete(np.arange(3), k)
        fewer = GaussianMixture(
            2, covariance_type="tied", means_init=mixture.means_[others], tol=1e-9
        ).fit(X)
        gain = 2 * (mixture.score(X) - fewer.score(X)) * len(X)
        assert identified == (gain > 2 * np.log(len(X))), k
    assert found.identified.any()


@pytest.mark.parametrize("settings", [{"n_factors": [1, 2, 1]}, {"inference": "vb"}])
def test_components_of_unequal_factors_are_judged(rng, settings) -> None:
    X = rng.normal(size=(300, 5))
    X[:150] += 4
    X[150:, 0] *= 3
    X[200:, 1] -= 7
    mixture = MixtureOfPPCA(3, random_state=0, **{"n_factors": 2, **settings}).fit(X)
    found = weight_intervals(mixture, Block(X, complete=True))
    order = np.argsort(-mixture.weights_)
    known = np.array([1 / 2, 1 / 3, 1 / 6])
    assert (found.low[order] < known).all() and (known < found.high[order]).all()


def test_a_local_maximum_is_said_to_be_one() -> None:
    """Another start of the same mixture fits better, and a profile climbs to it."""
    columns = [
        [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.1, 0.3, 0.6]],
        [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]],
        [[0.6, 0.4], [0.6, 0.4], [0.6, 0.4]],
        [[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]],
    ]
    rng = np.random.default_rng(0)
    group = rng.choice(3, 600, p=[0.4, 0.35, 0.25])
    X = np.array([[rng.choice(len(p[g]), p=p[g]) for p in columns] for g in group], float)
    local = CategoricalMixture(3, init_params="k-means++", random_state=2).fit(X)
    best = CategoricalMixture(3, random_state=0, n_init=10).fit(X)
    assert 600 * (best.lower_bound_ - local.lower_bound_) > 1
    found = weight_intervals(local, Block(X, complete=True))
    assert found.local and np.isnan(found.low).all() and "higher likelihood" in found.reason
    assert not weight_intervals(best, Block(X, complete=True)).local


def test_groups_that_are_apart_have_the_errors_of_known_groups() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat([0.0, 50.0], [300, 100])[:, None] + rng.normal(size=(400, 1))
    mixture = GaussianMixture(2, random_state=0).fit(X)
    errors = logit_errors(observed_information(likelihood_of(mixture, X)), mixture.weights_)
    np.testing.assert_allclose(errors, 1 / np.sqrt(0.75 * 0.25 * 400), rtol=1e-3)


def test_loadings_that_can_be_rotated_and_counts(rng) -> None:
    group = rng.random(500) < 0.3
    X = rng.normal(size=(500, 1)) @ rng.normal(size=(1, 4)) + 0.3 * rng.normal(size=(500, 4))
    X[group] += 4
    for mixture, rows in (
        (MixtureOfPPCA(2, 2, random_state=0), X),
        (PoissonMixture(2, random_state=0), rng.poisson(np.where(group, 3.0, 15.0)[:, None])),
    ):
        mixture.fit(rows)
        found = weight_intervals(mixture, Block(np.asarray(rows, float), complete=True))
        share, k = group.mean(), int(np.argmin(np.abs(mixture.weights_ - group.mean())))
        assert found.low[k] < share < found.high[k]
        assert found.high[k] - found.low[k] == pytest.approx(
            2 * 1.96 * np.sqrt(share * (1 - share) / 500), rel=0.15
        )


def shown_and_covered(estimator, apart: float, weight: float, n: int, runs: int) -> tuple[int, int]:
    """Of so many simulations: intervals that are given, and those that hold the truth."""
    shown = covered = 0
    for seed in range(runs):
        X = two_groups(apart, weight, n, seed)
        mixture = estimator(seed).fit(X)
        k = int(np.argmax(mixture.means_[:, 0]))
        found = weight_intervals(mixture, Block(X, complete=True))
        if found is not None and np.isfinite(found.low[k]):
            shown += 1
            covered += bool(found.low[k] <= weight <= found.high[k])
    return shown, covered


def free(seed: int) -> GaussianMixture:
    return GaussianMixture(2, random_state=seed, n_jobs=1)


def tied(seed: int) -> GaussianMixture:
    return GaussianMixture(2, covariance_type="tied", random_state=seed, n_jobs=1)


def variational(seed: int) -> BayesianGaussianMixture:
    return BayesianGaussianMixture(2, random_state=seed, n_jobs=1, max_iter=2000)


def test_intervals_hold_the_truth_or_are_not_given() -> None:
    shown, covered = shown_and_covered(tied, 2.0, 0.3, 1000, 20)
    assert shown >= 15 and covered >= shown - 2
    shown, covered = shown_and_covered(free, 1.5, 0.5, 500, 8)
    assert shown <= 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "apart", "weight", "n", "most_hidden"),
    [
        (free, 1.5, 0.5, 1000, 1.0),
        (free, 2.0, 0.5, 1000, 0.6),
        (free, 2.0, 0.3, 500, 0.8),
        (free, 2.5, 0.3, 500, 0.3),
        (tied, 1.5, 0.3, 1000, 0.9),
        (tied, 2.0, 0.3, 1000, 0.1),
        (variational, 2.0, 0.3, 1000, 0.6),
        (variational, 1.5, 0.5, 1000, 1.0),
    ],
)
def test_coverage(estimator, apart, weight, n, most_hidden) -> None:
    runs = 120
    shown, covered = shown_and_covered(estimator, apart, weight, n, runs)
    assert shown >= (1 - most_hidden) * runs
    # near 95 %: within three standard errors of 93 %, and none if hardly any can be given
    assert shown <= 0.05 * runs or covered / shown > 0.93 - 3 * np.sqrt(0.93 * 0.07 / shown)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_matrices_of_thousands_of_parameters_are_not_made(rng) -> None:
    """A report is not held up for minutes by 33 rows of 70 columns."""
    X = rng.normal(size=(33, 70))
    model = GaussianMixture(2, covariance_type="tied", random_state=0).fit(X)
    found = weight_intervals(model, Block(X, 0))
    assert np.isnan(found.low).all()
    assert found.reason == "of 2,627 parameters they would take too long"
