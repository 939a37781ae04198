"""Folders that are more than the files in them: tables with a log, and names that are a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

_HUDI = "spark.read.format('hudi').load(path).toPandas() (or hudi.HudiTable of the package hudi)"
_READERS = {
    "Delta": "deltalake.DeltaTable(path).to_pyarrow_table()",
    "Iceberg": "pyiceberg.catalog.load_catalog(...).load_table(name).scan().to_arrow()",
    "Hudi": _HUDI,
}


def refuse_governed(folder: Path, files: Iterable[Path]) -> None:
    """Refuse a folder whose files a log governs: some of them are not part of the table.

    Delta, Iceberg and Hudi keep the files of earlier versions, and list those of the present one in
    a log. All files together are rows that were deleted or replaced beside those that count. Looked
    at are the folder, what it is part of, and the folders between it and its files.
    """
    absolute = folder.absolute()
    between = {
        absolute / part for file in files for part in file.relative_to(folder).parents
    }  # its own included
    for place in sorted(between | set(absolute.parents)):
        kind = _governed_by(place)
        if kind is not None:
            raise ValueError(
                f"{str(place)!r} is {'an' if kind == 'Iceberg' else 'a'} {kind} table: a log says "
                "which of its files count, and all of them together hold rows that were deleted "
                "or replaced. Read the table first "
                f"and give what you get: {_READERS[kind]}, with path={str(place)!r}; for the "
                "command line write that to a Parquet file."
            )


def _governed_by(folder: Path) -> str | None:
    if (folder / "_delta_log").is_dir():
        return "Delta"
    if (folder / ".hoodie").is_dir():
        return "Hudi"
    metadata = folder / "metadata"
    if metadata.is_dir() and any(
        file.name == "version-hint.text" or file.name.endswith(".metadata.json")
        for file in metadata.iterdir()
    ):
        return "Iceberg"
    return None


def partition_columns(folder: Path, files: Iterable[Path]) -> list[str]:
    """Names of the columns whose values are in names of folders, as in ``year=2020/part.parquet``.

    Only those below ``folder`` count: what it is called itself is none of its content.
    """
    names: dict[str, None] = {}
    for file in files:
        for part in file.relative_to(folder).parts[:-1]:
            name, equals, _ = part.partition("=")
            if equals and name:
                names[name] = None
    return list(names)


def describe_lost_columns(folder: Path, names: Sequence[str]) -> str:
    """What to say where partition columns are not in the files, and how to keep them."""
    return (
        f"the folders in {str(folder)!r} are named by the value of "
        f"{', '.join(repr(name) for name in names)}, which the files do not hold: not read. To "
        f"keep it, give the table pyarrow.dataset.dataset({str(folder)!r}, "
        "partitioning='hive').to_table(), or write that to a Parquet file for the command line"
    )
