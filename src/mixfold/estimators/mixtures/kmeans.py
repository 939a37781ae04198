"""KMeans: a drop-in for scikit-learn's that takes real tables."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Source
from mixfold.engine.draws import draw_rows
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import RowKeys
from mixfold.engine.schedules import Stepwise
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator, warn
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    Survey,
    learn_one_batch,
    run_fit,
    store_fit,
    survey_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.units import warn_about_units
from mixfold.math.centres import Centres
from mixfold.models.mixtures.kmeans import KMeansModel, KMeansParams, KMeansStats
from mixfold.models.mixtures.kmeans_starts import (
    CENTRE_STARTS,
    CentreStart,
    GivenCentres,
    n_attempts,
)
from mixfold.models.mixtures.oversampling import oversample

# the stream of random numbers of k-means||, apart from that of fits
_OVERSAMPLE_STREAM = 4
# events that are part of the algorithm: a cluster that stays empty has a warning of its own
_ORDINARY_EVENTS = ("reseed", "empty")

_TABLE = rule.Rule(
    "an array of shape (n_clusters, n_features)",
    lambda v: not isinstance(v, str) and not callable(v) and np.ndim(v) == 2,
)


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, MixfoldEstimator):
    """K-means clustering.

    Finds K centres that minimise the inertia, the weighted sum of the squared distances of the rows
    to their nearest centres:

        sum_n w_n min_k sum_{d observed} (x[n, d] - centers[k, d])^2

    Parameters and attributes are those of :class:`sklearn.cluster.KMeans` and more. NaN entries are
    left out of the distances, and a centre is the mean of the observed entries of its rows; rows
    may weigh; X may be an array, a sparse matrix, a pandas, polars or Arrow table, a ``.npy``,
    Parquet or CSV file (or a folder of them) larger than memory, or a Dask collection. The result
    depends on the units of the columns: scale them if they are not comparable.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters K.
    init : {'k-means++', 'k-means||', 'random'} or array of shape (n_clusters, n_features), \
default='k-means++'
        Where the centres start. 'k-means++' compares a few starts after some steps, all on a sample
        of the rows. 'k-means||' looks at all of them, in six passes that cost about as much as 30
        iterations, to find small clusters that a sample may miss; a table that fits in the sample
        starts as with 'k-means++'. 'random' takes rows of the sample.
    n_init : int or 'auto', default=1
        Starts that are followed to the end; the best is kept. 'auto' is 10 with init='random' and
        1 otherwise. An array is one start.
    max_iter : int, default=300
        Largest number of iterations. Each start has this limit.
    tol : float, default=1e-4
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is what the inertia per row falls by, in units of
        the mean variance of a column divided by ``n_clusters``. That is what centres gain that move
        by the ``tol`` of scikit-learn, which looks at the last step only. The fit also stops when
        no row changes its cluster; 0 goes on until then.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration. The objective shown is minus the share of the variance within clusters.
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
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : int32 ndarray of shape (n_samples,)
        The cluster of each row, from a last pass over the data; after ``partial_fit`` of the rows
        of the last batch. A model file does not hold it.
    inertia_ : float
        Inertia at the result; ``inertias_`` after each step.
    n_iter_ : int
        Iterations of the best start, the last one included if nothing was left to change;
        ``n_passes_`` counts passes over the data.
    converged_ : bool
    stop_reason_ : {'converged', 'max_iter', 'time_budget', 'interrupted'}
    events_ : list of Event
        Clusters that lost all their rows and were moved to a row far from its centre.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Lloyd. Least squares quantization in PCM. IEEE Trans. Information Theory 28, 1982.
    .. [2] Arthur, Vassilvitskii. k-means++: the advantages of careful seeding. SODA 2007.
    .. [3] Bahmani, Moseley, Vattani, Kumar, Vassilvitskii. Scalable k-means++. VLDB 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, np.nan], [10, 2], [10, 4], [np.nan, 0]])
    >>> groups = KMeans(2, init=[[0, 3], [9, 0]]).fit(X)
    >>> groups.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> groups.cluster_centers_
    array([[ 1.,  3.],
           [10.,  2.]])

    Each point of the plane belongs to the nearest centre:

    >>> import matplotlib.pyplot as plt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [5, 1], [2, 5]], 100, axis=0)
    >>> groups = KMeans(3, random_state=0).fit(X)
    >>> side = np.linspace(-3, 8, 300)
    >>> grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    >>> cells = groups.predict(grid).reshape(300, 300)
    >>> image = plt.imshow(cells, "Pastel1", origin="lower", extent=(-3, 8, -3, 8))
    >>> rows = plt.scatter(*X.T, s=6, c=groups.labels_, cmap="Set1")
    >>> centres = plt.scatter(*groups.cluster_centers_.T, marker="x", s=60, color="k")
    """

    _constraints: ClassVar[rule.Constraints] = {
        "n_clusters": (rule.integer(1),),
        "init": (rule.one_of(CENTRE_STARTS), _TABLE),
        "n_init": (rule.integer(1), rule.one_of(["auto"])),
        "max_iter": (rule.integer(1),),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_dtype", "_stream", "inertia_", "inertias_", "n_iter_", "n_passes_",
        "converged_", "stop_reason_", "events_", "_schedule",
    )  # fmt: skip
    _params: KMeansParams

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
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
        """Find the centres.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Of shape (n_samples, n_features). NaN or null marks a missing entry. A row without any
            entry belongs to cluster 0.
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
        result = self._find_centres(source, self.max_iter)
        warn_about_units(self, result.pilot, "k-means")
        self.labels_ = self._label_rows(source)
        self._warn_about_fit(result)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the centres; the cluster of each row."""
        return self.fit(X, y, sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the centres; the distance of each row to each of them."""
        return self.fit(X, y, sample_weight).transform(X)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch (stepwise); the first one makes the start.

        Parameters are as in ``fit``. Batches may have any size after the first, which needs at
        least n_clusters rows; make it a typical one. ``labels_`` and ``inertia_`` are of the batch.
        """
        self._check_parameters()
        first = not hasattr(self, "_schedule")
        source = self._open(X, reset=first, weight=sample_weight)
        if first:
            self._find_centres(source, min(self.max_iter, FIRST_BATCH_STEPS))
        self._learn_batch(source, first)
        self.labels_ = self._label_rows(source)
        return self

    def _learn_batch(self, source: Source, first: bool) -> None:
        """One step of stepwise k-means, from the centres so far; for ``partial_fit``."""
        model = KMeansModel(self.n_clusters)
        before = self._params
        schedule = Stepwise() if first else self._schedule
        learned = learn_one_batch(self, model, source, schedule)
        if learned is not None:
            self.inertia_ = model.inertia(before, model.objective(before, learned.stats))
            self._publish_params()

    def _find_centres(self, source: Source, max_iter: int) -> Fit:
        """Look at the rows, start, iterate, and publish all but ``labels_``."""
        survey = survey_rows(self, source, self.n_clusters)
        pilot = survey.pilot
        if pilot.total_rows < self.n_clusters:
            raise ValueError(
                f"n_samples={pilot.total_rows} should be >= n_clusters={self.n_clusters}. Lower "
                "n_clusters or give more rows of positive weight."
            )
        model = KMeansModel(self.n_clusters, self._make_start(source.n_features))
        sampled = pilot.block.n_rows < pilot.total_rows
        if isinstance(self.init, str) and self.init == "k-means||" and sampled:
            model = _start_from_all_rows(model, survey)
        plan = Plan(
            tol=self.tol / (self.n_clusters * source.n_features),
            max_iter=max_iter,
            n_init=self._count_starts(),
            n_candidates=self._count_candidates(),
            time_budget=self.time_budget,
            seed=survey.seed,
        )
        result = run_fit(self, model, survey, plan)

        store_fit(self, result, survey)
        self._publish_params()
        self.inertias_ = [model.inertia(result.params, value) for value in result.trace[1:]]
        self.inertia_ = model.inertia(result.params, result.objective)
        # as in scikit-learn, the iteration that found nothing to change counts
        self.n_iter_ = result.n_iter + (result.converged and result.remaining == 0)
        self.n_passes_ = result.n_passes
        self.converged_ = result.converged
        self.stop_reason_ = result.reason
        self.events_ = list(result.events)
        return result

    def _make_start(self, n_features: int) -> CentreStart:
        """The rule that ``init`` names, or the centres that it gives, checked."""
        if isinstance(self.init, str):
            return CENTRE_STARTS[self.init]
        centres = np.array(self.init, dtype=float)
        wanted = (
            ("number of clusters", self.n_clusters),
            ("number of features of the data", n_features),
        )
        for size, (name, expected) in zip(centres.shape, wanted, strict=True):
            if size != expected:
                raise ValueError(
                    f"The shape of the initial centers {centres.shape} does not match the {name}, "
                    f"{expected}. Give 'init' one row per cluster and one column per feature."
                )
        if not np.isfinite(centres).all():
            raise ValueError("The parameter 'init' should be finite, but has NaN or infinity")
        return GivenCentres(centres)

    def _count_starts(self) -> int:
        """Starts that are followed to the end."""
        if not isinstance(self.init, str):
            return 1
        if isinstance(self.n_init, str):
            return 10 if self.init == "random" else 1
        return self.n_init

    def _count_candidates(self) -> int:
        """Starts that are compared on the sample, of which the best is followed."""
        plus_plus = isinstance(self.init, str) and self.init == "k-means++"
        if not plus_plus or self.n_clusters == 1:
            return 1
        return n_attempts(self.n_clusters, self.n_features_in_)

    def _label_rows(self, source: Source) -> Array:
        """The cluster of each row of the data at hand."""
        task = partial(KMeansModel.labels, *self._prepare())
        return np.concatenate(list(self._executor(source).map_rows(task, source)))

    def _warn_about_fit(self, result: Fit) -> None:
        """Warn of clusters without rows and of an early end."""
        found = len(np.unique(self.labels_))
        if found < self.n_clusters:
            warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
            )
        events = tuple(event for event in result.events if event.kind not in _ORDINARY_EVENTS)
        warn_about_fit(replace(result, events=events), self.max_iter)

    def _publish_params(self) -> None:
        params = self._params
        self.cluster_centers_ = in_dtype(params.frame.leave(params.centres), self._dtype)

    # ------------------------------------------------ predictions

    def predict(self, X: Any) -> Array:
        """The cluster of each row, int32: that of the nearest centre, the first of several."""
        return self._concatenate_rows(X, partial(KMeansModel.labels, *self._prepare()))

    def combine(self, n_clusters: Any = None, **options: Any) -> Any:
        """Refused: centres have no probabilities by which clusters could be merged."""
        raise TypeError(
            "KMeans has no probabilities by which clusters could be combined; fit a mixture of "
            "equal spheres from its centres: GaussianMixture(n, covariance_type='tied-spherical', "
            "means_init=kmeans.cluster_centers_).fit(X).combine(n_clusters, X=X)"
        )

    def transform(self, X: Any) -> Array:
        """Distances to the centres, (n_samples, n_clusters), over the observed entries of a row."""
        return self._concatenate_rows(X, partial(_distances, *self._prepare()))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of X."""
        model, reading = self._prepare()
        tasks = self._rows(X, partial(model.tally, reading), weight=sample_weight)
        squared = sum(stats.inertia for stats in tasks)
        return -float(squared) * float(reading.frame.scale[0]) ** 2

    def _prepare(self) -> tuple[KMeansModel, Centres]:
        """What finding the nearest centres of rows needs."""
        check_is_fitted(self)
        model = KMeansModel(self.n_clusters)
        return model, model.prepare(self._params)

    # ------------------------------------------------ scikit-learn and files

    @property
    def _n_features_out(self) -> int:
        """Columns of ``transform``, for ``get_feature_names_out``."""
        return int(self.n_clusters)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _summary(self) -> dict[str, Any]:
        return {
            "inertia": self.inertia_,
            "converged": getattr(self, "converged_", False),
            "iterations": self.n_iter_,
        }

    def _check_state(self) -> None:
        shape, params = (self.n_clusters, self.n_features_in_), self._params
        if not isinstance(params, KMeansParams) or params.centres.shape != shape:
            raise ValueError(f"centres of a shape other than {shape}, which is declared")
        if params.frame.origin.shape != shape[1:] or params.frame.scale.shape != shape[1:]:
            raise ValueError(f"a frame of other than {shape[1]} columns")
        self._publish_params()


def _start_from_all_rows(model: KMeansModel, survey: Survey) -> KMeansModel:
    """The model with the start of k-means||, which takes passes over the data."""
    rng = np.random.default_rng([survey.seed % 2**63, _OVERSAMPLE_STREAM])

    def draw(mass: Any, size: int, number: int) -> Block:
        keys = RowKeys(survey.seed, number, _OVERSAMPLE_STREAM)
        return draw_rows(survey.source, survey.executor, mass, size, keys)

    def total(task: Any) -> KMeansStats:
        stats: KMeansStats = survey.executor.map_reduce(task, survey.source)
        return stats

    return replace(model, start=oversample(model, survey.pilot, rng, draw, total))


def _distances(model: KMeansModel, reading: Centres, block: Block) -> Array:
    return match_dtype(model.distances(reading, block), block)
