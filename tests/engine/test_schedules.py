"""Schedules of statistics, and the one step that every stream is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block, Context, Stats, record
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.schedules import Accumulated, Stepwise, learn_batch
from mixfold.engine.sources import open_source
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.topics.lda import LDAModel
from mixfold.models.topics.records import TopicParams
from mixfold.testing import laws
from mixfold.testing.compare import require_same
from mixfold.testing.tables import clustered_table


@record
@dataclass(frozen=True)
class TwoSums(Stats):
    values: np.ndarray
    number: float


def some(rng: np.random.Generator, weight: float) -> tuple[TwoSums, float]:
    return TwoSums(weight * rng.normal(size=3), weight * rng.normal()), weight


SCHEDULES = {
    "a batch a step": Stepwise(),
    "a step by weight": Stepwise(decay=0.6, delay=2.0, batch_size=10.0),
    "sums": Accumulated(),
    "sums that fade": Accumulated(forgetting=0.9),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_average_batches(name: str, rng: np.random.Generator) -> None:
    batches = [some(rng, weight) for weight in (4.0, 10.0, 2.5, 7.0)]
    laws.batches_are_averaged(SCHEDULES[name], batches)


@dataclass(frozen=True)
class Greedy(Stepwise):
    """Takes twice of a batch what it says."""

    def blend(self, batch: Any, weight: float = 1.0) -> Any:
        known = super().blend(batch, weight)
        return known if self.stats is None else replace(known, stats=known.stats.scale(1.1))


def test_a_schedule_that_makes_statistics_up_is_found(rng: np.random.Generator) -> None:
    with pytest.raises(AssertionError, match="per unit of weight"):
        laws.batches_are_averaged(Greedy(), [some(rng, 1.0), some(rng, 2.0)])


def test_rates_of_stepwise_em(rng: np.random.Generator) -> None:
    stats, _ = some(rng, 1.0)
    assert Stepwise(stats, 6, 0.7, 10.0).rate() == pytest.approx(16**-0.7)
    by_weight = Stepwise(stats, 6, 0.7, 10.0, batch_size=50.0)
    assert by_weight.rate(50.0) == pytest.approx(16**-0.7)
    assert (1 - by_weight.rate(25.0)) ** 2 == pytest.approx(1 - 16**-0.7)  # half a step
    assert by_weight.blend(stats, 25.0).n_batches == 6.5
    assert Stepwise(stats, 0, 0.7, 0.0).rate() == 1  # never more than all


def test_totals(rng: np.random.Generator) -> None:
    (one, a), (other, b) = some(rng, 3.0), some(rng, 5.0)
    sums = Accumulated().blend(one, a).blend(other, b)
    require_same("sum", sums.total(), one + other)
    require_same("sum", sums.total(99.0), one + other)  # of the rows seen, whatever is asked
    steps = Stepwise(decay=1.0, delay=0.0).blend(one, a).blend(other, b)  # all rate at once
    require_same("seen", steps.total(None), steps.stats.scale(8.0))
    require_same("given", steps.total(4.0), steps.stats.scale(4.0))
    assert steps.total() is steps.stats


# ------------------------------------------------ a step


def cases(rng: np.random.Generator) -> dict[str, tuple[Any, Any, np.ndarray]]:
    X = clustered_table(80)
    pilot = draw_pilot(open_source(X), ThreadExecutor(1), 80, 0)
    found: dict[str, tuple[Any, Any, np.ndarray]] = {}
    for kind in ("full", "diag"):
        model: Any = Mixture(2, GAUSSIAN[kind]())
        found[kind] = (model, model.initialise(pilot, np.random.default_rng(0)), X)
    counts = rng.poisson(1.0, (80, 6)).astype(float)
    topics = TopicParams(rng.gamma(1.0, size=(2, 6)) + 1, np.ones(2), 0.1)
    found["lda"] = (LDAModel(topics).for_batches(), topics, counts)
    return found


@pytest.mark.parametrize("name", ["full", "diag", "lda"])
def test_a_first_batch_of_all_rows_is_a_step_of_em(name: str, rng: np.random.Generator) -> None:
    model, params, X = cases(rng)[name]
    source, threads = open_source(X), ThreadExecutor(1)
    weight = float(len(X))
    learned = learn_batch(model, params, Stepwise(), source, threads, total_weight=weight)
    stats = model.expect(model.prepare(params), Block(X), None)
    wanted = model.update(params, stats, Context(None, rng)).params
    require_same("a step of EM", learned.params, wanted, 1e-9)
    assert model.row_weight(learned.stats) == weight == learned.schedule.weight


@pytest.mark.parametrize("name", ["full", "diag", "lda"])
def test_sums_of_batches_at_the_same_parameters_are_those_of_all_rows(
    name: str, rng: np.random.Generator
) -> None:
    model, params, X = cases(rng)[name]
    threads = ThreadExecutor(1)
    sums: Any = Accumulated()
    for first in range(0, 80, 20):
        rows = open_source(X[first : first + 20])
        sums = learn_batch(model, params, sums, rows, threads).schedule
    whole = learn_batch(model, params, Accumulated(), open_source(X), threads).schedule
    require_same("sums", sums.total(), whole.total(), 1e-9)


def test_a_batch_in_which_nothing_counts_changes_nothing(rng: np.random.Generator) -> None:
    model, params, _ = cases(rng)["lda"]
    before = Stepwise()
    learned = learn_batch(model, params, before, open_source(np.zeros((3, 6))), ThreadExecutor(1))
    assert learned.params is params and learned.schedule is before
