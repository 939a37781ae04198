"""Supervised and semi-supervised probabilistic PCA."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from mixfold.contracts import Array, Block, Event, Executor, Source
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.executors.features import FeatureExecutor
from mixfold.engine.loop import Plan
from mixfold.engine.random import seed_from
from mixfold.estimators.outputs.kernel_features import (
    FEATURE_RULES,
    KernelFeatures,
    check_complete,
    check_stored_map,
    has_columns,
    is_precomputed,
    keep_in_memory,
    map_rows,
    uses_kernel,
)
from mixfold.estimators.outputs.supervised import weights_or_ones
from mixfold.estimators.outputs.supervised_gaussian import GaussianOutputEstimator
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import latents
from mixfold.estimators.shell.predictions import shaped
from mixfold.math.low_rank import low_rank
from mixfold.models.factors import factor_use
from mixfold.models.factors.spectral_sums import MissingEntries
from mixfold.models.kernels.maps import FeatureMap
from mixfold.models.outputs import profile, use
from mixfold.models.outputs.gaussian_starts import GaussianStart, all_rows_axes
from mixfold.models.outputs.model import SupervisedModel, SupervisedReading

# order of a matrix that may be decomposed a hundred times, unasked and if asked for
_QUICK, _LARGEST = 400, 2000


class SupervisedPPCA(GaussianOutputEstimator):
    """Supervised probabilistic PCA; with rows whose outputs are unknown, semi-supervised.

    The generative model of a row x with outputs y and d factors z is

        z ~ N(0, I_d),   x | z ~ N(loadings z + mean, noise_variance I),
                         y | z ~ N(output_loadings z + output_mean, output_noise_variance)

    Rows without y are read by x alone. y may be classes, labels or numbers, each entry possibly
    unknown; X may be an array, a sparse matrix (never made dense), a table, a file larger than
    memory, with NaN where entries are missing.

    With many more columns than outputs, and both noises learned, the likelihood is one of the
    columns and the axes are nearly those of PCA: set ``input_noise`` and ``output_noise`` (the
    smaller their ratio, the more the outputs matter), or raise ``output_weight``.

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
        Of 'rbf', 'poly' and 'laplacian', as in scikit-learn: None is 1 / n_features; 'scale' is
        divided by the variance of all entries, too.
    degree : int, default=3
        Of 'poly'.
    coef0 : float, default=1.0
        Of 'poly'.
    landmarks : int or None, default=None
        Rows, drawn at random, in whose span the features of all rows are looked at (Nystroem's
        method): needed for more than 4000 rows; without a kernel of no use. None: all of them,
        which leaves nothing out.
    task : {'auto', 'classification', 'multilabel', 'regression'}, default='auto'
        What y is. 'auto' decides as scikit-learn's ``type_of_target`` on the known entries: text,
        and whole numbers in one column, are classes; columns of 0 and 1 are labels; all else is
        regression. scikit-learn takes the estimator for a classifier or a regressor if the task is
        named.
    output_noise : {'shared', 'each'} or float, default='shared'
        One noise variance for all outputs or one for each, learned; or its value, which is kept
        (in standardised units if outputs are standardised).
    input_noise : float, default=None
        The noise variance of the columns, if it is not to be learned.
    output_weight : float, default=1.0
        How often each output counts, p(y | z)^output_weight: more than 1 stresses the outputs. Name
        ``output_noise`` then: if it is learned, and factors can explain the outputs wholly, there
        is no bound to the likelihood.
    coding : {'contrast', 'one-of-c'}, default='contrast'
        Classes as corners of a simplex in C - 1 dimensions, or as unit vectors in C; the latter
        sum to one, which factors can explain without noise: the likelihood then has no bound.
    standardize : bool or 'auto', default='auto'
        Whether outputs are divided by their standard deviations; 'auto' for regression.
    solver : {'auto', 'profile', 'em'}, default='auto'
        'profile': the maximum in closed form, up to one number that is searched for; needs every
        row complete with all its outputs, and one noise for them. 'em': steps from the principal
        axes of all rows. 'auto' takes the first where it can be had quickly.
    tol : float, default=1e-4
        The fit ends when the gain of all steps to come is projected to be less, in log-likelihood
        per labelled row.
    noise_floor : float, default=1e-12
        Smallest noise variance of the columns, relative to their mean variance.
    max_iter : int, default=1000
        Iterations.
    n_init : int, default=1
        Starts: the first from the principal axes, the others drawn; the best is kept.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 reports progress, 2 every iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'squarem'} or None, default='auto'
        How EM is sped up; None is plain (parameter-expanded) EM. The likelihood never falls.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File in which the fit is kept and from which it goes on if interrupted.

    Attributes
    ----------
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
        "solver": (rule.one_of(["auto", "profile", "em"]),),
        **FEATURE_RULES,
    }
    _stored: ClassVar[tuple[str, ...]] = (
        *GaussianOutputEstimator._stored,
        "solver_",
        "_feature_map",
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
        output_weight: float = 1.0,
        coding: str = "contrast",
        standardize: Any = "auto",
        solver: str = "auto",
        tol: float = 1e-4,
        noise_floor: float = 1e-12,
        max_iter: int = 1000,
        n_init: int = 1,
        random_state: Any = None,
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
        self.tol = tol
        self.noise_floor = noise_floor
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
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
        target, weights, columns = self._find_target(X, y, sample_weight)
        outputs = self._learn_outputs(target, weights)
        source = self._open_with_outputs(X, outputs, columns, sample_weight)
        self._feature_map = None
        if uses_kernel(self.kernel):
            found = self._kernel_features().learn_map(source, self._executor(source))
            mapped = map_rows(source, found)
            source = keep_in_memory(mapped, self._executor(mapped))
            self._feature_map = found
        closed = self._takes_closed_form(source, _are_all_known(outputs, weights))
        if not (closed and self._fit_in_closed_form(source)):
            self._fit_by_em(source)
        return self

    def _fit_by_em(self, source: Source) -> None:
        """Climb from the principal axes of all rows, where they are complete, and publish."""
        self.solver_ = "em"
        executor, seed, pilot = self._survey(source)
        model: Any = self._joint_model()
        if not self._holes:  # else a sample of the rows will have to do
            rng = np.random.default_rng(seed % 2**63)
            axes, _ = all_rows_axes(source, executor, self._n_factors, rng)
            model = replace(model, start=replace(model.start, axes=axes))
        result = self._climbed(model, source, executor, pilot, self._plan(seed))
        self._keep(result, source, seed, quiet=True)
        self._warn_if_no_output_noise()
        self._tell(result)

    def _takes_closed_form(self, source: Source, all_known: bool) -> bool:
        """Whether the closed form is asked for, or can be had quickly."""
        if self.solver == "em":
            return False
        lacks = []
        if not all_known:
            lacks.append("every output of every row")
        if self.output_noise == "each":
            lacks.append("one noise for all outputs")
        size = profile.order(source, len(self._coding.means))
        searched = self._closed_form_views(source).searched
        if self.solver == "profile" and searched and size > _LARGEST:
            lacks.append(f"min(n_samples, n_features + n_outputs) up to {_LARGEST} ({size} here)")
        if self.solver == "profile" and lacks:
            raise ValueError(f"solver='profile' needs {' and '.join(lacks)}; use solver='em'")
        # outputs that count more than once, with a noise to learn: the highest maximum is no use
        spike = self.output_weight > 1 and isinstance(self.output_noise, str)
        quick = not spike and (size <= _QUICK or not searched)
        return not lacks and (quick or self.solver == "profile")

    def _closed_form_views(self, source: Source) -> profile.Views:
        """Columns and outputs, as the closed form takes them."""
        outputs = self._output_view()
        return profile.Views(
            source.n_features,
            outputs.n_outputs,
            self._n_factors,
            outputs.weight,
            self._given_input_noise,
            outputs.fixed_noise,
            max(float(self.noise_floor), 1e-14),
            outputs.floor,
        )

    def _fit_in_closed_form(self, source: Source) -> bool:
        """Solve and publish; False, and nothing is done, if rows lack entries."""
        if source.n_samples is not None:
            self._check_rows(source.n_samples)
        seed = seed_from(self.random_state)
        views, rng = self._closed_form_views(source), np.random.default_rng(seed % 2**63)
        try:
            solved = profile.solve(source, self._executor(source), views, rng)
        except MissingEntries:
            if self.solver == "profile":
                raise ValueError(
                    "solver='profile' needs complete rows, and X has missing entries; use "
                    "solver='auto' or 'em'"
                ) from None
            return False
        units = self._output_view().units
        per_row = solved.objective
        if units is not None:
            per_row -= views.weight * float(np.log(units).sum())
        self._holes, self._climb, self._params = False, None, solved.params
        self._dtype, self._stream = source.dtype.name, (seed, 0)
        self._total = (per_row * solved.weight, solved.weight, 0.0)
        self.solver_ = "profile"
        self.events_: list[Event] = []
        self.lower_bound_, self.lower_bounds_ = per_row, [per_row]
        self.n_iter_, self.n_passes_ = 1, solved.passes
        self.converged_, self.stop_reason_ = True, "converged"
        self._publish_params()
        self._warn_if_no_output_noise()
        return True

    def _kernel_features(self) -> KernelFeatures:
        return KernelFeatures(
            self.kernel,
            self.gamma,
            self.degree,
            self.coef0,
            self.landmarks,
            self.random_state,
            resumable=self.checkpoint is not None,
        )

    @property
    def _size(self) -> int:
        return 1  # component

    @property
    def _n_factors(self) -> int:
        return int(self.n_components)

    @property
    def _n_columns(self) -> int:
        return super()._n_columns if self._feature_map is None else self._feature_map.size

    def _start(self) -> GaussianStart:
        return GaussianStart(self._coding.means, self._coding.variances, self._given_input_noise)

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        return Plan(
            tol=self._tolerance,
            max_iter=self.max_iter if max_iter is None else max_iter,
            n_init=self.n_init,
            n_candidates=1,
            acceleration=None if self.acceleration is None else ACCELERATIONS["squarem"],
            time_budget=self.time_budget,
            seed=seed,
        )

    def _check_rows(self, n_rows: int) -> None:
        if self.n_components > min(n_rows, self._n_columns):
            what = "n_coordinates" if uses_kernel(self.kernel) else "n_features"
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
        components = self._canonical().components
        scale = components.frame.scale
        loadings = components.loadings[0] * scale[:, None]
        noise = float(components.noise[0, 0] * scale[0] ** 2)
        lengths = (loadings**2).sum(axis=0)
        total = lengths.sum() + noise * len(loadings)
        self.mean_ = components.frame.leave(components.means[0]).astype(self._dtype)
        self.loadings_ = loadings.astype(self._dtype)
        self.components_ = np.ascontiguousarray(self.loadings_.T)
        self.noise_variance_ = noise
        self.explained_variance_ratio_ = (lengths / total).astype(self._dtype)
        covariance = low_rank(components.loadings, components.noise).covariances[0]
        self.latent_covariance_ = covariance.astype(self._dtype)
        output_loadings, output_mean, output_noise = self._output_parameters()
        self.output_loadings_ = output_loadings[0]
        self.output_mean_ = output_mean[0]
        self.output_noise_variance_ = output_noise[0]
        self._publish_target()

    # ------------------------------------------------ rows that are asked about

    def _open(self, X: Any, *, reset: bool, **sides: Any) -> Source:
        """The rows of X; after a fit with a kernel, their coordinates."""
        if uses_kernel(self.kernel) and isinstance(X, np.ndarray) and X.dtype.kind == "f":
            check_complete(X)  # before anything else is wrong with it
        source = super()._open(X, reset=reset, **sides)
        if reset or self._feature_map is None:
            return source
        return map_rows(source, self._feature_map)

    def _executor(self, source: Source) -> Executor:
        executor = super()._executor(source)
        return FeatureExecutor(executor) if uses_kernel(self.kernel) else executor

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
            parts = self._inferred(X, answer)
        else:
            model, reading = self._joint_reading()
            parts = self._map_rows_with_outputs(X, _Latents(model, reading), y)
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

    @available_if(has_columns)
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
        return factor_use.decode(self._canonical(), Z, np.ones((len(Z), 1))).astype(self._dtype)

    @available_if(has_columns)
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

    @available_if(has_columns)
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

    @available_if(has_columns)
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
        if uses_kernel(self.kernel):
            tags.input_tags.allow_nan = False
            tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that holds data only, never code.

        Load it with ``mixfold.load(path)``. The file appears whole or not at all. A kernel that is
        a function of your own cannot be written.
        """
        if callable(self.kernel):
            raise ValueError(
                f"kernel={self.kernel!r} is a function, and a model file holds no code: it cannot "
                "be saved. Use a kernel that has a name, or kernel='precomputed'"
            )
        super().save(path)

    def _check_state(self) -> None:
        check_stored_map(self._feature_map, self.kernel, self.n_features_in_)
        super()._check_state()


def _are_all_known(outputs: Array, weights: Array | None) -> bool:
    """Whether no row of positive weight lacks an output."""
    return not np.isnan(outputs[weights_or_ones(weights, len(outputs)) > 0]).any()


class _Latents:
    """The factors of a block of rows with their outputs; picklable."""

    def __init__(self, model: SupervisedModel, reading: SupervisedReading) -> None:
        self.model, self.reading = model, reading

    def __call__(self, block: Block) -> tuple[Array, Array]:
        latent = use.with_outputs(self.model, self.reading, block).latent
        spread = latent.covariances[:, 0]
        return shaped(latent.means[:, 0], block), spread[0] if len(spread) == 1 else spread
