"""Chains of the collapsed sampler as estimators run them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from mixfold.contracts import Array
from mixfold.engine.budget import OVER
from mixfold.engine.chain import Chain, Sweeps
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.engine.state import Task
from mixfold.estimators.mixtures.collapsed_runs import gather_rows, run_collapsed_chain
from mixfold.families.bayes.normal_gamma import BayesDiagonal
from mixfold.mixing import StickBreaking, SymmetricDirichlet
from mixfold.models.mixtures.bayes_mixture import TRACES, BayesMixture
from mixfold.models.mixtures.collapsed import CollapsedSampler
from mixfold.models.mixtures.inference import Gibbs

SWEEPS = Sweeps(n_draws=6, burn_in=4, thin=2, label_stride=2)


def _task(X: Any, mixing: Any, seed: int = 0, **sides: Any) -> Task:
    source = open_source(X, **sides)
    executor = ThreadExecutor(1)
    model = BayesMixture(4, BayesDiagonal(), mixing, inference=Gibbs())
    return Task(model, source, executor, draw_pilot(source, executor, 100, seed), seed)


def _rows(rng: np.random.Generator, n: int = 60) -> Array:
    side = np.where(np.arange(n) % 2, 4.0, -4.0)
    return np.asarray(rng.normal(size=(n, 2)) + side[:, None])


@pytest.mark.parametrize("mixing", [StickBreaking(1.0, True), SymmetricDirichlet(1.0, True)])
def test_what_a_chain_keeps(mixing: Any, rng: np.random.Generator) -> None:
    X = _rows(rng)
    process = isinstance(mixing, StickBreaking)
    seen: list[tuple[int, int]] = []

    def watch(number: int, sweep: int, trace: Array) -> None:
        seen.append((number, sweep))

    chain = run_collapsed_chain(_task(X, mixing), SWEEPS, 3, watch, process=process)
    assert (chain.reason, len(chain.params)) == ("done", 6)
    assert chain.labels.shape == (3, 60) and chain.labels.dtype == np.uint16
    assert chain.traces.shape == (12, len(TRACES)) and np.isfinite(chain.traces[:, :-1]).all()
    assert np.isnan(chain.traces[:, -1]).all()  # the prior stays
    assert seen == [(3, sweep) for sweep in range(16)]
    for labels, params in zip(chain.labels, chain.params[::2], strict=True):
        counts = np.bincount(labels, minlength=params.n_components)
        np.testing.assert_array_equal(counts, params.counts)
        np.testing.assert_allclose(params.weights.sum(), 1.0, rtol=1e-12)
        # the two groups are apart
        assert not set(labels[::2]) & set(labels[1::2])
    kept = chain.traces[1::2]
    assert kept[:, 2].tolist() == [params.mixing.alpha for params in chain.params]
    assert len(set(kept[:, 2])) == 6


def test_chains_repeat_and_differ(rng: np.random.Generator) -> None:
    X = _rows(rng)

    def run(seed: int, number: int) -> Chain:
        task = _task(X, StickBreaking(5.0, True), seed)
        return run_collapsed_chain(task, SWEEPS, number, process=True)

    first, again = run(0, 0), run(0, 0)
    np.testing.assert_array_equal(first.labels, again.labels)
    np.testing.assert_array_equal(first.traces, again.traces)
    for other in (run(1, 0), run(0, 1)):
        assert (other.traces != first.traces).any()


def test_density_of_a_draw_integrates_to_one(rng: np.random.Generator) -> None:
    """Weights and posteriors, that of a new cluster too, make a density."""
    X = rng.normal(size=(30, 1))
    task = _task(X, StickBreaking(2.0))
    chain = run_collapsed_chain(task, SWEEPS, 0, process=True)
    # x = tan t
    t = (np.arange(4000) + 0.5) / 4000 * np.pi - np.pi / 2
    block = gather_rows(open_source(np.tan(t)[:, None]))
    assert isinstance(task.model, BayesMixture)
    reading = task.model.prepare(chain.params[0])
    logs = task.model.log_row_density(reading, tuple(chain.params), block)
    density = np.exp(logs) / np.cos(t) ** 2
    assert density.sum() * np.pi / 4000 == pytest.approx(1.0, abs=2e-2)


def test_deadline_and_interruption(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = _rows(rng)
    late = replace(SWEEPS, deadline=OVER)
    chain = run_collapsed_chain(_task(X, StickBreaking(1.0)), late, 0, process=True)
    assert (chain.reason, len(chain.params), len(chain.traces)) == ("time_budget", 1, 1)
    sweep, done = CollapsedSampler.sweep, []

    def tired(self: CollapsedSampler, draws: np.random.Generator) -> None:
        done.append(None)
        if len(done) == 9:
            raise KeyboardInterrupt
        sweep(self, draws)

    monkeypatch.setattr(CollapsedSampler, "sweep", tired)
    chain = run_collapsed_chain(_task(X, StickBreaking(1.0)), SWEEPS, 0, process=True)
    assert (chain.reason, len(chain.params), len(chain.traces)) == ("interrupted", 2, 4)


def test_sources_are_gathered(rng: np.random.Generator) -> None:
    X = np.where(rng.random((5000, 3)) < 0.7, 0.0, rng.random((5000, 3)))
    y, weight = np.arange(5000) % 5 - 1, rng.integers(0, 2, 5000).astype(float)
    for table in (X, csr_array(X)):
        block = gather_rows(open_source(table, weight=weight, y=y))
        got = block.X.toarray() if hasattr(block.X, "toarray") else block.X
        np.testing.assert_array_equal(got, X)
        np.testing.assert_array_equal(block.weights(), weight)
        assert block.y is not None and block.complete
        np.testing.assert_array_equal(block.y, y)
    X[7, 1] = np.nan
    plain = gather_rows(open_source(X))
    assert not plain.complete and plain.y is None and plain.weight is None


def test_sources_that_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=r"have 100 entries, got 60 x 2\. Fit a sample.*'vb'"):
        gather_rows(open_source(_rows(rng)), most=100)
    with pytest.raises(ValueError, match=r"have 100 stored entries, got 60 x 2 with more"):
        gather_rows(open_source(csr_array(_rows(rng))), most=100)
    # what is not stored takes no room
    assert gather_rows(open_source(csr_array(np.eye(60))), most=100).X.nnz == 60

    class Endless:
        n_samples, n_features = None, 2

    with pytest.raises(ValueError, match=r"Endless does not say how many.*Fit a sample"):
        gather_rows(Endless())  # type: ignore[arg-type]
