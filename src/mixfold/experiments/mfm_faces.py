"""Source 000, table 5.4: factors, clusters and classes together, on the faces of two people."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments import mfm_digits as digits
from mixfold.experiments import mfm_ppca_faces as faces
from mixfold.experiments.checks import grows
from mixfold.experiments.experiment import Experiment, Progress
from mixfold.experiments.mfm_picture import Scatter, draw_scatter, scatter_of
from mixfold.experiments.table import Best, Cell, Check, Column, Table, Tolerance

COLUMNS = (
    Column(
        "R_dim",
        "risk of the reduction per latent dimension on held-out images; not judged: the source's "
        "EM leaves it at the scale of its start",
        form=".4f",
    ),
    Column(
        "R_clas(x)",
        "probability that a held-out image is not of its most probable person, from its pixels; "
        "not judged: it falls as the length of the classifier grows, which depends on where a fit "
        "of separable classes stops",
        form=".4f",
    ),
    Column("R_clas(y)", "the same from the expected latents alone; not judged", form=".4f"),
    Column(
        "R_clus",
        "probability that a held-out image is not of its component; not judged: a mean of tail "
        "probabilities over many orders of magnitude",
        form=".1e",
        logarithmic=True,
    ),
    Column(
        "P_cc x",
        "share of held-out images whose class is told right from their pixels",
        tolerance=Tolerance(absolute=0.012),
        form=".3f",
        best=Best.higher,
    ),
    Column(
        "P_cc y",
        "the same from the expected latents alone",
        tolerance=Tolerance(absolute=0.012),
        form=".3f",
        best=Best.higher,
    ),
    Column(
        "SER",
        "signal-to-error ratio of held-out images, 20 log10 of the mean of |x| / |x - x_hat|, not "
        "centred; x_hat is the hard reconstruction",
        unit="dB",
        tolerance=Tolerance(absolute=0.5),
        form=".2f",
        best=Best.higher,
    ),
)
# (K, d): in the order of the columns
PUBLISHED = {
    (1, 6): (0.0153, 0.0362, 0.0360, 0.0, 0.995, 0.995, 17.35),
    (2, 6): (0.0120, 0.0351, 0.0350, 1.1e-6, 0.995, 0.995, 18.38),
    (3, 6): (0.0115, 0.0365, 0.0364, 6.4e-6, 0.997, 0.997, 18.97),
    (1, 12): (0.0151, 0.0318, 0.0318, 0.0, 0.997, 0.997, 18.95),
    (2, 12): (0.0140, 0.0315, 0.0314, 9.8e-5, 0.997, 0.997, 19.98),
    (3, 12): (0.0117, 0.0297, 0.0297, 4.3e-10, 0.997, 0.997, 20.83),
    (1, 18): (0.0152, 0.0303, 0.0302, 0.0, 0.997, 0.997, 19.98),
    (2, 18): (0.0133, 0.0283, 0.0282, 6.1e-18, 0.997, 0.997, 21.20),
    (3, 18): (0.0123, 0.0285, 0.0284, 7.0e-13, 0.997, 0.997, 23.19),
}
LEAST_RIGHT, SAME_RATIO = 0.985, 0.05
# of a fit: gain per image that is still to come, and iterations
TOL, MAX_ITER = 1e-5, 1000
NOTES = (
    "The source does not name its two people; these are the ones of mfm-ppca-faces, chosen because "
    "their PPCA comes near the published one. The agreement of the SER of K = 1 is no evidence.",
    "The source says that its smaller R_clas(y) shows better generalisation. For one component it "
    "is smaller for every image by the formula: the spread of the latents only takes from the "
    "certainty.",
    "k-means on the pixels finds the people, and a classifier that all components share needs both "
    "in each of them: the start clusters the images about the mean of their person.",
    "At K = 3, d = 18 the published SER is reached on the images of the fit, not on the others: "
    "half of 372 images are few for 3 x 18 axes.",
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much of the table is run, and how thoroughly; ``digits`` images, 0 for all."""

    components: tuple[int, ...]
    factors: tuple[int, ...]
    repeats: int
    restarts: int
    digits: int


FULL = Size(components=(1, 2, 3), factors=(6, 12, 18), repeats=3, restarts=3, digits=0)
QUICK = Size(components=(1, 2), factors=(6, 12), repeats=1, restarts=1, digits=1500)


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Fit every size of model to half of the images, measure on the other half, and vice versa."""
    X, y = faces._images(data_folder / faces.FACES.name)
    size = QUICK if quick else FULL
    results: dict[tuple[int, int], list[Array]] = defaultdict(list)
    gaps: list[float] = []
    steps = [(r, d, k) for r in range(size.repeats) for d in size.factors for k in size.components]
    shown: list[Scatter] = []
    for step, (repeat, d, k) in enumerate(steps):
        progress(step, len(steps) + 1, f"split {repeat + 1}, {k} component(s), d = {d}")
        folds = []
        for fold, (train, test) in enumerate(faces._folds(y, seed, repeat)):
            state = faces._state(seed, repeat, fold, k, d)
            model = _fit(X[train], y[train], k, d, size.restarts, state)
            folds.append(_measure(model, X[test], y[test]))
            if k == 1:
                gaps.append(folds[-1][-1] - _of_ppca(X[train], X[test], d))
                shown = shown or [scatter_of(model, X[test], y[test])]
        results[k, d].append(np.mean(folds, axis=0))
    cells = _cells(results)
    checks = (*_checks(cells, size), _like_ppca(gaps))
    progress(len(steps), len(steps) + 1, "digits")
    more, claims = digits.run(data_folder, size.digits, seed)
    picture = partial(draw_scatter, scatter=shown[0], cells=cells)
    return Table(
        COLUMNS, cells + more, checks + claims, _settings(size, bool(more)), NOTES, picture
    )


def _fit(X: Array, y: Array, k: int, d: int, restarts: int, state: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning

    from mixfold import DegenerateWarning, MixtureOfFactorModels

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DegenerateWarning)
        model = MixtureOfFactorModels(
            k, d, n_init=restarts, tol=TOL, max_iter=MAX_ITER, random_state=state
        )
        return model.fit(X, y)


def _measure(model: Any, X: Array, y: Array) -> Array:
    """Of held-out images, in the order of the columns."""
    from mixfold import metrics

    risks = model.risks(X, y)
    names = ("reduction", "classification", "classification_latent", "clustering", "accuracy",
             "accuracy_latent")  # fmt: skip
    ratio = metrics.signal_to_error_ratio(X, model.reconstruct(X, "hard"))
    return np.array([*(risks[name] for name in names), ratio])


def _of_ppca(train: Array, test: Array, d: int) -> float:
    from mixfold import PPCA, metrics

    return float(metrics.signal_to_error_ratio(test, PPCA(d).fit(train).reconstruct(test)))


def _cells(results: dict[tuple[int, int], list[Array]]) -> tuple[Cell, ...]:
    return tuple(
        Cell(
            faces._row(k, d),
            column.name,
            tuple(float(v[j]) for v in values),
            PUBLISHED[k, d][j],
            why=faces.WHY,
        )
        for (k, d), values in results.items()
        for j, column in enumerate(COLUMNS)
    )


def _checks(cells: Sequence[Cell], size: Size) -> tuple[Check, ...]:
    by = {(cell.row, cell.column): cell for cell in cells}
    ser = [[by[faces._row(k, d), "SER"] for d in size.factors] for k in size.components]
    right = [cell for cell in cells if cell.column.startswith("P_cc")]
    worst = min(right, key=lambda cell: cell.ours)
    ones = [faces._row(1, d) for d in size.factors]
    surer = [by[row, "R_clas(y)"].ours <= by[row, "R_clas(x)"].ours for row in ones]
    return (
        grows("SER grows with d", ser),
        grows("SER grows with K", list(zip(*ser, strict=True))),
        Check(
            f"P_cc is at least {LEAST_RIGHT}",
            worst.ours >= LEAST_RIGHT,
            f"the least is {worst.ours:.3f}, {worst.column} of {worst.row}",
        ),
        Check(
            "R_clas(y) is at most R_clas(x) for K = 1",
            all(surer),
            f"in {sum(surer)} of {len(surer)} rows",
        ),
    )


def _like_ppca(gaps: Sequence[float]) -> Check:
    largest = max(abs(gap) for gap in gaps)
    return Check(
        f"the SER of K = 1 is that of PPCA within {SAME_RATIO} dB",
        largest <= SAME_RATIO,
        f"the largest difference is {largest:.3f} dB",
    )


def _settings(size: Size, with_digits: bool) -> tuple[tuple[str, str], ...]:
    images = "all" if size.digits == 0 else str(size.digits)
    return (
        ("people", " and ".join(map(str, faces.PEOPLE))),
        ("components K", ", ".join(map(str, size.components))),
        ("latent dimensions d", ", ".join(map(str, size.factors))),
        ("repeats (random splits)", str(size.repeats)),
        ("restarts, the best objective kept", str(size.restarts)),
        ("images of digits", images if with_digits else "none: the file is not there"),
    )


EXPERIMENT = Experiment(
    name="mfm-faces",
    title="Mixtures of factor models with labels: two people, and two digits",
    source="000",
    place="table 5.4",
    protocol=(
        "Two people in 186 poses each, 372 grey images of 48 x 64 pixels with values from 0 to "
        "255, neither centred nor scaled, and who is who. The images are split at random into two "
        "halves with as many of each person; a model is fitted to one half with its labels and "
        "measured on the other without, then the other way round, and the two results are "
        "averaged. K components of d factors share one classifier; isotropic noise, EM with the "
        "balanced start, the best objective of several restarts. Below, not in the source: the "
        "handwritten digits 3 and 8 by the same protocol, with labels that count once and a "
        "hundred times (tradeoff), beside a linear support vector machine."
    ),
    data=(faces.FACES, digits.DIGITS),
    run=run,
)
