"""Starts made of a fit with two components merged and one split, or one made wide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mixfold.engine.executors.threads import ThreadExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.mixtures.rearrangements import PROPOSALS, WIDENINGS, _plan

CENTRES = np.array([[0.0, 0], [10, 0], [0, 10]])


def _pilot(X: np.ndarray, **options):
    source = open_source(X, **options)
    return draw_pilot(source, ThreadExecutor(1), len(X), 0)


def _rows(n: int = 60) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(centre, 1, (n, 2)) for centre in CENTRES])


def _stuck(model: Mixture, X: np.ndarray):
    """Two components share the first cluster, and one has the other two."""
    resp = np.zeros((len(X), 3))
    third = len(X) // 3
    resp[:third, 0] = resp[:third, 1] = 0.5
    resp[third:, 2] = 1
    frame = model.frame_for(_pilot(X))
    components = model.family.from_rows(frame, X, model.family.view(frame, X), resp)
    start = model.initialise(_pilot(X), np.random.default_rng(0), 0)
    return replace(start, weights=resp.mean(axis=0), components=components)


@pytest.mark.parametrize("kind", ["full", "diag", "tied"])
def test_the_first_proposal_mends_a_bad_arrangement(kind: str) -> None:
    X = _rows()
    model = Mixture(3, GAUSSIAN[kind]())
    first = next(model.rearrangements(_stuck(model, X), _pilot(X), np.random.default_rng(0)))
    means = first.components.frame.leave(first.components.means)
    distance = np.linalg.norm(means[:, None] - CENTRES, axis=2)
    assert sorted(distance.argmin(axis=1).tolist()) == [0, 1, 2] and distance.min(axis=1).max() < 1


def test_order_and_repetition_of_rows_do_not_matter() -> None:
    X = _rows(30)
    model = Mixture(3, GAUSSIAN["full"]())
    params = _stuck(model, X)
    order = np.random.default_rng(1).permutation(len(X))
    tables = [X, X[order], np.repeat(X, 2, axis=0)]
    found = [
        next(model.rearrangements(params, _pilot(table), np.random.default_rng(0))).components.means
        for table in tables
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-12)


def test_known_components_stay_where_they_are() -> None:
    X = _rows(30)
    model = Mixture(3, GAUSSIAN["full"]())
    known = _pilot(X, y=np.where(np.arange(len(X)) < 5, 0, -1))
    assert not list(model.rearrangements(_stuck(model, X), known, np.random.default_rng(0)))


def test_missing_entries_and_one_component() -> None:
    X = _rows(30)
    X[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    model = Mixture(3, GAUSSIAN["full"]())
    params = model.initialise(_pilot(X), np.random.default_rng(0), 0)
    made = list(model.rearrangements(params, _pilot(X), np.random.default_rng(0)))
    assert len(made) <= PROPOSALS + WIDENINGS
    assert all(np.isfinite(one.components.means).all() for one in made)
    one = Mixture(1, GAUSSIAN["full"]())
    params = one.initialise(_pilot(X), np.random.default_rng(0), 0)
    assert not list(one.rearrangements(params, _pilot(X), np.random.default_rng(0)))


def test_clusters_that_are_apart_are_left_alone() -> None:
    X = _rows()
    resp = np.repeat(np.eye(3), 60, axis=0)
    assert not _plan((X - X.mean(0)) / X.std(0), np.ones(len(X)), resp, np.random.default_rng(0))


def test_a_component_is_given_to_the_rows_between_the_others() -> None:
    rng = np.random.default_rng(3)
    ends = [((0, 0), (1, 2)), ((1, 2), (2, 0)), ((3, 0), (4, 2))]
    legs = [np.add(a, rng.random((60, 1)) * np.subtract(b, a)) for a, b in ends]
    noise = rng.uniform([-0.5, -0.5], [4.5, 2.5], size=(40, 2))
    X = np.concatenate([*(leg + 0.05 * rng.normal(size=leg.shape) for leg in legs), noise])
    model = Mixture(4, GAUSSIAN["full"]())
    params = model.initialise(_pilot(X), np.random.default_rng(0), 0)
    made = list(model.rearrangements(params, _pilot(X), np.random.default_rng(0)))
    frame = params.components.frame
    U = model.family.view(frame, X)
    spread = np.linalg.slogdet(np.cov(U.T, bias=True))[1]
    volumes = [np.linalg.slogdet(model.family.covariances(one.components))[1] for one in made]
    scale = 2 * np.log(frame.scale).sum()
    wide = [np.isclose(volume - scale, spread, atol=1e-6).any() for volume in volumes]
    assert 1 <= sum(wide) <= WIDENINGS


def test_an_arc_of_a_ring_is_proposed_as_a_component() -> None:
    rng = np.random.default_rng(4)
    turn = rng.uniform(0, 2 * np.pi, 400)
    X = np.column_stack([np.cos(turn), np.sin(turn)]) + 0.05 * rng.normal(size=(400, 2))
    resp = np.column_stack([X[:, 0] > 0, X[:, 0] <= 0]).astype(float)
    moves = _plan(X, np.ones(len(X)), resp, np.random.default_rng(0))
    shares = [move.sum(axis=0).min() / len(X) for move in moves if set(np.unique(move)) == {0, 1}]
    assert min(shares) < 0.3
