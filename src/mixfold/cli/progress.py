"""Progress of commands on standard error: a bar in a terminal, lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def row_progress(
    label: str, total: int | None, quiet: bool = False
) -> Iterator[Callable[[int], None]]:
    """Give a function to call with the number of rows just done.

    Parameters
    ----------
    label : str
        What is being done, for example ``"predict"``.
    total : int or None
        Number of rows; None when the input does not know.
    quiet : bool
        Show nothing.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda rows: None
    elif console.is_terminal:
        from rich.progress import Progress

        with Progress(console=console, transient=True) as bar:
            task = bar.add_task(label, total=total)
            yield lambda rows: bar.advance(task, rows)
    else:
        yield _line_writer(label, total)


@contextmanager
def step_progress(quiet: bool = False) -> Iterator[Callable[[int, int, str], None]]:
    """Give a function to call before each step with those done, all of them, and what comes next.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda done, total, label: None
    elif console.is_terminal:
        from rich.progress import Progress

        with Progress(console=console, transient=True) as bar:
            task = bar.add_task("", total=None)
            yield lambda done, total, label: bar.update(
                task, completed=done, total=total, description=label
            )
    else:
        yield _step_writer()


def _step_writer() -> Callable[[int, int, str], None]:
    last = time.monotonic()

    def show(done: int, total: int, label: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            typer.echo(f"{done} of {total} steps done; next: {label}", err=True)

    return show


def _line_writer(label: str, total: int | None) -> Callable[[int], None]:
    done, last = 0, time.monotonic()
    of_total = "" if total is None else f" of {total}"

    def advance(rows: int) -> None:
        nonlocal done, last
        done += rows
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            typer.echo(f"{label}: {done}{of_total} rows", err=True)

    return advance
