"""Splits and mergers: the exact law of partitions of seven rows, and chains that agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

from mixfold.contracts import Block
from mixfold.families.bayes.normal_gamma import BayesDiagonal
from mixfold.families.exponential import Poisson
from mixfold.mixing import StickBreaking, SymmetricDirichlet
from mixfold.models.mixtures.collapsed import CollapsedSampler
from mixfold.models.mixtures.split_merge import propose
from mixfold.testing.samplers import Placed, canonical, mixture_to_sample, pilot_of
from mixfold.testing.samplers import law as partition_law

_BATCHES = 40


def _within_six_errors(draws: list[tuple[int, ...]], law: dict[tuple[int, ...], float]) -> None:
    """Each probable partition as often as it is probable, and the rest together; errors by means
    of batches, which know of the correlation of draws, and no smaller than of independent ones."""
    assert not set(draws) - set(law)
    cells = [key for key, share in law.items() if share > 0.008]
    assert len(cells) > 8
    tables = np.array([[draw == key for key in cells] for draw in draws], float)
    tables = np.column_stack([tables, 1 - tables.sum(axis=1)])
    wanted = np.array([law[key] for key in cells])
    wanted = np.append(wanted, 1 - wanted.sum())
    length = len(tables) // _BATCHES * _BATCHES
    batches = tables[:length].reshape(_BATCHES, -1, len(wanted)).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(_BATCHES)
    z = (batches.mean(axis=0) - wanted) / np.maximum(error, np.sqrt(wanted / length))
    assert np.abs(z).max() < 6, z.round(1)


def _example(family: Any, mixing: Any, seed: int) -> tuple[np.ndarray, Any, Any]:
    rng = np.random.default_rng(seed)
    side = np.array([1.0, 1, 1, -1, -1, -1, -1])[:, None]
    if isinstance(family, Poisson):
        X = rng.poisson(6 + 1.5 * side, (7, 2)).astype(float)
    else:
        X = rng.standard_normal((7, 2)) + 0.5 * side
    model = mixture_to_sample(family, mixing, pilot_of(X))
    return X, model, rng


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with sweeps"])
@pytest.mark.parametrize(
    ("family", "mixing"),
    [
        (BayesDiagonal(precision=0.3, degrees=3.0), StickBreaking(1.5)),
        (Poisson(), StickBreaking(0.8)),
        (BayesDiagonal(precision=0.3, degrees=3.0), SymmetricDirichlet(2.0)),
        (Poisson(), SymmetricDirichlet([0.3, 2.0, 1.0])),
    ],
)
def test_exact_law_of_partitions(family: Any, mixing: Any, alone: bool) -> None:
    """Proposals alone reach every partition, and each as often as enumeration says."""
    X, model, rng = _example(family, mixing, 3)
    process = isinstance(mixing, StickBreaking)
    wide = replace(model, n_components=7 if process else 3)
    placed = Placed(wide, pilot_of(X))

    def log_weight(labels: Any) -> float:
        counts = np.bincount(labels, minlength=wide.n_components).astype(float)
        rows = placed.evidence(X, labels)
        if not process:
            return float(rows + mixing.log_prob(counts))
        used = counts[counts > 0]
        return float(rows + used.size * np.log(mixing.alpha) + gammaln(used).sum())

    cache: dict[Any, float] = {}

    def weight_once(labels: Any) -> float:
        """Rows of a partition have one evidence, however its components are numbered."""
        key = canonical(labels)
        if key not in cache:
            cache[key] = placed.evidence(X, key)
        counts = np.bincount(labels, minlength=wide.n_components).astype(float)
        return float(cache[key] + mixing.log_prob(counts))

    if process:
        law = _law_of_process(7, log_weight)
    else:
        law = partition_law(7, 3, weight_once, labelled=True)
    sampler = CollapsedSampler(model, Block(X), pilot_of(X), process=process, proposals=2)
    # all rows in one cluster, from which a finite mixture splits into one of two empty slots
    assert process or law[(0,) * 7] > 0.01
    sampler.start(np.zeros(7, np.int64))
    free, known, draws = np.arange(7), np.zeros(7, bool), []
    for step in range(9_000 if alone else 3_600):
        if alone:
            propose(sampler, free, known, rng)
        else:
            sampler.sweep(rng)
        if step % 2:
            draws.append(canonical(sampler.labels))
    _within_six_errors(draws, law)


def _law_of_process(n: int, log_weight: Any) -> dict[tuple[int, ...], float]:
    """Partitions by restricted growth: 877 of seven rows instead of 7^7 labelings."""
    grown: list[tuple[int, ...]] = [()]
    for _ in range(n):
        grown = [(*z, k) for z in grown for k in range(max(z, default=-1) + 2)]
    logs = np.array([log_weight(np.array(z)) for z in grown])
    shares = np.exp(logs - logs.max())
    return dict(zip(grown, shares / shares.sum(), strict=True))


def test_clusters_with_known_rows_are_left_alone() -> None:
    X, model, rng = _example(BayesDiagonal(precision=0.3, degrees=3.0), SymmetricDirichlet(2.0), 0)
    y = np.array([0, -1, -1, -1, -1, -1, -1])
    sampler = CollapsedSampler(model, Block(X, y=y), pilot_of(X), process=False, proposals=5)
    sampler.start(np.array([0, 0, 0, 1, 1, 2, 2]))
    for _ in range(50):
        sampler.sweep(rng)
        assert sampler.labels[0] == 0
        assert sampler.counts.sum() == 7
        assert Counter(sampler.labels.tolist()) == {
            int(k): int(c) for k, c in enumerate(sampler.counts) if c
        }


def test_a_rejected_proposal_changes_nothing() -> None:
    """But rounding of the last digits."""
    X, model, rng = _example(BayesDiagonal(precision=0.3, degrees=3.0), StickBreaking(1.5), 1)
    sampler = CollapsedSampler(model, Block(X), pilot_of(X), process=True)
    sampler.start(np.array([0, 0, 1, 1, 2, 2, 2]))
    seen = 0
    for _ in range(300):
        labels, value = sampler.labels.copy(), sampler.log_joint()
        if propose(sampler, np.arange(7), np.zeros(7, bool), rng):
            continue
        seen += 1
        np.testing.assert_array_equal(sampler.labels, labels)
        assert sampler.log_joint() == pytest.approx(value, abs=1e-9)
    assert 30 < seen < 300


def test_one_row_has_no_partner() -> None:
    X, model, rng = _example(Poisson(), StickBreaking(1.0), 0)
    sampler = CollapsedSampler(
        model, Block(X, weight=np.eye(7)[2]), pilot_of(X), process=True, proposals=3
    )
    sampler.start(np.zeros(7, np.int64))
    sampler.sweep(rng)
    assert sampler.accepted == 0
