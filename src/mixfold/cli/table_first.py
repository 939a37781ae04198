"""Commands that may be given a table alone: groups are found in it first."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import typer

from mixfold.cli.data import load_model
from mixfold.cli.tables import check_not_input

_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".br")
_MODEL = ".mixfold"


def default_out(out: Path | None, file: Path, command: str, suffix: str = ".csv") -> Path:
    """The file that is written: that which is named, or one in this folder, called by both."""
    if out is not None:
        return out
    name = Path(file.name)
    while name.suffix.lower() in _PACKED:
        name = name.with_suffix("")
    return Path(f"{name.stem}.{command}{suffix}" if command else f"{name.stem}{suffix}")


def is_model(path: Path) -> bool:
    """Whether a file is one of models, by its beginning; a damaged one by its name."""
    if path.is_dir():
        return False
    if path.suffix.lower() == _MODEL:
        return True
    with path.open("rb") as file:
        head = file.read(9)
    # a length in eight bytes, then a description in braces
    return len(head) == 9 and head[8:] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32


def model_and_rows(
    first: Path, file: Path | None, command: str, out: Path | None, quiet: bool
) -> tuple[Any, Path, Path]:
    """The model, the table, and the file to write.

    With a table alone, a mixture is fitted to it, as many components as BIC wants.
    """
    if file is not None:
        out = default_out(out, file, command)
        return load_model(first, out), file, out
    if is_model(first):
        raise typer.BadParameter(
            f"name the table after the model: mixfold {command} {first} table.csv",
            param_hint="FILE",
        )
    out = default_out(out, first, command)
    check_not_input(out, [first])
    return fit_groups(first, quiet), first, out


def fit_groups(file: Path, quiet: bool) -> Any:
    """A mixture that was fitted to a table, as ``mixfold select`` does it."""
    from mixfold.cli.select import select

    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / f"groups{_MODEL}"
        select(file, out=kept, seed=0, quiet=True)
        model = load_model(kept)
    if not quiet:
        if hasattr(model, "schema_"):
            from mixfold.cli.schemas import print_schema

            print_schema(model.schema_, changeable=False)
        groups = getattr(model, "n_components", None)
        typer.echo(
            f"{groups} groups found in {file.name}; keep them by: mixfold select {file.name} "
            f"--seed 0 --out {file.stem}{_MODEL}"
        )
    return model
