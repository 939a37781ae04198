"""The blocked Gibbs sampler: exact laws of partitions and of the joint, and blocks that vary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from mixfold.contracts import Array, Block, Context, Pilot
from mixfold.engine.chain import Sweeps, sample_chain
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.sources import open_source
from mixfold.engine.state import Task
from mixfold.families.bayes.normal_gamma import BayesDiagonal
from mixfold.families.bayes.normal_wishart import BayesFull, BayesTied
from mixfold.families.exponential import Bernoulli, Poisson
from mixfold.mixing import StickBreaking, SymmetricDirichlet
from mixfold.testing.samplers import (
    Placed,
    agree,
    canonical,
    features,
    mixture_to_sample,
    pilot_of,
    same_means,
    whole,
)
from mixfold.testing.samplers import law as partition_law

FAMILIES: dict[str, Any] = {
    "bernoulli": Bernoulli(a=0.7, b=1.3),
    "poisson": Poisson(a=2.0),
    "full": BayesFull(precision=0.5, degrees=6.0),
    "diag": BayesDiagonal(precision=0.5, degrees=4.0),
    "tied": BayesTied(precision=0.5, degrees=6.0),
}


def _rows(name: str, n: int, rng: np.random.Generator) -> Array:
    draws: dict[str, Callable[[], Array]] = {
        "bernoulli": lambda: rng.random((n, 3)) < 0.5,
        "poisson": lambda: rng.poisson(4.0, (n, 2)),
    }
    return np.asarray(draws.get(name, lambda: 10 + rng.normal(size=(n, 2)))(), dtype=float)


@dataclass(frozen=True)
class Rows:
    """A source of blocks of so many rows."""

    X: Array
    size: int = 1000

    @property
    def n_samples(self) -> int:
        return len(self.X)

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def feature_names(self) -> None:
        return None

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        for first in range(0, len(self.X), self.size):
            yield whole(self.X[first : first + self.size], start=first)


class Plain:
    """One block after the other, and nothing else."""

    def map_reduce(self, task: Any, source: Any) -> Any:
        total, *others = map(task, source.blocks())
        for other in others:
            total = total + other
        return total

    def map_rows(self, task: Any, source: Any) -> Any:
        return map(task, source.blocks())


def _labels(model: Any, X: Array, pilot: Pilot, n_draws: int = 600) -> Array:
    task = Task(model, Rows(X), Plain(), pilot, 0)
    start = model.initialise(pilot, np.random.default_rng(0))
    return sample_chain(task, start, Sweeps(n_draws, 20, 2), 0).labels


def _counts(labels: Any) -> Array:
    return np.bincount(labels, minlength=3).astype(float)


# ------------------------------------------------ exact laws


@pytest.mark.parametrize(
    ("name", "mixing"),
    [
        ("bernoulli", SymmetricDirichlet(2.0)),
        ("poisson", StickBreaking(1.5)),
        ("full", StickBreaking(1.5)),
        ("diag", SymmetricDirichlet([0.3, 2.0, 1.0])),
        ("tied", StickBreaking(1.5)),
    ],
)
def test_exact_law_of_partitions(name: str, mixing: Any, rng: np.random.Generator) -> None:
    X = _rows(name, 4, rng)
    pilot = pilot_of(X)
    model = mixture_to_sample(FAMILIES[name], mixing, pilot)
    placed = Placed(model, pilot)

    def log_weight(labels: Any) -> float:
        return placed.evidence(X, labels) + float(mixing.log_prob(_counts(labels)))

    agree(_labels(model, X, pilot), partition_law(4, 3, log_weight, labelled=True))


def test_exact_law_of_partitions_with_a_hole(rng: np.random.Generator) -> None:
    """The entry that is missing is integrated out by quadrature."""
    X = _rows("full", 4, rng)
    pilot, mixing = pilot_of(X), StickBreaking(1.5)
    model = mixture_to_sample(FAMILIES["full"], mixing, pilot)
    placed = Placed(model, pilot)
    # x = 10 + tan t, midpoints of t: a power of x becomes one of cos t
    t = (np.arange(24) + 0.5) / 24 * np.pi - np.pi / 2

    @cache
    def integral(partition: Any) -> float:
        logs = []
        for hole in 10 + np.tan(t):
            filled = X.copy()
            filled[1, 0] = hole
            logs.append(placed.evidence(filled, partition))
        return float(logsumexp(logs - 2 * np.log(np.cos(t))))

    def log_weight(labels: Any) -> float:
        # sticks tell labels apart, the rows do not
        return integral(canonical(labels)) + float(mixing.log_prob(_counts(labels)))

    law = partition_law(4, 3, log_weight, labelled=True)
    lacking = X.copy()
    lacking[1, 0] = np.nan
    agree(_labels(model, lacking, pilot), law)


# ------------------------------------------------ joint laws


@pytest.mark.parametrize(
    ("name", "mixing"),
    [
        ("poisson", StickBreaking(1.0, True, (2.0, 1.5))),
        ("tied", SymmetricDirichlet(1.0, True, (2.0, 1.5))),
    ],
)
def test_joint_distribution(name: str, mixing: Any, rng: np.random.Generator) -> None:
    """Rows given components and a sweep given rows, in turn, have the joint law."""
    n, first = 5, _rows(name, 5, rng)
    pilot = pilot_of(first)
    model = mixture_to_sample(FAMILIES[name], mixing, pilot)
    placed = Placed(model, pilot)
    prior = placed.without_rows()

    def rows_of(labels: Array) -> Array:
        params = model.conjugate.draw(prior, rng)
        return np.asarray(model.family.draw_rows(params, labels, rng))

    independent = []
    for _ in range(1500):
        alpha = rng.gamma(2.0) / 1.5
        state = mixing.posterior(np.zeros(3), alpha)
        labels = rng.choice(3, n, p=np.exp(mixing.draw(state, rng)))
        independent.append(features(rows_of(labels), labels, alpha, first))
    chain, X, labels, params = [], first, np.arange(n) % 3, placed.start
    for sweep in range(1000):
        # the posterior of these rows in these components, and alpha given the latter
        params = model.update(params, placed.stats(X, labels), Context(pilot, rng)).params
        task = Task(model, Rows(X), Plain(), pilot, sweep)
        run = sample_chain(task, params, Sweeps(1, 0), 0)
        params, labels = run.params[0], run.labels[0].astype(int)
        X = rows_of(labels)
        chain.append(features(X, labels, params.mixing.alpha, first))
    same_means(chain, independent)


# ------------------------------------------------ blocks and threads


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_blocks_and_threads_do_not_matter(
    name: str, has_missing: bool, rng: np.random.Generator
) -> None:
    X = _rows(name, 60, rng)
    if has_missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    pilot = pilot_of(X)
    model = mixture_to_sample(FAMILIES[name], StickBreaking(1.0, True), pilot)
    start = model.initialise(pilot, np.random.default_rng(1))
    ways = [
        (Rows(X), Plain()),
        (Rows(X, 7), Plain()),
        (Rows(X, 16), ThreadExecutor(2)),
        (open_source(X), ThreadExecutor(1)),
    ]
    runs = [
        sample_chain(Task(model, source, executor, pilot, 5), start, Sweeps(4, 2), 3)
        for source, executor in ways
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.labels, runs[0].labels)
        np.testing.assert_allclose(run.traces, runs[0].traces, rtol=1e-8)
    other = sample_chain(Task(model, Rows(X), Plain(), pilot, 6), start, Sweeps(4, 2), 3)
    assert (other.labels != runs[0].labels).any()
    chain = sample_chain(Task(model, Rows(X), Plain(), pilot, 5), start, Sweeps(4, 2), 4)
    assert (chain.labels != runs[0].labels).any()


def test_known_rows_stay(rng: np.random.Generator) -> None:
    X = _rows("diag", 30, rng)
    y = np.where(np.arange(30) < 6, np.arange(30) % 3, -1)
    model = mixture_to_sample(FAMILIES["diag"], SymmetricDirichlet(1.0), pilot_of(X))
    source = open_source(X, y=y)
    pilot = replace(pilot_of(X), block=whole(X, y=y))
    start = model.initialise(pilot, np.random.default_rng(1))
    run = sample_chain(Task(model, source, ThreadExecutor(1), pilot, 0), start, Sweeps(20, 0), 0)
    np.testing.assert_array_equal(run.labels[:, :6], np.tile(y[:6], (20, 1)))
    assert (run.labels[:, 6:] != run.labels[:1, 6:]).any()
