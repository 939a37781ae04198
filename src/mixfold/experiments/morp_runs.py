"""Supervised and other projections of rows with several labels, judged by linear machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rankdata

from mixfold.contracts import Array
from mixfold.engine.executors.threads import available_cores
from mixfold.experiments.morp_sets import Division, TagFile, Tagged

PENALTY, BETA = 100.0, 0.5
# names of methods: what is published about, in its order, and our own form of MORP
RAW, PRINCIPAL, CORRELATED = "raw", "kernel PCA", "kernel CCA"
MAX, INVERSE = "MORP max", "MORP inverse"
PROJECTIONS = (PRINCIPAL, CORRELATED, MAX, INVERSE)
METHODS = (RAW, *PROJECTIONS)
SETTINGS = ("I", "II")
MEASURES = ("F1", "AUC")
# (setting, method, d): F1 and AUC; of all columns d is 0
Outcome = dict[tuple[str, str, int], Array]


@dataclass(frozen=True, slots=True)
class Trial:
    """One fold of a table: dimensions, and how many parts of the unseen rows train in II."""

    about: TagFile
    division: Division
    dims: tuple[int, ...]
    parts: int


def measured(data: Tagged, trial: Trial) -> Outcome:
    """F1 and AUC of every method at every dimension, in both settings."""
    division, X = trial.division, data.X
    outcome = _settings(partial(_compared, X, trial.about.kernel), data.Y, trial, RAW, 0)
    seen = data.Y[np.ix_(division.train, division.known)]
    for name in PROJECTIONS:
        # axes come in order, so that the first of many are the axes of a smaller projection
        Z = project(name, trial.about, X, division.train, seen, max(trial.dims))
        for d in trial.dims:
            rows = equal_length(Z[:, :d], division.train)
            outcome |= _settings(partial(_products, rows), data.Y, trial, name, d)
    return outcome


def all_measured(data: Tagged, trials: Sequence[Trial]) -> Iterator[Outcome]:
    """``measured`` for each fold, in that order, on all cores."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    jobs = min(available_cores(), len(trials))
    results: Iterator[Outcome] = Parallel(jobs, return_as="generator", batch_size=1)(
        delayed(measured)(data, trial) for trial in trials
    )
    return results


# ------------------------------------------------ projections


def project(name: str, about: TagFile, X: Any, train: Array, Y: Array, d: int) -> Array:
    """Fit a method of ``PROJECTIONS`` to some rows and their labels, and project all rows.

    Kernel CCA has no more axes than the labels have ranks.
    """
    from mixfold.estimators.kernel_cca import KernelCCA
    from mixfold.estimators.kernel_pca import KernelPCA
    from mixfold.estimators.morp import MORP

    common = {**about.kernel, "n_jobs": 1, "random_state": 0}
    if name == PRINCIPAL:
        model = KernelPCA(d, **common).fit(X[train])
    elif name == CORRELATED:
        rank = int(np.linalg.matrix_rank(Y - Y.mean(axis=0)))
        model = KernelCCA(min(d, rank), regularization=about.correlation, **common)
        model.fit(X[train], Y)
    elif name == MAX:
        model = MORP(d, beta=BETA, task="multilabel", **common).fit(X[train], Y)
    else:
        inverse: dict[str, Any] = {"form": "inverse", "regularization": 0.0, "standardize": False}
        model = MORP(d, beta=BETA, task="regression", **inverse, **common)
        model.fit(*distinct(X[train], Y))
    return np.asarray(model.transform(X))


def distinct(X: Any, Y: Array) -> tuple[Any, Array, Array]:
    """Rows that differ, the mean labels of each, and how many rows it stands for.

    The inverse form needs inputs that tell all rows apart; some articles came twice, and with
    other topics the second time.
    """
    rows = np.round(X.toarray() if hasattr(X, "toarray") else X, 9)
    _, first, group, counts = np.unique(
        rows, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    means = np.zeros((len(first), Y.shape[1]))
    np.add.at(means, group.ravel(), Y)
    return X[first], means / counts[:, None], counts.astype(float)


def equal_length(Z: Array, train: Array) -> Array:
    """Scaled so that the mean squared length of the training rows is one, as that of the tables.

    Methods scale their axes differently, and the penalty of a machine means another thing at
    another scale.
    """
    return np.asarray(Z / np.sqrt(np.mean(np.sum(Z[train] ** 2, axis=1))))


def _products(Z: Array, a: Array, b: Array) -> Array:
    return np.asarray(Z[a] @ Z[b].T)


def _compared(X: Any, kernel: dict[str, Any], a: Array, b: Array) -> Array:
    from sklearn.metrics.pairwise import pairwise_kernels

    settings = {name: value for name, value in kernel.items() if name != "kernel"}
    return np.asarray(pairwise_kernels(X[a], X[b], metric=kernel["kernel"], **settings))


# ------------------------------------------------ judging


def _settings(
    products: Callable[[Array, Array], Array], Y: Array, trial: Trial, name: str, d: int
) -> Outcome:
    """Setting I on the labels that were known, setting II on the new ones."""
    division = trial.division
    known = learned(products, Y[:, division.known], division.train, division.unseen)
    later = [learned(products, Y[:, division.new], *rows) for rows in division.lessons(trial.parts)]
    return {("I", name, d): known, ("II", name, d): np.mean(later, axis=0)}


def learned(
    products: Callable[[Array, Array], Array], Y: Array, train: Array, test: Array
) -> Array:
    """Mean F1 and AUC over labels of one linear machine each; ``products(a, b)`` compares rows."""
    among, across = products(train, train), products(test, train)
    scores = np.column_stack([_machine(among, across, y) for y in Y[train].T])
    return scored(Y[test], scores)


def _machine(among: Array, across: Array, y: Array) -> Array:
    """Scores of the test rows, positive for those that should have the label."""
    from sklearn.svm import SVC

    if np.ptp(y) == 0:  # nothing to tell apart
        return np.full(len(across), 2.0 * y[0] - 1)
    machine = SVC(kernel="precomputed", C=PENALTY).fit(among, y)
    scores = across[:, machine.support_] @ machine.dual_coef_[0] + machine.intercept_
    return np.asarray(scores)


def scored(truth: Array, scores: Array) -> Array:
    """F1 and AUC, means over the labels that some rows have and some have not.

    Equal scores count half in the AUC: it is 1/2 for a label of which no training row had any.
    """
    told = scores > 0
    positive = truth.sum(axis=0)
    negative = len(truth) - positive
    ranks = (rankdata(scores, axis=0) * truth).sum(axis=0) - positive * (positive + 1) / 2
    both = (positive > 0) & (negative > 0)
    hits = (told & (truth == 1)).sum(axis=0)
    f1 = 2 * hits[both] / (told.sum(axis=0) + positive)[both]
    return np.array([f1.mean(), np.mean(ranks[both] / (positive * negative)[both])])
