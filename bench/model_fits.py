"""What the worker of the table of all models does: both libraries in turn, size after size."""

from __future__ import annotations

import gc
import warnings
from typing import Any

from bench.entries import entry
from bench.entries.record import Data, Entry
from bench.factor_fits import make
from bench.topic_fits import timed

ENOUGH = 1.0  # CPU seconds after which a fit is not repeated


def compare(threads: int | None, name: str, sizes: list[int], repeats: int) -> dict[str, Any]:
    """CPU and wall seconds of each size and the quality at the last one, for both libraries.

    A library that fails has no figures, and ``error`` says why; the other one goes on.
    """
    asked = entry(name)
    found: dict[str, Any] = {
        side: {"cpu": [], "wall": [], "quality": None, "error": None} for side in asked.estimators
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that are cut short are meant to be
        # the first fits load and compile, and are not counted
        for place, n in enumerate([asked.quick[0], *sizes]):
            data = asked.draw(n)
            for side, result in found.items():
                if result["error"] is None:
                    times = repeats if place else 0
                    _measure(result, asked, side, data, threads, times, place == len(sizes))
    return found


def _measure(
    result: dict[str, Any], asked: Entry, side: str, data: Data, threads: int | None,
    repeats: int, judged: bool,
) -> None:  # fmt: skip
    """Add the least clocks of several fits (0: one that does not count) to the result."""
    settings = asked.settings(side, data)
    given = (data.X,) if data.y is None else (data.X, data.y)
    clocks: list[tuple[float, float]] = []
    try:
        while len(clocks) < max(1, repeats) and sum(cpu for cpu, _ in clocks) < ENOUGH:
            model = make(asked.estimators[side], threads, settings)
            gc.collect()
            clocks.append(timed(lambda model=model: model.fit(*given)))  # type: ignore[misc]
        if judged:
            result["quality"] = asked.judge.of(model, data)
    except Exception as problem:  # whatever it is, the other library is still measured
        result |= {"cpu": [], "wall": [], "error": f"{type(problem).__name__}: {problem}"}
        return
    if repeats:
        for place, clock in enumerate(("cpu", "wall")):
            result[clock].append(min(taken[place] for taken in clocks))
