"""Factor analysis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.loop import Fit
from mixfold.estimators.factors.factor_model import FactorModel
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    Survey,
    WarmStart,
    warn_about_fit,
)
from mixfold.families.factor.noise import DiagonalNoise, Noise
from mixfold.math.rotations import Rotation, oblimin, promax, quartimax, varimax
from mixfold.models.factors.factor_use import SCALES
from mixfold.models.factors.spectral_sums import SecondMoments
from mixfold.models.mixtures.mixture import Mixture

ROTATIONS: dict[str, Callable[[Array], Rotation]] = {
    "varimax": varimax,
    "quartimax": quartimax,
    "promax": promax,
    "oblimin": oblimin,
}


class FactorAnalysis(FactorModel):
    """Factor analysis by maximum likelihood.

    The generative model of a row x with d factors z is

        z ~ N(0, I_d),   x | z ~ N(loadings z + mean, diag(noise_variance))

    Attributes and methods are those of :class:`sklearn.decomposition.FactorAnalysis` and more, and
    so are the parameters but for those of its singular value decomposition:
    NaN entries are missing (at random) and integrated out; rows may weigh; oblique rotations; X may
    be an array, a sparse matrix, a pandas, polars or Arrow table, a ``.npy``, Parquet or CSV file
    (or a folder of them) larger than memory, or a Dask collection. Complete data are read once:
    EM then runs on their moments. The units of the columns do not matter.

    Parameters
    ----------
    n_components : int, 'ard' or None, default=1
        Number of factors d; with 0 the columns are independent. None: as many as the covariance of
        the columns can identify (Ledermann's bound), and one at least. 'ard' learns the number in
        one fit, by variational Bayes: factors are left out where the bound of the evidence is
        higher without them.
    rotation : {'varimax', 'quartimax', 'promax', 'oblimin'} or None, default=None
        How the factors are turned to be read: the first two keep them uncorrelated. None: the
        canonical ones, ordered by how well the data show them. A rotation goes by the loadings of
        columns divided by their standard deviations (correlations with the factors, as long as
        those are not rotated obliquely), so that units do not matter. On such columns varimax and
        quartimax are those of scikit-learn, which in other units goes by loadings in these units.
        Rows of loadings are not given length one first (Kaiser's normalisation), as R's
        ``factanal`` does for varimax; promax does so in the varimax rotation that it begins with,
        as R does.
    loadings_prior : float, 'ard' or None, default=None
        Normal prior of the loadings, whose estimates are then those of the highest posterior
        density (MAP). A number is its precision, for columns measured in their spreads. 'ard'
        (automatic relevance determination) has a precision for each factor, integrated out:
        factors that the rows do not need vanish.
    noise_prior : tuple (rows, variance) or None, default=None
        Gamma prior of the precision of the noise: as much as so many rows with noise of this
        variance would say, in units of the data. It keeps a column from
        having none (a Heywood case).
    scale : {'latent', 'scores', 'white'}, default='latent'
        What ``transform`` gives. 'latent': posterior means of the latents, shrunk by the noise
        (Thomson's regression scores). 'scores': weighted least squares, without shrinkage
        (Bartlett's scores). 'white': scores of unit variance, uncorrelated unless the factors are.
    whiten : bool or None, default=None
        As of scikit-learn's PCA: True means scale='white', False scale='scores'. None: ``scale``.
    tol : float, default=1e-6
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the log-likelihood per row (per unit of
        weight). For complete data, whose steps are cheap, the limit is a hundredth of ``tol``.
    noise_floor : float, default=1e-6
        Smallest noise variance, relative to the variance of the data. The latter is taken of each
        column. A column at the floor is a Heywood case: the factors explain it wholly.
    max_iter : int, default=1000
        Largest number of iterations.
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
    mean_ : ndarray of shape (n_features,)
    loadings_ : ndarray of shape (n_features, n_components_)
        Rotated as asked; in the units of the columns.
    components_ : ndarray of shape (n_components_, n_features)
        ``loadings_`` transposed, as scikit-learn has it.
    noise_variance_ : ndarray of shape (n_features,)
    factor_correlations_ : ndarray of shape (n_components_, n_components_)
        The identity unless the rotation is oblique.
    heywood_ : ndarray of int
        Columns whose noise is at the floor.
    latent_covariance_ : ndarray of shape (n_components_, n_components_)
        Of the factors given a complete row.
    loglike_ : list of float
        Log-likelihood of the training rows after each iteration; empty with priors.
    evidence_bound_ : float
        With ``n_components='ard'``: a lower bound of the log evidence.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; with priors of the log posterior density per row, but for a
        constant, or of the bound.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Rubin, Thayer. EM algorithms for ML factor analysis. Psychometrika 47, 1982.
    .. [2] Liu, Rubin, Wu. Parameter expansion to accelerate EM: the PX-EM algorithm. Biometrika 85,
       1998.
    .. [3] Ghahramani, Beal. Variational inference for Bayesian mixtures of factor analysers. NIPS
       12, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import FactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.normal(size=(500, 2))
    >>> X = factors @ [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]] + 0.5 * rng.normal(size=(500, 6))
    >>> X[::5, 2] = np.nan
    >>> analysis = FactorAnalysis(2, rotation="varimax").fit(X)
    >>> np.abs(analysis.loadings_).round(0).astype(int).T
    array([[1, 1, 1, 0, 0, 0],
           [0, 0, 0, 1, 1, 1]])
    >>> analysis.noise_variance_.round(1)
    array([0.3, 0.3, 0.2, 0.2, 0.3, 0.3])
    >>> FactorAnalysis("ard").fit(X).n_components_
    2
    >>> from mixfold.plots import plot_loadings
    >>> ax = plot_loadings(analysis)
    """

    _methods: ClassVar[tuple[str, ...]] = ("posterior", "least-squares", "weighted")
    _inverse_methods: ClassVar[tuple[str, str]] = ("posterior", "weighted")
    _constraints: ClassVar[rule.Constraints] = {
        **FactorModel._constraints,
        "n_components": (rule.nothing(), rule.integer(0), rule.one_of(["ard"])),
        "rotation": (rule.nothing(), rule.one_of(ROTATIONS)),
        "scale": (rule.one_of(SCALES),),
        "whiten": (rule.nothing(), rule.boolean()),
    }

    def __init__(
        self,
        n_components: Any = 1,
        *,
        rotation: str | None = None,
        loadings_prior: Any = None,
        noise_prior: Any = None,
        scale: str = "latent",
        whiten: bool | None = None,
        tol: float = 1e-6,
        noise_floor: float = 1e-6,
        max_iter: int = 1000,
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
        self.rotation = rotation
        self.loadings_prior = loadings_prior
        self.noise_prior = noise_prior
        self.scale = scale
        self.whiten = whiten
        self.tol = tol
        self.noise_floor = noise_floor
        self.max_iter = max_iter
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
        self.__dict__.pop("_moments", None)  # of a stream
        if self._learns_size:
            self._look_at_evidence(self._look_at_sample(source))
        moments = self._find_moments(source)
        if moments is None:
            result = self._fit_rows(source)
        else:
            result = self._fit_moments(moments, int(moments.sums.rows), source.dtype.name)
        self._drop_unused_factors()
        self._warn_about_factors(result)
        return self

    def _fit_moments_so_far(self, moments: SecondMoments) -> None:
        """Fit to all complete rows of a stream; called by ``partial_fit``."""
        self._fit_moments(moments, self.n_features_in_ + 1, self._dtype)
        self._drop_unused_factors()

    def _continues_last_fit(self) -> bool:
        """Whether the next fit begins where the last one ended.

        In a stream not from a fit to few rows, which loses factors or noise: EM would not find
        them again.
        """
        earlier: SecondMoments | None = getattr(self, "_moments", None)
        many = earlier is not None and int(earlier.sums.rows) > self.n_features_in_
        return bool(self.warm_start or (many and not self.heywood_.size))

    def _warm_start(self, model: Mixture, survey: Survey) -> WarmStart:
        return self._warm_start_of_moments(model, survey)

    # ------------------------------------------------ what the base asks for

    def _noise(self) -> Noise:
        return DiagonalNoise()

    def _dimension(self, n_rows: int, n_features: int) -> int:
        """``n_components`` as a number; warns of more factors than can be identified."""
        bound = n_features + 0.5 - np.sqrt(8 * n_features + 1) / 2
        if self.n_components is None:
            return max(1, min(int(bound + 1e-9), n_rows - 1))
        wanted = self._check_dimension(int(self.n_components), n_rows, n_features)
        if wanted > bound + 1e-9:
            warn(
                f"n_components={wanted} factors of {n_features} columns are more than their "
                f"covariance can identify ({max(int(bound + 1e-9), 0)}): the loadings are one "
                "solution of many",
                UserWarning,
            )
        return wanted

    # ------------------------------------------------ results

    def _warn_about_factors(self, fit: Fit) -> None:
        """Warn of Heywood cases by the names of their columns, and of what ended the fit."""
        if self.heywood_.size:
            names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
            which = ", ".join(str(names[j]) for j in self.heywood_[:5])
            more = " and others" if self.heywood_.size > 5 else ""
            warn(
                f"Heywood case: the factors explain columns {which}{more} wholly, whose noise is "
                f"at the floor of {self.noise_floor:g} of their variance; see heywood_",
                DegenerateWarning,
            )
            fit = replace(fit, events=tuple(e for e in fit.events if e.kind != "floor"))
        warn_about_fit(fit, self.max_iter)

    def _rotate(self, loadings: Array, noise: Array) -> Rotation:
        """Turn the factors as ``rotation`` asks, by the loadings of columns of variance one."""
        if self.rotation is None or loadings.shape[1] < 2:
            identity = np.eye(loadings.shape[1])
            return Rotation(loadings, identity, identity)
        deviation = np.sqrt(np.square(loadings).sum(axis=1) + noise)[:, None]
        standard = np.divide(loadings, deviation, out=np.zeros_like(loadings), where=deviation > 0)
        found = ROTATIONS[self.rotation](standard)
        return replace(found, loadings=loadings @ found.matrix)

    def _publish_factors(self, loadings: Array, noise: Array, covariance: Array) -> None:
        """Publish the rotated factors and the noise; called by ``_publish_params``."""
        rotation = self._rotate(loadings, noise)
        self._inverse_turn = np.linalg.inv(rotation.matrix).T
        self.loadings_ = in_dtype(rotation.loadings, self._dtype)
        self.components_ = np.ascontiguousarray(self.loadings_.T)
        self.noise_variance_ = in_dtype(noise, self._dtype)
        self.factor_correlations_ = in_dtype(rotation.correlations, self._dtype)
        turned = self._inverse_turn.T @ covariance @ self._inverse_turn
        self.latent_covariance_ = in_dtype(turned, self._dtype)
        least = max(float(self.noise_floor), 1e-14)
        self.heywood_ = np.flatnonzero(self._params.components.noise[0] <= least * (1 + 1e-9))

    def _latent_turn(self) -> Array | None:
        return self._inverse_turn

    @property
    def loglike_(self) -> list[float]:
        """Log-likelihood of the training rows after each iteration."""
        # the rows of a stream are not kept, and with priors it is not what was traced
        if self._total is None or self._learns_size or self._has_prior:
            return []
        return [value * self._total[1] for value in self.lower_bounds_]
