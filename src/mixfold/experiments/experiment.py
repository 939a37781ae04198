"""What a file of this room declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mixfold.experiments.table import Table

# (steps done, all of them, what comes next), called before each step.
Progress = Callable[[int, int, str], None]
# (data folder, quick, seed, progress): the folder holds every file that ``data`` names.
Run = Callable[[Path, bool, int, Progress], Table]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that a table is computed from; it is read from the user's folder, never shipped.

    Attributes
    ----------
    name : str
        Its name in the data folder.
    content : str
        What is in it: arrays, shapes, units.
    origin : str
        Where the numbers come from, so that a reader can obtain or rebuild the file.
    optional : bool
        Whether the table can do without it, and says what it leaves out; it needs one file at
        least.
    """

    name: str
    content: str
    origin: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Experiment:
    """A published table and how to compute it again.

    Attributes
    ----------
    name : str
        Of the command: ``mixfold reproduce NAME``.
    title : str
    source : str
        Number of the text, 000 to 004, as in the documentation.
    place : str
        Where in it, for example ``"table 5.5"``.
    protocol : str
        What is computed, on what, in full sentences; also where it departs from the source.
    data : tuple of DataFile
    run : callable
        ``run(data_folder, quick, seed, progress)`` gives a ``Table``. The quick variant takes
        seconds and may leave out rows, restarts and repeats; its ``settings`` say which.
    """

    name: str
    title: str
    source: str
    place: str
    protocol: str
    data: tuple[DataFile, ...]
    run: Run
