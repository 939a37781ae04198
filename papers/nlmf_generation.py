"""Arngren (2007), section 5.3.1: digits of a wanted class, by the published prior and by others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array
from mixfold.plots import plot_generated
from papers.frame.experiment import Experiment, Progress
from papers.frame.table import Cell, Check, Column, Table
from papers.nlmf import LAYERS, SMALL
from papers.shared import mnist_digits
from papers.shared.digit_judges import NEIGHBOUR, Quality, judge_images, train_judge
from papers.shared.mnist_digits import SHAPE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# ------------------------------------------------ table

# settings of DeepFactorNetwork.generate by what the table calls them
LAPLACE = {
    "Laplace, until p > 0.9": {"prior": "laplace", "keep": 0.9},
    "Laplace, until p > 0.999": {"prior": "laplace", "keep": 0.999},
    "Laplace, until p is 1 (the source)": {"prior": "laplace", "keep": 1 - 1e-6},
}
MIXTURE, KEPT = "mixture of factor analyzers", "mixture, kept if p > 0.9"
WAYS: dict[str, dict[str, Any]] = {
    **LAPLACE,
    "prototype": {"prior": "prototype"},
    "one Gaussian": {"prior": "gaussian"},
    MIXTURE: {"prior": "mixture"},
    KEPT: {"prior": "mixture", "keep": 0.9},
}
REBUILT, REAL = "real digits, rebuilt", "real digits"
DRAWN = (*list(LAPLACE)[::2], "one Gaussian", MIXTURE, KEPT, REAL)
_OWN = "no published number"
COLUMNS = (
    Column(
        "recognised",
        f"share that a classifier of real digits gives the wanted class; {_OWN}",
        unit="%",
        form=".1f",
    ),
    Column(
        "diversity",
        f"mean distance of two digits of a class, as a share of that of real ones; {_OWN}",
        form=".3f",
    ),
    Column(
        "coverage",
        "share of real digits that have a generated one nearer than their "
        f"{NEIGHBOUR}th real neighbour of the class; {_OWN}",
        unit="%",
        form=".1f",
    ),
)
NOTES = (
    "Given the class, the source's problem is convex in f(s): wherever the search begins, it ends "
    "at one digit for each class if it is let (the prototype), and near its start if it is stopped "
    "early. So its digits are noise that the classifier takes for the class, or all alike.",
    "Sources keep what most digits have in common, so that rebuilt digits are smooth: they are "
    "nearer to each other than real ones, and to real ones than these are among themselves. What "
    "can be had in diversity and coverage is what the row of rebuilt digits has.",
    "The judge has seen no digit that a generator learned from, nor those that are compared with.",
    "A high share of recognised digits alone says little: the prototype has it too.",
)
# the most that the judge may miss, and how near shares of recognised digits are the same
MOST_JUDGE_ERROR, SAME = 0.05, 0.02


@dataclass(frozen=True, slots=True)
class Size:
    """Digits of each class that generators and judge learn from, and that are made of each."""

    train: int
    judge: int
    made: int


FULL, QUICK = Size(1000, 1000, 200), Size(150, 150, 40)


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Fit the generator, make digits with every prior, and judge them."""
    size = QUICK if quick else FULL
    steps = ("generator", *WAYS, "judge")
    parts = _divide_digits(mnist_digits.load_digits(data_folder), size)
    progress(0, len(steps), steps[0])
    began = time.perf_counter()
    model = fit_generator(parts["train"], seed)
    made, seconds = {}, {"fit": time.perf_counter() - began}
    for done, (name, way) in enumerate(WAYS.items(), 1):
        progress(done, len(steps), name)
        began = time.perf_counter()
        made[name] = _make_digits(model, way, size.made, seed)
        seconds[name] = time.perf_counter() - began
    progress(len(steps) - 1, len(steps), "judge")
    judge = train_judge(parts["judge"].X, parts["judge"].y)
    real = parts["real"].by_class(size.made)
    made[REAL] = parts["others"].by_class(size.made)
    made[REBUILT] = {digit: model.reconstruct(rows) for digit, rows in made[REAL].items()}
    found = {name: judge_images(judge, images, real) for name, images in made.items()}
    error = 1 - judge.right(parts["official"].X, parts["official"].y)
    progress(len(steps), len(steps), "done")
    return _make_table(found, error, made, size, seconds)


def fit_generator(train: mnist_digits.Labelled, seed: int) -> Any:
    """The source's network of two layers."""
    from mixfold import DeepFactorNetwork

    model = DeepFactorNetwork(LAYERS, supervised="each", fine_tune=None, random_state=seed, **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few steps are on purpose
        return model.fit(train.X, train.y)


def _make_digits(model: Any, way: dict[str, Any], n: int, seed: int) -> dict[int, Array]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a prior of few digits may touch the floor of its noise
        return {
            digit: np.asarray(model.generate(digit, n, random_state=seed + 1000 * digit, **way))
            for digit in range(mnist_digits.CLASSES)
        }


def _divide_digits(digits: mnist_digits.Digits, size: Size) -> dict[str, mnist_digits.Labelled]:
    """No digit is in two of them."""
    ends = np.cumsum([0, size.train, size.judge, size.made, size.made])
    names = ("train", "judge", "real", "others")
    parts = {
        name: digits.each(int(a), int(b))
        for name, a, b in zip(names, ends[:-1], ends[1:], strict=True)
    }
    return parts | {"official": digits.official.first(2000)}


def _make_table(
    found: Mapping[str, Quality],
    error: float,
    made: Mapping[str, Mapping[int, Array]],
    size: Size,
    seconds: Mapping[str, float],
) -> Table:
    cells = tuple(
        Cell(name, column.name, (value,))
        for name, one in found.items()
        for column, value in zip(
            COLUMNS, (100 * one.recognised, one.diversity, 100 * one.coverage), strict=True
        )
    )
    settings = (
        (
            "network",
            f"{' - '.join(map(str, (mnist_digits.PIXELS, *LAYERS)))}, the settings of table 5.3",
        ),
        (
            "digits of each class",
            f"{size.train} for the network, {size.judge} for the judge, "
            f"{size.made} made, as many real ones beside them",
        ),
        ("seconds", ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())),
        ("error of the judge", f"{100 * error:.2f} % of 2000 official test digits"),
    )
    picture = partial(draw_generated, made={name: made[name] for name in DRAWN})
    return Table(COLUMNS, cells, check_claims(found, error), settings, NOTES, picture)


def check_claims(found: Mapping[str, Quality], error: float) -> tuple[Check, ...]:
    """The mixture repairs what the source's prior does not give."""
    ours, theirs = found[MIXTURE], [found[name] for name in LAPLACE]
    both = [
        one for one in theirs
        if one.recognised >= ours.recognised and one.diversity >= ours.diversity
    ]  # fmt: skip
    told = "; ".join(f"{100 * one.recognised:.1f} % and {one.diversity:.2f}" for one in theirs)
    most = max(one.coverage for one in theirs)
    return (
        Check(
            f"the judge misses at most {100 * MOST_JUDGE_ERROR:g} % of real digits",
            error <= MOST_JUDGE_ERROR,
            f"{100 * error:.2f} %",
        ),
        Check(
            "wherever its search stops, the Laplace prior does not give as many digits that are "
            "recognised and as much diversity as the mixture",
            not both,
            f"{100 * ours.recognised:.1f} % and {ours.diversity:.2f} against {told}",
        ),
        Check(
            "the mixture covers more of the real digits",
            ours.coverage > most,
            f"{100 * ours.coverage:.1f} against at most {100 * most:.1f} %",
        ),
        Check(
            "digits of the mixture that the network is sure of are recognised as real ones are",
            found[KEPT].recognised >= found[REAL].recognised - SAME,
            f"{100 * found[KEPT].recognised:.1f} against {100 * found[REAL].recognised:.1f} %",
        ),
    )


# ------------------------------------------------ picture
# Sheets of generated digits.


def draw_generated(figure: Figure, made: Mapping[str, Mapping[int, Array]], size: int = 6) -> None:
    """A sheet for each way to make digits, a row for each digit."""
    figure.set_size_inches(2.9 * len(made) + 0.4, 5.4)
    for ax, (name, images) in zip(
        np.ravel(figure.subplots(1, len(made))), made.items(), strict=True
    ):
        plot_generated(images, SHAPE, n=size, ax=ax)
        ax.set_title(name, fontsize=9)


EXPERIMENT = Experiment(
    name="nlmf-generation",
    title="Digits made by a network of two factor layers, with several priors of its sources",
    source="Arngren 2007",
    place="section 5.3.1",
    protocol=(
        "A network of two layers (the settings of table 5.3) learns 1,000 digits of each class. "
        "Then it makes digits of a wanted class: with the source's way (sources drawn from the "
        "Laplace prior, then moved until the classifier is sure enough), its end point from zero "
        "(the prototype), and sources drawn from a Gaussian or a mixture of factor analyzers that "
        "was fitted to the sources of the class without labels. A support vector machine that was "
        "trained on other real digits says how many are recognised; distances say how unlike each "
        "other they are, and how many real digits have one of them near. Pixels below 0 and above "
        "1 are cut."
    ),
    data=(mnist_digits.FILE,),
    run=run,
)
