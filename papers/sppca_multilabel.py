"""Yu (2006), table 7.4: supervised projections of genes with several labels each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mixfold.contracts import Array
from papers.frame.data import load_arrays
from papers.frame.experiment import DataFile, Experiment, Progress
from papers.frame.table import Best, Cell, Check, Column, Table, Tolerance
from papers.shared import baseline_projections, plain_sppca, sppca_trials
from papers.shared.labelled_sets import load_counts, scale_to_unit_length, weigh_by_tf_idf

DIMS, POSITIVE, PENALTY = (5, 10, 20), 5, 100.0
SHAPE, LABELS = (2417, 103), 14
METHODS = ("PCA", "PLS", *sppca_trials.SUPERVISED, *sppca_trials.BY_EM)
_NEAR = Tolerance(absolute=0.035)
COLUMNS = (
    Column(
        "F1-macro",
        "mean over labels of F1, test rows",
        tolerance=_NEAR,
        form=".3f",
        best=Best.higher,
    ),
    Column("F1-micro", "F1 of all labels together", tolerance=_NEAR, form=".3f", best=Best.higher),
    Column(
        "AUC",
        "mean over labels of the area under the curve of hard predictions, (sensitivity + "
        "specificity) / 2: what the published values match",
        tolerance=_NEAR,
        form=".3f",
        best=Best.higher,
    ),
)
# F1-macro, F1-micro, AUC; of a method one triple for each d
PUBLISHED = {
    "FULL": ((0.3813, 0.5161, 0.5571),),
    "PCA": ((0.2318, 0.5600, 0.5279), (0.3113, 0.5916, 0.5493), (0.3723, 0.5537, 0.5614)),
    "PLS": ((0.3432, 0.5795, 0.5556), (0.3756, 0.5517, 0.5610), (0.3799, 0.5208, 0.5585)),
    "SPPCA": ((0.3823, 0.5332, 0.5641), (0.3924, 0.5459, 0.5685), (0.3859, 0.5517, 0.5640)),
    "S2PPCA": ((0.3927, 0.5890, 0.5842), (0.3985, 0.5914, 0.5896), (0.3976, 0.6012, 0.5921)),
}
GENES = DataFile(
    "yeast.npz",
    "arrays X (2417 genes x 103) and y (14 labels of 0 and 1 for each)",
    "the yeast genes of A. Elisseeff and J. Weston (2001), as MULAN has them",
)
REPORTS = DataFile(
    "tmc2007_500.npz",
    "words as a CSR matrix of 28596 x 500 (arrays data, indices, indptr, shape) and y (22 labels "
    "of 0 and 1 for each)",
    "aviation safety reports of the SIAM text mining competition of 2007, as MULAN has them",
    optional=True,
)
STAND_IN = "reports"
WHY = (
    "the splits of the source are not published; on ours scikit-learn's PCA, PLS and SVM, and "
    "plain EM in numpy (rows by EM, see the checks), agree with the class and not with the source: "
    "with noises learned S2PPCA is whitened PCA."
)
NOTES = (
    "The published lead of S2PPCA on all three measures, and the F1-macro of SPPCA at d = 5, are "
    "not reached: with noises learned, S2PPCA is whitened PCA, and held noises come nearer to PLS. "
    "Plain EM, as the source ran it, has the same finding.",
    "The source also has RCV1 (table 7.4 b), which is not public. Aviation safety reports with "
    "several labels (TMC2007) stand in for it: rows of another table, without published values, "
    "of which the order that the source reports is asked.",
)


@dataclass(frozen=True, slots=True)
class Size:
    """Splits, limits of steps; splits and rows of the reports that stand in for RCV1."""

    splits: int
    max_iter: int
    em_splits: int
    em_steps: int
    report_splits: int
    reports: int


FULL = Size(20, 1000, 4, plain_sppca.STEPS, 5, 6000)
QUICK = Size(3, 200, 1, 150, 1, 800)


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Project on every split by every method, and let a linear SVM learn each label."""
    size = QUICK if quick else FULL
    steps: dict[str, list[int]] = defaultdict(list)
    X, Y = _load_genes(data_folder / GENES.name)
    with_reports = size.report_splits and (data_folder / REPORTS.name).is_file()
    total = size.splits + (size.report_splits if with_reports else 0)

    def tell(first: int) -> Callable[[int, str], None]:
        return lambda done, label: progress(first + done, total, label)

    results = _measure_splits(X, Y, size, size.splits, seed, steps, tell(0))
    cells = _make_cells(results)
    checks = _check_claims(cells, steps)
    if with_reports:
        X, Y = _load_reports(data_folder / REPORTS.name, size.reports, seed)
        few = replace(size, em_splits=0)
        found = _measure_splits(X, Y, few, size.report_splits, seed, steps, tell(size.splits))
        more = _make_report_cells(found)
        cells, checks = (*cells, *more), (*checks, *_check_reports(more))
    progress(total, total, "done")
    return Table(COLUMNS, cells, checks, _list_settings(size), NOTES)


def _measure_splits(
    X: Array,
    Y: Array,
    size: Size,
    splits: int,
    seed: int,
    steps: dict[str, list[int]],
    tell: Callable[[int, str], None],
) -> dict[str, list[Array]]:
    """Measures by row, a value for each split; ``steps`` of the fits are added to."""
    scores = baseline_projections.compute_principal_scores(X, max(DIMS), seed)
    results: dict[str, list[Array]] = defaultdict(list)
    for split in range(splits):
        tell(split, f"{len(Y)} rows, split {split + 1} of {splits}")
        train, test = draw_positives(Y, POSITIVE, np.random.default_rng([seed, split]))
        results["FULL"].append(_score_projection(X, Y, train, test))
        F = baseline_projections.compute_span_coordinates(X, train)
        for d in DIMS:
            found = {
                "PCA": scores[:, :d],
                "PLS": baseline_projections.project_by_pls(F, Y[train], train, d),
            }
            for name, (held, semi) in sppca_trials.SUPERVISED.items():
                noises = (
                    {"input_noise": sppca_trials.HELD, "output_noise": sppca_trials.HELD}
                    if held
                    else {}
                )
                fit = sppca_trials.project(
                    X, Y, train, d, semi=semi, max_iter=size.max_iter, **noises
                )
                found[name] = fit.Z
                steps[name].append(fit.steps)
            if split < size.em_splits:
                for name, semi in sppca_trials.BY_EM.items():
                    rng = np.random.default_rng([seed, split, d])
                    found[name] = plain_sppca.project_by_em(
                        X, X.shape[1], Y[train], train, d, semi=semi, rng=rng, steps=size.em_steps
                    )
            for name, Z in found.items():
                results[_label_row(name, d)].append(_score_projection(Z, Y, train, test))
    return results


def _load_reports(path: Path, n: int, seed: int) -> tuple[Array, Array]:
    """Some of the reports, as dense tf-idf of unit length, and their labels."""
    X, Y = load_counts(path)
    if X.shape[1:] != (500,) or Y.shape != (X.shape[0], 22):
        raise ValueError(
            f"{str(path)!r} must hold X of 500 columns and y of 22; got {X.shape} and {Y.shape}. "
            "Obtain it again."
        )
    rows = np.sort(np.random.default_rng([seed, 7]).permutation(len(Y))[:n])
    some = Y[rows].astype(int)
    # of a rarer label there would be no rows left to ask
    return weigh_by_tf_idf(X[rows]).toarray(), some[:, some.sum(axis=0) >= 4 * POSITIVE]


def _load_genes(path: Path) -> tuple[Array, Array]:
    X, Y = load_arrays(path, ("X", "y"))
    if X.shape != SHAPE or Y.shape != (SHAPE[0], LABELS):
        raise ValueError(
            f"{str(path)!r} must hold X of shape {SHAPE} and y of shape {(SHAPE[0], LABELS)}; got "
            f"{X.shape} and {Y.shape}. Obtain it again."
        )
    return scale_to_unit_length(X.astype(float)), Y.astype(int)


def draw_positives(Y: Array, each: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The union of ``each`` rows that have a label, for all labels, and the other rows."""
    drawn = [rng.choice(np.flatnonzero(column), each, replace=False) for column in Y.T]
    train = np.unique(np.concatenate(drawn))
    return train, np.setdiff1d(np.arange(len(Y)), train)


def _score_projection(Z: Array, Y: Array, train: Array, test: Array) -> Array:
    """F1-macro, F1-micro and the hard AUC of a linear SVM for each label."""
    from sklearn.metrics import f1_score

    predicted = np.column_stack([_learn_label(Z, y, train, test) for y in Y.T])
    truth = Y[test]
    macro = f1_score(truth, predicted, average="macro", zero_division=0)
    micro = f1_score(truth, predicted, average="micro", zero_division=0)
    sensitivity = (truth * predicted).sum(axis=0) / truth.sum(axis=0)
    specificity = ((1 - truth) * (1 - predicted)).sum(axis=0) / (1 - truth).sum(axis=0)
    return np.array([macro, micro, np.mean(sensitivity + specificity) / 2])


def _learn_label(Z: Array, y: Array, train: Array, test: Array) -> Array:
    from sklearn.svm import SVC

    if np.ptp(y[train]) == 0:  # nothing to tell apart
        return np.full(len(test), y[train[0]])
    predicted: Array = SVC(kernel="linear", C=PENALTY).fit(Z[train], y[train]).predict(Z[test])
    return predicted


# ------------------------------------------------ cells and settings


def _label_row(name: str, d: int) -> str:
    return f"{name}, d = {d}"


def _label_rows(name: str) -> list[str]:
    return [name] if name == "FULL" else [_label_row(name, d) for d in DIMS]


def _make_cells(results: dict[str, list[Array]]) -> tuple[Cell, ...]:
    cells = []
    for name in ("FULL", *METHODS):
        printed = PUBLISHED.get(name)  # of noises that are held, and of plain EM, nothing is
        for at, row in enumerate(_label_rows(name)):
            for j, column in enumerate(COLUMNS):
                values = tuple(float(result[j]) for result in results[row])
                theirs = None if printed is None else printed[at][j]
                cells.append(Cell(row, column.name, values, theirs, why=WHY))
    return tuple(cells)


def _make_report_cells(results: dict[str, list[Array]]) -> tuple[Cell, ...]:
    """Those of the stand-in: nothing is published of it."""
    return tuple(
        Cell(f"{STAND_IN}, {row}", column.name, tuple(float(values[j]) for values in found))
        for row, found in results.items()
        for j, column in enumerate(COLUMNS)
    )


def _check_reports(cells: tuple[Cell, ...]) -> list[Check]:
    """What the source says of RCV1: S2PPCA above PCA and SPPCA in every measure."""
    places = {(cell.row, cell.column): cell.ours for cell in cells}
    checks = []
    for other in ("PCA", "SPPCA"):
        gaps = [
            places[f"{STAND_IN}, {_label_row('S2PPCA', d)}", column.name]
            - places[f"{STAND_IN}, {_label_row(other, d)}", column.name]
            for d in DIMS
            for column in COLUMNS
        ]
        claim = f"{STAND_IN}: S2PPCA is above {other} in every measure, as on RCV1"
        detail = f"differences {min(gaps):+.3f} to {max(gaps):+.3f}"
        checks.append(Check(claim, min(gaps) > 0, detail))
    return checks


def _check_claims(cells: tuple[Cell, ...], steps: dict[str, list[int]]) -> tuple[Check, ...]:
    places = {(cell.row, cell.column): cell for cell in cells}
    checks = []
    for name in sppca_trials.BY_EM:
        checks.append(_check_em(places, name))
    free = [
        n for name, (held, _) in sppca_trials.SUPERVISED.items() if not held for n in steps[name]
    ]
    detail = f"median {np.median(free):.0f}, most {max(free)}"
    checks.append(Check("with noises learned, fits take tens of steps", max(free) < 100, detail))
    return tuple(checks)


def _check_em(places: dict[tuple[str, str], Cell], name: str) -> Check:
    """The class against plain EM, on the splits that both have run."""
    own = name.removesuffix(" by EM")
    gaps = {}
    for d in DIMS:
        for column in COLUMNS:
            theirs = places[_label_row(name, d), column.name]
            ours = places[_label_row(own, d), column.name].values[: len(theirs.values)]
            gaps[d, column.name] = float(np.mean(np.subtract(ours, theirs.values)))
    worst = max(gaps, key=lambda place: abs(gaps[place]))
    claim = f"{own} of the class has the measures of plain EM in numpy, within 0.03"
    detail = f"largest difference {gaps[worst]:+.3f} ({worst[1]}, d = {worst[0]})"
    return Check(claim, abs(gaps[worst]) <= 0.03, detail)


def _list_settings(size: Size) -> tuple[tuple[str, str], ...]:
    return (
        ("latent dimensions d", ", ".join(map(str, DIMS))),
        ("splits", str(size.splits)),
        ("most steps", str(size.max_iter)),
        ("SVM", f"linear, C = {PENALTY:g}, one for each label"),
    )


EXPERIMENT = Experiment(
    name="sppca-multilabel",
    title="Supervised and semi-supervised PPCA of genes with several labels",
    source="Yu 2006",
    place="table 7.4",
    protocol=(
        "Genes of yeast, rows of unit length, 14 labels of which a gene has several. Five genes "
        "that have a label are drawn for each label; all that were drawn are the training rows, "
        "the others are test rows. A linear SVM with C = 100 learns each label from the training "
        "rows in the projection. PCA and S2PPCA see the columns of all rows, PLS and SPPCA the "
        "training rows; factors are expected given the columns alone. Noises are learned or held "
        "at 1e-5 (held); plain EM from a random start in numpy is the reference (by EM)."
    ),
    data=(GENES, REPORTS),
    run=run,
)
