"""Ordered categories and counts as outputs of factor models: quadrature, gradients, laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal, nbinom, norm

from mixfold.contracts import Array, Block
from mixfold.families.factor import FactorFamily, FactorParams, IsotropicNoise
from mixfold.families.factor.priors import LoadingsPrior
from mixfold.math.frame import plain_frame
from mixfold.math.output_likelihoods import Counts, OrderedProbit
from mixfold.models.factors.factor_starts import FACTOR_STARTS
from mixfold.models.outputs import score_outputs
from mixfold.models.outputs.joint_posterior import canonical, infer_with_outputs
from mixfold.models.outputs.model import SupervisedParams
from mixfold.models.outputs.score_outputs import (
    ScoreModel,
    ScoreOutputs,
    ScoreParams,
    ScoreStart,
)
from mixfold.testing import Case, laws

D, d = 4, 2
KINDS: dict[str, tuple[Any, Array]] = {
    "ordered": (OrderedProbit(4), np.array([0.9, 1.7])),
    "probit": (OrderedProbit(2), np.zeros(0)),
    "counts": (Counts(), np.log([0.4])),
    "Poisson": (Counts(0.0), np.zeros(0)),
}


def model_of(kind: str, K: int, has_missing: bool = False) -> ScoreModel:
    likelihood, shape = KINDS[kind]
    family = FactorFamily(
        factors=(d,), noise=IsotropicNoise(), has_missing=has_missing, expand=False
    )
    start = ScoreStart(
        np.array([0.3]), np.ones(1), rule=FACTOR_STARTS["k-means++"](d), shape=tuple(shape)
    )
    return ScoreModel(K, family, ScoreOutputs(likelihood), start)


def params_of(kind: str, K: int) -> SupervisedParams:
    rng = np.random.default_rng(0)
    noise = np.repeat(0.3 + rng.random((K, 1)), D, axis=1)
    components = FactorParams(
        plain_frame(D), rng.normal(size=(K, D)), rng.normal(size=(K, D, d)), noise
    )
    outputs = ScoreParams(rng.normal(size=(K, 1, d)), 0.5 * rng.normal(size=(K, 1)), KINDS[kind][1])
    return SupervisedParams(rng.dirichlet(5 * np.ones(K)), components, outputs)


def table(kind: str, n: int = 80, K: int = 2) -> tuple[Array, Array]:
    """Drawn from the parameters; some rows have no y."""
    rng, params = np.random.default_rng(1), params_of(kind, K)
    k, z = rng.integers(K, size=n), rng.normal(size=(n, d))
    c, o = params.components, params.outputs
    X = c.means[k] + np.einsum("njd,nd->nj", c.loadings[k], z) + 0.7 * rng.normal(size=(n, D))
    a = np.einsum("nd,nd->n", o.loadings[k, 0], z) + o.means[k, 0]
    y = score_outputs.draw(KINDS[kind][0], a, o.shape, rng)[:, None]
    y[::4] = np.nan
    return X + 4.0 * k[:, None], y


@pytest.mark.parametrize("kind", ["ordered", "counts"])
def test_rows_have_the_density_and_latents_of_quadrature(kind: str) -> None:
    """ln p(x, y) and E[z | x, y] by an integral over both factors, y by scipy."""
    params = params_of(kind, 1)
    X, y = table(kind, 6, 1)
    model = model_of(kind, 1)
    seen = infer_with_outputs(model, model.prepare(params), Block(X, y=y))
    c, o = params.components, params.outputs

    def chance(value: float, a: float) -> float:
        if kind == "ordered":
            t = [-np.inf, 0, 0.9, 1.7, np.inf]
            return float(norm.cdf(t[int(value) + 1] - a) - norm.cdf(t[int(value)] - a))
        return float(nbinom(1 / 0.4, 1 / (1 + 0.4 * np.exp(a))).pmf(value))

    spread = np.linalg.inv(np.eye(d) + c.loadings[0].T @ c.loadings[0] / c.noise[0, 0])
    for i in (1, 2, 3):
        away = X[i] - c.means[0]
        m = spread @ c.loadings[0].T @ away / c.noise[0, 0]
        law = multivariate_normal(m, spread)
        px = multivariate_normal(
            c.means[0], c.loadings[0] @ c.loadings[0].T + np.diag(c.noise[0])
        ).logpdf(X[i])
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        u = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
        share = np.outer(weights, weights).ravel() / (2 * np.pi)
        z = m + u @ np.linalg.cholesky(spread).T
        p = share * [chance(y[i, 0], float(o.loadings[0, 0] @ row + o.means[0, 0])) for row in z]
        assert seen.log_joint[i, 0] == pytest.approx(px + np.log(p.sum()), abs=1e-6)
        mean = p @ z / p.sum()
        np.testing.assert_allclose(seen.latent.means[i, 0], mean, atol=1e-6)
        second = (z - mean).T @ ((z - mean) * p[:, None]) / p.sum()
        np.testing.assert_allclose(seen.latent.covariances[i, 0], second, atol=1e-6)
        if i == 1:  # and that by another rule
            value = dblquad(
                lambda b, a, i=i, law=law: (
                    law.pdf([a, b])
                    * chance(y[i, 0], float(o.loadings[0, 0] @ [a, b] + o.means[0, 0]))
                ),
                m[0] - 7, m[0] + 7, m[1] - 7, m[1] + 7, epsabs=1e-6,
            )[0]  # fmt: skip
            assert value == pytest.approx(p.sum(), abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("holes", [False, True])
def test_the_gradient_is_that_of_finite_differences(kind: str, holes: bool) -> None:
    X, y = table(kind)
    if holes:
        X[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    model, params = model_of(kind, 2, holes), params_of(kind, 2)
    case = Case(model, X, y=y, weight=np.random.default_rng(3).random(len(X)) + 0.5)
    stats = case.stats(params)
    outputs = model.outputs
    found, metric = outputs.derivatives(params.outputs, stats.outputs)

    def objective(vector: Array) -> float:
        fresh = outputs.from_coordinates(params.outputs, vector)
        return case.objective(SupervisedParams(params.weights, params.components, fresh))

    at = outputs.coordinates(params.outputs)
    np.testing.assert_allclose(found, approx_fprime(at, objective, 1e-6), rtol=2e-4, atol=2e-3)
    assert np.linalg.eigvalsh(metric.inverse).min() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_laws(kind: str) -> None:
    X, y = table(kind, 90)
    weight = np.random.default_rng(3).random(90) + 0.5
    case = Case(model_of(kind, 2), X, weight=weight, y=y, rtol=1e-7)
    reason = "its steps are tentative: the engine takes back those that lower the objective"
    laws.check_model(case, skip={"monotone objective": reason})


@pytest.mark.parametrize("kind", ["ordered", "counts"])
@pytest.mark.parametrize("prior", [LoadingsPrior(2.0), LoadingsPrior()], ids=["ridge", "ard"])
def test_laws_with_a_prior_of_the_loadings(kind: str, prior: LoadingsPrior) -> None:
    X, y = table(kind, 90)
    model = model_of(kind, 2)
    model = replace(model, family=replace(model.family, loadings_prior=prior))
    case = Case(model, X, y=y, rtol=1e-7)
    reason = "its steps are tentative: the engine takes back those that lower the objective"
    checked = "checked below, at a looser tolerance"
    laws.check_model(case, skip={"monotone objective": reason, "gradient": checked})
    laws.gradient(case, rtol=1e-4)


def test_a_turn_of_the_latents_is_not_seen() -> None:
    X, y = table("ordered", 40, 1)
    model, params = model_of("ordered", 1), params_of("ordered", 1)
    case = Case(model, X, y=y)
    turned = canonical(model, params)
    assert case.objective(turned) == pytest.approx(case.objective(params), rel=1e-12)


def test_the_probit_is_that_of_labels() -> None:
    """Two categories are the classifier of MixtureOfFactorModels, which has closed forms."""
    from mixfold.models.outputs.label_starts import ClusterStart
    from mixfold.models.outputs.labelled import LabelledModel
    from mixfold.models.outputs.probit_labels import ProbitLabels, ProbitParams

    X, y = table("probit")
    params = params_of("probit", 2)
    own = ProbitLabels(own=True)
    labelled = LabelledModel(2, model_of("probit", 2).family, own, ClusterStart())
    o = params.outputs
    same = SupervisedParams(params.weights, params.components, ProbitParams(o.loadings, o.means))
    labels = np.where(np.isnan(y[:, 0]), -1, y[:, 0]).astype(np.int64)
    one = Case(model_of("probit", 2), X, y=y).stats(params)
    other = Case(labelled, X, y=labels).stats(same)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-10)
    for name in ("first", "cross"):
        np.testing.assert_allclose(
            getattr(one.components, name), getattr(other.components, name), atol=1e-7
        )
