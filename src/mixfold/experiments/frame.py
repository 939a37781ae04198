"""Run a table and say with what it was made."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from mixfold.experiments.data import check_data
from mixfold.experiments.experiment import Experiment, Progress
from mixfold.experiments.table import Table

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
        return f"mixfold reproduce {self.experiment.name}{data}{quick} --seed {self.seed}"

    @property
    def origin(self) -> str:
        """What is reproduced, for people."""
        return f"source {self.experiment.source}, {self.experiment.place}"

    @property
    def made_with(self) -> str:
        """Packages and their versions, on a line."""
        return ", ".join(f"{name} {number}" for name, number in self.versions)


def silent(done: int, total: int, label: str) -> None:
    """A progress that shows nothing."""


def reproduce(
    experiment: Experiment,
    folder: Path | None,
    *,
    quick: bool = False,
    seed: int = 0,
    progress: Progress = silent,
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
    return Report(experiment, table, seed, quick, seconds, date, _versions())


def _versions() -> tuple[tuple[str, str], ...]:
    import mixfold

    packages = [(name, version(name)) for name in _PACKAGES]
    ours = ("mixfold", mixfold.__version__)
    return (ours, ("Python", platform.python_version()), *packages)
