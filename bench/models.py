"""All models in one table: ratios against peers, quality by one judge, growth with the rows."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.entries import ENTRIES
from bench.entries.record import Entry
from bench.jobs import JobError, run
from bench.options import Options
from bench.tables import ratio, seconds, table

TITLE = "All models: CPU seconds on one thread, ratios to peers, growth"
REPEATS = 3  # the least of so many fits counts, or of fewer if they take long


def measure(options: Options) -> dict[str, Any]:
    # quick times mean nothing, so that two may be taken at once
    with ThreadPoolExecutor(2 if options.quick else 1) as pool:
        return {"rows": list(pool.map(lambda entry: one(entry, options), ENTRIES))}


def one(entry: Entry, options: Options) -> dict[str, Any]:
    """The line of one entry; what failed is said aloud and has no figures."""
    options.say(f"models: {entry.name} ({ENTRIES.index(entry) + 1} of {len(ENTRIES)})")
    sizes = list(entry.quick if options.quick else entry.sizes)
    try:
        found = run("bench.model_fits:compare", threads=1, name=entry.name, sizes=sizes,
                    repeats=1 if options.quick else REPEATS)  # fmt: skip
    except JobError as problem:
        found = {}
        options.say(f"models: {entry.name}: {problem}")
    for side, result in found.items():
        if result["error"] is not None:
            options.say(f"models: {entry.name}, {side}: {result['error']}")
    return {
        "model": entry.name, "peer": entry.peer_name, "problem": entry.problem,
        "compared": entry.compared, "judge": entry.judge.label, "sizes": sizes,
        "ours": found.get("ours"), "theirs": found.get("theirs"),
    }  # fmt: skip


def picture(result: dict[str, Any]) -> Any:
    """A figure of the growth of each model."""
    from bench.growth_picture import curves

    return curves(result["rows"])


# ------------------------------------------------ the table


def report(result: dict[str, Any]) -> str:
    head = ["model", "peer", "problem", "what is equal", "ours, CPU s", "peer, CPU s", "ratio",
            "quality", "ours", "peer", "growth, ours", "peer"]  # fmt: skip
    return table(head, [_line(row) for row in result["rows"]])


def _line(row: dict[str, Any]) -> list[object]:
    own, peer = row["ours"], row["theirs"]
    ours, theirs = last(own), last(peer)
    return [
        row["model"], row["peer"], f"N = {row['sizes'][-1]:,}, {row['problem']}", row["compared"],
        seconds(ours), seconds(theirs), ratio(theirs, ours),
        row["judge"], _quality(own), _quality(peer), _growth(row, own), _growth(row, peer),
    ]  # fmt: skip


def last(side: dict[str, Any] | None) -> float | None:
    """CPU seconds of the most rows."""
    return None if side is None or not side["cpu"] else float(side["cpu"][-1])


def exponent(sizes: list[int], clocks: list[float]) -> float | None:
    """p of time ~ N^p over the last doubling: 1 is linear, 2 is quadratic."""
    if len(clocks) < 2 or min(clocks[-2:]) <= 0:
        return None
    return math.log(clocks[-1] / clocks[-2]) / math.log(sizes[-1] / sizes[-2])


def _growth(row: dict[str, Any], side: dict[str, Any] | None) -> str:
    found = None if side is None else exponent(row["sizes"], side["cpu"])
    return "-" if found is None else f"{found:.1f}"


def _quality(side: dict[str, Any] | None) -> str:
    return "-" if side is None or side["quality"] is None else f"{side['quality']:.5g}"
