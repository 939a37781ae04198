"""Priors of the loadings of columns and outputs together: laws, and the density written down."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mixfold.families.factor import FactorFamily, IsotropicNoise
from mixfold.families.factor.priors import LEAST, LoadingsPrior, NoisePrior
from mixfold.models.factors.factor_starts import FACTOR_STARTS
from mixfold.models.outputs.gaussian_outputs import GaussianOutputs
from mixfold.models.outputs.gaussian_starts import GaussianStart
from mixfold.models.outputs.label_starts import LABEL_STARTS
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedModel
from mixfold.models.outputs.overweighted_labels import OverweightedLabelModel
from mixfold.models.outputs.probit_labels import ProbitLabels
from mixfold.testing import Case, laws

D, L, d = 5, 2, 3
PRIORS = {"ridge": LoadingsPrior(2.0), "ard": LoadingsPrior()}
of_priors = pytest.mark.parametrize("prior", PRIORS)


def table(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    z = rng.normal(size=(n, 2))
    X = z @ rng.normal(size=(2, D)) + 0.5 * rng.normal(size=(n, D))
    y = z @ rng.normal(size=(2, L)) + 0.4 * rng.normal(size=(n, L))
    return X + 4.0 * (np.arange(n) % 2)[:, None], y


def family(prior: LoadingsPrior, **more: Any) -> FactorFamily:
    return FactorFamily(
        factors=(d,), noise=IsotropicNoise(), expand=False, loadings_prior=prior,
        noise_prior=NoisePrior(5.0, 0.3), **more,
    )  # fmt: skip


def gaussian(K: int, prior: str, **settings: Any) -> SupervisedModel:
    outputs = GaussianOutputs(n_outputs=L, variance=1.7, **settings)
    start = GaussianStart(np.zeros(L), np.ones(L), None, rule=FACTOR_STARTS["k-means++"](d))
    return SupervisedModel(K, family(PRIORS[prior], has_missing=True), outputs, start)


def labelled(K: int, prior: str, labels: ProbitLabels, kind: Any = LabelledModel) -> Any:
    own = replace(PRIORS[prior], common=labels.tied)
    return kind(K, family(own, has_missing=True), labels, LABEL_STARTS["balanced"])


@of_priors
@pytest.mark.parametrize(
    ("K", "settings"), [(1, {}), (2, {"each": True, "weight": 3.0}), (1, {"fixed_noise": 0.2})]
)
def test_laws_with_numbers(prior: str, K: int, settings: dict[str, Any]) -> None:
    X, y = table()
    rng = np.random.default_rng(2)
    X[rng.random(X.shape) < 0.1], y[rng.random(y.shape) < 0.3] = np.nan, np.nan
    skip = {"gradient": "checked below, at a looser tolerance"}
    case = Case(gaussian(K, prior, **settings), X, y=y, rtol=1e-8)
    laws.check_model(case, skip=skip)
    laws.gradient(case, rtol=1e-4)


@of_priors
@pytest.mark.parametrize("own", [False, True])
def test_laws_with_labels(prior: str, own: bool) -> None:
    X, y = table()
    classes = np.where(np.arange(len(y)) % 3 == 0, -1, np.digitize(y[:, 0], [-0.5, 0.5]))
    labels = ProbitLabels(3, ridge=0.5, own=own)
    skip = {"gradient": "checked below, at a looser tolerance"}
    case = Case(labelled(2, prior, labels), X, y=classes, rtol=1e-8)
    laws.check_model(case, skip=skip)
    laws.gradient(case, rtol=1e-4)


@of_priors
def test_labels_that_count_more_climb_with_a_prior(prior: str) -> None:
    X, y = table()
    labels = ProbitLabels(2, tradeoff=10.0)
    model = labelled(1, prior, labels, OverweightedLabelModel)
    case = Case(model, X, y=(y[:, 0] > 0).astype(int))
    params = case.start()
    laws.gradient(case, rtol=1e-4)
    stats = case.stats(params)
    found = [case.model._damped_step(params, stats, stats.weight * k) for k in (30.0, 300.0)]
    values = [case.objective(params), *(case.objective(one) for one in found)]
    assert values[0] < values[2] < values[1]


@of_priors
def test_the_objective_of_rows_with_numbers(prior: str) -> None:
    """One component: x and y are jointly normal, and a factor has one precision for both."""
    X, y = table()
    case = Case(gaussian(1, prior), X, y=y)
    params: Any = case.after(3)
    c, o, frame = params.components, params.outputs, params.components.frame
    U = frame.enter(X)
    W = np.concatenate([c.loadings[0], o.loadings[0]])
    noise = np.concatenate([c.noise[0], o.noise[0]])
    law = multivariate_normal(np.concatenate([c.means[0], o.means[0]]), W @ W.T + np.diag(noise))
    total = law.logpdf(np.column_stack([U, y])).sum() - len(X) * np.log(frame.scale).sum()
    squares = (c.loadings[0] ** 2).sum(axis=0) + (o.loadings[0] ** 2).sum(axis=0) / 1.7
    if prior == "ard":
        total -= (D + L) * np.log1p(squares / ((D + L) * LEAST)).sum()
    else:
        total -= 0.5 * 2.0 * squares.sum()
    psi = c.noise[0, 0]
    total -= 0.5 * 5.0 * (np.log(psi) + 0.3 / frame.scale[0] ** 2 / psi)
    assert case.objective(params) == pytest.approx(total, rel=1e-9)


def test_factors_that_vanish_are_left_out_of_both_views() -> None:
    X, y = table(200)
    X -= 4.0 * (np.arange(200) % 2)[:, None]  # two factors, and no groups
    case = Case(gaussian(1, "ard"), X, y=y)
    params: Any = case.after(300)
    model: Any = case.model
    settled = model.without_unused(params)
    used = model.used_factors(settled)[0]
    assert 1 <= used.sum() < d
    assert (settled.components.loadings[0][:, ~used] == 0).all()
    assert (settled.outputs.loadings[0][:, ~used] == 0).all()
    plain = replace(model, family=replace(model.family, loadings_prior=None, noise_prior=None))
    before, after = (replace(case, model=plain).objective(p) for p in (params, settled))
    assert after == pytest.approx(before, abs=1e-3)
