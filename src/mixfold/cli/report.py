"""``report``: an HTML page about a model and a table."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from mixfold.cli.data import load_model, open_for
from mixfold.cli.options import ColumnsOption, ModelOrTable, QuietOption, split_columns
from mixfold.cli.table_first import is_model
from mixfold.cli.tables import check_not_input
from mixfold.cli.texts import EncodingOption


def report(
    model_file: ModelOrTable,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            exists=True,
            help="The rows, usually those of the fit: a table or texts, as for "
            "[bold]predict[/bold]. Without them the page is about the model alone.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page to write: an .html file.")
    ] = Path("report.html"),
    columns: ColumnsOption = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="The column of the classes, labels or numbers that a model is judged by, or that "
            "groups are compared with.",
        ),
    ] = None,
    weights: Annotated[
        str | None, typer.Option("--weights", help="The column of the weights of the rows.")
    ] = None,
    image_shape: Annotated[
        str | None,
        typer.Option("--image-shape", help="Rows are pictures: HEIGHTxWIDTH, as in 28x28."),
    ] = None,
    rows: Annotated[
        int,
        typer.Option("--rows", "-n", min=1, max=20_000, help="Rows to draw, of more a sample."),
    ] = 5000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of that sample.")] = 0,
    encoding: EncodingOption = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Write a page about a model that can be kept and sent: one HTML file, no network needed.

    What was found, a map of the rows, the oddest of them, what is missing, how the fit went.

    Of a table alone: groups are found in it first, as by [bold]mixfold select[/bold].

    Example: [bold]mixfold report groups.mixfold table.parquet --out report.html[/bold], or
    [bold]mixfold report people.csv[/bold]
    """
    _check_out(out, model_file, file)
    if file is None and not is_model(model_file):
        from mixfold.cli.select import select

        if target or image_shape or encoding:
            raise typer.BadParameter(
                "is for a model: fit one first, and name it before the table",
                param_hint="--target, --image-shape or --encoding",
            )
        select(model_file, report=out, columns=columns, weights=weights, seed=seed, quiet=quiet)
        if open_it:
            _open(out)
        return
    if file is None and (target or weights or columns):
        raise typer.BadParameter("columns are those of a table: name it after the model.")
    shape = None if image_shape is None else _shape(image_shape)
    model = load_model(model_file)
    X = None if file is None else _rows(model, file, columns, target, weights, encoding)
    from mixfold.report import write_report

    path = write_report(
        model,
        X,
        target,
        path=out,
        image_shape=shape,
        sample_weight=weights,
        max_rows=rows,
        random_state=seed,
        origin=_origin(model_file, file),
    )
    if not quiet:
        typer.echo(f"wrote {path} ({path.stat().st_size / 1000:,.0f} kB)")
    if open_it:
        _open(path)


def _open(path: Path) -> None:
    import webbrowser

    webbrowser.open(path.resolve().as_uri())


def _check_out(out: Path, model_file: Path, file: Path | None) -> None:
    if out.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(
            f"a page ends in .html; got {out.name!r}. Write --out {out.with_suffix('.html').name}",
            param_hint="--out",
        )
    check_not_input(out, [model_file, file])


def _rows(
    model: Any,
    file: Path,
    columns: str | None,
    target: str | None,
    weights: str | None,
    encoding: str | None,
) -> Any:
    """The table by its path if columns are to be named, else as the model wants its rows."""
    names = split_columns(columns)
    if names is None and hasattr(model, "schema_"):
        return file
    if target is None and weights is None:
        return open_for(model, file, names, encoding)
    if names is not None:
        raise typer.BadParameter(
            "the model finds its columns by name where --target or --weights is given; leave "
            "--columns out.",
            param_hint="--columns",
        )
    return file


def _shape(text: str) -> tuple[int, int]:
    parts = text.lower().replace("\u00d7", "x").split("x")
    if len(parts) != 2 or not all(part.strip().isdigit() for part in parts):
        raise typer.BadParameter(
            f"write height and width, as in 28x28; got {text!r}.", param_hint="--image-shape"
        )
    return int(parts[0]), int(parts[1])


def _origin(model_file: Path, file: Path | None) -> dict[str, str]:
    """Where it comes from, for the head of the page: names of files, not of folders."""
    written = datetime.fromtimestamp(model_file.stat().st_mtime).strftime("%Y-%m-%d %H:%M")
    found = {"model file": f"{model_file.name}, written {written}"}
    return found if file is None else {**found, "data": file.name}
