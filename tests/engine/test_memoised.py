"""The memoised schedule: exact after every lap, never falling, the same for any source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold import BayesianGaussianMixture, Mixture
from mixfold.contracts import Array
from mixfold.engine.batches import batches
from mixfold.engine.checkpoints import Checkpoint
from mixfold.engine.climb import climb, visit
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.memoised import Memo, context_of, lap
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task
from mixfold.families.bayes.normal_gamma import BayesDiagonal
from mixfold.families.bayes.normal_wishart import BayesFull, BayesTied
from mixfold.families.exponential import Poisson
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.mixing.sticks import StickBreaking
from mixfold.models.mixtures.bayes_mixture import BayesMixture
from mixfold.models.mixtures.inference import INFERENCES
from mixfold.models.mixtures.starts import STARTS
from mixfold.testing.compare import require_same
from mixfold.testing.tables import clustered_table
from mixfold.testing.toys import Serial

N = 160
FAMILIES = [BayesFull(), BayesTied(), BayesDiagonal()]
SIZES = [1, 7, 64, N, 10 * N]
unfinished = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def _model(family: Any, inference: str = "vb", **other: Any) -> BayesMixture:
    rule = INFERENCES[inference]
    mixing = other.pop("mixing", StickBreaking(1.0))
    return BayesMixture(4, family, mixing, STARTS["random"], inference=rule, **other)


def _rows(missing: float = 0.0) -> Array:
    X = clustered_table(N, 3, 3, seed=4)
    holes = np.random.default_rng(1).random(X.shape) < missing
    holes[:, 0] &= ~holes.all(axis=1)  # every row says something
    X[holes] = np.nan
    return X


def _task(model: Any, X: Any, weight: Array | None = None) -> Task:
    source = open_source(X, weight=weight)
    executor = ThreadExecutor(1)
    return Task(model, source, executor, draw_pilot(source, executor, N, 0), 0)


def _start(task: Task) -> Any:
    return task.model.initialise(task.pilot, np.random.default_rng(0))


# ------------------------------------------------ batches


@pytest.mark.parametrize("size", SIZES)
def test_batches_hold_every_row_once_and_are_not_larger_than_asked(size: int) -> None:
    source = open_source(_rows(0.1), weight=np.linspace(0, 1, N))
    for _ in range(2):
        parts = list(batches(source, size))
        blocks = [block for part in parts for block in part.blocks(5)]
        assert all(part.n_samples <= size for part in parts)
        assert [b.start for b in blocks] == list(np.cumsum([0] + [b.n_rows for b in blocks])[:-1])
        whole = np.concatenate([block.X for block in blocks])
        assert np.array_equal(whole, _rows(0.1), equal_nan=True)
        np.testing.assert_array_equal(
            np.concatenate([block.weight for block in blocks]), np.linspace(0, 1, N)
        )


# ------------------------------------------------ the bound


@pytest.mark.parametrize("size", [7, 64])
@pytest.mark.parametrize("missing", [0.0, 0.15], ids=["complete", "with NaN"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_bound_is_exact_and_rises_with_every_lap(
    family: Any, missing: float, size: int
) -> None:
    """The value of a lap is that of its responsibilities: between those of two whole passes."""
    model = _model(family)
    task = _task(model, _rows(missing), np.linspace(0.5, 2, N))
    params, memo, last = _start(task), Memo(), -np.inf
    for number in range(6):
        params, stats, memo = lap(task, params, memo, size, number, context_of(task, number))
        value = model.free_energy(params, stats)
        assert value >= last - 1e-9 * abs(value)
        # a whole pass has better responsibilities for the same parameters
        exact = model.objective(params, visit(task, params, 0))
        if number == 0:
            assert value == pytest.approx(exact, rel=1e-10)
        assert last - 1e-9 * abs(exact) <= value <= exact + 1e-9 * abs(exact)
        last = value
    assert len(memo.batches) == -(-N // size)
    require_same("memory", memo.total(), stats)


def test_one_batch_is_the_full_batch() -> None:
    model = _model(BayesFull())
    task = _task(model, _rows())
    rules = Rules(0.0, 6)
    wanted = climb(task, Climb(_start(task)), rules)
    # a lap updates at its start and at its end: half as many are as many steps
    got = climb(task, Climb(_start(task)), replace(rules, batch_size=N))
    best = np.array(wanted.trace)
    assert got.trace[0] == pytest.approx(best[0], rel=1e-12)
    # after the first lap a value has the M step that the next pass would begin with
    for memoised, ours, theirs in zip(got.trace[1:], best[1:], best[2:], strict=False):
        assert ours - 1e-8 <= memoised <= theirs + 1e-8


@pytest.mark.parametrize("size", [20, N])
@pytest.mark.parametrize("inference", ["vb", "em"])
def test_the_same_optimum_as_by_whole_passes(inference: str, size: int) -> None:
    model = _model(BayesDiagonal(), inference, mixing=SymmetricDirichlet(2.0, True))
    task = _task(model, _rows())
    start = climb(task, Climb(_start(task)), Rules(0.0, 15)).best
    tight = Rules(1e-10, 3000)
    wanted = climb(task, Climb(start), tight)
    got = climb(task, Climb(start), replace(tight, batch_size=size))
    assert got.reason == wanted.reason == "converged" and not got.events
    assert got.objective == pytest.approx(wanted.objective, rel=1e-8)
    np.testing.assert_allclose(got.best.counts, wanted.best.counts, atol=0.05)
    assert got.n_passes <= wanted.n_passes + 2


def test_small_batches_take_fewer_passes() -> None:
    task = _task(_model(BayesDiagonal()), _rows())
    rules = Rules(1e-7, 500)
    passes = [
        climb(task, Climb(_start(task)), replace(rules, batch_size=size)).n_passes
        for size in (None, 20)
    ]
    assert passes[1] < 0.8 * passes[0], passes


def test_tight_clusters_far_apart_keep_their_digits() -> None:
    """Sums about the means of a reading must not be added to those about another's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2)) * 1e-3 + rng.choice([0.0, 7.0], N)[:, None]
    X[::3] += 3e-3
    scatter = 1e-6 * np.eye(2)
    for family in (BayesTied(scatter=scatter, precision=1e-6), BayesFull(scatter=scatter)):
        task = _task(_model(family), X)
        done = climb(task, Climb(_start(task)), Rules(1e-8, 60, batch_size=33))
        assert not done.events, done.events
        exact = task.model.objective(done.best, visit(task, done.best, 0))
        assert exact - 1.0 < done.objective <= exact + 1e-6 * abs(exact)


@unfinished
def test_learned_priors_and_threads() -> None:
    X = _rows(0.1)
    fits = [
        BayesianGaussianMixture(
            4, learn_prior=True, learn_concentration=True, batch_size=33, tol=0, max_iter=15,
            n_jobs=jobs, random_state=0,
        ).fit(X)
        for jobs in (1, 2)
    ]  # fmt: skip
    assert (np.diff(fits[0].lower_bounds_) > -1e-9).all()
    assert not fits[0].events_
    np.testing.assert_array_equal(fits[0].means_, fits[1].means_)


# ------------------------------------------------ sources, checkpoints


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_give_the_same_fit(kind: str, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install 'mixfold[tables]'")
    X = _rows(0.1)
    frame = pd.DataFrame(X, columns=list("abc"))
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, row_group_size=50)
    options: dict[str, Any] = {"covariance_type": "diag", "batch_size": 40, "random_state": 0}
    wanted = BayesianGaussianMixture(4, max_iter=300, **options).fit(frame)
    got = BayesianGaussianMixture(4, max_iter=300, **options).fit(path)
    assert got.lower_bound_ == pytest.approx(wanted.lower_bound_, rel=1e-4)


def test_sparse_rows_give_the_same_fit() -> None:
    counts = 1.0 * np.random.default_rng(0).poisson(np.repeat([[1.0], [6.0]], 80, axis=0), (N, 4))
    a, b = (
        Mixture("poisson", 4, inference="vb", batch_size=32, random_state=0).fit(x)
        for x in (counts, sparse.csr_array(counts))
    )
    assert a.lower_bound_ == pytest.approx(b.lower_bound_, rel=1e-9)


class Every(Checkpoint):
    """Writes at every offer, not now and then."""

    def offer(self, progressed: Any) -> None:
        self.write(progressed)


def _fitted(checkpoint: Checkpoint | None = None, before: Any = None) -> Fit:
    plan = Plan(0.0, 8, n_candidates=1, batch_size=50, seed=5)
    model = _model(Poisson(), mixing=SymmetricDirichlet(1.0, True))
    X = np.random.default_rng(0).poisson(np.repeat([[1.0], [6.0]], 80, axis=0), (N, 4)) * 1.0
    return fit(model, open_source(X), Serial(before), plan, checkpoint=checkpoint)


@pytest.mark.parametrize("at", [3, 10, 21])
def test_a_fit_that_died_goes_on_with_its_memory(at: int, tmp_path: Path) -> None:
    wanted = _fitted()

    def die(n: int) -> None:
        if n == at:
            raise MemoryError("the machine is gone")

    path = tmp_path / "fit.mixfold"
    with pytest.raises(MemoryError):
        _fitted(Every(path, {}), die)
    result = _fitted(Every(path, {}))
    require_same("resumed", result.params, wanted.params)
    require_same("resumed", result.trace, wanted.trace)


def test_ctrl_c_in_a_lap_returns_the_best_so_far() -> None:
    def interrupt(n: int) -> None:
        if n == 14:  # batches of four to a lap
            raise KeyboardInterrupt

    done = _fitted(before=interrupt)
    assert done.reason == "interrupted" and done.n_passes == 3
    assert done.objective == max(done.trace)
