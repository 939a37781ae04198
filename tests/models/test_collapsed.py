"""The collapsed sampler against enumeration, other routes to the same numbers, and itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln

from mixfold.contracts import Array, Block
from mixfold.families.bayes.known_covariance import KnownCovariance
from mixfold.families.bayes.normal_gamma import (
    BayesDiagonal,
    BayesSpherical,
    BayesTiedDiagonal,
    BayesTiedSpherical,
)
from mixfold.families.bayes.normal_wishart import BayesFull, BayesTied
from mixfold.families.exponential import (
    Bernoulli,
    Binomial,
    Categorical,
    Exponential,
    Gamma,
    Multinomial,
    Poisson,
)
from mixfold.families.product import product_of
from mixfold.math.wishart import log_norm
from mixfold.mixing import FixedWeights, StickBreaking, SymmetricDirichlet
from mixfold.models.mixtures.collapsed import CollapsedSampler
from mixfold.testing.samplers import (
    Placed,
    agree,
    canonical,
    features,
    mixture_to_sample,
    pilot_of,
    same_means,
)
from mixfold.testing.samplers import law as partition_law
from tests.families.exponential.examples import EXAMPLES, rows_of

_KNOWN = np.array([[1.0, 0.4, 0.0], [0.4, 2.0, -0.3], [0.0, -0.3, 0.5]])
_MIXED = product_of([("full", [0, 1]), ("poisson", [2]), ("categorical", [3])])
FAMILIES: dict[str, Any] = {
    "full": BayesFull(precision=0.2, degrees=5.0),
    "diag": BayesDiagonal(precision=0.2, degrees=3.0),
    "spherical": BayesSpherical(precision=0.2, degrees=3.0),
    "known": KnownCovariance(_KNOWN, precision=0.2),
    "bernoulli": Bernoulli(a=0.7, b=1.3),
    "binomial": Binomial(trials=12),
    "poisson": Poisson(exposure=1.5),
    "exponential": Exponential(a=2.0),
    "gamma": Gamma(a=2.0, shape=2.5),
    "categorical": Categorical(concentration=0.6, n_categories=(3, 2, 4)),
    "multinomial": Multinomial(concentration=0.8),
    "product": _MIXED.with_maxima(np.array([0.0, 0.0, 0.0, 2.0])),
}
FAMILIES |= {
    name: example.plain
    for name, example in EXAMPLES.items()
    if name not in FAMILIES and getattr(example.plain, "collapsed_law", None)
}
GAPS = ("diag", "spherical", "known", "bernoulli", "binomial", "poisson", "gamma", "categorical")


def _rows(name: str, n: int, rng: np.random.Generator) -> Array:
    """Rows that a family can have, from two groups that overlap."""
    side = np.where(rng.random((n, 1)) < 0.5, 1.0, -1.0)
    rows: dict[str, Callable[[], Array]] = {
        "bernoulli": lambda: rng.random((n, 3)) < 0.5 + 0.3 * side,
        "binomial": lambda: rng.binomial(12, 0.5 + 0.1 * side, (n, 3)),
        "poisson": lambda: rng.poisson(4 + 1.5 * side, (n, 3)),
        "exponential": lambda: rng.exponential(2 + side, (n, 3)),
        "gamma": lambda: rng.gamma(2.5, 2 + side, (n, 3)),
        "categorical": lambda: rng.integers(0, [3, 2, 4], (n, 3)),
        "multinomial": lambda: rng.multinomial(15, [0.3, 0.3, 0.4], n),
        "product": lambda: np.hstack(
            [rng.normal(side, 1, (n, 2)), rng.poisson(4 + side), rng.integers(0, 3, (n, 1))]
        ),
    }
    if name in EXAMPLES and name not in rows:
        return np.asarray(rows_of(EXAMPLES[name], n, 3, rng, 2))
    usual = lambda: rng.normal(side, 1, (n, 3)) * [1, 2, 0.5] + [0, 30, 0]  # noqa: E731
    return np.asarray(rows.get(name, usual)(), dtype=float)


def _sampler(name: str, mixing: Any, X: Array, **fields: Any) -> tuple[CollapsedSampler, Any]:
    model = mixture_to_sample(FAMILIES[name], mixing, pilot_of(X))
    block = Block(X, complete=not np.isnan(X).any(), **fields)
    process = isinstance(mixing, StickBreaking)
    sampler = CollapsedSampler(model, block, pilot_of(X), process=process)
    sampler.start(np.arange(len(X)) % model.n_components)
    return sampler, model


# ------------------------------------------------ one number at a time


@pytest.mark.parametrize(
    ("name", "gaps"), [*((name, False) for name in FAMILIES), *((name, True) for name in GAPS)]
)
def test_scores_are_those_of_the_posterior(name: str, gaps: bool, rng: np.random.Generator) -> None:
    X = _rows(name, 30, rng)
    if gaps:
        X[rng.random(X.shape) < 0.3] = np.nan
        X[0] = _rows(name, 1, rng)[0]
    sampler, model = _sampler(name, SymmetricDirichlet(1.0), X)
    for _ in range(2):
        sampler.sweep(rng)
    placed = Placed(model, pilot_of(X))
    for row in range(10):
        if not (sampler.labels == sampler.labels[row]).sum() > 1 or np.isnan(X[row]).all():
            continue
        slot, others = sampler.labels[row], np.arange(len(X)) != row
        sampler._take(row, slot)
        scores = np.zeros(3)
        sampler._score(row, sampler.counts, scores)
        sampler._put(row, slot)
        stats = placed.stats(X[others], sampler.labels[others])
        posterior = placed.posterior(stats.components)
        one = Block(X[row : row + 1], complete=not np.isnan(X[row]).any())
        wanted = model.conjugate.log_predictive(posterior, one)[0]
        used = stats.counts > 0
        scores[~used] = sampler._fresh[row]
        # up to a constant of the row
        np.testing.assert_allclose(scores - scores[0], wanted - wanted[0], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("mixing", [SymmetricDirichlet(1.7), StickBreaking(1.7)])
@pytest.mark.parametrize("name", FAMILIES)
def test_log_joint_by_another_route(name: str, mixing: Any, rng: np.random.Generator) -> None:
    X = _rows(name, 25, rng)
    sampler, model = _sampler(name, mixing, X)
    for _ in range(3):
        sampler.sweep(rng)
    labels = sampler.draw_labels(rng)
    wide = replace(model, n_components=int(labels.max()) + 1)
    counts = np.bincount(labels)
    wanted = Placed(wide, pilot_of(X)).evidence(X, labels)
    if isinstance(mixing, StickBreaking):
        used = counts[counts > 0]
        wanted += used.size * np.log(1.7) + gammaln(used).sum() + gammaln(1.7)
        wanted -= gammaln(1.7 + len(X))
    else:
        wanted += mixing.log_prob(np.bincount(labels, minlength=3))
    shares = counts[counts > 0] / len(X)
    traced = sampler.summarise_sweep()
    assert traced[0] == pytest.approx(wanted, abs=1e-8)
    assert traced[1:4].tolist() == [shares.size, 1.7, shares.max()]
    assert traced[4] == pytest.approx(-(shares * np.log(shares)).sum())


def test_rows_that_come_and_go_leave_no_rounding_behind(rng: np.random.Generator) -> None:
    X = _rows("full", 60, rng) + 1e6
    for name in ("full", "diag", "spherical", "known"):
        sampler, model = _sampler(name, StickBreaking(3.0), X)
        for _ in range(250):
            sampler.sweep(rng)
        assert sampler._sweeps % 100 == 50  # not just rebuilt
        labels = sampler.draw_labels(rng)
        wide = replace(model, n_components=int(labels.max()) + 1)
        counts = sampler.counts[sampler.counts > 0]
        law = counts.size * np.log(3.0) + gammaln(counts).sum() + gammaln(3.0) - gammaln(63.0)
        exact = Placed(wide, pilot_of(X)).evidence(X, labels) + law
        assert sampler.log_joint() == pytest.approx(exact, abs=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_a_prior_much_smaller_than_the_data(seed: int) -> None:
    """A cluster that loses its far row keeps the digits of its scatter, all but some: the log of a
    scatter of 1e-10 beside a row at a distance of 1 is good to 3e-5 (60 seeds)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2)) * 1e-5
    X[::3] += 1.0
    scatter = 1e-12 * np.eye(2)
    family = BayesFull(mean=np.zeros(2), precision=1e-9, degrees=3.0, scatter=scatter)
    model = mixture_to_sample(family, StickBreaking(1.0), pilot_of(X))
    sampler = CollapsedSampler(model, Block(X), pilot_of(X), process=True)
    sampler.start(np.zeros(12, int))
    for _ in range(20):
        sampler.sweep(rng)
    exact = sampler._seating.log_prob(sampler.counts, 1.0)
    for slot in np.flatnonzero(sampler.counts):
        rows = X[sampler.labels == slot]
        away, n = rows.mean(axis=0), len(rows)
        within = (rows - away).T @ (rows - away) + 1e-9 * n / (n + 1e-9) * np.outer(away, away)
        exact += log_norm(np.linalg.slogdet(scatter + within)[1], 3.0 + n, 2)
        exact -= log_norm(np.linalg.slogdet(scatter)[1], 3.0, 2)
        exact += np.log(1e-9 / (n + 1e-9)) - n * np.log(2 * np.pi)
    assert sampler.log_joint() == pytest.approx(exact, abs=1e-4)


# ------------------------------------------------ laws


@pytest.mark.parametrize(
    ("name", "mixing"),
    [
        ("full", StickBreaking(1.5)),
        ("diag", SymmetricDirichlet(2.0)),
        ("spherical", StickBreaking(1.5)),
        ("known", SymmetricDirichlet(2.0)),
        ("bernoulli", StickBreaking(1.5)),
        ("poisson", SymmetricDirichlet([0.3, 2.0, 1.0])),
        ("poisson", StickBreaking(0.7)),
        ("exponential", StickBreaking(1.5)),
        ("categorical", SymmetricDirichlet(2.0)),
        ("multinomial", StickBreaking(1.5)),
        ("product", StickBreaking(1.5)),
    ],
)
def test_exact_law_of_partitions(name: str, mixing: Any, rng: np.random.Generator) -> None:
    X = _rows(name, 4, rng)
    process = isinstance(mixing, StickBreaking)
    sampler, model = _sampler(name, mixing, X)
    wide = replace(model, n_components=4 if process else 3)
    placed = Placed(wide, pilot_of(X))

    def log_weight(labels: Any) -> float:
        counts = np.bincount(labels, minlength=wide.n_components).astype(float)
        rows = placed.evidence(X, labels)
        if not process:
            return float(rows + mixing.log_prob(counts))
        used = counts[counts > 0]
        return float(rows + used.size * np.log(mixing.alpha) + gammaln(used).sum())

    law = partition_law(4, wide.n_components, log_weight, labelled=not process)
    draws = []
    for sweep in range(6000):
        sampler.sweep(rng)
        if sweep % 4 == 3:
            draws.append(sampler.labels.tolist())
    agree(draws, law)


@pytest.mark.parametrize(
    ("name", "mixing"),
    [
        ("poisson", StickBreaking(1.0, True, (2.0, 1.5))),
        ("full", StickBreaking(1.0, True, (2.0, 1.5))),
        ("diag", SymmetricDirichlet(1.0, True, (2.0, 1.5))),
    ],
)
def test_joint_distribution(name: str, mixing: Any, rng: np.random.Generator) -> None:
    """Rows given components and components given rows, in turn, have the joint law."""
    n, first = 6, _rows(name, 6, rng)
    pilot, process = pilot_of(first), isinstance(mixing, StickBreaking)
    model = mixture_to_sample(FAMILIES[name], mixing, pilot)
    prior = Placed(replace(model, n_components=n), pilot).without_rows()

    def rows_of(labels: Array) -> Array:
        params = model.conjugate.draw(prior, rng)
        return np.asarray(model.family.draw_rows(params, labels, rng))

    independent = []
    for _ in range(2000):
        alpha = rng.gamma(2.0) / 1.5
        labels = _seated(n, alpha, rng) if process else _labelled(n, 3, alpha, rng)
        independent.append(features(rows_of(labels), labels, alpha, first))
    chain, X = [], first
    labels, alpha = np.arange(n) % 3, 1.0
    for _ in range(1200):
        sampler = CollapsedSampler(model, Block(X), pilot, process=process)
        sampler.start(labels)
        sampler.alpha = alpha
        sampler.sweep(rng)
        alpha, labels = sampler.alpha, np.array(canonical(sampler.labels))
        X = rows_of(labels)
        chain.append(features(X, labels, alpha, first))
    same_means(chain, independent)


def _seated(n: int, alpha: float, rng: np.random.Generator) -> Array:
    counts: list[int] = []
    labels = []
    for _ in range(n):
        mass = np.array([*counts, alpha])
        k = int(rng.choice(len(mass), p=mass / mass.sum()))
        counts = [*counts, 0] if k == len(counts) else counts
        counts[k] += 1
        labels.append(k)
    return np.array(labels)


def _labelled(n: int, size: int, alpha: float, rng: np.random.Generator) -> Array:
    return rng.choice(size, n, p=rng.dirichlet(np.full(size, alpha / size)))


# ------------------------------------------------ what is kept


@pytest.mark.parametrize("mixing", [SymmetricDirichlet(1.7), StickBreaking(1.7)])
def test_posterior_of_a_draw(mixing: Any, rng: np.random.Generator) -> None:
    X = _rows("diag", 20, rng)
    sampler, model = _sampler("diag", mixing, X)
    for _ in range(5):
        sampler.sweep(rng)
    params, labels = sampler.params(), sampler.draw_labels(rng)
    np.testing.assert_array_equal(np.bincount(labels, minlength=params.n_components), params.counts)
    if isinstance(mixing, StickBreaking):
        assert params.counts[-1] == 0 and (params.counts[:-1] > 0).all()
        wanted = np.append(params.counts[:-1], 1.7) / 21.7
    else:
        wanted = (params.counts + 1.7 / 3) / 21.7
    np.testing.assert_allclose(params.weights, wanted, rtol=1e-12)
    np.testing.assert_allclose(mixing.mean(params.mixing), wanted, rtol=1e-12)
    placed = Placed(replace(model, n_components=params.n_components), pilot_of(X))
    again = placed.posterior(placed.stats(X, labels).components)
    np.testing.assert_allclose(params.components.means, again.means, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(params.components.scatter, again.scatter, rtol=1e-10)


def test_known_rows_stay_and_rows_without_weight_do_not_count(rng: np.random.Generator) -> None:
    X = _rows("poisson", 12, rng)
    y, weight = np.full(12, -1), np.ones(12)
    y[:4], weight[[3, 7]] = [2, 2, 0, 1], 0.0
    X[7] = -5.0  # no count at all
    for mixing in (SymmetricDirichlet(1.0), StickBreaking(1.0)):
        model = mixture_to_sample(FAMILIES["poisson"], mixing, pilot_of(X[:7]))
        process = isinstance(mixing, StickBreaking)
        block = Block(X, y=y, weight=weight)
        pilot = replace(pilot_of(X[:7]), block=Block(X[:7], y=y[:7]))
        sampler = CollapsedSampler(model, block, pilot, process=process)
        sampler.start(np.zeros(12, int))
        for _ in range(50):
            sampler.sweep(rng)
            assert sampler.counts.sum() == 10
            assert sampler.labels[[0, 1, 2]].tolist() == [2, 2, 0]
        labels, params = sampler.draw_labels(rng), sampler.params()
        assert labels[0] == labels[1] != labels[2]
        assert (labels < params.n_components).all() and (labels >= 0).all()
        assert params.counts.sum() == 10
        if not process:
            assert labels[:4].tolist() == [2, 2, 0, 1]


def test_a_row_without_weight_is_drawn_by_the_predictive(rng: np.random.Generator) -> None:
    X = np.array([[-1.0], [-1.2], [-0.8], [1.0], [1.2], [-0.2]])
    family = BayesDiagonal(precision=0.5, degrees=4.0)
    model = mixture_to_sample(family, SymmetricDirichlet(1.0), pilot_of(X), 2)
    weight, y = np.array([1, 1, 1, 1, 1, 0.0]), np.array([0, 0, 0, 1, 1, -1])
    block = Block(X, y=y, weight=weight)
    sampler = CollapsedSampler(model, block, pilot_of(X), process=False)
    sampler.start(y * 0)
    params = sampler.params()
    scores = np.exp(model.log_predictive(params, Block(X[5:])))[0]
    share = scores[1] / scores.sum()
    drawn = np.mean([sampler.draw_labels(rng)[5] for _ in range(4000)])
    assert 0.05 < share < 0.95
    assert abs(drawn - share) < 4.5 * np.sqrt(share * (1 - share) / 4000)


def test_slots_grow_and_seeds_repeat() -> None:
    X = _rows("diag", 40, np.random.default_rng(5))
    runs = []
    for seed in (0, 0, 1):
        sampler, _ = _sampler("diag", StickBreaking(500.0), X)
        draws = np.random.default_rng(seed)
        for _ in range(3):
            sampler.sweep(draws)
        assert len(sampler.counts) > 12 and np.count_nonzero(sampler.counts) > 12
        runs.append(sampler.labels.copy())
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


@pytest.mark.parametrize("name", ["poisson", "multinomial", "bernoulli", "binomial"])
def test_sparse_rows_are_dense_rows(name: str, rng: np.random.Generator) -> None:
    X = _rows(name, 20, rng)
    X[:, 1] *= rng.random(20) < 0.3
    stored = csr_array(X)
    if name != "multinomial":
        X[0, 0] = stored.data[0] = np.nan
        assert stored.indices[0] == 0
    dense, model = _sampler(name, StickBreaking(1.0), X)
    block = Block(stored, complete=name == "multinomial")
    sparse = CollapsedSampler(model, block, pilot_of(X), process=True)
    sparse.start(np.arange(20) % 3)
    for sampler in (dense, sparse):
        draws = np.random.default_rng(3)
        for _ in range(4):
            sampler.sweep(draws)
    np.testing.assert_array_equal(dense.labels, sparse.labels)
    assert dense.log_joint() == pytest.approx(sparse.log_joint(), abs=1e-9)
    counts, scores = dense.counts, np.zeros((2, len(dense.counts)))
    for row in range(20):
        dense._score(row, counts, scores[0])
        sparse._score(row, counts, scores[1])
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-10, atol=1e-10)


# ------------------------------------------------ refusals


@pytest.mark.parametrize("family", [BayesTied(), BayesTiedDiagonal(), BayesTiedSpherical()])
def test_tied_families_are_refused(family: Any, rng: np.random.Generator) -> None:
    X = _rows("full", 10, rng)
    model = mixture_to_sample(family, StickBreaking(1.0), pilot_of(X))
    with pytest.raises(ValueError, match=r"share a covariance.*full, diag.*inference='gibbs'"):
        CollapsedSampler(model, Block(X), pilot_of(X), process=True)


def test_gaps_in_full_covariances_are_refused(rng: np.random.Generator) -> None:
    X = _rows("full", 10, rng)
    model, pilot = mixture_to_sample(BayesFull(), StickBreaking(1.0), pilot_of(X)), pilot_of(X)
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"'full'.*row 4 lacks.*inference='gibbs'.*'diag'"):
        CollapsedSampler(model, Block(X, complete=False), pilot, process=True)
    weight = np.ones(10)
    weight[4] = 0.0
    CollapsedSampler(model, Block(X, weight=weight, complete=False), pilot, process=True)


def test_a_dense_table_of_sparse_rows_has_a_bound(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = _rows("diag", 10, rng)
    model = mixture_to_sample(BayesDiagonal(), StickBreaking(1.0), pilot_of(X))
    sparse = Block(csr_array(X))
    sampler = CollapsedSampler(model, sparse, pilot_of(X), process=True)
    dense = CollapsedSampler(model, Block(X), pilot_of(X), process=True)
    np.testing.assert_array_equal(sampler._fresh, dense._fresh)
    monkeypatch.setattr("mixfold.models.mixtures.urns.urn.MOST_ENTRIES", 20)
    with pytest.raises(ValueError, match=r"'diag'.*20 entries at most, got sparse rows of 10 x 3"):
        CollapsedSampler(model, sparse, pilot_of(X), process=True)


def test_other_refusals(rng: np.random.Generator) -> None:
    X = _rows("poisson", 10, rng)
    pilot = pilot_of(X)
    model = mixture_to_sample(Poisson(), StickBreaking(1.0), pilot_of(X))
    with pytest.raises(ValueError, match=r"row 2 has 0\.5.*inference='vb'"):
        weight = np.where(np.arange(10) == 2, 0.5, 1.0)
        CollapsedSampler(model, Block(X, weight=weight), pilot, process=True)
    with pytest.raises(ValueError, match="nothing to sample"):
        CollapsedSampler(model, Block(X, weight=np.zeros(10)), pilot, process=True)
    with pytest.raises(ValueError, match=r"weights='dirichlet'"):
        CollapsedSampler(model, Block(X), pilot, process=False)
    with pytest.raises(ValueError, match=r"got FixedWeights.*inference='gibbs'"):
        fixed = replace(model, mixing=FixedWeights([0.2, 0.3, 0.5]))
        CollapsedSampler(fixed, Block(X), pilot, process=False)
    with pytest.raises(ValueError, match="hyper must be given"):
        open_ended = replace(model, mixing=StickBreaking(1.0, True, None))
        sampler = CollapsedSampler(open_ended, Block(X), pilot, process=True)
        sampler.start(np.zeros(10, int))
        sampler.sweep(rng)
