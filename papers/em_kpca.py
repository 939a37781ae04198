"""Yu (2006), figure 5.3: the time of kernel PCA by EM and by other solvers."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.math.kernels import Kernel, LinearKernel, RbfKernel
from papers.frame.data import load_arrays
from papers.frame.experiment import DataFile, Experiment, Progress
from papers.frame.table import Cell, Check, Column, Table
from papers.shared.subspaces import measure_span_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# ------------------------------------------------ fits
# Kernel PCA of one kernel matrix by several solvers: the time of each, and how near it comes.

NOISE, STEPS = 0.01, 20  # of EM in the source
# beyond that many rows a dense decomposition takes minutes, and the solver below is the reference
DENSE_ROWS, EXACT = 4000, 1e-10

WORDS = DataFile(
    "reuters5.npz",
    "word counts as a CSR matrix of 3972 x 7360 (arrays data, indices, indptr, shape)",
    "Reuters-21578, articles with one of five topics, words that occur in two articles or more",
    optional=True,
)
DIGITS = DataFile(
    "mnist.npz",
    "array X (70000 images x 784, grey values of 28 x 28 pixels)",
    "MNIST, handwritten digits (LeCun, Cortes, Burges)",
    optional=True,
)


@dataclass(frozen=True, slots=True)
class Rows:
    """A table in random order, and the kernel it is seen by."""

    name: str
    X: Any
    kernel: Kernel

    def gram(self, n: int) -> Array:
        """The kernel matrix of the first n rows."""
        return np.ascontiguousarray(self.kernel.block(self.X[:n], self.X[:n]), np.float64)


@dataclass(frozen=True, slots=True)
class Outcome:
    """CPU seconds of a fit, and the sine of the largest angle between its span and the exact."""

    seconds: float
    error: float


Solve = Callable[[Array, int, int], Array]


def load_texts(folder: Path, n: int, rng: np.random.Generator) -> Rows:
    """Reuters articles as tf-idf rows of unit length; linear kernel."""
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfTransformer

    path = folder / WORDS.name
    data, indices, indptr, shape = load_arrays(path, ("data", "indices", "indptr", "shape"))
    counts = sparse.csr_array((data.astype(float), indices, indptr), shape=tuple(shape))
    _check_rows(path, counts.shape[0], n)
    chosen = rng.permutation(counts.shape[0])[:n]
    return Rows("Reuters, linear", TfidfTransformer().fit_transform(counts)[chosen], LinearKernel())


def load_images(folder: Path, n: int, rng: np.random.Generator) -> Rows:
    """Handwritten digits; rbf kernel as wide as the pixels vary."""
    path = folder / DIGITS.name
    (pixels,) = load_arrays(path, ("X",))
    _check_rows(path, len(pixels), n)
    X = pixels[np.sort(rng.permutation(len(pixels))[:n])].astype(float)
    X = rng.permutation(X / 255)
    return Rows("MNIST, rbf", X, RbfKernel(1.0 / (X.shape[1] * float(X.var()))))


def _check_rows(path: Path, found: int, wanted: int) -> None:
    if found < wanted:
        raise ValueError(
            f"{str(path)!r} must hold at least {wanted} rows; it has {found}. Obtain it again."
        )


LOADERS = {WORDS: load_texts, DIGITS: load_images}

# ------------------------------------------------ solvers


def _use_mixfold(solver: str, **settings: Any) -> Solve:
    def solve(G: Array, d: int, seed: int) -> Array:
        from mixfold import KernelPCA

        common: dict[str, Any] = {"kernel": "precomputed", "n_jobs": 1, "random_state": seed}
        model = KernelPCA(d, solver=solver, **(common | settings)).fit(G)
        return np.asarray(model.eigenvectors_)

    return solve


def _use_scikit_learn(solver: str) -> Solve:
    def solve(G: Array, d: int, seed: int) -> Array:
        from sklearn.decomposition import KernelPCA

        model = KernelPCA(d, kernel="precomputed", eigen_solver=solver, random_state=seed)
        return np.asarray(model.fit(G).eigenvectors_)

    return solve


AS_PUBLISHED, CONVERGED = f"EM, {STEPS} steps", "EM"
SOLVERS: dict[str, Solve] = {
    AS_PUBLISHED: _use_mixfold("em", noise_variance=NOISE, max_iter=STEPS, tol=0.0),
    CONVERGED: _use_mixfold("em", max_iter=300),
    "krylov": _use_mixfold("krylov"),
    "chebyshev": _use_mixfold("chebyshev"),
    "arpack": _use_scikit_learn("arpack"),
    "randomized": _use_scikit_learn("randomized"),
    "dense": _use_scikit_learn("dense"),
}
exact_vectors = _use_mixfold("krylov", tol=EXACT)


def measure_solvers(G: Array, d: int, seed: int) -> dict[str, Outcome]:
    """Every solver on one kernel matrix, on one thread each; dense for few rows only."""
    from threadpoolctl import threadpool_limits

    taken: dict[str, tuple[float, Array]] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # steps too few to converge, axes that noise takes away
        for name, solve in SOLVERS.items():
            if name == "dense" and len(G) > DENSE_ROWS:
                continue
            began = time.process_time()
            vectors = solve(G, d, seed)
            taken[name] = time.process_time() - began, vectors
        exact = taken["dense"][1] if "dense" in taken else exact_vectors(G, d, seed)
    return {
        name: Outcome(seconds, measure_span_error(vectors, exact))
        for name, (seconds, vectors) in taken.items()
    }


def warm_up() -> None:
    """Every solver once, so that no time is that of importing it."""
    X = np.random.default_rng(0).normal(size=(40, 5))
    measure_solvers(X @ X.T, 2, 0)


# ------------------------------------------------ table

MEANINGS = {
    AS_PUBLISHED: f"EM as in the source: noise {NOISE}, {STEPS} steps, axes taken out of "
    "the span at the end",
    CONVERGED: "EM with a noise that no axis vanishes under, until its likelihood gains less "
    "than the default tolerance, 300 steps at most",
    "krylov": "block Lanczos, the default of mixfold",
    "chebyshev": "a subspace filtered by Chebyshev polynomials: less memory",
    "arpack": "scikit-learn, Lanczos to full precision",
    "randomized": "scikit-learn, as it comes",
    "dense": f"scikit-learn, the whole decomposition; up to {DENSE_ROWS} rows",
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
LIMITS = {WORDS: 3972, DIGITS: 8000}

# (data, N, d) -> solver -> an outcome for each repeat
Results = Mapping[tuple[str, int, int], Mapping[str, Sequence[Outcome]]]


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Every solver at every size, on other rows in each repeat."""
    size = QUICK if quick else FULL
    files = [file for file in LIMITS if (data_folder / file.name).is_file()]
    total = size.repeats * sum(len(size.places(LIMITS[file])) for file in files)
    results: dict[tuple[str, int, int], dict[str, list[Outcome]]] = {}
    done = 0
    warm_up()
    for file, repeat in product(files, range(size.repeats)):
        places = size.places(LIMITS[file])
        rng = np.random.default_rng([seed, 53, repeat])
        table = LOADERS[file](data_folder, max(n for n, _ in places), rng)
        for n, d in places:
            progress(done, total, f"{table.name}, N = {n}, d = {d}, repeat {repeat + 1}")
            into = results.setdefault((table.name, n, d), defaultdict(list))
            for name, outcome in measure_solvers(table.gram(n), d, seed + repeat).items():
                into[name].append(outcome)
            done += 1
    notes = NOTES + tuple(
        f"{file.name} is not in the data folder: its rows are left out."
        for file in LIMITS
        if file not in files
    )
    picture = partial(draw, results=results, size=size)
    return Table(
        COLUMNS,
        _make_cells(results),
        _check_claims(results, size),
        _list_settings(size),
        notes,
        picture,
    )


def _make_cells(results: Results) -> tuple[Cell, ...]:
    return tuple(
        Cell(f"{what}: {data}, N = {n}, d = {d}", name, tuple(map(take, outcomes)))
        for what, take in ((TIME, _get_seconds), (ERROR, _get_error))
        for (data, n, d), by_name in results.items()
        for name, outcomes in by_name.items()
    )


def _get_seconds(outcome: Outcome) -> float:
    return outcome.seconds


def _get_error(outcome: Outcome) -> float:
    return outcome.error


# ------------------------------------------------ claims


def _check_claims(results: Results, size: Size) -> tuple[Check, ...]:
    names = dict.fromkeys(data for data, _, _ in results)
    growth = [_check_growth(data, results, size) for data in names]
    return (
        _check_far(results, size),
        _check_near(results),
        *growth,
        *_check_order(results, size.most),
    )


def _check_far(results: Results, size: Size) -> Check:
    """What the source takes for convergence is none."""
    errors = {
        place: median(map(_get_error, by_name[AS_PUBLISHED]))
        for place, by_name in results.items()
        if place[2] == size.most
    }
    least = min(errors, key=lambda place: errors[place])
    return Check(
        f"after {STEPS} steps EM is not there: error above {LARGE_ERROR} at d = {size.most}",
        errors[least] > LARGE_ERROR,
        f"the least is {errors[least]:.2g}, {least[0]} at N = {least[1]}",
    )


def _check_near(results: Results) -> Check:
    errors = {place: max(map(_get_error, by_name["krylov"])) for place, by_name in results.items()}
    data, n, d = max(errors, key=lambda place: errors[place])
    return Check(
        f"krylov comes within {SMALL_ERROR:g}",
        errors[data, n, d] <= SMALL_ERROR,
        f"the most is {errors[data, n, d]:.1e}, {data} at N = {n}, d = {d}",
    )


def _check_growth(data: str, results: Results, size: Size) -> Check:
    """A step is a product of N^2 d multiplications, and what it takes beside that grows less."""
    powers = {name: fit_exponents(data, name, results, size) for name in (AS_PUBLISHED, "krylov")}
    by_rows, by_axes = powers[AS_PUBLISHED]
    told = ", ".join(f"{name} N^{p[0]:.2f} d^{p[1]:.2f}" for name, p in powers.items())
    return Check(
        f"{data}: EM grows about as N^2 (a power of 1.6 to 2.2 over the last doubling) and at most "
        "as d (up to 1.2)",
        1.6 <= by_rows <= 2.2 and by_axes <= 1.2,
        told,
    )


def fit_exponents(data: str, name: str, results: Results, size: Size) -> tuple[float, float]:
    """Powers by which the seconds of a solver grow: of N, over its last doubling, and of d.

    What does not grow with N bends the curve where N is small.
    """
    times = {
        (n, d): median(map(_get_seconds, by_name[name]))
        for (of, n, d), by_name in results.items()
        if of == data
    }
    least = max(n for n, _ in times) / 2
    by_rows = {n: s for (n, d), s in times.items() if d == size.most and n >= least}
    by_axes = {d: s for (n, d), s in times.items() if n == size.fixed}
    return _fit_power(by_rows), _fit_power(by_axes)


def _fit_power(seconds: Mapping[int, float]) -> float:
    if len(seconds) < 2:
        return float("nan")
    x, y = np.log(list(seconds)), np.log(list(seconds.values()))
    return float(np.polyfit(x, y, 1)[0])


def _check_order(results: Results, most: int) -> tuple[Check, ...]:
    """Which of two solvers takes less time where there are many rows; nothing if there are few."""
    if all(n < LARGE for _, n, _ in results):
        return ()
    return (
        _check_sooner(
            "EM of 20 steps takes less time than arpack, as the source has it",
            AS_PUBLISHED,
            "arpack",
            results,
        ),
        _check_sooner(
            f"krylov takes less time than arpack for {most} axes",
            "krylov",
            "arpack",
            {place: mine for place, mine in results.items() if place[2] == most},
        ),
        _check_sooner("krylov takes less time than EM", "krylov", CONVERGED, results),
    )


def _check_sooner(claim: str, first: str, second: str, results: Results) -> Check:
    ratios = [
        median(map(_get_seconds, by_name[second])) / median(map(_get_seconds, by_name[first]))
        for (_, n, _), by_name in results.items()
        if n >= LARGE
    ]
    held = sum(ratio > 1 for ratio in ratios)
    detail = f"in {held} of {len(ratios)} runs of {LARGE} rows or more; {second} takes "
    detail += f"{min(ratios):.2g} to {max(ratios):.2g} times as long"
    return Check(claim, held == len(ratios), detail)


def _list_settings(size: Size) -> tuple[tuple[str, str], ...]:
    return (
        (f"rows N, at d = {size.most}", ", ".join(map(str, size.rows))),
        (f"axes d, at N = {size.fixed}", ", ".join(map(str, size.axes))),
        ("repeats, on other rows", str(size.repeats)),
    )


# ------------------------------------------------ picture
# Figure 5.3 redrawn: time and error of each solver against N and d.

# colour, marker, line: ours are drawn through, scikit-learn's are dashed
STYLES = {
    AS_PUBLISHED: ("#c8553d", "o", "-"),
    CONVERGED: ("#e0a030", "s", "-"),
    "krylov": ("#1f5fa8", "o", "-"),
    "chebyshev": ("#58a4b0", "^", "-"),
    "arpack": ("#2b2b2b", "o", "--"),
    "randomized": ("#8a5aa8", "v", "--"),
    "dense": ("#8c8c8c", "s", "--"),
}
# errors of less are rounding
_LEAST = 1e-14


def draw(figure: Figure, results: Results, size: Size) -> None:
    """A row for each table: time and error against N, then against d; medians over repeats."""
    names = list(dict.fromkeys(data for data, _, _ in results))
    figure.set_size_inches(15, 0.9 + 3.6 * len(names))
    axes = figure.subplots(len(names), 4, squeeze=False)
    for line, data in zip(axes, names, strict=True):
        mine = {(n, d): v for (of, n, d), v in results.items() if of == data}
        fixed = min(size.fixed, max(n for n, _ in mine))
        by_rows = {n: v for (n, d), v in sorted(mine.items()) if d == size.most}
        by_axes = {d: v for (n, d), v in sorted(mine.items()) if n == fixed}
        _draw_times(line[0], by_rows, f"{data}: time, d = {size.most}", "rows N")
        _draw_errors(line[1], by_rows, f"{data}: error, d = {size.most}", "rows N")
        _draw_times(line[2], by_axes, f"{data}: time, N = {fixed}", "axes d")
        _draw_errors(line[3], by_axes, f"{data}: error, N = {fixed}", "axes d")
        for ax in line[:2]:
            _set_plain_ticks(ax, list(by_rows))
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)


def _draw_times(
    ax: Axes, series: Mapping[int, Mapping[str, Sequence[Outcome]]], title: str, x: str
) -> None:
    for name, (colour, marker, line) in STYLES.items():
        points = {
            at: median(o.seconds for o in by[name]) for at, by in series.items() if name in by
        }
        ax.plot(list(points), list(points.values()), line, marker=marker, ms=4, color=colour,
                label=name)  # fmt: skip
    _dress_axes(ax, title, x, "CPU seconds")


def _draw_errors(
    ax: Axes, series: Mapping[int, Mapping[str, Sequence[Outcome]]], title: str, x: str
) -> None:
    for name, (colour, marker, line) in STYLES.items():
        points = {
            at: max(_LEAST, median(o.error for o in by[name]))
            for at, by in series.items()
            if name in by and name != "dense"
        }
        ax.plot(list(points), list(points.values()), line, marker=marker, ms=4, color=colour)
    _dress_axes(ax, title, x, "sine of the largest angle")
    ax.set_ylim(_LEAST / 3, 5)


def _dress_axes(ax: Axes, title: str, x: str, y: str) -> None:
    ax.set_yscale("log")
    ax.set_title(title, fontsize=9.5)
    ax.set_xlabel(x, fontsize=9)
    ax.set_ylabel(y, fontsize=9)
    ax.tick_params(labelsize=8)
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _set_plain_ticks(ax: Axes, values: list[int]) -> None:
    """A logarithmic axis that shows the numbers of rows there are, where they do not collide."""
    from matplotlib.ticker import NullFormatter

    ax.set_xscale("log")
    shown: list[int] = []
    for value in reversed(values):  # the largest in any case
        if not shown or value < shown[-1] / 1.6:
            shown.append(value)
    ax.set_xticks(shown, [f"{value:,}" for value in shown])
    ax.xaxis.set_minor_formatter(NullFormatter())


EXPERIMENT = Experiment(
    name="em-kpca",
    title="Kernel PCA by EM: time and error against N and d",
    source="Yu 2006",
    place="figure 5.3",
    protocol=(
        "Kernel matrices of Reuters articles (tf-idf rows of unit length, linear kernel) and of "
        "handwritten digits (rbf kernel, gamma one over the number of pixels times their "
        "variance), in place of the source's Reuters articles and Corel images. The number of "
        "rows grows at 50 axes, and the number of axes at 3000 rows (1000 in the quick variant). "
        "Each solver is given the same matrix and one thread. The error is the sine of the "
        "largest angle between the span it finds and that of the exact leading eigenvectors, "
        f"which are those of a dense decomposition up to {DENSE_ROWS} rows and those of "
        f"krylov with tol = {EXACT:g} beyond. The source repeats ten times and does not "
        "look at errors."
    ),
    data=(WORDS, DIGITS),
    run=run,
)
