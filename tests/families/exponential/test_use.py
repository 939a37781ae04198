"""Support, settings, conditioning, imputing, moving components."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from mixfold.contracts import Block
from mixfold.engine.random import RowKeys
from mixfold.families.exponential import (
    Bernoulli,
    Binomial,
    Categorical,
    Exponential,
    Gamma,
    Multinomial,
    Poisson,
)
from mixfold.families.exponential.family import uniforms
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.mixture import Mixture, MixtureParams

from .conftest import FAMILIES, SPARSE, WITH_NAN, Sample, sample_of, table
from .examples import CATEGORIES, EXAMPLES, D, K

# ------------------------------------------------ support

BAD = [(e.family, value, rule, e.valid) for e in EXAMPLES.values() for value, rule in e.bad]


@pytest.mark.parametrize(("family", "value", "rule", "valid"), BAD)
def test_entries_that_no_component_can_produce_are_named(
    family: Any, value: float, rule: str, valid: float
) -> None:
    X = np.full((6, D), valid)
    X[4, 2] = value
    family.check(Block(X[:4]), None)
    with pytest.raises(ValueError, match=f"column 2.*{rule}.*row 104 has {value:g}"):
        family.check(Block(X, start=100), None)
    names = np.array(["age", "sex", "shoe size", "hair"])
    with pytest.raises(ValueError, match="column 'shoe size'"):
        family.check(Block(X), names)
    # a row without weight may hold anything, and a missing entry is no fault
    family.check(Block(X, weight=np.array([1.0, 1, 1, 1, 0, 1])), None)
    if family.takes_missing:
        X[4, 2] = np.nan
        family.check(Block(X, complete=False), None)


@pytest.mark.parametrize("name", SPARSE)
def test_support_of_sparse_rows(name: str) -> None:
    X = table(name)
    FAMILIES[name].check(Block(csr_array(X)), None)
    X[7, 3] = -1
    with pytest.raises(ValueError, match=r"column 3 .*row 7 has -1"):
        FAMILIES[name].check(Block(csr_array(X)), None)


@pytest.mark.parametrize("family", [Exponential(), Gamma(shape=2.0)])
def test_positive_families_refuse_sparse_rows(family: Any) -> None:
    with pytest.raises(ValueError, match=f"{family.name!r} takes positive numbers only"):
        family.check(Block(csr_array(np.ones((2, 2)))), None)


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_multinomial_rows_have_no_missing_entries(make: Any) -> None:
    X = np.ones((3, 2))
    X[1, 0] = np.nan
    block = Block(make(X), start=5, complete=False)
    with pytest.raises(ValueError, match=r"no missing entries; column 0 of row 6 is NaN"):
        Multinomial().check(block, None)
    params = Multinomial().from_rows(
        sample_of("poisson").frame, np.ones((3, 2)), None, np.ones((3, 1))
    )
    with pytest.raises(ValueError, match="no missing entries"):
        Multinomial().log_density(block, Multinomial().mode(params))
    with pytest.raises(ValueError, match="cannot be conditioned"):
        Multinomial().condition(params, np.array([0]), np.array([1.0]))


# ------------------------------------------------ settings


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bernoulli(a=0.0), "a must be positive"),
        (lambda: Poisson(b=-1.0), "b must be positive"),
        (lambda: Poisson(exposure=[1.0, np.inf]), "exposure must be positive"),
        (lambda: Binomial(trials=2.5), "trials must be positive whole"),
        (lambda: Gamma(shape=0), "shape must be positive"),
        (lambda: Multinomial(concentration=[1.0, 0.0]), "concentration must be positive"),
        (lambda: Categorical(n_categories=(2, 0)), "n_categories must be positive whole"),
    ],
)
def test_settings_are_checked(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_settings_that_are_no_numbers() -> None:
    with pytest.raises(TypeError, match="a must be a number or an array of numbers, got 'big'"):
        Bernoulli(a="big")
    with pytest.raises(ValueError, match=r"trials must be one number or one for each of the 4"):
        Binomial(trials=[1, 2, 3]).column_constants(4)


def test_categories_are_learned_from_the_largest_codes() -> None:
    family = Categorical()
    with pytest.raises(ValueError, match="n_categories of the family 'categorical' is not known"):
        family.column_constants(3)
    with pytest.raises(ValueError, match="column 1 has no observed entry"):
        family.with_maxima(np.array([1.0, np.nan]))
    told = family.with_maxima(np.array([1.0, 0.0, 4.0]))
    assert told.n_categories == (2, 1, 5)
    assert told.with_maxima(np.array([9.0, 9.0, 9.0])) is told
    assert told.n_free(2, 3) == 2 * (1 + 0 + 4)


def test_codes_that_only_number_the_rows_are_refused() -> None:
    with pytest.raises(ValueError, match=r"column 1 has the code 1000000000000.*at most 100000"):
        Categorical().with_maxima(np.array([3.0, 1e12]))
    assert Categorical(n_categories=200_000).with_maxima(np.array([150_000.0])) is not None


def test_an_entry_beside_a_whole_number_is_shown_in_full() -> None:
    X = np.array([[3.0, 1.0], [2.0, 3.0000001]])
    with pytest.raises(ValueError, match=r"row 1 has 3\.0000001\. Correct"):
        Poisson().check(Block(X), None)


def test_free_parameters(name: str) -> None:
    assert FAMILIES[name].n_free(K, D) == EXAMPLES[name].n_free


# ------------------------------------------------ using a fit


def _mixture(name: str) -> tuple[Mixture, MixtureParams]:
    sample = sample_of(name)
    components = FAMILIES[name].from_rows(sample.frame, sample.X, None, sample.resp)
    return Mixture(K, FAMILIES[name]), MixtureParams(np.array([0.5, 0.3, 0.2]), components)


@pytest.mark.parametrize("name", WITH_NAN)
def test_conditioning(name: str) -> None:
    """p(rest | known) p(known) = p(all), with settings that follow their columns."""
    model, params = _mixture(name)
    X, known = table(name)[:5], np.array([2, 0])
    rest = np.array([1, 3])
    full = model.log_joint(model.prepare(params), Block(X))
    for n, x in enumerate(X):
        part = x.copy()
        part[rest] = np.nan
        before = model.log_joint(model.prepare(params), Block(part[None], complete=False))
        given = model.condition(params, known, x[known])
        np.testing.assert_allclose(given.weights, normalise(before)[1][0], rtol=1e-10)
        after = model.log_joint(model.prepare(given), Block(x[None, rest]))
        total = normalise(after)[0][0] + normalise(before)[0][0]
        assert total == pytest.approx(normalise(full[n : n + 1])[0][0], rel=1e-10)
    assert given.components.n_features == 2


@pytest.mark.parametrize("name", WITH_NAN)
def test_missing_entries_are_filled(name: str) -> None:
    model, params = _mixture(name)
    X = table(name)[:30]
    X[:, 1] = np.nan
    X[3] = np.nan
    block, reading = Block(X, complete=False), model.prepare(params)
    seen = ~np.isnan(X)
    guess = model.impute(reading, block, RowKeys(0), draw=False)
    np.testing.assert_array_equal(guess[seen], X[seen])
    if name == "categorical":
        FAMILIES[name].check(Block(guess), None)
    else:
        _, resp = normalise(model.log_joint(reading, block))
        if EXAMPLES[name].period is not None:  # the direction of the mean vector
            draws, labels = model.sample(params, 400_000, np.random.default_rng(0))
            vectors = np.exp(2j * np.pi * draws[:, 1] / EXAMPLES[name].period[1])
            mean = np.array([vectors[labels == k].mean() for k in range(K)])
            turned = np.exp(2j * np.pi * guess[:, 1] / EXAMPLES[name].period[1])
            assert np.abs(turned - (resp @ mean) / np.abs(resp @ mean)).max() < 0.02
            return
        np.testing.assert_allclose(guess[:, 1], resp @ params.components.means[:, 1], rtol=1e-10)
    # draws: in the support, and with the conditional mean
    many = Block(np.repeat(X[:1], 20_000, axis=0), complete=False)
    drawn = model.impute(reading, many, RowKeys(1), draw=True)
    FAMILIES[name].check(Block(drawn), None)
    _, resp = normalise(model.log_joint(reading, Block(X[:1], complete=False)))
    mean = float((resp @ params.components.means[:, 1])[0])
    error = drawn[:, 1].std() / np.sqrt(len(drawn))
    assert abs(drawn[:, 1].mean() - mean) < 6 * error


def test_the_most_probable_category_is_filled() -> None:
    family = Categorical(n_categories=3)
    frame = sample_of("poisson").frame
    X = np.array([[0.0], [2.0], [2.0], [0.0], [0.0]])
    params = family.from_rows(frame, X, None, np.ones((5, 1)))
    scores = family.scores(Block(np.array([[np.nan]]), complete=False), family.mode(params))
    assert family.fill_missing(scores, np.ones((1, 1)), family.mode(params)) == 0.0
    assert 0 < params.means[0, 0] < 2  # which is no category that anybody has seen


def test_components_are_kept_and_moved(name: str, sample: Sample) -> None:
    family, frame = sample.family, sample.frame
    params = family.from_rows(frame, sample.X, None, sample.resp)
    whole = sample.X[~np.isnan(sample.X).any(axis=1)]
    point = whole[np.argmin(family.log_density(Block(whole), family.mode(params)).max(axis=1))]
    moved = family.place(params, np.array([1]), point[None])
    before = family.log_density(Block(point[None]), family.mode(params))[0]
    after = family.log_density(Block(point[None]), family.mode(moved))[0]
    assert after[1] > before[1]
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
    np.testing.assert_allclose(
        family.clip_coordinates(moved.theta, moved.size), moved.theta, rtol=1e-12, atol=1e-12
    )
    kept = family.select(moved, np.array([2, 1]))
    np.testing.assert_array_equal(kept.theta, moved.theta[[2, 1]])
    np.testing.assert_array_equal(kept.means, moved.means[[2, 1]])
    alone = family.place(family.select(params, np.array([0])), np.array([0]), point[None])
    assert np.isfinite(alone.theta).all()


def test_components_without_rows_keep_their_parameters(sample: Sample) -> None:
    family = sample.family
    params = family.from_rows(sample.frame, sample.X, None, sample.resp)
    resp = sample.resp.copy()
    resp[:, 2] = 0
    fresh, touched = family.estimate(sample.moments(resp), params)
    np.testing.assert_array_equal(fresh.theta[2], params.theta[2])
    np.testing.assert_allclose(fresh.means[2], params.means[2], rtol=1e-12)
    assert not touched.any()
    assert np.abs(fresh.theta[:2] - params.theta[:2]).max() > 1e-3


def test_views_give_columns_comparable_weight() -> None:
    frame = sample_of("poisson").frame
    for name in ("exponential", "gamma"):
        X = table(name, 0.1)
        U = FAMILIES[name].view(frame, X)
        np.testing.assert_allclose(np.nanstd(U, axis=0), 1.0)
        np.testing.assert_array_equal(np.isnan(U), np.isnan(X))
    X = table("multinomial")
    np.testing.assert_allclose(Multinomial().view(frame, X).sum(axis=1), 1.0)
    X = table("categorical", 0.1)
    U = FAMILIES["categorical"].view(frame, X)
    assert U.shape[1] == sum(CATEGORIES)
    np.testing.assert_array_equal(np.nansum(U, axis=1), (~np.isnan(X)).sum(axis=1))


def test_the_view_of_counts_has_noise_of_one_size() -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson([3.0, 50.0, 4000.0], (20_000, 3)).astype(float)
    U = Poisson().view(sample_of("poisson").frame, X)
    np.testing.assert_allclose(U.std(axis=0), 1.0, atol=0.1)


def test_wide_rows_are_seen_in_few_directions() -> None:
    """Distances between clusters survive, whatever the number of columns; holes are the mean."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(1.0, 1.0, (3, 600))
    labels = np.repeat([0, 1, 2], 20)
    X = rng.poisson(rates[labels]).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    U = Poisson().view(sample_of("poisson").frame, X)
    assert U.shape == (60, 60)
    assert np.isfinite(U).all()
    full = Poisson().points(X)
    full = np.where(np.isnan(full), np.nanmean(full, axis=0), full)
    wanted = np.linalg.norm(full[:, None] - full, axis=2)
    np.testing.assert_allclose(np.linalg.norm(U[:, None] - U, axis=2), wanted, rtol=1e-6)
    np.testing.assert_array_equal(U, Poisson().view(sample_of("poisson").frame, X))


def test_the_total_of_drawn_rows() -> None:
    _, params = _mixture("multinomial")
    labels = np.zeros(5, int)
    rng = np.random.default_rng(0)
    mean = params.components.means[0].sum()
    free = Multinomial().draw_rows(params.components, labels, rng)
    assert set(free.sum(axis=1)) == {round(mean)}
    told = replace(Multinomial(), trials=50).draw_rows(params.components, labels, rng)
    assert set(told.sum(axis=1)) == {50}


def test_parameters_are_published_by_their_names(name: str, sample: Sample) -> None:
    family = sample.family
    params = family.from_rows(sample.frame, sample.X, None, sample.resp)
    told = family.describe(params)
    np.testing.assert_array_equal(told["means"], params.means)
    if name == "categorical":
        assert [p.shape for p in told["probabilities"]] == [(K, V) for V in CATEGORIES]
        np.testing.assert_allclose([p.sum() for p in told["probabilities"]], K)
        return
    assert set(told) == {"means", *EXAMPLES[name].published}
    for attribute, wanted in EXAMPLES[name].published.items():
        np.testing.assert_allclose(told[attribute], wanted(params))


def test_uniforms_of_extreme_normals_stay_inside() -> None:
    """At 0 or 1 a quantile would be the end of the support, or infinite."""
    u = uniforms(np.array([-50.0, -1.0, 0.0, 50.0]))
    assert u[0] > 0 and u[-1] < 1
    np.testing.assert_allclose(u[1:3], [0.15865525393145707, 0.5])
