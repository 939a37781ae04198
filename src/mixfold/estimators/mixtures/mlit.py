"""Mixtures of Gaussians under linear transformations."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.engine.executors.blas import single_threaded_blas
from mixfold.engine.loop import Fit, Plan
from mixfold.estimators.mixtures.combining import Combining
from mixfold.estimators.mixtures.mixture import CANDIDATES
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, MixfoldEstimator, warn
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
from mixfold.math.softmax import normalise
from mixfold.models.factors.spectral import second_moments
from mixfold.models.factors.spectral_sums import MissingEntries
from mixfold.models.mixtures.mlit.model import (
    Start,
    TransformedMixture,
    TransformedReading,
    log_joint,
    read,
)
from mixfold.models.mixtures.mlit.records import Iterates, Moments, Transformed
from mixfold.models.mixtures.mlit.rules import NORMS, Constrained, Normalized, Orthonormal, Rule
from mixfold.models.mixtures.mlit.starts import cluster_start, window_start

_INCOMPLETE = (
    "Input X contains NaN: MLiT needs complete rows; fill them first, for example by "
    "mixfold.PPCA(...).fit(X).impute(X)"
)


class MLiT(Combining, ClassNamePrefixFeaturesOutMixin, TransformerMixin, MixfoldEstimator):
    """Mixture of Gaussians of rows under linear transformations, one for each component.

    The score of a row x is

        f(x) = sum_k weights_k N(transforms_k x; means_k, covariances_k)

    with d rows in each transformation. It is **not a density of x**: it is constant along the null
    space of the transformations, its integral is infinite, and its level depends on their scale.
    It serves to compare classes, each with a model of its own (:class:`MixtureClassifier`), that
    share ``n_dims`` and ``scale``. There is no BIC and no sampling of rows.

    What the two published methods really do: with the mean of a component following its
    transformation, the criterion is largest where the transformation has rank one, and a norm does
    not prevent that. Every sweep is a step of a power iteration towards that point, and the ridge
    keeps it finite. The number of sweeps is therefore what regularises: a few from the start
    (often none) are best, and :class:`MixtureClassifier` chooses them by cross-validation. Results
    depend on the origin and the units of the columns, on ``scale`` and ``ridge``. The method
    'orthonormal' has none of these defects: its scores are densities of the retained subspaces
    (each term times exp(-ridge tr(covariances_k^-1) / 2), the mean log score under jitter of the
    size of the ridge), and its objective never falls.

    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    n_dims : int, default=2
        Rows d of each transformation.
    method : {'normalized', 'constrained', 'orthonormal'}, default='normalized'
        'normalized': one least-squares sweep over the columns per step, then norm ``scale``.
        'constrained': every column on the L1 sphere of radius scale / n_features, where
        the best point is found: the global one from outside of the sphere and for up to 12
        dimensions, else the best that a tabu search meets. 'orthonormal': the axes of least
        variance of each component.
    scale : float, default=1.0
        Norm of the transformations of the first two methods.
    norm : {'frobenius', 'spectral', 'nuclear', 'l1', 'linf', 'entrywise'}, default='frobenius'
        Which norm of 'normalized': of the vector of all entries, the largest singular value, the
        sum of singular values, the largest sum of a column's or of a row's absolute values, or
        the sum of all of them. 'constrained' has a norm of its own.
    init : {'largest', 'smallest'}, default='largest'
        Eigenvectors of the covariance of all rows that the components begin with: from the largest
        eigenvalue on, or from the smallest. 'orthonormal' begins with clusters of k-means, of which
        several draws race on a sample of the rows.
    shift : int, default=2
        Component k begins with eigenvectors k * shift, k * shift + 1, ...
    ridge : float, default=0.01
        Added to every variance under a transformation.
    columns_per_iter : int, default=None
        Columns that a step of 'constrained' moves, in turn; None means all, 1 is as published.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept. Only 'orthonormal' has more than one.
    iterate : int, default=None
        Which of the iterates answers (0 is the start); None means the last. They are all kept by
        the methods whose criterion may fall, see ``use_iterate``.
    max_iter : int, default=50
        Largest number of iterations.
    tol : float, default=1e-5
        A step that changes the mean score by less ends the fit; not of 'normalized', whose number
        of steps is a setting like others.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers. Only the
        clusters that 'orthonormal' begins with are drawn.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned. That is the last iterate.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    transforms_ : ndarray of shape (n_components, n_dims, n_features)
    means_ : ndarray of shape (n_components, n_dims)
    covariances_ : ndarray of shape (n_components, n_dims, n_dims)
        With the ridge.
    iterate_ : int
        The iterate that answers, of ``n_iterates_``.
    lower_bounds_ : list of float
        Mean score of the training rows after each step; ``start_score_`` before the first.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, events_
        As in :class:`GaussianMixture`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Otoom, Gunes, Perez Concha, Piccardi. MLiT: mixtures of Gaussians under linear
       transformations. Pattern Analysis and Applications 14, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import MLiT
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5)) * [3.0, 2.0, 1.0, 0.1, 0.1]
    >>> model = MLiT(1, 2, method="orthonormal", ridge=1e-6, random_state=0).fit(X)
    >>> np.abs(model.transforms_[0])[:, :3].max().round(2) < 0.1  # of least variance
    np.True_
    >>> model.transform(X).shape, model.score_samples(X).shape
    ((200, 2), (200,))
    >>> import matplotlib.pyplot as plt
    >>> image = plt.imshow(np.abs(model.transforms_[0]), cmap="Blues")
    >>> names = plt.xlabel("column"), plt.ylabel("row of the transformation")
    >>> ticks, scale = plt.yticks([0, 1]), plt.colorbar(image, label="size of the entry")
    """

    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "n_dims": (rule.integer(1),),
        "method": (rule.one_of(["normalized", "constrained", "orthonormal"]),),
        "scale": (rule.number(0, open_end=True),),
        "norm": (rule.one_of(NORMS),),
        "init": (rule.one_of(["largest", "smallest"]),),
        "shift": (rule.integer(1),),
        "ridge": (rule.number(0),),
        "columns_per_iter": (rule.nothing(), rule.integer(1)),
        "iterate": (rule.nothing(), rule.integer(0)),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_dtype", "_stream", "_origin", "converged_", "stop_reason_", "n_iter_",
        "n_passes_", "lower_bound_", "lower_bounds_", "start_score_", "events_", "iterate_",
    )  # fmt: skip
    # scores depend on these, whatever the rows
    _same_in_all_classes: ClassVar[tuple[str, ...]] = (
        "n_dims", "method", "scale", "norm", "ridge", "iterate",
    )  # fmt: skip
    _params: Iterates
    _origin: Array  # mean of the training rows, from which rows are scored

    def __init__(
        self,
        n_components: int = 1,
        n_dims: int = 2,
        method: str = "normalized",
        *,
        scale: float = 1.0,
        norm: str = "frobenius",
        init: str = "largest",
        shift: int = 2,
        ridge: float = 0.01,
        columns_per_iter: int | None = None,
        n_init: int = 1,
        iterate: int | None = None,
        max_iter: int = 50,
        tol: float = 1e-5,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_dims = n_dims
        self.method = method
        self.scale = scale
        self.norm = norm
        self.init = init
        self.shift = shift
        self.ridge = ridge
        self.columns_per_iter = columns_per_iter
        self.n_init = n_init
        self.iterate = iterate
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
        """Fit the model to the rows of one class.

        Parameters
        ----------
        X : array-like, table, path or Dask collection
            Rows are samples, columns features; no entry may be missing.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        source = self._open(X, reset=True, weight=sample_weight, min_rows=2)
        if self.n_dims > source.n_features:
            raise ValueError(
                f"n_dims={self.n_dims} must be at most the number of features, n_features = "
                f"{source.n_features}; lower it"
            )
        survey = survey_rows(self, source, self.n_components)
        check_enough_rows(survey.pilot.total_rows, self.n_components)
        try:
            moments = second_moments(source, survey.executor)
        except MissingEntries:
            raise ValueError(_INCOMPLETE) from None
        weight, mean, covariance = moments.sums.weight, moments.sums.mean, moments.covariance()
        self._warn_if_degenerate(weight, covariance)

        method = self._make_rule()
        model = TransformedMixture(
            method,
            float(self.ridge),
            self._make_start(method, Moments(weight, mean, covariance, covariance)),
            mean,
            self.tol if self.method == "constrained" else 0.0,
            keep=not method.monotone,
        )
        drawn = self.method == "orthonormal" and self.n_components > 1
        plan = Plan(
            tol=self.tol if self.method == "orthonormal" else 0.0,
            max_iter=self.max_iter,
            n_init=self.n_init if drawn else 1,
            n_candidates=CANDIDATES if drawn else 1,
            time_budget=self.time_budget,
            seed=survey.seed,
        )
        result = run_fit(self, model, survey, plan)

        store_fit(self, result, survey)
        self._origin = mean
        self.start_score_ = float(result.trace[0] / result.weight)
        last = self.n_iterates_ - 1
        self.iterate_ = last if self.iterate is None else min(self.iterate, last)
        self._publish_params()
        publish_convergence(self, result)
        self._warn_about_fit(result)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then transform the same rows."""
        return self.fit(X, y, sample_weight).transform(X)

    def _make_rule(self) -> Rule:
        """How transformations are found, which also says how rows are scored."""
        scale = float(self.scale)
        rules: dict[str, Rule] = {
            "normalized": Normalized(scale, self.norm),
            "constrained": Constrained(scale, self.columns_per_iter),
            "orthonormal": Orthonormal(),
        }
        return rules[self.method]

    def _make_start(self, method: Rule, moments: Moments) -> Transformed | Start:
        """Where the fit begins: clusters of a sample, or eigenvectors of the covariance."""
        ridge = float(self.ridge)
        if self.method == "orthonormal":
            return partial(cluster_start, method, self.n_components, self.n_dims, ridge)
        smallest = self.init == "smallest"
        return window_start(method, moments, self.n_components, self.n_dims,
                            smallest=smallest, shift=self.shift, ridge=ridge)  # fmt: skip

    def _warn_if_degenerate(self, weight: float, covariance: Array) -> None:
        """Warn of too few rows, and of constant columns where these would be chosen."""
        if weight <= self.n_dims:
            warn(
                f"rows of weight {weight:g} cannot tell a covariance in n_dims={self.n_dims}; only "
                "the ridge keeps it regular",
                DegenerateWarning,
            )
            return
        least = self.init == "smallest" or self.method == "orthonormal"
        if least and (np.diagonal(covariance) <= 0).any():
            warn(
                "some columns are constant: the axes of least variance are theirs, and only the "
                "ridge remains there; remove them",
                DegenerateWarning,
            )

    def _warn_about_fit(self, result: Fit) -> None:
        """Warn of events and of an early end; max_iter is an early end of 'orthonormal' only."""
        if result.reason != "max_iter" or self.method == "orthonormal":
            warn_about_fit(result, self.max_iter)
            return
        # what happens after the iterate that answers is of no concern
        events = [event for event in result.events if event.iteration <= self.iterate_]
        if events:
            warn(f"{events[0].message}; see events_", DegenerateWarning)

    def _publish_params(self) -> None:
        """Publish the iterate that answers."""
        params = self._params.iterates[self.iterate_]
        self.weights_ = in_dtype(params.weights, self._dtype)
        self.transforms_ = in_dtype(params.transforms, self._dtype)
        self.means_ = in_dtype(params.means, self._dtype)
        self.covariances_ = in_dtype(params.covariances, self._dtype)

    # ------------------------------------------------ iterates

    @property
    def n_iterates_(self) -> int:
        """Number of iterates that are kept, the start included."""
        return len(self._params.iterates)

    def use_iterate(self, number: int) -> Self:
        """Let another iterate answer; 0 is the start."""
        check_is_fitted(self)
        if not 0 <= number < self.n_iterates_:
            raise ValueError(
                f"the number of an iterate must be from 0 to {self.n_iterates_ - 1}; got {number}"
            )
        self.iterate_ = int(number)
        self._publish_params()
        return self

    def staged_score_samples(self, X: Any) -> Array:
        """Log score of each row by each iterate, of shape (n_iterates, n_samples)."""
        check_is_fitted(self)
        readings = [self._prepare(one) for one in self._params.iterates]
        return np.concatenate(list(self._rows(X, partial(_staged_scores, readings))), axis=1)

    # ------------------------------------------------ predictions

    def score_samples(self, X: Any) -> Array:
        """log f of each row: **not** a log density of the row, see above."""
        return self._concatenate_rows(X, partial(_scores, self._prepare_chosen()))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean of log f."""
        return float(np.average(self.score_samples(X), weights=sample_weight))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each component given the row, (n_samples, n_components)."""
        return self._concatenate_rows(X, partial(_probabilities, self._prepare_chosen()))

    def predict(self, X: Any) -> Array:
        """The most probable component of each row."""
        return self._concatenate_rows(X, partial(_labels, self._prepare_chosen()))

    def transform(self, X: Any) -> Array:
        """Each row under the transformation of its most probable component, (n, n_dims)."""
        reading = self._prepare_chosen()
        transforms = self._params.iterates[self.iterate_].transforms
        return self._concatenate_rows(X, partial(_transform_block, reading, transforms))

    def _prepare_chosen(self) -> TransformedReading:
        """What scoring rows by the iterate that answers needs."""
        check_is_fitted(self)
        return self._prepare(self._params.iterates[self.iterate_])

    def _prepare(self, params: Transformed) -> TransformedReading:
        # small systems, and with all iterates many: threads of BLAS would only wait for each other
        with single_threaded_blas():
            offset = self._make_rule().offset(params.covariances, float(self.ridge))
            return read(params, offset, self._origin)

    # ------------------------------------------------ scikit-learn and files

    @property
    def _n_features_out(self) -> int:
        """Columns of ``transform``, for ``get_feature_names_out``."""
        return int(self.n_dims)

    def _check_state(self) -> None:
        shape = (self.n_components, self.n_dims, self.n_features_in_)
        if any(one.transforms.shape != shape for one in self._params.iterates):
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_params()


# ---------------------------------------------------- predictions for one block of rows


def _log_joint(reading: TransformedReading, block: Block) -> Array:
    if not block.complete:
        raise ValueError(_INCOMPLETE)
    return log_joint(reading, block.X)


def _staged_scores(readings: list[TransformedReading], block: Block) -> Array:
    return match_dtype(np.stack([normalise(_log_joint(one, block))[0] for one in readings]), block)


def _scores(reading: TransformedReading, block: Block) -> Array:
    return match_dtype(normalise(_log_joint(reading, block))[0], block)


def _probabilities(reading: TransformedReading, block: Block) -> Array:
    return match_dtype(normalise(_log_joint(reading, block))[1], block)


def _labels(reading: TransformedReading, block: Block) -> Array:
    found: Array = np.argmax(_log_joint(reading, block), axis=1)
    return found


def _transform_block(reading: TransformedReading, transforms: Array, block: Block) -> Array:
    best = _labels(reading, block)
    X = np.asarray(block.X, np.float64)
    out = np.empty((len(X), transforms.shape[1]))
    for k, omega in enumerate(transforms):
        out[best == k] = X[best == k] @ omega.T
    return match_dtype(out, block)
