"""Known covariance: everything against scipy's dense Gaussians, joint over rows and means."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import integrate, sparse
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import mixfold
from mixfold.contracts import Block
from mixfold.families.bayes.known_covariance import KnownCovariance
from mixfold.families.bayes.known_records import KnownMoments, KnownPosterior, KnownPrior
from mixfold.families.gaussian import GaussianParams
from mixfold.math.frame import Frame
from mixfold.models.mixtures.bayes_mixture import BayesMixture
from mixfold.models.mixtures.inference import INFERENCES
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing import Case, laws
from mixfold.testing.compare import require_same
from mixfold.testing.oracles import (
    conditional_moments,
    gaussian_log_density,
    in_data_coordinates,
    over_assignments,
)
from mixfold.testing.storage import stored_identity
from mixfold.testing.tables import clustered_table

K, D, N = 3, 3, 140
SIGMA = np.array([[2.0, 0.7, -0.4], [0.7, 1.5, 0.3], [-0.4, 0.3, 3.0]])
SPREAD = np.array([[9.0, -2.0, 1.0], [-2.0, 6.0, 0.5], [1.0, 0.5, 12.0]])
CENTRE = np.array([1.0, -2.0, 30.0])
FRAME = Frame(np.array([0.5, -1.0, 28.0]), np.array([2.0, 0.7, 5.0]))
FAMILY = KnownCovariance(covariance=SIGMA, mean=CENTRE, mean_covariance=SPREAD)


def _rows(n: int, missing: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(CENTRE, SIGMA + SPREAD, n)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def _block(X: np.ndarray) -> Block:
    return Block(X, complete=not np.isnan(X).any())


def _moments(family: KnownCovariance, X: np.ndarray, resp: np.ndarray) -> KnownMoments:
    params = family.from_sample(FRAME, np.zeros((len(X), X.shape[1])), resp)
    reading = family.mode(params)
    return family.moments(family.scores(_block(X), reading), resp, reading)


def _prior() -> KnownPrior:
    return FAMILY.prior(FRAME, _moments(FAMILY, _rows(5, 0.0), np.ones((5, 1))))


def _posterior(missing: float = 0.3, n: int = 12) -> tuple[KnownPosterior, np.ndarray, np.ndarray]:
    X = _rows(n, missing)
    resp = np.random.default_rng(3).dirichlet(np.ones(K), n)
    return FAMILY.posterior(_moments(FAMILY, X, resp), _prior(), FRAME), X, resp


def _in_data(q: KnownPosterior) -> tuple[np.ndarray, np.ndarray]:
    unit = np.multiply.outer(FRAME.scale, FRAME.scale)
    return FRAME.leave(q.means), np.linalg.inv(q.precisions) * unit


def _posterior_of_one(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """N(m, C) times prod_n N(x_o; mu_o, Sigma_oo)^w_n, in data coordinates, one row at a time."""
    precision = np.linalg.inv(SPREAD)
    pull = precision @ CENTRE
    for x, w in zip(X, weight, strict=True):
        seen = np.flatnonzero(~np.isnan(x))
        inverse = np.linalg.inv(SIGMA[np.ix_(seen, seen)])
        precision[np.ix_(seen, seen)] += w * inverse
        pull[seen] += w * inverse @ x[seen]
    return np.linalg.solve(precision, pull), np.linalg.inv(precision)


def _joint_evidence(X: np.ndarray) -> float:
    """All entries of rows that share one mean are jointly Gaussian."""
    n = len(X)
    covariance = np.kron(np.eye(n), SIGMA) + np.kron(np.ones((n, n)), SPREAD)
    mean, seen = np.tile(CENTRE, n), ~np.isnan(X.ravel())
    part = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)])
    return float(part.logpdf(X.ravel()[seen]))


def _sigma_points(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Points whose average is exact for quadratic functions."""
    root = np.sqrt(len(mean)) * np.linalg.cholesky(covariance).T
    return np.concatenate([mean + root, mean - root])


# ------------------------------------------------ posterior and prediction


@pytest.mark.parametrize("missing", [0.0, 0.4], ids=["complete", "with NaN"])
def test_posterior_is_bayes_rule_row_by_row(missing: float) -> None:
    q, X, resp = _posterior(missing)
    means, covariances = _in_data(q)
    for k in range(K):
        mean, covariance = _posterior_of_one(X, resp[:, k])
        np.testing.assert_allclose(means[k], mean, rtol=1e-10)
        np.testing.assert_allclose(covariances[k], covariance, rtol=1e-9, atol=1e-12)


def test_a_component_without_rows_has_the_prior_exactly() -> None:
    prior = _prior()
    q = FAMILY.posterior(_moments(FAMILY, _rows(6, 0.3), np.zeros((6, 2))), prior, FRAME)
    assert (q.means == prior.mean).all() and (q.precisions == prior.precision).all()
    assert FAMILY.kl(q, prior) == pytest.approx(0.0, abs=1e-12)


def test_prior_of_one_column_by_quadrature() -> None:
    family = KnownCovariance(covariance=0.5, mean=1.0, mean_covariance=4.0)
    frame = Frame(np.array([2.0]), np.array([3.0]))
    X, w = np.array([[0.3], [2.5], [1.7]]), np.array([[1.0], [0.4], [2.0]])
    params = family.from_sample(frame, np.zeros((3, 1)), w)
    reading = family.mode(params)
    moments = family.moments(family.scores(Block(X), reading), w, reading)
    prior = family.prior(frame, moments)
    q = family.posterior(moments, prior, frame)

    def joint(mu: float) -> float:
        rows = float(w[:, 0] @ norm(mu, np.sqrt(0.5)).logpdf(X[:, 0]))
        return float(np.exp(rows + norm(1.0, 2.0).logpdf(mu)))

    total = integrate.quad(joint, -20, 20, points=[1.5], epsabs=1e-13)[0]
    first = integrate.quad(lambda mu: mu * joint(mu), -20, 20, points=[1.5], epsabs=1e-13)[0]
    assert family.evidence(moments, prior, frame) == pytest.approx(np.log(total), rel=1e-9)
    assert frame.leave(q.means)[0, 0] == pytest.approx(first / total, rel=1e-9)
    mean, deviation = frame.leave(q.means)[0, 0], 3 * q.precisions[0, 0, 0] ** -0.5
    own = norm(mean, deviation)
    gap = integrate.quad(
        lambda mu: own.pdf(mu) * (own.logpdf(mu) - norm(1.0, 2.0).logpdf(mu)), mean - 8, mean + 8
    )[0]
    assert family.kl(q, prior) == pytest.approx(gap, rel=1e-8)


@pytest.mark.parametrize("missing", [0.0, 0.4], ids=["complete", "with NaN"])
def test_evidence_is_the_joint_density_of_the_rows(missing: float) -> None:
    X = _rows(7, missing, seed=1)
    labels = np.array([0, 1, 0, 0, 1, 1, 0])
    moments = _moments(FAMILY, X, np.eye(2)[labels])
    wanted = _joint_evidence(X[labels == 0]) + _joint_evidence(X[labels == 1])
    assert FAMILY.evidence(moments, _prior(), FRAME) == pytest.approx(wanted, rel=1e-11)


def test_sequential_predictives_multiply_to_the_evidence() -> None:
    X, prior = _rows(6, 0.3, seed=2), _prior()
    total = 0.0
    for n in range(len(X)):
        q = FAMILY.posterior(_moments(FAMILY, X[:n], np.ones((n, 1))), prior, FRAME)
        total += float(FAMILY.log_predictive(q, _block(X[n : n + 1]))[0, 0])
    whole = FAMILY.evidence(_moments(FAMILY, X, np.ones((6, 1))), prior, FRAME)
    assert total == pytest.approx(whole, rel=1e-11)


@pytest.mark.parametrize("missing", [0.0, 0.4], ids=["complete", "with NaN"])
def test_predictive_against_scipy(missing: float) -> None:
    q, _, _ = _posterior()
    X = _rows(20, missing, seed=5)
    means, covariances = _in_data(q)
    wanted = gaussian_log_density(X, means, covariances + SIGMA)
    np.testing.assert_allclose(FAMILY.log_predictive(q, _block(X)), wanted, rtol=1e-10, atol=1e-12)


def test_samplers() -> None:
    q, _, _ = _posterior()
    means, covariances = _in_data(q)

    def predicted(n: int, rng: np.random.Generator) -> np.ndarray:
        return FAMILY.sample_predictive(q, np.full(n, 1), rng)

    laws.sampler_moments(predicted, means[1], covariances[1] + SIGMA)

    def drawn(n: int, rng: np.random.Generator) -> np.ndarray:
        many = FAMILY.keep_posterior(q, np.full(n, 2))
        return FRAME.leave(FAMILY.draw(many, rng).means)

    laws.sampler_moments(drawn, means[2], covariances[2])


# ------------------------------------------------ readings and objectives


@pytest.mark.parametrize("missing", [0.0, 0.4], ids=["complete", "with NaN"])
@pytest.mark.parametrize("sparse_rows", [False, True], ids=["dense", "CSR"])
def test_expected_log_density_is_the_average_over_means(missing: float, sparse_rows: bool) -> None:
    q, _, _ = _posterior()
    X = _rows(15, missing, seed=6)
    wanted = np.empty((15, K))
    for k, (mean, covariance) in enumerate(zip(*_in_data(q), strict=True)):
        points = _sigma_points(mean, covariance)
        each = gaussian_log_density(X, points, np.tile(SIGMA, (len(points), 1, 1)))
        wanted[:, k] = each.mean(axis=1)
    reading = FAMILY.expected_reading(q)
    block = Block(sparse.csr_array(X) if sparse_rows else X, complete=not missing)
    np.testing.assert_allclose(FAMILY.log_density(block, reading), wanted, rtol=1e-10, atol=1e-12)
    scores = FAMILY.scores(block, reading)
    np.testing.assert_allclose(scores.log_density, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.4], ids=["complete", "with NaN"])
def test_average_is_the_sum_over_rows(missing: float) -> None:
    q, X, resp = _posterior(missing)
    moments = _moments(FAMILY, X, resp)
    for reading in (FAMILY.expected_reading(q), FAMILY.mode(FAMILY.point(q))):
        wanted = float(np.sum(resp * FAMILY.log_density(_block(X), reading)))
        assert FAMILY.average(moments, reading) == pytest.approx(wanted, rel=1e-11)


def test_the_bound_of_one_component_is_the_evidence() -> None:
    X, prior = _rows(9, 0.3), _prior()
    moments = _moments(FAMILY, X, np.ones((9, 1)))
    q = FAMILY.posterior(moments, prior, FRAME)
    bound = FAMILY.average(moments, FAMILY.expected_reading(q)) - FAMILY.kl(q, prior)
    assert bound == pytest.approx(FAMILY.evidence(moments, prior, FRAME), rel=1e-11)


def test_the_bound_stays_below_the_enumerated_evidence() -> None:
    X, prior = _rows(5, 0.3, seed=4), _prior()
    log_weights = np.log([0.3, 0.7])
    exact = logsumexp(
        [
            sum(_joint_evidence(X[way == k]) for k in range(2) if (way == k).any())
            + log_weights[way].sum()
            for way in (np.array(list(f"{i:05b}"), int) for i in range(32))
        ]
    )
    resp = np.random.default_rng(0).dirichlet(np.ones(2), 5)
    bounds = []
    for _ in range(100):
        moments = _moments(FAMILY, X, resp)
        q = FAMILY.posterior(moments, prior, FRAME)
        reading = FAMILY.expected_reading(q)
        log_joint = FAMILY.log_density(_block(X), reading) + log_weights
        total = logsumexp(log_joint, axis=1)
        resp = np.exp(log_joint - total[:, None])
        bounds.append(float(total.sum()) - FAMILY.kl(q, prior))
    assert (np.diff(bounds) >= -1e-10).all()
    assert exact - 3 < bounds[-1] <= exact


def test_point_beats_other_means() -> None:
    q, X, resp = _posterior(0.3)
    prior, moments, rng = _prior(), _moments(FAMILY, X, resp), np.random.default_rng(0)

    def posterior_of(params: GaussianParams) -> float:
        rows = FAMILY.log_density(_block(X), FAMILY.mode(params))
        return float(np.sum(resp * rows)) + FAMILY.log_prior(params, prior)

    best = FAMILY.point(q)
    top = posterior_of(best)
    for size in (1e-3, 0.1, 1.0):
        other = best.means + size * rng.normal(size=best.means.shape)
        assert posterior_of(FAMILY.from_coordinates(best, other.ravel())) < top
    ml, touched = FAMILY.estimate(moments, best)
    assert not touched.any()
    for size in (1e-3, 0.1, 1.0):
        other = ml.means + size * rng.normal(size=ml.means.shape)
        there = FAMILY.from_coordinates(ml, other.ravel())
        assert FAMILY.average(moments, FAMILY.mode(there)) < FAMILY.average(
            moments, FAMILY.mode(ml)
        )


def test_empirical_prior_is_the_best_one() -> None:
    q, _, _ = _posterior(0.3)
    best, rng = FAMILY.empirical(q, _prior()), np.random.default_rng(1)

    def fit(prior: KnownPrior) -> float:
        return -FAMILY.kl(q, prior)

    for size in (1e-4, 1e-2, 0.3):
        root = np.eye(D) + size * rng.normal(size=(D, D))
        assert fit(KnownPrior(best.mean, root @ best.precision @ root.T)) < fit(best)
        assert fit(KnownPrior(best.mean + size * rng.normal(size=D), best.precision)) < fit(best)


def test_a_column_that_no_row_of_a_component_has_keeps_its_mean() -> None:
    X = _rows(8, 0.0)
    X[:4, 1] = np.nan
    resp = np.repeat(np.eye(2), 4, axis=0)
    previous = GaussianParams(FRAME, np.full((2, D), 0.25), FAMILY.known_covariance(FRAME))
    params, _ = FAMILY.estimate(_moments(FAMILY, X, resp), previous)
    assert params.means[0, 1] == 0.25
    wanted = X[:4].mean(axis=0)
    np.testing.assert_allclose(FRAME.leave(params.means)[0, [0, 2]], wanted[[0, 2]], rtol=1e-12)
    np.testing.assert_allclose(FRAME.leave(params.means)[1], X[4:].mean(axis=0), rtol=1e-12)


# ------------------------------------------------ default prior, frames, records


def test_default_prior_follows_the_data() -> None:
    family = KnownCovariance(covariance=SIGMA, precision=0.05)
    X = _rows(40, 0.0)
    prior = family.prior(FRAME, _moments(family, X, np.ones((40, 1))))
    np.testing.assert_allclose(FRAME.leave(prior.mean), X.mean(axis=0), rtol=1e-11)
    unit = np.outer(FRAME.scale, FRAME.scale)
    np.testing.assert_allclose(np.linalg.inv(prior.precision) * unit, SIGMA / 0.05, rtol=1e-10)


def test_log_prior_is_the_log_density_of_the_means() -> None:
    """Of scipy, in data coordinates."""
    frame = Frame(np.array([-3.0, 4.0, 20.0]), np.array([0.1, 2.0, 7.0]))
    q, _, _ = _posterior()
    prior, params = _prior(), FAMILY.point(q)
    told = FAMILY.describe_prior(prior, FRAME)
    law = multivariate_normal(told["mean"], told["mean_covariance"])
    wanted = law.logpdf(FRAME.leave(params.means)).sum()
    assert FAMILY.log_prior(params, prior) == pytest.approx(wanted, rel=1e-10)
    moved, base = (
        FAMILY.change_frame(params, frame),
        FAMILY.change_frame_of_prior(prior, FRAME, frame),
    )
    assert FAMILY.log_prior(moved, base) == pytest.approx(wanted, rel=1e-10)


def test_the_posterior_that_map_maximises_integrates_to_the_evidence() -> None:
    """exp(log-likelihood + log prior) over the means of two components, by quadrature."""
    x, settings = np.array([0.3, 1.1, 4.0, 4.4]), {"mean": 1.5, "mean_covariance": 2.0}
    mixture = mixfold.Mixture(
        "known", 1, weights="ml", prior=settings, family_options={"covariance": 0.5},
        random_state=0,
    ).fit(x[:, None])  # fmt: skip

    def joint(mu: float) -> float:
        rows = norm.logpdf(x, mu, np.sqrt(0.5)).sum()
        return float(np.exp(rows + norm.logpdf(mu, 1.5, np.sqrt(2.0))))

    evidence, _ = integrate.quad(joint, -10, 10)
    # a posterior of one mean is Gaussian: its height at the mode is that of its variance
    height = 0.5 * np.log((1 / 2.0 + len(x) / 0.5) / (2 * np.pi))
    found = mixture.lower_bound_ * len(x)
    assert found - height == pytest.approx(np.log(evidence), rel=1e-8)


def test_another_frame_changes_nothing() -> None:
    q, X, _ = _posterior()
    prior, other = _prior(), Frame(np.array([-3.0, 4.0, 20.0]), np.array([0.1, 2.0, 7.0]))
    moved, base = (
        FAMILY.change_frame_of_posterior(q, other),
        FAMILY.change_frame_of_prior(prior, FRAME, other),
    )
    np.testing.assert_allclose(
        FAMILY.log_predictive(moved, _block(X)), FAMILY.log_predictive(q, _block(X)), rtol=1e-10
    )
    assert FAMILY.kl(moved, base) == pytest.approx(FAMILY.kl(q, prior), rel=1e-10)
    a, b = FAMILY.log_prior(FAMILY.point(moved), base), FAMILY.log_prior(FAMILY.point(q), prior)
    assert a == pytest.approx(b, rel=1e-10)


def test_records_are_stored() -> None:
    q, X, resp = _posterior()
    stored_identity(q)
    stored_identity(_prior())
    stored_identity(_moments(FAMILY, X, resp))


def test_completed_rows_and_conditioning() -> None:
    q, X, _ = _posterior(0.4)
    params = FAMILY.point(q)
    means, covariances = in_data_coordinates(FAMILY, params)
    reading = FAMILY.expected_reading(q)
    scores = FAMILY.scores(_block(X), reading)
    got = FRAME.leave(FAMILY.complete_rows(scores, reading, 1, None))
    wanted = np.array([conditional_moments(x, means[1], covariances[1])[0] for x in X])
    np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)
    _, rest = FAMILY.condition(params, np.array([1]), np.array([0.5]))
    assert rest.scatter.shape == (2, 2) and rest.means.shape == (K, 2)


# ------------------------------------------------ a mixture of them


def _case(missing: float) -> Case:
    X = clustered_table(N, D, K, missing=missing)
    rng = np.random.default_rng(5)
    y = np.where(rng.random(N) < 0.1, 1, -1)
    return Case(Mixture(K, KnownCovariance(covariance=SIGMA)), X, rng.uniform(0.5, 2, N), y)


@pytest.mark.parametrize("missing", [0.0, 0.15], ids=["complete", "with NaN"])
@pytest.mark.parametrize("law", laws.MODEL_LAWS)
def test_law_of_models(law: str, missing: float) -> None:
    laws.MODEL_LAWS[law](_case(missing))


def test_labels_clamp() -> None:
    laws.labels_clamp(_case(0.15), K)


@pytest.mark.parametrize("column", range(D))
def test_a_missing_column_is_no_column(column: int) -> None:
    case = _case(0.15)
    params = case.after(2)
    rest = laws.without_column(case.model.family, params.components, column)  # type: ignore[attr-defined]
    keep = np.delete(np.arange(D), column)
    reduced = Mixture(K, KnownCovariance(covariance=SIGMA[np.ix_(keep, keep)]))
    laws.missing_column(case, params, reduced, type(params)(params.weights, rest), column)


def test_likelihood_against_all_assignments() -> None:
    case = _case(0.15)
    params = case.after(2)
    means, covariances = in_data_coordinates(case.model.family, params.components)  # type: ignore[attr-defined]
    X = np.asarray(case.X)[:6]
    log_joint = gaussian_log_density(X, means, covariances) + np.log(params.weights)
    got = case.objective(params, Block(X, complete=False))
    assert got == pytest.approx(over_assignments(log_joint)[0], rel=1e-11)


def test_components_much_narrower_than_the_data() -> None:
    """On either side of the kernel's guard the statistics say the same of the best means."""
    rng = np.random.default_rng(2)
    X = rng.choice([-1e3, 1e3], (60, 1)) + 1e-3 * rng.normal(size=(60, 2))
    case = Case(Mixture(2, KnownCovariance(covariance=[1e-6, 1e-6])), X)
    params = case.after(2)
    found = np.sort(params.components.frame.leave(params.components.means)[:, 0])
    low, high = X[X[:, 0] < 0, 0].mean(), X[X[:, 0] > 0, 0].mean()
    np.testing.assert_allclose(found, [low, high], rtol=1e-12)


def test_variances_and_one_number_are_matrices() -> None:
    for setting, matrix in ((2.0, 2 * np.eye(D)), ([1.0, 2.0, 3.0], np.diag([1.0, 2.0, 3.0]))):
        a = KnownCovariance(covariance=setting).known_covariance(FRAME)
        require_same("shapes", a, KnownCovariance(covariance=matrix).known_covariance(FRAME), 1e-15)
    assert KnownCovariance(covariance=2.0).n_free(K, D) == K * D


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "covariance .* positive definite"),
        ({"covariance": [[1.0, 0.5], [0.2, 1.0]]}, "symmetric"),
        ({"covariance": [1.0, -1.0]}, "variances must be positive"),
        ({"covariance": np.ones((2, 3))}, re.escape("(2, 3)")),
        ({"precision": 0.0}, "precision"),
        ({"mean_covariance": float("nan")}, "mean_covariance"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        KnownCovariance(**settings)


def test_settings_of_another_table() -> None:
    moments = _moments(KnownCovariance(covariance=1.0), _rows(5, 0.0), np.ones((5, 1)))
    with pytest.raises(ValueError, match="covariance is for 2 columns and the data have 3"):
        KnownCovariance(covariance=[1.0, 2.0]).known_covariance(FRAME)
    with pytest.raises(ValueError, match="each of the 3 columns"):
        KnownCovariance(covariance=1.0, mean=[1.0, 2.0]).prior(FRAME, moments)


def test_the_kernel_reads_expected_densities_as_the_general_route_does() -> None:
    q, _, _ = _posterior()
    reading, block = FAMILY.expected_reading(q), _block(_rows(30, 0.0, seed=8))
    log_weights = np.log([0.2, 0.5, 0.3])
    result = FAMILY.fused_pass(block, reading, log_weights)
    assert result is not None
    scores = FAMILY.scores(block, reading)
    total = logsumexp(scores.log_density + log_weights, axis=1)
    resp = np.exp(scores.log_density + log_weights - total[:, None])
    assert result[1].log_likelihood == pytest.approx(float(total.sum()), rel=1e-12)
    require_same("fused", result[0], FAMILY.moments(scores, resp, reading), 1e-11)


@pytest.mark.parametrize("missing", [0.0, 0.15], ids=["complete", "with NaN"])
@pytest.mark.parametrize(("name", "learn_prior"), [("em", False), ("vb", False), ("vb", True)])
def test_bayesian_mixture_rises(name: str, missing: float, learn_prior: bool) -> None:
    family = KnownCovariance(covariance=SIGMA)
    model = BayesMixture(K + 1, family, inference=INFERENCES[name], learn_prior=learn_prior)
    case = Case(model, clustered_table(N, D, K, missing=missing), np.full(N, 1.5))
    laws.monotone(case)
    laws.block_invariance(case)


def test_gibbs_sweeps_do_not_depend_on_blocks() -> None:
    model = BayesMixture(K, KnownCovariance(covariance=SIGMA), inference=INFERENCES["gibbs"])
    laws.block_invariance(Case(model, clustered_table(N, D, K, missing=0.15)))
