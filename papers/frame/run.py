"""Run one table or all of them, and say with what each was made.

The command line (``papers/__main__.py``) calls ``reproduce`` and ``reproduce_all``, and
``frame/report.py`` writes the reports that they give.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from papers.frame.data import check_data
from papers.frame.experiment import Experiment, Progress
from papers.frame.registry import Entry
from papers.frame.table import Table

# ------------------------------------------------ one table

_PACKAGES = ("numpy", "scipy", "scikit-learn")


@dataclass(frozen=True, slots=True)
class Report:
    """A table with all that is needed to get it again."""

    experiment: Experiment
    table: Table
    seed: int
    quick: bool
    seconds: float
    date: str
    versions: tuple[tuple[str, str], ...]

    @property
    def stem(self) -> str:
        """Name of its files without suffix: a quick run does not replace a full one."""
        return f"{self.experiment.name}-quick" if self.quick else self.experiment.name

    @property
    def command(self) -> str:
        """What to type to get it again."""
        quick = " --quick" if self.quick else ""
        data = " --data DIR" if self.experiment.data else ""
        return f"python -m papers {self.experiment.name}{data}{quick} --seed {self.seed}"

    @property
    def origin(self) -> str:
        """What is reproduced, for people."""
        return f"{self.experiment.text.cited}, {self.experiment.place}"

    @property
    def made_with(self) -> str:
        """Packages and their versions, on a line."""
        return ", ".join(f"{name} {number}" for name, number in self.versions)


def show_nothing(done: int, total: int, label: str) -> None:
    """A progress that shows nothing."""


def reproduce(
    experiment: Experiment,
    folder: Path | None,
    *,
    quick: bool = False,
    seed: int = 0,
    progress: Progress = show_nothing,
) -> Report:
    """Compute a published table again.

    Parameters
    ----------
    experiment : Experiment
    folder : Path or None
        Where its data files are; None takes what scikit-learn has or can download.
    quick : bool, default=False
        The variant that takes seconds.
    seed : int, default=0
        Of all random choices.
    progress : callable, optional
        Called with the steps done, their number, and what comes next.

    Raises
    ------
    FileNotFoundError
        If a data file is missing.
    """
    if folder is None and experiment.data:
        progress(0, 1, "data that scikit-learn can give")
    found = check_data(experiment.name, experiment.data, folder)
    start = time.perf_counter()
    table = experiment.run(found, quick, seed, progress)
    seconds = time.perf_counter() - start
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    return Report(experiment, table, seed, quick, seconds, date, _list_versions())


def _list_versions() -> tuple[tuple[str, str], ...]:
    import mixfold

    packages = [(name, version(name)) for name in _PACKAGES]
    ours = ("mixfold", mixfold.__version__)
    return (ours, ("Python", platform.python_version()), *packages)


# ------------------------------------------------ all tables

# (name of the table, its progress), asked before each table
Watch = Callable[[str], Progress]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one table: a report, or why there is none.

    ``failed`` tells a table that broke from one whose data are not there.
    """

    name: str
    summary: str
    report: Report | None = None
    reason: str = ""
    failed: bool = False


def reproduce_all(
    entries: Mapping[str, Entry], folder: Path | None, *, quick: bool, seed: int, watch: Watch
) -> Iterator[Outcome]:
    """Run every table; one without data is passed over, one that breaks does not stop the rest."""
    for name, entry in entries.items():
        try:
            report = reproduce(entry.load(), folder, quick=quick, seed=seed, progress=watch(name))
        except FileNotFoundError as error:
            yield Outcome(name, entry.summary, reason=str(error))
        except Exception as error:
            yield Outcome(
                name, entry.summary, reason=f"{type(error).__name__}: {error}", failed=True
            )
        else:
            yield Outcome(name, entry.summary, report)
