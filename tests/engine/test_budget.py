"""The time budget: when a fit ends, and what is left for its parts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mixfold.engine import budget
from mixfold.engine.budget import LEAST, OVER, Deadline


def test_what_is_left_of_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    deadline = Deadline.after(5.0)
    assert (deadline.seconds_left, deadline.has_passed) == (5.0, False)
    clock[0] = 103.0
    assert (deadline.seconds_left, deadline.has_passed) == (2.0, False)
    clock[0] = 105.0
    assert (deadline.seconds_left, deadline.has_passed) == (LEAST, True)  # a budget is positive
    clock[0] = 1e9
    assert (Deadline.after(None).seconds_left, Deadline().has_passed) == (None, False)
    assert (OVER.seconds_left, OVER.has_passed) == (LEAST, True)
