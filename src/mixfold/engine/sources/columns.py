"""Which columns of a table are features, and which one is the weight or the label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

# Where a remedy of a message begins that chooses columns; the command line has another one.
LEAVE_OUT, SHARED = "Leave it out: ", "Choose the columns that all files have: "
_OPEN = "give fit the rows mixfold.engine.sources.open_source({where}, columns=[...])"


def choose_in_file(begin: str, where: object) -> str:
    """How users of Python read some columns of files: the remedy of a message."""
    return begin + _OPEN.format(where=repr(str(where)))


@dataclass(frozen=True, slots=True)
class Choice:
    """Positions of the columns in a table, by their use."""

    features: tuple[int, ...]
    names: tuple[str, ...]
    weight: int | None = None
    y: int | None = None

    @property
    def used(self) -> tuple[int, ...]:
        """All positions that must be read: the features, then the weight, then the label."""
        return self.features + tuple(i for i in (self.weight, self.y) if i is not None)


def choose(
    names: Sequence[Any],
    columns: Sequence[Any] | None = None,
    weight: Any = None,
    y: Any = None,
    where: str = "the table",
) -> Choice:
    """Find the asked columns by name.

    Parameters
    ----------
    names : sequence
        Column names of the table, in order.
    columns : sequence of str, optional
        The features; by default all columns but the weight and the label.
    weight, y : str or array, optional
        A string names a column; anything else is none of our business.
    where : str
        How messages call the table.
    """
    known = [str(name) for name in names]
    if isinstance(columns, str):
        columns = (columns,)
    wanted = known if columns is None else [str(name) for name in columns]
    repeated = sorted(name for name, count in Counter(wanted).items() if count > 1)
    if repeated:
        raise ValueError(
            f"{where}: column {repeated[0]!r} occurs twice; every column needs a name of its own. "
            "Rename or drop one."
        )
    sides = {"weight": _side(weight), "y": _side(y)}
    for role, name in sides.items():
        if name is not None and columns is not None and name in wanted:
            raise ValueError(
                f"{role}={name!r} is also listed in columns; a column is either a feature or the "
                f"{role}. Leave it out of columns."
            )
    places: dict[str, list[int]] = {}
    for i, name in enumerate(known):
        places.setdefault(name, []).append(i)
    at = {name: _position(name, places, where) for name in sides.values() if name is not None}
    features = tuple(
        _position(name, places, where) for name in wanted if name not in sides.values()
    )
    if not features:
        raise ValueError(
            f"{where} has 0 feature(s) (shape=(n, 0)) while a minimum of 1 is required. "
            f"Choose at least one of its columns: {_some(known)}."
        )
    return Choice(
        features,
        tuple(known[i] for i in features),
        None if sides["weight"] is None else at[sides["weight"]],
        None if sides["y"] is None else at[sides["y"]],
    )


def _side(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _position(name: str, places: dict[str, list[int]], where: str) -> int:
    found = places.get(name, [])
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{where}: the name {name!r} belongs to several columns. Rename them.")
    known = list(places)
    close = get_close_matches(name, known, n=3, cutoff=0.6)
    hint = f"Did you mean {_some(close)}?" if close else f"It has {_some(known)}."
    raise ValueError(f"{where} has no column {name!r}. {hint}")


def _some(names: list[str], limit: int = 8) -> str:
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
