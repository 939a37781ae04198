"""``python -m bench``: run everything, or one comparison by its name."""

from __future__ import annotations

import importlib
import json
import platform
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.factor_data import data_folder
from bench.machine import describe
from bench.options import Options


class Comparison(StrEnum):
    """Each is a module of this package with TITLE, measure(options) and report(result).

    A module may also have picture(result), a figure that is kept beside the file of figures.
    """

    models = "models"
    small = "small"
    per_iteration = "per-iteration"
    memory = "memory"
    growth = "growth"
    parquet = "parquet"
    convergence = "convergence"
    factor_ppca = "ppca"
    factor_fa = "fa"
    factor_mfa = "mfa"
    factor_impute = "impute"
    factor_learned = "learned-factors"
    merged_starts = "merged-starts"
    bayes = "bayes"
    counts = "counts"
    supervised = "supervised"
    kernels = "kernels"
    topics = "topics"
    clustering = "clustering"
    clustering_likelihood = "clustering-likelihood"
    clustering_auto = "clustering-auto"


def main(
    which: Annotated[
        list[Comparison] | None, typer.Argument(help="What to measure; everything by default.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small problems: does it all run?")
    ] = False,
    one_thread: Annotated[
        bool,
        typer.Option("--one-thread", help="CPU time on one thread only, for a busy machine."),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of real data; without it, ../shared/data or drawn data."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the figures to this JSON file as well, and pictures beside it."),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Keep figures of clusterings in this file as they come, and go on from what it "
            "has; of the same code: it is not asked which code made them."
        ),
    ] = None,
) -> None:
    """Time and memory of mixfold against its peers, as ratios measured in the same run."""
    options = Options(quick, one_thread, data_folder(data), keep)
    results: dict[str, Any] = {"machine": describe(), "python": platform.python_version()}
    print(f"{results['machine']}\n", flush=True)
    for comparison in which or list(Comparison):
        module = importlib.import_module(f"bench.{comparison.name}")
        began = time.perf_counter()
        result = module.measure(options)
        results[comparison.value] = result
        took = time.perf_counter() - began
        print(f"## {module.TITLE}\n\n{module.report(result)}\n\n({took:.0f} s)\n", flush=True)
        if out is not None:
            out.write_text(json.dumps(results, indent=1))
            if hasattr(module, "picture"):
                module.picture(result).savefig(out.with_name(f"{out.stem}-growth.png"), dpi=110)


if __name__ == "__main__":
    typer.run(main)
