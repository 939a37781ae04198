"""Writing a table in parts: the file appears under its name only when it is complete."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import typer

FORMATS = (".parquet", ".csv")


def check_output(path: Path, suffixes: tuple[str, ...] = FORMATS) -> Path:
    """``path`` if a file can be written there: asked before the work, not after it.

    Raises
    ------
    typer.BadParameter
        For another suffix, a folder of that name, or a missing or read-only folder.
    """
    folder = path.parent
    if suffixes and path.suffix.lower() not in suffixes:
        problem = f"the name must end in {' or '.join(suffixes)}; got {str(path)!r}."
    elif path.is_dir():
        problem = f"{str(path)!r} is a folder; name a file."
    elif not folder.is_dir():
        problem = f"the folder {str(folder)!r} does not exist; create it first."
    elif not os.access(folder, os.W_OK):
        problem = f"the folder {str(folder)!r} is not writable; choose another."
    else:
        return path
    raise typer.BadParameter(problem, param_hint="--out")


def check_not_input(
    out: Path, inputs: Iterable[Path | None], option: str = "--out", within: bool = False
) -> None:
    """A usage error if writing ``out`` would change what is read: links are followed.

    Raises
    ------
    typer.BadParameter
        If ``out`` is one of the files, under whatever name, or lies within one of the folders
        (``within`` says that a new file may, since it is of another kind than those).
    """
    for path in inputs:
        if path is None:
            continue
        same = out.exists() and path.exists() and os.path.samefile(out, path)
        inside = out.resolve().is_relative_to(path.resolve())
        if same or (inside and (out.exists() or not within)):
            raise typer.BadParameter(
                f"{out} would overwrite, or lie within, what is read from {path}; choose another "
                "file.",
                param_hint=option,
            )


class TableWriter:
    """A Parquet or CSV file that is written in parts and moved into place at the end.

    Use it in a ``with`` statement. If its body fails, nothing is left behind and a file
    that had the name before is untouched.

    Parameters
    ----------
    path : Path
        Its suffix, ``.parquet`` or ``.csv``, chooses the format.
    """

    def __init__(self, path: Path) -> None:
        self.path = check_output(path)
        self.rows = 0
        self._writer: Any = None
        self._partial = path

    def __enter__(self) -> Self:
        handle, name = tempfile.mkstemp(
            dir=self.path.parent, prefix=f".{self.path.name}.", suffix=".partial"
        )
        os.close(handle)
        self._partial = Path(name)
        return self

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows, given as arrays of one length by column name."""
        import pyarrow as pa

        table = pa.table({name: _column(values) for name, values in columns.items()})
        if self._writer is None:
            self._writer = self._open(table.schema)
        self._writer.write_table(table)
        self.rows += table.num_rows

    def _open(self, schema: Any) -> Any:
        from pyarrow import csv, parquet

        kinds = {".parquet": parquet.ParquetWriter, ".csv": csv.CSVWriter}
        return kinds[self.path.suffix.lower()](str(self._partial), schema)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._commit()
            elif self._writer is not None:
                # The first error is the one to report, not that of closing a broken file.
                with contextlib.suppress(Exception):
                    self._writer.close()
        finally:
            self._partial.unlink(missing_ok=True)

    def _commit(self) -> None:
        if self._writer is None:
            raise ValueError(f"No rows to write to {str(self.path)!r}; the input has none.")
        self._writer.close()
        os.chmod(self._partial, 0o666 & ~_umask())
        os.replace(self._partial, self.path)


def _column(values: Any) -> Any:
    import pyarrow as pa

    return values if isinstance(values, pa.ChunkedArray) else pa.array(values)


def _umask() -> int:
    """The process's mask, which ``mkstemp`` ignores and users expect to be honoured."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
