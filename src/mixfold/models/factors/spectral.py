"""Principal axes of complete data, by the solver that suits the shape of the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np

from mixfold.contracts import Array, Executor, Source, record
from mixfold.math.krylov import leading_eigenpairs
from mixfold.math.largest import largest_pairs
from mixfold.math.signs import fix_signs
from mixfold.math.spectrum import Rule
from mixfold.models.factors.spectral_rows import collect
from mixfold.models.factors.spectral_sums import (
    Multiply,
    Products,
    RowSums,
    SecondMoments,
    SumSquares,
    check_size,
)
from mixfold.models.factors.spectral_table import Table, look

# Order of a matrix that is decomposed in full without a second thought, and of the largest one.
ORDINARY, LARGEST = 2000, 2**14
# Axes that are looked for first when a rule decides how many there are.
FIRST_AXES = 32

SOLVERS = ("auto", "covariance", "gram", "randomized")


@record
@dataclass(frozen=True, slots=True)
class Spectrum:
    """Leading eigenvalues (k,) and axes (D, k) of the covariance of weighted rows.

    The covariance is divided by the weight of all rows; it is about the mean, or about zero
    (``mean`` is then zero). ``total_variance`` is its trace, ``n_rows`` the number of rows of
    positive weight; ``passes`` over the data were made. ``converged`` is False if the axes are
    less exact than asked for, which happens to the randomized solver only.
    """

    mean: Array
    values: Array
    vectors: Array
    total_variance: float
    weight: float
    n_rows: int
    solver: str
    passes: int
    converged: bool = True


def principal_axes(
    source: Source,
    executor: Executor,
    size: int | Rule,
    *,
    rng: np.random.Generator,
    center: bool = True,
    solver: str = "auto",
    origin: Array | None = None,
) -> Spectrum:
    """Eigenvalues and axes of the covariance of all rows; no entry may be missing.

    Parameters
    ----------
    source : Source
    executor : Executor
    size : int or Rule
        Number of axes, or what decides it from the eigenvalues.
    rng : Generator
        Draws where the randomized solver begins.
    center : bool
        False: second moments about zero instead of the mean.
    solver : {"auto", "covariance", "gram", "randomized"}
        The covariance (D, D) in one pass; the rows collected and their products (N, N); a few
        passes that multiply a block of vectors (block Lanczos). "auto" takes the cheapest.
    origin : ndarray of shape (D,), optional
        Where the sums are taken about; None takes zero, or the mean of the first rows if the
        data lie far from zero.

    Returns
    -------
    Spectrum

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.engine.executors import ThreadExecutor
    >>> from mixfold.engine.sources import open_source
    >>> from mixfold.models.factors.spectral import principal_axes
    >>> X = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    >>> axes = principal_axes(
    ...     open_source(X), ThreadExecutor(1), 1, rng=np.random.default_rng(0))
    >>> axes.values.round(4), axes.vectors.ravel().round(4)
    (array([2.6667]), array([1., 0.]))
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}; got {solver!r}")
    if isinstance(size, Integral):
        size = _check_size(int(size), source.n_features)
    if solver == "auto":
        solver = choose_solver(source.n_samples, source.n_features, size)
    table = look(source, executor, center, origin)
    if solver == "covariance":
        return _by_covariance(table, size)
    return _by_gram(table, size) if solver == "gram" else _by_products(table, size, rng)


def _check_size(size: int, n_features: int) -> int:
    if not 1 <= size <= n_features:
        raise ValueError(
            f"the number of axes must be from 1 to the number of columns, {n_features}; got {size}"
        )
    return size


def choose_solver(n_samples: int | None, n_features: int, size: int | Rule) -> str:
    """The cheapest solver for a table of this shape.

    Multiplications are counted; those of a decomposition, and of products with a few vectors,
    are slower than those of a covariance.
    """
    if n_samples is None:  # a stream: one pass rather than many
        return "covariance" if n_features <= ORDINARY else "randomized"
    order = min(n_samples, n_features)
    exact = "gram" if n_samples < n_features else "covariance"
    if not isinstance(size, int):
        return exact if size.whole or order <= ORDINARY else "randomized"
    if not _few(size, order):
        return exact
    entries = n_samples * n_features
    decomposed = entries * order + 10 * order**3
    return exact if decomposed <= 50 * entries * (size + 10) else "randomized"


def _few(size: int, order: int) -> bool:
    """Whether the axes are few enough among all of them to be looked for one block at a time."""
    return 4 * (size + 10) <= order


# ------------------------------------------------------------------ the whole matrix


def from_moments(
    moments: SecondMoments, size: int | Rule, center: bool = True, passes: int = 1
) -> Spectrum:
    """The spectrum of the covariance that these moments give."""
    S = moments.covariance(center)
    total = float(np.trace(S))
    values, vectors = _eigendecompose(S, size, total, len(S), moments.sums.weight)
    return _spectrum(moments.sums, center, values, vectors, total, "covariance", passes)


def _by_covariance(table: Table, size: int | Rule) -> Spectrum:
    _check_order(table.n_features, "columns")
    moments, passes = _moments(table)
    return from_moments(moments, size, table.center, passes)


def second_moments(source: Source, executor: Executor) -> SecondMoments:
    """Squares and products of all rows, about an origin from which their variance can be seen."""
    return _moments(look(source, executor, True, None))[0]


def _moments(table: Table) -> tuple[SecondMoments, int]:
    """The moments, and the passes that they took."""
    moments = table.sum(SumSquares(table.origin))
    if not table.is_far(moments):
        return moments, 1
    return table.sum(SumSquares(moments.sums.mean)), 2


def _by_gram(table: Table, size: int | Rule) -> Spectrum:
    if table.source.n_samples is not None:
        _check_order(table.source.n_samples, "rows")
    rows, sums = collect(table.source, table.executor, table.origin, table.center)
    G = rows.gram()
    check_size(np.diagonal(G))
    total = float(np.trace(G))
    least = min(size, len(G)) if isinstance(size, int) else size
    values, left = _eigendecompose(G, least, total, table.n_features, sums.weight)
    # axes without variance have no direction of their own: any that complete the others will do
    more = size - len(values) if isinstance(size, int) else 0
    vectors = np.pad(rows.back(left), ((0, 0), (0, more)))
    # small values leave their axes less than orthogonal
    vectors = np.linalg.qr(vectors)[0]
    values = np.pad(values, (0, more))
    return _spectrum(sums, table.center, values, vectors, total, "gram", 1)


def _eigendecompose(
    S: Array, size: int | Rule, total: float, n_features: int, weight: float
) -> tuple[Array, Array]:
    """Values in decreasing order and vectors, as many as wanted."""
    order = len(S)
    if isinstance(size, int) and _few(size, order):
        values, vectors = largest_pairs(S, size)
    else:
        values, vectors = np.linalg.eigh(S)
        values, vectors = values[::-1], vectors[:, ::-1]
    values = np.maximum(values, 0.0)
    known = values[: min(order, n_features)]
    kept = size if isinstance(size, int) else min(size(known, total, n_features, weight), order)
    return values[:kept], vectors[:, :kept]


def _check_order(order: int, what: str) -> None:
    if order > LARGEST:
        raise ValueError(
            f"{order} {what} are too many to decompose a matrix of that order (at most {LARGEST}); "
            "ask for a smaller whole number of axes, or choose it by 'bic'"
        )


# ------------------------------------------------------------------ products only


class _Operator:
    """Q -> S Q by a pass over the data. The first pass finds the mean and the variance too."""

    def __init__(self, table: Table) -> None:
        self.table, self.origin = table, table.origin
        self.passes = 0
        self.first: Products | None = None

    def __call__(self, Q: Array) -> Array:
        products = self._multiply(Q)
        if self.first is None:
            if self.table.is_far(products):
                self.origin = products.sums.mean
                products = self._multiply(Q)
            self.first = products
        return products.covariance_times(Q, self.table.center)

    def _multiply(self, Q: Array) -> Products:
        self.passes += 1
        rows = np.ascontiguousarray(Q.T)
        return self.table.sum(Multiply(rows, self.origin, square=self.first is None))

    def measure_trace(self) -> tuple[RowSums, float]:
        """The sums of the first pass, and the trace of S."""
        assert self.first is not None
        mean = self.first.sums.mean
        about_zero = 0.0 if self.table.center else float(mean @ mean)
        return self.first.sums, self.first.variance + about_zero


def _by_products(table: Table, size: int | Rule, rng: np.random.Generator) -> Spectrum:
    """Twice as many axes each time until the rule is content with them."""
    operator, D = _Operator(table), table.n_features
    k, start = (size if isinstance(size, int) else min(FIRST_AXES, D)), None
    while True:
        found = leading_eigenpairs(operator, D, k, rng, tol=table.tolerance, start=start)
        sums, total = operator.measure_trace()
        order = min(int(sums.rows), D)
        kept = k if isinstance(size, int) else size(found.values, total, D, sums.weight)
        if isinstance(size, int) or kept < k or k >= order:
            break
        if not _few(2 * k, order):
            table = replace(table, origin=operator.origin)
            return _by_gram(table, size) if sums.rows < D else _by_covariance(table, size)
        k, start = 2 * k, found.vectors
    values, vectors = found.values[:kept], found.vectors[:, :kept]
    passes, done = operator.passes, found.converged
    return _spectrum(sums, table.center, values, vectors, total, "randomized", passes, done)


def _spectrum(
    sums: RowSums,
    center: bool,
    values: Array,
    vectors: Array,
    total: float,
    solver: str,
    passes: int,
    converged: bool = True,
) -> Spectrum:
    mean = sums.mean if center else np.zeros_like(sums.origin)
    vectors, rows = fix_signs(vectors), int(sums.rows)
    return Spectrum(mean, values, vectors, total, sums.weight, rows, solver, passes, converged)
