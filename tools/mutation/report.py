"""What a run of mutants says of the two suites, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mutation.running import ERROR, QUICK, SLOW, SURVIVED, UNTESTED
from mutation.sampling import room_of
from mutation.sites import KINDS

Result = dict[str, Any]


def wilson(successes: int, trials: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """The interval of a share that Wilson's score test does not reject.

    Examples
    --------
    >>> [round(bound, 4) for bound in wilson(9, 10)]
    [0.5958, 0.9821]
    """
    if not trials:
        return 0.0, 1.0
    share, square = successes / trials, z * z
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    spread = share * (1 - share) / trials + square / (4 * trials * trials)
    half = z * math.sqrt(spread) / (1 + square / trials)
    return max(0.0, middle - half), min(1.0, middle + half)


def markdown(results: Sequence[Result]) -> str:
    told = [r for r in results if r["outcome"] != ERROR]
    parts = [
        "# Mutants",
        f"{len(told)} mutants; {_summary(told)}",
        _table("kind", KINDS, told, lambda r: str(r["kind"])),
        _table("room", _rooms(told), told, lambda r: room_of(r["file"])),
        _listed("Killed only by slow tests", [r for r in told if r["outcome"] == SLOW]),
        _listed("Survivors", [r for r in told if r["outcome"] in (SURVIVED, UNTESTED)]),
        _times(told),
    ]
    errors = [r for r in results if r["outcome"] == ERROR]
    if errors:
        parts.append(_listed("Could not be tried", errors))
    return "\n\n".join(part for part in parts if part) + "\n"


def _summary(told: Sequence[Result]) -> str:
    quick, slow = _count(told, QUICK), _count(told, SLOW)
    return (
        f"of those that the whole suite kills, the quick one kills {_share(quick, quick + slow)}; "
        f"of all mutants the whole suite kills {_share(quick + slow, len(told))}."
    )


def _share(part: int, whole: int) -> str:
    low, high = wilson(part, whole)
    share = f"{100 * part / whole:.1f} %" if whole else "-"
    return f"{part} of {whole} = {share} (95 % interval {100 * low:.1f} to {100 * high:.1f} %)"


def _table(
    title: str, names: Sequence[str], told: Sequence[Result], key: Callable[[Result], str]
) -> str:
    head = (title, "mutants", "killed by quick", "killed only by slow", "survived",
            "of these capped", "timeouts", "quick / all", "95 % interval")  # fmt: skip
    rows = [_row(name, [r for r in told if key(r) == name]) for name in names]
    rows = [row for row in rows if row[1] != "0"] + [_row("**all**", told)]
    lines = [head, ("---", *("---:",) * (len(head) - 1)), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _row(name: str, told: Sequence[Result]) -> tuple[str, ...]:
    quick, slow = _count(told, QUICK), _count(told, SLOW)
    alive = [r for r in told if r["outcome"] in (SURVIVED, UNTESTED)]
    low, high = wilson(quick, quick + slow)
    share = f"{100 * quick / (quick + slow):.0f} %" if quick + slow else "-"
    numbers = (len(told), quick, slow, len(alive), sum(bool(r.get("capped")) for r in alive),
               sum(r.get("by") == "timeout" for r in told))  # fmt: skip
    return (name, *map(str, numbers), share, f"{100 * low:.0f} to {100 * high:.0f} %")


def _count(told: Sequence[Result], outcome: str) -> int:
    return sum(r["outcome"] == outcome for r in told)


def _rooms(told: Sequence[Result]) -> list[str]:
    return sorted({room_of(r["file"]) for r in told})


def _listed(title: str, told: Sequence[Result]) -> str:
    if not told:
        return ""
    return f"## {title}\n\n" + "\n\n".join(entry(r) for r in sorted(told, key=_place))


def _place(told: Result) -> tuple[str, int]:
    return told["file"], told["line"]


def entry(told: Result) -> str:
    """One mutant with its change."""
    tests = f"{told.get('quick_tests', 0)} quick and {told.get('slow_tests', 0)} slow tests"
    more = f", {told['capped']} left out for time" if told.get("capped") else ""
    by = f", {told['by']}: `{told['test']}`" if told.get("test") else ""
    what = f"- `{told['id']}` {told['kind']}, {told['outcome']} ({tests}{more}{by})"
    diff = (
        f"--- {told['file']}:{told['line']}\n- {told['before'].strip()}\n+ {told['after'].strip()}"
    )
    return f"{what}\n\n```diff\n{diff}\n```"


def _times(told: Sequence[Result]) -> str:
    def mean(outcomes: tuple[str, ...]) -> str:
        seconds = [r["seconds"] for r in told if r["outcome"] in outcomes]
        return f"{sum(seconds) / len(seconds):.1f} s" if seconds else "-"

    return (
        f"Mean time of a mutant killed by quick tests {mean((QUICK,))}, only by slow ones "
        f"{mean((SLOW,))}, of a survivor {mean((SURVIVED,))}."
    )
