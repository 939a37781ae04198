"""Supervised and semi-supervised probabilistic PCA."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Block, Event, Executor, Pilot, Source
from mixfold.engine.random import seed_from
from mixfold.estimators import constraints as rule
from mixfold.estimators import latents
from mixfold.estimators.answers import shaped
from mixfold.estimators.supervised_gaussian import GaussianOutputEstimator
from mixfold.math.low_rank import low_rank
from mixfold.models import factor_use
from mixfold.models.spectral_sums import MissingEntries
from mixfold.models.supervised import profile, use
from mixfold.models.supervised.gaussian_starts import all_rows_axes
from mixfold.models.supervised.model import SupervisedModel, SupervisedReading

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
        Steps.
    n_init : int, default=1
        Starts: the first from the principal axes, the others drawn; the best is kept.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads.
    verbose : int, default=0
        1 reports progress, 2 every step.
    verbose_interval : int, default=10
        Steps between two reports.
    acceleration : {'auto', 'squarem'} or None, default='auto'
        How EM is sped up; None is plain (parameter-expanded) EM. The likelihood never falls.
    executor : 'threads', 'dask', or an executor, default='threads'
        Where the rows are visited.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best so far is returned.
    checkpoint : path, default=None
        File in which the fit is kept and from which it goes on if interrupted.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
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
    }
    _stored: ClassVar[tuple[str, ...]] = (*GaussianOutputEstimator._stored, "solver_")

    def __init__(
        self,
        n_components: int = 2,
        *,
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

    @property
    def _n_mixed(self) -> int:
        return 1

    @property
    def _n_factors(self) -> int:
        return int(self.n_components)

    def _check_rows(self, n_rows: int) -> None:
        if self.n_components > min(n_rows, self.n_features_in_):
            raise ValueError(
                f"n_components={self.n_components} must be at most min(n_samples, n_features), "
                f"with n_samples = {n_rows} rows of positive weight and n_features = "
                f"{self.n_features_in_}; lower n_components"
            )

    def _fits(self, model: Any) -> bool:
        shape = (1, self.n_features_in_, self.n_components)
        outputs = self._params.outputs.loadings.shape
        return bool(
            self._params.components.loadings.shape == shape
            and outputs == (1, len(self._coding.means), self.n_components)
        )

    # ------------------------------------------------ fitting

    def _learned_outputs(self, y: Any, weight: Array | None) -> Array:
        outputs = super()._learned_outputs(y, weight)
        weighs = np.ones(len(outputs), bool)
        if weight is not None and len(weight) == len(outputs):
            weighs = weight > 0
        self._whole = not np.isnan(outputs[weighs]).any()
        return outputs

    def _fit(self, source: Source, max_iter: int | None = None) -> Any:
        if self._closed(source):
            try:
                return self._fit_closed(source)
            except MissingEntries:
                if self.solver == "profile":
                    raise ValueError(
                        "solver='profile' needs complete rows, and X has missing entries; use "
                        "solver='auto' or 'em'"
                    ) from None
        self.solver_ = "em"
        return super()._fit(source, max_iter)

    def _closed(self, source: Source) -> bool:
        """Whether the closed form is asked for, or can be had quickly."""
        if self.solver == "em":
            return False
        lacks = []
        if not self._whole:
            lacks.append("every output of every row")
        if self.output_noise == "each":
            lacks.append("one noise for all outputs")
        size = profile.order(source, len(self._coding.means))
        searched = self._views(source).searched
        if self.solver == "profile" and searched and size > _LARGEST:
            lacks.append(f"min(n_samples, n_features + n_outputs) up to {_LARGEST} ({size} here)")
        if self.solver == "profile" and lacks:
            raise ValueError(f"solver='profile' needs {' and '.join(lacks)}; use solver='em'")
        # outputs that count more than once, with a noise to learn: the highest maximum is no use
        spike = self.output_weight > 1 and isinstance(self.output_noise, str)
        quick = not spike and (size <= _QUICK or not searched)
        return not lacks and (quick or self.solver == "profile")

    def _views(self, source: Source) -> profile.Views:
        outputs = self._output_view()
        return profile.Views(
            source.n_features,
            outputs.n_outputs,
            self._n_factors,
            outputs.weight,
            None if self.input_noise is None else float(self.input_noise),
            outputs.fixed_noise,
            max(float(self.noise_floor), 1e-14),
            outputs.floor,
        )

    def _fit_closed(self, source: Source) -> None:
        if source.n_samples is not None:
            self._check_rows(source.n_samples)
        seed = seed_from(self.random_state)
        views, rng = self._views(source), np.random.default_rng(seed % 2**63)
        solved = profile.solve(source, self._executor(source), views, rng)
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
        self._tell_noise()

    def _informed(
        self, model: SupervisedModel, source: Source, executor: Executor, pilot: Pilot, seed: int
    ) -> SupervisedModel:
        """The start at the principal axes of all rows, where they are complete."""
        if self._holes:  # a sample of the rows will have to do
            return model
        rng = np.random.default_rng(seed % 2**63)
        axes, _ = all_rows_axes(source, executor, self._n_factors, rng)
        return replace(model, start=replace(model.start, axes=axes))

    # ------------------------------------------------ results

    def _single(self, values: Array) -> Array:
        return values[0]

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
        self._publish_outputs()

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
            parts = self._with_rows(X, _Latents(model, reading), y)
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

    def inverse_transform(self, Z: Any) -> Array:
        """Rows at given factors, without noise: loadings_ z + mean_.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        Z = self._latent_rows(Z)
        return factor_use.decode(self._canonical(), Z, np.ones((len(Z), 1))).astype(self._dtype)


class _Latents:
    """The factors of a block of rows with their outputs; picklable."""

    def __init__(self, model: SupervisedModel, reading: SupervisedReading) -> None:
        self.model, self.reading = model, reading

    def __call__(self, block: Block) -> tuple[Array, Array]:
        latent = use.with_outputs(self.model, self.reading, block).latent
        spread = latent.covariances[:, 0]
        return shaped(latent.means[:, 0], block), spread[0] if len(spread) == 1 else spread
