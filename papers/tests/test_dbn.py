"""A small rerun of the machine and the deep belief net, and claims that can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from papers import dbn
from papers.frame.run import reproduce
from papers.shared import mnist_digits

pytestmark = pytest.mark.slow  # a published table, run small


def test_claims_can_fail() -> None:
    softmax = 10.0, 9.0
    good = dbn.Outcome(0.063, 0.076, 100.0), dbn.Outcome(0.02, None, 3000.0)
    assert [check.holds for check in dbn._check_claims(*good, softmax)] == [True, True]
    bad = dbn.Outcome(0.095, 0.076, 100.0), dbn.Outcome(0.021, None, 3000.0)
    found = dbn._check_claims(*bad, softmax)
    assert [check.holds for check in found] == [False, False]
    assert not dbn._check_made_well(0.79).holds and dbn._check_made_well(0.8).holds
    assert "2.10 % after 50 minutes" in found[0].detail


def test_the_softmax_of_the_pixels(digits_folder: Path) -> None:
    digits = mnist_digits.load_digits(digits_folder)
    held, official = digits.each(60, 80), digits.official.first(200)
    errors = dbn.measure_softmax(digits.each(0, 60), held, official)
    assert all(2 < error < 25 for error in errors)


def test_a_table_of_small_digits(digits_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"max_epochs": 15, "batch_size": 20}
    network = {"hidden": (30, 40), "fine_tune_epochs": 5, **few}
    up_down = {"fine_tune": "up-down"}
    small = dbn.Size(mnist_digits.Size(60, 40, 200), 800, few, network, up_down)
    monkeypatch.setattr(dbn, "QUICK", small)
    made = reproduce(dbn.EXPERIMENT, digits_folder, quick=True).table
    machine, network, tuned = made.rows
    assert "600 digits" in machine and network == "deep belief net 784-30-40, 800 digits"
    assert tuned == f"{network}, up-down"
    for row in (machine, network, tuned):
        cell = made.cell(row, "official")
        assert cell is not None and cell.ours < 40
        assert cell.published is None
    known = dbn._make_cells("net", dbn.Outcome(0.015, None, 60.0), {"net": dbn.PUBLISHED})
    assert known[0].published == 1.25 and dbn.OFFICIAL.verdict(known[0]) == "reproduced"
    figure = Figure(layout="constrained")
    assert made.draw is not None
    made.draw(figure)
    units, digits, mistakes = figure.axes
    assert len(units.images) == 30 and len(digits.images) == 10 * dbn.MADE
    assert len(mistakes.images) > 0
