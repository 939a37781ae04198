"""``python -m bench``: run everything, or one comparison by its name."""

from __future__ import annotations

import importlib
import json
import platform
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.machine import describe


class Comparison(StrEnum):
    """Each is a module of this package with TITLE, measure(quick, say) and report(result)."""

    per_iteration = "per-iteration"
    memory = "memory"
    growth = "growth"
    parquet = "parquet"
    convergence = "convergence"


def main(
    which: Annotated[
        list[Comparison] | None, typer.Argument(help="What to measure; everything by default.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small problems: does it all run?")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the figures to this JSON file as well.")
    ] = None,
) -> None:
    """Time and memory of mixfold against its peers, as ratios measured in the same run."""
    results: dict[str, Any] = {"machine": describe(), "python": platform.python_version()}
    print(f"{results['machine']}\n", flush=True)
    for comparison in which or list(Comparison):
        module = importlib.import_module(f"bench.{comparison.name}")
        began = time.perf_counter()
        result = module.measure(quick, _say)
        results[comparison.value] = result
        took = time.perf_counter() - began
        print(f"## {module.TITLE}\n\n{module.report(result)}\n\n({took:.0f} s)\n", flush=True)
        if out is not None:
            out.write_text(json.dumps(results, indent=1))


def _say(text: str) -> None:
    """Progress goes beside the tables, so that they can be redirected."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    typer.run(main)
