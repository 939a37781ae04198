"""A small rerun of the machine and the deep belief net, and claims that can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from mixfold.experiments import dbn as table
from mixfold.experiments import nlmf_sets as sets
from mixfold.experiments.frame import reproduce


def test_claims_can_fail() -> None:
    good = table.Outcome(0.063, 0.076, 100.0), table.Outcome(0.02, None, 3000.0)
    assert [check.holds for check in table._checks(*good)] == [True, True]
    bad = table.Outcome(0.08, 0.076, 100.0), table.Outcome(0.021, None, 3000.0)
    found = table._checks(*bad)
    assert [check.holds for check in found] == [False, False]
    assert not table._made_well(0.79).holds and table._made_well(0.8).holds
    assert "2.10 % after 50 minutes" in found[0].detail


def test_a_table_of_small_digits(digits_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"max_epochs": 15, "batch_size": 20}
    network = {"hidden": (30, 40), "fine_tune_epochs": 5, **few}
    small = table.Size(sets.Size(60, 40, 200), 800, few, network)
    monkeypatch.setattr(table, "QUICK", small)
    made = reproduce(table.EXPERIMENT, digits_folder, quick=True).table
    machine, network = made.rows
    assert "600 digits" in machine and network == "deep belief net 784-30-40, 800 digits"
    for row in (machine, network):
        cell = made.cell(row, "official")
        assert cell is not None and cell.ours < 40
        assert cell.published is None
    known = table._cells("net", table.Outcome(0.015, None, 60.0), {"net": table.PUBLISHED})
    assert known[0].published == 1.25 and table.OFFICIAL.verdict(known[0]) == "reproduced"
    figure = Figure(layout="constrained")
    assert made.draw is not None
    made.draw(figure)
    units, digits, mistakes = figure.axes
    assert len(units.images) == 30 and len(digits.images) == 10 * table.MADE
    assert len(mistakes.images) > 0
