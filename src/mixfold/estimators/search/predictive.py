"""How well a model tells the outputs of rows that its fit has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.outputs.supervised import SupervisedEstimator
from mixfold.estimators.search.rows import Rows, Scores
from mixfold.estimators.shell.targets import as_target, is_unknown, read_target

# losses of the outputs: the column of the table is the name with an underscore
LOSSES = ("log-loss", "squared-error")


def learns_from_y(estimator: Any) -> bool:
    """Whether an estimator is a factor model with outputs."""
    return isinstance(estimator, SupervisedEstimator)


def check_comparable(named: dict[str, Any], criterion: str) -> bool:
    """Whether the estimators of a search learn from y; refused if only some do."""
    with_y = [name for name, value in named.items() if learns_from_y(value)]
    without = [name for name in named if name not in with_y]
    if with_y and without:
        raise ValueError(
            f"estimator: {with_y[0]!r} learns from y and {without[0]!r} does not, so that no "
            "criterion compares them; search them one after the other"
        )
    if criterion in LOSSES and without:
        raise ValueError(
            f"criterion={criterion!r} compares predictions of y, which {without[0]!r} does not "
            "make; use criterion='held-out', or SupervisedPPCA, SupervisedMixtureOfPPCA or "
            "MixtureOfFactorModels"
        )
    return bool(with_y)


def score_outputs(model: SupervisedEstimator, rows: Rows) -> dict[str, Scores]:
    """Losses of held-out rows whose outputs are known, with their weights, by name."""
    weights = rows.weights()
    found = {"log-loss": -model._log_predictive(rows.X, rows.y)}
    errors = model._squared_errors(rows.X, rows.y)
    if errors is not None:
        found["squared-error"] = errors
    return {name: _of_known_rows(loss, weights) for name, loss in found.items()}


def _of_known_rows(loss: Array, weights: Array) -> Scores:
    used = ~np.isnan(loss) & (weights > 0)
    return Scores(loss[used], weights[used])


def classes_of_rows(X: Any, y: Any) -> Array | None:
    """Numbers of the classes of rows (-1 unknown), by which folds are divided; None if y is not
    one column of classes."""
    if y is None:
        return None
    values = as_target(read_target(X, y))
    column = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if column.ndim != 1:
        return None
    lacks = is_unknown(column)
    known = column[~lacks]
    if known.dtype.kind == "f" and (known != np.round(known)).any():
        return None
    numbers = np.full(len(column), -1)
    names, numbers[~lacks] = np.unique(known.astype(str), return_inverse=True)
    return numbers if len(names) <= max(len(known) // 2, 2) else None
