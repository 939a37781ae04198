"""Two handwritten digits by factor models with labels, beside a linear support vector machine."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments import mfm_ppca_faces as faces
from mixfold.experiments.data import load_arrays
from mixfold.experiments.experiment import DataFile
from mixfold.experiments.table import Cell, Check

PAIR, PIXELS, FACTORS = (3, 8), 784, 10
# how often labels count
TRADEOFFS = (1.0, 100.0)
# of the support vector machine: the best of a few on held-out images, to its advantage
COSTS = (0.003, 0.01, 0.1)
NEAR, MAX_ITER = 0.005, 200
DIGITS = DataFile(
    "mnist.npz",
    "arrays X (images x 784, grey values 0 to 255 of 28 x 28 pixels) and y (the digit, 0 to 9)",
    "the MNIST database of handwritten digits of Y. LeCun, C. Cortes and C. J. C. Burges (1998)",
    optional=True,
)


def run(folder: Path, n_images: int, seed: int) -> tuple[tuple[Cell, ...], tuple[Check, ...]]:
    """Cells and claims; none if the file is not there."""
    path = folder / DIGITS.name
    if not path.exists():
        return (), ()
    X, y = _images(path, n_images, seed)
    machine: list[float] = []
    ours: dict[float, list[Any]] = {tradeoff: [] for tradeoff in TRADEOFFS}
    for fold, (train, test) in enumerate(faces._folds(y, seed, 0)):
        machine.append(_machine(X[train], y[train], X[test], y[test]))
        for tradeoff in TRADEOFFS:
            model = _fit(X[train], y[train], tradeoff, faces._state(seed, fold))
            ours[tradeoff].append(_measure(model, X[test], y[test]))
    cells = [Cell("digits, linear SVM", "P_cc x", (float(np.mean(machine)),))]
    for tradeoff, found in ours.items():
        row = f"digits, tradeoff {tradeoff:g}"
        for name, value in zip(("P_cc x", "P_cc y", "SER"), np.mean(found, axis=0), strict=True):
            cells.append(Cell(row, name, (float(value),)))
    stressed = float(np.mean(ours[TRADEOFFS[-1]], axis=0)[0])
    return tuple(cells), (_near(stressed, float(np.mean(machine))),)


def _images(path: Path, n_images: int, seed: int) -> tuple[Array, Array]:
    """The images of two digits, or some of them, with values from 0 to 1."""
    X, y = load_arrays(path, ("X", "y"))
    if X.ndim != 2 or X.shape[1] != PIXELS or y.shape != X.shape[:1]:
        raise ValueError(
            f"{str(path)!r} must hold X of shape (n, {PIXELS}) and y of shape (n,); got "
            f"{X.shape} and {y.shape}. Obtain it again."
        )
    chosen = np.flatnonzero(np.isin(y, PAIR))
    if n_images:
        chosen = np.sort(np.random.default_rng(seed).permutation(chosen)[:n_images])
    return X[chosen] / 255.0, y[chosen]


def _machine(X: Array, y: Array, new: Array, labels: Array) -> float:
    from sklearn.svm import LinearSVC

    fits = [LinearSVC(C=cost, dual=False).fit(X, y) for cost in COSTS]
    return max(float(fit.score(new, labels)) for fit in fits)


def _fit(X: Array, y: Array, tradeoff: float, state: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning

    from mixfold import MixtureOfFactorModels

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MixtureOfFactorModels(
            2, FACTORS, tradeoff=tradeoff, tol=1e-4, max_iter=MAX_ITER, random_state=state
        )
        return model.fit(X, y)


def _measure(model: Any, X: Array, y: Array) -> tuple[float, float, float]:
    from mixfold import metrics

    risks = model.risks(X, y)
    ratio = float(metrics.signal_to_error_ratio(X, model.reconstruct(X, "hard")))
    return risks["accuracy"], risks["accuracy_latent"], ratio


def _near(stressed: float, machine: float) -> Check:
    return Check(
        f"digits with stressed labels are within {100 * NEAR:g} points of a linear SVM",
        stressed >= machine - NEAR,
        f"{100 * stressed:.2f} against {100 * machine:.2f} % right",
    )
