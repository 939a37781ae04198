"""Many clusters: shortlists of documents give bounds, and nothing is lost that matters."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Block, Context
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
    lists = Shortlists(length=4, passes=3)
    first = lists.current(reading, X, 0)
    other = replace(reading, log_weights=reading.log_weights[::-1] * 3)
    for _ in range(2):
        np.testing.assert_array_equal(lists.current(other, X, 0), first)
    fresh = lists.current(other, X, 0)
    np.testing.assert_array_equal(fresh, best_clusters(other, X, 4))
    assert (fresh != first).any()


def test_lists_know_clusters_by_name(params, X):
    lists = Shortlists(length=6, passes=5)
    reading = expected_reading(params)
    first = lists.current(reading, X, 0)
    kept = np.random.default_rng(0).permutation(M)[:30]  # dropped, and in another order
    fewer = replace(params, centres=params.centres[kept], weights=params.weights[kept], ids=kept)
    again = lists.current(expected_reading(fewer), X, 0)
    for before, now in zip(first, again, strict=True):
        assert set(kept[now[now >= 0]]) == set(before) & set(kept)


def test_documents_without_a_cluster_look_at_all(params, X):
    lists = Shortlists(length=2, passes=5)
    first = lists.current(expected_reading(params), X, 0)
    lost = first[0]
    kept = np.setdiff1d(np.arange(M), lost)
    fewer = replace(params, centres=params.centres[kept], weights=params.weights[kept], ids=kept)
    reading = expected_reading(fewer)
    again = lists.current(reading, X, 0)
    np.testing.assert_array_equal(np.sort(again[0]), best_clusters(reading, X[[0]], 2)[0])
    assert (again >= 0).any(axis=1).all()


def test_lists_stay_at_home_and_within_their_room(params, X):
    reading = expected_reading(params)
    lists = Shortlists(length=4)
    lists.current(reading, X, 0)
    assert lists._lists and not pickle.loads(pickle.dumps(lists))._lists
    small = Shortlists(length=4, room=10)
    small.current(reading, X, 0)
    assert not small._lists
    lists.clear()
    assert not lists._lists


@pytest.mark.parametrize("length", [3, 10])
def test_the_bound_climbs_through_all_passes(params, X, length):
    model = PCPModel((params,), Structured(few=5, shortlists=Shortlists(length, 3)), patience=4)
    now, last, steps = model.initialise(None, None), -np.inf, []
    for step in range(20):
        stats = model.expect(model.prepare(now), Block(X), RowKeys(0))
        value = model.objective(now, stats)
        steps.append(value - last)
        update = model.update(now, stats, Context(None, np.random.default_rng(0), step + 1))
        now, last = update.params, value if update.monotone else -np.inf
    assert min(steps) > -1e-9
    assert np.isfinite(value)
