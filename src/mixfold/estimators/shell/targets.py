"""All that y can be: found, read, checked, turned into numbers, turned back, and scored.

Every estimator that takes y reads it here. y is an array, list, series or table of pandas, polars
or arrow, a masked or sparse array, the name of a column of X, or stands in a source. Its entries
are classes (text, whole numbers, truth values), labels of 0 and 1 in several columns, or numbers.
What an estimator makes of it is an argument:

=============================  ====================================================================
function                       unknown entries; who uses it
=============================  ====================================================================
``learn_target``               -1 among integers, NaN and None elsewhere; classes are at least two,
                               labels and numbers may be unknown one by one: SupervisedPPCA,
                               SupervisedMixtureOfPPCA, MixtureOfFactorModels, MORP, KernelCCA,
                               MatrixFactorization
``encode_classes``             the same; any number of classes, or those that are known already:
                               RBM, DeepBeliefNetwork, DeepFactorNetwork
``encode_required_classes``    none is allowed, and -1 is a class as any other: MixtureClassifier
=============================  ====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from mixfold.contracts import Array, Source, record
from mixfold.engine.sources import open_source
from mixfold.engine.sources.checks import (
    LARGEST,
    check_weight,
    describe_large_target,
    largest_entry,
)
from mixfold.engine.sources.targets import (
    OutputSource,
    read_arrow_column,
    sides_beside,
    split_target,
)
from mixfold.engine.sources.weights_and_labels import Sides
from mixfold.estimators.shell.base import MixfoldEstimator, warn

TASKS = ("auto", "classification", "multilabel", "regression")
# outputs of a score: of these y is learned as of classes or numbers
SCORE_TASKS = {"ordered": "classification", "count": "regression"}

# what sklearn's type_of_target calls the known entries, and what is made of it
_KINDS = {
    "binary": "classification",
    "multiclass": "classification",
    "multilabel-indicator": "multilabel",
    "multiclass-multioutput": "regression",
    "continuous": "regression",
    "continuous-multioutput": "regression",
}

# what to do about a class that is not among the known ones, where there is partial_fit
ALL_CLASSES_FIRST = " (partial_fit takes all of them in its first call, classes=...)"


# ------------------------------------------------------------------ where y stands


@dataclass(frozen=True, slots=True)
class GivenTarget:
    """X, y and weights as a fit was given them, before the rows are opened; by ``find_target``.

    ``y`` is array-like, never a name, and None if there is none. ``columns`` are the names of the
    features if y was a column of X, None otherwise; ``beside`` is what a source brings along, if
    it was read.
    """

    X: Any
    y: Any
    sample_weight: Any
    columns: list[str] | None = None
    beside: Sides | None = None

    def read_weights(self) -> Array | None:
        """Weights of the rows as far as they can be read; the source will check them."""
        if isinstance(self.X, Source):
            beside = sides_beside(self.X) if self.beside is None else self.beside
            return beside.weight
        if self.sample_weight is None:
            return None
        values = np.asarray(read_target(self.X, self.sample_weight))
        if values.ndim != 1 or values.dtype.kind not in "fiub":
            return None
        values = values.astype(float)
        try:
            check_weight(values)
        except ValueError:
            return None
        return values

    def open(
        self,
        estimator: MixfoldEstimator,
        outputs: Array | None = None,
        *,
        reset: bool = True,
        min_rows: int = 1,
    ) -> Source:
        """The rows of X, without the column of y; ``outputs`` (n, ...) become ``Block.y``."""
        weight = self.sample_weight
        if self.columns is not None:
            X = open_source(self.X, columns=self.columns, weight=weight, y=outputs)
            return estimator._open(X, reset=reset, min_rows=min_rows)
        if isinstance(self.X, Source):
            source = estimator._open(self.X, reset=reset, weight=weight, min_rows=min_rows)
            return source if outputs is None else OutputSource(source, outputs)
        return estimator._open(self.X, reset=reset, weight=weight, y=outputs, min_rows=min_rows)


def find_target(X: Any, y: Any, sample_weight: Any) -> GivenTarget:
    """y as it is given, in the column of X that it names, or in the source X."""
    if isinstance(y, str):
        values, columns = split_target(X, y, sample_weight)
        return GivenTarget(X, values, sample_weight, columns)
    if y is None and isinstance(X, Source):
        beside = sides_beside(X)
        return GivenTarget(X, beside.y, sample_weight, beside=beside)
    return GivenTarget(X, y, sample_weight)


def read_target(X: Any, y: Any) -> Any:
    """y, or the column of X that it names."""
    return split_target(X, y)[0] if isinstance(y, str) else y


def require_target(
    estimator: Any,
    y: Any,
    remedy: str = "give one entry per row, marked by -1, NaN or None where it is unknown",
) -> Any:
    """y, which must not be None."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            f"is None; {remedy}"
        )
    return y


def weights_or_ones(weights: Array | None, n_rows: int) -> Array:
    """Weights of so many rows; those of another length are refused when the rows are opened."""
    return np.ones(n_rows) if weights is None or len(weights) != n_rows else weights


def known_share(encoded: Array, weights: Array | None) -> float:
    """The share, by weight, of rows of which anything is known; ``encoded`` as by ``Target``."""
    weights = weights_or_ones(weights, len(encoded))
    known = encoded >= 0 if encoded.ndim == 1 else ~np.isnan(encoded).all(axis=1)
    return float(weights @ known / weights.sum())


def are_all_known(encoded: Array, weights: Array | None) -> bool:
    """Whether no row of positive weight lacks an output; ``encoded`` (n, L)."""
    return not np.isnan(encoded[weights_or_ones(weights, len(encoded)) > 0]).any()


def tag_target(tags: Any, task: str) -> Any:
    """Tell scikit-learn what y is; ``task`` 'auto' before a fit, when nobody knows."""
    if not isinstance(task, str):  # tags are asked for before settings are checked
        task = "auto"
    tags.target_tags.required = True
    tags.target_tags.multi_output = task in ("multilabel", "regression", "auto")
    tags.classifier_tags = ClassifierTags(multi_label=task == "multilabel")
    tags.regressor_tags = RegressorTags()
    kinds = {"auto": None, "regression": "regressor", "count": "regressor"}
    tags.estimator_type = kinds.get(task, "classifier")
    return tags


# ------------------------------------------------------------------ y as an array


def as_target(y: Any) -> Array:
    """y as an array of one or two dimensions."""
    if sparse.issparse(y):
        y = y.toarray()
    if isinstance(y, np.ma.MaskedArray):
        y = _unmask(y)
    package = type(y).__module__.partition(".")[0]
    if package in ("polars", "pyarrow"):
        y = _read_arrow(y.to_arrow() if package == "polars" else y)
    elif package == "pandas":
        y = _read_pandas(y)
    try:
        values = np.asarray(y)
    except ValueError:
        raise ValueError(
            f"y must be one array of labels or numbers, of one column or of several; got a "
            f"{type(y).__name__} of {len(y)} whose shapes differ. Put columns side by side with "
            "np.column_stack(y); MORP takes several sets of outputs"
        ) from None
    if values.dtype.kind == "U" and not isinstance(y, np.ndarray):
        # numpy makes text of all that is beside text, NaN becomes 'nan'
        values = np.array(y, dtype=object)
    if values.ndim not in (1, 2):
        raise ValueError(
            f"y should be a 1d array, or have one column per output: it has shape {values.shape}"
        )
    if 0 in values.shape:
        raise ValueError(
            f"y is empty: it has shape {values.shape}, 0 sample(s) or outputs, while a minimum of "
            "1 is required. Give one entry per row"
        )
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers or labels")
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(
            "Input y contains infinity or a value too large; every entry must be finite, or NaN if "
            "it is unknown"
        )
    if values.dtype.kind == "f" and (largest := largest_entry(values)) > LARGEST:
        raise ValueError(describe_large_target(largest))
    return values


def _unmask(y: np.ma.MaskedArray[Any, Any]) -> Array:
    values = np.array(y.data, dtype=object)
    values[np.ma.getmaskarray(y)] = None
    return values


def _read_arrow(y: Any) -> Array:
    """An array or table of arrow; integers of which some lack stay integers, beside None."""
    if not isinstance(y, pa.Table | pa.RecordBatch):
        return read_arrow_column(y)
    columns = [read_arrow_column(column) for column in y.columns]
    return np.column_stack(columns) if columns else np.empty((y.num_rows, 0))


def _read_pandas(y: Any) -> Array:
    """A series or frame of pandas; its own marks of missing values become None or NaN."""
    dtype = getattr(y, "dtype", None)
    if not isinstance(dtype, np.dtype) and getattr(dtype, "kind", "O") in "iu":
        values = np.array(y.to_numpy(dtype=object))  # some may lack, and as a float -1 is a class
    else:
        values = np.asarray(y.to_numpy())
    if values.dtype == object:
        values = values.copy()
        values[is_missing(values)] = None
    return values


def is_unknown(values: Array) -> Array:
    """Where nothing is known of classes or labels: -1 among integers, NaN and None elsewhere."""
    lacks = is_missing(values)
    if values.dtype.kind in "iu" or (values.dtype.kind == "O" and _are_whole(values[~lacks])):
        lacks[~lacks] = values[~lacks] == -1
    return lacks


def is_missing(values: Array) -> Array:
    """Where there is no value: NaN and None."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, bool)
    return np.array([_is_missing(v) for v in values.flat], dtype=bool).reshape(values.shape)


def _is_missing(value: Any) -> bool:
    # only NaN is not itself
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _are_whole(values: Array) -> bool:
    return all(isinstance(v, Integral) and not isinstance(v, bool) for v in values.flat)


def as_one_type(values: Array) -> Array:
    """Objects of one type as an array of that type; text beside anything else is refused."""
    if values.dtype != object:
        return values
    text = [isinstance(v, str) for v in values.flat]
    if all(text):
        return values.astype(str)
    if any(text):
        other = values.ravel()[text.index(False)]
        raise ValueError(
            f"y mixes text, such as {values.ravel()[text.index(True)]!r}, and other values, such "
            f"as {other!r}; write them all as text, y.astype(str) say, with None where unknown"
        )
    try:
        return np.array(values.tolist())
    except ValueError:
        return values


def _as_numbers(values: Array, task: str) -> Array:
    """y as floats; among labels, which are 0 or 1, the integer -1 is none."""
    table = _as_floats(values)
    return np.where(is_unknown(values), np.nan, table) if task == "multilabel" else table


def _as_floats(values: Array) -> Array:
    if values.dtype.kind not in "OUS":
        return values.astype(float)
    lacks = is_missing(values)
    try:
        filled = np.where(lacks, np.nan, values).astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must hold numbers, NaN where unknown, but it holds {_first_text(values)!r}; "
            "for classes set task='classification'"
        ) from error
    if np.isinf(filled).any():
        raise ValueError("Input y contains infinity; every entry must be finite, or NaN")
    return filled


def _first_text(values: Array) -> Any:
    for value in values.ravel().tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None:
                return value
    return values.flat[0]


# ------------------------------------------------------------------ classes, labels or numbers


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

    def encode(self, y: Any) -> Array:
        """Class numbers (n,) with -1, or outputs (n, L) with NaN, where unknown."""
        values = as_target(y)
        if self.task == "classification":
            column = values.ravel() if values.shape[1:] == (1,) else _take_column(values)
            return _encode_known(column, is_unknown(column), self.classes, _MARK_AS_UNKNOWN)
        table = _as_numbers(values, self.task)
        table = table[:, None] if table.ndim == 1 else table
        if table.shape[1] != self.n_outputs:
            raise ValueError(
                f"y must have {self.n_outputs} columns, as in the fit; got {table.shape[1]}"
            )
        if self.task == "multilabel":
            _check_binary(table)
        return table

    def is_same(self, other: Target) -> bool:
        """Whether another y is of the same kind, with the same classes and columns."""
        same = (self.task, self.n_outputs) == (other.task, other.n_outputs)
        return same and np.array_equal(self.classes, other.classes)

    def decode(self, outputs: Array) -> Array:
        """Class numbers or outputs (n, L) in the form in which y was given."""
        if self.task == "classification":
            return np.asarray(self.classes[outputs])
        return outputs[:, 0] if self.flat else outputs


def learn_score_target(y: Any, task: str, weights: Array | None) -> tuple[Target, Array]:
    """As ``learn_target``, for ordered categories and for counts, in one column."""
    values = as_target(y)
    if values.ndim == 2 and values.shape[1] > 1:
        raise ValueError(
            f"task={task!r} takes y of one column, got y of shape {values.shape}; fit an estimator "
            "for each column"
        )
    target, encoded = learn_target(values, SCORE_TASKS[task], weights)
    if task == "ordered" and target.classes.dtype.kind not in "iufb":
        raise ValueError(
            "task='ordered' needs categories that are numbers, whose order is theirs; y holds "
            f"{target.classes.tolist()[0]!r}: give their ranks, 0, 1, 2 and so on"
        )
    if task == "count":
        check_counts(encoded)
    return target, encoded


def check_counts(encoded: Array) -> None:
    """Refuse numbers that count nothing."""
    known = encoded[~np.isnan(encoded)]
    bad = known[(known < 0) | (known != np.round(known))]
    if bad.size:
        raise ValueError(
            f"task='count' needs y of whole numbers >= 0, NaN where unknown; y holds {bad[0]:g}; "
            "for other numbers set task='regression'"
        )


def class_target(classes: Array) -> Target:
    """The target of classes that are known."""
    return Target("classification", classes, 1, True)


def learn_target(
    y: Any, task: str, weights: Array | None, classes: Any = None
) -> tuple[Target, Array]:
    """What y is in the rows of positive weight, and y encoded; in the other rows it is unknown.

    ``classes``, where they are given, are all that may come, also in later batches.
    """
    values = as_target(y)
    if classes is not None:
        target = _target_of_all(classes, task)
        encoded = target.encode(values)
        if weights is not None and len(weights) == len(encoded):
            encoded[weights == 0] = -1
        check_two_classes(
            target.classes[np.unique(encoded[encoded >= 0])],
            nothing="begin with rows of at least two of the classes",
            one="begin with rows of at least two of the classes",
        )
        return target, encoded
    if weights is None or len(weights) != len(values) or (weights > 0).all():
        target = make_target(values, task)
        return target, target.encode(values)
    weighs = weights > 0
    if not weighs.any():
        raise ValueError(
            "sample_weight is zero in every row: at least one row must have a positive weight."
        )
    target = make_target(values[weighs], task)
    some = target.encode(values[weighs])
    unseen = -1 if target.task == "classification" else np.nan
    encoded = np.full((len(values), *some.shape[1:]), unseen, dtype=some.dtype)
    encoded[weighs] = some
    return target, encoded


def _target_of_all(classes: Any, task: str) -> Target:
    if task not in ("auto", "classification"):
        raise ValueError(
            f"classes are for task='classification', got task={task!r}; leave them out"
        )
    known = np.unique(as_one_type(np.asarray(classes)))
    check_two_classes(
        known, nothing="name all classes that may come", one="name all classes that may come"
    )
    return class_target(known)


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
        task = _guess_task(values)
    if task == "classification":
        return Target(task, _learn_classes(values), 1, values.ndim == 1)
    table = _as_numbers(values, task)
    flat = table.ndim == 1
    table = table[:, None] if flat else table
    if np.isnan(table).all():
        raise _nothing_known("without outputs use PPCA or MixtureOfPPCA")
    if task == "multilabel":
        _check_binary(table)
    return Target(task, np.array([0, 1] if task == "multilabel" else []), table.shape[1], flat)


def _guess_task(values: Array) -> str:
    column = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    lacks = is_unknown(column)
    if lacks.all():
        raise _nothing_known("without outputs use PPCA or MixtureOfPPCA")
    if column.ndim == 2 and lacks.any():
        known = as_one_type(column[~lacks])
        return "multilabel" if np.isin(known, (0, 1)).all() else "regression"
    kind = type_of_target(as_one_type(column if column.ndim == 2 else column[~lacks]),
                          input_name="y")  # fmt: skip
    if kind not in _KINDS:
        raise ValueError(f"Unknown label type: {kind!r}; y must hold classes, labels or numbers")
    return _KINDS[kind]


def _learn_classes(values: Array) -> Array:
    column = _take_column(values)
    known = as_one_type(column[~is_unknown(column)])
    _check_whole(
        known, "for numbers set task='regression' (of SupervisedPPCA or SupervisedMixtureOfPPCA)"
    )
    classes = np.unique(known)
    if known.dtype.kind == "U" and "nan" in classes:
        warn(
            "y holds the text 'nan', which is taken for a class. If rows without a label are "
            "meant (numpy makes it of NaN among text), mark them by None in an array of dtype "
            "object",
            UserWarning,
        )
    check_two_classes(
        classes,
        nothing="without outputs use PPCA or MixtureOfPPCA",
        one="a row without a label is -1 among integers, NaN or None otherwise (rename a class "
        "that is called -1)",
    )
    return classes


def check_two_classes(classes: Array, *, nothing: str, one: str) -> None:
    """Refuse fewer than two classes; ``nothing`` and ``one`` say what to do about none or one."""
    if not len(classes):
        raise _nothing_known(nothing)
    if len(classes) == 1:
        raise ValueError(
            f"y must hold at least two classes, got 1 class only, {classes.tolist()[0]!r} (among "
            f"the rows of positive weight); {one}"
        )


def _nothing_known(remedy: str) -> ValueError:
    return ValueError(
        "y has no known entry (among the rows of positive weight): every one is NaN, None or, of "
        f"integers, -1; {remedy}"
    )


def _check_whole(known: Array, remedy: str) -> None:
    """Refuse classes that are numbers with a fraction."""
    if known.dtype.kind == "f" and (known != np.round(known)).any():
        raise ValueError(
            "Unknown label type: 'continuous'. Classes must be whole numbers or text, but y holds "
            f"{known[known != np.round(known)][0]:g}; {remedy}"
        )


def _check_binary(table: Array) -> None:
    known = table[~np.isnan(table)]
    bad = known[(known != 0) & (known != 1)]
    if bad.size:
        raise ValueError(f"labels must be 0 or 1, NaN where unknown; y holds {bad[0]:g}")


def _take_column(
    values: Array, remedy: str = "; for columns of 0 and 1 set task='multilabel'"
) -> Array:
    """Classes in one dimension; a table of one column is taken, with a warning."""
    if values.ndim == 1:
        return values
    if values.shape[1] > 1:
        raise ValueError(f"classes have one column, got y of shape {values.shape}{remedy}")
    warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of "
        "y to (n_samples,), for example using ravel().",
        DataConversionWarning,
    )
    return values.ravel()


# ------------------------------------------------------------------ class numbers

_MARK_AS_UNKNOWN = (
    "; a row of another class is marked by None, NaN or, among integers, -1 (the first call of "
    "partial_fit takes all that may come, classes=...)"
)


def encode_classes(
    y: Any, n_rows: int, weights: Array | None, classes: Array | None = None
) -> tuple[Array, Array]:
    """Class numbers (n,), and the classes: those of y, or ``classes`` that are known already.

    The number is -1 where the class is unknown or the row has no weight. There may be any number
    of classes, none too.
    """
    values = _take_column(as_target(y), remedy="")
    check_one_entry_per_row(len(values), n_rows)
    lacks = is_unknown(values)
    if weights is not None:
        lacks = lacks | (weights == 0)
    known = as_one_type(values[~lacks])
    _check_whole(known, "leave y out to learn from X alone")
    classes = np.unique(known) if classes is None else classes
    return _encode_known(values, lacks, classes, ALL_CLASSES_FIRST), classes


def encode_required_classes(estimator: Any, y: Any) -> tuple[Array, Array]:
    """Class numbers (n,), and the classes, for an estimator that needs the class of every row.

    Text in an array of objects stays so, as in scikit-learn.
    """
    values = as_target(require_target(estimator, y, "give the class of each row"))
    if is_missing(values).any():
        raise ValueError(
            "Input y contains NaN: every row needs a class; leave rows without one out, or use "
            "MixtureOfFactorModels or SupervisedPPCA, which learn from them"
        )
    text = values.dtype == object and all(isinstance(v, str) for v in values.flat)
    if not text or np.asarray(y).dtype != object:
        values = as_one_type(values)
    check_classification_targets(values)
    classes, numbers = np.unique(column_or_1d(values, warn=True), return_inverse=True)
    return numbers, classes


def check_one_entry_per_row(n_entries: int, n_rows: int | None) -> None:
    """Refuse a y of another length than X, where that is known; scikit-learn's words come first."""
    if n_rows is not None and n_entries != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows and "
            f"y {n_entries}; give one entry per row, in the same order"
        )


def _encode_known(values: Array, lacks: Array, classes: Array, remedy: str) -> Array:
    """Class numbers of a column, -1 where it lacks them."""
    numbers = np.full(len(values), -1, dtype=np.int64)
    numbers[~lacks] = find_class_numbers(as_one_type(values[~lacks]), classes, remedy)
    return numbers


def find_class_numbers(known: Array, classes: Array, remedy: str = ALL_CLASSES_FIRST) -> Array:
    """Where classes stand among all classes, which are in order; another one is refused."""
    if not len(known):
        return np.zeros(0, np.int64)
    at = np.minimum(np.searchsorted(classes, known), max(len(classes) - 1, 0))
    wrong = np.ones(len(known), bool) if not len(classes) else classes[at] != known
    if wrong.any():
        raise ValueError(
            f"{known[wrong].tolist()[0]!r} is no known class; the classes are "
            f"{', '.join(map(repr, classes.tolist())) or 'none: the fit had no labels'}{remedy}"
        )
    return np.asarray(at)


# ------------------------------------------------------------------ scores


def score_predictions(target: Target, y: Any, predicted: Array, sample_weight: Any = None) -> float:
    """Accuracy or R^2 of predictions, in the form of y; what is unknown of y does not count.

    Parameters
    ----------
    target : Target
        What y was in the fit.
    y : as in a fit
    predicted : ndarray
        ``Target.decode``.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    float
        Share of the classes that are right; of rows all of whose known labels are; or R^2, of
        several outputs their mean.
    """
    values = as_target(y)
    if target.task == "classification":
        known: Array = ~is_unknown(values).ravel()
        truth, found = values.ravel(), predicted
    else:
        table = target.encode(values)
        known = np.asarray(~np.isnan(table).all(axis=1))
        truth, found = table, predicted.reshape(table.shape)
    _check_comparable(known, len(predicted))
    weight = np.ones(len(known)) if sample_weight is None else np.asarray(sample_weight, float)
    truth, found, weight = truth[known], found[known], weight[known]
    if target.task == "classification":
        # (a class that the fit did not know is one that it got wrong)
        return float(accuracy_score(as_one_type(truth), found, sample_weight=weight))
    if target.task == "multilabel":
        return float(np.average(((truth == found) | np.isnan(truth)).all(axis=1), weights=weight))
    return float(np.mean(_r_squared(truth, found, weight)))


def _r_squared(truth: Array, found: Array, weight: Array) -> list[float]:
    """R^2 of each output that is ever known."""
    each = [~np.isnan(column) for column in truth.T]
    return [
        float(r2_score(truth[rows, j], found[rows, j], sample_weight=weight[rows]))
        for j, rows in enumerate(each)
        if rows.any()
    ]


def _check_comparable(known: Array, n_rows: int) -> None:
    if len(known) != n_rows:
        raise ValueError(
            f"y has {len(known)} entries, X has {n_rows} rows; give one entry per row, in the "
            "same order"
        )
    if not known.any():
        raise ValueError(
            "y has no known entry to compare with: every one is NaN, None or, of integers, -1"
        )
