"""Source 002, tables 5.1 to 5.3: digits factorised by one layer and by two, and classified."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mixfold.experiments import nlmf_published as published
from mixfold.experiments import nlmf_runs as runs
from mixfold.experiments import nlmf_sets as sets
from mixfold.experiments.experiment import Experiment, Progress
from mixfold.experiments.nlmf_claims import checks
from mixfold.experiments.nlmf_picture import Shown, draw
from mixfold.experiments.table import Best, Cell, Column, Table, Tolerance

_NEAR = Tolerance(absolute=1.0)
HELD = Column(
    "next digits",
    "error on the next digits of the official training part, as many of each class",
    unit="%",
    tolerance=_NEAR,
    form=".1f",
    best=Best.lower,
)
OFFICIAL = Column(
    "official",
    "error on the official test part",
    unit="%",
    tolerance=_NEAR,
    form=".1f",
    best=Best.lower,
)
REBUILT = Column(
    "e_r",
    "half squared error of a digit that is rebuilt from its sources, next digits",
    tolerance=Tolerance(relative=0.1),
    form=".2f",
    best=Best.lower,
)
TRAIN = Column(
    "seen",
    "error on training digits by the sources that saw their labels; no published number",
    unit="%",
    form=".1f",
)
SPARSE = Column(
    "A near 0",
    f"entries of the codebook below {runs.NEAR_ZERO:g} of the largest of their unit; no published "
    "number",
    unit="%",
    form=".0f",
)
MISSED = Column(
    "missed",
    "next digits of this class that are misclassified, of 1000 (table 5.2); the published ones are "
    "other digits, and how many differ by chance is not known",
    tolerance=Tolerance(absolute=25.0, relative=0.25),
    form=".0f",
    best=Best.lower,
)
COLUMNS = (HELD, OFFICIAL, REBUILT, TRAIN, SPARSE, MISSED)
EXAMPLES = 12


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Fit every model and ask it about both tests."""
    size, names = (sets.QUICK, runs.FEW) if quick else (sets.FULL, tuple(runs.MODELS))
    tests = _tests(sets.load_digits(data_folder), size)
    found, kept = {}, {}
    for done, name in enumerate(names):
        progress(done, len(names), name)
        model = runs.MODELS[name](seed)
        found[name] = runs.measured(model, tests)
        if name in (published.FIRST, runs.GREEDY, runs.JOINT):
            kept[name] = model
    progress(len(names), len(names), "done")
    cells = [cell for name, one in found.items() for cell in _cells(name, one)]
    cells += [cell for name, one in found.items() for cell in _by_digit(name, one, size)]
    picture = partial(draw, errors=_errors(cells), shown=_shown(kept, tests))
    judged = checks(found, whole=not quick)
    return Table(COLUMNS, tuple(cells), judged, _settings(size, found), published.NOTES, picture)


def _tests(digits: sets.Digits, size: sets.Size) -> runs.Tests:
    held = digits.each(size.train, size.train + size.held_out)
    return runs.Tests(digits.each(0, size.train), held, digits.official.first(size.official))


def _cells(row: str, found: runs.Outcome) -> list[Cell]:
    error, rebuilt = published.ERRORS.get(row, (None, None))
    why = published.WHY.get(row, "")
    values = (
        (HELD, 100 * found.held, error),
        (OFFICIAL, 100 * found.official, error),
        (REBUILT, found.rebuilt, rebuilt),
        (TRAIN, None if found.train is None else 100 * found.train, None),
        (SPARSE, None if found.sparse is None else 100 * found.sparse, None),
    )
    return [
        Cell(row, column.name, (float(value),), theirs, why=why)
        for column, value, theirs in values
        if value is not None
    ]


def _by_digit(row: str, found: runs.Outcome, size: sets.Size) -> list[Cell]:
    """Table 5.2, where there are 1000 of each."""
    strengths = {runs.wide_row(beta): beta for beta in published.MISSED}
    if row not in strengths or size.held_out != 1000:
        return []
    beta = strengths[row]
    theirs = published.MISSED[beta]
    return [
        Cell(f"L2 200, beta {beta:g}: {digit}", MISSED.name, (float(ours),), float(known))
        for digit, (ours, known) in enumerate(zip(found.missed, theirs, strict=True))
    ]


def _errors(cells: list[Cell]) -> list[tuple[Cell, Cell]]:
    held = {cell.row: cell for cell in cells if cell.column == HELD.name}
    official = {cell.row: cell for cell in cells if cell.column == OFFICIAL.name}
    return [(held[row], official[row]) for row in held]


def _shown(kept: Mapping[str, Any], tests: runs.Tests) -> Shown:
    first, both, network = kept[published.FIRST], kept[runs.GREEDY], kept[runs.JOINT]
    X = tests.official.X[:EXAMPLES]
    rebuilt = {"layer 1": first.reconstruct(X), "both layers": both.reconstruct(X)}
    chances = np.asarray(network.predict_proba(tests.official.X))
    guess = network.classes_[chances.argmax(axis=1)]
    asked = (tests.official.X, tests.official.y, guess, chances.max(axis=1))
    return Shown(np.asarray(first.components_), X, rebuilt, asked, runs.JOINT)


def _settings(size: sets.Size, found: Mapping[str, runs.Outcome]) -> tuple[tuple[str, str], ...]:
    official = "all" if size.official is None else f"the first {size.official}"
    slow = sorted(found, key=lambda row: -found[row].seconds)
    return (
        ("digits", f"{size.train} of each class to learn from, the next {size.held_out} and "
                   f"{official} of the official test part to ask"),
        ("settings in brackets", "units, alpha (sources), beta (codebook), gamma (classifier), s2"),
        ("steps", f"at most {runs.SPARSE_STEPS} with beta > 0 in layer 1, {runs.PART_STEPS} for "
                  "NMF, 200 else"),
        ("seconds of the fits", ", ".join(f"{row} {found[row].seconds:.1f}" for row in slow)),
    )  # fmt: skip


EXPERIMENT = Experiment(
    name="nlmf",
    title="Digits by non-linear matrix factorisation, one layer and two",
    source="002",
    place="tables 5.1-5.3",
    protocol=(
        "Images of 28 x 28 pixels, values 0 to 1, are factorised as f(S) A + b with f = tanh, "
        "sources S, codebook A, and a softmax of f(S) that tells the digit (MatrixFactorization); "
        "a second layer does the same to the sources (DeepFactorNetwork). Settings are the "
        "published ones. Learned from are the first 1,000 digits of each class of the official "
        "training part. New digits get the sources that explain them best, without a label, and "
        "the class by these. 'Two sessions' learn layers without labels, then the softmax. "
        "'Joint' trains both layers together as a feed-forward network, which the source names as "
        "an outlook."
    ),
    data=(sets.FILE,),
    run=run,
)
