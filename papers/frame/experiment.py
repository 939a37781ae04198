"""What the file of a table declares and ``frame/run.py`` runs; its seeds, and its use of cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mixfold.engine.executors.threads import available_cores
from papers.frame.bibliography import Source, find_source
from papers.frame.table import Table

T = TypeVar("T")
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
        Of the command: ``python -m papers NAME``.
    title : str
    source : str
        Key of the bibliography, for example ``"Yu 2006"``.
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

    def __post_init__(self) -> None:
        find_source(self.source)

    @property
    def text(self) -> Source:
        """The record of the source: authors, year, title."""
        return find_source(self.source)


def derive_seed(*key: int) -> int:
    """Derive a seed for each fit of a table: leaving some out does not change the others."""
    return int(np.random.SeedSequence(key).generate_state(1)[0])


def map_on_cores(function: Callable[..., T], tasks: Sequence[tuple[Any, ...]]) -> Iterator[T]:
    """Call ``function(*task)`` for each task on all cores; results keep the order of the tasks."""
    from joblib import Parallel, delayed

    jobs = min(available_cores(), len(tasks))
    results: Iterator[T] = Parallel(jobs, return_as="generator", batch_size=1)(
        delayed(function)(*task) for task in tasks
    )
    return results
