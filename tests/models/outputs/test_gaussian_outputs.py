"""Gaussian outputs of factor models against dense normals, and the laws of models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from mixfold.contracts import Array, Block
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.random import RowKeys
from mixfold.engine.sources import open_source
from mixfold.families.factor import DiagonalNoise, FactorFamily, FactorParams, IsotropicNoise
from mixfold.math.frame import plain_frame
from mixfold.models.factors.factor_starts import FACTOR_STARTS
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.models.outputs import gaussian_outputs
from mixfold.models.outputs.gaussian_outputs import GaussianOutputParams, GaussianOutputs
from mixfold.models.outputs.gaussian_predictions import predictive
from mixfold.models.outputs.gaussian_starts import GaussianStart
from mixfold.models.outputs.joint_posterior import canonical, infer_with_outputs
from mixfold.models.outputs.model import SupervisedModel, SupervisedParams
from mixfold.testing import Case, laws

D, L, d = 5, 3, 2


def model_of(
    K: int, outputs: GaussianOutputs | None = None, noise: Any = None, has_missing: bool = False
) -> SupervisedModel:
    family = FactorFamily(
        factors=(d,), noise=noise or IsotropicNoise(), has_missing=has_missing, expand=False
    )
    held = 0.4 if family.noise.held else None
    start = GaussianStart(np.zeros(L), np.ones(L), held, rule=FACTOR_STARTS["k-means++"](d))
    return SupervisedModel(K, family, outputs or GaussianOutputs(n_outputs=L), start)


def params_of(K: int, seed: int = 0) -> SupervisedParams:
    rng = np.random.default_rng(seed)
    components = FactorParams(
        plain_frame(D),
        rng.normal(size=(K, D)),
        rng.normal(size=(K, D, d)),
        np.repeat(0.3 + rng.random((K, 1)), D, axis=1),
    )
    outputs = GaussianOutputParams(
        rng.normal(size=(K, L, d)), rng.normal(size=(K, L)), 0.2 + rng.random((K, L))
    )
    return SupervisedParams(rng.dirichlet(5 * np.ones(K)), components, outputs)


def table(n: int = 60, K: int = 2, seed: int = 1) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    params = params_of(K, seed)
    k = rng.integers(0, K, n)
    z = rng.normal(size=(n, d))
    c, o = params.components, params.outputs
    X = c.means[k] + np.einsum("njd,nd->nj", c.loadings[k], z) + 0.5 * rng.normal(size=(n, D))
    y = o.means[k] + np.einsum("nld,nd->nl", o.loadings[k], z) + 0.4 * rng.normal(size=(n, L))
    return X + 4.0 * k[:, None], y


def punched(values: Array, share: float, seed: int) -> Array:
    values = values.copy()
    values[np.random.default_rng(seed).random(values.shape) < share] = np.nan
    return values


def some_unlabelled(y: Array) -> Array:
    y = y.copy()
    y[::3] = np.nan
    return y


def joint_normal(params: SupervisedParams, k: int) -> tuple[Array, Array]:
    """Mean and covariance of (z, x, y) of a component."""
    c, o = params.components, params.outputs
    W = np.vstack([np.eye(d), c.loadings[k], o.loadings[k]])
    noise = np.concatenate([np.zeros(d), c.noise[k], o.noise[k]])
    mean = np.concatenate([np.zeros(d), c.means[k], o.means[k]])
    return mean, W @ W.T + np.diag(noise)


def conditioned(mean: Array, S: Array, values: Array) -> tuple[Array, Array, Array, float]:
    """What is not NaN given: where, mean and covariance of the rest, and density of the given."""
    lacks = np.isnan(values)
    A = np.linalg.solve(S[np.ix_(~lacks, ~lacks)], S[np.ix_(~lacks, lacks)]).T
    centre = mean[lacks] + A @ (values[~lacks] - mean[~lacks])
    left = S[np.ix_(lacks, lacks)] - A @ S[np.ix_(~lacks, lacks)]
    density = multivariate_normal.logpdf(values[~lacks], mean[~lacks], S[np.ix_(~lacks, ~lacks)])
    return lacks, centre, left, float(density)


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("pattern", ["whole", "unlabelled", "any"])
def test_posteriors_are_those_of_the_dense_joint_normal(has_missing: bool, pattern: str) -> None:
    X, y = table(12)
    X = punched(X, 0.3, 5) if has_missing else X
    y = {"whole": y, "unlabelled": some_unlabelled(y), "any": punched(y, 0.4, 6)}[pattern]
    params, model = params_of(2), model_of(2, has_missing=has_missing)
    reading = model.prepare(params)
    block = Block(X, y=y, complete=not has_missing)
    seen, predicted = infer_with_outputs(model, reading, block), predictive(model, reading, block)
    spread = np.broadcast_to(seen.latent.covariances, (12, 2, d, d))
    total, of_y = predicted.covariances(), predicted.outputs.covariances
    within = np.broadcast_to(of_y(predicted.params, predicted.latent), (12, 2, L, L))
    for n in range(12):
        values = np.concatenate([np.full(d, np.nan), X[n], y[n]])
        for k in range(2):
            mean, S = joint_normal(params, k)
            lacks, centre, left, density = conditioned(mean, S, values)
            expected = density + np.log(params.weights[k])
            assert seen.log_joint[n, k] == pytest.approx(expected, abs=1e-9)
            np.testing.assert_allclose(seen.latent.means[n, k], centre[:d], atol=1e-9)
            np.testing.assert_allclose(spread[n, k], left[:d, :d], atol=1e-9)
            unseen = np.flatnonzero(lacks[d + D :])
            at = np.searchsorted(np.flatnonzero(lacks), d + D + unseen)
            np.testing.assert_allclose(predicted.means[n, k, unseen], centre[at], atol=1e-9)
            both = np.ix_(unseen, unseen)
            np.testing.assert_allclose(within[n, k][both], left[np.ix_(at, at)], atol=1e-9)
        share = np.exp(seen.log_joint[n] - logsumexp(seen.log_joint[n]))
        mixed = np.einsum("k,kij->ij", share, within[n])
        mixed += np.cov(predicted.means[n].T, aweights=share, ddof=0).reshape(L, L)
        np.testing.assert_allclose(total[n], mixed, atol=1e-9)
        np.testing.assert_allclose(predicted.variances()[n], np.diag(mixed), atol=1e-9)


CASES = {
    "one": (model_of(1), None, some_unlabelled),
    "two, entries of y missing": (model_of(2), None, lambda y: punched(y, 0.3, 2)),
    "two, noise of each output": (
        model_of(2, GaussianOutputs(each=True, n_outputs=L)), None, some_unlabelled,
    ),
    "two, noise of each component": (
        model_of(2, GaussianOutputs(common=False, n_outputs=L)), None, some_unlabelled,
    ),
    "two, weighted outputs": (
        model_of(2, GaussianOutputs(weight=3.0, fixed_noise=0.3, n_outputs=L)), None, np.copy,
    ),
    "half a share": (model_of(1, GaussianOutputs(share=0.5, n_outputs=L)), None, some_unlabelled),
    "given noise of the columns": (model_of(2, noise=IsotropicNoise(held=True)), None, np.copy),
    "noise of each column": (model_of(2, noise=DiagonalNoise()), None, some_unlabelled),
    "entries of x missing": (
        model_of(2, has_missing=True), lambda X: punched(X, 0.2, 3), lambda y: punched(y, 0.3, 2),
    ),
    "sparse": (
        model_of(1), lambda X: sparse.csr_array(np.where(X > 0, X, 0.0)), some_unlabelled,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_laws(name: str) -> None:
    model, change, hide = CASES[name]
    X, y = table(90)
    weight = np.random.default_rng(3).random(90) + 0.5
    rows = X if change is None else change(X)
    case = Case(model, rows, weight=weight, y=hide(y), rtol=1e-8)
    skip = {}
    if sparse.issparse(rows):
        skip["pure functions"] = "it compares tables entry by entry, which sparse ones do not offer"
    laws.check_model(case, skip=skip)


def test_sparse_rows_give_the_statistics_of_the_same_rows_made_dense() -> None:
    X, y = table(40)
    X = np.where(X > 0, X, 0.0)
    X[3] = 0.0
    y = some_unlabelled(y)
    for noise in (IsotropicNoise(), DiagonalNoise()):
        model, params = model_of(2, noise=noise), params_of(2)
        dense = Case(model, X, y=y).stats(params)
        rows = Case(model, sparse.csr_array(X), y=y).stats(params)
        np.testing.assert_allclose(rows.log_likelihood, dense.log_likelihood, rtol=1e-10)
        for name in ("first", "squares", "cross"):
            one, other = getattr(rows.components, name), getattr(dense.components, name)
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("weight", [1.0, 2.5])
def test_rows_by_themselves_and_by_what_they_show_together_are_the_same(
    weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table(200)
    block = Block(X, y=punched(y, 0.4, 5))
    units = (1.0, 10.0, 0.1)
    model = model_of(2, GaussianOutputs(n_outputs=L, each=True, weight=weight, units=units))
    reading = model.prepare(params_of(2))
    found = []
    for few in (0, 10**6):
        monkeypatch.setattr(gaussian_outputs, "_FEW", few)
        found.append(infer_with_outputs(model, reading, block))
    together, alone = found
    np.testing.assert_allclose(together.log_joint, alone.log_joint, rtol=1e-11)
    np.testing.assert_allclose(together.latent.means, alone.latent.means, rtol=1e-9)
    np.testing.assert_allclose(together.latent.covariances, alone.latent.covariances, rtol=1e-9)


def climbed(model: Any, X: Any, y: Any, **plan: Any) -> Fit:
    settings = {"tol": 1e-13, "max_iter": 3000, "n_candidates": 1, **plan}
    return fit(model, open_source(X, y=y), ThreadExecutor(1), Plan(**settings))


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_the_fixed_point_has_no_slope_with_entries_missing_anywhere(weight: float) -> None:
    X, y = table(50, K=1)
    X, y = punched(X, 0.15, 3), punched(y, 0.3, 2)
    model = model_of(1, GaussianOutputs(weight=weight, each=True, n_outputs=L), has_missing=True)
    found = climbed(model, X, y, tol=1e-11, acceleration=ACCELERATIONS["squarem"])
    case = Case(model, X, y=y)
    at = model.coordinates(found.params)[1:]  # the weight of the only component is one

    def objective(vector: Array) -> float:
        params = model.from_coordinates(found.params, np.append(0.0, vector))
        return case.objective(params)

    slope = approx_fprime(at, objective, 1e-6)
    assert np.abs(slope).max() < 2e-3
    away = at + 0.01
    assert np.abs(approx_fprime(away, objective, 1e-6)).max() > 0.5


def test_without_a_single_output_it_is_ppca() -> None:
    X, y = table(60, K=1)
    found = climbed(model_of(1), X, np.full_like(y, np.nan))
    family = FactorFamily(factors=(d,), noise=IsotropicNoise())
    plain = climbed(Mixture(1, family), X, None)
    assert found.objective == pytest.approx(plain.objective, abs=1e-8)
    W = [p.components.loadings[0] for p in (found.params, plain.params)]
    np.testing.assert_allclose(W[0] @ W[0].T, W[1] @ W[1].T, atol=1e-5)


def test_rows_without_outputs_add_what_they_are_under_the_columns_alone() -> None:
    X, y = table(40)
    params, model = params_of(2), model_of(2)
    hidden = np.arange(40) % 2 == 0
    y[hidden] = np.nan
    reading, keys = model.prepare(params), RowKeys(0)
    both = model.expect(reading, Block(X, y=y), keys)
    seen = model.expect(reading, Block(X[~hidden], y=y[~hidden]), keys)
    plain = Mixture(2, model.family)
    rest = plain.expect(
        plain.prepare(MixtureParams(params.weights, params.components)), Block(X[hidden]), keys
    )
    total = seen.log_likelihood + rest.log_likelihood
    assert both.log_likelihood == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(both.counts, seen.counts + rest.counts)
    # sums of outputs are over the labelled rows only
    for name in ("first", "squares", "cross"):
        np.testing.assert_allclose(getattr(both.outputs, name), getattr(seen.outputs, name))
    np.testing.assert_allclose(both.outputs.latents.count, seen.outputs.latents.count)


def test_one_step_by_hand() -> None:
    """Loadings and noise of the outputs are a regression on the latents of labelled rows only."""
    X, y = table(40, K=1)
    y = some_unlabelled(y)
    model, params = model_of(1), params_of(1)
    shown = ~np.isnan(y[:, 0])
    seen = infer_with_outputs(model, model.prepare(params), Block(X, y=y))
    Z, R = seen.latent.means[shown, 0], seen.latent.covariances[shown, 0]
    case = Case(model, X, y=y)
    sums = case.stats(params)
    got = model.outputs.update(sums.outputs, params.outputs)
    one = np.column_stack([Z, np.ones(len(Z))])
    gram = one.T @ one
    gram[:d, :d] += R.sum(axis=0)
    solved = np.linalg.solve(gram, one.T @ y[shown]).T
    np.testing.assert_allclose(got.loadings[0], solved[:, :d], atol=1e-10)
    np.testing.assert_allclose(got.means[0], solved[:, d], atol=1e-10)
    left = y[shown] - one @ solved.T
    uncertain = np.einsum("li,nij,lj->", solved[:, :d], R, solved[:, :d])
    noise = ((left**2).sum() + uncertain) / (L * shown.sum())
    np.testing.assert_allclose(got.noise, noise)


def test_the_noise_of_outputs_is_exact_where_factors_explain_them_wholly() -> None:
    """Near the floor a sum of squares about the mean would have no digit left."""
    X, _ = table(80, K=1)
    rng = np.random.default_rng(0)
    X = X[:, :2] @ rng.normal(size=(2, D)) + 1e-9 * rng.normal(size=(80, D))
    y = X @ rng.normal(size=(D, L)) * 1e3
    found = climbed(model_of(1, GaussianOutputs(n_outputs=L)), X, y, max_iter=60)
    assert not [event for event in found.events if event.kind == "fall"]


def test_canonical_axes_do_not_change_the_model_and_do_not_depend_on_the_start() -> None:
    X, y = table(70, K=1)
    model, params = model_of(1), params_of(1, 4)
    turned = canonical(model, params)
    case = Case(model, X, y=y)
    assert case.objective(turned) == pytest.approx(case.objective(params), rel=1e-12)
    c, o = turned.components, turned.outputs
    told = c.loadings[0].T @ (c.loadings[0] / c.noise[0][:, None])
    told += o.loadings[0].T @ (o.loadings[0] / o.noise[0][:, None])
    np.testing.assert_allclose(told, np.diag(np.diag(told)), atol=1e-9)
    assert np.diag(told)[0] > np.diag(told)[1]
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(d, d)))[0]
    other = model.outputs.transform_latents(params.outputs, np.zeros((1, d)), turn[None])
    loadings = params.components.loadings @ turn
    again = canonical(
        model,
        replace(params, components=replace(params.components, loadings=loadings), outputs=other),
    )
    np.testing.assert_allclose(again.components.loadings, c.loadings, atol=1e-9)
    np.testing.assert_allclose(again.outputs.loadings, o.loadings, atol=1e-9)


def test_a_share_of_one_half_is_the_mean_of_both_objectives() -> None:
    X, y = table(30)
    params = params_of(2)
    of = [Case(model_of(2, GaussianOutputs(share=s, n_outputs=L)), X, y=y).objective(params)
          for s in (0.0, 0.5, 1.0)]  # fmt: skip
    assert of[1] == pytest.approx((of[0] + of[2]) / 2, rel=1e-12)


@pytest.mark.parametrize("v", [2.0, 3.0])
def test_an_output_that_counts_v_times_is_v_outputs(v: float) -> None:
    X, y = table(30, K=1)
    params = params_of(1)
    once = Case(model_of(1, GaussianOutputs(weight=v, n_outputs=L)), X, y=y).objective(params)
    many = int(v)
    o = params.outputs
    copied = GaussianOutputParams(
        np.tile(o.loadings, (1, many, 1)), np.tile(o.means, (1, many)), np.tile(o.noise, (1, many))
    )
    repeated = Case(model_of(1, GaussianOutputs(n_outputs=many * L)), X, y=np.tile(y, (1, many)))
    both = SupervisedParams(params.weights, params.components, copied)
    assert once == pytest.approx(repeated.objective(both), rel=1e-12)
