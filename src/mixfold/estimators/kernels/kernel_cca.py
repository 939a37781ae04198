"""Regularised kernel canonical correlation analysis."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array
from mixfold.engine.random import seed_from
from mixfold.estimators.kernels.kernel_views import (
    VIEW_RULES,
    Reweighted,
    ViewEstimator,
    check_kernel_matrix,
    decompose_outputs,
    exact_scores,
)
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.output_coding import OutputSet, is_several, learn_output_set
from mixfold.estimators.shell.targets import (
    TASKS,
    find_target,
    read_target,
    require_target,
    weights_or_ones,
)
from mixfold.math.signs import signs
from mixfold.models.kernels.kernel_cca import canonical_pairs
from mixfold.models.kernels.views import LinearProjection, Projection


class KernelCCA(ViewEstimator):
    """Canonical correlations of two tables, regularised, with kernels.

    Pairs of functions of x and of y are sought whose values go together in the rows:

        max a'Gx Gy b   for   a'((1 - k) Gx^2 + k Gx) a = 1  and  b'((1 - k) Gy^2 + k Gy) b = 1

    with the centred kernel matrices Gx and Gy (each divided by the mean of its diagonal) and
    k = ``regularization``: 0 is canonical correlation analysis, 1 is partial least squares
    (PLS-SVD). Any k > 0 is stable, for more columns than rows too; k = 0 with a kernel that tells
    all rows apart finds correlations of 1 that mean nothing.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs; fewer are given if a view has fewer directions (C - 1 for C classes).
    kernel : {'linear', 'rbf', 'poly', 'cosine', 'laplacian', 'precomputed'} or callable, \
default='linear'
        Of x, as in scikit-learn's KernelPCA; a function takes two matrices of rows.
    gamma : float, 'scale' or None, default=None
        Coefficient of the kernels 'rbf', 'laplacian' and 'poly'; None is 1 / n_features, 'scale'
        divides that by the variance of all entries.
    degree : int, default=3
        Of 'poly'.
    coef0 : float, default=1.0
        Of 'poly'.
    output_kernel : str or callable, default='linear'
        Of y as it is coded; any of the above but 'precomputed'.
    output_gamma : float, 'scale' or None, default=None
        As gamma, of the output kernel.
    regularization : float in [0, 1], default=0.1
        k.
    solver : {'auto', 'primal', 'dual'}, default='auto'
        Of a linear kernel of x: by columns or by pairs of rows, whichever are fewer.
    balance : bool, default=True
        Whether the kernel matrices are divided by the means of their diagonals, so that k means the
        same whatever the units.
    task : {'auto', 'classification', 'multilabel', 'regression'}, default='auto'
        What y is, as in :class:`SupervisedPPCA`; a table of numbers is 'regression'.
    standardize : bool or 'auto', default='auto'
        Whether columns of y are divided by their standard deviations; 'auto' for regression.
    landmarks : int or None, default=None
        Number of rows by products with which rows get their coordinates (Nystroem); None is exact.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers. Landmarks
        are drawn by it.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
    n_jobs : int, default=None
        Number of threads; None means all cores.

    Attributes
    ----------
    correlations_ : ndarray of shape (n_components,)
        Of the scores of x and of y in the rows of the fit.
    singular_values_ : ndarray of shape (n_components,)
        a'Gx Gy b; the same for k = 0.
    x_weights_, x_mean_ : ndarray of shape (n_features, n_components), (n_features,)
        Linear kernel only: scores are (x - x_mean_) x_weights_.
    y_weights_, y_mean_ : ndarray
        Linear output kernel only: the same of y as it is coded.
    classes_ : ndarray
        If y was classes or labels.
    solver_ : str
        'primal', 'dual' or 'landmarks'.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Hardoon, Szedmak, Shawe-Taylor. Canonical correlation analysis: an overview with
       application to learning methods. Neural Computation 16, 2004.
    .. [2] Vinod. Canonical ridge and econometrics of joint production. Journal of Econometrics 4,
       1976.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import KernelCCA
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(300, 1))
    >>> X = z @ rng.normal(size=(1, 8)) + rng.normal(size=(300, 8))
    >>> Y = z @ rng.normal(size=(1, 3)) + 0.3 * rng.normal(size=(300, 3))
    >>> model = KernelCCA(1).fit(X, Y)
    >>> zx, zy = model.transform(X, Y)
    >>> bool(np.isclose(np.corrcoef(zx[:, 0], zy[:, 0])[0, 1], model.correlations_[0]))
    True
    >>> import matplotlib.pyplot as plt
    >>> points = plt.scatter(zx[:, 0], zy[:, 0], s=10)
    >>> names = plt.xlabel("score of X"), plt.ylabel("score of Y")
    """

    _constraints: ClassVar[rule.Constraints] = {
        **VIEW_RULES,
        "regularization": (
            rule.Rule("a number from 0 to 1", lambda v: rule.number(0).holds(v) and v <= 1),
        ),
        "balance": (rule.boolean(),),
        "task": (rule.one_of(TASKS),),
        "standardize": (rule.one_of(["auto"]), rule.boolean()),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        *ViewEstimator._stored, "_output_projection", "_output", "correlations_",
        "singular_values_",
    )  # fmt: skip

    _output_projection: Projection
    _output: OutputSet

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: int = 3,
        coef0: float = 1.0,
        output_kernel: Any = "linear",
        output_gamma: Any = None,
        regularization: float = 0.1,
        solver: str = "auto",
        balance: bool = True,
        task: str = "auto",
        standardize: Any = "auto",
        landmarks: int | None = None,
        random_state: Any = None,
        executor: Any = "threads",
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.output_kernel = output_kernel
        self.output_gamma = output_gamma
        self.regularization = regularization
        self.solver = solver
        self.balance = balance
        self.task = task
        self.standardize = standardize
        self.landmarks = landmarks
        self.random_state = random_state
        self.executor = executor
        self.n_jobs = n_jobs

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit both projections.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Complete rows; with kernel='precomputed' the kernel matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            The other view: numbers, labels or classes. A row that lacks any of them is left out.
            For tables and files also the name of a column, which is then not a feature.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature. Where landmarks are
            drawn, repeating rows changes which.

        Returns
        -------
        self
        """
        self._check_parameters()
        seed = seed_from(self.random_state)

        # y as numbers; a row that lacks any of them weighs nothing
        given = find_target(X, y, sample_weight)
        y, known_weights = _take_table(require_target(self, given.y)), given.read_weights()
        self._output, coded = learn_output_set(y, self.task, known_weights, self.standardize)
        weights = weights_or_ones(known_weights, len(coded)) * ~np.isnan(coded).any(axis=1)
        known, scale = weights > 0, 1.0 / weights.sum()

        # the kernel matrix of y: its eigenvectors are outputs beside the rows of X
        other = decompose_outputs(self._output_choice(seed), self._executor, coded, weights)
        vectors = np.zeros((len(coded), len(other.values)))
        vectors[known] = other.reader(np.diag(other.values**-0.5))(coded[known])
        source = given.open(self, vectors, min_rows=2)
        if self.kernel == "precomputed":
            check_kernel_matrix(source)
        self._dtype = source.dtype.name
        if not known.all():
            source = Reweighted(source, weights)
        executor = self._executor(source)

        # the kernel matrix of x, and the pairs of directions in which both go together
        thin, self.solver_ = self._input_choice(seed).thin(source, executor)
        cx, cy = (1 / (scale * t.trace) if self.balance else 1.0 for t in (thin, other))
        pairs = canonical_pairs(
            cx * thin.values, cy * other.values, thin.outputs, self.regularization,
            self.n_components,
        )  # fmt: skip

        # scores of variance one for k = 0, turned so that the largest of each is positive
        projection = thin.reader(pairs.inputs * np.sqrt(cx / scale))
        scores = exact_scores(source, executor, projection)
        turn = signs(scores * known[:, None])[0]
        self._projection = projection.times(turn)
        self._output_projection = other.reader(pairs.outputs * turn * np.sqrt(cy / scale))
        self.singular_values_, self.correlations_ = pairs.values, pairs.correlations
        self._publish_axes()

        found = len(self.correlations_)
        if found < self.n_components:
            warn(
                f"there are only {found} pair(s) of directions that go together, fewer than "
                f"n_components={self.n_components}; scores have that many columns",
                DegenerateWarning,
            )
        return self

    def _publish_axes(self) -> None:
        """Attributes that follow from what a file holds; also after loading one."""
        for name, projection in (("x", self._projection), ("y", self._output_projection)):
            if isinstance(projection, LinearProjection):
                setattr(self, f"{name}_weights_", in_dtype(projection.matrix, self._dtype))
                setattr(self, f"{name}_mean_", in_dtype(projection.mean, self._dtype))
        if self._output.target.task != "regression":
            self.classes_ = self._output.target.classes

    # ------------------------------------------------ asking

    def transform(self, X: Any, y: Any = None) -> Any:
        """Scores of the rows.

        Parameters
        ----------
        X : as in ``fit``
        y : as in ``fit``, optional

        Returns
        -------
        ndarray of shape (n_samples, n_components), or with y a pair of them, of x and of y
        """
        scores = self._scores(X)
        if y is None:
            return scores
        return scores, in_dtype(self._output_scores(X, y), scores.dtype)

    def _output_scores(self, X: Any, y: Any) -> Array:
        coded = self._output.encode(read_target(X, y))
        out = np.full((len(coded), self._n_features_out), np.nan)
        known = ~np.isnan(coded).any(axis=1)
        if known.any():
            out[known] = self._output_projection(coded[known])
        return out

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean correlation of the scores of x with those of y; rows that lack some y do not count.

        Parameters
        ----------
        X, y : as in ``fit``
        sample_weight : array-like of shape (n_samples,), optional
        """
        check_is_fitted(self)
        zx, zy = self.transform(X, require_target(self, y))
        weight = np.ones(len(zx)) if sample_weight is None else np.asarray(sample_weight, float)
        known = ~np.isnan(zy).any(axis=1)
        if len(zx) != len(zy):
            raise ValueError(f"y has {len(zy)} entries, X has {len(zx)} rows; give one per row")
        if not weight[known].any():
            raise ValueError("y has no row (of positive weight) in which all of it is known")
        weight = weight[known] / weight[known].sum()
        zx, zy = (z[known] - weight @ z[known] for z in (zx, zy))
        products = [weight @ (a * b) for a, b in ((zx, zy), (zx, zx), (zy, zy))]
        lengths = np.sqrt(products[1] * products[2])
        return float(np.mean(products[0] / np.where(lengths > 0, lengths, 1.0)))

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _check_state(self) -> None:
        sizes = (self._projection.size, self._output_projection.size, len(self.correlations_))
        if not isinstance(self._output, OutputSet) or len(set(sizes)) > 1:
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_axes()


def _take_table(y: Any) -> Any:
    """One table, of several that MORP would take."""
    if not is_several(y):
        return y
    if isinstance(y, list | tuple) and len(y) == 1:
        return y[0]
    tables = "list(y.values())" if isinstance(y, dict) else "y"
    raise ValueError(
        f"KernelCCA takes one table as y, got a {type(y).__name__} of {len(y)} arrays; put them "
        f"side by side, np.column_stack({tables}), or make a table of rows, np.array({tables}); "
        "MORP takes several"
    )
