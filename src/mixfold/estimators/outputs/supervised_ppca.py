"""Supervised and semi-supervised probabilistic PCA."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import assert_all_finite, check_is_fitted

from mixfold.contracts import Array, Block, Event, Source
from mixfold.engine.kept_rows import KeptRows
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import seed_from
from mixfold.estimators.outputs.output_weight import choose_output_weight
from mixfold.estimators.outputs.supervised_gaussian import (
    GaussianOutputEstimator,
    make_gaussian_model,
    make_score_model,
)
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import latents
from mixfold.estimators.shell.base import restore_on_error
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    Survey,
    WarmStart,
    acceleration_named,
    forget_stream,
    publish_convergence,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.kernel_features import (
    FEATURE_RULES,
    KernelChoice,
    KernelFeatures,
    check_complete_array,
    keep_in_memory,
    refuse_to_save_function,
    view_rows,
)
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.targets import (
    GivenTarget,
    are_all_known,
    find_target,
)
from mixfold.math.low_rank import low_rank
from mixfold.models.factors import factor_use
from mixfold.models.factors.spectral_sums import MissingEntries
from mixfold.models.kernels.maps import FeatureMap
from mixfold.models.outputs import joint_posterior, profile
from mixfold.models.outputs.compressed_rows import WeightedRows, compress_rows
from mixfold.models.outputs.gaussian_starts import all_rows_axes
from mixfold.models.outputs.model import (
    GaussianModel,
    SupervisedModel,
    SupervisedParams,
    SupervisedReading,
)

# order of a matrix that may be decomposed a hundred times, unasked and if asked for
_QUICK, _LARGEST = 400, 2000


def _has_columns(estimator: Any) -> bool:
    """Whether the model speaks of the columns of X themselves; for ``available_if``."""
    if not estimator._has_feature_space:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} with kernel={estimator.kernel!r} lives in the feature space "
        "of the kernel, so rows cannot be reconstructed or imputed. Use kernel=None for that"
    )


class SupervisedPPCA(GaussianOutputEstimator):
    """Supervised probabilistic PCA; with rows whose outputs are unknown, semi-supervised.

    The generative model of a row x with outputs y and d factors z is

        z ~ N(0, I_d),   x | z ~ N(loadings z + mean, noise_variance I),
                         y | z ~ N(output_loadings z + output_mean, output_noise_variance)

    Rows without y are read by x alone. y may be classes, labels or numbers, each entry possibly
    unknown; X may be an array, a sparse matrix (never made dense), a table, a file larger than
    memory, with NaN where entries are missing.

    With many more columns than outputs, and both noises learned, the likelihood is one of the
    columns and the axes are nearly those of PCA. With few labels of classes set
    ``output_weight='auto'``; or set ``input_noise`` and ``output_noise`` (the smaller their ratio,
    the more the outputs matter).

    Parameters
    ----------
    n_components : int, default=2
        Number of factors d.
    kernel : {'linear', 'rbf', 'poly', 'cosine', 'laplacian', 'precomputed'}, callable or None, \
default=None
        None and 'linear': x is the row itself. Otherwise x is what the kernel makes of the row, a
        point of a space that is never entered; of it the model has the coordinates in the span of
        the rows that it was fitted to, whose products are those of the kernel (see Notes).
        'precomputed': X holds the products of all pairs of rows for ``fit``, afterwards those of
        rows with all rows of the fit. A callable takes two matrices of rows and gives the matrix
        of their products. Rows must be complete.
    gamma : float, 'scale' or None, default=None
        Coefficient of the kernels 'rbf', 'laplacian' and 'poly'; None is 1 / n_features, 'scale'
        divides that by the variance of all entries. This is as in scikit-learn.
    degree : int, default=3
        Of 'poly'.
    coef0 : float, default=1.0
        Of 'poly'.
    landmarks : int or None, default=None
        Rows, drawn at random, in whose span the features of all rows are looked at (Nystroem's
        method): needed for more than 4000 rows; without a kernel of no use. None: all of them,
        which leaves nothing out.
    task : {'auto', 'classification', 'multilabel', 'regression', 'ordered', 'count'}, \
default='auto'
        What y is. 'auto' decides as scikit-learn's ``type_of_target`` on the known entries: text,
        and whole numbers in one column, are classes; columns of 0 and 1 are labels; all else is
        regression. 'ordered': categories named by numbers, of which a score of the factors exceeds
        thresholds; 'count': whole numbers, the logarithm of whose mean is such a score; both in
        one column. scikit-learn takes the estimator for a classifier or a regressor if the task
        is named.
    output_noise : {'shared', 'each'} or float, default='shared'
        One noise variance for all outputs or one for each, learned; or its value, which is kept
        (in standardised units if outputs are standardised). Of counts: the excess by which their
        variance, mean + excess mean^2, is above that of Poisson's law.
    input_noise : float, default=None
        The noise variance of the columns, if it is not to be learned.
    output_weight : float or 'auto', default=1.0
        How much an output counts against a column. A number: p(y | z)^output_weight, more than 1
        stresses the outputs. Name ``output_noise`` then: if it is learned, and factors can explain
        the outputs wholly, there is no bound to the likelihood.
        'auto' is for classes of which few are known: p(x | z)^(1 / output_weight_) p(y | z), which
        is a noise of the columns above the one that would be learned. It is chosen, with the weight
        of rows without label, by the likelihood of labels that are held out, and probabilities of
        classes are scaled by what these say (see Notes). Needs complete rows and no
        ``input_noise``; labels (several columns) and numbers count once.
    coding : {'contrast', 'one-of-c'}, default='contrast'
        Classes as corners of a simplex in C - 1 dimensions, or as unit vectors in C; the latter
        sum to one, which factors can explain without noise: the likelihood then has no bound.
    standardize : bool or 'auto', default='auto'
        Whether outputs are divided by their standard deviations; 'auto' for regression.
    solver : {'auto', 'profile', 'em'}, default='auto'
        'profile': the maximum in closed form, up to one number that is searched for; needs every
        row complete with all its outputs, and one noise for them. 'em': steps from the principal
        axes of all rows. 'auto' takes the first where it can be had quickly.
    loadings_prior : float, 'ard' or None, default=None
        Normal prior of the loadings, whose estimates are then those of the highest posterior
        density (MAP). A number is its precision, for columns measured in their spreads. 'ard'
        (automatic relevance determination) has a precision for each factor, integrated out:
        factors that the rows do not need vanish. It is the prior of the loadings of columns and
        outputs together, so that an axis is one of both or none: ``n_components`` is then the
        largest number. A fit with a prior is one by EM.
    noise_prior : tuple (rows, variance) or None, default=None
        Gamma prior of the precision of the noise: as much as so many rows with noise of this
        variance would say, in units of the data. Of the columns.
    tol : float, default=1e-4
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the log-likelihood per labelled row.
    noise_floor : float, default=1e-12
        Smallest noise variance, relative to the variance of the data. The noise is that of the
        columns; the variance of the data is the mean over them.
    max_iter : int, default=1000
        Largest number of iterations. Each start has this limit.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept. The first begins with the principal
        axes, the others are drawn.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one. Its y must have the same classes or columns, and the
        fit is one by EM. With a kernel each fit begins anew: its coordinates are those of its own
        rows.
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
    n_components_ : int
        Factors in use: fewer than ``n_components`` where ``loadings_prior='ard'`` has made some
        vanish, whose loadings are zero. They are the last ones.
    mean_ : ndarray of shape (n_features,)
        With a kernel, here and below, of the coordinates, (n_coordinates,).
    loadings_ : ndarray of shape (n_features, n_components)
        Of the columns. The axes are those of what columns and outputs tell of the factors
        together, most first; the largest entry of each column is positive.
    components_ : ndarray of shape (n_components, n_features)
        ``loadings_`` transposed.
    noise_variance_ : float
    output_loadings_ : ndarray of shape (n_outputs, n_components)
        Of numbers and labels in their units; of classes as they are coded.
    output_mean_ : ndarray of shape (n_outputs,)
    output_noise_variance_ : ndarray of shape (n_outputs,)
        Of counts the excess, of ordered categories 1.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Of ordered categories: of the score, the first is 0.
    output_weight_ : float
        What ``output_weight`` is, or was chosen to be. With 'auto', ``noise_variance_`` is that
        many times the noise of PPCA of all rows; where it is 1 the noise is learned.
    unlabelled_weight_ : float
        How often a row of which no output is known counts: 1 unless 'auto' chose less.
    classes_ : ndarray
        Of a classifier; of labels 0 and 1.
    n_outputs_ : int
        Columns of y; classes are one.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Of the variance of the columns.
    latent_covariance_ : ndarray of shape (n_components, n_components)
        Of the factors given a complete row without outputs.
    solver_ : str
        'profile' or 'em'.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; the log-likelihood is that of rows and outputs.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With a kernel the coordinates of all rows are their scores of kernel PCA, at most n_samples - 1
    of them; with fewer landmarks than rows one for each landmark. Noise is in as many dimensions as
    there are coordinates: a space of features without bound has no noise of its own in each
    direction. ``score_samples`` and the likelihood are densities of the coordinates; what a new row
    has outside of their span does not count. A row without outputs is read by its coordinates
    alone, so that a few labelled rows among many work as they do without a kernel. There is no way
    back to rows: ``inverse_transform``, ``reconstruct``, ``impute`` and ``sample`` are not there.

    With ``output_weight='auto'`` labels are held out in up to five folds that have rows of each
    class; the columns of these rows stay. Tried are seven noises between that of PPCA and the
    variance of the first axis, then weights 0.1 and 0.01 of rows without label, as long as ten rows
    for each factor are left. The fits of the choice are made in the first 100 principal
    coordinates (or twice ``n_components``), with 5000 labelled rows at most, and need two passes or
    so over the data, however many are tried. Predictions of few labels are too sure of themselves:
    the two parts of the log-odds of a class, one linear in x and one constant, are multiplied by
    numbers that suit the held-out labels, and the best likelihood after that decides. The choice
    does not depend on ``random_state``. A warm start keeps the choice of the last fit.

    References
    ----------
    .. [1] Yu, Yu, Tresp, Kriegel, Wu. Supervised probabilistic principal component analysis.
       KDD 2006.
    .. [2] Liu, Rubin, Wu. Parameter expansion to accelerate EM: the PX-EM algorithm. Biometrika 85,
       1998.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import SupervisedPPCA
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(300, 2))
    >>> X = z @ rng.normal(size=(2, 8)) + 0.3 * rng.normal(size=(300, 8))
    >>> y = (z[:, 0] > 0).astype(int)
    >>> y[50:] = -1  # only 50 rows are labelled
    >>> model = SupervisedPPCA(2, random_state=0).fit(X, y)
    >>> model.predict(X[:4]).tolist(), model.predict_proba(X).shape, model.transform(X).shape
    ([1, 1, 0, 1], (300, 2), (300, 2))
    >>> from mixfold.plots import plot_discriminant
    >>> ax = plot_discriminant(model, X, y)

    Classes that no line parts, by a kernel:

    >>> X2 = rng.choice([-2.0, 2.0], size=(200, 2)) + 0.5 * rng.normal(size=(200, 2))
    >>> y2 = (X2.prod(axis=1) > 0).astype(int)
    >>> noises = {"input_noise": 1e-3, "output_noise": 1e-3}
    >>> model = SupervisedPPCA(3, kernel="rbf", gamma=0.5, **noises).fit(X2[:100], y2[:100])
    >>> float(model.score(X2[100:], y2[100:]))
    1.0

    Numbers, with how far off they may be:

    >>> y = z @ [1.0, -2.0] + 0.1 * rng.normal(size=300)
    >>> model = SupervisedPPCA(2).fit(X[:200], y[:200])
    >>> mean, std = model.predict(X[200:], return_std=True)
    >>> bool(np.mean(np.abs(mean - y[200:]) < 2 * std) > 0.9)
    True
    """

    _methods: ClassVar[tuple[str, ...]] = ("posterior", "least-squares")
    _constraints: ClassVar[rule.Constraints] = {
        **GaussianOutputEstimator._constraints,
        "output_weight": (rule.one_of(["auto"]), rule.number(0, open_end=True)),
        "solver": (rule.one_of(["auto", "profile", "em"]),),
        **FEATURE_RULES,
    }
    _stored: ClassVar[tuple[str, ...]] = (
        *GaussianOutputEstimator._stored,
        "solver_",
        "_feature_map",
        "_emphasis",
    )
    # the coordinates in which the rows are seen, with a kernel
    _feature_map: FeatureMap | None = None

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = None,
        gamma: Any = None,
        degree: int = 3,
        coef0: float = 1.0,
        landmarks: int | None = None,
        task: str = "auto",
        output_noise: Any = "shared",
        input_noise: float | None = None,
        output_weight: Any = 1.0,
        coding: str = "contrast",
        standardize: Any = "auto",
        solver: str = "auto",
        loadings_prior: Any = None,
        noise_prior: Any = None,
        tol: float = 1e-4,
        noise_floor: float = 1e-12,
        max_iter: int = 1000,
        n_init: int = 1,
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
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.landmarks = landmarks
        self.task = task
        self.output_noise = output_noise
        self.input_noise = input_noise
        self.output_weight = output_weight
        self.coding = coding
        self.standardize = standardize
        self.solver = solver
        self.loadings_prior = loadings_prior
        self.noise_prior = noise_prior
        self.tol = tol
        self.noise_floor = noise_floor
        self.max_iter = max_iter
        self.n_init = n_init
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.noise_prior is not None and self.input_noise is not None:
            raise ValueError(
                f"noise_prior={self.noise_prior!r} is of a noise that is learned, and "
                f"input_noise={self.input_noise!r} is kept; leave one of them out"
            )

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
        if self._has_feature_space:
            check_complete_array(X)
        with restore_on_error(self):  # what y is, is learned before X is opened
            self._fit_rows(find_target(X, y, sample_weight))
        return self

    def _fit_rows(
        self, given: GivenTarget, classes: Any = None, first_batch: bool = False
    ) -> Source:
        """Fit the rows and publish; for ``fit`` and the first batch of ``partial_fit``."""
        # y, wherever it is, as outputs (n, L) of the model: NaN where unknown
        outputs = self._learn_outputs(given, classes)
        all_known = are_all_known(outputs, given.read_weights())

        # the rows beside their outputs; with a kernel, as coordinates of its feature space
        source, self._feature_map = given.open(self, outputs, min_rows=2), None
        if self._has_feature_space:
            self.__dict__.pop("_params", None)  # those of the last fit are of other coordinates
            found = self._kernel_features().learn_map(source, self._executor(source))
            mapped = view_rows(source, found)
            source, self._feature_map = keep_in_memory(mapped, self._executor(mapped)), found

        # how much the labels count, if the rows are to say so
        start = self._settle_emphasis(source, outputs, given.read_weights())

        # the closed form, if it is asked for or quick and no row lacks entries; else steps of EM
        if self._has_score:
            if self.solver == "profile":
                raise ValueError(
                    f"solver='profile' is for Gaussian outputs, and task={self.task!r} has others; "
                    "use solver='em'"
                )
            self._fit_by_em(source, first_batch, start)
            return source
        model = self._joint_model()
        views = profile.Views(
            n_features=source.n_features,
            n_outputs=model.outputs.n_outputs,
            n_factors=int(self.n_components),
            weight=model.outputs.weight,
            input_noise=model.start.noise,
            output_noise=model.outputs.fixed_noise,
            input_floor=model.family.floor,
            output_floor=model.outputs.floor,
        )
        # (not of the first batch of a stream: its own maximum may have no noise, which is no start)
        closed = not first_batch and self._takes_closed_form(source, views, all_known)
        if not (closed and self._fit_in_closed_form(source, model, views)):
            self._fit_by_em(source, first_batch, start)
        return source

    def _settle_emphasis(
        self, source: Source, outputs: Array, weights: Array | None
    ) -> SupervisedParams | None:
        """Choose how much labels count, for output_weight='auto'; a warm start keeps the choice.

        Where it was chosen, there is a start for EM, too.
        """
        kept = self._emphasis if self.warm_start and hasattr(self, "_params") else None
        automatic = (
            self.output_weight == "auto"
            and not self._has_score
            and self._target.task == "classification"
        )
        if not automatic:
            self._emphasis = None
        elif kept is None:
            self.__dict__.pop("_params", None)  # those of a fit with another noise
            self._emphasis, start = choose_output_weight(self, source, outputs, weights)
            return start
        return None

    def _takes_closed_form(self, source: Source, views: profile.Views, all_known: bool) -> bool:
        """Whether the closed form is asked for, or can be had quickly."""
        if self.solver == "em":
            return False
        lacks = []
        if not all_known:
            lacks.append("every output of every row")
        if self.output_noise == "each":
            lacks.append("one noise for all outputs")
        if self.loadings_prior is not None or self.noise_prior is not None:
            lacks.append("no loadings_prior and no noise_prior")
        size = profile.order(source, views.n_outputs)
        if self.solver == "profile" and views.searched and size > _LARGEST:
            lacks.append(f"min(n_samples, n_features + n_outputs) up to {_LARGEST} ({size} here)")
        if self.solver == "profile" and lacks:
            raise ValueError(f"solver='profile' needs {' and '.join(lacks)}; use solver='em'")
        # outputs that count more than once, with a noise to learn: the highest maximum is no use
        spike = views.weight > 1 and isinstance(self.output_noise, str)
        quick = not spike and (size <= _QUICK or not views.searched)
        return not lacks and (quick or self.solver == "profile")

    def _fit_in_closed_form(
        self, source: Source, model: GaussianModel, views: profile.Views
    ) -> bool:
        """Solve and publish; False, and nothing is done, if rows lack entries."""
        if source.n_samples is not None:
            self._check_sizes(source.n_samples)
        seed = seed_from(self.random_state)
        rng = np.random.default_rng(seed % 2**63)
        try:
            solved = profile.solve(source, self._executor(source), views, rng)
        except MissingEntries:
            if self.solver == "profile":
                raise ValueError(
                    "solver='profile' needs complete rows, and X has missing entries; use "
                    "solver='auto' or 'em'"
                ) from None
            return False
        per_row = solved.objective
        if model.outputs.units is not None:
            per_row -= views.weight * float(np.log(model.outputs.units).sum())
        self._holes, self._climb, self._params = False, None, solved.params
        self._dtype, self._stream = source.dtype.name, (seed, 0)
        forget_stream(self)
        self._total = (per_row * solved.weight, solved.weight, 0.0)
        self.solver_ = "profile"
        self.events_: list[Event] = []
        self.lower_bound_, self.lower_bounds_ = per_row, [per_row]
        self.n_iter_, self.n_passes_ = 1, solved.passes
        self.converged_, self.stop_reason_ = True, "converged"
        self._publish_params()
        self._warn_if_no_output_noise(model)
        return True

    def _fit_by_em(self, source: Source, first_batch: bool, start: SupervisedParams | None) -> None:
        """Climb from a start or from the principal axes of all complete rows, and publish."""
        self.solver_ = "em"
        survey = survey_rows(self, source)
        self._holes = survey.has_missing
        self._check_sizes(survey.pilot.total_rows)
        max_iter = min(self.max_iter, FIRST_BATCH_STEPS) if first_batch else self.max_iter
        model: Any = self._joint_model()
        if start is not None:
            model = replace(model, start=replace(model.start, first=start))
        result = self._run(model, survey, max_iter, self._warm_start(model, survey))

        likelihood = result.objective + model.penalty(result.params)
        result = result if first_batch else self._settle(model, result)
        self._store_density_fit(result, survey)
        self._total = (likelihood, result.weight, result.entropy)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        if not first_batch:  # a first batch need not converge: others follow
            self._warn_if_no_output_noise(model)
            warn_about_fit(result, self.max_iter)

    def _run(
        self,
        model: GaussianModel,
        survey: Survey,
        max_iter: int,
        warm: WarmStart,
        *,
        resumable: bool = True,
    ) -> Fit:
        # where entries lack, a sample of the rows will have to do; a warm start has its parameters
        if model.start.first is None and not self._holes and warm.params is None:
            rng = np.random.default_rng(survey.seed % 2**63)
            axes, _ = all_rows_axes(survey.source, survey.executor, int(self.n_components), rng)
            model = replace(model, start=replace(model.start, axes=axes))
        plan = Plan(
            tol=self._tolerance,
            max_iter=max_iter,
            n_init=self.n_init,
            n_candidates=1,
            acceleration=acceleration_named(self.acceleration),
            time_budget=self.time_budget,
            seed=survey.seed,
        )
        return run_fit(self, model, survey, plan, warm, resumable=resumable)

    def _compress_rows(self, kept: KeptRows) -> KeptRows:
        few = compress_rows(WeightedRows(*kept.with_holes(), kept.weight))
        return kept.replace_rows(few.X, few.y, few.weight)

    def _why_no_stream(self) -> str:
        if self.output_weight == "auto":
            return (
                "output_weight='auto': it is chosen by labelled rows that are held out, for which "
                "all of them are needed. Fit a sample of the rows with 'auto', and give its "
                "noise_variance_ as input_noise to an estimator with output_weight=1.0"
            )
        if self._has_score:
            return super()._why_no_stream()
        if not self._has_feature_space:
            return ""
        return (
            f"kernel={self.kernel!r}: the coordinates of a kernel are those of the rows of one "
            "fit, so that batches have none in common. Use kernel=None, or KernelPCA.partial_fit "
            "and a classifier of its scores"
        )

    def _joint_model(self) -> Any:
        make = make_score_model if self._has_score else make_gaussian_model
        return make(self, 1, int(self.n_components))

    @property
    def _has_feature_space(self) -> bool:
        """Whether rows are replaced by coordinates; those of the linear kernel are the columns."""
        return self.kernel is not None and self.kernel != "linear"

    def _kernel_features(self) -> KernelFeatures:
        """What takes the place of the columns, where there is a kernel."""
        choice = KernelChoice(self.kernel, self.gamma, self.degree, self.coef0)
        resumable = self.checkpoint is not None
        return KernelFeatures(choice, self.landmarks, self.random_state, resumable)

    @property
    def _n_columns(self) -> int:
        return int(self.n_features_in_) if self._feature_map is None else self._feature_map.size

    def _check_sizes(self, n_rows: int) -> None:
        """Refuse more factors than rows or columns."""
        if self.n_components > min(n_rows, self._n_columns):
            what = "n_features" if self._feature_map is None else "n_coordinates"
            raise ValueError(
                f"n_components={self.n_components} must be at most min(n_samples, {what}), "
                f"with n_samples = {n_rows} rows of positive weight and {what} = "
                f"{self._n_columns}; lower n_components"
            )

    def _fits(self, model: Any) -> bool:
        shape = (1, self._n_columns, self.n_components)
        outputs = self._params.outputs.loadings.shape
        return bool(
            self._params.components.loadings.shape == shape
            and outputs == (1, len(self._coding.means), self.n_components)
        )

    def _publish_params(self) -> None:
        params = self._canonical_joint()
        components = params.components
        scale = components.frame.scale
        loadings = components.loadings[0] * scale[:, None]
        noise = float(components.noise[0, 0] * scale[0] ** 2)
        lengths = (loadings**2).sum(axis=0)
        total = lengths.sum() + noise * len(loadings)
        used = self._joint_model().used_factors(self._params)
        self.n_components_ = int(used.sum())
        self.mean_ = in_dtype(components.frame.leave(components.means[0]), self._dtype)
        self.loadings_ = in_dtype(loadings, self._dtype)
        self.components_ = np.ascontiguousarray(self.loadings_.T)
        self.noise_variance_ = noise
        chosen = self._emphasis
        self.output_weight_ = self._output_count if chosen is None else chosen.weight
        self.unlabelled_weight_ = 1.0 if chosen is None else chosen.unlabelled
        self.explained_variance_ratio_ = in_dtype(lengths / total, self._dtype)
        covariance = low_rank(components.loadings, components.noise).covariances[0]
        self.latent_covariance_ = in_dtype(covariance, self._dtype)
        output_loadings, output_mean, output_noise = self._output_parameters(params.outputs)
        self.output_loadings_ = output_loadings[0]
        self.output_mean_ = output_mean[0]
        self.output_noise_variance_ = output_noise[0]
        self._publish_target()

    # ------------------------------------------------ rows that are asked about

    def _rows(self, X: Any, task: Callable[[Block], Any], **sides: Any) -> Iterator[Any]:
        """``task`` on each block of X as the model sees it: with a kernel, as coordinates."""
        check_is_fitted(self)
        if self.kernel == "precomputed" and isinstance(X, np.ndarray):
            assert_all_finite(X, input_name="X")  # it cannot be filled, whatever its shape
        source = self._open(X, reset=False, **sides)
        if self._feature_map is not None:
            source = view_rows(source, self._feature_map)
        return self._executor(source).map_rows(task, source)

    def _log_tails(self, X: Any, by: str, n_draws: int, random_state: Any) -> Array:
        if by == "cell" and self._has_feature_space:
            raise ValueError(
                f"by='cell' needs a model of the columns of X, and kernel={self.kernel!r} replaces "
                "them by coordinates; use by='row', or kernel=None"
            )
        return super()._log_tails(X, by, n_draws, random_state)

    # ------------------------------------------------ latents

    def transform(self, X: Any, y: Any = None, return_cov: bool = False) -> Any:
        """Expected factors of the rows.

        Parameters
        ----------
        X : as in ``fit``
        y : as in ``fit``, optional
            Known outputs of the rows, which then are looked at too. Do not mix the two kinds of
            factors in one classifier: those of rows with their outputs are elsewhere.
        return_cov : bool, default=False
            Also give the posterior covariance of the factors.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        covariance : ndarray of shape (n_components, n_components), only with ``return_cov``
            The same for all rows where nothing is missing; otherwise one for each row:
            (n_samples, n_components, n_components).
        """
        if y is None:
            answer = latents.with_covariances if return_cov else latents.alone
            parts = self._infer_blocks(X, answer)
        else:
            model, reading = self._joint_reading()
            parts = self._rows_with_outputs(X, _Latents(model, reading), y)
            parts = parts if return_cov else [part[0] for part in parts]
        if not return_cov:
            return np.concatenate(parts)
        Z = np.concatenate([part[0] for part in parts])
        spreads = [part[1] for part in parts]
        if all(one.ndim == 2 for one in spreads) and all(
            (one == spreads[0]).all() for one in spreads
        ):
            return Z, spreads[0]
        each = [
            np.broadcast_to(one, (len(part[0]), *one.shape[-2:]))
            for one, part in zip(spreads, parts, strict=True)
        ]
        return Z, np.concatenate(each)

    @available_if(_has_columns)
    def inverse_transform(self, Z: Any) -> Array:
        """Rows at given factors, without noise: loadings_ z + mean_; not with a kernel.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        Z = self._latent_rows(Z)
        return in_dtype(factor_use.decode(self._canonical(), Z, np.ones((len(Z), 1))), self._dtype)

    @available_if(_has_columns)
    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw new rows with their outputs; not with a kernel.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None goes on with the estimator's own stream: each call gives new draws.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray
            Drawn given the rows, in the form in which y was given to ``fit``.
        """
        return super().sample(n_samples, random_state)

    @available_if(_has_columns)
    def impute(self, X: Any, method: str = "mean", random_state: Any = None) -> Array:
        """Fill the missing entries of X; not with a kernel, which needs complete rows.

        Parameters
        ----------
        X : as in ``predict``
        method : {'mean', 'draw'}, default='mean'
            Conditional expectation given the observed entries of the row, or one draw from the
            conditional distribution (several draws make multiple imputations).
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws, which do not depend on the number of threads.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        return super().impute(X, method, random_state)

    @available_if(_has_columns)
    def reconstruct(self, X: Any, method: str = "posterior") -> Array:
        """The rows as the model sees them: complete, and without noise; not with a kernel.

        Parameters
        ----------
        X : as in ``fit``
            NaN entries are filled like the others.
        method : str, default='posterior'
            'posterior': the expected row given its latents. 'least-squares': the nearest point of
            the plane of the component.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        return super().reconstruct(X, method)

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._has_feature_space:
            tags.input_tags.allow_nan = False
            tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that holds data only, never code.

        Load it with ``mixfold.load(path)``. The file appears whole or not at all. A kernel that is
        a function of your own cannot be written.
        """
        refuse_to_save_function(self, "kernel")
        super().save(path)

    def _check_state(self) -> None:
        if self._has_feature_space:
            self._kernel_features().check_stored(self._feature_map, self.n_features_in_)
        elif self._feature_map is not None:
            raise ValueError("there is a map of a kernel, but no kernel")
        super()._check_state()


class _Latents:
    """The factors of a block of rows with their outputs; picklable."""

    def __init__(self, model: SupervisedModel, reading: SupervisedReading) -> None:
        self.model, self.reading = model, reading

    def __call__(self, block: Block) -> tuple[Array, Array]:
        latent = joint_posterior.infer_with_outputs(self.model, self.reading, block).latent
        spread = latent.covariances[:, 0]
        return match_dtype(latent.means[:, 0], block), spread[0] if len(spread) == 1 else spread
