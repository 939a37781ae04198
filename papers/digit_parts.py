"""Arngren (2007), chapter 3: twos as sums of parts, and mixtures of the amounts of parts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mixfold import (
    DegenerateWarning,
    GaussianMixture,
    MatrixFactorization,
    MixtureOfFactorAnalyzers,
    NestedMixture,
    sample_codebook,
)
from mixfold.contracts import Array
from papers.frame.checks import check_growth
from papers.frame.experiment import Experiment, Progress
from papers.frame.table import Cell, Check, Column, Table
from papers.shared import mnist_digits
from papers.shared.digit_judges import Judge, judge_images, train_judge
from papers.shared.mnist_digits import CLASSES, SHAPE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DIGIT, DRAWN = 2, 200
ERROR = Column("e_r", "half squared error of a two that is rebuilt, as many parts as d", form=".2f")
TRAIN = Column(
    "log-likelihood", "mean over training sources, nats; the source has it in figures", form=".2f"
)
HELD = Column("held out", "the same of twos that were not learned from", form=".2f")
RECOGNISED = Column(
    "recognised", f"of {DRAWN} drawn twos, by a classifier of other digits", "%", form=".0f"
)
COVERED = Column(
    "covered", "real twos with a drawn one among their near neighbours", "%", form=".0f"
)
COLUMNS = (ERROR, TRAIN, HELD, RECOGNISED, COVERED)
NOTES = (
    "The source judges by eye and prints no number; drawn digits are judged here by a support "
    "vector machine that has seen other digits, and by how many real twos have one near them.",
    "Log-likelihoods of sources are comparable at one d only: the sources are other numbers.",
    "Sources of parts that are not used are exactly zero, and a variance of zeros is bounded from "
    "below (reg_covar), so a log-likelihood grows with every component that has such a part.",
    "Curves by step are those of plain EM from random rows; the fits begin with the best of "
    "many starts, near where they end.",
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much of it is run: twos, sizes of codebooks, components, factors, steps."""

    rows: int
    codebooks: tuple[int, ...]
    mixed: dict[int, tuple[int, ...]]
    factors: tuple[int, ...]
    pixels: int
    part_steps: int
    steps: int


FULL = Size(
    5000,
    (10, 20, 30, 40, 50, 100, 200),
    {30: (10, 20, 30, 50, 100, 200, 500), 100: (10, 20, 30, 50, 100)},
    (5, 8, 10, 15, 20, 25),
    10,
    200,
    500,
)
QUICK = Size(800, (10, 30), {30: (1, 3, 10)}, (3, 8), 1, 25, 25)
# the codebook that factors, kinds of covariance and groups are shown of, and its components
SMALL, COMPONENTS, GROUPS = 30, 10, (5, 8)
KINDS = ("spherical", "diag", "full")


@dataclass(frozen=True, slots=True)
class Twos:
    """Twos to learn from, and others."""

    train: Array
    held: Array


@dataclass(frozen=True, slots=True)
class Found:
    """What one model of the sources, or of the pixels, came to."""

    train: float
    held: float
    images: Array
    trace: Array
    leaves: float | None = None


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Parts by d; sums of one part of each group; mixtures of pixels and of sources."""
    size = QUICK if quick else FULL
    digits = mnist_digits.load_digits(data_folder)
    twos = digits.training.X[digits.training.y == DIGIT][: size.rows]
    half = max(40, len(twos) // 5)
    data = Twos(twos[:-half], twos[-half:])
    judge = train_judge(digits.official.X[:3000], digits.official.y[:3000])
    plan = _list_fits(size)
    total = len(size.codebooks) + len(plan) + 1
    parts = {}
    for step, d in enumerate(size.codebooks):
        progress(step, total, f"{d} parts")
        parts[d] = fit_parts(data.train, d, seed, size.part_steps)
    sources = {d: (m.transform(data.train), m.transform(data.held)) for d, m in parts.items()}
    found = {}
    for step, (row, (d, model)) in enumerate(plan.items(), len(size.codebooks)):
        progress(step, total, row)
        found[row] = fit_density(model, parts.get(d), sources.get(d), data, seed)
    drawn = {
        f"one part of each of {groups} groups": _draw_sums(
            parts[SMALL], sources[SMALL][0], groups, seed
        )
        for groups in GROUPS
    }
    progress(total, total, "done")
    cells = [
        Cell(f"d = {d}", ERROR.name, (float(model.reconstruction_error(data.held)),))
        for d, model in parts.items()
    ]
    for row, one in found.items():
        cells += [Cell(row, TRAIN.name, (one.train,)), Cell(row, HELD.name, (one.held,))]
    for row, images in {**drawn, **{row: one.images for row, one in found.items()}}.items():
        cells += _judge(row, images, data.held, judge)
    settings = (("twos", f"{len(data.train)} to learn from, {len(data.held)} held out"),)
    features = {
        digit: fit_parts(
            digits.training.X[digits.training.y == digit][:500], 10, seed, size.part_steps
        )
        for digit in range(0, CLASSES, 2 if quick else 1)
    }
    picture = partial(draw, parts, data, features, drawn, found)
    return Table(COLUMNS, tuple(cells), check_claims(cells, found, size), settings, NOTES, picture)


def fit_parts(X: Array, d: int, seed: int, steps: int) -> MatrixFactorization:
    """Non-negative matrix factorisation with d parts."""
    parts = MatrixFactorization(
        d, link="identity", nonneg_codebook=True, nonneg_sources=True, fit_bias=False,
        max_iter=steps, random_state=seed,
    )  # fmt: skip
    return _fit_quietly(parts, X)


def _fit_quietly(model: Any, X: Array) -> Any:
    """As many steps as the table says, and components that few rows leave without any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DegenerateWarning)
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X)


def _list_fits(size: Size) -> dict[str, tuple[int, Any]]:
    """Row: the codebook, 0 for pixels, and the density."""
    common: dict[str, Any] = {"max_iter": size.steps, "random_state": 0}
    fits: dict[str, tuple[int, Any]] = {
        f"pixels, K = {size.pixels}": (0, GaussianMixture(size.pixels, max_iter=size.steps // 4))
    }
    for kind in KINDS:
        row = f"d = {SMALL}, {kind}, K = {COMPONENTS}"
        fits[row] = (SMALL, GaussianMixture(COMPONENTS, covariance_type=kind, **common))
    for d, several in size.mixed.items():
        for K in several:
            fits[f"d = {d}, full, K = {K}"] = (d, GaussianMixture(K, **common))
    for q in size.factors:
        fits[f"d = {SMALL}, K = {COMPONENTS}, d' = {q}"] = (
            SMALL, MixtureOfFactorAnalyzers(COMPONENTS, q, tied=("noise",), **common),
        )  # fmt: skip
    fits[f"d = {SMALL}, two layers, {COMPONENTS // 2} x 2"] = (
        SMALL, NestedMixture(COMPONENTS // 2, 2, **common),
    )  # fmt: skip
    return fits


def fit_density(
    model: Any, parts: Any, sources: tuple[Array, Array] | None, data: Twos, seed: int
) -> Found:
    """Fit a density to sources (or, without parts, to pixels), and draw twos from it."""
    train, held = (data.train, data.held) if sources is None else sources
    model = _fit_quietly(model, train)
    rows = model.sample(DRAWN, random_state=seed)[0]
    images = rows if parts is None else parts.inverse_transform(np.maximum(rows, 0))
    trace = trace_plain_steps(model, train)
    leaves = None
    if isinstance(model, NestedMixture):
        leaves = abs(float(model.score(held)) - score_leaves(model, held))
    return Found(float(model.score(train)), float(model.score(held)), images, trace, leaves)


def score_leaves(model: NestedMixture, X: Array) -> float:
    """Mean log-density of the flat mixture of all leaves, by scipy."""
    parts = [
        np.log(weight) + multivariate_normal(mean, covariance).logpdf(X)
        for weight, mean, covariance in zip(
            model.leaf_weights_, model.means_, model.covariances_, strict=True
        )
    ]
    return float(np.mean(logsumexp(parts, axis=0)))


def trace_plain_steps(model: Any, train: Array) -> Array:
    """The log-likelihood by step of plain EM from random rows, as the source runs it.

    The fits themselves begin with the best of many starts, near where they end.
    """
    plain = clone(model)
    if "acceleration" not in plain.get_params() or isinstance(plain, NestedMixture):
        return np.asarray(model.lower_bounds_)
    plain.set_params(init_params="random_from_data", acceleration=None)
    return np.asarray(_fit_quietly(plain, train).lower_bounds_)


def _draw_sums(parts: Any, sources: Array, groups: int, seed: int) -> Array:
    """Twos of one part of each group, each as strong as it is where it is used."""
    used = (sources > 0).sum(axis=0)
    amounts = sources.sum(axis=0) / np.maximum(used, 1)
    return np.asarray(sample_codebook(parts, DRAWN, groups, amounts=amounts, random_state=seed).X)


def _judge(row: str, images: Array, held: Array, judge: Judge) -> list[Cell]:
    n = min(len(images), len(held))
    quality = judge_images(judge, {DIGIT: images[:n]}, {DIGIT: held[:n]})
    return [
        Cell(row, RECOGNISED.name, (100 * quality.recognised,)),
        Cell(row, COVERED.name, (100 * quality.coverage,)),
    ]


def check_claims(
    cells: Sequence[Cell], found: Mapping[str, Found], size: Size
) -> tuple[Check, ...]:
    """What the source sees in its figures."""
    by_place = {(cell.row, cell.column): cell for cell in cells}
    errors = [by_place[f"d = {d}", ERROR.name] for d in size.codebooks]
    checks = [check_growth("the error falls with d (figure 3.6)", [errors[::-1]])]
    series = [
        [by_place[f"d = {d}, full, K = {K}", TRAIN.name] for K in several]
        for d, several in size.mixed.items()
    ]
    checks.append(check_growth("the log-likelihood grows with K (3.35, 3.41)", series))
    factors = [
        by_place[f"d = {SMALL}, K = {COMPONENTS}, d' = {q}", TRAIN.name] for q in size.factors
    ]
    checks.append(check_growth("the log-likelihood grows with d' (3.47)", [factors]))
    kinds = [by_place[f"d = {SMALL}, {kind}, K = {COMPONENTS}", COVERED.name] for kind in KINDS]
    checks.append(
        check_growth(
            "full covariances draw better twos than spherical ones (3.29, 3.33)",
            [[kinds[0], kinds[-1]]],
        )
    )
    sums = [by_place[f"one part of each of {groups} groups", COVERED.name] for groups in GROUPS]
    checks.append(
        check_growth(
            "one part of each group draws worse twos than any mixture (3.11, 3.15)",
            [[worst, kind] for worst in sums for kind in kinds],
        )
    )
    falls = min(float(np.diff(one.trace).min(initial=0.0)) for one in found.values())
    checks.append(Check("no step of EM lowers it (3.34, 3.46)", falls > -1e-6, f"{falls:.1e}"))
    checks += [_check_leaves(one) for one in found.values() if one.leaves is not None]
    return tuple(checks)


def _check_leaves(nested: Found) -> Check:
    """Equation 3.4: with weights of both layers it is one mixture of all leaves."""
    assert nested.leaves is not None
    claim = "two layers have the density of one mixture of their leaves (equation 3.4)"
    return Check(claim, nested.leaves < 1e-6, f"difference {nested.leaves:.0e} nats")


# ------------------------------------------------ picture


def draw(
    parts: Mapping[int, Any],
    data: Twos,
    features: Mapping[int, Any],
    drawn: Mapping[str, Array],
    found: Mapping[str, Found],
    figure: Figure,
) -> None:
    """Parts and errors by d; drawn twos of every kind; log-likelihoods by step, K and d'."""
    figure.set_size_inches(13, 15)
    axes = figure.subplots(4, 3)
    shown = np.concatenate([model.components_[:10] for model in features.values()])
    _draw_images(axes[0, 0], shown, 10, "10 parts of each digit (figure 3.3)")
    some = [model.components_[:10] for model in parts.values()]
    _draw_images(axes[0, 1], np.concatenate(some), 10, f"parts of twos, d = {[*parts]} (3.4)")
    back = [data.held[:10], *(m.reconstruct(data.held[:10]) for m in parts.values())]
    _draw_images(axes[0, 2], np.concatenate(back), 10, "twos, and rebuilt by d (3.5)")
    axes[1, 0].plot([*parts], [m.reconstruction_error(data.held) for m in parts.values()], "o-")
    axes[1, 0].set_title("error of rebuilt twos by d (3.6)", fontsize=9)
    for d, model in parts.items():
        axes[1, 1].plot(-np.asarray(model.lower_bounds_), label=f"d = {d}", lw=1)
    axes[1, 1].set(xscale="log", yscale="log")
    axes[1, 1].set_title("cost by iteration (3.2)", fontsize=9)
    axes[1, 1].legend(fontsize=7, frameon=False)
    sums = np.concatenate([images[:20] for images in drawn.values()])
    _draw_images(axes[1, 2], sums, 10, "one part of each of 5, of 8 groups (3.11, 3.15)")
    rows = [row for row in found if row.startswith("pixels")]
    rows += [f"d = {SMALL}, {kind}, K = {COMPONENTS}" for kind in KINDS]
    _draw_images(
        axes[2, 0], np.concatenate([found[row].images[:10] for row in rows]), 10,
        "pixels; sources: spherical, diagonal, full (3.24 to 3.33)",
    )  # fmt: skip
    factors = [row for row in found if "d' = " in row]
    _draw_images(
        axes[2, 1], np.concatenate([found[row].images[:10] for row in factors]), 10,
        f"factor analysers, d' = {', '.join(row.rpartition(' ')[2] for row in factors)} (3.48)",
    )  # fmt: skip
    nested = [row for row in found if "layers" in row]
    _draw_images(axes[2, 2], found[nested[0]].images[:30], 10, "two layers (equation 3.4)")
    full = [row for row in found if ", full, K" in row]
    for row in full:
        axes[3, 0].plot(found[row].trace[1:], label=row, lw=1)
    axes[3, 0].set_title("log-likelihood by step (3.34, 3.40)", fontsize=9)
    axes[3, 0].legend(fontsize=6, frameon=False)
    _draw_ends(axes[3, 1], full, found, "by K (3.35, 3.41)")
    _draw_ends(axes[3, 2], factors, found, "by d' (3.47)")
    for ax in axes.flat:
        ax.tick_params(labelsize=7)


def _draw_images(ax: Axes, images: Array, columns: int, title: str) -> None:
    from mixfold.plots import plot_images

    inverted = 1 - images.clip(0) / np.maximum(images.max(axis=1, keepdims=True), 1e-9)
    plot_images(inverted, SHAPE, columns=columns, scale=(0, 1), ax=ax)
    ax.set_title(title, fontsize=9)


def _draw_ends(ax: Axes, rows: Sequence[str], found: Mapping[str, Found], title: str) -> None:
    books = sorted({row.partition(",")[0] for row in rows})
    for j, book in enumerate(books):
        mine = [row for row in rows if row.startswith(f"{book},")]
        places = [int(row.rpartition(" ")[2]) for row in mine]
        order = np.argsort(places)
        for values, style, name in (
            ([found[row].train for row in mine], "o-", "training"),
            ([found[row].held for row in mine], "s--", "held out"),
        ):
            ax.plot(np.take(places, order), np.take(values, order), style, color=f"C{j}",
                    label=f"{book}, {name}", ms=4)  # fmt: skip
    ax.set_title(f"final log-likelihood {title}", fontsize=9)
    ax.legend(fontsize=7, frameon=False)


EXPERIMENT = Experiment(
    name="digit-parts",
    title="Twos by parts: codebooks, sums of parts, mixtures of pixels and of sources",
    source="Arngren 2007",
    place="chapter 3",
    protocol=(
        "Twos of the official training part, values 0 to 1. Non-negative matrix factorisation "
        "(MatrixFactorization) with d parts: features, cost by iteration, error by d (figures 3.2 "
        "to 3.6). Twos as sums of one part of each of K groups (sample_codebook, 3.7 to 3.22). "
        "Gaussian mixtures of the pixels (3.23 to 3.27) and of the sources, by kind of covariance "
        "and by K (3.28 to 3.45), mixtures of factor analysers of the sources by d' (3.46 to "
        "3.57), and a mixture of two layers (equation 3.4): log-likelihoods of training and of "
        "other twos, and drawn twos. The source judges them by eye."
    ),
    data=(mnist_digits.FILE,),
    run=run,
)
