"""Reading ahead in the background."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mixfold.engine.sources.readahead import read_ahead


def _readers() -> int:
    return sum(thread.name == "mixfold-read-ahead" for thread in threading.enumerate())


def test_reading_ahead_is_bounded_and_ends_with_the_iteration() -> None:
    made: list[int] = []
    closed = threading.Event()

    def items() -> Any:
        try:
            for i in range(1000):
                made.append(i)
                yield i
        finally:
            closed.set()

    stream = read_ahead(items, depth=2)
    assert not made  # nothing starts before it is asked for
    assert [next(stream) for _ in range(5)] == [0, 1, 2, 3, 4]
    threading.Event().wait(0.2)
    assert max(made) <= 4 + 2 + 1
    stream.close()
    assert closed.is_set() and _readers() == 0


def test_an_error_in_the_background_comes_out_in_its_place() -> None:
    def items() -> Any:
        yield 1
        raise ValueError("row 7")

    stream = read_ahead(items)
    assert next(stream) == 1
    with pytest.raises(ValueError, match="row 7"):
        next(stream)
    assert _readers() == 0
