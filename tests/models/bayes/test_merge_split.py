"""Merged and split components: sums stay sums, planted faults are mended, the bound never falls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mixfold import BayesianGaussianMixture, Mixture
from mixfold.contracts import Array
from mixfold.engine.climb import climb, visit
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.moves import improve_by_moves
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task
from mixfold.families.bayes.known_covariance import KnownCovariance
from mixfold.families.bayes.normal_gamma import BayesDiagonal, BayesSpherical
from mixfold.families.bayes.normal_wishart import BayesFull, BayesTied
from mixfold.families.exponential import Bernoulli, Poisson
from mixfold.families.product import product_of
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.mixing.sticks import StickBreaking
from mixfold.models.mixtures.bayes_mixture import BayesMixture
from mixfold.models.mixtures.merge_split import _halves, merge_moments, proposals
from mixfold.testing import Case
from mixfold.testing.compare import require_same

K = 5
CENTRES = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
LABELS = np.repeat([0, 1, 2], [60, 40, 30])


def _reals(missing: float = 0.0) -> Array:
    rng = np.random.default_rng(0)
    X = CENTRES[LABELS] + rng.standard_normal((LABELS.size, 2))
    X[rng.random(LABELS.size) < missing, 0] = np.nan
    return X


def _counts() -> Array:
    rates = np.array([[1.0, 30.0], [12.0, 1.0], [30.0, 12.0]])
    return np.random.default_rng(3).poisson(rates[LABELS]).astype(float)


def _yes() -> Array:
    share = np.repeat(np.array([[0.05, 0.95], [0.95, 0.05], [0.95, 0.95]]), 8, axis=1)
    return (np.random.default_rng(2).random((LABELS.size, 16)) < share[LABELS]).astype(float)


CASES: dict[str, tuple[Any, Array]] = {
    "full": (BayesFull(), _reals()),
    "full with NaN": (BayesFull(), _reals(0.2)),
    "tied": (BayesTied(), _reals()),
    "diag": (BayesDiagonal(), _reals()),
    "spherical with NaN": (BayesSpherical(), _reals(0.2)),
    "known": (KnownCovariance(covariance=1.0), _reals()),
    "poisson": (Poisson(), _counts()),
    "bernoulli": (Bernoulli(), _yes()),
    "product": (product_of({"diag": [0, 1], "poisson": [2, 3]}), np.hstack([_reals(), _counts()])),
}
cases = pytest.mark.parametrize("name", CASES)
mixings = pytest.mark.parametrize(
    "mixing",
    [SymmetricDirichlet(1.0), StickBreaking(1.0, reorder=True)],
    ids=["dirichlet", "sticks"],
)


def _task(name: str, mixing: Any, n_components: int = K) -> Task:
    family, X = CASES[name]
    source, executor = open_source(X), ThreadExecutor(1)
    pilot = draw_pilot(source, executor, 5000, 0)
    return Task(BayesMixture(n_components, family, mixing), source, executor, pilot, 0)


def _from_labels(task: Task, name: str, labels: Array) -> Climb:
    """A climb that starts where rows were divided like this."""
    case = Case(task.model, CASES[name][1], y=labels)
    return climb(task, Climb(case.after(1)), Rules(1e-6, 300))


def _used(done: Climb) -> int:
    return int((done.best.counts > 0.5).sum())


# ------------------------------------------------ sums


def test_joined_moments_are_those_of_joined_rows(family_name: str, conjugate: Any) -> None:
    family, table = conjugate[family_name]
    case = Case(BayesMixture(3, family), table(40, 0.15))
    params, block = case.after(1), case.block
    reading = family.mode(family.point(params.components))
    keep = ~np.isnan(block.X).all(axis=1)
    block = replace(block, X=block.X[keep])
    resp = np.random.default_rng(0).dirichlet(np.ones(3), block.n_rows)
    moments = family.about_frame(family.moments(family.scores(block, reading), resp, reading))
    got = merge_moments(moments, 0, 2)
    together = resp.copy()
    together[:, 0] += together[:, 2]
    together[:, 2] = 0
    frame = params.components.frame
    # each component fills holes, or splits counts, in its own way: only sums can be told
    if family.augments or "draw" not in family.readings:
        wanted = np.asarray(moments.count if hasattr(moments, "count") else 0).sum()
        assert np.asarray(got.count if hasattr(got, "count") else 0).sum() == pytest.approx(wanted)
        q = family.posterior(got, params.prior, frame)
        np.testing.assert_allclose(
            q.means[2], family.posterior(got.zero(), params.prior, frame).means[2]
        )
        return
    wanted = family.about_frame(family.moments(family.scores(block, reading), together, reading))
    require_same("joined", got, wanted, 1e-10)


# ------------------------------------------------ planted faults


@mixings
@cases
def test_duplicates_are_merged(name: str, mixing: Any) -> None:
    task = _task(name, mixing)
    # the largest cluster in two random halves, one of the others too
    labels = LABELS.copy()
    labels[:60:2] = 3
    labels[60:100:2] = 4
    stuck = _from_labels(task, name, labels)
    assert stuck.reason == "converged"
    done = improve_by_moves(task, stuck, Rules(1e-6, 300), 2 * K).done
    assert _used(done) == 3 <= _used(stuck)
    assert done.objective >= stuck.objective
    assert (np.diff(done.trace) >= -1e-8 * abs(done.objective)).all()
    np.testing.assert_allclose(np.sort(done.best.counts)[-3:], [30, 40, 60], atol=3)


def test_some_duplicates_do_survive_without_moves() -> None:
    """Otherwise the test above would show nothing."""
    labels = LABELS.copy()
    labels[:60:2] = 3
    labels[60:100:2] = 4
    survivors = []
    for name in CASES:
        task = _task(name, SymmetricDirichlet(8.0))
        survivors.append(_used(_from_labels(task, name, labels)) - 3)
    assert max(survivors) > 0, survivors


@mixings
@cases
def test_a_hidden_pair_is_split(name: str, mixing: Any) -> None:
    """All rows in one component, the others empty: an optimum of each step, not of the bound."""
    task = _task(name, mixing)
    stuck = _from_labels(task, name, np.zeros(LABELS.size, int))
    if _used(stuck) == 3:
        pytest.fail("the plant took no hold: plain steps left it")
    done = improve_by_moves(task, stuck, Rules(1e-6, 300), 2 * K).done
    assert _used(done) == 3
    assert done.objective > stuck.objective + 5
    np.testing.assert_allclose(np.sort(done.best.counts)[-3:], [30, 40, 60], atol=3)


def test_a_good_fit_is_left_alone() -> None:
    task = _task("full", SymmetricDirichlet(1.0))
    good = _from_labels(task, "full", LABELS)
    assert _used(good) == 3
    done = improve_by_moves(task, good, Rules(1e-6, 300), 2 * K).done
    assert done.objective == good.objective and done.best is good.best


def test_no_room_no_split_and_no_overlap_no_merge() -> None:
    task = _task("full", SymmetricDirichlet(1.0), 3)
    good = _from_labels(task, "full", LABELS)
    stats = visit(task, good.best, 0)
    assert task.pilot is not None
    found = list(proposals(task.model, good.best, stats, task.pilot, np.random.default_rng(0)))
    assert not found  # clusters that are apart share no rows, and there is no empty component


def test_proposals_are_parameters_like_any_other() -> None:
    task = _task("full", SymmetricDirichlet(1.0, True))
    stuck = _from_labels(task, "full", np.zeros(LABELS.size, int))
    stats = visit(task, stuck.best, 0)
    assert task.pilot is not None
    found = list(proposals(task.model, stuck.best, stats, task.pilot, np.random.default_rng(0)))
    assert found
    for params in found:
        assert params.counts.sum() == pytest.approx(LABELS.size)
        assert params.weights.sum() == pytest.approx(1)
        value = task.model.objective(params, visit(task, params, 0))
        assert np.isfinite(value)
    again = list(proposals(task.model, stuck.best, stats, task.pilot, np.random.default_rng(0)))
    require_same("repeatable", again, found)


# ------------------------------------------------ by the estimators


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_never_worse_for_moves(seed: int) -> None:
    X = _reals(0.1)
    plain, moved = (
        Mixture("diag", 8, inference="vb", alpha=4.0, merge_split=move, random_state=seed).fit(X)
        for move in (False, True)
    )
    assert moved.evidence_bound_ >= plain.evidence_bound_ - 1e-6
    assert moved.effective_components_ == 3


def test_rows_of_known_components_stay_there() -> None:
    X, labels = _reals(), np.full(LABELS.size, -1)
    labels[:10], labels[10:20] = 4, 1  # one cluster, said to be two
    fitted = BayesianGaussianMixture(K, merge_split=True, random_state=0, max_iter=500).fit(
        X, component_labels=labels
    )
    assert fitted.counts_[4] >= 10 and fitted.counts_[1] >= 10


def test_halves_of_two_groups_are_the_groups() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat([True, False], [40, 25])
    U = np.where(group[:, None], 0.0, 20.0) + rng.normal(size=(65, 2))
    for seed in range(6):
        half = _halves(U, np.ones(65), np.random.default_rng(seed))
        assert (half == group).all() or (half == ~group).all()
