"""Mixtures of components on one shared plane: E step, M steps, bound, missing entries."""

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
from mixfold.families.factor import FactorParams
from mixfold.families.factor.records import Latents
from mixfold.families.gaussian import GaussianParams
from mixfold.families.projection import (
    PLANE_UPDATES,
    BayesProjectedGaussian,
    ProjectedGaussian,
    ProjectionParams,
)
from mixfold.families.projection.complete import rows_about
from mixfold.families.projection.family import orthonormal
from mixfold.families.projection.incomplete import incomplete_scores
from mixfold.families.projection.plane import PlaneSums, polar
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.models.mixtures.inference import INFERENCES
from mixfold.models.mixtures.mixture import MixtureParams
from mixfold.models.mixtures.starts import KMeansStart, Sample
from mixfold.models.projection.mixtures import (
    ProjectedBayesMixture,
    ProjectedMixture,
    expected_latents,
)
from mixfold.models.projection.start import (
    FewerClusters,
    cluster_prior,
    find_plane,
    plane_of_factors,
    start_sizes,
)
from mixfold.models.projection.use import canonical
from mixfold.testing import Case, laws
from mixfold.testing.tables import clustered_table
from mixfold.testing.toys import Serial

K, D, d = 3, 5, 2
KINDS = [*PLANE_UPDATES, "vb"]
of_all_kinds = pytest.mark.parametrize("kind", KINDS)


def filled(X):
    """The table with missing entries at the means of their columns."""
    return X if sparse.issparse(X) else np.where(np.isnan(X), np.nanmean(X, axis=0), X)


def case_of(kind, X=None, n=K, size=d, floor=1e-6, **sides) -> Case:
    """A mixture for a table, which starts from the principal axes of the table."""
    X = clustered_table(120, D, 3, seed=1) if X is None else X
    lacks = not sparse.issparse(X) and bool(np.isnan(X).any())
    rows = open_source(filled(X))
    plane = find_plane(rows, ThreadExecutor(1), size, floor, np.random.default_rng(0))
    settings = {"floor": floor, "size": size, "has_missing": lacks, "plane": plane}
    if kind != "vb":
        family = ProjectedGaussian(update=PLANE_UPDATES[kind], **settings)
        return Case(ProjectedMixture(n, family), X, **sides)
    prior = sides.pop("prior", cluster_prior(plane, n))
    return Case(
        ProjectedBayesMixture(n, BayesProjectedGaussian(**settings), prior=prior), X, **sides
    )


@pytest.fixture
def has_missing() -> np.ndarray:
    """A table with missing entries, one row with a single entry and one with none missing."""
    rng = np.random.default_rng(3)
    X = clustered_table(150, D, 3, seed=1)
    X[rng.random(X.shape) < 0.25] = np.nan
    X[0] = np.arange(D)
    X[1, 1:] = np.nan
    X[1, 0] = 1.0
    return X


def point(case: Case, params) -> MixtureParams:
    """Weights and components at their estimates."""
    if not isinstance(case.model, ProjectedBayesMixture):
        return params
    return MixtureParams(params.weights, case.model.family.point(params.components))


def plane(params: ProjectionParams) -> tuple[np.ndarray, np.ndarray, float]:
    """Axes, offset and noise in data units."""
    scale = params.frame.scale[0]
    return params.axes * scale, params.frame.leave(params.offset), params.noise * scale**2


def dense(params: ProjectionParams):
    """Means and covariances of the components as Gaussians of all columns."""
    W, mu, noise = plane(params)
    own = params.clusters
    return own.means @ W.T + mu, W @ own.scatter @ W.T + noise * np.eye(len(mu))


def dense_log_joint(params: MixtureParams, X):
    """log pi_k p(x | k) of the seen entries, by dense normal densities."""
    means, covariances = dense(params.components)
    out = np.empty((len(X), len(means)))
    for n, x in enumerate(X):
        shown = np.flatnonzero(~np.isnan(x))
        for k, (m, C) in enumerate(zip(means, covariances, strict=True)):
            out[n, k] = multivariate_normal(m[shown], C[np.ix_(shown, shown)]).logpdf(x[shown])
    return out + np.log(params.weights)


def softmax(logs):
    total = logsumexp(logs, axis=1, keepdims=True)
    return total, np.exp(logs - total)


# ------------------------------------------------ laws


@of_all_kinds
def test_the_laws_of_models(kind):
    laws.check_model(case_of(kind), n_labels=K)


@of_all_kinds
def test_the_laws_of_models_with_missing_entries(kind, has_missing):
    laws.check_model(case_of(kind, has_missing), n_labels=K)


def test_the_posterior_read_at_its_point_is_monotone_too(has_missing):
    """Maximum a posteriori, which no estimator offers so far."""
    for X in (None, has_missing):
        case = case_of("vb", X)
        case = replace(case, model=replace(case.model, inference=INFERENCES["em"]))
        laws.monotone(case)


def test_the_laws_hold_for_float32_and_for_sparse_rows():
    laws.block_invariance(
        case_of("vb", clustered_table(120, D, 3, dtype=np.float32, seed=1), rtol=1e-6)
    )
    X = sparse.random_array((90, 12), density=0.3, rng=np.random.default_rng(0), format="csr")
    for kind in ("procrustes", "vb"):
        case = case_of(kind, X, weight=np.random.default_rng(1).uniform(0.5, 2, 90))
        for law in (laws.block_invariance, laws.monotone, laws.repeatable):
            law(case)


@of_all_kinds
def test_other_units_change_nothing(kind):
    case = case_of(kind)
    scale, shift = np.full(D, 7.0), np.arange(D) * 10.0
    moved = case_of(kind, case.X * scale + shift)
    ours, theirs = case.after(3), moved.after(3)
    change = len(case.X) * D * np.log(7.0)
    assert moved.objective(theirs) == pytest.approx(case.objective(ours) - change, rel=1e-8)


# ------------------------------------------------ the E step against dense normal densities


@of_all_kinds
@pytest.mark.parametrize("lacking", [False, True])
def test_the_density_is_that_of_dense_gaussians(kind, lacking, has_missing):
    case = case_of(kind, has_missing if lacking else None)
    params = point(case, case.after(3))
    model = ProjectedMixture(K, case.model.family)
    found = model.log_joint(model.prepare(params), case.block)
    np.testing.assert_allclose(found, dense_log_joint(params, case.X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("lacking", [False, True])
def test_latents_and_sums_are_those_of_dense_conditioning(lacking, has_missing):
    case = case_of("procrustes", has_missing if lacking else None)
    params = case.after(3)
    X, model, components = case.X, case.model, params.components
    W, mu, noise = plane(components)
    own, scale = components.clusters, components.frame.scale[0]
    _, resp = softmax(dense_log_joint(params, X))
    first, second = np.zeros((len(X), d)), np.zeros((len(X), d, d))
    of_clusters = np.zeros((K, d, d))
    for n, x in enumerate(X):
        shown = np.flatnonzero(~np.isnan(x))
        for k, (m, S) in enumerate(zip(own.means, own.scatter, strict=True)):
            C = W[shown] @ S @ W[shown].T + noise * np.eye(len(shown))
            gain = S @ W[shown].T @ np.linalg.inv(C)
            z = m + gain @ (x[shown] - mu[shown] - W[shown] @ m)
            zz = S - gain @ W[shown] @ S + np.outer(z, z)
            first[n] += resp[n, k] * z
            second[n] += resp[n, k] * zz
            of_clusters[k] += resp[n, k] * zz
    found = expected_latents(model, model.prepare(params), case.block)
    np.testing.assert_allclose(found, first, rtol=1e-7, atol=1e-9)
    stats = case.stats(params).components
    U = np.where(np.isnan(X), 0.0, (X - mu) / scale)
    seen = ~np.isnan(X)
    np.testing.assert_allclose(stats.cross, U.T @ first, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(stats.first, U.sum(axis=0), atol=1e-9)
    assert stats.square == pytest.approx((U**2).sum(), rel=1e-12)
    assert stats.entries == pytest.approx(seen.sum())
    about_zero = model.family.about_frame(stats).latents
    i, j = np.triu_indices(d)
    np.testing.assert_allclose(about_zero.second, of_clusters[:, i, j], rtol=1e-7)
    if lacking:
        unseen = np.einsum("nj,nde->jde", (~seen).astype(float), second)
        np.testing.assert_allclose(stats.unseen.second, unseen, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(stats.unseen.count, (~seen).sum(axis=0))


def test_rows_complete_or_not_are_read_alike(has_missing):
    """The two routes agree on complete rows, also in what they sum."""
    case = case_of("procrustes", has_missing)
    reading = case.model.prepare(case.after(2))
    X = filled(has_missing)
    pad = np.vstack([X, np.full((1, D), np.nan)])
    whole = case.model.expect(reading, Block(X), RowKeys(0))
    lone = case.model.expect(reading, Block(pad, complete=False), RowKeys(0))
    assert lone.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-12)

    U = reading.components.frame.enter(X)
    by_row = incomplete_scores(U, reading.components)[0]
    np.testing.assert_allclose(
        by_row, case.model.family.log_density(Block(X), reading.components), rtol=1e-10
    )


def test_a_column_that_nobody_sees_counts_for_nothing(has_missing):
    case = case_of("procrustes", has_missing)
    params = case.after(2)
    weights, old = params.weights, params.components
    left, lengths, right = np.linalg.svd(np.delete(old.axes, 4, axis=0), full_matrices=False)
    turn = (right.T * lengths) @ right
    own = old.clusters
    rest = ProjectionParams(
        replace(old.frame, origin=old.frame.origin[:4], scale=old.frame.scale[:4]),
        left @ right,
        old.offset[:4],
        old.noise,
        GaussianParams(own.frame, own.means @ turn, turn @ own.scatter @ turn),
    )
    reduced = ProjectedMixture(K, replace(case.model.family, plane=None))
    laws.missing_column(replace(case, rtol=1e-8), params, reduced, MixtureParams(weights, rest), 4)


def test_components_of_some_columns_given_others_are_those_of_dense_conditioning():
    case = case_of("procrustes", clustered_table(120, D, 3, seed=1))
    params = case.after(3)
    means, covariances = dense(params.components)
    for known in (np.array([0]), np.array([1, 3]), np.array([0, 1, 2, 4])):
        values = case.X[7, known]
        rest = np.setdiff1d(np.arange(D), known)
        found = case.model.condition(params, known, values)
        logs = np.log(params.weights).copy()
        got_means, got_covariances = dense(found.components)
        for k in range(K):
            C = covariances[k]
            A = C[np.ix_(known, known)]
            gain = C[np.ix_(rest, known)] @ np.linalg.inv(A)
            logs[k] += multivariate_normal(means[k, known], A).logpdf(values)
            wanted = means[k, rest] + gain @ (values - means[k, known])
            np.testing.assert_allclose(got_means[k], wanted, rtol=1e-7)
            left = C[np.ix_(rest, rest)] - gain @ C[np.ix_(known, rest)]
            np.testing.assert_allclose(got_covariances[k], left, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.weights, softmax(logs[None])[1][0], rtol=1e-7)


@pytest.mark.parametrize("kind", ["procrustes", "vb"])
def test_missing_entries_are_filled_with_their_expectation(kind, has_missing, rng):
    case = case_of(kind, has_missing)
    params = point(case, case.after(3))
    model = ProjectedMixture(K, case.model.family)
    found = model.impute(model.prepare(params), case.block, RowKeys(0), draw=False)
    means, covariances = dense(params.components)
    _, resp = softmax(dense_log_joint(params, case.X))
    for n in range(0, 150, 10):
        x = case.X[n]
        shown, M = np.flatnonzero(~np.isnan(x)), np.flatnonzero(np.isnan(x))
        wanted = x.copy()
        if M.size:
            guesses = [
                m[M]
                + C[np.ix_(M, shown)] @ np.linalg.solve(C[np.ix_(shown, shown)], (x - m)[shown])
                for m, C in zip(means, covariances, strict=True)
            ]
            wanted[M] = resp[n] @ guesses
        np.testing.assert_allclose(found[n], wanted, rtol=1e-7)
    draws = np.stack(
        [model.impute(model.prepare(params), case.block, RowKeys(s), draw=True) for s in range(300)]
    )
    error = draws.std(axis=0) / np.sqrt(300)
    assert (np.abs(draws.mean(axis=0) - found) <= 6 * error + 1e-9).all()


# ------------------------------------------------ the M step of the plane


def _sums(rng, lacking: bool) -> PlaneSums:
    """The sums of rows with latents, of which some entries are not seen."""
    n, columns = 40, 6
    X, Z = rng.normal(size=(n, columns)), rng.normal(size=(n, 2)) @ np.diag([2.0, 1.0]) + 1
    seen = rng.random((n, columns)) > (0.4 if lacking else -1)
    each = Z[:, :, None] * Z[:, None, :] + 0.1 * np.eye(2)
    hidden = (~seen).astype(float)
    unseen = Latents(hidden.sum(0), hidden.T @ Z, np.einsum("nj,nde->jde", hidden, each))
    if not lacking:
        unseen = Latents(*(part[:0] for part in (unseen.count, unseen.first, unseen.second)))
    Y = X * seen
    everyone = Latents(float(n), Z.sum(0), each.sum(0))
    return PlaneSums(seen.sum(), Y.sum(0), float((Y**2).sum()), Y.T @ Z, everyone, unseen)


@pytest.mark.parametrize("lacking", [False, True])
def test_no_other_plane_leaves_fewer_squares(rng, lacking):
    sums = _sums(rng, lacking)
    start = polar(rng.normal(size=(6, 2)))[0]
    W, c = PLANE_UPDATES["procrustes"](sums, start, np.zeros(6))
    best = sums.squares(W, c)
    for _ in range(200):
        step = 0.05 * rng.normal(size=W.shape)
        assert sums.squares(polar(W + step)[0], c + 0.05 * rng.normal(size=6)) > best - 1e-6
    A, c = PLANE_UPDATES["regress"](sums, start, np.zeros(6))
    least = sums.squares(A, c)
    assert least < best
    for _ in range(200):
        other = A + 0.01 * rng.normal(size=A.shape), c + 0.01 * rng.normal(size=6)
        assert sums.squares(*other) > least


def test_filling_what_is_missing_never_adds_squares(rng, monkeypatch):
    """Each repetition alone, from planes far from the best."""
    monkeypatch.setattr("mixfold.families.projection.plane._REPEATS", 1)
    for _ in range(50):
        sums = _sums(rng, True)
        W, c = polar(rng.normal(size=(6, 2)))[0], rng.normal(size=6)
        for _ in range(5):
            before = sums.squares(W, c)
            W, c = PLANE_UPDATES["procrustes"](sums, W, c)
            assert sums.squares(W, c) <= before + 1e-9


@pytest.mark.parametrize("lacking", [False, True])
@pytest.mark.parametrize("update", [*PLANE_UPDATES])
def test_both_updates_raise_the_likelihood_to_a_stationary_point(rng, update, lacking):
    """Finite differences of the likelihood vanish where the steps end."""
    z = np.r_[rng.normal(-3, 1, 150), rng.normal(3, 0.7, 150)][:, None]
    X = z @ np.array([[1.0, 2.0, -1.0]]) + rng.normal(size=(300, 3))
    if lacking:
        X[rng.random(X.shape) < 0.2] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
    case = case_of(update, X, n=2, size=1)
    model = case.model
    plan = Plan(tol=1e-12, max_iter=5000, acceleration=ACCELERATIONS["squarem"])
    params = fit(model, open_source(X), Serial(), plan).params
    vector = model.coordinates(params)
    slope = [
        case.objective(model.from_coordinates(params, vector + e))
        - case.objective(model.from_coordinates(params, vector - e))
        for e in 1e-4 * np.eye(len(vector))
    ]
    assert np.abs(slope).max() / 2e-4 < 1e-3


def test_the_density_does_not_depend_on_the_coordinates_of_the_latents(rng):
    case = case_of("procrustes")
    params = case.after(3)
    B, shift = rng.normal(size=(d, d)) + 2 * np.eye(d), rng.normal(size=d)
    old = params.components
    own, inverse = old.clusters, np.linalg.inv(B)
    moved = GaussianParams(own.frame, own.means @ B.T + shift, B @ own.scatter @ B.T)
    turned = orthonormal(
        replace(
            old,
            axes=old.axes @ inverse,
            offset=old.offset - old.axes @ inverse @ shift,
            clusters=moved,
        )
    )
    turned = replace(params, components=turned)
    assert case.objective(turned) == pytest.approx(case.objective(params), rel=1e-11)
    one, other = canonical(params), canonical(turned)
    for name in ("mean", "loadings", "means", "covariances", "noise"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-7, atol=1e-8)
    spread = np.einsum("k,kde->de", one.weights, one.covariances)
    spread += np.einsum("k,kd,ke->de", one.weights, one.means, one.means)
    np.testing.assert_allclose(spread, np.eye(d), atol=1e-10)
    np.testing.assert_allclose(one.weights @ one.means, 0, atol=1e-12)
    gram = one.loadings.T @ one.loadings
    assert gram[0, 0] > gram[1, 1] and abs(gram[0, 1]) < 1e-9 * gram[0, 0]


# ------------------------------------------------ the bound


@pytest.mark.parametrize("lacking", [False, True])
def test_the_bound_is_its_definition(rng, lacking):
    """E_q[ln p(x, z, c, parameters) - ln q], the latents and parameters drawn from q."""
    X = clustered_table(40, D, 3, seed=3)
    if lacking:
        X[rng.random(X.shape) < 0.25] = np.nan
        X[0] = 1.0
    case = case_of("vb", X)
    params = case.after(4)
    components, q, prior = params.components, params.components.clusters, params.prior
    a, noise, scale = params.mixing.concentration, components.noise, components.frame.scale[0]
    U = components.frame.enter(X) - components.offset
    reading = case.model.prepare(params)
    _, resp = softmax(case.model.log_joint(reading, case.block))
    # q(z | row, cluster) by brute force, from the expected precision and mean of the cluster
    means, covariances = np.empty((len(X), K, d)), np.empty((len(X), K, d, d))
    away, seen = np.empty((len(X), K)), (~np.isnan(X)).sum(axis=1)
    for n, u in enumerate(U):
        shown = np.flatnonzero(~np.isnan(u))
        W = components.axes[shown]
        for k in range(K):
            precision = np.linalg.inv(q.scatter[k])
            C = np.linalg.inv(precision + W.T @ W / noise)
            z = C @ (precision @ q.means[k] + W.T @ u[shown] / noise)
            means[n, k], covariances[n, k] = z, C
            away[n, k] = ((u[shown] - W @ z) ** 2).sum() + np.trace(W @ C @ W.T)
    rows = -0.5 * (seen[:, None] * np.log(2 * np.pi * noise) + away / noise)
    rows -= seen[:, None] * np.log(scale)
    entropy = 0.5 * (d * (1 + np.log(2 * np.pi)) + np.linalg.slogdet(covariances)[1])
    fixed = rows + entropy - np.log(np.maximum(resp, 1e-300))
    draws = []
    for _ in range(400):
        log_pi = np.log(rng.dirichlet(a))
        total = np.sum(resp * fixed)
        for k in range(K):
            W0, W = np.linalg.inv(prior.scatter), np.linalg.inv(q.scatter[k] * q.degrees[k])
            L = wishart.rvs(q.degrees[k], W, random_state=rng)
            m = rng.multivariate_normal(q.means[k], np.linalg.inv(q.precision[k] * L))
            total += wishart.logpdf(L, float(prior.degrees), W0)
            total -= wishart.logpdf(L, q.degrees[k], W)
            total += multivariate_normal.logpdf(m, prior.mean, np.linalg.inv(prior.precision * L))
            total -= multivariate_normal.logpdf(m, q.means[k], np.linalg.inv(q.precision[k] * L))
            z = means[:, k]
            quad = np.einsum("nd,de,ne->n", z - m, L, z - m)
            quad += np.einsum("de,ned->n", L, covariances[:, k])
            inside = 0.5 * (np.linalg.slogdet(L)[1] - d * np.log(2 * np.pi) - quad)
            total += resp[:, k] @ (log_pi[k] + inside)
        draws.append(total + _dirichlet(log_pi, np.full(K, 1 / K)) - _dirichlet(log_pi, a))
    error = np.std(draws) / np.sqrt(len(draws))
    assert error < 0.5
    assert case.objective(params) == pytest.approx(np.mean(draws), abs=6 * error)


def _dirichlet(log_pi, a):
    return gammaln(a.sum()) - gammaln(a).sum() + (a - 1) @ log_pi


def test_the_bound_is_below_the_evidence(rng):
    """One column, one latent: with axes, offset and noise given, few rows are summed in full."""
    X = np.array([[-2.1], [-1.9], [2.0], [2.3]])
    case = case_of("vb", X, n=2, size=1)
    prior = replace(case.model.prior, scatter=np.array([[1.0 / X.var()]]))
    model = replace(case.model, prior=prior, mixing=SymmetricDirichlet(1.0))
    case = replace(case, model=model)
    params = case.after(50)
    components = params.components
    scale, noise = components.frame.scale[0], components.noise
    u = components.frame.enter(X)[:, 0] - components.offset[0]
    t = u * components.axes[0, 0]
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


def test_rows_with_priors_alone_are_drawn_from_the_predictive_law(rng):
    """A Student law of the latents, with noise of the plane: its covariance."""
    case = case_of("vb")
    params = case.after(4)
    rows, labels = case.model.sample(params, 60_000, np.random.default_rng(0))
    q = params.components.clusters
    W, mu, noise = plane(params.components)
    for k in range(K):
        own = rows[labels == k]
        nu = q.degrees[k] - d + 1
        wide = q.degrees[k] / (nu - 2) * (1 + 1 / q.precision[k])
        wanted = wide * W @ q.scatter[k] @ W.T + noise * np.eye(D)
        np.testing.assert_allclose(np.cov(own.T), wanted, atol=0.1 * np.abs(wanted).max())
        np.testing.assert_allclose(own.mean(axis=0), mu + W @ q.means[k], atol=0.15)


# ------------------------------------------------ what is refused, and corners


def test_priors_need_orthonormal_axes():
    with pytest.raises(ValueError, match="procrustes"):
        BayesProjectedGaussian(update=PLANE_UPDATES["regress"])


def test_a_prior_with_too_few_degrees_is_refused():
    start = case_of("vb").model.family.plane
    with pytest.raises(ValueError, match=r"must exceed n_components - 1 = 1, got 1"):
        cluster_prior(start, 2, degrees=1.0)


def test_a_start_needs_a_plane():
    case = case_of("vb")
    model = replace(case.model, family=replace(case.model.family, plane=None))
    with pytest.raises(ValueError, match="needs a plane"):
        replace(case, model=model).start()


def test_missing_entries_that_were_not_announced_are_refused():
    case = case_of("procrustes")
    X = case.X.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="told that there are none"):
        case.model.expect(case.model.prepare(case.start()), Block(X, complete=False), RowKeys(0))


@pytest.mark.parametrize("part", ["evidence", "average", "log_predictive"])
def test_what_has_no_closed_form_is_refused(part):
    family = BayesProjectedGaussian(size=2)
    n = {"evidence": 3, "average": 2, "log_predictive": 2}[part]
    with pytest.raises(TypeError):
        getattr(family, part)(*[None] * n)


def test_sparse_rows_give_what_dense_ones_give(rng):
    X = sparse.random_array((80, 15), density=0.3, rng=rng, format="csr")
    params = case_of("vb", X).after(2)
    thin, full = case_of("vb", X), case_of("vb", X.toarray())
    one, other = thin.stats(params), full.stats(params)
    for name in ("log_likelihood", "entropy"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)
    for name in ("first", "cross", "square"):
        np.testing.assert_allclose(
            getattr(one.components, name), getattr(other.components, name), rtol=1e-9, atol=1e-9
        )


def test_small_noise_far_from_zero_keeps_its_digits(rng):
    """The residual route: lengths in units of the noise whose differences would be rounding."""
    Z = rng.normal(size=(200, 1)) + 4 * (np.arange(200) % 2)[:, None]
    X = 1e3 * Z @ np.ones((1, 4)) + 1e-2 * rng.normal(size=(200, 4)) + 1e8
    for lacking in (False, True):
        Y = X.copy()
        if lacking:
            Y[np.arange(0, 200, 5), rng.integers(0, 4, 40)] = np.nan
        case = case_of("procrustes", Y, n=2, size=1, floor=1e-14)
        if lacking:  # the start fills with means, which are far off: begin at the complete rows
            begun = case_of("procrustes", X, n=2, size=1, floor=1e-14).model.family.plane
            family = replace(case.model.family, plane=begun)
            case = replace(case, model=replace(case.model, family=family))
        params = case.after(30)
        assert np.sqrt(plane(params.components)[2]) == pytest.approx(1e-2, rel=0.1)


def test_a_cluster_may_have_no_spread(rng):
    """A singular covariance is no harm, for noise is added to it; so no floor is reported."""
    z = np.where(np.arange(200) < 100, 0.0, rng.normal(6, 2, 200))[:, None]
    X = z @ np.array([[1.0, 1.0, 0.0, 1.0]]) + 0.3 * rng.normal(size=(200, 4))
    case = case_of("procrustes", X, n=2, size=1)
    params = case.after(300)
    assert params.components.clusters.scatter.min() < 0.05 * params.components.noise
    assert not case.update(params, case.stats(params)).events
    model, (rows, labels) = case.model, case.model.sample(params, 50, rng)
    assert np.isfinite(model.log_joint(model.prepare(params), Block(rows))).all()
    rows[::2, 1] = np.nan
    logs = model.log_joint(model.prepare(params), Block(rows, complete=False))
    np.testing.assert_allclose(logs, dense_log_joint(params, rows), rtol=1e-8)
    assert set(labels) == {0, 1}


def test_a_component_without_rows_is_moved_to_rows_that_are_badly_explained():
    case = case_of("procrustes")
    params = case.after(2)
    own = params.components.clusters
    means = own.means.copy()
    means[2] += 1e3
    lost = replace(params.components, clusters=replace(own, means=means))
    params = replace(params, components=lost)
    update = case.update(params, case.stats(params))
    assert [event.kind for event in update.events] == ["reseed"]
    assert np.abs(update.params.components.clusters.means[2]).max() < 100


def test_parameters_keep_their_meaning_in_another_frame():
    for kind in ("procrustes", "vb"):
        case = case_of(kind)
        params = case.after(2)
        model, family = case.model, case.model.family
        start = family.plane
        frame = replace(start.frame, origin=start.frame.origin + 3, scale=start.frame.scale * 5)
        family = replace(family, plane=replace(start, frame=frame))
        other = replace(model, family=family).change_frame(params, case.pilot())
        assert other.components.frame is frame
        assert case.objective(other) == pytest.approx(case.objective(params), rel=1e-9)


# ------------------------------------------------ starts


def test_the_prior_of_a_cluster_is_its_part_of_the_space():
    start = case_of("vb", clustered_table(120, D, 3, seed=1), size=3).model.family.plane
    start = replace(start, variance=2.0, frame=replace(start.frame, scale=np.full(D, 5.0)))
    whole = cluster_prior(start, 8)
    np.testing.assert_allclose(whole.scatter, 2.0 * 8 ** (-2 / 3) * np.eye(3))
    assert whole.degrees == 5
    # what is given is in units of the data, of which the latents' unit is the scale of the frame
    given = cluster_prior(start, 8, scatter=50.0)
    np.testing.assert_allclose(given.scatter, 2.0 * np.eye(3))


def test_the_first_plane_has_the_noise_of_ppca_in_its_own_units() -> None:
    """What a plane leaves over per column, relative to the mean variance of the columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) * [5.0, 3.0, 1.0, 0.5] + 7
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    for unit in (1.0, 100.0):
        source = open_source(X * unit)
        found = find_plane(source, ThreadExecutor(1), 2, 1e-6, np.random.default_rng(0))
        assert found.noise == pytest.approx(values[:2].mean() / values.mean())
        # and so has that of a fitted PPCA with the same parameters
        noise = values[:2].mean()
        loadings = vectors[:, 2:] * np.sqrt(values[2:] - noise)
        own = FactorParams(
            replace(found.frame, origin=np.zeros(4), scale=np.ones(4) * unit),
            X.mean(axis=0)[None],
            loadings[None],
            np.full((1, 4), noise),
        )
        other = plane_of_factors(own, 1e-6)
        assert other.noise == pytest.approx(found.noise)
        assert other.variance == pytest.approx(found.variance)
        np.testing.assert_allclose(other.frame.scale, found.frame.scale)
        np.testing.assert_allclose(other.axes @ other.axes.T, found.axes @ found.axes.T, atol=1e-6)


def test_scores_of_incomplete_rows_start_at_their_expectation():
    case = case_of("procrustes", clustered_table(120, D, 3, seed=1))
    family = case.model.family
    start = family.plane
    X = case.X.copy()
    X[4, 1] = np.nan
    shown = [0, 2, 3, 4]
    W = start.axes[shown]
    u = (start.frame.enter(case.X) - start.offset)[4, shown]
    wanted = np.linalg.solve(W.T @ W + start.noise / start.variance * np.eye(d), W.T @ u)
    scores = family.start_rows(X)
    np.testing.assert_allclose(scores[4], wanted, rtol=1e-7)
    whole = rows_about(case.X, start.frame, start.offset).onto(start.axes)
    np.testing.assert_allclose(np.delete(scores, 4, 0), np.delete(whole, 4, 0), atol=1e-8)


def test_starts_try_fewer_clusters_where_the_number_is_learned(rng):
    assert start_sizes(5, learned=False) == (5,) * 12
    sizes = start_sizes(5, learned=True)
    assert sizes[:12] == (5,) * 12 and sizes[12:] == (4, 4, 4, 3, 3, 3, 2, 2, 2, 1, 1, 1)

    rule = FewerClusters(KMeansStart(), (4, 2))
    U, weight = rng.normal(size=(30, 2)), np.ones(30)
    assert (rule(Sample(U, weight, None), 4, rng, 0).sum(axis=0) > 0).sum() == 4
    shares = rule(Sample(U, weight, None), 4, rng, 1)
    assert shares.shape == (30, 4) and (shares.sum(axis=0) > 0).tolist() == [
        True,
        True,
        False,
        False,
    ]
    labels = np.where(np.arange(30) < 4, np.arange(30), -1)
    assert (rule(Sample(U, weight, labels), 4, rng, 1).sum(axis=0) > 0).all()
