"""Mixtures of supervised probabilistic PCA."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._set_output import _get_output_config

from mixfold.contracts import Array, Block, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.estimators.outputs.supervised_gaussian import (
    GaussianOutputEstimator,
    make_gaussian_model,
    make_score_model,
)
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import latents, predictions
from mixfold.estimators.shell.base import restore_on_error
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    Survey,
    WarmStart,
    acceleration_named,
    check_enough_rows,
    publish_convergence,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.targets import GivenTarget, find_target
from mixfold.math.low_rank import low_rank
from mixfold.math.softmax import normalise
from mixfold.models.factors import factor_use
from mixfold.models.factors.factor_starts import FACTOR_STARTS
from mixfold.models.outputs import joint_posterior
from mixfold.models.outputs.model import GaussianModel, SupervisedModel, SupervisedReading


class SupervisedMixtureOfPPCA(GaussianOutputEstimator):
    """Mixture of supervised probabilistic PCA: groups of rows with axes and outputs of their own.

    The generative model of a row x with outputs y, of component k with factors z, is

        k ~ weights,   z ~ N(0, I_d),
        x | z, k ~ N(loadings_k z + mean_k, noise_variance_k I),
        y | z, k ~ N(output_loadings_k z + output_mean_k, output_noise_variance)

    so that y is a piecewise linear function of x. Outputs are as in :class:`SupervisedPPCA`; rows
    without them, and missing entries of X, are integrated out.

    Parameters
    ----------
    n_components : int, default=2
        Number of components K.
    n_factors : int, default=1
        Number of factors d of each.
    task : {'auto', 'classification', 'multilabel', 'regression', 'ordered', 'count'}, \
default='auto'
        What y is; as in :class:`SupervisedPPCA`.
    output_noise : {'shared', 'each'} or float, default='shared'
        One noise variance for all outputs or one for each, learned; or its value, which is kept
        (in standardised units if outputs are standardised). All components have the same.
    input_noise : float, default=None
        The noise variance of the columns, if it is not to be learned.
    output_weight : float, default=1.0
        How often each output counts; as in :class:`SupervisedPPCA`.
    coding : {'contrast', 'one-of-c'}, default='contrast'
        Classes as corners of a simplex in C - 1 dimensions, or as unit vectors in C.
    standardize : bool or 'auto', default='auto'
        Whether outputs are divided by their standard deviations; 'auto' for regression.
    tol : float, default=1e-4
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the log-likelihood per labelled row.
    noise_floor : float, default=1e-6
        Smallest noise variance, relative to the variance of the data. The noise is that of the
        columns; the variance of the data is the mean over them.
    max_iter : int, default=1000
        Largest number of iterations. Each start has this limit.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept.
    init_params : {'kmeans', 'subspaces', 'k-means++', 'random_from_data'}, default='kmeans'
        How rows are first shared among the components. The choices are those of
        :class:`MixtureOfPPCA`.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one. Its y must have the same classes or columns.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'quasi-newton', 'squarem'} or None, default='auto'
        Extrapolation between steps, kept only where the objective rises; None makes plain steps.
        The plain steps are those of parameter-expanded EM.
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
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray of shape (n_components, n_features)
    loadings_ : ndarray of shape (n_components, n_features, n_factors)
        Along the axes of what columns and outputs tell of the factors together, most first; the
        largest entry of each column is positive.
    noise_variance_ : ndarray of shape (n_components,)
    output_loadings_ : ndarray of shape (n_components, n_outputs, n_factors)
    output_mean_ : ndarray of shape (n_components, n_outputs)
    output_noise_variance_ : ndarray of shape (n_outputs,)
    classes_ : ndarray
        Of a classifier; of labels 0 and 1.
    n_outputs_ : int
        Columns of y; classes are one.
    latent_covariances_ : ndarray of shape (n_components, n_factors, n_factors)
        Of the factors given a complete row without outputs.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; the log-likelihood is that of rows and outputs.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Yu, Yu, Tresp, Kriegel, Wu. Supervised probabilistic principal component analysis.
       KDD 2006.
    .. [2] Tipping, Bishop. Mixtures of probabilistic principal component analyzers. Neural
       Computation 11, 1999.

    Examples
    --------
    A bent line, of which two components make two straight ones:

    >>> import numpy as np
    >>> from mixfold import SupervisedMixtureOfPPCA
    >>> rng = np.random.default_rng(0)
    >>> t = np.sort(rng.uniform(-2, 2, size=400))
    >>> X = np.column_stack([t, 0.5 * t, -t]) + 0.05 * rng.normal(size=(400, 3))
    >>> y = np.abs(t) + 0.05 * rng.normal(size=400)
    >>> y[::2] = np.nan  # half of the rows have no output
    >>> model = SupervisedMixtureOfPPCA(2, 1, random_state=0).fit(X, y)
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    >>> import matplotlib.pyplot as plt
    >>> points = plt.plot(t, y, ".", color="0.6", label="known outputs")
    >>> line = plt.plot(t, model.predict(X), label="predicted of all rows")
    >>> names, legend = (plt.xlabel("t"), plt.ylabel("y")), plt.legend()
    """

    _output_floor: ClassVar[float] = 1e-4
    _methods: ClassVar[tuple[str, ...]] = ("posterior", "hard", "least-squares")
    _constraints: ClassVar[rule.Constraints] = {
        **GaussianOutputEstimator._constraints,
        "n_factors": (rule.integer(0),),
        "init_params": (rule.one_of(FACTOR_STARTS),),
    }

    def __init__(
        self,
        n_components: int = 2,
        n_factors: int = 1,
        *,
        task: str = "auto",
        output_noise: Any = "shared",
        input_noise: float | None = None,
        output_weight: float = 1.0,
        coding: str = "contrast",
        standardize: Any = "auto",
        tol: float = 1e-4,
        noise_floor: float = 1e-6,
        max_iter: int = 1000,
        n_init: int = 1,
        init_params: str = "kmeans",
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        acceleration: str | None = "auto",
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_factors = n_factors
        self.task = task
        self.output_noise = output_noise
        self.input_noise = input_noise
        self.output_weight = output_weight
        self.coding = coding
        self.standardize = standardize
        self.tol = tol
        self.noise_floor = noise_floor
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.acceleration = acceleration
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; NaN or null marks a missing entry.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            Classes, labels or numbers. NaN and None are unknown, and so is -1 among classes and
            labels that are integers. For tables and files also the name of a column, which is
            then not a feature.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        with restore_on_error(self):  # what y is, is learned before X is opened
            self._fit_rows(find_target(X, y, sample_weight))
        return self

    def _fit_rows(
        self, given: GivenTarget, classes: Any = None, first_batch: bool = False
    ) -> Source:
        """Fit the rows and publish; for ``fit`` and the first batch of ``partial_fit``."""
        # y, wherever it is, as outputs (n, L) of the model: NaN where unknown
        outputs = self._learn_outputs(given, classes)

        # the rows beside their outputs, the model, and its steps
        source = given.open(self, outputs, min_rows=2)
        survey = survey_rows(self, source, self.n_components)
        self._holes = survey.has_missing
        self._check_sizes(survey.pilot.total_rows)
        max_iter = min(self.max_iter, FIRST_BATCH_STEPS) if first_batch else self.max_iter
        model: Any = self._joint_model()
        result = self._run(model, survey, max_iter, self._warm_start(model, survey))

        self._store_density_fit(result, survey)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        if not first_batch:  # a first batch need not converge: others follow
            self._warn_if_no_output_noise(model)
            warn_about_fit(result, self.max_iter)
        return source

    def _run(
        self,
        model: GaussianModel,
        survey: Survey,
        max_iter: int,
        warm: WarmStart,
        *,
        resumable: bool = True,
    ) -> Fit:
        start = FACTOR_STARTS[self.init_params](int(self.n_factors))
        plan = Plan(
            tol=self._tolerance,
            max_iter=max_iter,
            n_init=self.n_init,
            n_candidates=1 if self.n_components == 1 else start.n_candidates,
            acceleration=acceleration_named(self.acceleration),
            time_budget=self.time_budget,
            seed=survey.seed,
        )
        return run_fit(self, model, survey, plan, warm, resumable=resumable)

    def _check_sizes(self, n_rows: int) -> None:
        """Refuse more components or factors than the data allow."""
        check_enough_rows(n_rows, self.n_components)
        if self.n_factors > self.n_features_in_ or self.n_factors >= n_rows:
            raise ValueError(
                f"n_factors={self.n_factors} must be at most the number of columns, n_features = "
                f"{self.n_features_in_}, and less than the number of rows of positive weight, "
                f"n_samples = {n_rows}; lower n_factors"
            )

    def _joint_model(self) -> Any:
        d = int(self.n_factors)
        make = make_score_model if self._has_score else make_gaussian_model
        return make(self, self.n_components, d, FACTOR_STARTS[self.init_params](d))

    def _fits(self, model: Any) -> bool:
        shape = (self.n_components, self.n_features_in_, self.n_factors)
        outputs = (self.n_components, len(self._coding.means), self.n_factors)
        return bool(
            self._params.components.loadings.shape == shape
            and self._params.outputs.loadings.shape == outputs
        )

    def _publish_params(self) -> None:
        params = self._canonical_joint()
        components = params.components
        scale = components.frame.scale
        self.weights_ = in_dtype(params.weights, self._dtype)
        self.means_ = in_dtype(components.frame.leave(components.means), self._dtype)
        self.loadings_ = in_dtype(components.loadings * scale[:, None], self._dtype)
        self.noise_variance_ = in_dtype((components.noise * scale**2)[:, 0], self._dtype)
        parts = low_rank(components.loadings, components.noise)
        self.latent_covariances_ = in_dtype(parts.covariances, self._dtype)
        found = self._output_parameters(params.outputs)
        self.output_loadings_, self.output_mean_, output_noise = found
        self.output_noise_variance_ = output_noise[0]  # all components have the same
        self._publish_target()

    # ------------------------------------------------ components and factors

    def predict_component(self, X: Any) -> Array:
        """The most probable component of each row, from its columns."""
        return self._ask(X, predictions.labels)

    def predict_component_proba(self, X: Any) -> Array:
        """Probability of each component for each row, (n_samples, n_components)."""
        return self._ask(X, predictions.probabilities)

    def transform(self, X: Any, y: Any = None, per_component: bool = False) -> Array:
        """Expected factors of the rows.

        Parameters
        ----------
        X : as in ``fit``
        y : as in ``fit``, optional
            Known outputs of the rows, which then are looked at too.
        per_component : bool, default=False
            False: the average over the components, by their probabilities. True: for each
            component as if the row were its own.

        Returns
        -------
        ndarray of shape (n_samples, n_factors) or (n_samples, n_components, n_factors)
        """
        if per_component and _get_output_config("transform", self)["dense"] != "default":
            raise ValueError(
                "per_component=True gives an array of three dimensions, which no table can hold; "
                "call set_output(transform='default') first"
            )
        if y is None:
            answer = latents.per_component if per_component else latents.expected_latents
            return np.concatenate(self._infer_blocks(X, answer))
        model, reading = self._joint_reading()
        task = _Latents(model, reading, per_component)
        return np.concatenate(self._rows_with_outputs(X, task, y))

    def inverse_transform(self, Z: Any) -> Array:
        """Rows expected at given factors: the average over the components by their weights."""
        Z = self._latent_rows(Z)
        params = self._canonical()
        shares = np.broadcast_to(params.weights, (len(Z), len(params.weights)))
        return in_dtype(factor_use.decode(params, Z, shares), self._dtype)


class _Latents:
    """The factors of a block of rows with their outputs; picklable."""

    def __init__(
        self, model: SupervisedModel, reading: SupervisedReading, per_component: bool
    ) -> None:
        self.model, self.reading, self.per_component = model, reading, per_component

    def __call__(self, block: Block) -> Array:
        seen = joint_posterior.infer_with_outputs(self.model, self.reading, block)
        if self.per_component:
            return match_dtype(seen.latent.means, block)
        _, resp = normalise(seen.log_joint)
        return match_dtype((resp[..., None] * seen.latent.means).sum(axis=1), block)
