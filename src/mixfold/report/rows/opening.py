"""The data as the model takes them, and the targets beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array, Source
from mixfold.engine.sources import open_source
from mixfold.engine.sources.targets import split_target
from mixfold.estimators.shell.targets import as_one_type, as_target, is_missing, is_unknown


def open_rows(model: Any, X: Any, y: Any, weight: Any) -> tuple[Source, Array | None]:
    """A source over X and the values of y, which may name a column of X."""
    if not isinstance(y, str):
        values = None if y is None else as_target(y)
        return model._open(X, reset=False, weight=weight), values
    values, features = split_target(X, y, weight)
    known = getattr(model, "feature_names_in_", None)
    columns = features if known is None else [str(name) for name in known]
    source = open_source(X, columns=columns, weight=weight)
    return model._open(source, reset=False), as_target(values)


def row_names(X: Any, schema: Any = None) -> Any:
    """Names of the rows: an identifier of a table that is read through a schema, an index that is
    more than their numbers, or files; None without."""
    if schema is not None and not isinstance(X, Source):
        ids = [column.name for column in schema if column.kind == "identifier"]
        table = schema.read(X)
        ids = [name for name in ids if name in table.names]
        if ids:
            return np.array([str(one) for one in table.column(ids[0]).to_pylist()], dtype=object)
    if isinstance(X, Source):  # a table may have a column of that name
        return getattr(X, "documents", None)
    index = getattr(X, "index", None)
    if index is None or callable(index) or not hasattr(index, "to_numpy"):
        return None
    values = index.to_numpy()
    counted = values.dtype.kind in "iu" and np.array_equal(values, np.arange(len(values)))
    return None if counted else values


class Targets:
    """What y is to the model: classes it knows, labels it does not, or numbers."""

    def __init__(self, values: Array, model: Any) -> None:
        self.values = values
        classes = getattr(model, "classes_", None)
        self.known_classes = classes is not None and np.ndim(classes) == 1 and len(classes) > 0
        self.numbers = not self.known_classes and _is_measured(values, model)
        if self.numbers or values.ndim != 1:
            self.classes: list[Any] = []
        elif self.known_classes:
            self.classes = np.asarray(classes).tolist()
        else:
            lacks = is_unknown(values)
            self.classes = np.unique(as_one_type(values[~lacks])).tolist() if (~lacks).any() else []

    def codes(self, values: Array) -> Array:
        """Numbers of the classes of some values; -1 if unknown, or not among them."""
        lacks = is_unknown(values) if -1 not in self.classes else is_missing(values)
        place = {value: i for i, value in enumerate(self.classes)}
        found = [
            -1 if lack else place.get(v, -1) for v, lack in zip(values.tolist(), lacks, strict=True)
        ]
        return np.array(found, dtype=int)

    def floats(self, values: Array) -> Array:
        """Values as numbers (n, L)."""
        table = np.asarray(values, dtype=float)
        return table[:, None] if table.ndim == 1 else table


def _is_measured(values: Array, model: Any) -> bool:
    """Whether y are numbers that the model predicts, or that are too many to be labels."""
    if values.dtype.kind not in "iufb":
        return False
    if hasattr(model, "output_mean_") or values.ndim == 2:
        return True
    return values.dtype.kind == "f" and len(np.unique(values[~np.isnan(values)])) > 50
