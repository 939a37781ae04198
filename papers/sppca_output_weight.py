"""After Yu (2006), chapter 7: how much few labels count, chosen by held-out labels."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixfold.contracts import Array
from papers.frame.data import check_data
from papers.frame.experiment import Experiment, Progress, map_on_cores
from papers.frame.table import Cell, Check, Column, Table
from papers.shared.baseline_projections import compute_principal_scores, measure_nearest_error
from papers.shared.labelled_sets import SETS, Labelled, find_sets, load_set, split_few_labelled

DIM = 20
COLUMNS = (
    Column("PCA, 1-NN", "nearest labelled row on the principal axes of all rows", form=".3f"),
    Column("once, 1-NN", "expected factors, both noises learned (output_weight=1)", form=".3f"),
    Column("once, predict", "classes that the same model predicts", form=".3f"),
    Column("auto, 1-NN", "expected factors, output_weight='auto'", form=".3f"),
    Column("auto, predict", "classes that the same model predicts", form=".3f"),
)
NOTES = (
    "Labels that count once hardly move the axes: the factors are whitened principal scores, and "
    "classes are regressed on all of them, also those that tell nothing of the classes.",
    "Chosen are the noise of the columns, above what is learned, and the weight of rows without "
    "label, by the likelihood of labelled rows whose label is held out. No test row has a part in "
    "that, other than by its columns, as in all methods here.",
    "On Digits the principal scores as they are, not whitened, are near the best projection for "
    "neighbours: their lengths tell which axes are noise. Factors have unit variance unless the "
    "noise of the columns is near that of an axis.",
)


@dataclass(frozen=True, slots=True)
class Size:
    """Splits of each set, and the limit of steps of a fit."""

    splits: dict[str, int]
    max_iter: int


NAMES = ("Yale", "ORL", "YaleB", "PIE", "Digits", "TDT2", "Reuters")
FULL = Size(dict.fromkeys(NAMES, 10), 100)
QUICK = Size({"Yale": 4, "ORL": 4, "Digits": 3}, 60)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Errors by column, and what was chosen: weight of the outputs and of rows without label."""

    errors: dict[str, float]
    weight: float
    unlabelled: float


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Predict the rows without label of every set on every split."""
    size = QUICK if quick else FULL
    names, left_out = find_sets(tuple(size.splits), data_folder)
    if not names:
        check_data(EXPERIMENT.name, [SETS[name].file for name in size.splits], data_folder)
    total, done = sum(size.splits[name] for name in names), 0
    cells: list[Cell] = []
    chosen = []
    for name in names:
        progress(done, total, f"{name}, principal axes")
        data = load_set(name, data_folder)
        scores = compute_principal_scores(data.X, DIM, seed)
        trials = [(data, scores, _draw(data, seed, k), size.max_iter)
                  for k in range(size.splits[name])]  # fmt: skip
        outcomes: list[Outcome] = []
        for outcome in map_on_cores(measure_split, trials):
            outcomes.append(outcome)
            done += 1
            progress(done, total, f"{name}, {len(outcomes)} of {size.splits[name]} splits")
        cells += [
            Cell(name, column.name, tuple(o.errors[column.name] for o in outcomes))
            for column in COLUMNS
        ]
        chosen.append(_describe_choice(name, outcomes))
    settings = (
        ("latent dimensions", str(DIM)),
        ("splits", ", ".join(f"{name} {size.splits[name]}" for name in names)),
        ("labelled rows of each class", ", ".join(f"{n} {SETS[n].labelled}" for n in names)),
        ("most steps", str(size.max_iter)),
    )
    notes = (*NOTES, *left_out, *chosen)
    return Table(COLUMNS, tuple(cells), check_claims(cells), settings, notes)


def _draw(data: Labelled, seed: int, split: int) -> tuple[Array, Array]:
    rng = np.random.default_rng([seed, split])
    return split_few_labelled(data.y, SETS[data.name].labelled, rng)


def measure_split(
    data: Labelled, scores: Array, rows: tuple[Array, Array], max_iter: int
) -> Outcome:
    """Errors of the rows without label; ``scores`` are those of the principal axes of all rows."""
    X, y, (train, test) = data.X, data.y, rows
    known = np.full(len(y), -1)
    known[train] = y[train]
    errors = {"PCA, 1-NN": measure_nearest_error(scores, y, train, test)}
    for name, weight in (("once", 1.0), ("auto", "auto")):
        model = _fit(X, known, weight, max_iter)
        errors[f"{name}, 1-NN"] = measure_nearest_error(model.transform(X), y, train, test)
        errors[f"{name}, predict"] = float(np.mean(model.predict(X[test]) != y[test]))
    return Outcome(errors, model.output_weight_, model.unlabelled_weight_)


def _fit(X: Any, known: Array, weight: Any, max_iter: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning

    from mixfold import DegenerateWarning, SupervisedPPCA

    model = SupervisedPPCA(
        DIM,
        task="classification",
        output_weight=weight,
        max_iter=max_iter,
        n_jobs=1,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DegenerateWarning)
        return model.fit(X, known)


def _describe_choice(name: str, outcomes: list[Outcome]) -> str:
    weights = ", ".join(f"{o.weight:.3g}" for o in outcomes)
    shares = ", ".join(f"{o.unlabelled:g}" for o in outcomes)
    return f"{name}: output_weight_ {weights}; unlabelled_weight_ {shares}."


# ------------------------------------------------ claims


def check_claims(cells: list[Cell]) -> tuple[Check, ...]:
    """Of each way to use the model: no worse than PCA on any set, and better on most."""
    places = {(cell.row, cell.column): cell for cell in cells}
    names = list(dict.fromkeys(cell.row for cell in cells))
    checks = []
    for column in ("auto, predict", "auto, 1-NN"):
        gaps = {
            name: np.subtract(places[name, column].values, places[name, "PCA, 1-NN"].values)
            for name in names
        }
        errors = {name: float(g.std(ddof=1)) / math.sqrt(len(g)) for name, g in gaps.items()}
        told = ", ".join(f"{n} {g.mean():+.3f} ({errors[n]:.3f})" for n, g in gaps.items())
        near = all(g.mean() <= errors[n] for n, g in gaps.items())
        claim = f"{column}: within one standard error of PCA and 1-NN, or better, on each set"
        checks.append(Check(claim, bool(near), f"differences and their standard errors: {told}"))
        better = [n for n, g in gaps.items() if g.mean() < -errors[n]]
        claim = f"{column}: better than PCA and 1-NN by more than a standard error on most sets"
        detail = f"{len(better)} of {len(names)}: {', '.join(better) or 'none'}"
        checks.append(Check(claim, 2 * len(better) > len(names), detail))
    return tuple(checks)


EXPERIMENT = Experiment(
    name="sppca-output-weight",
    title="Few labels that count for more: supervised PPCA beside PCA and neighbours",
    source="Yu 2006",
    place="chapter 7, a setting of our own",
    protocol=(
        "Rows of unit length (grey values, tf-idf of words). Few rows of each class are labelled, "
        "as in table 7.3; the others, whose columns all methods see, are the test rows. Their "
        "class is that of the nearest labelled row in a projection to 20 dimensions by the columns "
        "alone, or what the model predicts. The source has no such table."
    ),
    data=tuple(SETS[name].file for name in NAMES),
    run=run,
)
