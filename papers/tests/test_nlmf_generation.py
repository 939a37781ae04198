"""Digits made with several priors: a small rerun, and claims that can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from papers import nlmf_generation
from papers.frame.run import reproduce
from papers.shared.digit_judges import Quality
from papers.shared.mnist_digits import load_digits

pytestmark = pytest.mark.slow  # a published table, run small


def test_no_digit_is_in_two_parts(digits_folder: Path) -> None:
    parts = nlmf_generation._divide_digits(
        load_digits(digits_folder), nlmf_generation.Size(50, 30, 10)
    )
    rows = [row.tobytes() for name in ("train", "judge", "real", "others")
            for row in parts[name].X]  # fmt: skip
    assert len(set(rows)) == len(rows) == 10 * (50 + 30 + 10 + 10)


EARLY, MIDDLE, LATE = nlmf_generation.LAPLACE
GOOD = {
    EARLY: Quality(0.6, 0.8, 0.4),
    MIDDLE: Quality(0.8, 0.7, 0.4),
    LATE: Quality(0.95, 0.5, 0.2),
    nlmf_generation.MIXTURE: Quality(0.9, 0.75, 0.9),
    nlmf_generation.KEPT: Quality(0.98, 0.7, 0.9),
    nlmf_generation.REAL: Quality(0.97, 1.0, 0.95),
}


def test_claims_can_fail() -> None:
    assert all(check.holds for check in nlmf_generation.check_claims(GOOD, 0.03))

    def broken(name: str, found: Quality, error: float = 0.03) -> list[int]:
        checks = nlmf_generation.check_claims(GOOD | {name: found}, error)
        return [place for place, check in enumerate(checks) if not check.holds]

    assert broken(MIDDLE, GOOD[MIDDLE], 0.06) == [0]
    assert broken(MIDDLE, Quality(0.9, 0.76, 0.4)) == [1]
    assert broken(LATE, Quality(0.95, 0.5, 0.95)) == [2]
    assert broken(nlmf_generation.KEPT, Quality(0.9, 0.7, 0.9)) == [3]


def test_a_table_of_small_digits(digits_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nlmf_generation, "QUICK", nlmf_generation.Size(70, 30, 15))
    monkeypatch.setattr(nlmf_generation, "LAYERS", (20, 10))
    made = reproduce(nlmf_generation.EXPERIMENT, digits_folder, quick=True).table
    assert made.rows == (*nlmf_generation.WAYS, nlmf_generation.REAL, nlmf_generation.REBUILT)
    real = made.cell(nlmf_generation.REAL, "recognised")
    assert real is not None and real.ours > 80
    alike = made.cell("prototype", "diversity")
    assert alike is not None and alike.ours < 1e-6
    figure = Figure(layout="constrained")
    assert made.draw is not None
    made.draw(figure)
    assert [ax.get_title() for ax in figure.axes] == list(nlmf_generation.DRAWN)
    assert all(len(ax.images) == 60 for ax in figure.axes)
