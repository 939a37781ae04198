"""Cells are judged by the rule of their column, and by nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.frame.checks import check_growth
from papers.frame.table import Best, Cell, Column, Tolerance, Verdict

from .conftest import CELLS, COLUMNS, table

SER, RISK = COLUMNS


def test_ours_and_spread_are_mean_and_deviation_over_repeats() -> None:
    values = (1.0, 4.0, 2.5, -3.0)
    cell = Cell("r", "c", values)
    assert cell.ours == pytest.approx(np.mean(values))
    assert cell.spread == pytest.approx(np.std(values, ddof=1))
    assert math.isnan(Cell("r", "c", (1.0,)).spread)


def test_a_value_without_end_is_shown_as_one() -> None:
    cell = Cell("r", "c", (math.inf, 1.0))
    assert cell.ours == math.inf and math.isnan(cell.spread)


@pytest.mark.parametrize(
    ("tolerance", "ours", "verdict"),
    [
        (Tolerance(absolute=0.5), 9.5, Verdict.reproduced),
        (Tolerance(absolute=0.5), 9.49, Verdict.differs),
        (Tolerance(relative=0.1), 11.0, Verdict.reproduced),
        (Tolerance(relative=0.1), 11.01, Verdict.differs),
        (Tolerance(0.5, 0.1), 11.5, Verdict.reproduced),
        (Tolerance(), 10.0, Verdict.reproduced),
        (Tolerance(), 10.0001, Verdict.differs),
        (Tolerance(absolute=0.5), math.nan, Verdict.differs),
        (Tolerance(absolute=0.5), math.inf, Verdict.differs),
        (None, 10.0, Verdict.open),
    ],
)
def test_a_cell_agrees_within_the_tolerance(
    tolerance: Tolerance | None, ours: float, verdict: Verdict
) -> None:
    column = Column("c", "a measure", tolerance=tolerance)
    assert column.verdict(Cell("r", "c", (ours,), 10.0)) is verdict


def test_a_relative_tolerance_takes_the_size_of_a_negative_value() -> None:
    column = Column("c", "a measure", tolerance=Tolerance(relative=0.1))
    assert column.verdict(Cell("r", "c", (-95.0,), -100.0)) is Verdict.reproduced


def test_without_a_published_value_there_is_no_verdict() -> None:
    assert SER.verdict(Cell("r", "SER", (1.0,))) is Verdict.open


@pytest.mark.parametrize(
    ("tolerance", "words"),
    [
        (Tolerance(0.5), "within 0.5 dB"),
        (Tolerance(relative=0.05), "within 5 %"),
        (Tolerance(0.5, 0.05), "within 0.5 dB + 5 %"),
        (Tolerance(), "within 0 dB"),
    ],
)
def test_the_rule_is_stated(tolerance: Tolerance, words: str) -> None:
    assert tolerance.words("dB") == words


def test_a_table_knows_its_places_and_counts() -> None:
    whole = table()
    assert whole.rows == ("d = 1", "d = 2", "d = 3")
    assert whole.cell("d = 2", "SER") is CELLS[2]
    assert whole.cell("d = 3", "risk") is None
    # d = 1 is within 0.5, d = 2 is not, d = 3 has no published value
    assert whole.judged(SER) == "1 of 2 reproduced, 1 differs"
    assert whole.judged(RISK) == ""
    assert whole.differences == (CELLS[2],)


@pytest.mark.parametrize(
    ("best", "ours", "verdict"),
    [
        (Best.higher, 12.0, Verdict.better),
        (Best.higher, 8.0, Verdict.differs),
        (Best.lower, 8.0, Verdict.better),
        (Best.lower, 12.0, Verdict.differs),
        (Best.lower, 10.2, Verdict.reproduced),
        (Best.neither, 12.0, Verdict.differs),
        (Best.higher, math.nan, Verdict.differs),
    ],
)
def test_a_value_beyond_the_tolerance_may_be_better(
    best: Best, ours: float, verdict: Verdict
) -> None:
    column = Column("c", "a measure", tolerance=Tolerance(0.5), best=best)
    assert column.verdict(Cell("r", "c", (ours,), 10.0)) is verdict


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": ()}, "at least one cell"),
        ({"cells": (CELLS[0], CELLS[0])}, "twice"),
        ({"columns": (SER, SER, RISK)}, "twice"),
        ({"columns": (SER,)}, "'risk'.*'SER'"),
        ({"cells": (Cell("r", "SER", ()),)}, "'r', 'SER' has no value"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table(**changes)


def series(*pairs: tuple[float, float | None]) -> list[Cell]:
    return [Cell(f"d = {j}", "c", (ours,), known) for j, (ours, known) in enumerate(pairs)]


def test_growth_holds_only_if_every_series_rises() -> None:
    rising, falling = series((1.0, 1.0), (2.0, 3.0)), series((1.0, 1.0), (2.0, 2.0), (1.5, 3.0))
    assert check_growth("c grows", [rising]).holds
    check = check_growth("c grows", [rising, falling])
    assert not check.holds
    assert "in 1 of 2 series, as published (2 of 2)" in check.detail
    assert "not from d = 1 2 -> d = 2 1.5" in check.detail


def test_standing_still_or_nan_is_no_growth() -> None:
    assert not check_growth("c grows", [series((1.0, None), (1.0, None))]).holds
    assert not check_growth("c grows", [series((1.0, None), (math.nan, None))]).holds


def test_an_order_that_was_not_published_is_not_claimed_to_be() -> None:
    unknown = check_growth("c grows", [series((1.0, None), (2.0, 5.0))])
    assert unknown.holds and "published" not in unknown.detail
    other = check_growth("c grows", [series((1.0, 6.0), (2.0, 5.0))])
    assert other.holds and other.detail.endswith(", published (0 of 1)")


def test_a_series_of_one_proves_nothing() -> None:
    with pytest.raises(ValueError, match="fewer than two cells"):
        check_growth("c grows", [series((1.0, None), (2.0, None)), series((1.0, None))])
    with pytest.raises(ValueError, match="fewer than two cells"):
        check_growth("c grows", [])
