"""What a user gives as y: classes, labels or numbers, some of them unknown; and back again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import type_of_target

from mixfold.contracts import Array, record
from mixfold.estimators.shell.base import warn
from mixfold.estimators.shell.target_values import as_floats, as_target, of_one_kind, unknown

__all__ = ["TASKS", "Target", "as_target", "learned", "make_target", "unknown"]

TASKS = ("auto", "classification", "multilabel", "regression")

# what sklearn's type_of_target calls the known entries, and what is made of it
_KINDS = {
    "binary": "classification",
    "multiclass": "classification",
    "multilabel-indicator": "multilabel",
    "multiclass-multioutput": "regression",
    "continuous": "regression",
    "continuous-multioutput": "regression",
}


@record
@dataclass(frozen=True, slots=True)
class Target:
    """What y was in a fit.

    ``task`` is 'classification', 'multilabel' or 'regression'; ``classes`` in order, empty for
    numbers; ``n_outputs`` columns (classes have one); ``flat`` if y had one dimension.
    """

    task: str
    classes: Array
    n_outputs: int
    flat: bool

    def encoded(self, y: Any) -> Array:
        """Class numbers (n,) with -1, or outputs (n, L) with NaN, where unknown."""
        values = as_target(y)
        if self.task == "classification":
            return _codes(values, self.classes)
        return self._table(values)

    def _table(self, values: Array) -> Array:
        table = _numbers(values, self.task)
        table = table[:, None] if table.ndim == 1 else table
        if table.shape[1] != self.n_outputs:
            raise ValueError(
                f"y must have {self.n_outputs} columns, as in the fit; got {table.shape[1]}"
            )
        if self.task == "multilabel":
            _check_binary(table)
        return table

    def decoded(self, outputs: Array) -> Array:
        """Class numbers or outputs (n, L) in the form in which y was given."""
        if self.task == "classification":
            return np.asarray(self.classes[outputs])
        return outputs[:, 0] if self.flat else outputs


def learned(y: Any, task: str, weight: Array | None) -> tuple[Target, Array]:
    """What y is in the rows of positive weight, and y encoded; in the other rows it is unknown."""
    values = as_target(y)
    if weight is None or len(weight) != len(values) or (weight > 0).all():
        target = make_target(values, task)
        return target, target.encoded(values)
    weighs = weight > 0
    if not weighs.any():
        raise ValueError(
            "sample_weight is zero in every row: at least one row must have a positive weight."
        )
    target = make_target(values[weighs], task)
    some = target.encoded(values[weighs])
    unseen = -1 if target.task == "classification" else np.nan
    encoded = np.full((len(values), *some.shape[1:]), unseen, dtype=some.dtype)
    encoded[weighs] = some
    return target, encoded


def make_target(y: Any, task: str = "auto") -> Target:
    """What y is, by its known entries.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    task : {'auto', 'classification', 'multilabel', 'regression'}
        'auto' asks scikit-learn's ``type_of_target``: text, and whole numbers in one column, are
        classes; columns of 0 and 1 are labels; all else is regression.
    """
    values = as_target(y)
    if task == "auto":
        task = _guessed(values)
    if task == "classification":
        return Target(task, _classes(values), 1, values.ndim == 1)
    table = _numbers(values, task)
    flat = table.ndim == 1
    table = table[:, None] if flat else table
    if np.isnan(table).all():
        raise _nothing_known()
    if task == "multilabel":
        _check_binary(table)
    return Target(task, np.array([0, 1] if task == "multilabel" else []), table.shape[1], flat)


def _guessed(values: Array) -> str:
    column = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    lacks = unknown(column)
    if lacks.all():
        raise _nothing_known()
    if column.ndim == 2 and lacks.any():
        known = of_one_kind(column[~lacks])
        return "multilabel" if np.isin(known, (0, 1)).all() else "regression"
    kind = type_of_target(of_one_kind(column if column.ndim == 2 else column[~lacks]),
                          input_name="y")  # fmt: skip
    if kind not in _KINDS:
        raise ValueError(f"Unknown label type: {kind!r}; y must hold classes, labels or numbers")
    return _KINDS[kind]


def _numbers(values: Array, task: str) -> Array:
    """y as floats; among labels, which are 0 or 1, the integer -1 is none."""
    table = as_floats(values)
    return np.where(unknown(values), np.nan, table) if task == "multilabel" else table


def _nothing_known() -> ValueError:
    return ValueError(
        "y has no known entry (among the rows of positive weight): every one is NaN, None or, of "
        "integers, -1; without outputs use PPCA or MixtureOfPPCA"
    )


def _classes(values: Array) -> Array:
    column = _one_column(values)
    known = of_one_kind(column[~unknown(column)])
    if known.dtype.kind == "f" and not np.array_equal(known, np.round(known)):
        raise ValueError(
            "Unknown label type: 'continuous'. Classes must be whole numbers or text, but y holds "
            f"{known[known != np.round(known)][0]:g}; for numbers set task='regression' (of "
            "SupervisedPPCA or SupervisedMixtureOfPPCA)"
        )
    classes = np.unique(known)
    if known.dtype.kind == "U" and "nan" in classes:
        warn(
            "y holds the text 'nan', which is taken for a class. If rows without a label are "
            "meant (numpy makes it of NaN among text), mark them by None in an array of dtype "
            "object",
            UserWarning,
        )
    if not len(classes):
        raise _nothing_known()
    if len(classes) == 1:
        raise ValueError(
            f"y must hold at least two classes, got 1 class only, {classes.tolist()[0]!r} (among "
            "the rows of positive weight); a row without a label is -1 among integers, NaN "
            "or None otherwise (rename a class that is called -1)"
        )
    return classes


def _one_column(values: Array) -> Array:
    if values.ndim == 2 and values.shape[1] > 1:
        raise ValueError(
            f"classes have one column, got y of shape {values.shape}; for columns of 0 and 1 set "
            "task='multilabel'"
        )
    if values.ndim == 2:
        warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples,), for example using ravel().",
            DataConversionWarning,
        )
    return values.ravel()


def _codes(values: Array, classes: Array) -> Array:
    column = values.ravel() if values.shape[1:] == (1,) else _one_column(values)
    lacks = unknown(column)
    out = np.full(len(column), -1, dtype=np.int64)
    known = of_one_kind(column[~lacks])
    if known.size:
        at = np.minimum(np.searchsorted(classes, known), len(classes) - 1)
        bad = np.flatnonzero(classes[at] != known)
        if bad.size:
            raise ValueError(
                f"y holds the class {known.tolist()[bad[0]]!r}, which the fit did not; they are "
                f"{classes.tolist()}"
            )
        out[~lacks] = at
    return out


def _check_binary(table: Array) -> None:
    known = table[~np.isnan(table)]
    bad = known[(known != 0) & (known != 1)]
    if bad.size:
        raise ValueError(f"labels must be 0 or 1, NaN where unknown; y holds {bad[0]:g}")
