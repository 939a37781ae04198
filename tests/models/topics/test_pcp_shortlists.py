"""Many clusters: shortlists of documents give bounds, and nothing is lost that matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Block, Context
from mixfold.engine.executors.row_memory import HeldRows
from mixfold.engine.random import RowKeys
from mixfold.models.topics import pcp_records
from mixfold.models.topics.pcp import PCPModel
from mixfold.models.topics.pcp_records import PCPParams, expected_reading
from mixfold.models.topics.pcp_shortlists import Shortlists, best_clusters
from mixfold.models.topics.pcp_structured import (
    Structured,
    all_clusters,
    scores,
    statistics_of_listed_clusters,
)
from mixfold.models.topics.records import TopicParams, counts_of

M, K, D, N = 40, 3, 15, 60


@pytest.fixture
def params(rng) -> PCPParams:
    prior = rng.uniform(0.3, 1.5, K)
    words = TopicParams(rng.gamma(2.0, size=(K, D)) + 0.1, prior, 0.4)
    centres = prior + rng.gamma(1.0, size=(M, K))
    return PCPParams(centres, rng.gamma(2.0, size=M) + 0.1, words, 1.0, M, np.arange(M))


@pytest.fixture
def X(rng) -> sparse.csr_array:
    return sparse.csr_array(rng.poisson(0.8, (N, D)).astype(float))


@pytest.fixture
def narrow(monkeypatch) -> None:
    """Panels of seven clusters, made anew for each block."""
    monkeypatch.setattr(pcp_records, "PANEL", 7)
    monkeypatch.setattr(pcp_records, "KEPT_ENTRIES", 0)


def same(a, b, rtol=1e-9) -> None:
    for name in ("words", "centres", "clusters"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol, atol=1e-12)
    assert a.bound == pytest.approx(b.bound, rel=1e-12)
    assert (a.documents, a.tokens) == (b.documents, b.tokens)


class Listing:
    """Lists of one block, pass after pass, each of which is accepted."""

    def __init__(self, lists: Shortlists) -> None:
        self.lists, self.memory = lists, HeldRows(0, N)

    def current(self, reading, X):
        found = self.lists.current(reading, X, slice(0, N), self.memory)
        self.memory.accept()
        return found


def test_a_list_of_all_clusters_is_no_restriction(params, X, rng):
    counts = counts_of(Block(X, weight=rng.uniform(0, 2, N)))
    reading = expected_reading(params)
    everywhere = np.tile(np.arange(M, dtype=np.int32), (N, 1))
    same(statistics_of_listed_clusters(reading, counts, everywhere), all_clusters(reading, counts))


def test_panels_and_tables_change_nothing(params, X, narrow):
    counts = counts_of(Block(X))
    reading = expected_reading(params)
    assert len(reading.panels) == 6 and not reading.with_tables().tables
    narrowly, lists = all_clusters(reading, counts), best_clusters(reading, X, 10)
    pcp_records.PANEL, pcp_records.KEPT_ENTRIES = 256, 2**21
    kept = reading.with_tables()
    assert len(kept.tables) == 1
    same(narrowly, all_clusters(kept, counts))
    np.testing.assert_array_equal(lists, best_clusters(kept, X, 10))


def test_the_best_clusters_are_listed(params, X, narrow):
    reading = expected_reading(params)
    wanted = np.sort(np.argsort(-scores(reading, X), axis=1)[:, :10], axis=1)
    np.testing.assert_array_equal(best_clusters(reading, X, 10), wanted)
    assert best_clusters(reading, X, 100).shape == (N, M)


def test_fewer_clusters_lower_the_bound(params, X):
    reading, counts = expected_reading(params), counts_of(Block(X))
    bounds = [statistics_of_listed_clusters(reading, counts, best_clusters(reading, X, r)).bound
              for r in (1, 5, 20, M)]  # fmt: skip
    assert np.all(np.diff(bounds) > 0)


def test_lists_are_used_for_some_passes_and_then_made_anew(params, X):
    reading = expected_reading(params)
    lists = Listing(Shortlists(length=4, passes=3))
    first = lists.current(reading, X)
    other = replace(reading, log_weights=reading.log_weights[::-1] * 3)
    for _ in range(2):
        np.testing.assert_array_equal(lists.current(other, X), first)
    fresh = lists.current(other, X)
    np.testing.assert_array_equal(fresh, best_clusters(other, X, 4))
    assert (fresh != first).any()


def test_lists_know_clusters_by_name(params, X):
    lists = Listing(Shortlists(length=6, passes=5))
    reading = expected_reading(params)
    first = lists.current(reading, X)
    kept = np.random.default_rng(0).permutation(M)[:30]  # dropped, and in another order
    fewer = replace(params, centres=params.centres[kept], weights=params.weights[kept], ids=kept)
    again = lists.current(expected_reading(fewer), X)
    for before, now in zip(first, again, strict=True):
        assert set(kept[now[now >= 0]]) == set(before) & set(kept)


def test_documents_without_a_cluster_look_at_all(params, X):
    lists = Listing(Shortlists(length=2, passes=5))
    first = lists.current(expected_reading(params), X)
    lost = first[0]
    kept = np.setdiff1d(np.arange(M), lost)
    fewer = replace(params, centres=params.centres[kept], weights=params.weights[kept], ids=kept)
    reading = expected_reading(fewer)
    again = lists.current(reading, X)
    np.testing.assert_array_equal(np.sort(again[0]), best_clusters(reading, X[[0]], 2)[0])
    assert (again >= 0).any(axis=1).all()


def test_without_a_memory_all_clusters_are_looked_at(params, X):
    reading = expected_reading(params)
    other = replace(reading, log_weights=reading.log_weights[::-1] * 3)
    for one in (reading, other):
        lists = Shortlists(length=4).current(one, X, slice(0, N), None)
        np.testing.assert_array_equal(lists, best_clusters(one, X, 4))


@pytest.mark.parametrize("length", [3, 10])
def test_the_bound_climbs_through_all_passes(params, X, length):
    model = PCPModel((params,), Structured(few=5, shortlists=Shortlists(length, 3)), patience=4)
    now, last, steps, memory = model.initialise(None, None), -np.inf, [], HeldRows(0, N)
    for step in range(20):
        stats = model.expect(model.prepare(now), Block(X), RowKeys(0), memory)
        memory.accept()
        value = model.objective(now, stats)
        steps.append(value - last)
        update = model.update(now, stats, Context(None, np.random.default_rng(0), step + 1))
        now, last = update.params, value if update.monotone else -np.inf
    assert min(steps) > -1e-9
    assert np.isfinite(value)
