"""The mixture under transformations: scores, starts, steps, and what happens at the edges."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from mixfold.contracts import Array, Context, Pilot
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import RowKeys
from mixfold.engine.sources import open_source
from mixfold.models.mixtures.mlit.model import TransformedMixture, log_joint, read
from mixfold.models.mixtures.mlit.records import Iterates, Moments, Transformed, TransformSums
from mixfold.models.mixtures.mlit.rules import Constrained, Normalized, Orthonormal, Rule
from mixfold.models.mixtures.mlit.starts import cluster_start, window_start, windows

RIDGE = 0.01


def rows(seed: int = 0, n: int = 150, D: int = 6) -> Array:
    rng = np.random.default_rng(seed)
    centres = 2 * rng.normal(size=(3, D))
    return np.asarray(centres[rng.integers(3, size=n)] + rng.normal(size=(n, D)) + 1.0)


def moments(X: Array) -> Moments:
    covariance = np.cov(X.T, bias=True)
    return Moments(float(len(X)), X.mean(axis=0), covariance, covariance)


def pilot_of(X: Array) -> Pilot:
    return draw_pilot(open_source(X), ThreadExecutor(1), len(X), 0)


def model(X: Array, rule: Rule, K: int, d: int, ridge: float = RIDGE) -> TransformedMixture:
    if isinstance(rule, Orthonormal):
        first = cluster_start(rule, K, d, ridge, pilot_of(X), np.random.default_rng(0))
    else:
        first = window_start(rule, moments(X), K, d, smallest=False, shift=2, ridge=ridge)
    return TransformedMixture(rule, ridge, first, X.mean(axis=0))


def sums(mixture: TransformedMixture, params: Iterates, X: Array) -> TransformSums:
    [block] = open_source(X).blocks(len(X))
    return mixture.expect(mixture.prepare(params), block, RowKeys(0, 0))


def steps(mixture: TransformedMixture, X: Array, n: int) -> tuple[Iterates, list[float]]:
    """Parameters after n steps, and the objective before each and at the end."""
    params, pilot, rng = Iterates(mixture.first), pilot_of(X), np.random.default_rng(0)
    trace = []
    for t in range(1, n + 1):
        stats = sums(mixture, params, X)
        trace.append(stats.score)
        params = mixture.update(params, stats, Context(pilot, rng, t)).params
    return params, [*trace, sums(mixture, params, X).score]


# ------------------------------------------------ scores


@pytest.mark.parametrize("rule", [Normalized(3.0), Constrained(9.0), Orthonormal()], ids=str)
def test_scores_are_those_of_scipy(rule: Rule) -> None:
    X = rows()
    mixture = model(X, rule, 3, 2)
    now = steps(mixture, X, 3)[0].now
    parts = []
    for k in range(3):
        normal = multivariate_normal(now.means[k], now.covariances[k])
        jitter = RIDGE / 2 * np.trace(np.linalg.inv(now.covariances[k]))
        offset = -jitter if isinstance(rule, Orthonormal) else 0.0
        parts.append(np.log(now.weights[k]) + normal.logpdf(X @ now.transforms[k].T) + offset)
    reading = read(now, rule.offset(now.covariances, RIDGE), mixture.origin)
    np.testing.assert_allclose(log_joint(reading, X), np.array(parts).T, rtol=1e-9, atol=1e-9)
    assert sums(mixture, Iterates(now), X).score == pytest.approx(logsumexp(parts, axis=0).sum())


def test_the_score_is_constant_along_the_null_space() -> None:
    X = rows()
    mixture = model(X, Normalized(3.0), 1, 2)
    now = mixture.first
    along = np.linalg.svd(now.transforms[0])[2][2:]
    reading = mixture.prepare(Iterates(now))
    moved = X + 100 * np.random.default_rng(0).normal(size=(len(X), 4)) @ along
    np.testing.assert_allclose(log_joint(reading, moved), log_joint(reading, X), atol=1e-8)


def test_sums_are_the_weighted_moments() -> None:
    X = rows()
    mixture = model(X, Normalized(3.0), 2, 2)
    params = Iterates(mixture.first)
    joint = log_joint(mixture.prepare(params), X)
    shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    stats, centred = sums(mixture, params, X), X - X.mean(axis=0)
    np.testing.assert_allclose(stats.count, shares.sum(axis=0))
    np.testing.assert_allclose(stats.first, shares.T @ centred, atol=1e-9)
    np.testing.assert_allclose(stats.second, np.einsum("nk,ni,nj->kij", shares, centred, centred))


# ------------------------------------------------ starts


@pytest.mark.parametrize(
    ("K", "d", "D", "shift", "firsts"),
    [
        (2, 14, 18, 2, [0, 2]),  # as published for silhouettes of vehicles
        (3, 3, 20, 2, [0, 2, 4]),
        (4, 4, 33, 5, [0, 5, 10, 15]),
        (4, 7, 10, 2, [0, 1, 2, 3]),  # lowered so that all fit
        (3, 5, 6, 2, [0, 1, 2]),  # 1 is too much: the last begins anew at the first
        (2, 4, 4, 2, [0, 1]),
        (1, 4, 4, 2, [0]),
    ],
)
def test_windows(K: int, d: int, D: int, shift: int, firsts: list[int]) -> None:
    got = windows(K, d, D, shift)
    assert got.shape == (K, d)
    assert got[:, 0].tolist() == firsts
    assert got.tolist() == [[(first + i) % D for i in range(d)] for first in firsts]
    assert all(len(set(row)) == d for row in got.tolist())


@pytest.mark.parametrize("smallest", [False, True])
def test_the_start_takes_eigenvectors_in_order(smallest: bool) -> None:
    """Of the covariance that the source takes: divided by N - 1."""
    X = rows()
    now = moments(X)
    values = np.linalg.eigvalsh(np.cov(X.T))
    values = values if smallest else values[::-1]
    first = window_start(Normalized(5.0), now, 2, 3, smallest=smallest, shift=2, ridge=RIDGE)
    for k in range(2):
        length = 25 / 3  # of each row, squared: |Omega|_F = 5
        wanted = np.diag(length * values[2 * k : 2 * k + 3]) + RIDGE * np.eye(3)
        np.testing.assert_allclose(first.covariances[k], wanted, atol=1e-9)
        np.testing.assert_allclose(first.means[k], first.transforms[k] @ now.mean)
        assert np.linalg.norm(first.transforms[k]) == pytest.approx(5)
    np.testing.assert_allclose(first.weights, 0.5)


# ------------------------------------------------ steps


@pytest.mark.parametrize("ridge", [1e-6, 0.01, 1.0])
@pytest.mark.parametrize(("K", "d", "D"), [(1, 2, 4), (2, 1, 3), (3, 3, 6), (4, 5, 6), (2, 4, 4)])
def test_the_objective_of_the_orthonormal_rule_never_falls(
    K: int, d: int, D: int, ridge: float
) -> None:
    X = rows(K + d, 200, D)
    mixture = model(X, Orthonormal(), K, d, ridge)
    params, trace = steps(mixture, X, 40)
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all()
    assert trace[-1] > trace[0] or K == 1
    for omega, covariance in zip(params.now.transforms, params.now.covariances, strict=True):
        np.testing.assert_allclose(omega @ omega.T, np.eye(d), atol=1e-10)
        np.testing.assert_allclose(covariance, np.diag(np.diagonal(covariance)), atol=1e-9)


def test_means_and_covariances_follow_the_transformation() -> None:
    X = rows()
    mixture = model(X, Normalized(3.0), 2, 2)
    before = Iterates(mixture.first)
    stats = sums(mixture, before, X)
    after = mixture.update(before, stats, Context(pilot_of(X), np.random.default_rng(0), 1)).params
    joint = log_joint(mixture.prepare(before), X)
    shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(after.now.weights, shares.mean(axis=0))
    for k, omega in enumerate(after.now.transforms):
        Z = X @ omega.T
        np.testing.assert_allclose(after.now.means[k], np.average(Z, axis=0, weights=shares[:, k]))
        spread = np.cov(Z.T, bias=True, aweights=shares[:, k]) + RIDGE * np.eye(2)
        np.testing.assert_allclose(after.now.covariances[k], spread, rtol=1e-8, atol=1e-10)
    assert after.past == (before.now,) and after.scores == (stats.score,)


def test_iterates_are_kept_if_wanted() -> None:
    X = rows()
    mixture = model(X, Normalized(3.0), 2, 2)
    kept, trace = steps(mixture, X, 5)
    assert len(kept.iterates) == 6 and kept.iterates[0] is mixture.first
    assert list(kept.scores) == trace[:-1]
    assert len(steps(replace(mixture, keep=False), X, 5)[0].iterates) == 1


# ------------------------------------------------ edges


def shared(X: Array, counts: Array) -> TransformSums:
    """Sums of components that have the first counts[0] rows, the next counts[1], ..."""
    origin, edges = X.mean(axis=0), np.concatenate([[0], np.cumsum(counts)])
    parts = [X[a:b] - origin for a, b in pairwise(edges)]
    first, second = (np.stack(s) for s in zip(*[(p.sum(axis=0), p.T @ p) for p in parts],
                                              strict=True))  # fmt: skip
    return TransformSums(counts.astype(float), first, second, 0.0, float(len(X)), origin)


def moved(mixture: TransformedMixture, stats: TransformSums) -> tuple[Transformed, list[str]]:
    context = Context(None, np.random.default_rng(0), 1)  # type: ignore[arg-type]
    update = mixture.update(Iterates(mixture.first), stats, context)
    return update.params.now, [event.kind for event in update.events]


@pytest.mark.parametrize("rule", [Normalized(3.0), Constrained(9.0)], ids=str)
def test_a_component_without_rows_is_put_back_with_its_share(rule: Rule) -> None:
    X = rows()
    mixture = model(X, rule, 2, 2)
    now, kinds = moved(mixture, shared(X, np.array([150, 0])))
    assert kinds == ["empty"]
    np.testing.assert_array_equal(now.transforms[1], mixture.first.transforms[1])
    np.testing.assert_array_equal(now.covariances[1], mixture.first.covariances[1])
    assert now.weights[1] > 0.1 and now.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("rule", [Normalized(3.0), Constrained(9.0)], ids=str)
def test_a_component_of_few_rows_keeps_its_transformation(rule: Rule) -> None:
    """And the spread of all rows of all components."""
    X = rows()
    mixture = model(X, rule, 2, 3)
    now, kinds = moved(mixture, shared(X, np.array([147, 3])))
    assert not kinds
    omega = mixture.first.transforms[1]
    np.testing.assert_array_equal(now.transforms[1], omega)
    np.testing.assert_allclose(now.means[1], omega @ X[147:].mean(axis=0))
    spread = omega @ np.cov(X.T, bias=True) @ omega.T + RIDGE * np.eye(3)
    np.testing.assert_allclose(now.covariances[1], spread, rtol=1e-8, atol=1e-12)
    assert not np.array_equal(now.transforms[0], mixture.first.transforms[0])


@pytest.mark.parametrize("few", [0, 3])
def test_a_component_of_few_rows_is_left_alone_where_nothing_may_fall(few: int) -> None:
    X = rows()
    mixture = model(X, Orthonormal(), 2, 3)
    now, kinds = moved(mixture, shared(X, np.array([150 - few, few])))
    assert not kinds
    for name in ("transforms", "means", "covariances"):
        np.testing.assert_array_equal(getattr(now, name)[1], getattr(mixture.first, name)[1])
    np.testing.assert_allclose(now.weights, [1 - few / 150, few / 150])


def test_singular_covariances_are_told() -> None:
    first = Transformed(np.ones(1), np.ones((1, 2, 3)), np.zeros((1, 2)), np.ones((1, 2, 2)))
    with pytest.raises(ValueError, match=r"component 0 is singular .* give ridge a positive value"):
        read(first, np.zeros(1), np.zeros(3))
