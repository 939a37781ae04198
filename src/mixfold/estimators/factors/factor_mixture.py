"""What MixtureOfPPCA and MixtureOfFactorAnalyzers share: all but the noise of their columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import Array, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.estimators.factors.mixed_latents import MixedLatents
from mixfold.estimators.mixtures.mixture import MixtureEstimator
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
from mixfold.estimators.shell.units import warn_about_units
from mixfold.families.factor import FactorFamily, OwnLoadings, TiedLoadings
from mixfold.families.factor.noise import Noise
from mixfold.math.low_rank import low_rank
from mixfold.models.factors.factor_starts import FACTOR_STARTS, FactorStart
from mixfold.models.factors.factor_use import SCALES
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.mixtures.remaining_columns import MixtureOfRemainingColumns

_TIED = ("loadings", "noise")


def _is_tied(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(name in _TIED for name in value)


def _is_factors(value: Any) -> bool:
    counts = value if isinstance(value, list | tuple | np.ndarray) else [value]
    whole = rule.integer(0)
    return len(counts) > 0 and all(whole.holds(count) for count in counts)


class FactorMixture(MixedLatents, MixtureEstimator):
    """Base of MixtureOfPPCA and MixtureOfFactorAnalyzers, which say what noise they have.

    ``partial_fit`` and the questions about components are those of every mixture
    (MixtureEstimator); latents are those of every model with several planes (MixedLatents).
    """

    _shape_names: ClassVar[str] = "n_components or n_factors"
    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "n_factors": (rule.Rule("an int >= 0, or one for each component", _is_factors),),
        "tied": (rule.Rule("some of ('loadings', 'noise')", _is_tied),),
        "init_params": (rule.one_of(FACTOR_STARTS),),
        "scale": (rule.one_of(SCALES),),
    }  # fmt: skip
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_holes", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_",
        "lower_bound_", "lower_bounds_", "events_", "_dtype", "_stream", "_schedule",
        "_dependent",
    )  # fmt: skip

    def __init__(
        self,
        n_components: int = 1,
        n_factors: Any = 1,
        *,
        tied: tuple[str, ...] = (),
        scale: str = "latent",
        tol: float = 1e-6,
        noise_floor: float = 1e-6,
        max_iter: int = 500,
        n_init: int = 1,
        merge_starts: bool = False,
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
        self.tied = tied
        self.scale = scale
        self.tol = tol
        self.noise_floor = noise_floor
        self.max_iter = max_iter
        self.n_init = n_init
        self.merge_starts = merge_starts
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

    @abstractmethod
    def _noise(self, tied: bool) -> Noise:
        """Which noise the columns have, of one component or (``tied``) of all."""

    @abstractmethod
    def _shape_noise(self, noise: Array) -> Array:
        """Variances (K, D) in the shape of ``noise_variance_``."""

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
        set_aside_columns(self, survey, first_batch=first_batch)
        self._check_sizes(survey.pilot.total_rows)
        self._holes = survey.has_missing
        model = self._model(source.n_features)
        if not (first_batch or self._family().scales_columns):
            other = ", or use MixtureOfFactorAnalyzers, in which every column has noise of its own"
            warn_about_units(self, survey.pilot, "noise that is the same in all columns", other)
        several = self.n_components > 1
        plan = Plan(
            tol=self.tol,
            max_iter=min(self.max_iter, FIRST_BATCH_STEPS) if first_batch else self.max_iter,
            n_init=self.n_init if several else 1,
            merge_starts=self.merge_starts,
            n_candidates=self._start().n_candidates if several else 1,
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

    def _learn_batch(self, source: Source, first: bool) -> None:
        """One step of stepwise EM; statistics of batches are blended without expansion."""
        model = Mixture(self.n_components, self._family(expand=False, has_missing=True))
        self._learn_batch_by_em(model, source, first)

    # ------------------------------------------------ the model

    @property
    def _factors(self) -> tuple[int, ...]:
        """``n_factors`` as numbers: one for all components, or one for each."""
        return tuple(int(n) for n in np.atleast_1d(self.n_factors))

    def _family(self, expand: bool = True, has_missing: bool | None = None) -> FactorFamily:
        """The density of the rows of a component, from the settings."""
        return FactorFamily(
            floor=max(float(self.noise_floor), 1e-14),
            factors=self._factors,
            noise=self._noise("noise" in self.tied),
            loadings=TiedLoadings() if "loadings" in self.tied else OwnLoadings(),
            has_missing=getattr(self, "_holes", False) if has_missing is None else has_missing,
            expand=expand,
        )

    def _model(self, n_features: int) -> Mixture:
        family, start = self._family(), self._start()
        if self._dependent is None:
            return Mixture(self.n_components, family, start=start)
        return MixtureOfRemainingColumns(
            self.n_components, family, start=start, columns=self._dependent
        )

    def _start(self) -> FactorStart:
        """How rows are first shared, by ``init_params``."""
        return FACTOR_STARTS[self.init_params](max(self._factors))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        factors = self._factors
        if len(factors) not in (1, self.n_components):
            raise ValueError(
                f"n_factors must be one number, or one for each of the {self.n_components} "
                f"components; got {len(factors)} numbers"
            )
        if "loadings" in self.tied and len(set(factors)) > 1:
            raise ValueError(
                f"tied loadings have one number of factors for all components; got {factors}"
            )

    def _check_sizes(self, n_rows: int) -> None:
        """Refuse more components or factors than the data allow."""
        check_enough_rows(n_rows, self.n_components)
        most = max(self._factors)
        if most > self.n_features_in_:
            raise ValueError(
                f"n_factors={most} must not exceed the number of columns, "
                f"n_features = {self.n_features_in_}; lower n_factors"
            )
        if most >= n_rows:
            raise ValueError(
                f"n_factors={most} must be less than the number of rows of positive weight, "
                f"n_samples = {n_rows}; lower n_factors or give more rows"
            )

    def _fits(self, model: Mixture) -> bool:
        """Whether the parameters at hand have the components and factors of the settings.

        Where components have different numbers of factors, the columns of loadings that a
        component lacks are zero.
        """
        shape = (self.n_components, self._n_modelled, max(self._factors))
        loadings = self._params.components.loadings
        if loadings.shape != shape:
            return False
        beyond = np.arange(shape[2]) >= np.broadcast_to(self._factors, shape[:1])[:, None]
        used = (loadings != 0).any(axis=1)
        return not (used & beyond).any() and bool((used | beyond).all() or len(self._factors) == 1)

    # ------------------------------------------------ results

    def _publish_params(self) -> None:
        """Publish what the parameters say, in units of the data."""
        params = self._canonical()
        components = self._model(self.n_features_in_).point_components(params)
        scale = components.frame.scale
        self.weights_ = in_dtype(params.weights, self._dtype)
        self.means_ = in_dtype(components.frame.leave(components.means), self._dtype)
        self.loadings_ = in_dtype(components.loadings * scale[:, None], self._dtype)
        noise = components.noise * scale**2
        self.noise_variance_ = in_dtype(self._shape_noise(noise), self._dtype)
        parts = low_rank(params.components.loadings, params.components.noise)
        self.latent_covariances_ = in_dtype(parts.covariances, self._dtype)

    def _check_state(self) -> None:
        if not self._fits(self._model(self.n_features_in_)):
            raise ValueError("parameters of another shape than the settings declare")
        super()._check_state()
