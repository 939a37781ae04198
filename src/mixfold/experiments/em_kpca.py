"""Source 004, figure 5.3: the time of kernel PCA by EM and by other solvers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np

from mixfold.experiments import em_kpca_runs as runs
from mixfold.experiments.em_kpca_picture import draw
from mixfold.experiments.em_kpca_runs import Outcome
from mixfold.experiments.experiment import Experiment, Progress
from mixfold.experiments.table import Cell, Check, Column, Table

MEANINGS = {
    runs.SOURCE: f"EM as in the source: noise {runs.NOISE}, {runs.STEPS} steps, axes taken out of "
    "the span at the end",
    runs.CONVERGED: "EM with a noise that no axis vanishes under, until its likelihood gains less "
    "than the default tolerance, 300 steps at most",
    "krylov": "block Lanczos, the default of mixfold",
    "chebyshev": "a subspace filtered by Chebyshev polynomials: less memory",
    "arpack": "scikit-learn, Lanczos to full precision",
    "randomized": "scikit-learn, as it comes",
    "dense": f"scikit-learn, the whole decomposition; up to {runs.DENSE_ROWS} rows",
}
COLUMNS = tuple(Column(name, f"{text}; not judged", form=".2g") for name, text in MEANINGS.items())
TIME, ERROR = "CPU s", "error"
LARGE_ERROR, SMALL_ERROR = 0.1, 1e-6
# rows from which on the matrix is larger than a cache: only there are times compared
LARGE = 3000
NOTES = (
    "The source shows curves of seconds, not numbers, against the eigs of MATLAB, and says that EM "
    "converges within 20 steps on average. Steps of EM are those of a power iteration, whatever "
    "the noise: the error falls by the ratio of the eigenvalues d + 1 and d with each, which is "
    "near one here.",
    "With the noise of the source all axes whose variance is smaller are driven to zero.",
    "Times are CPU seconds of one thread for a kernel matrix that is given, centring included. A "
    "matrix of two thousand rows or fewer stays in the cache of most machines, where arpack, which "
    "multiplies one vector at a time, is as fast as the others or faster; so times are compared "
    f"from {LARGE} rows on. For few axes it is faster there, too, up to one and a half times; the "
    "order of near times depends on the machine.",
)


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of rows (at d = ``most``), numbers of axes (at ``fixed`` rows), and repeats."""

    rows: tuple[int, ...]
    axes: tuple[int, ...]
    fixed: int
    repeats: int

    @property
    def most(self) -> int:
        return self.axes[-1]

    def places(self, limit: int) -> tuple[tuple[int, int], ...]:
        """(N, d) of a table of ``limit`` rows; the largest N is all of them."""
        counts = sorted({min(n, limit) for n in self.rows})
        by_axes = [(min(self.fixed, limit), d) for d in self.axes]
        return tuple(dict.fromkeys([(n, self.most) for n in counts] + by_axes))


FULL = Size((500, 1000, 2000, 4000, 8000), (10, 20, 30, 40, 50), 3000, 3)
QUICK = Size((500, 1000, 2000), (10, 30, 50), 1000, 1)
# rows that the files have, as far as they are wanted
LIMITS = {runs.WORDS: 3972, runs.DIGITS: 8000}

# (data, N, d) -> solver -> an outcome for each repeat
Results = Mapping[tuple[str, int, int], Mapping[str, Sequence[Outcome]]]


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Every solver at every size, on other rows in each repeat."""
    size = QUICK if quick else FULL
    files = [file for file in LIMITS if (data_folder / file.name).is_file()]
    total = size.repeats * sum(len(size.places(LIMITS[file])) for file in files)
    results: dict[tuple[str, int, int], dict[str, list[Outcome]]] = {}
    done = 0
    runs.warm_up()
    for file, repeat in product(files, range(size.repeats)):
        places = size.places(LIMITS[file])
        rng = np.random.default_rng([seed, 53, repeat])
        table = runs.LOADERS[file](data_folder, max(n for n, _ in places), rng)
        for n, d in places:
            progress(done, total, f"{table.name}, N = {n}, d = {d}, repeat {repeat + 1}")
            into = results.setdefault((table.name, n, d), defaultdict(list))
            for name, outcome in runs.measured(table.gram(n), d, seed + repeat).items():
                into[name].append(outcome)
            done += 1
    notes = NOTES + tuple(
        f"{file.name} is not in the data folder: its rows are left out."
        for file in LIMITS
        if file not in files
    )
    picture = partial(draw, results=results, size=size)
    return Table(COLUMNS, _cells(results), _checks(results, size), _settings(size), notes, picture)


def _cells(results: Results) -> tuple[Cell, ...]:
    return tuple(
        Cell(f"{what}: {data}, N = {n}, d = {d}", name, tuple(map(take, outcomes)))
        for what, take in ((TIME, _seconds), (ERROR, _error))
        for (data, n, d), by_name in results.items()
        for name, outcomes in by_name.items()
    )


def _seconds(outcome: Outcome) -> float:
    return outcome.seconds


def _error(outcome: Outcome) -> float:
    return outcome.error


# ------------------------------------------------ claims


def _checks(results: Results, size: Size) -> tuple[Check, ...]:
    names = dict.fromkeys(data for data, _, _ in results)
    growth = [_growth(data, results, size) for data in names]
    return (
        _far(results, size),
        _near(results),
        *growth,
        *_order(results, size.most),
    )


def _far(results: Results, size: Size) -> Check:
    """What the source takes for convergence is none."""
    errors = {
        place: median(map(_error, by_name[runs.SOURCE]))
        for place, by_name in results.items()
        if place[2] == size.most
    }
    least = min(errors, key=lambda place: errors[place])
    return Check(
        f"after {runs.STEPS} steps EM is not there: error above {LARGE_ERROR} at d = {size.most}",
        errors[least] > LARGE_ERROR,
        f"the least is {errors[least]:.2g}, {least[0]} at N = {least[1]}",
    )


def _near(results: Results) -> Check:
    errors = {place: max(map(_error, by_name["krylov"])) for place, by_name in results.items()}
    data, n, d = max(errors, key=lambda place: errors[place])
    return Check(
        f"krylov comes within {SMALL_ERROR:g}",
        errors[data, n, d] <= SMALL_ERROR,
        f"the most is {errors[data, n, d]:.1e}, {data} at N = {n}, d = {d}",
    )


def _growth(data: str, results: Results, size: Size) -> Check:
    """A step is a product of N^2 d multiplications, and what it takes beside that grows less."""
    powers = {name: exponents(data, name, results, size) for name in (runs.SOURCE, "krylov")}
    by_rows, by_axes = powers[runs.SOURCE]
    told = ", ".join(f"{name} N^{p[0]:.2f} d^{p[1]:.2f}" for name, p in powers.items())
    return Check(
        f"{data}: EM grows about as N^2 (a power of 1.6 to 2.2 over the last doubling) and at most "
        "as d (up to 1.2)",
        1.6 <= by_rows <= 2.2 and by_axes <= 1.2,
        told,
    )


def exponents(data: str, name: str, results: Results, size: Size) -> tuple[float, float]:
    """Powers by which the seconds of a solver grow: of N, over its last doubling, and of d.

    What does not grow with N bends the curve where N is small.
    """
    times = {
        (n, d): median(map(_seconds, by_name[name]))
        for (of, n, d), by_name in results.items()
        if of == data
    }
    least = max(n for n, _ in times) / 2
    by_rows = {n: s for (n, d), s in times.items() if d == size.most and n >= least}
    by_axes = {d: s for (n, d), s in times.items() if n == size.fixed}
    return _power(by_rows), _power(by_axes)


def _power(seconds: Mapping[int, float]) -> float:
    if len(seconds) < 2:
        return float("nan")
    x, y = np.log(list(seconds)), np.log(list(seconds.values()))
    return float(np.polyfit(x, y, 1)[0])


def _order(results: Results, most: int) -> tuple[Check, ...]:
    """Which of two solvers takes less time where there are many rows; nothing if there are few."""
    if all(n < LARGE for _, n, _ in results):
        return ()
    return (
        _sooner("EM of 20 steps takes less time than arpack, as the source has it", runs.SOURCE,
                "arpack", results),
        _sooner(f"krylov takes less time than arpack for {most} axes", "krylov", "arpack",
                {place: mine for place, mine in results.items() if place[2] == most}),
        _sooner("krylov takes less time than EM", "krylov", runs.CONVERGED, results),
    )  # fmt: skip


def _sooner(claim: str, first: str, second: str, results: Results) -> Check:
    ratios = [
        median(map(_seconds, by_name[second])) / median(map(_seconds, by_name[first]))
        for (_, n, _), by_name in results.items()
        if n >= LARGE
    ]
    held = sum(ratio > 1 for ratio in ratios)
    detail = f"in {held} of {len(ratios)} runs of {LARGE} rows or more; {second} takes "
    detail += f"{min(ratios):.2g} to {max(ratios):.2g} times as long"
    return Check(claim, held == len(ratios), detail)


def _settings(size: Size) -> tuple[tuple[str, str], ...]:
    return (
        (f"rows N, at d = {size.most}", ", ".join(map(str, size.rows))),
        (f"axes d, at N = {size.fixed}", ", ".join(map(str, size.axes))),
        ("repeats, on other rows", str(size.repeats)),
    )


EXPERIMENT = Experiment(
    name="em-kpca",
    title="Kernel PCA by EM: time and error against N and d",
    source="004",
    place="figure 5.3",
    protocol=(
        "Kernel matrices of Reuters articles (tf-idf rows of unit length, linear kernel) and of "
        "handwritten digits (rbf kernel, gamma one over the number of pixels times their "
        "variance), in place of the source's Reuters articles and Corel images. The number of "
        "rows grows at 50 axes, and the number of axes at 3000 rows (1000 in the quick variant). "
        "Each solver is given the same matrix and one thread. The error is the sine of the "
        "largest angle between the span it finds and that of the exact leading eigenvectors, "
        f"which are those of a dense decomposition up to {runs.DENSE_ROWS} rows and those of "
        f"krylov with tol = {runs.EXACT:g} beyond. The source repeats ten times and does not "
        "look at errors."
    ),
    data=(runs.WORDS, runs.DIGITS),
    run=run,
)
