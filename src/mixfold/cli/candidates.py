"""The models and values that ``select`` compares, parsed from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from mixfold.catalogue import Entry
from mixfold.cli.registry import MODELS, find_model
from mixfold.cli.values import parse_grid, parse_numbers


def find_models(names: list[str]) -> dict[str, Entry]:
    """The entries by name; a usage error for one without a likelihood."""
    entries = {name: find_model(name) for name in names}
    able = [name for name, entry in MODELS.items() if hasattr(entry.load(), "bic")]
    for name in names:
        if hasattr(entries[name].load(), "top_words"):
            raise typer.BadParameter(
                f"{name} is compared by the perplexity of documents it was not fitted to: fit it "
                "with each number of topics, run mixfold score on them, and keep the lowest.",
                param_hint="--model",
            )
        if name not in able:
            raise typer.BadParameter(
                f"a {name} has no likelihood of the columns to compare; choose among: "
                f"{', '.join(able)}.",
                param_hint="--model",
            )
    return entries


def values_to_try(
    entries: Mapping[str, Entry], words: list[str], factors: str | None, family: Any
) -> dict[str, list[Any]]:
    """Parameters and their values; the short options and ``--set`` may not contradict."""
    grid = parse_grid(words, dict.fromkeys(p for e in entries.values() for p in e.parameters()))
    for option, name in (("--components", "n_components"), ("--seed", "random_state")):
        if name in grid:
            raise typer.BadParameter(f"{name!r} is given with {option}.", param_hint="--set")
    numbers = None if factors is None else parse_numbers(factors, "--factors", 0)
    for field, values in (("factors", numbers), ("family", None if family is None else [family])):
        if values is not None:
            _add(grid, entries, field, values)
    return grid


def _add(
    grid: dict[str, list[Any]], entries: Mapping[str, Entry], field: str, values: list[Any]
) -> None:
    """Values of a short option under the names that the models have for it."""
    names = {getattr(entry, field) for entry in entries.values()} - {""}
    if not names:
        able = ", ".join(name for name, other in MODELS.items() if getattr(other, field))
        raise typer.BadParameter(
            f"none of the models has such a parameter; it is for: {able}.",
            param_hint=f"--{field}",
        )
    for name in names:
        if name in grid:
            raise typer.BadParameter(
                f"{name!r} is also given with --{field}; keep one.", param_hint="--set"
            )
        grid[name] = values


def first_of(entry: Entry, grid: Mapping[str, list[Any]]) -> Any:
    """An estimator with the first of the values; the search sets the others."""
    own = {name: values[0] for name, values in grid.items() if name in entry.parameters()}
    return entry.load()(**own)
