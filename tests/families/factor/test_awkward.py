"""Tables on which components of factors break, die or have too little to go by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mixfold.contracts import Block, Context, Event
from mixfold.engine.random import RowKeys
from mixfold.families.factor import FactorFamily, FactorParams
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.models.mixtures.repair import MAX_RESEEDS
from mixfold.testing import Case, laws
from mixfold.testing.tables import clustered_table

D = 5
KEYS = RowKeys(0)


def _tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(60, 2)) @ rng.normal(size=(2, D))
    constant = rng.normal(size=(60, D))
    constant[:, 2] = 1e6
    hidden = np.concatenate([rng.normal(size=(30, D)), 60 + rng.normal(size=(30, D))])
    hidden[30:, 2] = np.nan
    return {
        "duplicated rows": np.repeat(rng.normal(size=(6, D)), 10, axis=0),
        "all rows equal": np.full((20, D), 7.0),
        "a constant column": constant,
        "collinear columns": plane,
        "equal columns": np.repeat(rng.normal(size=(60, 1)), D, axis=1),
        "more columns than rows": rng.normal(size=(12, 40)),
        "hardly any rows": rng.normal(size=(4, D)),
        "whole numbers": rng.integers(0, 2, (60, D)).astype(float),
        "a column that one component never sees": hidden,
        "a column seen once": np.column_stack(
            [rng.normal(size=(30, D - 1)), [1.0] + [np.nan] * 29]
        ),
    }


TABLES = _tables()


@pytest.mark.parametrize("what", sorted(TABLES))
@pytest.mark.parametrize("floor", [1e-6, 1e-12])
def test_awkward_tables_are_climbed(family: FactorFamily, what: str, floor: float) -> None:
    """Every number stays finite, no step goes down, and the noise keeps its floor."""
    X = TABLES[what]
    family = replace(family, factors=(2,), floor=floor, has_missing=bool(np.isnan(X).any()))
    case = Case(Mixture(2, family), X)
    # noise of 1e-12 leaves four digits of a likelihood that is a thousand
    laws.monotone(case, n_steps=7, slack=1e-9 if floor == 1e-6 else 1e-6)
    params = case.after(3)
    parts: FactorParams = params.components
    for values in (parts.means, parts.loadings, parts.noise, params.weights):
        assert np.isfinite(values).all()
    assert parts.noise.min() >= floor * (1 - 1e-12)


@pytest.mark.parametrize("what", ["collinear columns", "equal columns", "all rows equal"])
def test_noise_at_the_floor_is_told(family: FactorFamily, what: str) -> None:
    case = Case(Mixture(1, replace(family, factors=(2,))), TABLES[what])
    params = case.after(15)
    update = case.update(params, case.stats(params), 16)
    (event,) = update.events
    assert (event.kind, event.component, event.iteration) == ("floor", 0, 16)
    assert "floor of 1e-06" in event.message and "collinear columns" in event.message
    assert update.monotone


def test_a_constant_column_has_no_loadings() -> None:
    case = Case(Mixture(1, FactorFamily(factors=(2,))), TABLES["a constant column"])
    parts = case.after(40).components
    assert parts.noise[0, 2] == 1e-6 and np.abs(parts.loadings[0, 2]).max() < 1e-6
    assert parts.frame.leave(parts.means)[0, 2] == pytest.approx(1e6, rel=1e-12)


def test_an_entry_that_a_component_never_sees_is_that_of_the_others() -> None:
    case = Case(
        Mixture(2, FactorFamily(factors=(1,), has_missing=True)),
        TABLES["a column that one component never sees"],
    )
    parts = case.after(5).components
    blind = int(parts.means[:, 0].argmax())  # the far cluster
    assert not parts.loadings[blind, 2].any() and parts.loadings[1 - blind, 2].any()
    assert parts.means[blind, 2] == pytest.approx(parts.means[1 - blind, 2])
    assert np.isfinite(parts.noise).all() and (parts.noise > 0).all()


def test_more_factors_than_the_rows_have_directions() -> None:
    """What is left over shrinks towards nothing instead of breaking."""
    X = np.random.default_rng(0).normal(size=(4, 8))
    case = Case(Mixture(1, FactorFamily(factors=(5,))), X)
    laws.monotone(case, n_steps=30)
    lengths = np.linalg.svd(case.after(60).components.loadings[0])[1]
    assert (lengths[:3] > 0.1).all() and (lengths[3:] < 0.05).all()


# ------------------------------------------------ components that die


def _three(family: FactorFamily) -> tuple[Case, MixtureParams]:
    case = Case(Mixture(3, family), clustered_table(120, D, 3, seed=3))
    return case, case.after(1)


def _lonely(params: MixtureParams, which: int) -> MixtureParams:
    """A component so far out that it has no rows."""
    means = params.components.means.copy()
    means[which] = 1e3
    return replace(params, components=replace(params.components, means=means))


def test_a_component_without_rows_is_moved(family: FactorFamily) -> None:
    case, params = _three(family)
    params = _lonely(params, 1)
    update = case.update(params, case.stats(params), 7)
    told = [e for e in update.events if e.kind == "reseed"]
    assert [(e.component, e.iteration) for e in told] == [(1, 7)] and not update.monotone
    again = case.stats(update.params)
    assert again.counts[1] > 0.1 and np.isfinite(again.log_likelihood)
    own = np.resize(family.factors, 3)[1]
    assert not update.params.components.loadings[1, :, own:].any()


def _with_few_rows(family: FactorFamily, n: int) -> tuple[Case, MixtureParams]:
    """n rows far from all others, and a component for them alone."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, D)), 20 + rng.normal(size=(n, D))])
    y = np.r_[np.arange(80) % 2, np.full(n, 2)]
    case = Case(Mixture(3, family), X, y=y)
    return case, case.start()


def test_a_component_with_fewer_rows_than_its_factors_need_is_moved(family: FactorFamily) -> None:
    family = replace(family, factors=(2,))
    enough, params = _with_few_rows(family, 5)
    assert not [e for e in enough.update(params, enough.stats(params)).events if e.kind == "reseed"]
    short, params = _with_few_rows(family, 3)
    update = short.update(params, short.stats(params))
    assert [e.component for e in update.events if e.kind == "reseed"] == [2]


def test_a_lone_component_is_never_moved() -> None:
    family = FactorFamily(factors=(3,))
    case = Case(Mixture(1, family), TABLES["hardly any rows"])
    params = case.start()
    update = case.update(params, case.stats(params))
    assert not [e for e in update.events if e.kind != "floor"]
    np.testing.assert_array_equal(family.least_rows(1), 0)
    np.testing.assert_array_equal(FactorFamily(factors=(3, 0)).least_rows(2), [5, 2])


def _tired(case: Case, component: int) -> Context:
    """After as many moves as a component is allowed."""
    moved = tuple(Event("reseed", "moved", i, component) for i in range(MAX_RESEEDS))
    return Context(case.pilot(), np.random.default_rng(0), 9, moved)


def test_a_component_that_keeps_losing_its_rows_is_dropped(family: FactorFamily) -> None:
    case, params = _three(family)
    params = _lonely(params, 1)
    update = case.model.update(params, case.stats(params), _tired(case, 1))
    assert [(e.kind, e.component) for e in update.events if e.kind != "floor"] == [("drop", 1)]
    assert update.params.weights[1] == 0
    stats = case.stats(update.params)
    assert stats.counts[1] == 0 and np.isfinite(stats.log_likelihood)
    later = case.model.update(update.params, stats, _tired(case, 1))
    assert not [e for e in later.events if e.kind != "floor"]  # told once
    assert later.params.weights[1] == 0
    # the others go on as if it had never been
    two = Mixture(2, replace(family, factors=(2,)))
    rest = MixtureParams(
        update.params.weights[[0, 2]],
        family.select(update.params.components, np.array([0, 2])),
    )
    alone = two.expect(two.prepare(rest), Block(case.X), KEYS)
    assert alone.log_likelihood == pytest.approx(stats.log_likelihood, rel=1e-11)


def test_a_dropped_component_with_a_few_rows_gives_them_up(family: FactorFamily) -> None:
    """It has weight 0 from then on, as its event says, and is dropped once."""
    family = replace(family, factors=(2,))
    case, params = _with_few_rows(family, 3)
    case = replace(case, y=None)
    update = case.model.update(params, case.stats(params), _tired(case, 2))
    assert [(e.kind, e.component) for e in update.events if e.kind != "floor"] == [("drop", 2)]
    assert update.params.weights[2] == 0 and update.params.weights.sum() == pytest.approx(1)
    assert not update.monotone  # its rows are explained worse
    later = case.model.update(update.params, case.stats(update.params), _tired(case, 2))
    assert not [e for e in later.events if e.kind == "drop"]
