"""The generative topographic mapping."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from mixfold.contracts import Array, Block, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.density import DensityEstimator
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    check_enough_rows,
    publish_convergence,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.units import warn_about_units
from mixfold.families.latent_grid import LatentGrid, LatentGridGaussian
from mixfold.mixing.fixed import FixedWeights
from mixfold.models.mixtures.latent_grid import GridMixture, equal_shares
from mixfold.models.mixtures.mixture import Mixture, MixtureReading

# points of the latent grid: every one of them is a component
_MOST_POINTS = 10_000


class GTM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityEstimator):
    """Generative topographic mapping: rows on a curved surface, by maximum likelihood.

    The generative model of a row x, with K latent points z_k on a fixed grid over [-1, 1]^d, is

        k ~ uniform,   x | k ~ N(mapping' phi(z_k), noise_variance I)

    with phi(z) a constant and radial functions exp(-\\|z - c_m\\|^2 / (2 s^2)) about a coarser grid
    of centres c_m. Neighbours on the grid are neighbours on the surface, so that the latents are a
    map of the rows: a self-organising map with a likelihood, and what PCA is to a plane. The fit
    begins on the principal axes and is by EM, without random choices.

    NaN entries are missing (at random) and integrated out; rows may weigh; X may be an array, a
    sparse matrix, a pandas, polars or Arrow table, a ``.npy``, Parquet or CSV file (or a folder of
    them) larger than memory, or a Dask collection. The result depends on the units of the columns:
    scale them if they are not comparable.

    Parameters
    ----------
    n_components : int, default=2
        Latent dimension d, 1 to 3.
    n_points : int, default=15
        Latent points along each axis; there are n_points^n_components.
    n_basis : int, default=5
        Radial functions along each axis: the more, the more the surface can bend.
    width : float, default=1.0
        Standard deviation of a radial function, in distances between neighbouring centres: the
        wider, the smoother the surface.
    tol : float, default=1e-5
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the log-likelihood per row (per unit of
        weight).
    noise_floor : float, default=1e-6
        Smallest noise variance, relative to the variance of the data. The latter is the mean over
        the columns.
    max_iter : int, default=300
        Largest number of iterations.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers. It is that
        of the sample on whose principal axes the fit begins, and of draws.
    warm_start : bool, default=False
        Start the next fit from the last one.
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
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result.

    Attributes
    ----------
    n_components_ : int
    latent_points_ : ndarray of shape (n_points^n_components, n_components)
        The grid; the last axis runs fastest.
    means_ : ndarray of shape (n_points^n_components, n_features)
        The points of the surface over the grid.
    mapping_ : ndarray of shape (1 + n_basis^n_components, n_features)
        Coefficients of the constant and of the radial functions.
    noise_variance_ : float
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Bishop, Svensen, Williams. GTM: the generative topographic mapping. Neural Computation
       10, 1998.

    Examples
    --------
    A line that is bent in the plane, and the place of each row on it:

    >>> import numpy as np
    >>> from mixfold import GTM
    >>> t = np.linspace(-1, 1, 200)
    >>> X = np.column_stack([t, t**2]) + 0.02 * np.random.default_rng(0).normal(size=(200, 2))
    >>> model = GTM(1, n_points=40).fit(X)
    >>> Z = model.transform(X)
    >>> bool(abs(np.corrcoef(Z[:, 0], t)[0, 1]) > 0.99)
    True
    >>> round(float(np.sqrt(model.noise_variance_)), 2)
    0.02
    >>> model.impute([[0.8, np.nan]]).round(1)
    array([[0.8, 0.6]])
    >>> import matplotlib.pyplot as plt
    >>> points = plt.scatter(*X.T, c=Z[:, 0], s=12)
    >>> line = plt.plot(*model.inverse_transform(np.linspace(-1, 1, 100)[:, None]).T, color="k")
    """

    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.Rule("an int from 1 to 3", lambda v: _is_dimension(v)),),
        "n_points": (rule.integer(2),),
        "n_basis": (rule.integer(2),),
        "width": (rule.number(0, open_end=True),),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "n_components_", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_",
        "lower_bound_", "lower_bounds_", "events_", "_dtype", "_stream", "_schedule",
    )  # fmt: skip

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_points: int = 15,
        n_basis: int = 5,
        width: float = 1.0,
        tol: float = 1e-5,
        noise_floor: float = 1e-6,
        max_iter: int = 300,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_points = n_points
        self.n_basis = n_basis
        self.width = width
        self.tol = tol
        self.noise_floor = noise_floor
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the surface.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; NaN or null marks a missing entry.
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
        result = self._fit_rows(source)
        warn_about_fit(result, self.max_iter)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then the expected latents of the rows."""
        found: Array = self.fit(X, y, sample_weight).transform(X)
        return found

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch (stepwise EM); the first one makes the start.

        Parameters are as in ``fit``. Batches may have any size after the first; make it a typical
        one. After ``fit`` a new stream begins.
        """
        self._check_parameters()
        first = not hasattr(self, "_schedule")
        source = self._open(X, reset=first, weight=sample_weight)
        if first:
            self._fit_rows(source, first_batch=True)
        else:
            self._check_same_stream(self._model(self.n_features_in_), "n_components or n_points")
        self._learn_batch_by_em(self._model(self.n_features_in_), source, first)
        return self

    def _fit_rows(self, source: Source, first_batch: bool = False) -> Fit:
        """Fit by EM and publish; for ``fit`` and the first batch of ``partial_fit``."""
        if self.n_components > source.n_features:
            raise ValueError(
                f"n_components={self.n_components} must not exceed the number of columns, "
                f"n_features = {source.n_features}: a surface has no more directions than the "
                "space around it. Lower n_components"
            )
        survey = survey_rows(self, source)
        check_enough_rows(survey.pilot.total_rows, 2)
        if not first_batch:
            warn_about_units(self, survey.pilot, "GTM")
        self.n_components_ = int(self.n_components)
        model = self._model(source.n_features)
        plan = Plan(
            tol=self.tol,
            max_iter=min(self.max_iter, FIRST_BATCH_STEPS) if first_batch else self.max_iter,
            n_candidates=1,
            acceleration=None,
            time_budget=self.time_budget,
            seed=survey.seed,
        )
        result = run_fit(self, model, survey, plan, self._warm_start(model, survey))
        self._store_density_fit(result, survey)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        return result

    # ------------------------------------------------ the model

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_basis > self.n_points:
            raise ValueError(
                f"n_basis={self.n_basis} must not exceed n_points={self.n_points}: radial "
                "functions are told apart at the latent points only. Lower n_basis or raise "
                "n_points"
            )
        size = int(self.n_points) ** int(self.n_components)
        if size > _MOST_POINTS:
            raise ValueError(
                f"n_points={self.n_points} along each of n_components={self.n_components} axes "
                f"make {size} components, and the limit is {_MOST_POINTS}; lower n_points"
            )

    def _family(self) -> LatentGridGaussian:
        sizes = int(self.n_components), int(self.n_points), int(self.n_basis)
        floor = max(float(self.noise_floor), 1e-14)
        return LatentGridGaussian(floor, grid=LatentGrid(*sizes, float(self.width)))

    def _model(self, n_features: int) -> Mixture:
        size = int(self.n_points) ** int(self.n_components)
        weights = FixedWeights((1.0 / size,) * size)
        return GridMixture(size, self._family(), mixing=weights, start=equal_shares, reseed=False)

    def _fits(self, model: Mixture) -> bool:
        shape = (model.n_components, self.n_features_in_)
        return bool(self._params.components.means.shape == shape)

    def _publish_params(self) -> None:
        """Publish what the parameters say, in units of the data."""
        family, components = self._family(), self._params.components
        self.latent_points_ = in_dtype(family.grid.points, self._dtype)
        self.means_ = in_dtype(components.frame.leave(components.means), self._dtype)
        self.mapping_ = in_dtype(family.mapping(components), self._dtype)
        self.noise_variance_ = float(family.covariances(components))

    # ------------------------------------------------ latents

    def transform(self, X: Any) -> Array:
        """Expected latents of the rows: means of the grid by the probabilities of its points.

        Parameters
        ----------
        X : as in ``fit``

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self._ask(X, partial(_weigh, self._family().grid.points))

    def responsibilities(self, X: Any) -> Array:
        """Probability of each latent point given the row, (n_samples, n_points^n_components).

        A row between two sheets of a folded surface has two places on the map.
        """
        return self._ask(X, predictions.probabilities)

    def reconstruct(self, X: Any) -> Array:
        """The rows as the model sees them: complete, and without what it takes for noise.

        The expected point of the surface, (n_samples, n_features).
        """
        check_is_fitted(self)
        components = self._params.components
        return self._ask(X, partial(_weigh, components.frame.leave(components.means)))

    def inverse_transform(self, Z: Any) -> Array:
        """Points of the surface at given latents.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Any points of [-1, 1]^d; beyond it the surface bends back to the constant.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        Z = check_array(Z, dtype=[np.float64, np.float32], input_name="Z")
        if Z.shape[1] != self.n_components_:
            raise ValueError(
                f"Z must have one column per latent, {self.n_components_}; got {Z.shape[1]} "
                "columns. Give latents as transform returns them."
            )
        family = self._family()
        rows = family.grid.basis(np.asarray(Z, float)) @ family.mapping(self._params.components)
        return in_dtype(rows, self._dtype)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw new rows.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None goes on with the estimator's own stream: each call gives new draws, and the
            same sequence of calls after the same fit the same ones.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        rng = self._generator(n_samples, random_state)
        X, _ = self._model(self.n_features_in_).sample(self._params, n_samples, rng)
        return in_dtype(X, self._dtype)

    # ------------------------------------------------ scikit-learn and files

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_state(self) -> None:
        model = self._model(self.n_features_in_)
        good = self._fits(model) and self.n_components_ == self.n_components
        if not good or self._params.weights.shape != (model.n_components,):
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_params()


def _is_dimension(value: Any) -> bool:
    return rule.integer(1).holds(value) and int(value) <= 3


def _weigh(values: Array, model: Mixture, reading: MixtureReading, block: Block) -> Array:
    """Values of the latent points (K, m), averaged by their probabilities given each row."""
    shares = predictions.probabilities(model, reading, block)
    return predictions.match_dtype(np.asarray(shares, float) @ values, block)
