"""Progress goes to standard error, and only as much as the place can show."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from mixfold.cli import progress


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count(step=6.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(ticks)))


@pytest.mark.usefixtures("slow_clock")
@pytest.mark.parametrize(("total", "last"), [(40, "predict: 40 of 40 rows"), (None, "40 rows")])
def test_a_log_gets_plain_lines(
    capsys: pytest.CaptureFixture[str], total: int | None, last: str
) -> None:
    with progress.row_progress("predict", total) as advance:
        for _ in range(4):
            advance(10)
    output = capsys.readouterr()
    assert output.out == ""
    lines = output.err.splitlines()
    # The clock is read once or twice a call, six seconds apart: a line every other call.
    assert 1 < len(lines) < 4
    assert lines[-1].endswith(last)


@pytest.mark.usefixtures("slow_clock")
def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.row_progress("predict", 40, quiet=True) as advance:
        for _ in range(4):
            advance(10)
    assert capsys.readouterr() == ("", "")


def test_fast_work_writes_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.row_progress("predict", 40) as advance:
        advance(40)
    assert capsys.readouterr().err == ""
