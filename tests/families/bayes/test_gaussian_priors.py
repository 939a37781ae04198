"""What all Gaussian families with conjugate priors owe: Bayes' rule, every part of the bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.special import logsumexp, multigammaln, psi

from mixfold.contracts import Array, Block
from mixfold.families.bayes.gaussian import ConjugateGaussian
from mixfold.families.bayes.normal_gamma import (
    BayesDiagonal,
    BayesSpherical,
    BayesTiedDiagonal,
    BayesTiedSpherical,
)
from mixfold.families.bayes.normal_wishart import BayesFull, BayesTied
from mixfold.families.bayes.records import NormalPosterior, NormalPrior
from mixfold.families.gaussian import GaussianParams
from mixfold.math.frame import Frame
from mixfold.testing.storage import stored_identity

KINDS = [
    BayesFull, BayesTied, BayesDiagonal, BayesTiedDiagonal, BayesSpherical, BayesTiedSpherical,
]  # fmt: skip
N = 14
# columns that depend on each other have closed forms for complete rows only
CLOSED = [(kind, 0.0) for kind in KINDS] + [(kind, 0.3) for kind in KINDS[2:]]


@pytest.fixture(params=KINDS, ids=[kind.name for kind in KINDS])
def trial(request: pytest.FixtureRequest, trial_of: Callable[..., Any]) -> Any:
    return trial_of(request.param)


@pytest.fixture(params=CLOSED, ids=lambda pair: f"{pair[0].name}{' with NaN' * bool(pair[1])}")
def closed(request: pytest.FixtureRequest, trial_of: Callable[..., Any]) -> tuple[Any, float]:
    """A family and a share of missing entries for which everything has a closed form."""
    kind, missing = request.param
    return trial_of(kind), missing


def _fitted(trial: Any, missing: float = 0.0) -> tuple[NormalPosterior, Array, Array]:
    X, resp = trial.rows(N, missing), trial.shares(N)
    return trial.posterior(X, resp), X, resp


def _draws(family: ConjugateGaussian, q: NormalPosterior, n: int) -> list[GaussianParams]:
    rng = np.random.default_rng(1)
    return [family.draw(q, rng) for _ in range(n)]


def _within(draws: Array, wanted: Array | float) -> None:
    """The mean of draws is ``wanted`` within 6 standard errors."""
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    gap = np.abs(draws.mean(axis=0) - wanted)
    assert (gap <= 6 * error + 1e-12).all(), (draws.mean(axis=0), wanted, error)


def _log_det(trial: Any, scatter: Array) -> Array:
    """ln det of scatters in data coordinates, whatever their shape."""
    if trial.matrix:
        return np.asarray(np.linalg.slogdet(scatter)[1])
    return np.log(scatter)


# ------------------------------------------------ Bayes' rule


def test_predictives_one_by_one_multiply_to_the_evidence(closed: tuple[Any, float]) -> None:
    """Also where components share a precision: what one row says of it, all others hear."""
    trial, missing = closed
    X = trial.rows(7, missing)
    labels = np.array([0, 2, 0, 1, 2, 2, 0])
    hot = np.eye(trial.n_components)[labels]
    total = 0.0
    for n in range(len(X)):
        q = trial.posterior(X[:n], hot[:n]) if n else trial.posterior(X[:1], np.zeros((1, 3)))
        one = Block(X[n : n + 1], complete=not np.isnan(X[n]).any())
        total += trial.family.log_predictive(q, one)[0, labels[n]]
    evidence = trial.family.evidence(trial.moments(X, hot), trial.prior(), trial.frame)
    assert evidence == pytest.approx(total, rel=1e-10)


def test_divergence_is_expected_likelihood_less_evidence(closed: tuple[Any, float]) -> None:
    """ln q = ln p(theta) + sum r ln p(x | theta) - ln Z: an identity of four functions."""
    trial, missing = closed
    q, X, resp = _fitted(trial, missing)
    family, moments = trial.family, trial.moments(X, resp)
    likelihood = family.average(moments, family.expected_reading(q))
    evidence = family.evidence(moments, trial.prior(), trial.frame)
    assert family.kl(q, trial.prior()) == pytest.approx(likelihood - evidence, rel=1e-10)


def test_divergence_against_draws(trial: Any) -> None:
    q, X, resp = _fitted(trial)
    family = trial.family
    evidence = family.evidence(trial.moments(X, resp), trial.prior(), trial.frame)
    logs = [
        np.sum(resp * family.log_density(Block(X), family.mode(params))) - evidence
        for params in _draws(family, q, 600)
    ]
    _within(np.array(logs), family.kl(q, trial.prior()))


def test_a_component_without_rows_has_the_prior(trial: Any) -> None:
    X = trial.rows(5)
    prior, q = trial.prior(), trial.posterior(X, np.zeros((5, 3)))
    np.testing.assert_array_equal(q.means, np.broadcast_to(prior.mean, q.means.shape))
    assert (q.precision == prior.precision).all() and (q.degrees == prior.degrees).all()
    np.testing.assert_allclose(
        q.scatter * prior.degrees, np.broadcast_to(prior.scatter, q.scatter.shape)
    )
    assert trial.family.kl(q, prior) == pytest.approx(0.0, abs=1e-10)
    resp = trial.shares(5)
    resp[:, 1] = 0  # one of them
    q = trial.posterior(X, resp)
    np.testing.assert_array_equal(q.means[1], prior.mean)
    assert (q.precision[1] == prior.precision).all()


def test_divergence_is_positive_for_any_other_posterior(trial: Any) -> None:
    q, _, _ = _fitted(trial)
    assert trial.family.kl(q, trial.prior()) > 0.5


# ------------------------------------------------ readings


def test_expected_log_density_against_draws(closed: tuple[Any, float]) -> None:
    """Of what is observed, where columns are independent."""
    trial, missing = closed
    q, _, _ = _fitted(trial, missing)
    family, rows = trial.family, Block(trial.rows(4, missing, seed=5), complete=not missing)
    got = family.scores(rows, family.expected_reading(q)).log_density
    draws = _draws(family, q, 500)
    _within(np.array([family.scores(rows, family.mode(p)).log_density for p in draws]), got)
    np.testing.assert_allclose(family.log_density(rows, family.expected_reading(q)), got, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS[:2], ids=lambda kind: kind.name)
@pytest.mark.parametrize("hole", [[1], [0, 2]], ids=["one hole", "two holes"])
def test_expected_log_density_with_holes_by_quadrature(
    kind: type[Any], hole: list[int], trial_of: Callable[..., Any]
) -> None:
    """ln of the integral of exp E[ln p(x)] over what is missing."""
    trial = trial_of(kind)
    q, _, _ = _fitted(trial)
    family, row = trial.family, trial.rows(1, seed=6)
    reading = family.expected_reading(q)
    lacking = row.copy()
    lacking[0, hole] = np.nan
    got = family.scores(Block(lacking, complete=False), reading).log_density[0]
    grid = np.linspace(-14, 14, 281)
    axes = [trial.frame.origin[d] + trial.frame.scale[d] * grid for d in hole]
    points = np.repeat(row, grid.size ** len(hole), axis=0)
    points[:, hole] = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(hole))
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    wanted = logsumexp(family.log_density(Block(points), reading), axis=0) + np.log(cell)
    np.testing.assert_allclose(got, wanted, rtol=1e-7)


def test_draws_have_the_moments_of_their_law(trial: Any) -> None:
    """E Lambda = W nu, E ln|Lambda| by digammas, Cov mu = E Sigma / precision."""
    q, _, _ = _fitted(trial)
    family, size = trial.family, trial.n_features
    draws = _draws(family, q, 1500)
    inverse = [np.linalg.inv(p.scatter) if trial.matrix else 1 / p.scatter for p in draws]
    wanted = np.linalg.inv(q.scatter) if trial.matrix else 1 / q.scatter
    _within(np.array(inverse), wanted)
    nu = np.asarray(q.degrees)
    dims = size if trial.matrix else 1
    digammas = sum(psi((nu + 1 - i) / 2) for i in range(1, dims + 1)) + dims * np.log(2 / nu)
    log_dets = np.array([-_log_det(trial, p.scatter) for p in draws])
    _within(log_dets.reshape(len(draws), -1), (digammas - _log_det(trial, q.scatter)).ravel())
    means = np.array([p.means for p in draws])
    _within(means, q.means)
    squares = (means - q.means) ** 2
    beta = q.precision if q.precision.ndim == 2 else q.precision[:, None]
    diagonal = np.diagonal(family.dense(family.point(q)), axis1=1, axis2=2)
    stretch = nu / (nu - dims - 1)
    _within(squares, diagonal * _columns(stretch, diagonal.shape) / beta)


def _columns(value: Array, shape: tuple[int, ...]) -> Array:
    """A number per component, per column or for all of them, as (K, D)."""
    if value.ndim == 1 and value.shape[0] == shape[0] and shape[0] != 1:
        return np.broadcast_to(value[:, None], shape)
    return np.broadcast_to(value, shape)


def test_moments_average_the_log_density(closed: tuple[Any, float]) -> None:
    trial, missing = closed
    q, X, resp = _fitted(trial, missing)
    family, rows = trial.family, Block(X, complete=not missing)
    for reading in (family.expected_reading(q), family.mode(family.point(q))):
        wanted = float(np.sum(resp * family.scores(rows, reading).log_density))
        assert family.average(trial.moments(X, resp), reading) == pytest.approx(wanted, rel=1e-10)


# ------------------------------------------------ points


def _log_prior(trial: Any, params: GaussianParams) -> float:
    """sum_k <chi_0, omega(theta_k)> in data coordinates, one term at a time."""
    mean, beta, nu, scatter = trial.settings()
    D = trial.n_features
    away = trial.frame.leave(params.means) - mean
    lambdas = trial.precisions(params)
    total = -0.5 * beta * np.einsum("kd,kde,ke->", away, lambdas, away)
    if trial.shared:
        lambdas = lambdas[:1]
    if trial.matrix:
        logs = np.linalg.slogdet(lambdas)[1]
        return float(total + 0.5 * nu * logs.sum() - 0.5 * np.sum(scatter * lambdas))
    single = np.diagonal(lambdas, axis1=1, axis2=2)
    if scatter.ndim == 0:
        single = single[:, :1]
    assert single.shape[1] in (1, D)
    return float(total + 0.5 * nu * np.log(single).sum() - 0.5 * np.sum(scatter * single))


def test_log_prior_term_by_term(trial: Any) -> None:
    q, _, _ = _fitted(trial)
    params = trial.family.draw(q, np.random.default_rng(0))
    got = trial.family.log_prior(params, trial.prior())
    assert got == pytest.approx(_log_prior(trial, params), rel=1e-10)


def test_no_parameters_beat_the_point(closed: tuple[Any, float]) -> None:
    trial, missing = closed
    q, X, resp = _fitted(trial, missing)
    family, moments, prior = trial.family, trial.moments(X, resp), trial.prior()

    def value(params: GaussianParams) -> float:
        return family.average(moments, family.mode(params)) + family.log_prior(params, prior)

    best = value(family.point(q))
    sharp = replace(q, degrees=q.degrees * 1e4, precision=q.precision * 1e4)
    for posterior in (q, sharp):
        others = [value(params) for params in _draws(family, posterior, 50)]
        assert max(others) < best
    assert best - max(others) < 0.1  # so close that a wrong optimum would be seen


# ------------------------------------------------ a prior that is learned


def _unpacked(trial: Any, vector: Array, prior: NormalPrior) -> NormalPrior:
    """A prior from free numbers: mean, ln precision and, if components have their own, the rest."""
    D = trial.n_features
    mean, rest = vector[:D], vector[D:]
    size = prior.precision.size
    precision, rest = np.exp(rest[:size]).reshape(prior.precision.shape), rest[size:]
    prior = replace(prior, mean=mean, precision=precision)
    if trial.shared:
        return prior
    size = prior.degrees.size
    degrees = np.exp(rest[:size]).reshape(prior.degrees.shape) + (D - 1 if trial.matrix else 0)
    scatter = np.exp(rest[size:]).reshape(prior.scatter.shape) if not trial.matrix else None
    if scatter is None:
        root = np.zeros((D, D))
        root[np.tril_indices(D)] = rest[size:]
        scatter = root @ root.T
    return replace(prior, degrees=degrees, scatter=scatter)


def _packed(trial: Any, prior: NormalPrior) -> Array:
    D = trial.n_features
    parts = [prior.mean, np.log(prior.precision).ravel()]
    if not trial.shared:
        least = D - 1 if trial.matrix else 0
        parts.append(np.log(prior.degrees - least).ravel())
        root = np.linalg.cholesky(prior.scatter)[np.tril_indices(D)] if trial.matrix else None
        parts.append(np.log(prior.scatter).ravel() if root is None else root)
    return np.concatenate(parts)


def test_learned_prior_against_an_optimiser(trial: Any) -> None:
    """sum_k <chi_0, E_k> - B(chi_0) is the divergence but for its sign and a constant."""
    family = trial.family
    X, resp = trial.rows(30), np.eye(3)[np.arange(30) % 3]
    q = trial.posterior(X + 3 * trial.frame.scale * resp.argmax(axis=1)[:, None], resp)
    learned = family.empirical(q, trial.prior())
    vector = _packed(trial, learned)
    here = family.kl(q, learned)
    assert here < family.kl(q, trial.prior()) - 0.1

    def loss(v: Array) -> float:
        return family.kl(q, _unpacked(trial, v, learned))

    np.testing.assert_allclose(loss(vector), here, rtol=1e-12)
    slope = optimize.approx_fprime(vector, loss, 1e-6)
    assert np.abs(slope).max() < 1e-4, slope
    rng = np.random.default_rng(0)
    for size in (1e-2, 0.1, 0.5):
        assert all(loss(vector + size * rng.normal(size=vector.size)) > here for _ in range(20))
    if trial.shared:
        assert learned.degrees == trial.prior().degrees  # one precision says nothing of its law


# ------------------------------------------------ frames, units, offsets


def test_another_frame_changes_nothing(trial: Any) -> None:
    q, X, _ = _fitted(trial)
    family, prior, old = trial.family, trial.prior(), trial.frame
    factor = np.full(3, 2.5) if "spherical" in family.name else np.array([2.5, 0.3, 7.0])
    new = Frame(old.origin + 4.0, old.scale * factor)
    p2 = family.change_frame_of_prior(prior, old, new)
    q2 = family.change_frame_of_posterior(q, new)
    assert family.kl(q2, p2) == pytest.approx(family.kl(q, prior), rel=1e-10)
    point, point2 = family.point(q), family.point(q2)
    assert family.log_prior(point2, p2) == pytest.approx(family.log_prior(point, prior), rel=1e-10)
    for read in (family.expected_reading, lambda posterior: family.mode(family.point(posterior))):
        np.testing.assert_allclose(
            family.log_density(Block(X), read(q2)), family.log_density(Block(X), read(q)), rtol=1e-9
        )
    np.testing.assert_allclose(
        family.log_predictive(q2, Block(X)), family.log_predictive(q, Block(X)), rtol=1e-9
    )
    back = family.change_frame_of_prior(p2, new, old)
    np.testing.assert_allclose(back.mean, prior.mean, rtol=1e-12)
    np.testing.assert_allclose(back.scatter, prior.scatter, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("change", ["units", "offset 1e8"])
def test_units_and_origin_do_not_matter(
    kind: type[Any], change: str, trial_of: Callable[..., Any]
) -> None:
    """With the default prior, which follows the data."""
    open_settings = {"mean": None, "degrees": None, "scatter": None}
    one = trial_of(kind, **open_settings)
    scale = np.full(3, 1e-3) if "spherical" in kind.name else np.array([1e-3, 40.0, 1e5])
    scale, shift = (scale, 0.0) if change == "units" else (np.ones(3), 1e8)
    other = replace(one, frame=Frame(one.frame.origin * scale + shift, one.frame.scale * scale))
    X, resp = one.rows(40), one.shares(40)
    found = []
    for trial, rows in ((one, X), (other, X * scale + shift)):
        total = trial.family.moments(
            trial.family.scores(Block(rows), _single(trial)), np.ones((40, 1)), _single(trial)
        )
        prior = trial.family.prior(trial.frame, total)
        moments = trial.moments(rows, resp)
        q = trial.family.posterior(moments, prior, trial.frame)
        evidence = trial.family.evidence(moments, prior, trial.frame)
        density = trial.family.log_predictive(q, Block(rows)) + np.log(scale).sum() * (
            trial is other
        )
        found.append((evidence, trial.family.kl(q, prior), density))
    gap = -40 * np.log(scale).sum()
    rtol = 1e-9 if change == "units" else 1e-6
    assert found[1][0] == pytest.approx(found[0][0] + gap, rel=rtol)
    assert found[1][1] == pytest.approx(found[0][1], rel=rtol)
    np.testing.assert_allclose(found[1][2], found[0][2], rtol=rtol, atol=1e-6)


def _single(trial: Any) -> Any:
    return replace(trial, n_components=1).reading()


# ------------------------------------------------ defaults and the rest


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_default_prior_is_that_of_the_data(kind: type[Any], trial_of: Callable[..., Any]) -> None:
    trial = trial_of(kind, mean=None, degrees=None, scatter=None, precision=0.01)
    X = trial.rows(50)
    reading = _single(trial)
    total = trial.family.moments(trial.family.scores(Block(X), reading), np.ones((50, 1)), reading)
    prior = trial.family.prior(trial.frame, total)
    np.testing.assert_allclose(trial.frame.leave(prior.mean), X.mean(axis=0), rtol=1e-10)
    covariance = np.cov(X.T, bias=True)
    scatter = trial.family.leave_scatter(prior.scatter, trial.frame)
    if trial.matrix:
        np.testing.assert_allclose(scatter, 3 * 0.01 * covariance, rtol=1e-9)
        assert prior.degrees == 3
        return
    variances = np.diag(covariance)
    wanted = 0.01 * (variances.mean() if "spherical" in kind.name else variances)
    np.testing.assert_allclose(scatter, wanted, rtol=1e-9)
    assert prior.degrees == 1


@pytest.mark.parametrize(("kind", "degrees"), [(BayesFull, 2.0), (BayesDiagonal, 0.0)])
def test_too_few_degrees(kind: type[Any], degrees: float, trial_of: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"'degrees' of the prior must be a finite number above"):
        trial_of(kind, degrees=degrees).prior()


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (BayesFull, {"precision": 0}, "'precision' of the prior must be a finite number above 0;"),
        (BayesFull, {"precision": [1.0, 1.0, 1.0]}, "got .1.0, 1.0, 1.0.*Leave it out"),
        (BayesFull, {"scatter": -np.eye(3)}, "'scatter' of the prior must be a symmetric, pos"),
        (BayesFull, {"scatter": np.ones(3)}, r"of shape \(3, 3\)"),
        (BayesFull, {"scatter": np.triu(np.ones((3, 3)))}, "must be a symmetric"),
        (BayesFull, {"scatter": "wide"}, "must be a number or an array of numbers, got 'wide'"),
        (BayesFull, {"degrees": np.inf}, "above 2; got inf"),
        (BayesDiagonal, {"precision": [1.0, -1.0, 1.0]}, "or one for each of the 3 columns"),
        (BayesDiagonal, {"scatter": [1.0, 2.0]}, "or one for each of the 3 columns"),
        (BayesDiagonal, {"scatter": np.eye(3)}, "or one for each of the 3 columns"),
        (BayesSpherical, {"scatter": [1.0, 2.0, 3.0]}, "a finite number above 0; got"),
        (BayesFull, {"mean": [0.0, 0.0]}, "mean must be one finite number for each of the 3"),
        (BayesFull, {"mean": [0.0, 0.0, np.nan]}, "mean must be one finite number"),
    ],
)
def test_a_prior_that_is_no_prior(
    kind: type[Any], settings: Any, message: str, trial_of: Callable[..., Any]
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        trial_of(kind, **settings).prior()


def test_components_in_another_order(trial: Any) -> None:
    q, X, _ = _fitted(trial)
    which = np.array([2, 0])
    kept = trial.family.keep_posterior(q, which)
    np.testing.assert_allclose(
        trial.family.log_predictive(kept, Block(X)),
        trial.family.log_predictive(q, Block(X))[:, which],
        rtol=1e-12,
    )
    expected = trial.family.expected_reading
    np.testing.assert_allclose(
        trial.family.log_density(Block(X), expected(kept)),
        trial.family.log_density(Block(X), expected(q))[:, which],
        rtol=1e-10,
    )


def test_records_are_stored(trial: Any) -> None:
    stored_identity(trial.prior())
    stored_identity(_fitted(trial)[0])


def test_predictive_rows_have_the_moments_of_a_student(trial: Any) -> None:
    q, _, _ = _fitted(trial)
    family, n = trial.family, 20_000
    for k in (0, 2):
        rows = family.sample_predictive(q, np.full(n, k), np.random.default_rng(4))
        mean = trial.frame.leave(q.means)[k]
        _within(rows, mean)
        nu = np.asarray(
            q.degrees if np.ndim(q.degrees) == 0 or len(q.degrees) == 1 else q.degrees[k]
        )
        dims = trial.n_features if trial.matrix else 1
        beta = q.precision[k]
        dense = family.dense(family.point(q))[k] * np.multiply.outer(*(2 * [trial.frame.scale]))
        # Cov = E Sigma (1 + 1 / precision)
        wide = np.diagonal(dense) * nu / (nu - dims - 1) * (1 + 1 / beta)
        _within((rows - mean) ** 2, wide)


def test_evidence_of_two_rows_by_hand() -> None:
    """Two rows at one point, a unit prior: the ratio of normalisers by hand."""
    family = BayesFull(mean=np.zeros(2), precision=1.0, degrees=3.0, scatter=np.eye(2))
    frame = Frame(np.zeros(2), np.ones(2))
    params = GaussianParams(frame, np.zeros((1, 2)), np.eye(2)[None])
    reading = family.mode(params)
    X = np.zeros((2, 2))
    moments = family.moments(family.scores(Block(X), reading), np.ones((2, 1)), reading)
    prior = family.prior(frame, moments)
    wanted = -2 * np.log(2 * np.pi) + np.log(1 / 3) + 2 * np.log(2)
    wanted += multigammaln(2.5, 2) - multigammaln(1.5, 2)
    assert family.evidence(moments, prior, frame) == pytest.approx(wanted, rel=1e-12)
