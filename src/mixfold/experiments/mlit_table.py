"""Source 001, table 4: classifiers of mixtures under linear transformations, and of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from mixfold.experiments import mlit_runs as runs
from mixfold.experiments.data import check_data
from mixfold.experiments.experiment import Experiment, Progress
from mixfold.experiments.mlit_picture import Curve, draw
from mixfold.experiments.mlit_published import LEAST, NOTES, PUBLISHED
from mixfold.experiments.mlit_sets import SETS, Labelled, load_set, present
from mixfold.experiments.table import Best, Cell, Check, Column, Table, Tolerance

METHODS = ("MLiT (C)", "MLiT (N)", "MLiT (O)", "MPPCA", "GMM")
BEST = Column(
    "accuracy [%]",
    "share of held-out rows that get their class, with the setting and the step that are best on "
    "these very folds: the source's protocol, which is optimistic",
    tolerance=Tolerance(absolute=2.0),
    form=".1f",
    best=Best.higher,
)
INSIDE = Column(
    "chosen inside [%]",
    "the same with setting and step chosen by folds of the training rows alone; no published value "
    "is comparable, so it is not judged",
    form=".1f",
)
STEP = Column("step", "the one that was best, 0 is the start; not judged", form=".1f")
COLUMNS = (BEST, INSIDE, STEP)
MOST_SECONDS = 60.0
BOTH = ("largest", "smallest")


@dataclass(frozen=True, slots=True)
class Size:
    """What is tried on each set, of (C) and of (N), and the number of repeats."""

    grids: Mapping[str, tuple[runs.Grid, runs.Grid]]
    repeats: int


_C, _N = runs.Grid((3.0, 30.0, 300.0), BOTH, 4), runs.Grid((1.0, 10.0, 1000.0), BOTH, 10)
_DIGITS = (
    runs.Grid((100.0,), BOTH[:1], 3, standard=(False,)),
    runs.Grid((0.5, 1.0), BOTH[:1], 3),
)
FULL = Size({"Vehicle": (_C, _N), "OpticDigit": _DIGITS, "WDBC": (_C, _N), "WPBC": (_C, _N)}, 3)
_FEW = (
    runs.Grid((30.0,), BOTH[:1], 2, standard=(False,)),
    runs.Grid((1.0,), BOTH[:1], 4, standard=(True,)),
)
QUICK = Size({"WDBC": _FEW}, 1)

Found = dict[tuple[str, str], list[list[runs.Outcome]]]


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Every method on every set, with all settings on all folds."""
    size = QUICK if quick else FULL
    names, left_out = present(tuple(size.grids), data_folder)
    if not names:
        check_data(EXPERIMENT.name, [SETS[name].file for name in size.grids], data_folder)
    found: Found = {}
    sets = {name: load_set(name, data_folder) for name in names}
    total, checks = len(names) * len(METHODS) * size.repeats, []
    for name in names:
        for method in METHODS:
            mine: list[list[runs.Outcome]] = []
            found[name, method] = mine
            progress(len(found) * size.repeats - size.repeats, total, f"{name}, {method}")
            mine.extend(runs.all_measured(sets[name], case_of(name, method, size), seed,
                                          size.repeats))  # fmt: skip
    progress(total, total, "time of a whole run")
    if "OpticDigit" in sets:
        checks.append(_timed(sets["OpticDigit"], seed))
    cells = tuple(cell for place, mine in found.items() for cell in _cells(*place, mine))
    notes = (*NOTES, *left_out, *_told(found, size))
    curves = {name: _curve(found[name, "MLiT (N)"], size.grids[name][1]) for name in names}
    most = {name: 100 * one.majority for name, one in sets.items()}
    picture = partial(draw, cells=_places(cells, names), curves=curves, majority=most)
    checks = [*_checks(cells, names), *checks]
    return Table(COLUMNS, cells, tuple(checks), _settings(sets, size), notes, picture)


def case_of(name: str, method: str, size: Size) -> runs.Case:
    """The published size of a method on a set, and what of it is tried."""
    _, _, d, K = PUBLISHED[name][method]
    constrained, normalised = size.grids[name]
    if method in ("MLiT (C)", "MLiT (N)"):
        grid = constrained if method == "MLiT (C)" else normalised
        return runs.Case(method, d, K, grid.settings(), grid.steps)
    both = (runs.Setting(False), runs.Setting(True))
    # the ridge of a Gaussian mixture is relative to the columns, which makes both the same
    return runs.Case(method, d, K, both[: 1 + (method != "GMM")], runs.ORTHONORMAL_STEPS)


def _row(name: str, method: str) -> str:
    _, _, d, K = PUBLISHED[name][method]
    return f"{name}, {method}, " + (f"d = {d}, " if d else "") + f"K = {K}"


def _cells(name: str, method: str, repeats: Sequence[Sequence[runs.Outcome]]) -> list[Cell]:
    accuracy, spread, _, _ = PUBLISHED[name][method]
    row, best, steps, honest = _row(name, method), [], [], []
    for outcomes in repeats:
        curves = runs.by_setting(outcomes)
        setting, step = runs.best_of(curves)
        best.append(100 * float(curves[setting][step]))
        steps.append(float(step))
        honest.append(100 * float(np.mean([outcome.honest for outcome in outcomes])))
    cells = [
        Cell(row, BEST.name, tuple(best), accuracy, spread),
        Cell(row, INSIDE.name, tuple(honest)),
    ]
    return [*cells, Cell(row, STEP.name, tuple(steps))] if method in METHODS[:2] else cells


def _places(cells: Sequence[Cell], names: Sequence[str]) -> dict[str, dict[str, dict[str, Cell]]]:
    """Cells by set, method and column."""
    by = {(cell.row, cell.column): cell for cell in cells}
    return {
        name: {
            method: {
                c.name: by[_row(name, method), c.name]
                for c in COLUMNS
                if (_row(name, method), c.name) in by
            }
            for method in METHODS
        }
        for name in names
    }


def _curve(repeats: Sequence[Sequence[runs.Outcome]], grid: runs.Grid) -> Curve:
    """Accuracy by step of the setting that is best over all repeats."""
    curves = runs.by_setting([outcome for outcomes in repeats for outcome in outcomes])
    setting, _ = runs.best_of(curves)
    return Curve(grid.settings()[setting].words(), tuple((100 * curves[setting]).tolist()))


def _told(found: Found, size: Size) -> list[str]:
    """Which settings were best on the folds that are reported."""
    told = []
    for (name, method), repeats in found.items():
        outcomes = [outcome for mine in repeats for outcome in mine]
        setting, _ = runs.best_of(runs.by_setting(outcomes))
        words = case_of(name, method, size).settings[setting].words()
        told.append(f"{name} {method}: {words}")
    return ["Best settings over all repeats. " + "; ".join(told) + "."]


def _checks(cells: Sequence[Cell], names: Sequence[str]) -> list[Check]:
    by = {(cell.row, cell.column): cell for cell in cells}
    checks = []
    for (name, method), least in LEAST.items():
        if name in names:
            ours = by[_row(name, method), BEST.name].ours
            claim = f"{name}, {method}: accuracy is at least {least} %"
            checks.append(Check(claim, ours >= least, f"{ours:.2f} %"))
    return checks


def _timed(data: Labelled, seed: int) -> Check:
    _, _, d, K = PUBLISHED["OpticDigit"]["MLiT (N)"]
    assert d is not None
    seconds = runs.whole_run(data, d, K, seed)
    return Check(
        f"OpticDigit, MLiT (N): {runs.FOLDS} folds with {runs.WHOLE_STEPS} steps and all iterates "
        f"take less than {MOST_SECONDS:.0f} s",
        seconds < MOST_SECONDS,
        f"{seconds:.1f} s",
    )


def _settings(sets: Mapping[str, Labelled], size: Size) -> tuple[tuple[str, str], ...]:
    told = []
    for name in sets:
        for method, grid in zip(METHODS, size.grids[name], strict=False):
            scales = ", ".join(f"{scale:g}" for scale in grid.scales)
            columns = "raw and standardised" if len(grid.standard) > 1 else "raw"
            words = f"{columns}; scale {scales}; start {' or '.join(grid.inits)}; steps 0 to "
            told.append((f"{name}, {method}", f"{words}{grid.steps}"))
    return (
        ("folds", f"{runs.FOLDS}, stratified; {runs.INNER} inside"),
        ("repeats (other folds)", str(size.repeats)),
        ("largest class", ", ".join(f"{n} {100 * one.majority:.1f} %" for n, one in sets.items())),
        *told,
        ("MLiT (O), MPPCA", "raw and standardised columns"),
    )


EXPERIMENT = Experiment(
    name="mlit-table",
    title="Classifiers made of mixtures under linear transformations",
    source="001",
    place="table 4",
    protocol=(
        "A model for each class, and rows go to the class with the highest score; priors are "
        "equal. Five stratified folds, three times with others. d and K are the published ones. "
        "The source reports the accuracy of the setting (columns as they are or standardised, "
        "scale, which end of the spectrum it begins with) and of the step that are best on the "
        "very folds that it reports, and so does the first column. The source tried up to 50 "
        "steps; here there are fewer, which are listed below. In the second column setting "
        "and step are chosen by three folds of the training rows. Ridge 0.01, windows of "
        "eigenvectors shifted by 2; MPPCA 200 steps, Gaussian mixtures with full covariances and "
        "a relative ridge of 0.01, 50 steps. Missing entries (four, in WPBC) are medians. PPVS, "
        "the fifth set of the source, is not public."
    ),
    data=tuple(one.file for one in SETS.values()),
    run=run,
)
