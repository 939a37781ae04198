"""Supervised PPCA beside other projections, on one split after the other."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Array
from papers.frame.experiment import map_on_cores
from papers.shared import baseline_projections, plain_sppca
from papers.shared.labelled_sets import Labelled

# both noise variances where they are held, as Yu (2006) starts them
HELD = 1e-5
# name of a column: (noises held, rows without labels seen too)
SUPERVISED = {
    "SPPCA": (False, False),
    "SPPCA held": (True, False),
    "S2PPCA": (False, True),
    "S2PPCA held": (True, True),
}
# plain EM as the source ran it: rows without labels seen too
BY_EM = {"SPPCA by EM": False, "S2PPCA by EM": True}
RIVALS = ("FULL", "PCA", "PCA whitened", "ridge LDA", "PLS")


@dataclass(frozen=True, slots=True)
class Projected:
    """Expected factors of all rows, (N, d), and how the fit ended."""

    Z: Array
    steps: int
    converged: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """A split of a table: rows with labels and the others; whether plain EM is run as well."""

    train: Array
    test: Array
    dims: tuple[int, ...]
    max_iter: int
    by_em: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Errors by column and d; steps and whether converged by column and d."""

    errors: dict[tuple[str, int], float]
    steps: dict[tuple[str, int], int]
    converged: dict[tuple[str, int], bool]


def project(
    X: Any,
    y: Array,
    train: Array,
    d: int,
    *,
    semi: bool,
    max_iter: int,
    weight: float = 1.0,
    **noises: float,
) -> Projected:
    """Fit to the labelled rows, or with ``semi`` to all, and project all rows by X alone.

    ``weight`` is that of a row without label.
    """
    from sklearn.exceptions import ConvergenceWarning

    from mixfold import DegenerateWarning, SupervisedPPCA

    task = "classification" if y.ndim == 1 else "multilabel"
    model = SupervisedPPCA(d, task=task, max_iter=max_iter, n_jobs=1, random_state=0)
    model.set_params(**noises)
    with warnings.catch_warnings():
        # One fit of many: those that did not converge are counted in a note of the table.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DegenerateWarning)
        if semi:
            weights = np.full(len(y), weight)
            weights[train] = 1.0
            model.fit(X, _hide_unlabelled(y, train), sample_weight=None if weight == 1 else weights)
        else:
            model.fit(X[train], y[train])
    return Projected(model.transform(X), model.n_iter_, model.converged_)


def _hide_unlabelled(y: Array, train: Array) -> Array:
    """Targets of the labelled rows; elsewhere -1, or NaN of labels."""
    known = np.full(y.shape, -1 if y.ndim == 1 else np.nan)
    known[train] = y[train]
    return known.astype(y.dtype) if y.ndim == 1 else known


def measure_split(data: Labelled, scores: Array, trial: Trial) -> Outcome:
    """1-NN errors of every projection; ``scores`` are those of the principal axes of all rows."""
    X, y, train = data.X, data.y, trial.train
    error = partial(baseline_projections.measure_nearest_error, y=y, train=train, test=trial.test)
    full = baseline_projections.measure_nearest_error_of_rows(X, y, train, trial.test)
    F = baseline_projections.compute_span_coordinates(X, train)
    outcome = Outcome({}, {}, {})
    for d in trial.dims:
        axes = scores[:, :d]
        own = min(d, len(train) - 2)  # few labelled rows have no more axes
        fisher = baseline_projections.project_by_ridge_lda(F, y, train, d, X.shape[1])
        partial_squares = baseline_projections.project_by_pls(
            F, np.eye(y.max() + 1)[y[train]], train, own
        )
        found = (
            full,
            *map(error, (axes, baseline_projections.whiten(axes), fisher, partial_squares)),
        )
        outcome.errors.update({(name, d): e for name, e in zip(RIVALS, found, strict=True)})
        for name, (held, semi) in SUPERVISED.items():
            noises = {"input_noise": HELD, "output_noise": HELD} if held else {}
            size = d if semi else own
            fit = project(X, y, train, size, semi=semi, max_iter=trial.max_iter, **noises)
            outcome.errors[name, d] = error(fit.Z)
            outcome.steps[name, d], outcome.converged[name, d] = fit.steps, fit.converged
        if trial.by_em:
            every = baseline_projections.compute_span_coordinates(X, np.arange(len(y)))
            Y = np.eye(y.max() + 1)[y[train]]
            for name, semi in BY_EM.items():
                rng = np.random.default_rng([d, *train[:3]])
                Z = plain_sppca.project_by_em(
                    every, X.shape[1], Y, train, d if semi else own, semi=semi, rng=rng
                )
                outcome.errors[name, d] = error(Z)
    return outcome


def measure_splits(data: Labelled, scores: Array, trials: Sequence[Trial]) -> Iterator[Outcome]:
    """``measure_split`` for each split, in that order, on all cores."""
    return map_on_cores(measure_split, [(data, scores, trial) for trial in trials])
