"""GaussianMixture: a drop-in for scikit-learn's that takes real tables."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.mixtures.mixture import MixtureEstimator
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.fitting import FITTING_RULES
from mixfold.families import GAUSSIAN
from mixfold.families.gaussian import GaussianFamily
from mixfold.models.mixtures.given import Given
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
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
        The fit ends when the mean log-likelihood per row is projected to gain less than this in
        all the steps to come (not: in the last one).
    reg_covar : float, default=1e-6
        Smallest variance of a component in any direction, relative to the variance of the data.
        It is a bound, not an addition: a covariance above it is the maximum-likelihood one.
    max_iter : int, default=500
        Iterations per start.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept.
    init_params : {'kmeans', 'k-means++', 'random', 'random_from_data'}, default='kmeans'
        'kmeans' compares a dozen k-means starts (on scaled columns, on whitened data, on one
        column alone) after some steps on a sample of the rows; the others make one start each.
        Columns are scaled first, so that their units do not matter (for the spherical types,
        which compare columns with each other, they do).
    weights_init, means_init, precisions_init : array-like, default=None
        Parts of the start that are known.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one.
    verbose : int, default=0
        1 shows a status line in a terminal and some lines in a log, 2 every iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'quasi-newton', 'squarem'} or None, default='auto'
        Extrapolation between EM steps, kept only where the likelihood rises. 'auto' is
        'quasi-newton'; None is plain EM.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        A file to which a long fit writes its state now and then; the same call made again
        after a crash goes on from it and ends in the same parameters.

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
        Floored, re-seeded or dropped components.
    n_features_in_, feature_names_in_
        As in scikit-learn.

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
    """

    _constraints: ClassVar[rule.Constraints] = {
        **FITTING_RULES,
        "n_components": (rule.integer(1),),
        "covariance_type": (rule.one_of(GAUSSIAN),),
        "reg_covar": (rule.number(0),),
        "n_init": (rule.integer(1),),
        "init_params": (rule.one_of(STARTS),),
    }
    _shape_names: ClassVar[str] = "n_components or covariance_type"
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_", "lower_bound_",
        "lower_bounds_", "events_", "_dtype", "_stream", "_schedule",
    )  # fmt: skip

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-6,
        reg_covar: float = 1e-6,
        max_iter: int = 500,
        n_init: int = 1,
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

    def _model(self, n_features: int) -> Mixture:
        return Mixture(
            self.n_components,
            gaussian_family(self.covariance_type, self.reg_covar),
            start=STARTS[self.init_params],
            given=self._given_start(n_features),
        )

    def _given_start(self, n_features: int) -> Given:
        """``weights_init``, ``means_init`` and ``precisions_init``, checked."""
        K, kind = self.n_components, self.covariance_type
        weights, means, precisions = (
            None if value is None else np.asarray(value, dtype=float)
            for value in (self.weights_init, self.means_init, self.precisions_init)
        )
        if weights is not None:
            _check_weights(weights, K)
        if means is not None:
            check_array(means, (K, n_features), "means")
        covariances = None
        if precisions is not None:
            check_array(
                precisions, GAUSSIAN[kind].scatter_shape(K, n_features), f"{kind} precision"
            )
            covariances = _invert(precisions, kind)
        return Given(weights, means, covariances)

    def _publish_params(self) -> None:
        params: MixtureParams = self._params
        family = gaussian_family(self.covariance_type, self.reg_covar)
        published = gaussian_parameters(family, params, self._dtype)
        self.weights_, self.means_, self.covariances_ = published
        precisions, factors = family.precisions(params.components)
        self.precisions_ = precisions.astype(self._dtype)
        self.precisions_cholesky_ = factors.astype(self._dtype)

    def _fits(self, model: Mixture) -> bool:
        components = self._params.components
        shape = (self.n_components, self.n_features_in_)
        wanted = GAUSSIAN[self.covariance_type].scatter_shape(*shape)
        return components.means.shape == shape and components.scatter.shape == wanted

    def _without_start(self) -> Self:
        return self.set_params(weights_init=None, means_init=None, precisions_init=None)


def gaussian_family(covariance_type: str, reg_covar: float) -> GaussianFamily:
    """The family of the components of a Gaussian mixture without priors."""
    # a variance of exactly zero has no density; the least floor is far below any real one
    return GAUSSIAN[covariance_type](floor=max(float(reg_covar), 1e-14))


def gaussian_parameters(
    family: GaussianFamily, params: MixtureParams, dtype: str
) -> tuple[Array, Array, Array]:
    """Weights, means and covariances of the components in the units of the data."""
    components = params.components
    means = components.frame.leave(components.means)
    covariances = family.covariances(components)
    return params.weights.astype(dtype), means.astype(dtype), covariances.astype(dtype)


def check_array(value: Array, shape: tuple[int, ...], name: str) -> None:
    """Refuse an array of another shape, or one that is not finite."""
    if value.shape != shape:
        raise ValueError(
            f"The parameter '{name}' should have the shape of {shape}, but got {value.shape}"
        )
    if not np.isfinite(value).all():
        raise ValueError(f"The parameter '{name}' should be finite, but has NaN or infinity")


def _check_weights(weights: Array, n_components: int) -> None:
    check_array(weights, (n_components,), "weights")
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
