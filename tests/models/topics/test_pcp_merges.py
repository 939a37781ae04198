"""Clusters that say the same are merged, others are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln

from mixfold.engine.loop import Plan, fit
from mixfold.engine.sources import open_source
from mixfold.models.topics import pcp_merges
from mixfold.models.topics.pcp import PCPModel
from mixfold.models.topics.pcp_merges import mergers
from mixfold.models.topics.pcp_records import PCPParams, PCPSums
from mixfold.models.topics.records import TopicParams
from mixfold.testing.toys import Serial

TOPICS = np.array([[40.0, 40, 1, 1], [1.0, 1, 40, 40]])


def params(centres, clusters) -> PCPParams:
    words = TopicParams(TOPICS, np.full(2, 0.5), 1.0)
    M = len(clusters)
    return PCPParams(0.5 + np.array(centres), 1 / M + np.array(clusters), words, 1.0, M,
                     np.arange(M) + 10)  # fmt: skip


def sums(centres, clusters) -> PCPSums:
    total = float(np.sum(clusters))
    return PCPSums(TOPICS.T, np.array(centres), np.array(clusters), 0.0, total, 10 * total)


ALIKE = [[90.0, 10], [10.0, 90], [46.0, 4], [88.0, 12]], [10.0, 10, 5, 10]


def test_clusters_that_are_alike_are_merged_all_at_once_or_the_best_pair():
    every, pair = mergers(params(*ALIKE), sums(*ALIKE))
    assert every.ids.tolist() == [10, 11] and len(pair.ids) == 3
    assert every.n_clusters == 4
    np.testing.assert_allclose(every.centres, 0.5 + np.array([[224.0, 26], [10, 90]]))
    np.testing.assert_allclose(every.weights, 0.25 + np.array([25.0, 10]))
    for merged in (every, pair):  # nobody is lost
        assert (merged.weights - 0.25).sum() == pytest.approx(35)


def test_clusters_that_differ_stay():
    apart = [[90.0, 10], [10.0, 90]], [10.0, 10]
    assert mergers(params(*apart), sums(*apart)) == []
    alone = [[90.0, 10]], [10.0]
    assert mergers(params(*alone), sums(*alone)) == []


def test_too_many_clusters_are_not_compared(monkeypatch):
    monkeypatch.setattr(pcp_merges, "MOST_CLUSTERS", 3)
    assert mergers(params(*ALIKE), sums(*ALIKE)) == []


def test_gains_are_differences_of_evidence():
    centres, clusters = np.array(ALIKE[0]), np.array(ALIKE[1])
    gains = pcp_merges._gains(centres, clusters, params(*ALIKE))

    def evidence(C, g):
        """Of documents by cluster and tokens by topic, with four clusters, some of them empty."""
        C, g = np.vstack([C, np.zeros((4 - len(C), 2))]), np.append(g, np.zeros(4 - len(g)))
        of_pi = gammaln(1.0) - gammaln(1.0 + g.sum()) + (gammaln(0.25 + g) - gammaln(0.25)).sum()
        of_topics = 4 * (gammaln(1.0) - 2 * gammaln(0.5)) + gammaln(0.5 + C).sum()
        return of_pi + of_topics - gammaln(1.0 + C.sum(axis=1)).sum()

    merged = np.array([centres[0] + centres[2], centres[1], centres[3]])
    sizes = np.array([15.0, 10, 10])
    wanted = evidence(merged, sizes) - evidence(centres, clusters)
    assert gains[0, 2] == pytest.approx(wanted)
    assert np.all(np.isneginf(gains[np.tril_indices(4)]))


def test_a_fit_crosses_the_plateau_by_a_merger(rng):
    tables = np.array([[0.45, 0.45, 0.05, 0.05], [0.05, 0.05, 0.45, 0.45]])
    X = np.array([rng.multinomial(20, tables[i % 2]) for i in range(80)], float)
    first = replace(params(*ALIKE), centres=0.5 + np.array(ALIKE[0]) * 4)
    # with more steps, or priors that are learned, it gets there by itself
    model, source = PCPModel((first,), learn_prior=False, learn_smoothing=False), open_source(X)
    plan = Plan(tol=3e-2, max_iter=100, n_candidates=1)
    plain = fit(model, source, Serial(), plan)
    moved = fit(model, source, Serial(), replace(plan, moves=5))
    assert len(plain.params.weights) > 2  # or this test says nothing
    assert len(moved.params.weights) == 2
    assert moved.objective > plain.objective
    assert np.diff(moved.trace).min() > -1e-9
