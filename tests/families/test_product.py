"""A product of families: its parts one by one, a single part, and the laws on a mixed table."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import logsumexp

from mixfold.contracts import Block
from mixfold.engine.random import RowKeys
from mixfold.families import FullGaussian
from mixfold.families.bayes.known_covariance import KnownCovariance
from mixfold.families.bayes.normal_gamma import BayesDiagonal
from mixfold.families.bayes.normal_wishart import BayesFull
from mixfold.families.component import ComponentFamily
from mixfold.families.exponential import (
    EXPONENTIAL_FAMILIES,
    Bernoulli,
    Categorical,
    Multinomial,
    Poisson,
)
from mixfold.families.product import Part, PlainProduct, ProductFamily, product, product_of
from mixfold.math.frame import Frame
from mixfold.models.mixtures.bayes_mixture import BayesMixture
from mixfold.models.mixtures.inference import INFERENCES
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing import Case, laws
from mixfold.testing.case import with_complete_flag
from mixfold.testing.compare import require_same
from mixfold.testing.storage import stored_identity

K, D, N = 3, 7, 150
# numbers that go together, a number, a count, yes or no, codes: not in the order of the columns
PARTS = (
    Part((4, 1), BayesFull()),
    Part((2,), BayesDiagonal()),
    Part((0,), Poisson()),
    Part((6, 3), Bernoulli()),
    Part((5,), Categorical(n_categories=3)),
)
FAMILY = ProductFamily(PARTS)
LABELS = np.random.default_rng(1).choice(K, N, p=[0.2, 0.3, 0.5])


def mixed_table(missing: float = 0.0, seed: int = 0) -> np.ndarray:
    """Clusters that overlap in every column."""
    rng = np.random.default_rng(seed)
    X = np.empty((N, D))
    pair = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 2]], N)
    X[:, [4, 1]] = pair + np.array([[0, 5], [6, 0], [3, -6]])[LABELS]
    X[:, 2] = 100 + np.array([5.0, 1.0, 3.0])[LABELS] * (1 + rng.normal(size=N))
    X[:, 0] = rng.poisson(np.array([2, 9, 5])[LABELS])
    X[:, 6] = rng.random(N) < np.array([0.1, 0.8, 0.5])[LABELS]
    X[:, 3] = rng.random(N) < np.array([0.9, 0.3, 0.5])[LABELS]
    shares = np.array([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3]])
    X[:, 5] = (rng.random((N, 1)) > np.cumsum(shares, axis=1)[LABELS]).sum(axis=1)
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
        X[[N // 3, N // 2]] = np.nan
    return X


def _block(X: Any) -> Block:
    values = X.data if sparse.issparse(X) else X
    return Block(X, complete=not np.isnan(values).any())


def _params(family: PlainProduct = FAMILY, X: np.ndarray | None = None) -> Any:
    case = Case(Mixture(K, family), mixed_table() if X is None else X)
    return case.after(2).components


def _case(missing: float, family: ComponentFamily = FAMILY) -> Case:
    rng = np.random.default_rng(5)
    y = np.where(rng.random(N) < 0.1, 1, -1)
    return Case(Mixture(K, family), mixed_table(missing), rng.uniform(0.5, 2, N), y)


# ------------------------------------------------ densities


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "with NaN"])
def test_log_density_against_scipy(missing: float) -> None:
    params, X = _params(), mixed_table(missing, seed=3)
    numbers, single, counts, yes, codes = params.parts
    wanted = np.zeros((N, K))
    frame = numbers.frame
    for k in range(K):
        mean = frame.leave(numbers.means[k])
        covariance = numbers.scatter[k] * np.outer(frame.scale, frame.scale)
        for n in range(N):
            pair = X[n, [4, 1]]
            seen = np.flatnonzero(~np.isnan(pair))
            if seen.size:
                part = covariance[np.ix_(seen, seen)]
                wanted[n, k] += stats.multivariate_normal(mean[seen], part).logpdf(pair[seen])
        scale = single.frame.scale[0]
        deviation = np.sqrt(single.scatter[k, 0]) * scale
        normal = stats.norm(single.frame.leave(single.means[k])[0], deviation)
        wanted[:, k] += np.nan_to_num(normal.logpdf(X[:, 2]))
        wanted[:, k] += np.nan_to_num(stats.poisson(counts.means[k, 0]).logpmf(X[:, 0]))
        for i, d in enumerate((6, 3)):
            wanted[:, k] += np.nan_to_num(stats.bernoulli(yes.means[k, i]).logpmf(X[:, d]))
        shares = codes.theta[k] - logsumexp(codes.theta[k])
        known = ~np.isnan(X[:, 5])
        wanted[known, k] += shares[X[known, 5].astype(int)]
    reading = FAMILY.mode(params)
    np.testing.assert_allclose(
        FAMILY.log_density(_block(X), reading), wanted, rtol=1e-10, atol=1e-11
    )
    scores = FAMILY.scores(_block(X), reading)
    np.testing.assert_allclose(scores.log_density, wanted, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "with NaN"])
@pytest.mark.parametrize("inference", sorted(INFERENCES))
def test_one_part_is_the_family_alone(missing: float, inference: str) -> None:
    """Starts, steps and objectives are bit for bit those of the family."""
    X = mixed_table(missing)[:, [4, 1]]
    plain = BayesMixture(K, BayesFull(), inference=INFERENCES[inference])
    wrapped = BayesMixture(
        K, ProductFamily((Part((0, 1), BayesFull()),)), inference=INFERENCES[inference]
    )
    one, other = Case(plain, X), Case(wrapped, X)
    a, b = one.after(3), other.after(3)
    require_same("one part", b.components.parts[0], a.components)
    assert one.objective(a) == other.objective(b)


def test_one_part_is_scored_by_its_kernel() -> None:
    X = mixed_table()[:, [4, 1]]
    family = PlainProduct((Part((1, 0), FullGaussian()),))
    params = _params(family, X)
    result = family.fused_pass(_block(X), family.mode(params), np.zeros(K))
    assert result is not None
    alone = FullGaussian().fused_pass(
        _block(X[:, ::-1].copy()), FullGaussian().mode(params.parts[0]), np.zeros(K)
    )
    assert alone is not None
    require_same("one part", result[0].parts[0], alone[0])
    assert FAMILY.fused_pass(_block(mixed_table()), FAMILY.mode(_params()), np.zeros(K)) is None


def test_a_part_without_holes_is_complete_whatever_the_others() -> None:
    X = mixed_table()
    X[::2, 5] = np.nan
    seen = []

    class Spy(FullGaussian):
        def scores(self, tile: Block, reading: Any) -> Any:
            seen.append(tile.complete)
            return super().scores(tile, reading)

    parts = (Part((4, 1, 2), Spy()), Part((0,), Poisson()), Part((6, 3), Bernoulli()), PARTS[4])
    family = PlainProduct(parts)
    family.scores(_block(X), family.mode(_params(family, X)))
    assert seen and all(seen)


@pytest.mark.parametrize("missing", [0.0, 0.1], ids=["complete", "with NaN"])
def test_sparse_rows(missing: float) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.poisson(0.5, (60, 5)), rng.normal(size=(60, 2))]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    family = product_of({"poisson": range(5), "diag": [5], "full": [6]})
    case = Case(Mixture(2, family), X)
    params = case.after(2)
    rows = _block(sparse.csr_array(X))
    reading = family.mode(params.components)
    np.testing.assert_allclose(
        family.log_density(rows, reading), family.log_density(_block(X), reading), rtol=1e-10
    )
    got, wanted = case.stats(params, rows), case.stats(params)
    require_same("sparse rows", got, wanted, 1e-10)
    sparse_part = family.scores(rows, reading).work[0].work
    assert sparse.issparse(sparse_part.tile.X)  # never made dense


# ------------------------------------------------ laws


@pytest.mark.parametrize("missing", [0.0, 0.15], ids=["complete", "with NaN"])
@pytest.mark.parametrize("law", laws.MODEL_LAWS)
def test_law_of_models(law: str, missing: float) -> None:
    laws.MODEL_LAWS[law](_case(missing))


@pytest.mark.parametrize("law", laws.MODEL_LAWS)
def test_law_of_models_without_priors(law: str) -> None:
    family = PlainProduct((Part((4, 1, 2), FullGaussian()), *PARTS[2:]))
    laws.MODEL_LAWS[law](_case(0.15, family))


def test_labels_clamp() -> None:
    laws.labels_clamp(_case(0.15), K)


def test_gaussian_parts_follow_their_units() -> None:
    family = product_of({"full": [0, 2], "diag": [1]})
    X = mixed_table(0.1)[:, [4, 2, 1]]
    laws.equivariance(Case(Mixture(K, family), X), np.array([3.0, -700, 10]), np.array([9, 0.1, 5]))


@pytest.mark.parametrize("missing", [0.0, 0.15], ids=["complete", "with NaN"])
@pytest.mark.parametrize("name", ["vb", "em"])
def test_the_bound_rises(name: str, missing: float) -> None:
    rng = np.random.default_rng(5)
    model = BayesMixture(K + 2, FAMILY, inference=INFERENCES[name])
    case = Case(model, mixed_table(missing), rng.uniform(0.5, 2, N))
    laws.monotone(case)
    laws.block_invariance(case)
    laws.zero_weight_is_absence(case)
    laws.weight_two_is_repetition(case)


def test_gibbs_draws_do_not_depend_on_blocks() -> None:
    model = BayesMixture(K, FAMILY, inference=INFERENCES["gibbs"])
    case = Case(model, mixed_table(0.1))
    params, whole = case.after(2), case.block
    parts = [case.stats(params, with_complete_flag(whole.part(a, a + 13))) for a in range(0, N, 13)]
    total = reduce(lambda a, b: a + b, parts)
    wanted = case.stats(params)
    np.testing.assert_array_equal(total.counts, wanted.counts)
    require_same("draws", total.components, wanted.components, 1e-10)


# ------------------------------------------------ sampling, filling, conditioning


def test_sampler_of_one_component() -> None:
    params = FAMILY.select(_params(), np.array([1]))
    frame = params.parts[0].frame
    covariance = np.zeros((D, D))
    covariance[np.ix_([4, 1], [4, 1])] = params.parts[0].scatter[0] * np.outer(
        frame.scale, frame.scale
    )
    covariance[2, 2] = params.parts[1].scatter[0, 0] * params.parts[1].frame.scale[0] ** 2
    covariance[0, 0] = params.parts[2].means[0, 0]
    share = params.parts[3].means[0]
    covariance[[6, 3], [6, 3]] = share * (1 - share)
    p = np.exp(params.parts[4].theta[0])
    codes = np.arange(3)
    covariance[5, 5] = p @ codes**2 - (p @ codes) ** 2
    mean = params.frame.leave(params.means)[0]

    def drawn(n: int, rng: np.random.Generator) -> np.ndarray:
        return FAMILY.draw_rows(params, np.zeros(n, int), rng)

    def made_of_normals(n: int, rng: np.random.Generator) -> np.ndarray:
        normals = rng.standard_normal((n, FAMILY.normals_per_row(D)))
        return FAMILY.sample(params, np.zeros(n, int), normals)

    laws.sampler_moments(drawn, mean, covariance)
    laws.sampler_moments(made_of_normals, mean, covariance)


def test_filling_uses_the_other_entries() -> None:
    model, X = Mixture(K, FAMILY), mixed_table()
    params = Case(model, X).after(5)
    reading = model.prepare(params)
    holed = X.copy()
    holed[::3, 4] = np.nan
    holed[1::3, 0] = np.nan
    keys = RowKeys(0)
    filled = model.impute(reading, _block(holed), keys, draw=False)
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[~np.isnan(holed)], X[~np.isnan(holed)])
    # E[x | observed] by hand for a count: the components by what is seen of the row
    n = 1
    log_density = FAMILY.log_density(_block(holed[n : n + 1]), reading.components)[0]
    share = np.exp(log_density + reading.log_weights)
    counts = params.components.parts[2].means[:, 0]
    assert filled[n, 0] == pytest.approx(share @ counts / share.sum(), rel=1e-9)
    # and a code for a code, not a mean of codes
    holed[2::3, 5] = np.nan
    filled = model.impute(reading, _block(holed), keys, draw=False)
    assert set(np.unique(filled[2::3, 5])) <= {0.0, 1.0, 2.0}
    assert np.mean(filled[2::3, 5] == X[2::3, 5]) > 0.45
    drawn = model.impute(reading, _block(holed), keys, draw=True)
    entries = drawn[1::3, 0]
    assert (entries == np.round(entries)).all() and (entries >= 0).all()
    parts = [model.impute(reading, _block(holed).part(a, a + 50), keys, draw=True)
             for a in (0, 50, 100)]  # fmt: skip
    np.testing.assert_allclose(np.concatenate(parts), drawn, rtol=1e-12)


@pytest.mark.parametrize(
    "known", [[0], [4], [1, 6], [4, 1], [6, 0, 3, 5], [0, 1, 2, 3, 4, 6]], ids=str
)
def test_condition_is_the_ratio_of_densities(known: list[int]) -> None:
    """p(rest | known) = p(all) / p(known), also where parts lose all of their columns."""
    model, X = Mixture(K, FAMILY), mixed_table()
    params = Case(model, X).after(2)
    reading = model.prepare(params)
    rest = np.setdiff1d(np.arange(D), known)
    row = X[7]
    given = model.condition(params, np.array(known), row[known])
    rows = np.tile(row, (20, 1))
    rows[:, rest] = X[:20, rest]
    only = np.full((1, D), np.nan)
    only[0, known] = row[known]
    joint = logsumexp(model.log_joint(reading, _block(rows)), axis=1)
    marginal = logsumexp(model.log_joint(reading, _block(only)), axis=1)
    got = logsumexp(model.log_joint(model.prepare(given), _block(X[:20, rest])), axis=1)
    np.testing.assert_allclose(got, joint - marginal, rtol=1e-9)
    # what is left is a mixture like any other
    assert given.components.means.shape == (K, rest.size)
    drawn, _ = model.sample(given, 50, np.random.default_rng(0))
    assert drawn.shape == (50, rest.size) and np.isfinite(drawn).all()
    holed = X[:20, rest].copy()
    holed[:, 0] = np.nan
    filled = model.impute(model.prepare(given), _block(holed), RowKeys(0), draw=True)
    assert np.isfinite(filled).all()
    stored_identity(given)
    fewer = FAMILY.select(given.components, np.array([2, 0]))
    assert fewer.means.shape == (2, rest.size)


# ------------------------------------------------ priors


@pytest.fixture
def posterior() -> tuple[Any, Any, Any, Frame]:
    X = mixed_table()
    params = _params()
    reading = FAMILY.mode(params)
    resp = np.random.default_rng(2).dirichlet(np.ones(K), N)
    scores = FAMILY.scores(_block(X), reading)
    moments = FAMILY.moments(scores, resp, reading)
    total = FAMILY.moments(
        FAMILY.scores(_block(X), FAMILY.mode(FAMILY.select(params, np.array([0])))),
        np.ones((N, 1)),
        FAMILY.mode(FAMILY.select(params, np.array([0]))),
    )
    prior = FAMILY.prior(params.frame, total)
    return FAMILY.posterior(moments, prior, params.frame), prior, moments, params.frame


def test_everything_adds_up_over_parts(posterior: tuple[Any, Any, Any, Frame]) -> None:
    q, prior, moments, frame = posterior
    families = [part.family for part in PARTS]
    trios = list(zip(families, q.parts, prior.parts, strict=True))
    assert FAMILY.kl(q, prior) == pytest.approx(sum(f.kl(a, b) for f, a, b in trios))
    point = FAMILY.point(q)
    assert FAMILY.log_prior(point, prior) == pytest.approx(
        sum(f.log_prior(f.point(a), b) for f, a, b in trios)
    )
    evidence = sum(
        f.evidence(m, b, a.frame) for (f, a, b), m in zip(trios, moments.parts, strict=True)
    )
    assert FAMILY.evidence(moments, prior, frame) == pytest.approx(evidence)
    reading = FAMILY.expected_reading(q)
    block = _block(mixed_table())
    resp = np.random.default_rng(2).dirichlet(np.ones(K), N)
    wanted = float(np.sum(resp * FAMILY.log_density(block, reading)))
    assert FAMILY.average(moments, reading) == pytest.approx(wanted, rel=1e-10)
    learned = FAMILY.empirical(q, prior)
    assert FAMILY.kl(q, learned) < FAMILY.kl(q, prior)


def test_the_bound_of_one_component_is_the_evidence() -> None:
    X = mixed_table()
    model = BayesMixture(1, FAMILY, inference=INFERENCES["vb"])
    case = Case(model, X)
    params = case.after(3)
    stats_ = case.stats(params)
    frame = params.components.frame
    evidence = FAMILY.evidence(stats_.components, params.prior, frame)
    # a Dirichlet of one weight has no divergence
    assert case.objective(params) == pytest.approx(evidence, rel=1e-10)


def test_sequential_predictives_multiply_to_the_evidence(
    posterior: tuple[Any, Any, Any, Frame],
) -> None:
    _, prior, _, frame = posterior
    X = mixed_table()[:5]
    one = FAMILY.mode(FAMILY.select(_params(), np.array([0])))

    def moments(rows: np.ndarray) -> Any:
        return FAMILY.moments(FAMILY.scores(_block(rows), one), np.ones((len(rows), 1)), one)

    total = sum(
        float(
            FAMILY.log_predictive(
                FAMILY.posterior(moments(X[:n]), prior, frame), _block(X[n : n + 1])
            )[0, 0]
        )
        for n in range(len(X))
    )
    assert total == pytest.approx(FAMILY.evidence(moments(X), prior, frame), rel=1e-9)


def test_draws_and_predictions(posterior: tuple[Any, Any, Any, Frame]) -> None:
    q, _, _, _ = posterior
    rng = np.random.default_rng(0)
    draws = FAMILY.draw(FAMILY.keep_posterior(q, np.repeat([1], 4000)), rng)
    means = draws.frame.leave(draws.means)
    error = means.std(axis=0) / np.sqrt(len(means))
    wanted = q.frame.leave(q.means)[1]
    assert (np.abs(means.mean(axis=0) - wanted) < 6 * error).all()
    rows = FAMILY.sample_predictive(q, np.ones(4000, int), rng)
    error = rows.std(axis=0) / np.sqrt(len(rows))
    assert (np.abs(rows.mean(axis=0) - wanted) < 6 * error).all()
    assert set(np.unique(rows[:, 5])) == {0.0, 1.0, 2.0}


def test_another_frame_changes_nothing(posterior: tuple[Any, Any, Any, Frame]) -> None:
    q, prior, _, frame = posterior
    origin, scale = frame.origin.copy(), frame.scale.copy()
    origin[[4, 1, 2]] += [1.0, -2.0, 3.0]
    scale[[4, 1, 2]] *= [2.0, 0.5, 3.0]
    other = Frame(origin, scale)
    moved, base = (
        FAMILY.change_frame_of_posterior(q, other),
        FAMILY.change_frame_of_prior(prior, frame, other),
    )
    assert FAMILY.kl(moved, base) == pytest.approx(FAMILY.kl(q, prior), rel=1e-10)
    block = _block(mixed_table(0.1))
    np.testing.assert_allclose(
        FAMILY.log_predictive(moved, block),
        FAMILY.log_predictive(q, block),
        rtol=1e-10,
        atol=1e-13,
    )
    params = FAMILY.change_frame(FAMILY.point(q), other)
    got = FAMILY.log_density(block, FAMILY.mode(params))
    wanted = FAMILY.log_density(block, FAMILY.mode(FAMILY.point(q)))
    np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-13)


def test_records_are_stored(posterior: tuple[Any, Any, Any, Frame]) -> None:
    q, prior, moments, _ = posterior
    for value in (q, prior, moments, FAMILY.point(q)):
        stored_identity(value)


# ------------------------------------------------ what users see


def test_planted_clusters_are_found() -> None:
    X = mixed_table(0.1)
    model = Mixture(K, FAMILY)
    params = Case(model, X).after(40)
    chosen = model.log_joint(model.prepare(params), _block(X)).argmax(axis=1)
    table = np.array([[np.sum((chosen == i) & (k == LABELS)) for k in range(K)] for i in range(K)])
    assert table.max(axis=1).sum() > 0.85 * N


def test_starts_give_parts_the_same_weight_in_distances() -> None:
    X = mixed_table(0.1)
    frame = FAMILY.frame(X, np.ones(N))
    view = FAMILY.view(frame, X)
    assert view.shape == (N, 2 + 1 + 1 + 2 + 3)
    variance = np.nanvar(view, axis=0)
    np.testing.assert_allclose(variance[:4], 1, atol=0.05)
    assert variance[4:6].sum() == pytest.approx(2) and variance[6:].sum() == pytest.approx(1)


def test_entries_without_support_are_named_as_in_the_table() -> None:
    X = mixed_table()
    FAMILY.check(_block(X), None)
    X[11, 3] = 0.5
    with pytest.raises(ValueError, match=r"column '3' .*row 11 has 0\.5"):
        FAMILY.check(_block(X), None)
    with pytest.raises(ValueError, match="column 'smokes'"):
        FAMILY.check(_block(X), np.array(["visits", "b", "c", "smokes", "e", "f", "g"]))


def test_categories_are_counted_by_part() -> None:
    family = product_of({"diag": [0], "categorical": [1, 2]})
    told = family.with_maxima(np.array([9.5, 2.0, 4.0]))
    assert told.n_free(K, 3) == K * (2 + 2 + 4)
    assert type(told) is ProductFamily


def test_free_parameters_and_published_ones() -> None:
    assert FAMILY.n_free(K, D) == K * (2 + 3 + 2 + 1 + 2 + 2)
    params = _params()
    found = FAMILY.describe(params)
    assert found["means"].shape == (K, D)
    np.testing.assert_allclose(found["means"][:, 0], params.parts[2].means[:, 0])
    assert [part.shape for part in found["covariances"]] == [(K, 2, 2), (K, 1)]


def test_product_of_names() -> None:
    columns = {"full": [0, 1], "poisson": 2, "bernoulli": [3, 4]}
    family = product_of(columns, n_features=5, floor=1e-3)
    assert [(part.family.name, part.columns) for part in family.parts] == [
        ("full", (0, 1)), ("poisson", (2,)), ("bernoulli", (3, 4)),
    ]  # fmt: skip
    assert family.parts[0].family.floor == 1e-3
    twice = product_of([("full", [0, 1]), ("full", [2, 3]), (KnownCovariance(), [4])])
    assert isinstance(twice, ProductFamily) and len(twice.parts) == 3
    plain = product((Part((0,), FullGaussian()), Part((1,), Multinomial())))
    assert type(plain) is PlainProduct and plain.readings == ("mode",)
    for name in EXPONENTIAL_FAMILIES:
        assert product_of({name: [0]}).parts[0].family.name == name


@pytest.mark.parametrize(
    ("columns", "n_features", "words"),
    [
        ({"full": [0, 1], "diag": [1]}, None, "column 1 is in two parts, 'full' and 'diag'"),
        ({"full": [0, 2]}, None, r"columns \[1\] are in no part"),
        ({"full": [0]}, 3, r"columns \[1, 2\] are in no part"),
        ({"full": [0, 1, 2]}, 2, "has column 2, and the table has 2 columns"),
        ({"normal": [0]}, None, "one of full, .*; got 'normal'"),
        ({"full": ["a"]}, None, "the columns of 'full' must be positions"),
        ({"full": [-1, 0]}, None, "whole numbers from 0"),
        ({"full": []}, None, "one or more"),
        ({}, None, "in no part"),
    ],
)
def test_columns_that_make_no_sense(columns: Any, n_features: int | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        product_of(columns, n_features)


def test_parts_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="exactly one part"):
        ProductFamily((Part((0, 2), BayesFull()),))
    with pytest.raises(ValueError, match="at least one part"):
        ProductFamily(())
    with pytest.raises(TypeError, match="cannot be a product itself"):
        ProductFamily((Part((0,), product_of({"full": [0]})),))
    with pytest.raises(TypeError, match="conjugate prior, and full has none"):
        ProductFamily((Part((0,), FullGaussian()),))


def test_mixtures_keep_their_weights_beside_the_parts() -> None:
    params = MixtureParams(np.full(K, 1 / K), _params())
    model = Mixture(K, FAMILY)
    rows, labels = model.sample(params, 200, np.random.default_rng(0))
    FAMILY.check(_block(rows), None)  # every entry is one that its family can produce
    assert set(labels) == set(range(K))
