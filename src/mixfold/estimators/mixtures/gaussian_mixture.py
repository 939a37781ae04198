"""GaussianMixture: a drop-in for scikit-learn's that takes real tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import Array, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.estimators.mixtures.mixture import CANDIDATES, MixtureEstimator
from mixfold.estimators.mixtures.set_aside import set_aside_columns, tell_of_columns
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    acceleration_named,
    check_enough_rows,
    publish_convergence,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.units import warn_if_spherical
from mixfold.families import GAUSSIAN
from mixfold.families.gaussian import GaussianFamily
from mixfold.models.mixtures.given_start import GivenStart
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.models.mixtures.remaining_columns import MixtureOfRemainingColumns, restrict_given
from mixfold.models.mixtures.starts import STARTS


class GaussianMixture(MixtureEstimator):
    """Gaussian mixture by maximum likelihood.

    Each row comes from one of K Gaussians:

        z ~ weights,    x | z = k ~ N(means[k], covariances[k])

    Parameters and attributes are those of :class:`sklearn.mixture.GaussianMixture` and more.
    NaN entries are missing at random and handled exactly; rows may weigh; some may have a known
    component; X may be an array, a sparse matrix, a pandas, polars or Arrow table, a ``.npy``,
    Parquet or CSV file (or a folder of them) larger than memory, or a Dask collection.

    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    covariance_type : str, default='full'
        'full': each component has its own matrix; 'tied': one matrix for all; 'diag': each its
        own variances; 'spherical': each one variance; 'tied-diag': the same variances for all;
        'tied-spherical': one variance for all.
    tol : float, default=1e-6
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the mean log-likelihood per row.
        scikit-learn looks at the last step only.
    reg_covar : float or 'auto', default='auto'
        Smallest variance of a component in any direction, relative to the variance of the data.
        It is a bound, not an addition: a covariance above it is the maximum-likelihood one. Where a
        few rows are so far away that the variance is theirs alone, that of the others counts.
        'auto' is 1e-6, and in a column whose values are recorded in steps no less than s^2 / (2 pi)
        of the smallest step s between two distinct values: the density of a value is then at most
        1 / s, and rounded columns, and those of two values, have no spikes.
    max_iter : int, default=500
        Largest number of iterations. Each start has this limit.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept.
    merge_starts : bool, default=False
        With ``n_init`` above 1: make one more fit of the components of all starts, of which as many
        are kept as the mixture has, and keep it if it is better than the best of them.
    init_params : str, default='kmeans'
        How rows are first shared among the components. 'kmeans' makes two dozen k-means starts (on
        scaled columns, on whitened data, on one column or direction, on the distance from a row),
        which race on a sample of the rows, and tries the best one with components merged and split;
        the others make one start each: 'randconst' by Gaussians whose means are drawn about the
        mean of all rows, with its standard deviations, and whose variances are twice those of the
        rows. Columns are scaled first, so that their units do not
        matter (for the spherical types, which compare columns with each other, they do).
    weights_init, means_init, precisions_init : array-like, default=None
        Parts of the start that are known.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'quasi-newton', 'squarem'} or None, default='auto'
        Extrapolation between steps, kept only where the objective rises; None makes plain steps.
        'auto' is 'quasi-newton'.
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
    covariances_, precisions_, precisions_cholesky_ : ndarray
        Shapes by ``covariance_type``: (K, D, D), (D, D), (K, D), (K,), (D,), ().
    converged_ : bool
    stop_reason_ : {'converged', 'max_iter', 'time_budget', 'interrupted'}
    n_iter_ : int
        Steps of the best start; ``n_passes_`` counts passes over the data, rejected trials
        included.
    lower_bound_ : float
        Mean log-likelihood per unit of weight at the result; ``lower_bounds_`` after each step.
    events_ : list of Event
        Floored, re-seeded or dropped components, and columns that were set aside.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Columns that are constant, or exact affine functions of others (a copy, the same in other
    units, a sum), are set aside by ``fit``, which warns and lists them in ``events_``. Fit, score,
    BIC and the number of parameters are those of the table without them, while ``means_``,
    ``covariances_``, ``sample`` and ``impute`` have all columns. A row that breaks the rule of such
    a column by t standard deviations loses t^2 / (2 ``reg_covar``) of its log density.
    ``partial_fit`` sets nothing aside: later batches may vary where the first does not.

    References
    ----------
    .. [1] Dempster, Laird, Rubin. Maximum likelihood from incomplete data via the EM algorithm.
       JRSS B 39, 1977.
    .. [2] Jamshidian, Jennrich. Acceleration of the EM algorithm by using quasi-Newton methods.
       JRSS B 59, 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import GaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> X[100:] += 8  # a second cluster
    >>> X[::7, 1] = np.nan  # and missing entries
    >>> mixture = GaussianMixture(2, random_state=0).fit(X)
    >>> mixture.weights_.round(2)
    array([0.5, 0.5])
    >>> mixture.impute([[8, np.nan]]).round(0)
    array([[8., 8.]])
    >>> from mixfold.plots import plot_ellipses
    >>> ax = plot_ellipses(mixture, X)
    """

    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "covariance_type": (rule.one_of(GAUSSIAN),),
        "reg_covar": (rule.number(0), rule.one_of(["auto"])),
        "init_params": (rule.one_of(STARTS),),
    }  # fmt: skip
    _shape_names: ClassVar[str] = "n_components or covariance_type"
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_", "lower_bound_",
        "lower_bounds_", "events_", "_dtype", "_stream", "_schedule", "_dependent",
    )  # fmt: skip

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-6,
        reg_covar: float | str = "auto",
        max_iter: int = 500,
        n_init: int = 1,
        merge_starts: bool = False,
        init_params: str = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
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
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.merge_starts = merge_starts
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
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

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; NaN or null marks a missing entry.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.
        component_labels : array-like of shape (n_samples,) or str, optional
            The component of each row, 0 to n_components - 1, or -1 where it is unknown.

        Returns
        -------
        self
        """
        self._check_parameters()
        source = self._open_rows(X, sample_weight, component_labels)
        result = self._fit_rows(source)
        warn_about_fit(result, self.max_iter)
        return self

    def _fit_rows(self, source: Source, first_batch: bool = False) -> Fit:
        """Fit by EM and publish; for ``fit`` and the first batch of ``partial_fit``."""
        survey = survey_rows(self, source, self.n_components)
        check_enough_rows(survey.pilot.total_rows, self.n_components)
        set_aside_columns(self, survey, first_batch=first_batch)
        if not first_batch:
            warn_if_spherical(self, survey.pilot)
        model = self._model(source.n_features)
        several = self.init_params == "kmeans" and self.n_components > 1 and model.given.free
        plan = Plan(
            tol=self.tol,
            max_iter=min(self.max_iter, FIRST_BATCH_STEPS) if first_batch else self.max_iter,
            n_init=self.n_init,
            merge_starts=self.merge_starts,
            n_candidates=CANDIDATES if several else 1,
            acceleration=acceleration_named(self.acceleration),
            time_budget=self.time_budget,
            seed=survey.seed,
        )
        result = run_fit(self, model, survey, plan, self._warm_start(model, survey))

        result = tell_of_columns(self, result)
        self._store_density_fit(result, survey)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        return result

    def _model(self, n_features: int) -> Mixture:
        family = gaussian_family(self.covariance_type, self.reg_covar)
        start, given = STARTS[self.init_params], self._given_start(n_features)
        if self._dependent is None:
            return Mixture(self.n_components, family, start=start, given=given)
        return MixtureOfRemainingColumns(
            self.n_components,
            family,
            start=start,
            given=restrict_given(given, family, self._dependent),
            columns=self._dependent,
        )

    def _given_start(self, n_features: int) -> GivenStart:
        """``weights_init``, ``means_init`` and ``precisions_init``, checked."""
        K, kind = self.n_components, self.covariance_type
        weights, means, precisions = (
            None if value is None else rule.as_numbers(value, name)
            for name, value in (
                ("weights_init", self.weights_init),
                ("means_init", self.means_init),
                ("precisions_init", self.precisions_init),
            )
        )
        if weights is not None:
            _check_weights(weights, K)
        if means is not None:
            check_shape(means, (K, n_features), "means")
        covariances = None
        if precisions is not None:
            check_shape(
                precisions, GAUSSIAN[kind].scatter_shape(K, n_features), f"{kind} precision"
            )
            covariances = _invert(precisions, kind)
        return GivenStart(weights, means, covariances)

    def _publish_params(self) -> None:
        components = self._model(self.n_features_in_).point_components(self._params)
        params: MixtureParams = replace(self._params, components=components)
        family = gaussian_family(self.covariance_type, self.reg_covar)
        published = gaussian_parameters(family, params, self._dtype)
        self.weights_, self.means_, self.covariances_ = published
        precisions, factors = family.precisions(params.components)
        self.precisions_ = in_dtype(precisions, self._dtype)
        self.precisions_cholesky_ = in_dtype(factors, self._dtype)

    def _fits(self, model: Mixture) -> bool:
        components = self._params.components
        shape = (self.n_components, self._n_modelled)
        wanted = GAUSSIAN[self.covariance_type].scatter_shape(*shape)
        found: bool = components.means.shape == shape and components.scatter.shape == wanted
        return found

    def _without_start(self) -> Self:
        found: Self = self.set_params(weights_init=None, means_init=None, precisions_init=None)
        return found


def gaussian_family(covariance_type: str, reg_covar: float | str) -> GaussianFamily:
    """The family of the components of a Gaussian mixture without priors."""
    if reg_covar == "auto":
        return GAUSSIAN[covariance_type](floor=1e-6, rounded=True)
    # a variance of exactly zero has no density; the least floor is far below any real one
    return GAUSSIAN[covariance_type](floor=max(float(reg_covar), 1e-14))


def gaussian_parameters(
    family: GaussianFamily, params: MixtureParams, dtype: str
) -> tuple[Array, Array, Array]:
    """Weights, means and covariances of the components in the units of the data."""
    components = params.components
    means = components.frame.leave(components.means)
    covariances = family.covariances(components)
    weights = in_dtype(params.weights, dtype)
    return weights, in_dtype(means, dtype), in_dtype(covariances, dtype)


def check_shape(value: Array, shape: tuple[int, ...], name: str) -> None:
    """Refuse an array of another shape, or one that is not finite."""
    if value.shape != shape:
        raise ValueError(
            f"The parameter '{name}' should have the shape of {shape}, but got {value.shape}"
        )
    if not np.isfinite(value).all():
        raise ValueError(f"The parameter '{name}' should be finite, but has NaN or infinity")


def _check_weights(weights: Array, n_components: int) -> None:
    check_shape(weights, (n_components,), "weights")
    if weights.min() < 0 or weights.max() > 1:
        raise ValueError(
            "The parameter 'weights' should be in the range [0, 1], but got "
            f"min value {weights.min():.5f}, max value {weights.max():.5f}"
        )
    if not np.isclose(weights.sum(), 1.0, atol=1e-6):
        raise ValueError(
            "The parameter 'weights' should be normalized, but got "
            f"sum(weights) = {weights.sum():.5f}"
        )


def _invert(precisions: Array, kind: str) -> Array:
    """Covariances of given precisions, which must be positive definite."""
    name = f"{kind} precision"
    if not GAUSSIAN[kind].matrix:
        if (precisions <= 0).any():
            raise ValueError(f"'{name}' should be positive")
        return np.asarray(1.0 / precisions)
    stacked = precisions.reshape(-1, *precisions.shape[-2:])
    symmetric = np.allclose(stacked, np.swapaxes(stacked, 1, 2))
    if not symmetric or (np.linalg.eigvalsh(stacked) <= 0).any():
        raise ValueError(f"'{name}' should be symmetric, positive-definite")
    return np.linalg.inv(precisions)
