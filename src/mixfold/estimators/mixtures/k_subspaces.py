"""K-subspaces: clusters that are planes, by least squares."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Source
from mixfold.engine.loop import Plan
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    check_enough_rows,
    publish_convergence,
    run_fit,
    store_fit,
    survey_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.units import warn_about_units
from mixfold.models.factors.spectral import ORDINARY
from mixfold.models.mixtures.subspaces import Planes, SubspaceModel, rows_of, squared_distances

# starts that are compared on a sample
_CANDIDATES = 8


class KSubspaces(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, MixfoldEstimator):
    """K-subspaces clustering: each cluster is a plane, and each row goes to the nearest one.

    Finds K planes of d dimensions, through means mu_k along orthonormal axes A_k, that minimise the
    weighted sum of the squared distances of the rows from their nearest planes:

        sum_n w_n min_k |(I - A_k A_k') (x_n - mu_k)|^2

    It is k-means with planes instead of centres, and a mixture of PCA by reconstruction error: the
    rows of each cluster are rebuilt by PCA of their own. :class:`MixtureOfPPCA` is its counterpart
    with a likelihood, which also knows how far rows are from each other along a plane, takes
    missing entries and says how sure an assignment is. The result depends on the units of the
    columns: scale them if they are not comparable.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters K.
    n_components : int, default=1
        Dimension d of the planes, less than the number of columns. 0 is k-means.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept. Each is the best of a few on a sample
        of the rows, with planes through random rows.
    max_iter : int, default=300
        Largest number of iterations. Each start has this limit.
    tol : float, default=1e-6
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is what the inertia per row falls by, relative to
        the variance of the rows.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration. The objective shown is minus the share of the variance off the planes.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result.

    Attributes
    ----------
    labels_ : int32 ndarray of shape (n_samples,)
        The cluster of each row, from a last pass over the data. A model file does not hold it.
    means_ : ndarray of shape (n_clusters, n_features)
    components_ : ndarray of shape (n_clusters, n_components, n_features)
        Orthonormal axes of each plane, those of most variance first.
    explained_variance_ : ndarray of shape (n_clusters, n_components)
        Mean squares of the rows of a cluster along its axes.
    weights_ : ndarray of shape (n_clusters,)
        Shares of the rows.
    inertia_ : float
        The weighted sum of squared distances from the planes.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; the bound is minus the inertia per row, relative to the
        variance of the rows.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Bradley, Mangasarian. k-plane clustering. Journal of Global Optimization 16, 2000.
    .. [2] Tseng. Nearest q-flat to m points. Journal of Optimization Theory and Applications 105,
       2000.

    Examples
    --------
    Two lines that cross, which no centres could tell apart:

    >>> import numpy as np
    >>> from mixfold import KSubspaces
    >>> t = np.linspace(-3, 3, 100)
    >>> X = np.vstack([np.column_stack([t, t]), np.column_stack([t, -t])])
    >>> X += 0.01 * np.random.default_rng(0).normal(size=X.shape)
    >>> lines = KSubspaces(2, 1, random_state=0).fit(X)
    >>> np.abs(lines.components_[:, 0]).round(1)
    array([[0.7, 0.7],
           [0.7, 0.7]])
    >>> lines.predict([[2.0, 2.0], [2.0, -2.0]]).tolist() in ([0, 1], [1, 0])
    True
    >>> import matplotlib.pyplot as plt
    >>> rows = plt.scatter(*X.T, c=lines.labels_, cmap="coolwarm", s=12)
    """

    _constraints: ClassVar[rule.Constraints] = {
        "n_clusters": (rule.integer(1),),
        "n_components": (rule.integer(0),),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_dtype", "_stream", "inertia_", "n_iter_", "n_passes_", "converged_",
        "stop_reason_", "lower_bound_", "lower_bounds_", "events_",
    )  # fmt: skip
    _params: Planes

    def __init__(
        self,
        n_clusters: int = 2,
        n_components: int = 1,
        *,
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the planes.

        Parameters
        ----------
        X : array-like, table, path or Dask collection of shape (n_samples, n_features)
            Rows without missing entries, of at most 2000 columns.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        source = self._open(X, reset=True, weight=sample_weight)
        self._check_columns_suffice(source)
        survey = survey_rows(self, source, self.n_clusters)
        check_enough_rows(survey.pilot.total_rows, self.n_clusters, "n_clusters")
        warn_about_units(self, survey.pilot, "K-subspaces")
        model = self._model()
        several = self.n_clusters > 1
        plan = Plan(
            tol=self.tol,
            max_iter=self.max_iter,
            n_init=self.n_init if several else 1,
            n_candidates=_CANDIDATES if several else 1,
            acceleration=None,
            time_budget=self.time_budget,
            seed=survey.seed,
        )
        result = run_fit(self, model, survey, plan)
        store_fit(self, result, survey)
        self.inertia_ = model.inertia(result.params, result.objective)
        self._publish_params()
        publish_convergence(self, result)
        # as of KMeans, the iteration that found nothing to change counts
        self.n_iter_ = result.n_iter + (result.converged and result.remaining == 0)
        task = partial(_labels, self._params)
        self.labels_ = np.concatenate(list(self._executor(source).map_rows(task, source)))
        warn_about_fit(result, self.max_iter)
        return self

    def _check_columns_suffice(self, source: Source) -> None:
        if self.n_components >= source.n_features:
            raise ValueError(
                f"n_components={self.n_components} must be less than n_features = "
                f"{source.n_features}, or every row would lie on every plane; lower n_components"
            )
        if source.n_features > ORDINARY:
            raise ValueError(
                f"KSubspaces keeps products of all columns and takes at most {ORDINARY} of them; "
                f"X has {source.n_features}. Reduce them first, by PPCA(n_components, "
                "scale='scores') say, or use MixtureOfPPCA"
            )

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the planes; the cluster of each row."""
        return self.fit(X, y, sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the planes; the distance of each row from each of them."""
        return self.fit(X, y, sample_weight).transform(X)

    def _model(self) -> SubspaceModel:
        return SubspaceModel(int(self.n_clusters), int(self.n_components))

    def _publish_params(self) -> None:
        """Publish what the parameters say, in units of the data."""
        params = self._params
        scale = float(params.frame.scale[0])
        self.means_ = in_dtype(params.frame.leave(params.means), self._dtype)
        axes = np.ascontiguousarray(np.swapaxes(params.axes, 1, 2))
        self.components_ = in_dtype(axes, self._dtype)
        self.explained_variance_ = in_dtype(params.values * scale**2, self._dtype)
        self.weights_ = in_dtype(params.weights, self._dtype)

    # ------------------------------------------------ asking

    def predict(self, X: Any) -> Array:
        """The cluster of each row, int32: that of the nearest plane, the first of several."""
        check_is_fitted(self)
        return self._concatenate_rows(X, partial(_labels, self._params))

    def transform(self, X: Any) -> Array:
        """Distances from the planes, (n_samples, n_clusters)."""
        check_is_fitted(self)
        return self._concatenate_rows(X, partial(_distances, self._params))

    def reconstruct(self, X: Any) -> Array:
        """The nearest point of the nearest plane for each row, (n_samples, n_features)."""
        check_is_fitted(self)
        return self._concatenate_rows(X, partial(_rebuild, self._params))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of X."""
        check_is_fitted(self)
        parts = self._rows(X, partial(_cost, self._params), weight=sample_weight)
        return -float(sum(parts))

    # ------------------------------------------------ scikit-learn and files

    @property
    def _n_features_out(self) -> int:
        """Columns of ``transform``, for ``get_feature_names_out``."""
        return int(self.n_clusters)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _summary(self) -> dict[str, Any]:
        return {
            "inertia": self.inertia_,
            "converged": getattr(self, "converged_", False),
            "iterations": self.n_iter_,
        }

    def _check_state(self) -> None:
        params, K, D = self._params, self.n_clusters, self.n_features_in_
        shapes = params.means.shape, params.axes.shape, params.values.shape, params.weights.shape
        d = self.n_components
        if shapes != ((K, D), (K, D, d), (K, d), (K,)):
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_params()


# ---------------------------------------------------- answers for one block of rows


def _squares(params: Planes, block: Block) -> Array:
    return squared_distances(params, params.frame.enter(rows_of(block)))


def _labels(params: Planes, block: Block) -> Array:
    return np.asarray(_squares(params, block).argmin(axis=1), dtype=np.int32)


def _distances(params: Planes, block: Block) -> Array:
    scale = float(params.frame.scale[0])
    return match_dtype(np.sqrt(_squares(params, block)) * scale, block)


def _cost(params: Planes, block: Block) -> float:
    nearest = _squares(params, block).min(axis=1)
    return float(block.weights() @ nearest) * float(params.frame.scale[0]) ** 2


def _rebuild(params: Planes, block: Block) -> Array:
    U = params.frame.enter(rows_of(block))
    assigned = squared_distances(params, U).argmin(axis=1)
    out = np.empty_like(U)
    for k in np.unique(assigned):
        mine, axes = assigned == k, params.axes[k]
        deviation = U[mine] - params.means[k]
        out[mine] = params.means[k] + (deviation @ axes) @ axes.T
    return match_dtype(params.frame.leave(out), block)
