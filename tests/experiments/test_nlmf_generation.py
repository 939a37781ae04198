"""Digits made with several priors: a small rerun, and claims that can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from mixfold.experiments import nlmf_generation as table
from mixfold.experiments.frame import reproduce
from mixfold.experiments.nlmf_judges import Quality
from mixfold.experiments.nlmf_sets import load_digits


def test_no_digit_is_in_two_parts(digits_folder: Path) -> None:
    parts = table._parts(load_digits(digits_folder), table.Size(50, 30, 10))
    rows = [row.tobytes() for name in ("train", "judge", "real", "others")
            for row in parts[name].X]  # fmt: skip
    assert len(set(rows)) == len(rows) == 10 * (50 + 30 + 10 + 10)


EARLY, MIDDLE, LATE = table.LAPLACE
GOOD = {
    EARLY: Quality(0.6, 0.8, 0.4),
    MIDDLE: Quality(0.8, 0.7, 0.4),
    LATE: Quality(0.95, 0.5, 0.2),
    table.MIXTURE: Quality(0.9, 0.75, 0.9),
    table.KEPT: Quality(0.98, 0.7, 0.9),
    table.REAL: Quality(0.97, 1.0, 0.95),
}


def test_claims_can_fail() -> None:
    assert all(check.holds for check in table.checks(GOOD, 0.03))

    def broken(name: str, found: Quality, error: float = 0.03) -> list[int]:
        checks = table.checks(GOOD | {name: found}, error)
        return [place for place, check in enumerate(checks) if not check.holds]

    assert broken(MIDDLE, GOOD[MIDDLE], 0.06) == [0]
    assert broken(MIDDLE, Quality(0.9, 0.76, 0.4)) == [1]
    assert broken(LATE, Quality(0.95, 0.5, 0.95)) == [2]
    assert broken(table.KEPT, Quality(0.9, 0.7, 0.9)) == [3]


def test_a_table_of_small_digits(digits_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "QUICK", table.Size(70, 30, 15))
    monkeypatch.setattr(table, "LAYERS", (20, 10))
    made = reproduce(table.EXPERIMENT, digits_folder, quick=True).table
    assert made.rows == (*table.WAYS, table.REAL, table.REBUILT)
    real = made.cell(table.REAL, "recognised")
    assert real is not None and real.ours > 80
    alike = made.cell("prototype", "diversity")
    assert alike is not None and alike.ours < 1e-6
    figure = Figure(layout="constrained")
    assert made.draw is not None
    made.draw(figure)
    assert [ax.get_title() for ax in figure.axes] == list(table.DRAWN)
    assert all(len(ax.images) == 60 for ax in figure.axes)
