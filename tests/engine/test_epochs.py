"""Training by mini-batches: order, validation, endings, weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.engine.batches import take_rows
from mixfold.engine.budget import OVER
from mixfold.engine.epochs import (
    EpochPlan,
    Training,
    normalise_row_weights,
    split_rows,
    train,
)
from mixfold.math.rates import Constant, Dropped, Linear, Position, Switched
from mixfold.testing.toy_learner import Toy, ToyState


def _rows(n: int = 23, **sides: Any) -> Block:
    rng = np.random.default_rng(3)
    X = np.column_stack([np.arange(n, dtype=float), rng.normal(size=n)])
    return Block(X, **sides)


def _start() -> Training:
    return Training(ToyState(np.zeros(2)))


def test_every_row_is_shown_once_in_an_epoch_in_an_order_of_its_own() -> None:
    toy = Toy()
    done = train(toy, _start(), _rows(), EpochPlan(3, 5, seed=1))
    assert done.reason == "max_epochs"
    assert (done.epoch, done.n_steps) == (3, 15)
    epochs = [np.concatenate(toy.shown[i : i + 5]) for i in (0, 5, 10)]
    for epoch in epochs:
        np.testing.assert_array_equal(np.sort(epoch), np.arange(23))
    assert not np.array_equal(epochs[0], epochs[1])
    assert [len(batch) for batch in toy.shown[:5]] == [5, 5, 5, 5, 3]


def test_positions_tell_epoch_step_and_share() -> None:
    toy = Toy()
    train(toy, _start(), _rows(20), EpochPlan(2, 5))
    assert [(p.epoch, p.step) for p in toy.positions] == [(e, s) for e in (0, 1) for s in range(4)]
    np.testing.assert_allclose([p.share for p in toy.positions], np.arange(8) / 8)


def test_the_seed_decides_everything() -> None:
    def point(seed: int) -> np.ndarray:
        return train(Toy(), _start(), _rows(), EpochPlan(3, 5, seed=seed)).result.point

    np.testing.assert_array_equal(point(4), point(4))
    assert not np.array_equal(point(4), point(5))


def test_the_given_state_is_not_changed() -> None:
    start = _start()
    done = train(Toy(), start, _rows(), EpochPlan(1, 5))
    assert (start.state.point == 0).all()
    assert (done.state.point != 0).all()


def test_the_state_of_the_best_score_is_kept() -> None:
    scores = [1.0, 3.0, 2.0, 0.0]
    done = train(Toy(scores=list(scores)), _start(), _rows(), EpochPlan(4, 5), validation=_rows(4))
    two = train(Toy(), _start(), _rows(), EpochPlan(2, 5))
    assert (done.best_epoch, done.best_score, done.scores) == (2, 3.0, tuple(scores))
    np.testing.assert_array_equal(done.result.point, two.state.point)
    assert not np.array_equal(done.state.point, done.best.point)


def test_patience_ends_the_training() -> None:
    toy = Toy(scores=[1.0, 2.0, 1.5, 2.05, 1.0, 9.0])
    plan = EpochPlan(10, 5, patience=3, tol=0.1)
    done = train(toy, _start(), _rows(), plan, validation=_rows(4))
    assert (done.reason, done.epoch, done.best_epoch) == ("patience", 5, 2)


def test_trouble_ends_the_training_without_a_score() -> None:
    toy = Toy(trouble_at=10)
    done = train(toy, _start(), _rows(20), EpochPlan(9, 5), validation=_rows(4))
    assert (done.reason, done.trouble, done.epoch) == ("trouble", "it hurts", 3)
    assert len(done.scores) == 2
    assert done.best is not None


def test_the_clock_ends_it_between_two_batches() -> None:
    done = train(Toy(), _start(), _rows(), EpochPlan(9, 5, deadline=OVER))
    assert (done.reason, done.epoch, done.n_steps) == ("time_budget", 0, 1)
    assert (done.result.point != 0).all()


@pytest.mark.parametrize("validated", [False, True])
def test_ctrl_c_keeps_what_there_is(validated: bool) -> None:
    validation = _rows(4) if validated else None
    toy = Toy(interrupt_at=7)
    done = train(toy, _start(), _rows(20), EpochPlan(9, 5), validation=validation)
    assert (done.reason, done.epoch, done.n_steps) == ("interrupted", 1, 7)
    one = train(Toy(), _start(), _rows(20), EpochPlan(9, 5), validation=validation)
    same = np.array_equal(done.result.point, replace(one, best=None).state.point)
    assert not same
    if validated:
        assert done.best_epoch == 1


def test_ctrl_c_before_the_first_batch_is_an_error() -> None:
    with pytest.raises(KeyboardInterrupt):
        train(Toy(interrupt_at=0), _start(), _rows(), EpochPlan(9, 5))


def test_no_epochs_leave_the_start() -> None:
    done = train(Toy(), _start(), _rows(), EpochPlan(0, 5))
    assert done.reason == "max_epochs"
    assert (done.result.point == 0).all()


def test_weights_average_one_and_rows_without_any_are_left_out() -> None:
    weight = np.array([0.0, 1.0, 3.0, 0.0, 2.0])
    rows = normalise_row_weights(_rows(5, weight=weight, y=np.arange(5)))
    np.testing.assert_array_equal(rows.X[:, 0], [1, 2, 4])
    np.testing.assert_array_equal(rows.y, [1, 2, 4])
    np.testing.assert_allclose(rows.weight, [0.5, 1.5, 1.0])
    assert normalise_row_weights(_rows(5, weight=np.full(5, 7.0))).weight is None
    with pytest.raises(ValueError, match="all sample weights are zero"):
        normalise_row_weights(_rows(5, weight=np.zeros(5)))


def test_weighted_steps_go_to_the_weighted_mean() -> None:
    weight = np.r_[np.ones(10), np.full(10, 3.0)]
    done = train(Toy(0.02), _start(), _rows(20, weight=weight), EpochPlan(300, 20))
    mean = np.average(_rows(20).X[:, 0], weights=weight)
    assert abs(done.result.point[0] - mean) < 0.05


def test_split_rows_are_disjoint_seeded_and_of_positive_weight() -> None:
    weight = np.ones(50)
    weight[::5] = 0
    rows = _rows(50, weight=weight)
    seen, held = split_rows(rows, 0.25, 3)
    assert held is not None
    assert (seen.n_rows, held.n_rows) == (30, 10)
    both = np.sort(np.r_[seen.X[:, 0], held.X[:, 0]])
    np.testing.assert_array_equal(both, np.flatnonzero(weight))
    again = split_rows(rows, 0.25, 3)[1]
    other = split_rows(rows, 0.25, 4)[1]
    assert again is not None and other is not None
    np.testing.assert_array_equal(again.X, held.X)
    assert not np.array_equal(other.X, held.X)


def test_few_rows_are_split_to_one_at_least_or_not_at_all() -> None:
    assert split_rows(_rows(1), 0.5, 0)[1] is None
    assert split_rows(_rows(9), None, 0)[1] is None
    for share in (0.01, 0.99):
        seen, held = split_rows(_rows(2), share, 0)
        assert held is not None
        assert (seen.n_rows, held.n_rows) == (1, 1)


def test_take_keeps_sides_together() -> None:
    rows = take_rows(_rows(5, y=np.arange(5), weight=np.arange(5.0)), np.array([3, 1]))
    np.testing.assert_array_equal(rows.y, [3, 1])
    np.testing.assert_array_equal(rows.weight, [3, 1])
    np.testing.assert_array_equal(rows.X[:, 0], [3, 1])


def test_rates() -> None:
    early, late = Position(0, 0, 0.1), Position(7, 0, 0.75)
    assert [Constant(0.3).at(p) for p in (early, late)] == [0.3, 0.3]
    np.testing.assert_allclose([Dropped(1.0, 0.2, 0.6).at(p) for p in (early, late)], [1.0, 0.2])
    np.testing.assert_allclose([Linear(1.0, 0.2).at(p) for p in (early, late)], [0.92, 0.4])
    assert [Switched(0.5, 0.9, 5).at(p) for p in (early, late)] == [0.5, 0.9]
