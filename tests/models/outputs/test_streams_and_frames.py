"""Supervised factor models in streams and warm starts: sums without a reference, other frames."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Array, Context
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Plan, fit
from mixfold.engine.schedules import Stepwise, learn_batch
from mixfold.engine.sources import open_source
from mixfold.families.factor import FactorFamily, IsotropicNoise
from mixfold.math.frame import Frame, similar_frame
from mixfold.models.factors.factor_starts import FACTOR_STARTS
from mixfold.models.outputs.gaussian_outputs import GaussianOutputs
from mixfold.models.outputs.gaussian_starts import GaussianStart
from mixfold.models.outputs.label_starts import LABEL_STARTS
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedModel
from mixfold.models.outputs.probit_labels import ProbitLabels
from mixfold.testing import Case
from mixfold.testing.compare import require_same

D, L, d = 6, 2, 2
SETTLED = Context(None, np.random.default_rng(0))


def family(has_missing: bool = False) -> FactorFamily:
    return FactorFamily(factors=(d,), noise=IsotropicNoise(), has_missing=has_missing, expand=False)


def gaussian(K: int, has_missing: bool = False, **more: Any) -> SupervisedModel:
    start = GaussianStart(np.zeros(L), np.ones(L), rule=FACTOR_STARTS["k-means++"](d))
    return SupervisedModel(K, family(has_missing), GaussianOutputs(n_outputs=L), start, **more)


def labelled(K: int, has_missing: bool = False, **more: Any) -> LabelledModel:
    labels = ProbitLabels(ridge=0.1)
    return LabelledModel(K, family(has_missing), labels, LABEL_STARTS["balanced"], **more)


MODELS = {"gaussian": gaussian, "labels": labelled}


def table(kind: str, n: int = 150, seed: int = 0) -> tuple[Array, Array]:
    """Two groups in D columns; a third of the rows has no output, others lack some entries."""
    rng = np.random.default_rng(seed)
    z, k = rng.normal(size=(n, d)), rng.integers(2, size=n)
    fixed = np.random.default_rng(7)
    W, V = fixed.normal(size=(2, d, D)), fixed.normal(size=(2, d, L))
    X = np.einsum("nd,ndj->nj", z, W[k]) + 4.0 * k[:, None] + 0.4 * rng.normal(size=(n, D))
    if kind == "labels":
        y = (z[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(np.int64)
        y[::3] = -1
        return X, y
    y = np.einsum("nd,ndl->nl", z, V[k]) + 0.3 * rng.normal(size=(n, L))
    y[::3] = np.nan
    y[1::5, 0] = np.nan
    return X, y


def holed(X: Array, share: float = 0.15) -> Array:
    X = X.copy()
    X[np.random.default_rng(1).random(X.shape) < share] = np.nan
    return X


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("has_missing", [False, True])
def test_sums_without_a_reference_give_the_same_m_step(kind: str, has_missing: bool) -> None:
    X, y = table(kind)
    model = replace(MODELS[kind](2, has_missing), expand=False)
    case = Case(model, holed(X) if has_missing else X, y=y)
    params = case.after(3)
    stats = case.stats(params)
    plain = model.additive(stats)
    assert model.row_weight(plain) == model.row_weight(stats) == len(X)
    if kind == "gaussian":
        assert not plain.outputs.loadings.any() and not plain.outputs.means.any()
    wanted = model.update(params, stats, SETTLED).params
    got = model.update(params, plain, SETTLED).params
    require_same("M step", got, wanted, 1e-8)
    # and they are sums of y itself, whatever parameters they were made at
    other = model.additive(case.stats(wanted))
    blended = plain.scale(0.5) + other.scale(0.5)
    require_same("blend", (blended - other.scale(0.5)).scale(2.0), plain, 1e-8)


@pytest.mark.parametrize("kind", MODELS)
def test_stepwise_em_over_batches_comes_near_the_fit_of_all_rows(kind: str) -> None:
    X, y = table(kind, 3000)
    model = MODELS[kind](2)
    best = fit(model, open_source(X, y=y), ThreadExecutor(1), Plan(tol=1e-7, n_candidates=4))
    first = fit(
        model, open_source(X[:300], y=y[:300]), ThreadExecutor(1), Plan(max_iter=10, n_candidates=4)
    )
    stepwise: Any = model.for_stream()
    assert not stepwise.expand and stepwise.family.has_missing
    if kind == "labels":  # of a batch of weight one
        stepwise = replace(stepwise, outputs=replace(stepwise.outputs, ridge=0.1 / len(X)))
    params, schedule = first.params, Stepwise()
    for _ in range(3):
        for start in range(0, len(X), 300):
            rows = slice(start, start + 300)
            learned = learn_batch(
                stepwise, params, schedule, open_source(X[rows], y=y[rows]), ThreadExecutor(1)
            )
            params, schedule = learned.params, learned.schedule
    case = Case(model, X, y=y)
    started, got = case.objective(first.params), case.objective(params)
    assert got > started
    assert (best.objective - got) / len(X) < 0.01
    assert best.objective - got < 0.2 * (best.objective - started)


@pytest.mark.parametrize("kind", MODELS)
def test_another_frame_changes_no_density(kind: str) -> None:
    X, y = table(kind)
    model = MODELS[kind](2)
    case = Case(model, X, y=y)
    params = case.after(3)
    assert model.change_frame(params, case.pilot()) is params
    far = Case(model, 100.0 * X - 50.0, y=y)
    moved = model.change_frame(params, far.pilot())
    assert moved is not params
    assert case.objective(moved) == pytest.approx(case.objective(params), rel=1e-9)
    near = Case(model, 1.2 * X + 0.3, y=y)  # data that the frame suits as well
    assert model.change_frame(params, near.pilot()) is params


def test_similar_frames() -> None:
    frame = Frame(np.array([1.0, -2.0]), np.array([1.0, 3.0]))
    assert similar_frame(frame, frame)
    assert similar_frame(Frame(frame.origin + np.array([0.4, 1.4]), 1.9 * frame.scale), frame)
    assert not similar_frame(Frame(frame.origin + np.array([0.6, 0.0]), frame.scale), frame)
    assert not similar_frame(Frame(frame.origin, frame.scale * [1.0, 2.1]), frame)
    assert not similar_frame(Frame(frame.origin, frame.scale * [0.4, 1.0]), frame)


@pytest.mark.parametrize("kind", MODELS)
def test_a_warm_start_of_a_converged_fit_finds_nothing_left(kind: str) -> None:
    X, y = table(kind)
    model, source = MODELS[kind](2), open_source(X, y=y)
    first = fit(model, source, ThreadExecutor(1), Plan(tol=1e-5))
    assert first.converged
    again = fit(
        model, source, ThreadExecutor(1), Plan(tol=1e-5), start=first.params, earlier=first.climb
    )
    assert again.converged and again.n_iter == 0 and again.objective == first.objective


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("lacks", ["nothing", "x", "y", "both"])
def test_missing_entries_of_rows_and_outputs_go_together(kind: str, form: str, lacks: str) -> None:
    """Any combination is fitted, and sparse rows as the same rows made dense."""
    X, y = table(kind)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    if lacks in ("x", "both"):
        X = holed(X)
    if lacks in ("nothing", "x"):
        known = ~np.isnan(y).any(axis=1) if kind == "gaussian" else y >= 0
        X, y = X[known], y[known]
    model = MODELS[kind](2, lacks in ("x", "both"))
    plan = Plan(tol=0.0, max_iter=6, n_candidates=1)
    rows: Any = sparse.csr_array(X) if form == "sparse" else X
    result = fit(model, open_source(rows, y=y), ThreadExecutor(1), plan)
    assert (np.diff(result.trace) >= -1e-9 * np.abs(result.trace[1:])).all()
    dense = Case(model, X, y=y)
    assert dense.objective(result.params) == pytest.approx(result.objective, rel=1e-8)
