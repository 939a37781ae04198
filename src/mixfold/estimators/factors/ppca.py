"""Probabilistic principal component analysis."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mixfold.contracts import Array, Event, Source
from mixfold.engine.random import seed_from
from mixfold.estimators.factors.factor_model import FactorModel
from mixfold.estimators.factors.learned_size import forget_posterior
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import forget_stream, warn_about_fit
from mixfold.estimators.shell.units import warn_about_units
from mixfold.families.factor.noise import IsotropicNoise, Noise
from mixfold.math.principal import orthonormal
from mixfold.math.spectrum import EveryAxis, Rule, dimension_rule
from mixfold.models.factors.factor_use import SCALES
from mixfold.models.factors.ppca import closed_form, log_likelihood_of
from mixfold.models.factors.spectral import SOLVERS, Spectrum, from_moments, principal_axes
from mixfold.models.factors.spectral_sums import MissingEntries, SecondMoments

_NO_NOISE = (
    "the axes leave no noise but the floor of {:g} relative to the mean variance of the columns: "
    "fewer n_components explain all of it, or columns of small units are drowned by others (scale "
    "them)"
)


class PPCA(FactorModel):
    """Probabilistic principal component analysis by maximum likelihood.

    The generative model of a row x with d latents z is

        z ~ N(0, I_d),   x | z ~ N(loadings z + mean, noise_variance I)

    Its maximum-likelihood axes are the principal axes, so this is PCA with a likelihood: rows may
    have missing entries, uncertainty is known, new rows can be drawn and odd ones found. Complete
    data are solved in closed form (covariance, Gram matrix or block Lanczos, by the shape of the
    table; sparse data are never made dense); with NaN entries EM is used, which integrates them
    out. Rows may weigh, and X may be an array, a sparse matrix, a pandas, polars or Arrow table,
    a ``.npy``, Parquet or CSV file (or a folder of them) larger than memory, or a Dask collection.

    Parameters
    ----------
    n_components : int, float, 'bic', 'mle', 'ard' or None, default=None
        Number of latents d. A float is a share of the variance to retain: the fewest axes that
        hold it. 'bic' takes the lowest Bayesian information criterion, 'mle' the highest evidence
        (Minka; complete data only). 'ard' learns the number in one fit, also where entries are
        missing: Bayesian PCA by variational Bayes, in which axes are left out where the bound of
        the evidence is higher without them. None keeps every axis that has variance but the last
        one.
    center : bool, default=True
        False: the mean is zero and the axes are those of the second moments.
    solver : {'auto', 'covariance', 'gram', 'randomized', 'em'}, default='auto'
        'auto': closed form by the cheapest solver, EM if entries are missing.
    loadings_prior : float, 'ard' or None, default=None
        Normal prior of the loadings, whose estimates are then those of the highest posterior
        density (MAP). A number is its precision, for columns measured in their spreads. 'ard'
        (automatic relevance determination) has a precision for each factor, integrated out:
        factors that the rows do not need vanish. Spreads are those of all
        columns together. A fit is then one by EM, with ``n_components`` a whole number or None.
    noise_prior : tuple (rows, variance) or None, default=None
        Gamma prior of the precision of the noise: as much as so many rows with noise of this
        variance would say, in units of the data.
    scale : {'latent', 'scores', 'white'}, default='latent'
        What ``transform`` gives. 'latent': posterior means of the latents, shrunk by the noise.
        'scores': those of PCA, coordinates along ``components_``. 'white': scores of unit variance
        (PCA's with ``whiten=True``, but for n_samples - 1 in its variances).
    whiten : bool or None, default=None
        As of scikit-learn's PCA: True means scale='white', False scale='scores'. None: ``scale``.
    tol : float, default=1e-6
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. Only EM, which iterates, has this rule. The gain is that of
        the log-likelihood per row (per unit of weight).
    noise_floor : float, default=1e-12
        Smallest noise variance, relative to the variance of the data. The latter is the mean over
        the columns.
    max_iter : int, default=500
        Largest number of iterations. Only EM iterates.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one. Only EM has a start.
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
        Seconds after which the best result so far is returned. The budget is for EM (of each fit,
        where the number of latents is searched for with missing entries).
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result. Only EM writes it.

    Attributes
    ----------
    n_components_ : int
    mean_ : ndarray of shape (n_features,)
    components_ : ndarray of shape (n_components_, n_features)
        Principal axes: orthonormal rows, the largest entry of each positive.
    loadings_ : ndarray of shape (n_features, n_components_)
        The axes times the root of their variance beyond the noise.
    noise_variance_ : float
    explained_variance_ : ndarray of shape (n_components_,)
        Variance along each axis (divided by the weight of the rows, as maximum likelihood does,
        not by n_samples - 1).
    explained_variance_ratio_ : ndarray of shape (n_components_,)
    latent_covariance_ : ndarray of shape (n_components_, n_components_)
        Of the latents given a complete row.
    solver_ : str
        The solver that was used; 'vb' with ``n_components='ard'``.
    evidence_bound_ : float
        With ``n_components='ard'``: a lower bound of the log evidence.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; with priors of the log posterior density per row, but for a
        constant, or of the bound.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Tipping, Bishop. Probabilistic principal component analysis. JRSS B 61, 1999.
    .. [2] Minka. Automatic choice of dimensionality for PCA. NIPS 13, 2000.
    .. [3] Bishop. Bayesian PCA. NIPS 11, 1999; Variational principal components. ICANN 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import PPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(200, 5))
    >>> PPCA("bic").fit(X).n_components_
    2
    >>> X[::3, 1] = np.nan
    >>> PPCA("ard").fit(X).n_components_
    2
    >>> ppca = PPCA(2).fit(X)
    >>> round(float(np.sqrt(ppca.noise_variance_)), 1)
    0.1
    >>> ppca.impute(X[:1]).shape, ppca.transform(X, return_cov=True)[1].shape
    ((1, 5), (200, 2, 2))

    A point of the latent space as a row, and rows without their noise:

    >>> one = ppca.inverse_transform([[1.0, -1.0]])
    >>> denoised = ppca.reconstruct(X)
    >>> from mixfold.plots import plot_biplot
    >>> ax = plot_biplot(ppca, X)
    """

    _unit_axes: ClassVar[bool] = True
    _methods: ClassVar[tuple[str, ...]] = ("posterior", "least-squares")
    _constraints: ClassVar[rule.Constraints] = {
        **FactorModel._constraints,
        "n_components": (
            rule.nothing(), rule.integer(1), rule.one_of(["bic", "mle", "ard"]),
            rule.share_of_variance(),
        ),
        "center": (rule.boolean(),),
        "solver": (rule.one_of([*SOLVERS, "em"]),),
        "scale": (rule.one_of(SCALES),),
        "whiten": (rule.nothing(), rule.boolean()),
    }  # fmt: skip
    _stored: ClassVar[tuple[str, ...]] = (*FactorModel._stored, "solver_")

    def __init__(
        self,
        n_components: Any = None,
        *,
        center: bool = True,
        solver: str = "auto",
        loadings_prior: Any = None,
        noise_prior: Any = None,
        scale: str = "latent",
        whiten: bool | None = None,
        tol: float = 1e-6,
        noise_floor: float = 1e-12,
        max_iter: int = 500,
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
        self.center = center
        self.solver = solver
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
        if self._learns_size or self._has_prior:
            return self._fit_with_priors(source)
        if not (self.n_components is None or isinstance(self.n_components, Integral)):
            self._look_at_units(source)
        if self.solver != "em":
            try:
                spectrum = self._find_spectrum(source)
            except MissingEntries:
                if self.solver != "auto":
                    raise ValueError(
                        f"solver={self.solver!r} needs complete data, and X has missing entries; "
                        "use solver='auto' or 'em'"
                    ) from None
            else:
                self._publish_spectrum(spectrum)
                self._warn_about_spectrum(spectrum)
                return self
        self.solver_ = "em"
        chosen = None
        if not (self.n_components is None or isinstance(self.n_components, Integral)):
            chosen = self._search_dimension(source)
        result = self._fit_rows(source, chosen)
        warn_about_fit(result, self.max_iter)
        return self

    def _fit_with_priors(self, source: Source) -> Self:
        """Fit by MAP, or by variational Bayes with as many axes as are learned; for ``fit``."""
        self._look_at_units(source)
        self.solver_ = "vb" if self._learns_size else "em"
        moments = None if self.solver == "em" else self._find_moments(source)
        if moments is None:
            result = self._fit_rows(source)
        else:
            result = self._fit_moments(moments, int(moments.sums.rows), source.dtype.name)
        self._drop_unused_factors()
        warn_about_fit(result, self.max_iter)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (self._learns_size or self._has_prior):
            return
        name = "n_components='ard'" if self._learns_size else "a prior"
        if self.solver not in ("auto", "em"):
            raise ValueError(
                f"{name} has no closed form; got solver={self.solver!r}. Use solver='auto' or 'em'"
            )
        if self._learns_size:
            if not self.center:
                raise ValueError(
                    "n_components='ard' learns the mean with the axes; got center=False. Use "
                    "center=True, or loadings_prior='ard' with a whole number"
                )
        elif not (self.n_components is None or isinstance(self.n_components, Integral)):
            raise ValueError(
                f"n_components={self.n_components!r} is chosen by likelihoods without a prior; "
                "with loadings_prior or noise_prior give a whole number or None, or use "
                "n_components='ard' without loadings_prior"
            )

    def _look_at_units(self, source: Source) -> None:
        """Warn if the units of the columns decide how many axes there are."""
        survey = self._look_at_sample(source)
        other = ", or use FactorAnalysis, in which every column has noise of its own"
        warn_about_units(self, survey.pilot, f"n_components={self.n_components!r}", other)
        if isinstance(self.n_components, str):
            self._look_at_evidence(survey)

    # ------------------------------------------------ the closed form

    def _find_spectrum(self, source: Source) -> Spectrum:
        """The principal axes of complete rows, as many as are wanted; called by ``fit``."""
        executor, seed = self._executor(source), seed_from(self.random_state)
        # a file that was not counted may have as many rows as it likes
        n_rows = source.n_samples or source.n_features + 1
        wanted = self._number_of_axes(n_rows, source.n_features)
        spectrum = principal_axes(
            source, executor, wanted, rng=np.random.default_rng(seed % 2**63), center=self.center,
            solver=self.solver,
        )  # fmt: skip
        self._dtype = source.dtype.name
        self._stream = (seed, 0)
        return spectrum

    def _publish_spectrum(self, spectrum: Spectrum) -> None:
        """Publish the fit in closed form; called by ``fit`` and after each batch of a stream."""
        if len(spectrum.values) == 0:
            raise ValueError(
                f"all rows are the same, so n_components={self.n_components!r} cannot be chosen; "
                "give a whole number, or other rows"
            )
        if isinstance(self.n_components, Integral):
            self._check_dimension(len(spectrum.values), spectrum.n_rows, self.n_features_in_)
        self.n_components_ = len(spectrum.values)
        self._holes, self._climb = False, None
        forget_posterior(self)
        forget_stream(self)
        floor = max(float(self.noise_floor), 1e-14)
        self._params = closed_form(spectrum, floor)
        per_row = log_likelihood_of(spectrum, floor)
        self._total = (per_row * spectrum.weight, spectrum.weight, 0.0)
        self.solver_, self.events_ = spectrum.solver, []
        if self._params.components.noise[0, 0] <= floor * (1 + 1e-9):
            self.events_ = [Event("floor", _NO_NOISE.format(floor), 1, 0)]
        self.lower_bound_, self.lower_bounds_ = per_row, [per_row]
        self.n_iter_, self.n_passes_ = 1, spectrum.passes
        self.converged_ = spectrum.converged
        self.stop_reason_ = "converged" if spectrum.converged else "max_iter"
        self._publish_params()

    def _warn_about_spectrum(self, spectrum: Spectrum) -> None:
        """Warn of axes without noise, or less exact than asked for; called by ``fit``."""
        if self.events_ and len(spectrum.values) < self.n_features_in_:
            warn(self.events_[0].message, DegenerateWarning)
        if not spectrum.converged:
            warn(
                "the last axes are less exact than asked for: their eigenvalues hardly differ from "
                "the next ones; ask for fewer n_components, or use solver='covariance' or 'gram'",
                ConvergenceWarning,
            )

    def _fit_moments_so_far(self, moments: SecondMoments) -> None:
        """Fit to all complete rows of a stream; called by ``partial_fit``."""
        if self._learns_size or self._has_prior:
            self.solver_ = "vb" if self._learns_size else "em"
            self._fit_moments(moments, int(moments.sums.rows), self._dtype)
            self._drop_unused_factors()
            return
        wanted = self._number_of_axes(self.n_features_in_ + 1, self.n_features_in_)
        spectrum = from_moments(moments, wanted, self.center)
        # the first batches may have fewer rows than axes are wanted
        n_rows = max(spectrum.n_rows, len(spectrum.values))
        self._publish_spectrum(replace(spectrum, n_rows=n_rows))

    def _learn_by_em(self, source: Source, first: bool) -> None:
        """Learn a batch with missing entries; called by ``partial_fit``."""
        self.solver_ = "em"
        super()._learn_by_em(source, first)

    # ------------------------------------------------ how many axes, where entries are missing

    def _search_dimension(self, source: Source) -> int:
        """The number of axes by fits with EM, which has no spectrum to look at; for ``fit``."""
        if self.n_components == "mle":
            raise ValueError(
                "n_components='mle' needs complete data and a closed form; with missing entries or "
                "solver='em' use 'bic', a share of the variance, or a whole number"
            )
        if self.checkpoint is not None:
            raise ValueError(
                f"n_components={self.n_components!r} is searched for by several fits where entries "
                "are missing, and a checkpoint holds one; leave checkpoint out or give a whole "
                "number"
            )
        most = max(1, min(source.n_samples or source.n_features, source.n_features) - 1)
        if self.n_components == "bic":
            return self._find_lowest_bic(source, most)
        return self._find_fewest_axes(source, most)

    def _fit_silently(self, source: Source, size: int) -> None:
        """Fit with ``size`` axes; users are warned of the fit that is kept."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            self._fit_rows(source, size)

    def _find_lowest_bic(self, source: Source, most: int) -> int:
        """One more axis at a time until BIC has risen twice in a row."""
        best, least, rises = 1, np.inf, 0
        for size in range(1, most + 1):
            self._fit_silently(source, size)
            value = self.bic()
            if value < least:
                best, least, rises = size, value, 0
            else:
                rises += 1
            if rises == 2:
                break
        return best

    def _find_fewest_axes(self, source: Source, most: int) -> int:
        """The fewest axes that retain the share: doubled until they do, then bisected."""
        low, high = 0, 1
        while high < most and not self._retains_share(source, high):
            low, high = high, min(2 * high, most)
        while high - low > 1:
            middle = (low + high) // 2
            if self._retains_share(source, middle):
                high = middle
            else:
                low = middle
        return high

    def _retains_share(self, source: Source, size: int) -> bool:
        """Whether ``size`` axes hold the share of the variance that is asked for."""
        self._fit_silently(source, size)
        return bool(self.explained_variance_ratio_.sum() >= float(self.n_components) - 1e-12)

    # ------------------------------------------------ what the base asks for

    @property
    def _uncentred(self) -> bool:
        return not self.center

    def _noise(self) -> Noise:
        return IsotropicNoise()

    def _number_of_axes(self, n_rows: int, n_features: int) -> int | Rule:
        """How many axes are asked for, or the rule by which a spectrum decides it."""
        if self.n_components is None:
            return EveryAxis()
        if isinstance(self.n_components, Integral):
            return self._check_dimension(int(self.n_components), n_rows, n_features)
        return dimension_rule(self.n_components)

    def _dimension(self, n_rows: int, n_features: int) -> int:
        """The number of latents of EM, which has no spectrum; called by ``_fit_rows``."""
        if self.n_components is None:
            return max(1, min(n_rows, n_features) - 1)
        wanted = self._number_of_axes(n_rows, n_features)
        if not isinstance(wanted, int):  # fit searches, a stream cannot
            raise ValueError(
                f"n_components={self.n_components!r} cannot be chosen in a stream with missing "
                "entries or more than 2000 columns; give a whole number"
            )
        return wanted

    # ------------------------------------------------ results

    def _publish_factors(self, loadings: Array, noise: Array, covariance: Array) -> None:
        """Publish the axes and their variances; called by ``_publish_params``."""
        lengths = np.sqrt((loadings**2).sum(axis=0))
        variance = lengths**2 + noise[0]
        total = variance.sum() + noise[0] * (len(loadings) - len(lengths))
        axes = orthonormal(loadings)
        self.components_ = in_dtype(np.ascontiguousarray(axes.T), self._dtype)
        self.loadings_ = in_dtype(loadings, self._dtype)
        self.noise_variance_ = float(noise[0])
        self.explained_variance_ = in_dtype(variance, self._dtype)
        self.explained_variance_ratio_ = in_dtype(variance / total, self._dtype)
        self.latent_covariance_ = in_dtype(covariance, self._dtype)
