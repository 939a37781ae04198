"""Arngren (2007), section 4.1: a deep belief net on all digits, a machine with labels on fewer."""

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
from mixfold.plots import plot_codebook, plot_generated, plot_misclassified
from papers.frame.experiment import Experiment, Progress
from papers.frame.table import Best, Cell, Check, Column, Table, Tolerance
from papers.shared import mnist_digits
from papers.shared.digit_judges import measure_recognised, train_judge
from papers.shared.mnist_digits import SHAPE, Labelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# ------------------------------------------------ table

# what the deep belief net of the literature reached (784-500-500-2000) and what ours must
PUBLISHED, MOST = 1.25, 0.02
MACHINE_UNITS = 300
UNITS_SHOWN, MADE, LEAST_RECOGNISED = 100, 10, 0.8
OFFICIAL = Column(
    "official",
    "error on the official test part; the published value is that of the deep belief net of the "
    "literature that the source names as its model",
    unit="%",
    tolerance=Tolerance(absolute=0.5),
    form=".2f",
    best=Best.lower,
)
HELD = Column(
    "next digits",
    "error on the next digits of the official training part; no published number",
    unit="%",
    form=".2f",
)
MINUTES = Column("minutes", "of the fit, on this computer; not judged", form=".1f")
COLUMNS = (OFFICIAL, HELD, MINUTES)
WHY = (
    "the net of the literature was tuned up and down for hundreds of epochs; ours has as many as "
    "the settings say (see the epochs and minutes of the row)."
)
NOTES = (
    "The net of the literature (Hinton, Osindero and Teh, 2006) has 784-500-500-2000 units, labels "
    "in its top layer and long up-down fine-tuning; the source quotes it and runs none.",
    "Classes are told by one way up and the exact probability of each label in the machine on top; "
    "after discriminative fine-tuning by the network that it became.",
    "Digits of a class are made with its label clamped, by many steps between the two top layers "
    "and one way down; shown are the probabilities of ink.",
)


@dataclass(frozen=True, slots=True)
class Size:
    """Digits of each class for the machine, digits for the net (None: all), and settings."""

    digits: mnist_digits.Size
    everything: int | None
    machine: Mapping[str, Any]
    network: Mapping[str, Any]
    # of the same net, up and down instead of discriminative
    up_down: Mapping[str, Any]

    @property
    def row(self) -> str:
        """What the net is called."""
        layers = "-".join(map(str, (mnist_digits.PIXELS, *self.network["hidden"])))
        return f"deep belief net {layers}"


FULL = Size(
    mnist_digits.FULL,
    None,
    {"max_epochs": 25},
    {
        "hidden": (500, 500, 2000), "max_epochs": 10, "fine_tune": "discriminative",
        "fine_tune_epochs": 10,
    },
    {"fine_tune": "up-down", "fine_tune_epochs": 60, "validation_fraction": 0.1, "patience": 10},
)  # fmt: skip
_FEW = {"max_epochs": 15, "batch_size": 20}
QUICK = Size(
    mnist_digits.QUICK,
    1500,
    _FEW,
    {"hidden": (60, 60, 120), "fine_tune": "discriminative", "fine_tune_epochs": 10, **_FEW},
    {"fine_tune": "up-down", "fine_tune_epochs": 10},
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Shares of mistakes, and seconds of the fit."""

    official: float
    held: float | None
    seconds: float


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Fit the machine to some digits and the net to all of them."""
    size = QUICK if quick else FULL
    digits = mnist_digits.load_digits(data_folder, np.float32)
    official = digits.official.first(size.digits.official)
    machine_row = f"RBM {MACHINE_UNITS} with labels, {10 * size.digits.train} digits"
    progress(0, 3, machine_row)
    some = digits.each(0, size.digits.train)
    held = digits.each(size.digits.train, size.digits.train + size.digits.held_out)
    found = {machine_row: _measure(_make_machine(size, seed), some, official, held)[0]}
    whole = digits.training.first(size.everything)
    row = f"{size.row}, {len(whole.y)} digits"
    progress(1, 3, row)
    found[row], network = _measure(_make_network(size, seed), whole, official, None)
    other_row = f"{row}, up-down"
    progress(2, 3, other_row)
    other = _make_network(size, seed).set_params(**size.up_down)
    found[other_row], _ = _measure(other, whole, official, None)
    progress(3, 3, "done")
    known = {} if quick else {row: PUBLISHED, other_row: PUBLISHED}  # that of all digits
    cells = tuple(cell for name, one in found.items() for cell in _make_cells(name, one, known))
    shown = _collect_shown(network, official, seed, size.row)
    # of digits that the net has not seen
    share = measure_recognised(train_judge(official.X, official.y), shown.made)
    checks: tuple[Check, ...] = ()
    if not quick:
        softmax = measure_softmax(some, held, official)
        judged = _check_claims(found[machine_row], found[row], softmax)
        checks = (*judged, _check_made_well(share))
    picture = partial(draw, shown=shown)
    return Table(COLUMNS, cells, checks, _list_settings(size, network), NOTES, picture)


def _make_machine(size: Size, seed: int) -> Any:
    from mixfold import RBM

    return RBM(MACHINE_UNITS, random_state=seed, **size.machine)


def _make_network(size: Size, seed: int) -> Any:
    from mixfold import DeepBeliefNetwork

    return DeepBeliefNetwork(random_state=seed, **size.network)


def _measure(
    model: Any,
    train: mnist_digits.Labelled,
    official: mnist_digits.Labelled,
    held: mnist_digits.Labelled | None,
) -> tuple[Outcome, Any]:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # epochs are as many as the table says
        model.fit(train.X, train.y)
    seconds = time.perf_counter() - began
    errors = [
        None if asked is None else float(np.mean(model.predict(asked.X) != asked.y))
        for asked in (official, held)
    ]
    assert errors[0] is not None
    return Outcome(errors[0], errors[1], seconds), model


def _make_cells(row: str, found: Outcome, known: Mapping[str, float]) -> list[Cell]:
    cells = [
        Cell(row, OFFICIAL.name, (100 * found.official,), known.get(row), why=WHY),
        Cell(row, MINUTES.name, (found.seconds / 60,)),
    ]
    return cells if found.held is None else [*cells, Cell(row, HELD.name, (100 * found.held,))]


def _check_claims(machine: Outcome, network: Outcome, softmax: tuple[float, float]) -> list[Check]:
    """``softmax`` has the errors of scikit-learn's on the pixels, next digits and official."""
    assert machine.held is not None
    ours = (100 * machine.held, 100 * machine.official)
    told = " and ".join(f"{a:.1f} against {b:.1f}" for a, b in zip(ours, softmax, strict=True))
    return [
        Check(
            f"the deep belief net misses at most {100 * MOST:g} % of the official test part",
            network.official <= MOST,
            f"{100 * network.official:.2f} % after {network.seconds / 60:.0f} minutes",
        ),
        Check(
            "the machine misses fewer digits than a softmax of the pixels (scikit-learn), on both "
            "tests",
            all(a < b for a, b in zip(ours, softmax, strict=True)),
            f"{told} %",
        ),
    ]


def measure_softmax(
    train: mnist_digits.Labelled, held: mnist_digits.Labelled, official: mnist_digits.Labelled
) -> tuple[float, float]:
    """Errors [%] of scikit-learn's logistic regression on the pixels."""
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as many steps as are near enough
        model = LogisticRegression(C=0.1, max_iter=200).fit(train.X, train.y)
    wrong = [float(np.mean(model.predict(asked.X) != asked.y)) for asked in (held, official)]
    return 100 * wrong[0], 100 * wrong[1]


def _check_made_well(share: float) -> Check:
    claim = f"at least {100 * LEAST_RECOGNISED:g} % of the digits made with a label are recognised"
    return Check(
        claim, share >= LEAST_RECOGNISED, f"{100 * share:.0f} %, by a classifier of others"
    )


def _collect_shown(network: Any, asked: mnist_digits.Labelled, seed: int, title: str) -> Shown:
    made = {
        digit: np.asarray(network.generate(digit, MADE, random_state=seed))
        for digit in range(mnist_digits.CLASSES)
    }
    chances = np.asarray(network.predict_proba(asked.X))
    weights = np.asarray(network.generative_weights_[0])[:UNITS_SHOWN]
    return Shown(weights, made, asked, chances, title)


def _list_settings(size: Size, network: Any) -> tuple[tuple[str, str], ...]:
    few = f"{size.digits.train} of each class for the machine"
    return (
        ("digits", f"{few}, {size.everything or 'all'} of the training part for the net"),
        ("machine", f"{MACHINE_UNITS} hidden units, CD-1, {size.machine['max_epochs']} epochs"),
        ("net up-down", ", ".join(f"{name} {value}" for name, value in size.up_down.items())),
        ("net", ", ".join(f"{name} {value}" for name, value in _select_settings(network).items())),
    )


def _select_settings(network: Any) -> dict[str, Any]:
    """The settings that decide what is learned."""
    wanted = ("hidden", "max_epochs", "fine_tune", "fine_tune_epochs", "batch_size")
    settings = network.get_params()
    return {name: settings[name] for name in wanted if name in settings}


# ------------------------------------------------ picture
# A deep belief net drawn: what its first layer looks for, digits it makes, and its mistakes.


@dataclass(frozen=True, slots=True)
class Shown:
    """Weights of the first layer, digits made of each class, and what was asked and answered."""

    weights: Array
    made: Mapping[int, Array]
    asked: Labelled
    chances: Array
    title: str


def draw(figure: Figure, shown: Shown) -> None:
    """Units, digits and mistakes side by side."""
    figure.set_size_inches(17, 6.2)
    first, second, third = figure.subplots(1, 3)
    plot_codebook(shown.weights, SHAPE, columns=10, ax=first)
    first.set_title(f"{len(shown.weights)} units of the first layer", fontsize=10, pad=10)
    plot_generated(shown.made, SHAPE, n=len(next(iter(shown.made.values()))), ax=second)
    second.set_title("digits made with a clamped label", fontsize=10, pad=10)
    _draw_mistakes(third, shown)


def _draw_mistakes(ax: Axes, shown: Shown, n: int = 49) -> None:
    guess, sure = shown.chances.argmax(axis=1), shown.chances.max(axis=1)
    wrong = int(np.sum(guess != shown.asked.y))
    ax.set_title(
        f"{shown.title}: {wrong} mistakes of {len(guess)}, the surest", fontsize=10, pad=10
    )
    if not wrong:
        ax.set_axis_off()
        return
    order = np.argsort(-sure)
    X, y = shown.asked.X[order], shown.asked.y[order]
    plot_misclassified(X, y, guess[order], SHAPE, n=n, columns=7, ax=ax)


EXPERIMENT = Experiment(
    name="dbn",
    title="Digits by a restricted Boltzmann machine and a deep belief net",
    source="Arngren 2007",
    place="section 4.1",
    protocol=(
        "Images of 28 x 28 pixels, values 0 to 1. A restricted Boltzmann machine with the label "
        "among its visible units (RBM) learns the first 1,000 digits of each class of the official "
        "training part by contrastive divergence. A deep belief net (DeepBeliefNetwork) learns all "
        "60,000: layer by layer, the labels in the machine on top; then the way up is trained as a "
        "whole to tell the digits, while the net that makes digits stays as it was. The row "
        "up-down is the same net tuned as in the literature: wake and sleep, until the error of "
        "held-out digits falls no more, or for 60 epochs. The official "
        "test part is looked at once, in the end."
    ),
    data=(mnist_digits.FILE,),
    run=run,
)
