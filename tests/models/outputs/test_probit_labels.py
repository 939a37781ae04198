"""Labels by a probit of the latents: likelihoods, gradients, invariances, EM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from mixfold.contracts import Array, Block, Context
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.sources import open_source
from mixfold.families.factor import FactorFamily, FactorParams
from mixfold.families.factor.noise import DiagonalNoise, IsotropicNoise
from mixfold.families.factor.records import Latents
from mixfold.math.frame import plain_frame
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.outputs import label_predictions
from mixfold.models.outputs.gradient_ascent import GradientModel, without_stage
from mixfold.models.outputs.label_starts import LABEL_STARTS
from mixfold.models.outputs.labelled import LabelledModel, free_latents
from mixfold.models.outputs.model import SupervisedParams
from mixfold.models.outputs.outputs import latent_prior
from mixfold.models.outputs.probit_labels import ProbitLabels, ProbitParams
from mixfold.testing import Case, laws

D = 4


def family(d: int = 2, isotropic: bool = True, **more: Any) -> FactorFamily:
    noise = IsotropicNoise() if isotropic else DiagonalNoise()
    return FactorFamily(factors=(d,), noise=noise, expand=False, **more)


def model_of(K: int, d: int = 2, labels: ProbitLabels | None = None, **more: Any) -> LabelledModel:
    labels = labels or ProbitLabels()
    return LabelledModel(K, family(d, **more), labels, LABEL_STARTS["balanced"])


def params_of(K: int, d: int, n_scores: int = 1, own: bool = False, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    components = FactorParams(
        plain_frame(D),
        rng.normal(size=(K, D)),
        rng.normal(size=(K, D, d)),
        np.repeat(0.3 + rng.random((K, 1)), D, axis=1),
    )
    lead = (K if own else 1, n_scores)
    outputs = ProbitParams(1.5 * rng.normal(size=(*lead, d)), rng.normal(size=lead))
    return SupervisedParams(rng.dirichlet(5 * np.ones(K)), components, outputs)


def table(n: int = 120, n_classes: int = 2, seed: int = 1) -> tuple[Array, Array]:
    """Two clusters, each of which holds all classes; a third of the rows has no label."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    k = rng.integers(2, size=n)
    W = rng.normal(size=(2, 2, D))
    X = np.einsum("nd,ndj->nj", z, W[k]) + 3.0 * k[:, None] + 0.3 * rng.normal(size=(n, D))
    angle = np.arctan2(z[:, 1] + 0.2 * rng.normal(size=n), z[:, 0])
    y = np.floor((angle + np.pi) / (2 * np.pi) * n_classes).astype(np.int64) % n_classes
    y[::3] = -1
    return X, y


def objective(model: LabelledModel, params: Any, X: Any, y: Array, **sides: Any) -> float:
    case = Case(model, X, y=y, **sides)
    return model.objective(params, case.stats(params))


def fitted(model: Any, X: Any, y: Array, **plan: Any) -> Fit:
    source = open_source(X, y=y)
    settings: dict[str, Any] = {"n_candidates": 1, "max_iter": 60, **plan}
    return fit(model, source, ThreadExecutor(1), Plan(**settings))


# ------------------------------------------------ likelihoods


def _integrand(z: float, x: Array, s: int, params: Any, k: int) -> float:
    components, outputs = params.components, params.outputs
    mean = components.means[k] + components.loadings[k, :, 0] * z
    density = norm.pdf(x, mean, np.sqrt(components.noise[k])).prod()
    w = outputs.weights[k % len(outputs.weights), 0, 0]
    b = outputs.biases[k % len(outputs.biases), 0]
    return float(norm.pdf(z) * density * norm.cdf(s * (w * z + b)))


@pytest.mark.parametrize(("K", "own"), [(1, False), (2, False), (2, True)])
def test_the_joint_likelihood_is_the_integral_over_the_latent(K: int, own: bool) -> None:
    params = params_of(K, 1, own=own)
    X = np.random.default_rng(3).normal(size=(6, D))
    y = np.array([0, 1, 0, 1, 1, -1])
    model = model_of(K, 1, ProbitLabels(own=own))
    expected = []
    for x, label in zip(X, y, strict=True):
        signs = (1, -1) if label < 0 else (2 * label - 1,)
        parts = [
            params.weights[k] * quad(_integrand, -12, 12, (x, s, params, k), epsabs=0)[0]
            for k in range(K)
            for s in signs
        ]
        expected.append(np.log(sum(parts)))
    np.testing.assert_allclose(objective(model, params, X, y), sum(expected), rtol=1e-8)
    each = label_predictions.log_density(model, model.prepare(params), Block(X, y=y))
    np.testing.assert_allclose(each, expected, rtol=1e-8)


def test_the_posterior_of_labelled_rows_is_that_of_a_grid() -> None:
    """Mean and covariance of two latents given x and y, by sums over a fine grid."""
    params, model = params_of(1, 2), model_of(1)
    X = np.random.default_rng(4).normal(size=(2, D))
    y = np.array([0, 1])
    _, latent = model.latents(model.prepare(params), Block(X))
    replicate = model.labels.replicates(y, latent, params.outputs)[0]
    axis = np.linspace(-6, 6, 401)
    Z = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    components, outputs = params.components, params.outputs
    for n, (x, label) in enumerate(zip(X, y, strict=True)):
        mean = components.means[0] + Z @ components.loadings[0].T
        log_p = norm.logpdf(x, mean, np.sqrt(components.noise[0])).sum(axis=1)
        log_p += norm.logpdf(Z).sum(axis=1)
        score = Z @ outputs.weights[0, 0] + outputs.biases[0, 0]
        log_p += norm.logcdf((2 * label - 1) * score)
        share = np.exp(log_p - logsumexp(log_p))
        np.testing.assert_allclose(replicate.latent.means[n, 0], share @ Z, atol=1e-6)
        centred = Z - share @ Z
        covariance = (centred * share[:, None]).T @ centred
        np.testing.assert_allclose(replicate.latent.covariances[n, 0], covariance, atol=1e-6)


def test_both_labels_together_are_the_row_alone() -> None:
    params, model = params_of(2, 2), model_of(2)
    X = np.random.default_rng(5).normal(size=(9, D))
    reading = model.prepare(params)
    logs = [
        label_predictions.log_density(model, reading, Block(X, y=np.full(9, label)))
        for label in (0, 1, -1)
    ]
    np.testing.assert_allclose(np.logaddexp(logs[0], logs[1]), logs[2], rtol=1e-12)
    dense = [
        multivariate_normal(m, W @ W.T + np.diag(v)).logpdf(X)
        for m, W, v in zip(
            params.components.means, params.components.loadings, params.components.noise,
            strict=True,
        )
    ]  # fmt: skip
    expected = logsumexp(np.stack(dense, axis=1) + np.log(params.weights), axis=1)
    np.testing.assert_allclose(logs[2], expected, rtol=1e-10)


class Composite(ProbitLabels):
    """Two classes with a score each, as more classes have."""

    @property
    def n_scores(self) -> int:
        return 2

    def signs(self, y: Array) -> Array:
        return np.where(y[:, None] == np.arange(2), 1.0, -1.0)


def test_two_scores_that_are_opposite_are_one() -> None:
    params = params_of(2, 2)
    X, y = table()
    outputs = params.outputs
    both = ProbitParams(
        np.concatenate([-outputs.weights, outputs.weights], axis=1),
        np.concatenate([-outputs.biases, outputs.biases], axis=1),
    )
    one = model_of(2)
    two = replace(one, outputs=Composite())
    a = Case(one, X, y=y).stats(params)
    b = Case(two, X, y=y).stats(replace(params, outputs=both))
    np.testing.assert_allclose(b.log_likelihood, a.log_likelihood, rtol=1e-12)
    np.testing.assert_allclose(b.components.cross, a.components.cross, rtol=1e-9, atol=1e-9)
    stepped = two.labels.update(b.outputs, both), one.labels.update(a.outputs, outputs)
    np.testing.assert_allclose(stepped[0].weights[:, 1], stepped[1].weights[:, 0], rtol=1e-9)
    np.testing.assert_allclose(stepped[0].weights[:, 0], -stepped[1].weights[:, 0], rtol=1e-9)


def test_without_labels_or_trade_off_it_is_a_mixture_of_ppca() -> None:
    params = params_of(2, 2)
    X, y = table()
    plain = Mixture(2, family())
    mixture = Case(plain, X)
    expected = mixture.stats(label_predictions.joint_posterior.take_columns(params)).log_likelihood
    assert objective(model_of(2), params, X, np.full(len(X), -1)) == pytest.approx(expected)
    none = model_of(2, labels=ProbitLabels(tradeoff=0.0))
    assert objective(none, params, X, y) == pytest.approx(expected)


# ------------------------------------------------ gradients


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_of_the_classifier_is_that_of_the_objective(n_classes: int, own: bool) -> None:
    X, y = table(60, n_classes)
    labels = ProbitLabels(n_classes, 0.7, 0.05, own)
    model = model_of(2, labels=labels)
    params = params_of(2, 2, labels.n_scores, own)
    case = Case(model, X, y=y, weight=np.random.default_rng(0).random(len(X)))
    slope = labels.gradient(params.outputs, case.stats(params).outputs)

    def value(outputs: ProbitParams) -> float:
        moved = replace(params, outputs=outputs)
        return model.objective(moved, case.stats(moved))

    h = 1e-5
    for name in ("weights", "biases"):
        base = getattr(params.outputs, name)
        for at in np.ndindex(base.shape):
            step = np.zeros_like(base)
            step[at] = h
            up = value(replace(params.outputs, **{name: base + step}))
            down = value(replace(params.outputs, **{name: base - step}))
            assert getattr(slope, name)[at] == pytest.approx((up - down) / (2 * h), rel=1e-5)


def test_the_gradient_is_the_one_of_the_source() -> None:
    """g_w = sum r s lam (m / tau - q R w / tau^3), g_b = sum r s lam / tau."""
    X, y = table(40)
    y = np.abs(y)
    model, params = model_of(1), params_of(1, 2)
    _, latent = model.latents(model.prepare(params), Block(X))
    w, b = params.outputs.weights[0, 0], params.outputs.biases[0, 0]
    m, R = latent.means[:, 0], latent.covariances[0, 0]
    tau, q, s = np.sqrt(1 + w @ R @ w), m @ w + b, 2 * y - 1
    lam = norm.pdf(q / tau) / norm.cdf(s * q / tau)
    g_w = (s * lam) @ (m / tau - q[:, None] * (R @ w) / tau**3)
    slope = model.labels.gradient(params.outputs, Case(model, X, y=y).stats(params).outputs)
    np.testing.assert_allclose(slope.weights[0, 0], g_w, rtol=1e-9)
    np.testing.assert_allclose(slope.biases[0, 0], (s * lam).sum() / tau, rtol=1e-9)


# ------------------------------------------------ steps


@pytest.mark.parametrize(
    ("labels", "has_missing"),
    [
        (ProbitLabels(), False),
        (ProbitLabels(tradeoff=0.3, ridge=5.0), True),
        (ProbitLabels(3, ridge=2.0), False),
        (ProbitLabels(3, ridge=2.0, own=True), True),
    ],
    ids=str,
)
def test_laws_of_a_model_with_labels(labels: ProbitLabels, has_missing: bool) -> None:
    X, y = table(90, labels.n_classes)
    if has_missing:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    case = Case(
        model_of(2, labels=labels, has_missing=has_missing, isotropic=not has_missing), X, y=y
    )
    laws.check_model(case)


def test_sparse_rows_are_read_as_dense_ones() -> None:
    X, y = table()
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    params, model = params_of(2, 2), model_of(2)
    dense = Case(model, X, y=y).stats(params)
    thin = Case(model, sparse.csr_matrix(X), y=y).stats(params)
    np.testing.assert_allclose(thin.log_likelihood, dense.log_likelihood, rtol=1e-10)
    np.testing.assert_allclose(thin.components.cross, dense.components.cross, atol=1e-9)
    np.testing.assert_allclose(thin.outputs.gram, dense.outputs.gram, atol=1e-9)


def test_the_expansion_with_a_ridge_is_the_best_covariance_of_the_latents() -> None:
    """No other V gains more: -n/2 (ln|V| + tr V^-1 Vh) - ridge/2 sum_c w_c'V w_c."""
    from mixfold.models.outputs.labelled import shrinking_root

    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    given, n, ridge = A @ A.T, 20.0, 4.0
    weights = rng.normal(size=(1, 2, 3))
    root = np.linalg.cholesky(given)[None]
    best = root @ shrinking_root(
        ProbitParams(weights, np.zeros((1, 2))), root, np.array([n]), ridge
    )

    def value(V: Array) -> float:
        fit = np.linalg.slogdet(V)[1] + np.trace(np.linalg.solve(V, given))
        return float(
            -0.5 * n * fit - 0.5 * ridge * np.einsum("cd,de,ce", weights[0], V, weights[0])
        )

    V = (best @ np.swapaxes(best, 1, 2))[0]
    for _ in range(20):
        E = rng.normal(size=(3, 3))
        for size in (1e-3, -1e-3, 0.1):
            assert value(V) > value(V + size * (E @ E.T))
    assert value(V) > value(given)
    np.testing.assert_allclose(
        shrinking_root(ProbitParams(weights, np.zeros((1, 2))), root, np.array([n]), 0.0)[0],
        np.eye(3),
        atol=1e-12,
    )


def test_what_no_score_sees_is_free_in_each_component() -> None:
    """After a step the latents have mean 0 and covariance I under the best law for their sums."""
    rng = np.random.default_rng(0)
    z, r = rng.normal(size=(2, 50, 3)) @ rng.normal(size=(3, 3)) + 0.3, rng.random((2, 50))
    sums = Latents(
        r.sum(axis=1), np.einsum("kn,knd->kd", r, z), np.einsum("kn,knd,kne->kde", r, z, z)
    )
    outputs = ProbitParams(rng.normal(size=(1, 1, 3)), np.zeros((1, 1)))
    means, roots = free_latents(sums, outputs, 0.0)
    seen = np.einsum("d,kde->ke", outputs.weights[0, 0], roots)
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-12)
    np.testing.assert_allclose(*(means @ outputs.weights[0, 0]), atol=1e-12)

    def value(means: Array, roots: Array) -> float:
        laws = [multivariate_normal(m, R @ R.T) for m, R in zip(means, roots, strict=True)]
        return float(sum(w @ law.logpdf(rows) for w, law, rows in zip(r, laws, z, strict=True)))

    best = value(means, roots)
    mean, root = latent_prior(sums, True)
    assert best > value(np.repeat(mean, 2, axis=0), np.repeat(root, 2, axis=0)) + 1
    # of all laws under which the scores are alike: turns and moves across them only lose
    w = outputs.weights[0, 0] / np.linalg.norm(outputs.weights[0, 0])
    off = np.eye(3) - np.outer(w, w)
    for _ in range(10):
        push = 0.05 * rng.normal(size=(2, 3, 3))
        assert value(means, roots + off @ push @ roots) < best
        assert value(means + 0.05 * rng.normal(size=(2, 3)) @ off, roots) < best


class OneLaw(LabelledModel):
    """All latents have one law in all components, also those that no score sees."""

    def _latent_prior(self, params: Any, stats: Any) -> tuple[Array, Array]:
        return latent_prior(stats.components.rows, True)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_little_noise_in_many_columns_does_not_slow_the_steps(n_classes: int) -> None:
    """Axes that the shared classifier does not see found their lengths at the rate of the noise
    over the signal: with many columns a fit crept, far below where it could be."""
    rng = np.random.default_rng(0)
    n, size = 90, 60
    z, k = rng.normal(size=(n, 4)), rng.integers(3, size=n)
    W = rng.normal(size=(3, 4, size))
    X = np.einsum("nd,ndj->nj", z, W[k]) + 5.0 * rng.normal(size=(3, size))[k]
    X += 0.01 * rng.normal(size=X.shape)
    y = np.floor(n_classes * norm.cdf(z[:, 0] + 0.3 * rng.normal(size=n))).astype(np.int64)
    ends = []
    for kind in (LabelledModel, OneLaw):
        labels = ProbitLabels(n_classes, ridge=1e-2)
        model = kind(3, family(4), labels, LABEL_STARTS["balanced"])
        case = Case(model, X, y=y)
        params = case.start()
        lengths = np.array([0.3, 1.0, 4.0])[:, None, None] * np.array([1.0, 3.0, 0.5, 2.0])
        loadings = params.components.loadings * lengths
        params = replace(params, components=replace(params.components, loadings=loadings))
        values = []
        for step in range(30):
            stats = case.stats(params)
            values.append(model.objective(params, stats))
            params = case.update(params, stats, step).params
        assert (np.diff(values) >= -1e-9 * abs(values[-1])).all() or kind is OneLaw
        ends.append(values[-1])
    assert ends[0] > ends[1] + 100


@pytest.mark.parametrize("K", [1, 2])
def test_em_reaches_at_least_what_the_gradient_scheme_does(K: int) -> None:
    X, y = table(150)
    em = model_of(K, labels=ProbitLabels(ridge=0.1))
    slow = GradientModel(K, em.family, em.labels, em.start, expand=False)
    ours = fitted(em, X, y, max_iter=400, tol=1e-8)
    theirs = fitted(slow, X, y, max_iter=400)
    assert theirs.objective > theirs.trace[0]
    assert ours.objective >= theirs.objective - 1e-6 * len(X)


def test_the_gradient_scheme_never_keeps_a_fall_and_ends() -> None:
    X, y = table(100)
    model = GradientModel(
        1, family(), ProbitLabels(ridge=0.5), LABEL_STARTS["thesis"], expand=False
    )
    result = fitted(model, X, y, max_iter=3000)
    assert result.reason == "converged"
    assert (np.diff(result.trace) >= -1e-9).all()
    found = without_stage(result.params)
    assert type(found) is SupervisedParams
    assert objective(model, found, X, y) == pytest.approx(result.objective, rel=1e-12)
    stepped = model_of(1, labels=ProbitLabels(ridge=0.5))
    slope = stepped.labels.gradient(found.outputs, Case(stepped, X, y=y).stats(found).outputs)
    assert np.abs(slope.weights).max() < 0.02 * len(X)


def test_ascents_of_the_gradient_scheme_are_tentative_and_can_be_given_up() -> None:
    X, y = table(60)
    model = GradientModel(1, family(), ProbitLabels(), LABEL_STARTS["thesis"], expand=False)
    case = Case(model, X, y=y)
    start = case.start()
    context = Context(None, np.random.default_rng(0), length=0.5)
    params: Any = start
    for _ in range(model.em_steps):
        update = model.update(params, case.stats(params), context)
        assert update.length is None and update.params.outputs is start.outputs
        params = update.params
    stats = case.stats(params)
    ascent = model.update(params, stats, context)
    assert ascent.length == 0.5 and ascent.params.components is params.components
    shorter = model.update(params, stats, replace(context, length=0.25))
    step = ascent.params.outputs.weights - params.outputs.weights
    np.testing.assert_allclose(shorter.params.outputs.weights - params.outputs.weights, step / 2)
    # no ascent gains: the next cycle begins with a step of the components
    other: Any = model.update(params, stats, replace(context, length=0.0))
    assert other.length is None and other.params.stage == 1
    assert other.params.begun == model.objective(params, stats)
    begun = replace(params, begun=other.params.begun)
    assert model.update(begun, stats, replace(context, length=0.0)).params is begun


def test_floors_are_told_by_the_gradient_scheme() -> None:
    X, y = table(60)
    X = np.repeat(X[:2], 30, axis=0)  # two rows: no noise is left
    model = GradientModel(1, family(), ProbitLabels(), LABEL_STARTS["thesis"], expand=False)
    events = fitted(model, X, np.repeat(y[:2], 30), max_iter=40).events
    assert {event.kind for event in events} == {"floor"}
    assert all("floor" in event.message and event.component == 0 for event in events)


# ------------------------------------------------ invariances and counts


def test_common_turns_and_flipped_labels_change_nothing() -> None:
    X, y = table()
    model, params = model_of(2), params_of(2, 2)
    value = objective(model, params, X, y)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    turned = replace(
        params,
        components=replace(params.components, loadings=params.components.loadings @ Q),
        outputs=replace(params.outputs, weights=params.outputs.weights @ Q),
    )
    assert objective(model, turned, X, y) == pytest.approx(value, rel=1e-12)
    flipped = ProbitParams(-params.outputs.weights, -params.outputs.biases)
    other = np.where(y < 0, y, 1 - y)
    assert objective(model, replace(params, outputs=flipped), X, other) == pytest.approx(value)
    w = params.outputs.weights[0, 0] / np.linalg.norm(params.outputs.weights)
    mirror = 2 * np.outer(w, w) - np.eye(2)  # leaves w where it is
    loadings = params.components.loadings.copy()
    loadings[1] = loadings[1] @ mirror
    own = replace(params, components=replace(params.components, loadings=loadings))
    assert objective(model, own, X, y) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("own", [False, True])
def test_canonical_axes_do_not_depend_on_the_rotation(own: bool) -> None:
    X, y = table()
    model = model_of(2, 3, ProbitLabels(own=own))
    params = params_of(2, 3, own=own)
    found = label_predictions.canonical(model, params)
    assert objective(model, found, X, y) == pytest.approx(objective(model, params, X, y))
    np.testing.assert_allclose(found.outputs.weights[..., 1:], 0)
    assert (found.outputs.weights[..., 0] > 0).all()
    gram = np.swapaxes(found.components.loadings, 1, 2) @ found.components.loadings
    np.testing.assert_allclose(gram[:, 1, 2], 0, atol=1e-10)
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turned = replace(
        params,
        components=replace(params.components, loadings=params.components.loadings @ Q),
        outputs=replace(params.outputs, weights=params.outputs.weights @ Q),
    )
    again = label_predictions.canonical(model, turned)
    np.testing.assert_allclose(again.components.loadings, found.components.loadings, atol=1e-9)


@pytest.mark.parametrize(
    ("K", "d", "own"), [(1, 1, False), (2, 2, False), (1, 3, True), (2, 2, True)]
)
def test_free_parameters_are_the_rank_of_the_model(K: int, d: int, own: bool) -> None:
    """Derivatives of log p(x, y) at many rows span as many directions as there are parameters."""
    model = model_of(K, d, ProbitLabels(own=own))
    params = params_of(K, d, own=own)
    rng = np.random.default_rng(9)
    X = np.concatenate([rng.normal(size=(150, D)), 2 * rng.normal(size=(150, D))])
    y = rng.integers(2, size=300)
    at = model.coordinates(params)

    def values(vector: Array) -> Array:
        moved = model.from_coordinates(params, vector)
        return label_predictions.log_density(model, model.prepare(moved), Block(X, y=y))

    h = 1e-5
    jacobian = np.stack(
        [(values(at + h * e) - values(at - h * e)) / (2 * h) for e in np.eye(len(at))], axis=1
    )
    sizes = np.linalg.svd(jacobian, compute_uv=False)
    assert (sizes > 1e-6 * sizes[0]).sum() == model.n_free(D)


def test_there_is_no_count_for_a_composite_objective() -> None:
    with pytest.raises(ValueError, match="3 classes"):
        model_of(1, labels=ProbitLabels(3)).n_free(D)


def test_a_component_that_lost_its_rows_is_moved_and_at_last_dropped() -> None:
    X, y = table()
    model = model_of(2)
    case = Case(model, X, y=y)
    params = case.start()
    means = params.components.means.copy()
    means[1] += 1e4
    lost = replace(params, components=replace(params.components, means=means))
    update = case.update(lost, case.stats(lost), 1)
    assert not update.monotone
    assert [(event.kind, event.component) for event in update.events] == [("reseed", 1)]
    found = update.params.components
    assert np.abs(found.means[1]).max() < 100
    assert np.isfinite(model.objective(update.params, case.stats(update.params)))
    stubborn = replace(model, reseed=False)
    dropped = Case(stubborn, X, y=y).update(lost, case.stats(lost), 1).params
    np.testing.assert_array_equal(dropped.weights, [1.0, 0.0])
    assert np.isfinite(model.objective(dropped, case.stats(dropped)))
