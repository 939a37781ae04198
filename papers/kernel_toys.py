"""Yu (2006), figures 4.2, 5.2, 5.4 and 7.2-7.4: kernel models of points of the plane."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import KernelPCA

from mixfold.contracts import Array
from papers.frame.experiment import Experiment, Progress
from papers.frame.table import Cell, Check, Column, Table
from papers.shared import plain_sppca
from papers.shared.subspaces import measure_span_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# ------------------------------------------------ fits
# Points of the plane as Yu (2006) draws them, and kernel models of them.

# three round groups of figures 4.2, 5.2 and 5.4
CENTRES, DEVIATION, EACH, GAMMA = ((-0.5, -0.2), (0.0, 0.6), (0.5, 0.0)), 0.1, 30, 10.0
# of EM in figure 5.2
NOISE, AXES = 0.01, 3
# points of the third group that come at a time in figure 5.4
BATCH = 10
# four groups of figures 7.3 and 7.4, of which opposite ones are a class
CORNER, WIDE, OF_A_CORNER, WIDTH, OUTERMOST = 2.0, 0.5, 25, 0.5, 5
KERNEL_NOISE = 1e-3
# figure 7.2: points of a class, those with a label, and noises that are held
OF_A_CLASS, LABELLED, HELD_NOISES = 100, 10, (0.1, 0.02)


def draw_three_groups(rng: np.random.Generator) -> Array:
    """Ninety points, group by group."""
    return np.concatenate([rng.normal(centre, DEVIATION, (EACH, 2)) for centre in CENTRES])


def draw_crossed_groups(rng: np.random.Generator) -> tuple[Array, Array]:
    """A hundred points around the corners of a square; classes 0 and 1 on its diagonals."""
    corners = np.array(list(product((-CORNER, CORNER), repeat=2)))
    X = np.concatenate([rng.normal(corner, WIDE, (OF_A_CORNER, 2)) for corner in corners])
    return X, np.repeat((corners.prod(axis=1) > 0).astype(int), OF_A_CORNER)


def find_outermost(X: Array) -> Array:
    """The points of each corner that are farthest from the middle."""
    far = np.abs(X).sum(axis=1).reshape(-1, OF_A_CORNER)
    best = np.argsort(far, axis=1)[:, -OUTERMOST:]
    return np.sort((best + OF_A_CORNER * np.arange(len(far))[:, None]).ravel())


def draw_two_classes(rng: np.random.Generator) -> tuple[Array, Array]:
    """Two wide classes y = -1, 1, one above the other."""
    y = np.repeat([-1.0, 1.0], OF_A_CLASS)
    return np.column_stack([rng.normal(0.5 * y, 1.5), rng.normal(y, 0.4)]), y


# ------------------------------------------------ kernel PCA


def fit_kernel_pca(X: Array, d: int, gamma: float = GAMMA) -> Any:
    """Kernel PCA of some points."""
    from mixfold import KernelPCA

    return KernelPCA(d, gamma=gamma, solver="dense", n_jobs=1).fit(X)


def are_groups_apart(scores: Array) -> bool:
    """Whether every point is nearest to the mean of its own group."""
    means = scores.reshape(len(CENTRES), EACH, -1).mean(axis=1)
    nearest = ((scores[:, None, :] - means) ** 2).sum(axis=2).argmin(axis=1)
    return bool((nearest == np.repeat(np.arange(len(CENTRES)), EACH)).all())


@dataclass(frozen=True, slots=True)
class Turned:
    """Where EM is after some steps: the best axes of its span, as values on some points.

    ``error`` is the sine of the largest angle to the span of the exact eigenvectors.
    """

    steps: int
    error: float
    values: Array


def run_em_steps(X: Array, steps: Iterable[int], seed: int, points: Array) -> list[Turned]:
    """Plain EM from random latents, ended after each of some numbers of steps."""
    from mixfold import KernelPCA

    exact = fit_kernel_pca(X, AXES).eigenvectors_
    found = []
    for n in steps:
        model = KernelPCA(
            AXES, gamma=GAMMA, solver="em", noise_variance=NOISE, max_iter=n, tol=0.0, n_jobs=1,
            random_state=seed,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is cut on purpose
            model.fit(X)
        error = measure_span_error(model.eigenvectors_, exact)
        found.append(Turned(n, error, np.asarray(model.transform(points))))
    return found


def fit_in_batches(X: Array) -> list[Any]:
    """Incremental kernel PCA: two groups, then the third a few points at a time."""
    from mixfold import KernelPCA

    models, first = [], len(X) - EACH
    for last in range(first, len(X) + 1, BATCH):
        model = KernelPCA(AXES, gamma=GAMMA, solver="krylov", tol=1e-8, n_jobs=1, random_state=0)
        model.partial_fit(X[:first])
        for start in range(first, last, BATCH):
            model.partial_fit(X[start : start + BATCH])
        models.append(model)
    return models


# ------------------------------------------------ with outputs


def fit_supervised(X: Array, y: Array) -> Any:
    """Supervised kernel PPCA with both noises held; y is -1 where it is not known."""
    from mixfold import SupervisedPPCA

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so small noises are slow to converge under
        return SupervisedPPCA(
            AXES, kernel="rbf", gamma=WIDTH, task="classification", input_noise=KERNEL_NOISE,
            output_noise=KERNEL_NOISE, n_jobs=1, random_state=0,
        ).fit(X, y)  # fmt: skip


def measure_split(axis: Array, y: Array) -> float:
    """The share of points on the right side of the best threshold of an axis."""
    ones = np.cumsum(y[np.argsort(axis)] == 1)
    left = np.arange(1, len(y) + 1)
    right = (left - ones) + (ones[-1] - ones)  # zeros to the left of it, ones to the right
    return float(max(right.max(), (len(y) - right).max()) / len(y))


def choose_labelled(y: Array, rng: np.random.Generator) -> Array:
    """A few points of each class, drawn."""
    drawn = [rng.permutation(np.flatnonzero(y == c))[:LABELLED] for c in (-1, 1)]
    return np.concatenate(drawn)


def find_directions(X: Array, y: Array, known: Array) -> dict[str, Array]:
    """Unit vectors of the plane on which one factor lies, noises free and held; name to (2,)."""
    from mixfold import PPCA

    half = np.full(len(y), np.nan)
    half[known] = y[known]
    found = {"PCA": PPCA(1).fit(X).components_[0]}
    held: dict[str, Any] = {"input_noise": HELD_NOISES[0], "output_noise": HELD_NOISES[1]}
    for name, noises in (("", {}), (", noises held", held)):
        found[f"SPPCA, all labelled{name}"] = _find_direction(X, y, noises)
        found[f"SPPCA, labelled points only{name}"] = _find_direction(X[known], y[known], noises)
        found[f"S2PPCA{name}"] = _find_direction(X, half, noises)
    return {name: w / np.linalg.norm(w) for name, w in found.items()}


def _find_direction(X: Array, y: Array, noises: dict[str, Any]) -> Array:
    from mixfold import SupervisedPPCA

    model = SupervisedPPCA(1, task="regression", standardize=False, max_iter=5000, tol=1e-7,
                           n_jobs=1, random_state=0, **noises)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.fit(X, y).components_[0])


def measure_angle(direction: Array) -> float:
    """The angle to the first coordinate, in degrees from 0 to 90."""
    return float(np.degrees(np.arctan2(abs(direction[1]), abs(direction[0]))))


# ------------------------------------------------ table

COLUMNS = (
    Column("mean", "mean over the draws; not judged: the source prints no numbers", form=".3g"),
    Column("median", "median over the draws; not judged", form=".2g"),
    Column("reference", "means over the draws by code that shares nothing with ours: eigenvalues "
           "by KernelPCA of scikit-learn, angles by numpy and by plain EM, "
           "the likeliest of four starts (papers/shared/plain_sppca.py)", form=".3g"),
)  # fmt: skip
VALUES = 8
STEPS = (20, 100)
# of plain EM, which is slow where noises are small; and which of its starts is likeliest counts,
# since the likelihood of few labelled points has several maxima
EM_STEPS, EM_STARTS = 4000, 4
APART, JOINED = "groups apart in the plane of axes 1, 2", "incremental: error beside a batch fit"
SQUARE = ("kernel PCA", "SPPCA", "S2PPCA, 5 of each group labelled")
NOISES_HELD = ", noises held"
# of a row that a reference has, too; how near to it: a share of an eigenvalue, degrees
REFERENCE, SAME_VALUE, SAME_ANGLE = "reference of ", 1e-6, 0.5
SAME_SPAN = 1e-6
# share of points that an axis without labels may have on the right side, as a mean over draws
UNAWARE = 0.9
NOTES = (
    "Errors are sines of the largest angle between two subspaces. EM takes long where the third "
    "eigenvalue is near the fourth: that is why its errors are told by their median.",
    "The source says that 20 steps of EM are almost the final result; of the first two axes they "
    "are, the third is often still on its way.",
    "The first three eigenvalues of the four groups are nearly equal: which mixture of them comes "
    "first is up to the draw, so kernel PCA splits the classes by chance in some.",
    "Angles are those of the direction of the columns to the first coordinate, in degrees. With "
    "noises that are learned the label is one column beside two, and S2PPCA is close to PCA.",
)


@dataclass(frozen=True, slots=True)
class Size:
    """How many draws of the points."""

    draws: int


FULL, QUICK = Size(20), Size(4)


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """All of it on every draw; the picture shows the first."""
    size = QUICK if quick else FULL
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(size.draws):
        progress(number, size.draws + 1, f"draw {number + 1} of {size.draws}")
        for row, value in measure_draw(np.random.default_rng([seed, 42, number]), number).items():
            found[row].append(value)
    progress(size.draws, size.draws + 1, "pictures")
    shown: Scenes = make_scenes(np.random.default_rng([seed, 42, 0]), 0)
    cells = _make_cells(found)
    settings = (
        ("draws of the points", str(size.draws)),
        ("three groups", f"kernel exp(-{GAMMA:g} |x - y|^2); EM with noise {NOISE}"),
        ("four groups", f"kernel exp(-{WIDTH:g} |x - y|^2), noises {KERNEL_NOISE:g}"),
        ("noises where they are held", "{:g} of columns, {:g} of the label".format(*HELD_NOISES)),
    )
    return Table(COLUMNS, cells, check_claims(found), settings, NOTES, partial(draw, shown=shown))


def measure_draw(rng: np.random.Generator, seed: int) -> dict[str, float]:
    """One draw of each toy, row by row of the table."""
    X = draw_three_groups(rng)
    exact = fit_kernel_pca(X, VALUES)
    found = {f"eigenvalue {k + 1}": float(v) for k, v in enumerate(exact.eigenvalues_)}
    theirs = KernelPCA(VALUES, kernel="rbf", gamma=GAMMA, eigen_solver="dense").fit(X)
    found |= {f"{REFERENCE}eigenvalue {k + 1}": float(v) for k, v in enumerate(theirs.eigenvalues_)}
    found[APART] = float(are_groups_apart(exact.transform(X)[:, :2]))
    for turned in run_em_steps(X, STEPS, seed, X):
        found[f"EM: error after {turned.steps} steps"] = turned.error
    grown = fit_in_batches(X)[-1].eigenvectors_
    found[JOINED] = measure_span_error(grown, exact.eigenvectors_[:, :AXES])
    X, y = draw_crossed_groups(rng)
    for name, axis in zip(SQUARE, _find_first_axes(X, y), strict=True):
        found[f"{name}: share right on axis 1"] = measure_split(axis, y)
    X, y = draw_two_classes(rng)
    known = choose_labelled(y, rng)
    for name, direction in find_directions(X, y, known).items():
        found[f"angle of {name}"] = measure_angle(direction)
    for name, direction in find_reference_directions(X, y, known).items():
        found[f"{REFERENCE}angle of {name}"] = measure_angle(direction)
    return found


def find_reference_directions(X: Array, y: Array, known: Array) -> dict[str, Array]:
    """Those of ``find_directions`` with noises that are learned, without the library."""
    everything = np.arange(len(y))
    settings = {
        "SPPCA, all labelled": (everything, False),
        "SPPCA, labelled points only": (known, False),
        "S2PPCA": (known, True),
    }
    found = {"PCA": np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]}
    for name, (rows, semi) in settings.items():
        Y = y[rows, None].astype(float)
        climbs = [
            plain_sppca.fit_by_em(X, X.shape[1], Y, rows, 1, semi=semi,
                                  rng=np.random.default_rng(start), steps=EM_STEPS)
            for start in range(EM_STARTS)
        ]  # fmt: skip
        logs = [plain_sppca.measure_log_likelihood(c, X, Y, rows, semi=semi) for c in climbs]
        found[name] = climbs[int(np.argmax(logs))].W[:, 0]
    return found


def _find_first_axes(X: Array, y: Array) -> list[Array]:
    few = np.full(len(y), -1)
    labelled = find_outermost(X)
    few[labelled] = y[labelled]
    plain = fit_kernel_pca(X, AXES, WIDTH)
    models = (plain, fit_supervised(X, y), fit_supervised(X, few))
    return [np.asarray(model.transform(X)[:, 0]) for model in models]


def _make_cells(found: Mapping[str, Sequence[float]]) -> tuple[Cell, ...]:
    cells = []
    for row, values in found.items():
        if row.startswith(REFERENCE):
            continue
        cells += [Cell(row, "mean", tuple(values)), Cell(row, "median", (median(values),))]
        if REFERENCE + row in found:
            cells.append(Cell(row, "reference", tuple(found[REFERENCE + row])))
    return tuple(cells)


# ------------------------------------------------ claims


def check_claims(found: Mapping[str, Sequence[float]]) -> tuple[Check, ...]:
    """What the figures show, as claims about the draws."""
    return (
        _check_like_reference(found),
        _check_always("the first two axes tell the groups apart (figure 4.2)", found[APART]),
        _check_steps(*(median(found[f"EM: error after {n} steps"]) for n in STEPS)),
        _check_joined(found[JOINED]),
        _check_square(*(found[f"{name}: share right on axis 1"] for name in SQUARE)),
        _check_order(found),
    )


def _check_always(claim: str, held: Sequence[float]) -> Check:
    return Check(claim, all(held), f"in {sum(map(bool, held))} of {len(held)} draws")


def _check_steps(early: float, late: float) -> Check:
    claim = "EM is on its way after 20 steps (error above 0.01) and there after 100 (below 0.01)"
    return Check(claim, early > 0.01 > late, f"medians {early:.2g} and {late:.1e} (figure 5.2)")


def _check_joined(errors: Sequence[float]) -> Check:
    claim = "points that come in batches give the axes of all of them together (figure 5.4)"
    return Check(claim, max(errors) <= SAME_SPAN, f"largest error {max(errors):.1e}")


def _check_square(
    plain: Sequence[float], all_of_them: Sequence[float], few: Sequence[float]
) -> Check:
    right = [min(pair) == 1.0 for pair in zip(all_of_them, few, strict=True)]
    mean = float(np.mean(plain))
    claim = "the first axis splits the classes with labels, not without (figures 7.3 and 7.4)"
    detail = f"with labels in {sum(right)} of {len(right)} draws; kernel PCA has {mean:.0%} right"
    return Check(claim, all(right) and mean < UNAWARE, detail)


def _check_like_reference(found: Mapping[str, Sequence[float]]) -> Check:
    """Draw by draw."""
    apart = {}
    for name, theirs in found.items():
        row = name.removeprefix(REFERENCE)
        if row != name:
            gap = np.abs(np.subtract(found[row], theirs))
            allowed = SAME_ANGLE if row.startswith("angle") else SAME_VALUE * np.abs(theirs)
            apart[row] = float((gap / allowed).max())
    worst = max(apart, key=lambda row: apart[row])
    claim = "eigenvalues are those of scikit-learn, angles those of plain EM within half a degree"
    return Check(claim, apart[worst] <= 1, f"nearest to a limit: {worst}, {apart[worst]:.1g} of it")


def _check_order(found: Mapping[str, Sequence[float]]) -> Check:
    """S2PPCA between the two, as the source draws it."""
    names = ("PCA", f"S2PPCA{NOISES_HELD}", f"SPPCA, all labelled{NOISES_HELD}")
    rows = zip(*(found[f"angle of {name}"] for name in names), strict=True)
    held = [float(a < b < c) for a, b, c in rows]
    return _check_always("noises held: the angle of S2PPCA is between PCA and SPPCA", held)


# ------------------------------------------------ picture
# The toy figures of Yu (2006) redrawn: values on axes as contours over the plane.

SHOWN_STEPS = (1, 5, 20, 100)
RED, BLUE, GREY = "#c23b22", "#1f5fa8", "0.45"
# half-widths of the windows
_NEAR, _FAR, _ACROSS = (1.0, 1.1), (4.0, 4.0), (5.2, 3.1)
_CELLS = 70


@dataclass(frozen=True, slots=True)
class Panel:
    """Values (cells, cells) over a window, and the points that were seen, with their colours."""

    title: str
    values: Array
    half: tuple[float, float]
    points: Array
    colours: Sequence[str]


@dataclass(frozen=True, slots=True)
class Scenes:
    """All panels: rows of panels under the name of a figure, and the directions of 7.2."""

    panels: dict[str, list[list[Panel]]]
    points: Array
    classes: Array
    labelled: Array
    directions: dict[str, Array]


def make_grid(half: tuple[float, float]) -> Array:
    """Points of a window, row by row, (cells^2, 2)."""
    x, y = (np.linspace(-h, h, _CELLS) for h in half)
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def make_scenes(rng: np.random.Generator, seed: int) -> Scenes:
    """One draw of every toy, with what is shown of it."""
    X = draw_three_groups(rng)
    panels = {
        "4.2: the first eight components of kernel PCA": _make_component_panels(X),
        "5.2: EM, the best axes of its span": _make_step_panels(X, seed),
        "5.4: two groups, then batches of ten points": _make_batch_panels(X),
    }
    square, y = draw_crossed_groups(rng)
    few = np.full(len(y), -1)
    few[find_outermost(square)] = y[find_outermost(square)]
    known = few >= 0
    panels["7.3: all points labelled"] = [
        _make_axis_panels("kernel PCA", fit_kernel_pca(square, AXES, WIDTH), square, y),
        _make_axis_panels("SPPCA", fit_supervised(square, y), square, y),
    ]
    panels["7.4: five points of each group labelled"] = [
        _make_axis_panels("SPPCA", fit_supervised(square[known], y[known]), square, few),
        _make_axis_panels("S2PPCA", fit_supervised(square, few), square, few),
    ]
    points, classes = draw_two_classes(rng)
    known = choose_labelled(classes, rng)
    return Scenes(panels, points, classes, known, find_directions(points, classes, known))


def _make_component_panels(X: Array) -> list[list[Panel]]:
    model = fit_kernel_pca(X, 8)
    values = model.transform(make_grid(_NEAR))
    panels = [
        _make_near_panel(f"axis {k + 1}, eigenvalue {model.eigenvalues_[k]:.2f}", values[:, k], X)
        for k in range(8)
    ]
    return [panels[:4], panels[4:]]


def _make_step_panels(X: Array, seed: int) -> list[list[Panel]]:
    points = make_grid(_NEAR)
    states = run_em_steps(X, SHOWN_STEPS, seed, points)
    titles = [f"{s.steps} steps, error {s.error:.1g}" for s in states]
    columns = [*(s.values for s in states), fit_kernel_pca(X, AXES).transform(points)]
    return _arrange_by_axis([*titles, "exact"], columns, [X] * len(columns))


def _make_batch_panels(X: Array) -> list[list[Panel]]:
    points, models = make_grid(_NEAR), fit_in_batches(X)
    columns = [model.transform(points) for model in models]
    columns.append(fit_kernel_pca(X, AXES).transform(points))
    counts = [len(X) - EACH + BATCH * i for i in range(len(models))]
    titles = [f"{n} points" for n in counts] + [f"{len(X)} at once"]
    return _arrange_by_axis(titles, columns, [X[:n] for n in [*counts, len(X)]])


def _arrange_by_axis(
    titles: Sequence[str], columns: Sequence[Array], points: Sequence[Array]
) -> list[list[Panel]]:
    """A row for each axis; signs are those of the last column."""
    rows = []
    for k in range(AXES):
        last = columns[-1][:, k]
        signs = [np.sign(values[:, k] @ last) or 1.0 for values in columns]
        rows.append([
            _make_near_panel(title if k == 0 else "", sign * values[:, k], X)
            for title, values, sign, X in zip(titles, columns, signs, points, strict=True)
        ])  # fmt: skip
    return rows


def _make_near_panel(title: str, values: Array, X: Array) -> Panel:
    return Panel(title, values.reshape(_CELLS, _CELLS), _NEAR, X, ["0.1"] * len(X))


def _make_axis_panels(name: str, model: Any, X: Array, y: Array) -> list[Panel]:
    """The values on each axis; axes point to the red class where that has a meaning."""
    values = np.array(model.transform(make_grid(_FAR)))
    colours = [{1: RED, 0: BLUE}.get(int(label), GREY) for label in y]
    mine = model.transform(X)
    known = y >= 0
    values *= np.where((mine[known] * (y[known, None] - 0.5)).sum(axis=0) < 0, -1.0, 1.0)
    return [
        Panel(f"{name}, axis {k + 1}", values[:, k].reshape(_CELLS, _CELLS), _FAR, X, colours)
        for k in range(AXES)
    ]


# ------------------------------------------------ drawing


def draw(figure: Figure, shown: Scenes) -> None:
    """All figures, one below or beside the other."""
    figure.set_size_inches(15, 20)
    parts: Any = figure.subfigures(4, 1, height_ratios=[7.2, 5.6, 7.2, 5.2])
    first, second, third, fourth = parts
    names = list(shown.panels)
    places = [first, *second.subfigures(1, 2), *third.subfigures(1, 2)]
    for place, name in zip(places, names, strict=True):
        _draw_figure(place, name, shown.panels[name])
    _draw_directions(fourth, shown)


def _draw_figure(place: SubFigure, name: str, rows: Sequence[Sequence[Panel]]) -> None:
    place.suptitle(f"Figure {name}", fontsize=11, fontweight="bold")
    axes = place.subplots(len(rows), len(rows[0]), squeeze=False)
    for line, panels in zip(axes, rows, strict=True):
        for ax, panel in zip(line, panels, strict=True):
            _draw_panel(ax, panel)
    if len(rows) == AXES:
        for k, line in enumerate(axes):
            line[0].set_ylabel(f"axis {k + 1}", fontsize=9)


def _draw_panel(ax: Axes, panel: Panel) -> None:
    (w, h), values = panel.half, panel.values
    extent = (-w, w, -h, h)
    ax.imshow(values, origin="lower", extent=extent, cmap="gray", aspect="auto", alpha=0.75,
              interpolation="bilinear")  # fmt: skip
    ax.contour(values, 9, extent=extent, colors="#2f7fb8", linewidths=0.7, linestyles="solid")
    sizes = [
        10 if colour == GREY else 16 if colour in (RED, BLUE) else 8 for colour in panel.colours
    ]
    x, y = panel.points.T
    ax.scatter(x, y, s=sizes, c=panel.colours, linewidths=0.4, edgecolors="white")
    ax.set_title(panel.title, fontsize=9)
    ax.set(xticks=[], yticks=[], xlim=(-w, w), ylim=(-h, h))


def _draw_directions(place: SubFigure, shown: Scenes) -> None:
    place.suptitle(
        "Figure 7.2: directions of one factor (large points: the labelled ones of S2PPCA)",
        fontsize=11,
        fontweight="bold",
    )
    free, held = place.subplots(1, 2)
    for ax, suffix in ((free, ""), (held, ", noises held")):
        for c, colour in ((-1, BLUE), (1, RED)):
            ax.scatter(*shown.points[shown.classes == c].T, s=8, c=colour, alpha=0.4)
            known = shown.labelled[shown.classes[shown.labelled] == c]
            ax.scatter(*shown.points[known].T, s=34, c=colour, edgecolors="0.1", linewidths=0.8)
        for name, (colour, line) in _LINES.items():
            w = shown.directions[name if name == "PCA" else f"{name}{suffix}"]
            angle = measure_angle(w)
            ax.axline((0, 0), w, color=colour, ls=line, lw=2, label=f"{name}: {angle:.0f}°")
        ax.set_title("noises held" if suffix else "noises learned", fontsize=10)
        ax.set_xlabel("first coordinate", fontsize=9)
        ax.set_ylabel("second coordinate", fontsize=9)
        ax.set(xlim=(-_ACROSS[0], _ACROSS[0]), ylim=(-_ACROSS[1], _ACROSS[1]), aspect="equal")
        ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)


_LINES = {
    "PCA": ("#2b2b2b", "-"),
    "S2PPCA": ("#2f8f4e", "-"),
    "SPPCA, labelled points only": ("#e0a030", "--"),
    "SPPCA, all labelled": ("#8a5aa8", "-"),
}

EXPERIMENT = Experiment(
    name="kernel-toys",
    title="Kernel PCA, by EM and by batches, and supervised kernel PPCA on points of the plane",
    source="Yu 2006",
    place="figures 4.2, 5.2, 5.4, 7.2-7.4",
    protocol=(
        "Points are drawn as the source says, several times. Three round groups of 30 (figure "
        "4.2): eigenvalues of the centred rbf kernel matrix, and whether the first two axes tell "
        "the groups apart; plain EM with three axes from random latents (5.2); two groups first, "
        "then the third in batches of ten (5.4). Four groups of 25 around the corners of a "
        "square, opposite ones of one class: the share of points on the right side of the best "
        "threshold on the first axis, for kernel PCA, for supervised PPCA with all labels (7.3) "
        "and with those of the five outermost points of each group (7.4). Two classes of 100, "
        "wide across and narrow along what tells them apart: the direction of one factor with "
        "and without labels (7.2). Contours in the picture are those of the value on an axis."
    ),
    data=(),
    run=run,
)
