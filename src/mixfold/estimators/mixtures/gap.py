"""The gap statistic: how many clusters are more than uniform rows would have."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_array

from mixfold.contracts import Array
from mixfold.engine.random import seed_from
from mixfold.estimators.search.fits import Worker
from mixfold.estimators.shell import constraints as rule

_SIZES = ("n_clusters", "n_components")
_REFERENCES = ("box", "pca")
# the stream of the reference tables, apart from those of fits
_STREAM = 11


@dataclass(frozen=True, slots=True)
class GapStatistic:
    """Result of :func:`gap_statistic`; arrays have one entry for each number of clusters.

    Attributes
    ----------
    best : int
        The least number of clusters whose gap is not more than one standard error below the next
        one.
    n_clusters : ndarray of int
    gap : ndarray
        Mean log dispersion of the reference tables minus that of the data.
    standard_error : ndarray
        Standard deviation over the reference tables, times sqrt(1 + 1 / n_references).
    log_dispersion, reference_log_dispersion : ndarray
        Logarithms of the pooled sum of squares within clusters, of the data and (mean) of the
        reference tables.
    """

    best: int
    n_clusters: Array
    gap: Array
    standard_error: Array
    log_dispersion: Array
    reference_log_dispersion: Array


def gap_statistic(
    X: Any,
    estimator: Any = None,
    n_clusters: Iterable[int] = range(1, 9),
    n_references: int = 50,
    random_state: Any = None,
    *,
    reference: str = "box",
    attribute_weights: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> GapStatistic:
    """The number of clusters by the gap statistic.

    The dispersion within clusters falls with their number for any rows, clustered or not. So it is
    compared with that of tables without clusters, drawn uniformly, with the missing entries of the
    data [1]_.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        NaN entries are missing: they are left out of the dispersions.
    estimator : estimator, default=None
        What finds the clusters: any with ``n_clusters`` or ``n_components``, ``fit`` and
        ``predict``. None is :class:`KMeans`.
    n_clusters : iterable of int, default=range(1, 9)
        Numbers to compare, ascending.
    n_references : int, default=50
        Tables to draw.
    random_state : int, RandomState, Generator or None, default=None
        Same seed, same result, for any ``n_jobs``.
    reference : {'box', 'pca'}, default='box'
        Uniform over the range of each column, or over that of each principal component, which
        suits clusters that are long and aslant; 'pca' needs complete rows.
    attribute_weights : 'variance', array-like of shape (n_features,) or None, default=None
        Weights w_j of the columns in the squared distance sum_j w_j (x_j - y_j)^2. 'variance': one
        over twice the variance of the column, its mean dissimilarity, so that all have the same
        influence. None: all 1; the units of the columns then decide.
    sample_weight : array-like of shape (n_samples,), default=None
        A row of weight 2 is two rows: as many are drawn as the weights add up to.
    n_jobs : int, default=None
        Tables that are clustered at the same time; None is one, by all cores.

    Returns
    -------
    GapStatistic

    References
    ----------
    .. [1] Tibshirani, Walther, Hastie. Estimating the number of clusters in a data set via the gap
       statistic. JRSS B 63, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import gap_statistic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 2)) + np.repeat([[0, 0], [6, 0], [3, 6]], 50, axis=0)
    >>> gap_statistic(X, n_clusters=range(1, 6), n_references=10, random_state=0).best
    3
    """
    base, name = _base_and_size(estimator)
    sizes = _check_sizes(n_clusters)
    _check_choices(n_references, reference)
    table = np.asarray(
        check_array(X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2)
    )
    weight = _check_weight(sample_weight, len(table))
    table = table[weight > 0] * np.sqrt(_column_weights(attribute_weights, table, weight))
    weight = weight[weight > 0]
    seed = seed_from(random_state)
    worker = Worker.of(n_jobs, seed)
    # copies stand for weights, so that data and references are clustered in the same way
    own = None if (weight == 1).all() else weight
    draw = _Uniform(table, weight, reference)
    tables = [(table, own), *((draw(seed, number), None) for number in range(int(n_references)))]
    tasks = ((worker.ready(base), name, sizes, X, w) for X, w in tables)
    with worker.quiet():
        logs = np.stack(list(worker.run(_log_dispersions, tasks)))
    return _compare(sizes, logs[0], logs[1:])


def _compare(sizes: Array, observed: Array, drawn: Array) -> GapStatistic:
    expected = drawn.mean(axis=0)
    error = drawn.std(axis=0) * np.sqrt(1 + 1 / len(drawn))
    gap = expected - observed
    best = int(sizes[first_enough(gap, error)])
    return GapStatistic(best, sizes, gap, error, observed, expected)


def first_enough(gap: Array, error: Array) -> int:
    """The first number of clusters whose gap is not more than an error below the next one."""
    return int(np.flatnonzero(np.append(gap[:-1] >= gap[1:] - error[1:], True))[0])


class References:
    """Tables without clusters beside one, and dispersions in them, for a search.

    Parameters
    ----------
    X : array-like (n, D)
        NaN entries are missing.
    weight : array (n,)
    attribute_weights : 'variance', array (D,) or None
        As in :func:`gap_statistic`.
    n_references : int
    seed : int
    """

    def __init__(
        self, X: Any, weight: Array, attribute_weights: Any, n_references: int, seed: int
    ) -> None:
        table = check_array(
            X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2
        )
        self._used = weight > 0
        self._table, self._weight = table[self._used], weight[self._used]
        self._root = np.sqrt(_column_weights(attribute_weights, table, weight))
        self._like = X if hasattr(X, "iloc") else None
        draw = _Uniform(self._table, self._weight, "box")
        self.tables = [draw(seed, number) for number in range(n_references)]

    def named(self, rows: Array) -> Any:
        """Rows with the names of the columns of the table, where it has them."""
        like = self._like
        return rows if like is None else type(like)(rows, columns=like.columns)

    def log_dispersion_of_rows(self, labels: Any) -> float:
        """Of the table itself, of which all rows have labels."""
        own = np.asarray(labels)[self._used]
        return self._log(dispersion(self._table * self._root, own, self._weight))

    def log_dispersion(self, estimator: Any, rows: Array) -> float:
        """Of a reference table, in which the estimator finds clusters."""
        labels = clone(estimator).fit(self.named(rows)).predict(self.named(rows))
        return self._log(dispersion(rows * self._root, np.asarray(labels)))

    @staticmethod
    def _log(value: float) -> float:
        return float(np.log(value)) if value > 0 else float("nan")


def _log_dispersions(
    estimator: Any, name: str, sizes: Array, X: Array, weight: Array | None
) -> Array:
    """ln of the pooled sum of squares within clusters, for each number of them."""
    sides = {} if weight is None else {"sample_weight": weight}
    found = []
    for size in sizes.tolist():
        labels = clone(estimator).set_params(**{name: size}).fit(X, **sides).predict(X)
        value = dispersion(X, np.asarray(labels), weight)
        if not value > 0:
            raise ValueError(
                f"n_clusters={size} leaves no dispersion within clusters: rows are as few, or as "
                "often repeated; lower n_clusters"
            )
        found.append(np.log(value))
    return np.array(found)


def dispersion(X: Array, labels: Array, weight: Array | None = None) -> float:
    """Sum of squared distances of rows from the mean of their cluster, over observed entries."""
    share = np.ones(len(X)) if weight is None else weight
    total = 0.0
    for label in np.unique(labels):
        rows, w = X[labels == label], share[labels == label, None]
        seen = ~np.isnan(rows)
        count = (w * seen).sum(axis=0)
        sums = (w * np.where(seen, rows, 0.0)).sum(axis=0)
        mean = np.divide(sums, count, out=np.zeros_like(sums), where=count > 0)
        total += float((w * np.where(seen, rows - mean, 0.0) ** 2).sum())
    return total


class _Uniform:
    """Tables without clusters, in a box around the rows."""

    def __init__(self, X: Array, weight: Array, reference: str) -> None:
        self._holes = np.isnan(X)
        if reference == "pca" and self._holes.any():
            raise ValueError(
                "reference='pca' needs complete rows, and X has missing entries; use "
                "reference='box', or fill them"
            )
        self._mean, self._axes = np.zeros(X.shape[1]), np.eye(X.shape[1])
        if reference == "pca":
            self._mean = np.average(X, axis=0, weights=weight)
            root = np.sqrt(weight)[:, None]
            self._axes = np.linalg.svd((X - self._mean) * root, full_matrices=False)[2]
        scores = (X - self._mean) @ self._axes.T if reference == "pca" else X
        self._low, self._high = np.nanmin(scores, axis=0), np.nanmax(scores, axis=0)
        self._copies = None
        if not (weight == 1).all():
            size = max(2, round(float(weight.sum())))
            ends = np.cumsum(weight) * (size / weight.sum())
            self._copies = np.searchsorted(ends, np.arange(size) + 0.5)

    def __call__(self, seed: int, number: int) -> Array:
        rng = np.random.default_rng([seed % 2**63, _STREAM, number])
        holes = self._holes if self._copies is None else self._holes[self._copies]
        scores = rng.uniform(self._low, self._high, (len(holes), len(self._low)))
        rows = self._mean + scores @ self._axes
        return np.asarray(np.where(holes, np.nan, rows))


# ---------------------------------------------------- checks


def _base_and_size(estimator: Any) -> tuple[Any, str]:
    """The estimator, and the name of its number of clusters."""
    if estimator is None:
        from mixfold.estimators.mixtures.kmeans import KMeans

        return KMeans(), "n_clusters"
    names = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    found = [name for name in _SIZES if name in names]
    if not found or not hasattr(estimator, "predict"):
        raise TypeError(
            "estimator must have n_clusters or n_components, fit and predict, such as "
            f"mixfold.KMeans(); got {estimator!r}"
        )
    return estimator, found[0]


def _check_sizes(n_clusters: Any) -> Array:
    sizes = [n_clusters] if isinstance(n_clusters, Integral) else list(n_clusters)
    whole = rule.integer(1)
    rising = all(a < b for a, b in itertools.pairwise(sizes))
    if not sizes or not all(whole.holds(k) for k in sizes) or not rising:
        raise ValueError(
            f"n_clusters must be whole numbers >= 1, ascending, such as range(1, 9); got {sizes!r}"
        )
    return np.array(sizes, dtype=np.int64)


def _check_choices(n_references: Any, reference: Any) -> None:
    if not rule.integer(2).holds(n_references):
        raise ValueError(
            f"n_references must be an int >= 2, for a standard error; got {n_references!r}"
        )
    if reference not in _REFERENCES:
        raise ValueError(f"reference must be 'box' or 'pca'; got {reference!r}")


def _check_weight(sample_weight: Any, n_rows: int) -> Array:
    if sample_weight is None:
        return np.ones(n_rows)
    weight = rule.as_numbers(sample_weight, "sample_weight")
    good = weight.shape == (n_rows,) and np.isfinite(weight).all() and (weight >= 0).all()
    if not good or (weight > 0).sum() < 2:
        raise ValueError(
            f"sample_weight must be {n_rows} numbers >= 0, one for each row, two of them above 0; "
            f"got an array of shape {weight.shape}"
        )
    return np.asarray(weight)


def _column_weights(attribute_weights: Any, X: Array, weight: Array) -> Array:
    """w_j of each column."""
    if attribute_weights is None:
        return np.ones(X.shape[1])
    if isinstance(attribute_weights, str):
        if attribute_weights != "variance":
            raise ValueError(
                "attribute_weights must be 'variance', numbers >= 0 or None; got "
                f"{attribute_weights!r}"
            )
        seen = ~np.isnan(X)
        share = weight[:, None] * seen
        total = np.maximum(share.sum(axis=0), np.finfo(float).tiny)
        mean = (share * np.where(seen, X, 0.0)).sum(axis=0) / total
        variance = (share * np.where(seen, X - mean, 0.0) ** 2).sum(axis=0) / total
        level = 1e-24 * np.maximum(mean**2, np.finfo(float).tiny)  # rounding of a constant column
        known = variance > level
        return np.asarray(np.divide(0.5, variance, out=np.zeros_like(variance), where=known))
    given = rule.as_numbers(attribute_weights, "attribute_weights")
    good = given.shape == (X.shape[1],) and np.isfinite(given).all() and (given >= 0).all()
    if not good or not given.any():
        raise ValueError(
            f"attribute_weights must be {X.shape[1]} numbers >= 0, one for each column, not all "
            f"zero; got {attribute_weights!r}"
        )
    return np.asarray(given)
