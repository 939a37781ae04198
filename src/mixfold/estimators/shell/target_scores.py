"""How well targets are predicted, where they are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from mixfold.contracts import Array
from mixfold.estimators.shell.target_values import of_one_kind
from mixfold.estimators.shell.targets import Target, as_target, unknown


def target_score(target: Target, y: Any, predicted: Array, sample_weight: Any = None) -> float:
    """Accuracy or R^2 of predictions, in the form of y; what is unknown of y does not count.

    Parameters
    ----------
    target : Target
        What y was in the fit.
    y : as in a fit
    predicted : ndarray
        ``Target.decoded``.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    float
        Share of the classes that are right; of rows all of whose known labels are; or R^2, of
        several outputs their mean.
    """
    values = as_target(y)
    if target.task == "classification":
        known: Array = ~unknown(values).ravel()
        truth, found = values.ravel(), predicted
    else:
        table = target.encoded(values)
        known = np.asarray(~np.isnan(table).all(axis=1))
        truth, found = table, predicted.reshape(table.shape)
    _check(known, len(predicted))
    weight = np.ones(len(known)) if sample_weight is None else np.asarray(sample_weight, float)
    truth, found, weight = truth[known], found[known], weight[known]
    if target.task == "classification":
        # (a class that the fit did not know is one that it got wrong)
        return float(accuracy_score(of_one_kind(truth), found, sample_weight=weight))
    if target.task == "multilabel":
        return float(np.average(((truth == found) | np.isnan(truth)).all(axis=1), weights=weight))
    return float(np.mean(_determined(truth, found, weight)))


def _determined(truth: Array, found: Array, weight: Array) -> list[float]:
    """R^2 of each output that is ever known."""
    each = [~np.isnan(column) for column in truth.T]
    return [
        float(r2_score(truth[rows, j], found[rows, j], sample_weight=weight[rows]))
        for j, rows in enumerate(each)
        if rows.any()
    ]


def _check(known: Array, n_rows: int) -> None:
    if len(known) != n_rows:
        raise ValueError(
            f"y has {len(known)} entries, X has {n_rows} rows; give one entry per row, in the "
            "same order"
        )
    if not known.any():
        raise ValueError(
            "y has no known entry to compare with: every one is NaN, None or, of integers, -1"
        )
