"""Clusters in the latent space of a projection: the E step, both M steps, the bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_normal, wishart

from mixfold.contracts import Block
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Plan, fit
from mixfold.engine.random import RowKeys
from mixfold.engine.sources import open_source
from mixfold.families.gaussian import GaussianParams
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.models.factors.spectral import principal_axes
from mixfold.models.projection.clustered_projection import ClusteredProjection
from mixfold.models.projection.projection_axes import UPDATES, Centred, polar
from mixfold.models.projection.projection_laws import MaximumLikelihood, VariationalBayes
from mixfold.models.projection.projection_records import ProjectionParams, plane_of
from mixfold.models.projection.projection_rows import rows_about
from mixfold.models.projection.projection_steps import orthonormal
from mixfold.models.projection.projection_use import canonical
from mixfold.testing import Case, laws
from mixfold.testing.tables import clustered_table
from mixfold.testing.toys import Serial

K, D, d = 3, 5, 2
ML = [ClusteredProjection(K, d, MaximumLikelihood(), rule) for rule in UPDATES.values()]
VB = ClusteredProjection(K, d, VariationalBayes())
MODELS = pytest.mark.parametrize("model", [*ML, VB], ids=[*UPDATES, "vb"])


def _case(model, **sides) -> Case:
    return Case(model, sides.pop("X", clustered_table(120, D, 3, seed=1)), **sides)


def _plane(params: ProjectionParams) -> tuple[np.ndarray, np.ndarray, float]:
    """Axes, offset and noise in data units."""
    scale = params.frame.scale[0]
    return params.axes * scale, params.frame.leave(params.offset), params.noise * scale**2


def _dense(model: ClusteredProjection, params: ProjectionParams):
    """Means and covariances of the clusters as Gaussians of all columns."""
    W, mu, noise = _plane(params)
    own = model.law.gaussians(params.clusters)
    return own.means @ W.T + mu, W @ own.scatter @ W.T + noise * np.eye(D)


@MODELS
def test_the_laws_of_models(model):
    laws.check_model(_case(model), n_labels=K)


def test_the_laws_hold_for_float32_and_for_sparse_rows():
    laws.block_invariance(
        _case(VB, X=clustered_table(120, D, 3, dtype=np.float32, seed=1), rtol=1e-6)
    )
    X = sparse.random_array((90, 12), density=0.3, rng=np.random.default_rng(0), format="csr")
    for model in (ML[0], VB):
        case = _case(model, X=X, weight=np.random.default_rng(1).uniform(0.5, 2, 90))
        for law in (laws.block_invariance, laws.monotone, laws.repeatable):
            law(case)


@MODELS
def test_the_density_is_that_of_dense_gaussians(model):
    case = _case(model)
    params = case.after(3)
    means, covariances = _dense(model, params)
    logs = np.log(model.law.weights(params.clusters)) + np.stack(
        [multivariate_normal(m, C).logpdf(case.X) for m, C in zip(means, covariances, strict=True)],
        axis=1,
    )
    found = model.log_joint(model.plug_in(params), case.block)
    np.testing.assert_allclose(found, logs, rtol=1e-9)


def test_the_latents_are_those_of_dense_conditioning():
    model, case = ML[0], _case(ML[0])
    params = case.after(3)
    W, mu, noise = _plane(params)
    own = model.law.gaussians(params.clusters)
    _, covariances = _dense(model, params)
    _, resp = _softmax(model.log_joint(model.prepare(params), case.block))
    wanted = sum(
        resp[:, [k]]
        * (m + (case.X - mu - W @ m) @ np.linalg.solve(covariances[k], W @ own.scatter[k]))
        for k, m in enumerate(own.means)
    )
    np.testing.assert_allclose(
        model.latents(model.prepare(params), case.block), wanted, rtol=1e-8, atol=1e-10
    )
    # and the sums of the E step are those latents'
    stats = case.stats(params)
    U = (case.X - mu) / params.frame.scale[0]
    np.testing.assert_allclose(stats.cross, U.T @ wanted, rtol=1e-8, atol=1e-8)
    assert stats.square == pytest.approx((U**2).sum(), rel=1e-12)
    assert noise > 0


def _softmax(logs):
    total = logsumexp(logs, axis=1, keepdims=True)
    return total, np.exp(logs - total)


def test_no_turn_of_the_axes_is_better_than_procrustes(rng):
    sums = Centred(10.0, 100.0, rng.normal(size=(6, 2)), np.diag([3.0, 1.0]))
    best = sums.noise(UPDATES["procrustes"](sums))
    assert all(sums.noise(polar(rng.normal(size=(6, 2)))[0]) > best for _ in range(200))
    free = UPDATES["regress"](sums)
    least = sums.noise(free)
    assert least < best
    assert all(sums.noise(free + 0.01 * rng.normal(size=(6, 2))) > least for _ in range(200))


def test_both_updates_raise_the_same_likelihood_to_a_stationary_point(rng):
    """Finite differences of the dense likelihood vanish where the steps end."""
    model = ClusteredProjection(2, 1)
    z = np.r_[rng.normal(-3, 1, 150), rng.normal(3, 0.7, 150)][:, None]
    X = z @ np.array([[1.0, 2.0, -1.0]]) + rng.normal(size=(300, 3))
    for axes in UPDATES.values():
        case = Case(replace(model, axes=axes), X)
        plan = Plan(tol=1e-12, max_iter=5000, acceleration=ACCELERATIONS["squarem"])
        params = fit(case.model, open_source(X), Serial(), plan).params
        vector = model.coordinates(params)
        steps = 1e-4 * np.eye(len(vector))
        slope = [
            case.objective(model.from_coordinates(params, vector + e))
            - case.objective(model.from_coordinates(params, vector - e))
            for e in steps
        ]
        assert np.abs(slope).max() / 2e-4 < 1e-3


def test_the_density_does_not_depend_on_the_coordinates_of_the_latents(rng):
    model, case = ML[0], _case(ML[0])
    params = case.after(3)
    B, shift = rng.normal(size=(d, d)) + 2 * np.eye(d), rng.normal(size=d)
    own = params.clusters.components
    inverse = np.linalg.inv(B)
    moved = GaussianParams(own.frame, own.means @ B.T + shift, B @ own.scatter @ B.T)
    turned = orthonormal(
        replace(
            params,
            axes=params.axes @ inverse,
            offset=params.offset - params.axes @ inverse @ shift,
            clusters=replace(params.clusters, components=moved),
        )
    )
    assert case.objective(turned) == pytest.approx(case.objective(params), rel=1e-11)
    one, other = canonical(model, params), canonical(model, turned)
    for name in ("mean", "loadings", "means", "covariances", "noise"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-7, atol=1e-8)
    spread = np.einsum("k,kde->de", one.weights, one.covariances)
    spread += np.einsum("k,kd,ke->de", one.weights, one.means, one.means)
    np.testing.assert_allclose(spread, np.eye(d), atol=1e-10)
    np.testing.assert_allclose(one.weights @ one.means, 0, atol=1e-12)
    gram = one.loadings.T @ one.loadings
    assert gram[0, 0] > gram[1, 1] and abs(gram[0, 1]) < 1e-9 * gram[0, 0]


def test_the_bound_is_its_definition(rng):
    """E_q[ln p(x, z, c, parameters) - ln q], the latents and parameters drawn from q."""
    model, case = VB, _case(VB, X=clustered_table(40, D, 3, seed=3))
    params = case.after(4)
    reading, q = model.prepare(params), params.clusters.components
    prior, a = params.clusters.prior, params.clusters.mixing.concentration
    noise, scale = params.noise, params.frame.scale[0]
    U = rows_about(case.block, params.frame, params.offset)
    t = U.onto(params.axes)
    left = U.left(t, params.axes, noise)
    _, resp = _softmax(model.log_joint(reading, case.block))
    draws = []
    for _ in range(400):
        log_pi = np.log(rng.dirichlet(a))
        total = 0.0
        for k in range(K):
            W0, W = np.linalg.inv(prior.scatter), np.linalg.inv(q.scatter[k] * q.degrees[k])
            L = wishart.rvs(q.degrees[k], W, random_state=rng)
            m = rng.multivariate_normal(q.means[k], np.linalg.inv(q.precision[k] * L))
            total += wishart.logpdf(L, float(prior.degrees), W0) - wishart.logpdf(
                L, q.degrees[k], W
            )
            total += multivariate_normal.logpdf(m, prior.mean, np.linalg.inv(prior.precision * L))
            total -= multivariate_normal.logpdf(m, q.means[k], np.linalg.inv(q.precision[k] * L))
            # the latents of q are Gaussian: their part of the average in closed form
            G = reading.gains[k]
            z = q.means[k] + (t - q.means[k]) @ G.T
            C = noise * (G + G.T) / 2
            quad = np.einsum("nd,de,ne->n", z - m, L, z - m) + np.trace(L @ C)
            inside = 0.5 * (np.linalg.slogdet(L)[1] - d * np.log(2 * np.pi) - quad)
            entropy = 0.5 * (d * (1 + np.log(2 * np.pi)) + np.linalg.slogdet(C)[1])
            away = left + ((t - z) ** 2).sum(1) + np.trace(C)
            seen = -0.5 * (D * np.log(2 * np.pi * noise) + away / noise) - D * np.log(scale)
            r = resp[:, k]
            logs = np.log(np.maximum(r, 1e-300))
            total += r @ (log_pi[k] + inside + entropy + seen - logs)
        draws.append(total + _dirichlet(log_pi, np.full(K, 1 / K)) - _dirichlet(log_pi, a))
    error = np.std(draws) / np.sqrt(len(draws))
    assert error < 0.5
    assert case.objective(params) == pytest.approx(np.mean(draws), abs=6 * error)


def _dirichlet(log_pi, a):
    return gammaln(a.sum()) - gammaln(a).sum() + (a - 1) @ log_pi


def test_the_bound_is_below_the_evidence(rng):
    """One column, one latent: with axes, offset and noise given, few rows are summed in full."""
    X = np.array([[-2.1], [-1.9], [2.0], [2.3]])
    model = ClusteredProjection(2, 1, VariationalBayes(SymmetricDirichlet(1.0), scatter=1.0))
    case = Case(model, X)
    params = case.after(50)
    scale, noise = params.frame.scale[0], params.noise
    u = params.frame.enter(X)[:, 0] - params.offset[0]
    t = u * params.axes[0, 0]
    prior = params.clusters.prior
    n = 200_000
    pi = rng.beta(0.5, 0.5, n)
    L = rng.chisquare(prior.degrees, (2, n)) / prior.scatter[0, 0]
    m = rng.normal(size=(2, n)) / np.sqrt(prior.precision * L)
    like = 0.0
    for value in t:
        parts = [
            np.log(w) - 0.5 * (np.log(2 * np.pi * v) + (value - mk) ** 2 / v)
            for w, mk, v in zip((pi, 1 - pi), m, 1 / L + noise, strict=True)
        ]
        like = like + np.logaddexp(*parts) - np.log(scale)
    evidence = logsumexp(like) - np.log(n)
    assert case.objective(params) < evidence
    assert case.objective(params) > evidence - 6


def test_priors_need_orthonormal_axes():
    with pytest.raises(ValueError, match="procrustes"):
        ClusteredProjection(2, 1, VariationalBayes(), UPDATES["regress"])


def test_a_prior_with_too_few_degrees_is_refused():
    with pytest.raises(ValueError, match=r"must exceed n_components - 1 = 1, got 1"):
        _case(ClusteredProjection(2, 2, VariationalBayes(degrees=1.0))).start()


def test_missing_entries_are_refused():
    X = clustered_table(60, D, 3, seed=1)
    params = _case(VB, X=X).start()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN between rows 0 and 59"):
        VB.expect(VB.prepare(params), Block(X, complete=False), RowKeys(0))


def test_sparse_rows_give_what_dense_ones_give(rng):
    X = sparse.random_array((80, 15), density=0.3, rng=rng, format="csr")
    params = _case(VB, X=X).after(2)
    thin, full = _case(VB, X=X), _case(VB, X=X.toarray())
    one, other = thin.stats(params), full.stats(params)
    for name in ("first", "cross", "square", "log_likelihood", "entropy"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-9)


def test_small_noise_far_from_zero_keeps_its_digits(rng):
    """The residual route: lengths in units of the noise whose differences would be rounding."""
    Z = rng.normal(size=(200, 1)) + 4 * (np.arange(200) % 2)[:, None]
    X = 1e3 * Z @ np.ones((1, 4)) + 1e-2 * rng.normal(size=(200, 4)) + 1e8
    model = ClusteredProjection(2, 1, floor=1e-14)
    case = Case(model, X)
    params = case.after(30)
    assert np.sqrt(_plane(params)[2]) == pytest.approx(1e-2, rel=0.1)


def test_a_cluster_may_have_no_spread(rng):
    """A singular covariance is no harm, for noise is added to it; so no floor is reported."""
    z = np.where(np.arange(200) < 100, 0.0, rng.normal(6, 2, 200))[:, None]
    X = z @ np.array([[1.0, 1.0, 0.0, 1.0]]) + 0.3 * rng.normal(size=(200, 4))
    case = Case(ClusteredProjection(2, 1), X)
    params = case.after(300)
    least = params.clusters.components.scatter.min()
    assert least < 0.05 * params.noise
    assert not case.update(params, case.stats(params)).events
    model, (rows, labels) = case.model, case.model.sample(params, 50, rng)
    assert np.isfinite(model.log_joint(model.prepare(params), Block(rows))).all()
    assert set(labels) == {0, 1}


def test_the_prior_of_a_cluster_is_its_part_of_the_space():
    whole = VariationalBayes().prior(3, 8, variance=2.0, scale=5.0)
    np.testing.assert_allclose(whole.scatter, 2.0 * 8 ** (-2 / 3) * np.eye(3))
    assert whole.degrees == 5
    # what is given is in units of the data, of which the latents' unit is ``scale``
    given = VariationalBayes(scatter=50.0).prior(3, 8, variance=2.0, scale=5.0)
    np.testing.assert_allclose(given.scatter, 2.0 * np.eye(3))


def test_the_first_plane_has_the_noise_of_ppca_in_its_own_units() -> None:
    """What a plane leaves over per column, relative to the mean variance of the columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) * [5.0, 3.0, 1.0, 0.5] + 7
    for unit in (1.0, 100.0):
        source = open_source(X * unit)
        spectrum = principal_axes(source, ThreadExecutor(1), 2, rng=np.random.default_rng(0))
        plane = plane_of(spectrum, np.zeros(4), 1e-6)
        values = np.linalg.eigvalsh(np.cov(X.T, bias=True))
        assert plane.noise == pytest.approx(values[:2].mean() / values.mean())
