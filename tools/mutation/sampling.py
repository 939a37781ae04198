"""Which mutants are taken, in which order.

The kinds take turns, so that each has its share of any number of mutants until it is used up. In a
kind the rooms take turns too, each as often as the square root of its number of lines with such a
place: a small room is seen, a large one is seen more. In a room all lines that hold a place of the
kind are equally likely, then all changes of that line. No line is changed twice. The order follows
from the seed alone, and more mutants of a seed begin with the fewer.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator

from mutation.sites import KINDS, Mutant, is_valid


def sample(pool: Iterable[Mutant], texts: dict[str, str], n: int, seed: int) -> list[Mutant]:
    """The first n valid mutants of a seed."""
    cells: dict[str, dict[str, dict[tuple[str, int], list[Mutant]]]] = {
        kind: defaultdict(lambda: defaultdict(list)) for kind in KINDS
    }
    for mutant in pool:
        name = room_of(mutant.file)
        cells[mutant.kind][name][mutant.file, mutant.line].append(mutant)
    queues = [_turns(cells[kind], seed) for kind in KINDS]
    taken: list[Mutant] = []
    lines: set[tuple[str, int]] = set()
    while queues and len(taken) < n:
        for queue in list(queues):
            fresh = (m for m in queue if (m.file, m.line) not in lines)
            valid = next((m for m in fresh if is_valid(m, texts[m.file])), None)
            if valid is None:
                queues.remove(queue)
            else:
                lines.add((valid.file, valid.line))
                taken.append(valid)
    return taken[:n]


def room_of(file: str) -> str:
    """``src/package/room/...``: the room."""
    parts = file.split("/")
    return parts[2] if len(parts) > 3 else "."


def _turns(rooms: dict[str, dict[tuple[str, int], list[Mutant]]], seed: int) -> Iterator[Mutant]:
    """One mutant of each line, the rooms by turns."""
    lines = {
        room: sorted(by_line, key=lambda place: _random(seed, *place))
        for room, by_line in sorted(rooms.items())
    }
    due: list[tuple[float, float, str, tuple[str, int]]] = []
    for room, places in lines.items():
        rate = math.sqrt(len(places))
        due += [((k + 0.5) / rate, _random(seed, room), room, p) for k, p in enumerate(places)]
    for *_, room, place in sorted(due):
        yield min(rooms[room][place], key=lambda m: _random(seed, m.id))


def _random(seed: int, *parts: str | int) -> float:
    """A number in [0, 1) that depends on nothing but its arguments."""
    digest = hashlib.sha256("\0".join(map(str, (seed, *parts))).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56
