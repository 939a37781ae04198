"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        exists=True,
        help="The table: a .parquet, .csv or .npy file, or a folder of Parquet or CSV files. "
        "An empty entry or NaN is a missing one. It is read in pieces, never whole. Or documents: "
        "a folder of text files, a .txt file with one on each line, or sparse counts in an .npz "
        "file (scipy's; an array vocab names the words).",
    ),
]
ModelArgument = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        exists=True,
        dir_okay=False,
        help="A model file written by [bold]mixfold fit[/bold].",
    ),
]
TableOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="The file to write: .parquet or .csv. Default: FILE.COMMAND.csv in this folder.",
    ),
]
# a model is fitted where none is named
ModelOrTable = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL_OR_TABLE",
        exists=True,
        help="A model file. Without one, only a table: groups are found in it as by "
        "[bold]mixfold select[/bold].",
    ),
]
OptionalData = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        exists=True,
        help="The table: CSV, Excel, Parquet, ..., or a folder of Parquet or CSV files; texts for "
        "models of texts.",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Columns to use, as height,weight.",
    ),
]
KeepOption = Annotated[
    str | None,
    typer.Option(
        "--keep",
        help="Columns of the table to copy to the output, by name, separated by commas: an id, "
        "a date. They need not be numbers.",
    ),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="COLUMN",
        help="A column that says how often each row counts; it is not fitted.",
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter, as covariance_type=diag; an unknown name lists them.",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", min=0, metavar="N", help="Repeats every random choice."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]


def split_columns(text: str | None, option: str = "--columns") -> list[str] | None:
    """Column names from ``"a, b"``; a usage error for an empty or repeated one."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise typer.BadParameter(
            f"write names separated by single commas, for example height,weight; got {text!r}.",
            param_hint=option,
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise typer.BadParameter(
            f"named more than once: {', '.join(repeated)}; keep one of each.",
            param_hint=option,
        )
    return names
