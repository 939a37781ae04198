"""Zhang (2017), section 2: mixtures of diagonal Gaussians on twos and threes, starts and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mixfold.contracts import Array, Block, Context, Update
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.sources import open_source
from mixfold.families import GAUSSIAN
from mixfold.math.frame import plain_frame
from mixfold.math.seeding import lloyd
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.fixed_frame import FramedMixture
from mixfold.models.mixtures.given_start import GivenStart
from mixfold.models.mixtures.mixture import MixtureParams, MixtureStats
from papers.frame.checks import check_growth
from papers.frame.data import load_arrays
from papers.frame.experiment import DataFile, Experiment, Progress
from papers.frame.table import Cell, Check, Column, Table, Tolerance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# ------------------------------------------------ EM
# The images of twos and threes, and EM on them as Zhang (2017) ran it: its floor, its starts.

DIGITS, PIXELS = (2, 3), 256
# Images of each digit in each part of the file.
PARTS = {"train": 300, "valid": 100, "test": 200}
# Least variance of a pixel, in the units of the images.
FLOOR = 0.01
# The constant of the random start: proportions c + U(0, 1), means off by s / c; others of figures
# 10 and 11.
SPREAD, OTHER_SPREADS = 1.0, (5.0, 10.0)
LLOYD_STEPS = 5
# Steps of EM; deviation of the noise that lifts all variances above both floors.
STEPS, NOISE = 30, 0.3
IMAGES = DataFile(
    "toronto_digits_2_3.npz",
    "arrays X (1200 x 256, grey values 0 to 1 of 16 x 16 pixels), y (the digit, 2 or 3) and split "
    "('train', 'valid' or 'test': 300, 100 and 200 images of each digit)",
    "the assignments of the University of Toronto courses CSC411 and CSC2515 (digits.mat or "
    "digits.npz)",
)

# Images and number of components to means (K, D).
Means = Callable[[Array, int, np.random.Generator], Array]


def load_images(path: Path) -> dict[tuple[str, int], Array]:
    """The images by part and digit."""
    X, y, split = load_arrays(path, ("X", "y", "split"))
    if X.ndim != 2 or X.shape[1] != PIXELS or not y.shape == split.shape == X.shape[:1]:
        raise ValueError(
            f"{str(path)!r} must hold X of shape (n, {PIXELS}), y and split of shape (n,); got "
            f"{X.shape}, {y.shape} and {split.shape}. Obtain it again."
        )
    parts = {(p, d): X[(split == p) & (y == d)].astype(float) for p in PARTS for d in DIGITS}
    for (part, digit), rows in parts.items():
        if len(rows) != PARTS[part]:
            raise ValueError(
                f"{str(path)!r} must hold {PARTS[part]} images of the digit {digit} in the part "
                f"{part!r}; got {len(rows)}. Obtain it again."
            )
    return parts


def draw_random_means(X: Array, K: int, rng: np.random.Generator, spread: float = SPREAD) -> Array:
    """The mean of all images, off by their standard deviation over a constant."""
    noise = rng.standard_normal((K, X.shape[1]))
    return np.asarray(X.mean(axis=0) + X.std(axis=0) / spread * noise)


def find_kmeans_means(X: Array, K: int, rng: np.random.Generator) -> Array:
    """A few steps of k-means from K of the images."""
    centres = X[rng.choice(len(X), K, replace=False)]
    return lloyd(X, np.ones(len(X)), centres, LLOYD_STEPS)[1]


def make_start(X: Array, K: int, means: Means, rng: np.random.Generator) -> GivenStart:
    """Proportions that differ a little, some means, and twice the variance of all images."""
    spread = means.keywords["spread"] if isinstance(means, partial) else SPREAD
    proportions = spread + rng.random(K)
    variances = np.maximum(2 * X.var(axis=0), FLOOR)
    return GivenStart(proportions / proportions.sum(), means(X, K, rng), np.tile(variances, (K, 1)))


@dataclass(frozen=True)
class PlainMixture(FramedMixture):
    """EM as it stands in the formulas: a component that has hardly any images stays, and may get
    some again, where the library would move it."""

    def update(
        self, params: MixtureParams, stats: MixtureStats, context: Context
    ) -> Update[MixtureParams]:
        components, _ = self.family.estimate(stats.components, params.components)
        return Update(MixtureParams(self.mixing.posterior(stats.counts), components))


def make_model(K: int, given: GivenStart | None = None) -> PlainMixture:
    """Diagonal Gaussians in the units of the data, so that the floor is a variance there."""
    family = GAUSSIAN["diag"](floor=FLOOR)
    return PlainMixture(K, family, given=given or GivenStart(), frame=plain_frame(PIXELS))


def run_em(X: Array, K: int, means: Means, rng: np.random.Generator, n_steps: int) -> Fit:
    """Plain EM, so many steps of it."""
    plan = Plan(tol=0.0, max_iter=n_steps, n_candidates=1)
    return fit(make_model(K, make_start(X, K, means, rng)), open_source(X), ThreadExecutor(1), plan)


def compare_with_class(X: Array, K: int, seed: int) -> float:
    """The largest difference between log p of these steps and of those of ``GaussianMixture``.

    Both begin at one random start, on images with drawn noise: pixels that are white in all images
    of a component stand at the floor, which the class has in units of each pixel's own spread.
    """
    from mixfold import GaussianMixture

    noisy = X + NOISE * np.random.default_rng(seed).standard_normal(X.shape)
    given = make_start(noisy, K, draw_random_means, np.random.default_rng(seed))
    trace = run_em(noisy, K, draw_random_means, np.random.default_rng(seed), STEPS).trace
    model = GaussianMixture(
        K, covariance_type="diag", weights_init=given.weights, means_init=given.means,
        precisions_init=1 / np.asarray(given.covariances), acceleration=None, tol=0.0,
        max_iter=STEPS,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is cut on purpose
        steps = len(X) * np.asarray(model.fit(noisy).lower_bounds_)
    return float(np.abs(steps - np.asarray(trace)[1 : len(steps) + 1]).max())


def compute_log_density(params: MixtureParams, X: Array) -> Array:
    """Of each image under a mixture."""
    mixture = make_model(params.n_components)
    return normalise(mixture.log_joint(mixture.prepare(params), Block(X)))[0]


def measure_error(two: MixtureParams, three: MixtureParams, twos: Array, threes: Array) -> float:
    """Percentage of images that the mixture of the other digit finds more probable."""
    wrong = [
        compute_log_density(other, X) >= compute_log_density(own, X)
        for own, other, X in ((two, three, twos), (three, two, threes))
    ]
    return 100 * float(np.mean(np.concatenate(wrong)))


# ------------------------------------------------ table

FEW = 5
COLUMNS = (
    Column(
        f"log p, {FEW} steps",
        f"log-probability of the training images after {FEW} steps of EM, summed over images; the "
        "source has it in figures only",
        form=".0f",
    ),
    Column(
        f"log p, {STEPS} steps",
        f"the same after {STEPS} steps",
        tolerance=Tolerance(absolute=1.0),
        form=".0f",
    ),
    Column(
        "weight",
        "the larger of two mixing proportions",
        tolerance=Tolerance(absolute=0.001),
        form=".4f",
    ),
    Column("training error", "images put with the other digit; not published as numbers", "%",
           form=".2f"),
    Column("validation error", "of the 200 images that the number of components is chosen by", "%",
           form=".2f"),
    Column("test error", "of the 400 images that nothing is chosen by", "%", form=".2f"),
)  # fmt: skip
# log p and the larger weight of two components on the training images of a digit
PUBLISHED = {2: (-3891.0, 0.5333), 3: (2289.0, 0.5005)}
STARTS: dict[str, Means] = {"random": draw_random_means, "k-means": find_kmeans_means}
SPREAD_STARTS: dict[str, Means] = {
    f"randConst {c:g}": partial(draw_random_means, spread=c) for c in OTHER_SPREADS
}
MANY = 20
# largest difference of two sums of log p that is rounding
SAME_STEPS = 1e-6
NOTES = (
    "The floor of 0.01 is a variance in the units of the images: the mixture is fitted in these "
    "units, not in those of each pixel's own spread, to which the reg_covar of GaussianMixture is "
    "relative. EM is plain: not accelerated, and no component is moved or dropped. That the class "
    "makes the same steps where no floor binds is a claim below.",
    "EM ends in many optima, and the source shows one run of each digit. The rows called nearest "
    "give the one of our runs that ends nearest to it: it says that the published optimum exists "
    "and is found again, not that it is the best one, which it is not.",
    "The source derives a covariance that all components share, but its numbers are those of "
    "variances of each component's own: with shared ones EM ends thousands of nats lower.",
    "A validation error of 1 % is 2 images of 200: single runs, such as the source's, differ by "
    "more than the numbers of components do.",
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much of it is run."""

    starts: int
    repeats: int
    classifiers: int
    components: tuple[int, ...]


FULL = Size(starts=200, repeats=20, classifiers=100, components=(2, 5, 15, 25))
QUICK = Size(starts=60, repeats=3, classifiers=3, components=(2, 15))


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """EM from both kinds of start, for each digit and for both; then a classifier of mixtures."""
    parts = load_images(data_folder / IMAGES.name)
    size = QUICK if quick else FULL
    both = np.concatenate([parts["train", digit] for digit in DIGITS])
    tasks = {f"{d}s, K = 2": (parts["train", d], 2, size.starts) for d in DIGITS}
    tasks[f"both, K = {MANY}"] = (both, MANY, size.repeats)
    steps = [(task, kind) for task in tasks for kind in STARTS]
    steps += [(f"{d}s, K = 2", kind) for d in DIGITS for kind in SPREAD_STARTS]
    total = len(steps) + len(size.components)
    traces, weights = {}, {}
    for step, (task, kind) in enumerate(steps):
        progress(step, total, f"{task}, {kind} starts")
        traces[task, kind], weights[task, kind] = _run_climbs(*tasks[task], kind, seed)
    errors = {}
    for step, K in enumerate(size.components, len(steps)):
        progress(step, total, f"a classifier with {K} components of each digit")
        errors[K] = np.array([_measure_errors(parts, K, seed, r) for r in range(size.classifiers)])
    progress(total, total, "done")
    nearest, found = _find_nearest(traces, weights)
    cells = (*nearest, *_make_trace_cells(traces), *_make_error_cells(errors))
    apart = [compare_with_class(parts["train", d], 2, seed) for d in DIGITS]
    checks = (
        found, check_class(apart), check_spreads(traces), *_check_starts(cells, list(tasks)),
        *_check_errors(cells, size),
    )  # fmt: skip
    shown = [
        run_em(parts["train", d], 2, draw_random_means, np.random.default_rng([seed, d]), STEPS)
        for d in DIGITS
    ]
    picture = partial(draw, traces, [fit.params for fit in shown], errors)
    return Table(COLUMNS, cells, checks, _list_settings(size), NOTES, picture)


def _run_climbs(X: Array, K: int, repeats: int, kind: str, seed: int) -> tuple[Array, Array]:
    """Traces of log p, (repeats, STEPS + 1), and the largest weight at the end of each."""
    rules = {**STARTS, **SPREAD_STARTS}
    key = [seed, K, len(X), list(rules).index(kind), round(float(X.sum()))]
    fits = [
        run_em(X, K, rules[kind], np.random.default_rng([*key, r]), STEPS) for r in range(repeats)
    ]
    return np.array([f.trace for f in fits]), np.array([f.params.weights.max() for f in fits])


def _measure_errors(
    parts: dict[tuple[str, int], Array], K: int, seed: int, repeat: int
) -> list[float]:
    """Percentages of wrong images, in the order of the parts."""
    two, three = (
        run_em(
            parts["train", d],
            K,
            find_kmeans_means,
            np.random.default_rng([seed, K, d, repeat]),
            STEPS,
        ).params
        for d in DIGITS
    )
    return [measure_error(two, three, parts[p, 2], parts[p, 3]) for p in PARTS]


# ------------------------------------------------ cells


def _find_nearest(
    traces: dict[tuple[str, str], Array], weights: dict[tuple[str, str], Array]
) -> tuple[list[Cell], Check]:
    """The run from a random start that ends nearest to the published one, for each digit."""
    cells, details, holds = [], [], True
    for digit, (log_p, weight) in PUBLISHED.items():
        key = (f"{digit}s, K = 2", "random")
        ends = traces[key][:, -1]
        best = int(np.argmin(np.abs(ends - log_p)))
        row = f"{digit}s, K = 2, nearest"
        cells.append(Cell(row, COLUMNS[1].name, (float(ends[best]),), log_p))
        cells.append(Cell(row, "weight", (float(weights[key][best]),), weight))
        hits = int(np.sum(np.abs(ends - log_p) <= 1))
        holds &= hits > 0
        details.append(
            f"{digit}s: {hits} of {len(ends)} starts end within 1 of {log_p:.0f}; they run from "
            f"{ends.min():.0f} to {ends.max():.0f}"
        )
    claim = "the published log-probabilities are optima that random starts find again"
    return cells, Check(claim, holds, "; ".join(details))


def _label_row(task: str, kind: str) -> str:
    return f"{task}, {kind} starts"


def _make_trace_cells(traces: dict[tuple[str, str], Array]) -> list[Cell]:
    return [
        Cell(_label_row(*key), column.name, tuple(trace[:, step].tolist()))
        for key, trace in traces.items()
        for column, step in zip(COLUMNS, (FEW, STEPS), strict=False)
    ]


def _label_errors(K: int) -> str:
    return f"K = {K} of each digit"


def _make_error_cells(errors: dict[int, Array]) -> list[Cell]:
    return [
        Cell(_label_errors(K), column.name, tuple(values[:, j].tolist()))
        for K, values in errors.items()
        for j, column in enumerate(COLUMNS[3:])
    ]


# ------------------------------------------------ claims


def _check_starts(cells: Sequence[Cell], tasks: Sequence[str]) -> list[Check]:
    by_place = {(cell.row, cell.column): cell for cell in cells}

    def pair(task: str, column: Column) -> list[Cell]:
        return [by_place[_label_row(task, kind), column.name] for kind in STARTS]

    few, many = COLUMNS[:2]
    return [
        check_growth(
            f"k-means starts are ahead after {FEW} steps", [pair(task, few) for task in tasks]
        ),
        check_growth(f"K = {MANY}: and still after {STEPS}", [pair(tasks[-1], many)]),
    ]


def check_class(differences: Sequence[float]) -> Check:
    """Whether the public class makes the steps of this file."""
    return Check(
        "GaussianMixture makes the same steps from the same start (K = 2, images with noise)",
        max(differences) < SAME_STEPS,
        f"log p differs by {max(differences):.0e} at most",
    )


def check_spreads(traces: dict[tuple[str, str], Array]) -> Check:
    """Whether the constant matters less than the start, as figures 10 and 11 say."""
    gaps, spreads, told = [], [], []
    for digit in DIGITS:
        ends = [traces[f"{digit}s, K = 2", kind][:, -1] for kind in ("random", *SPREAD_STARTS)]
        means = [float(end.mean()) for end in ends]
        gaps.append(max(means) - min(means))
        spreads.append(float(np.mean([end.std() for end in ends])))
        told.append(f"{digit}s: " + ", ".join(f"{mean:.0f}" for mean in means))
    return Check(
        "randConst 1, 5 and 10 end alike: their means differ by less than single starts do",
        all(gap < spread for gap, spread in zip(gaps, spreads, strict=True)),
        f"{'; '.join(told)}; deviations of starts {', '.join(f'{s:.0f}' for s in spreads)}",
    )


def _check_errors(cells: Sequence[Cell], size: Size) -> list[Check]:
    by_place = {(cell.row, cell.column): cell for cell in cells}
    training, validation, test = (
        [by_place[_label_errors(K), column.name] for K in size.components] for column in COLUMNS[3:]
    )
    falls = check_growth("the training error falls with K", [training[::-1]])
    if size.components != FULL.components:
        return [falls]  # what the source says of its choice is about all of them
    return [falls, check_choice(validation, size.components), check_rise(test)]


def _list_settings(size: Size) -> tuple[tuple[str, str], ...]:
    return (
        ("starts of K = 2, of each kind", str(size.starts)),
        (f"starts of K = {MANY}, of each kind", str(size.repeats)),
        ("repeats of the classifiers", str(size.classifiers)),
        ("components of each digit", ", ".join(map(str, size.components))),
        ("least variance", f"{FLOOR:g}"),
        ("constant of the random starts", f"{SPREAD:g}"),
        ("steps of k-means in a start", str(LLOYD_STEPS)),
    )


# What Zhang (2017) says of the errors of the classifiers, asked of many runs instead of one:
# components of each digit that the source chooses by its validation images.
CHOICE = 15


def check_choice(validation: Sequence[Cell], components: Sequence[int]) -> Check:
    """Whether the source's choice has the lowest mean, and how often in single runs."""
    best = components[int(np.argmin([cell.ours for cell in validation]))]
    return Check(
        f"the source's choice, {CHOICE} components of each digit, has the lowest validation error",
        best == CHOICE,
        f"{_list_means(validation)}; in single runs, {_count_lowest(validation, components)}",
    )


def check_rise(test: Sequence[Cell]) -> Check:
    """Whether the most components are too many."""
    claim = "the test error rises again with the last K, as in the source"
    return Check(claim, test[-1].ours > test[-2].ours, _list_means(test))


def _list_means(cells: Sequence[Cell]) -> str:
    """Means and their standard errors."""
    parts = (f"{c.ours:.2f} ± {c.spread / np.sqrt(len(c.values)):.2f}" for c in cells)
    return ", ".join(parts) + " %, with standard errors of the means"


def _count_lowest(cells: Sequence[Cell], components: Sequence[int]) -> str:
    """How often each number of components has the lowest error of its run, alone or not."""
    values = np.array([cell.values for cell in cells])
    shares = np.mean(values == values.min(axis=0), axis=1)
    return ", ".join(
        f"{K} components are lowest in {100 * share:.0f} %"
        for K, share in zip(components, shares, strict=True)
    )


# ------------------------------------------------ picture


def draw(
    traces: dict[tuple[str, str], Array],
    shown: Sequence[MixtureParams],
    errors: dict[int, Array],
    figure: Figure,
) -> None:
    """Figures 10 to 15: optima by randConst, means and variances, traces, errors."""
    from mixfold.plots import plot_images

    figure.set_size_inches(11, 10)
    axes = figure.subplots(3, 2)
    kinds = {"random": f"{SPREAD:g}", **{k: k.split()[1] for k in SPREAD_STARTS}}
    for ax, digit in zip(axes[0], DIGITS, strict=True):
        ends = [np.sort(traces[f"{digit}s, K = 2", kind][:, -1]) for kind in kinds]
        for j, end in enumerate(ends):
            ax.plot(j + np.linspace(-0.3, 0.3, len(end)), end, ".", ms=4, color="C0")
            ax.hlines(end.mean(), j - 0.35, j + 0.35, color="C3")
        ax.set_xticks(range(len(kinds)), [f"randConst {c}" for c in kinds.values()], fontsize=8)
        ax.set_title(f"final log p of {digit}s, K = 2, and its mean", fontsize=9)
    described = [GAUSSIAN["diag"]().describe(p.components) for p in shown]
    images = np.concatenate([np.vstack([d["means"], d["covariances"]]) for d in described])
    titles = [f"{d}: {what} {k}" for d in DIGITS for what in ("mean", "variance") for k in (1, 2)]
    plot_images(images, (16, 16), columns=4, titles=titles, scale="own", ax=axes[1, 0])
    for ax, task in ((axes[1, 1], f"both, K = {MANY}"), (axes[2, 0], "2s, K = 2")):
        for j, kind in enumerate(STARTS):
            mine = traces[task, kind]
            ax.plot(mine.T[1:], color=f"C{j}", lw=0.5, alpha=0.3)
            ax.plot(mine.mean(axis=0)[1:], color=f"C{j}", lw=2, label=f"{kind} starts")
        ax.set_title(f"log p by step, {task}", fontsize=9)
        ax.legend(fontsize=8, frameon=False)
    places = list(errors)
    for j, part in enumerate(PARTS):
        means = [errors[K][:, j].mean() for K in places]
        axes[2, 1].plot(places, means, "o-", label=part)
    axes[2, 1].set_title("errors of the classifier [%] by components", fontsize=9)
    axes[2, 1].legend(fontsize=8, frameon=False)
    for ax in axes.flat:
        ax.tick_params(labelsize=8)


EXPERIMENT = Experiment(
    name="digits-mixtures",
    title="Mixtures of diagonal Gaussians on twos and threes: starts, and errors as a classifier",
    source="Zhang 2017",
    place="figures 10-15",
    protocol=(
        "Images of 16 x 16 pixels with values from 0 to 1, 300 of each digit to train, 100 to "
        "validate, 200 to test. Mixtures of Gaussians with variances of their own, none below "
        "0.01, by 30 steps of EM. A random start has proportions in ratio of c + U(0, 1), means "
        "off the mean of all images by 1 / c standard deviations times a normal draw, and twice "
        "their variances, with c = 1; a k-means start has means from five steps of k-means "
        "instead. Two components for each digit: the final log-probability and the proportions "
        "that the source prints in its section 2.2, and their optima for c = 5 and 10 (figures 10 "
        "to 12). Twenty for both together: which start is "
        "ahead (figure 13), and the same for two of each digit (figure 14). Then one mixture for "
        "each digit from k-means starts: an image goes to the digit whose mixture finds it more "
        "probable, both digits being equally frequent (figure 15). The source has one run of each; "
        "ours are repeated from other starts, which gives the spread."
    ),
    data=(IMAGES,),
    run=run,
)
