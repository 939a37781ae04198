"""What MixtureOfPPCA and MixtureOfFactorAnalyzers share: all but the noise of their columns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import Array, Source
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import RowKeys
from mixfold.engine.schedules import Stepwise
from mixfold.estimators.factors.factor_priors import (
    bayes_family,
    bayes_mixing,
    check_priors,
    columns_of_prior,
    limit_of_factors,
    used_factors,
)
from mixfold.estimators.factors.mixed_latents import MixedLatents
from mixfold.estimators.mixtures.mixture import MixtureEstimator
from mixfold.estimators.mixtures.set_aside import (
    set_aside_columns,
    tell_of_columns,
    warn_about_kept_columns,
)
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import warn
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.effective_rows import warn_about_evidence
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    Survey,
    WarmStart,
    acceleration_named,
    check_enough_rows,
    check_room,
    learn_one_batch,
    publish_convergence,
    reorder_components,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.score_scale import score_scale
from mixfold.estimators.shell.units import warn_about_units
from mixfold.families.factor import FactorFamily, OwnLoadings, TiedLoadings
from mixfold.families.factor.bayes import BayesFactors
from mixfold.families.factor.noise import Noise
from mixfold.families.factor.posteriors import with_doubt_of_entries
from mixfold.math.low_rank import low_rank
from mixfold.models.factors.bayes_factors import BayesFactorMixture
from mixfold.models.factors.factor_starts import FACTOR_STARTS, FactorStart, sizes_of_starts
from mixfold.models.factors.factor_use import SCALES
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.mixtures.remaining_columns import MixtureOfRemainingColumns
from mixfold.models.mixtures.starts import FewerClusters

_TIED = ("loadings", "noise")
# of planes through random rows, where the number of factors is learned
_FACTORS_OF_START = 3
# rows for each factor that a component begins with, where the number of components is learned
_ROWS_PER_FACTOR = 5.0
# attributes of fits with priors
_OF_POSTERIORS = ("counts", "active", "effective_components", "alpha", "stick_order")


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
        "n_factors": (
            rule.nothing(), rule.Rule("an int >= 0, or one for each component", _is_factors),
        ),
        "inference": (rule.one_of(["em", "vb"]),),
        "alpha": (rule.number(0, open_end=True), rule.one_of(["learn"])),
        "tied": (rule.Rule("some of ('loadings', 'noise')", _is_tied),),
        "init_params": (rule.one_of(FACTOR_STARTS),),
        "scale": (rule.one_of(SCALES),),
        "whiten": (rule.nothing(), rule.boolean()),
    }  # fmt: skip
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_holes", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_",
        "lower_bound_", "lower_bounds_", "events_", "_dtype", "_stream", "_schedule",
        "_dependent",
        "_posterior", "evidence_bound_",
    )  # fmt: skip

    def __init__(
        self,
        n_components: int = 1,
        n_factors: Any = 1,
        *,
        inference: str = "em",
        weights: Any = "auto",
        alpha: Any = 1.0,
        prior: Any = None,
        merge_split: bool = True,
        tied: tuple[str, ...] = (),
        scale: str = "latent",
        whiten: bool | None = None,
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
        self.inference = inference
        self.weights = weights
        self.alpha = alpha
        self.prior = prior
        self.merge_split = merge_split
        self.tied = tied
        self.scale = scale
        self.whiten = whiten
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
        """Fit and publish; for ``fit`` and the first batch of ``partial_fit``."""
        survey = survey_rows(self, source, self.n_components)
        # priors bound the variances: all columns are kept
        set_aside_columns(self, survey, first_batch=first_batch or self._bayes)
        if self._bayes and not first_batch:
            warn_about_kept_columns(self, survey, "inference='vb'")
            warn_about_evidence("inference='vb'", survey.pilot)
        self._holes = survey.has_missing
        if not (first_batch or self._noise(False).scales_columns):
            other = ", or use MixtureOfFactorAnalyzers, in which every column has noise of its own"
            warn_about_units(self, survey.pilot, "noise that is the same in all columns", other)
        plan = Plan(
            tol=self.tol,
            # with priors the first batch tells how many components and factors there are
            max_iter=min(self.max_iter, FIRST_BATCH_STEPS)
            if first_batch and not self._bayes
            else self.max_iter,
            n_init=self.n_init if self.n_components > 1 else 1,
            merge_starts=self.merge_starts,
            acceleration=acceleration_named(self.acceleration),
            time_budget=self.time_budget,
            seed=survey.seed,
        )
        result = (self._fit_by_vb if self._bayes else self._fit_by_em)(survey, plan, first_batch)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        return result

    def _fit_by_em(self, survey: Survey, plan: Plan, first_batch: bool) -> Fit:
        for name in ("_posterior", "evidence_bound_"):
            self.__dict__.pop(name, None)
        self._check_sizes(survey.pilot.total_rows)
        model = self._model(survey.source.n_features)
        plan = replace(plan, n_candidates=self._n_candidates)
        result = run_fit(self, model, survey, plan, self._warm_start(model, survey))
        result = tell_of_columns(self, result)
        self._store_density_fit(result, survey)
        return result

    def _fit_by_vb(self, survey: Survey, plan: Plan, first_batch: bool) -> Fit:
        n_features, n_rows = survey.source.n_features, survey.pilot.total_rows
        self._check_sizes_with_priors(n_rows, n_features)
        factors = limit_of_factors(self.n_factors, n_features, n_rows, self._holes)
        labelled = survey.pilot.block.y is not None
        family = bayes_family(self, self._own_noise, factors, self._holes, expand=True)
        if self.n_components > 1 and not labelled:
            family = replace(family, rows_per_factor=_ROWS_PER_FACTOR)
        model = self._bayes_model(family)
        warm = self._warm_start_with_priors(model, survey)
        model = model.with_prior(survey.source, survey.executor, survey.pilot, RowKeys(survey.seed))
        movable = self.merge_split and not labelled
        plan = replace(
            plan,
            n_candidates=len(sizes_of_starts(self.n_components)),
            acceleration=None if self.acceleration is None else ACCELERATIONS["squarem"],
            moves=2 * self.n_components if movable else 0,
        )
        result = run_fit(self, model, survey, plan, warm)
        if not (labelled or self.warm_start or first_batch):
            order = np.argsort(-result.params.counts, kind="stable")
            result = reorder_components(model, result, order)
        self._store_density_fit(result, survey)
        self._total = None  # the objective is not the log-likelihood
        self.evidence_bound_ = float(result.objective)
        self._posterior, self._params = result.params, model.plug_in(result.params)[1]
        if self.n_factors is None and not first_batch:
            self._warn_about_limit(factors[0], n_features)
        return result

    def _warn_about_limit(self, most: int, n_features: int) -> None:
        """Warn of components that use as many factors as they may have."""
        full = np.flatnonzero(used_factors(self._params.components.loadings) >= most)
        if full.size and 0 < most < n_features - 1:
            which = ", ".join(str(k) for k in full[:5])
            warn(
                f"components {which} use all {most} factors that they may have: there may be "
                f"more; set n_factors to a number above {most}, or scale the columns",
                UserWarning,
            )

    def _warm_start_with_priors(self, model: BayesFactorMixture, survey: Survey) -> WarmStart:
        """The last posterior as a start, if ``warm_start`` asks for it."""
        known = getattr(self, "_posterior", None)
        if not self.warm_start or known is None or not model.accepts(known, self.n_features_in_):
            return WarmStart()
        start = model.change_frame(known, survey.pilot)
        if self._holes and start.components.doubt.shape[1] == 1:
            start = replace(start, components=with_doubt_of_entries(start.components))
        return WarmStart(model.with_current_priors(start))

    def _learn_batch(self, source: Source, first: bool) -> None:
        """One step from a batch; statistics of batches are blended without expansion."""
        if not self._bayes:
            model = Mixture(self.n_components, self._family(expand=False, has_missing=True))
            self._learn_batch_by_em(model, source, first)
            return
        factors = (self._posterior.components.n_factors,)
        family = bayes_family(self, self._own_noise, factors, True, expand=False)
        schedule = Stepwise() if first else self._schedule
        learned = learn_one_batch(
            self, self._bayes_model(family), source, schedule, None, "_posterior"
        )
        if learned is None:
            return
        self._params = self._bayes_model(family).plug_in(self._posterior)[1]
        self.__dict__.pop("evidence_bound_", None)
        self._publish_batch(learned)

    # ------------------------------------------------ the model

    @property
    def _bayes(self) -> bool:
        """Whether there are priors."""
        return self.inference == "vb"

    @property
    def _own_noise(self) -> Noise:
        return self._noise("noise" in self.tied)

    @property
    def _factors(self) -> tuple[int, ...]:
        """Numbers of factors: one for all components, or one for each. Learned ones once there are
        any."""
        if self._bayes and hasattr(self, "_posterior"):
            return tuple(int(n) for n in used_factors(self._params.components.loadings))
        return limit_of_factors(self.n_factors, self.n_features_in_, np.inf, False)

    def _family(self, expand: bool = True, has_missing: bool | None = None) -> FactorFamily:
        """The density of the rows of a component, from the settings."""
        return FactorFamily(
            floor=max(float(self.noise_floor), 1e-14),
            factors=self._factors,
            noise=self._own_noise,
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

    def _bayes_model(self, family: BayesFactors) -> BayesFactorMixture:
        start = FewerClusters(self._start(), sizes_of_starts(self.n_components))
        return BayesFactorMixture(self.n_components, family, bayes_mixing(self), start=start)

    def _start(self) -> FactorStart:
        """How rows are first shared, by ``init_params``."""
        if self._bayes:
            return FACTOR_STARTS[self.init_params](_FACTORS_OF_START)
        return FACTOR_STARTS[self.init_params](max(self._factors))

    @property
    def _n_candidates(self) -> int:
        return self._start().n_candidates if self.n_components > 1 else 1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        score_scale(self)
        check_priors(self)
        if self.n_factors is None:
            return
        factors = tuple(int(n) for n in np.atleast_1d(self.n_factors))
        if len(factors) not in (1, self.n_components):
            raise ValueError(
                f"n_factors must be one number, or one for each of the {self.n_components} "
                f"components; got {len(factors)} numbers"
            )
        if self._bayes and len(factors) > 1:
            raise ValueError(
                "n_factors is the most that any component may have, where inference='vb' learns "
                f"how many each uses; got {factors}. Give one number, or None"
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

    def _check_sizes_with_priors(self, n_rows: int, n_features: int) -> None:
        """Refuse factors that leave nothing to the noise, and priors of other columns."""
        columns_of_prior(self, n_features)
        check_room(n_rows, self.n_components)
        if self.n_factors is not None and max(np.atleast_1d(self.n_factors)) >= n_features:
            raise ValueError(
                f"n_factors={self.n_factors!r} must be less than the number of columns, "
                f"n_features = {n_features}: as many leave nothing to the noise. Lower it, or use "
                "n_factors=None"
            )

    def _n_parameters(self) -> int:
        """Of the components in use: the others are not part of the density that was found."""
        if not self._bayes or not hasattr(self, "active_"):
            return super()._n_parameters()
        factors = tuple(np.array(self._factors)[self.active_])
        family = replace(self._family(), factors=factors)
        return Mixture(len(factors), family).n_free(self.n_features_in_)

    def _for_columns(self, rest: Array) -> Self:
        """Conditionals are of the point estimate, which has no posterior of its own."""
        other = super()._for_columns(rest)
        if self._bayes:
            other.set_params(
                n_factors=list(self._factors), inference="em", weights="auto", prior=None
            )
        return other

    def _fits(self, model: Mixture) -> bool:
        """Whether the parameters at hand have the components and factors of the settings.

        Where components have different numbers of factors, the columns of loadings that a
        component lacks are zero.
        """
        shape = (self.n_components, self._n_modelled, max(self._factors))
        if self._bayes != hasattr(self, "_posterior"):
            return False
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
        for name in _OF_POSTERIORS:
            self.__dict__.pop(f"{name}_", None)
        if self._bayes and hasattr(self, "_posterior"):
            family = bayes_family(self, self._own_noise, self._factors, False, expand=False)
            model = self._bayes_model(family)
            for name, value in model.describe_posterior(self._posterior).items():
                setattr(self, f"{name}_", value)
        self.n_factors_ = np.array(np.broadcast_to(self._factors, len(params.weights)))
        scale = components.frame.scale
        self.weights_ = in_dtype(params.weights, self._dtype)
        self.means_ = in_dtype(components.frame.leave(components.means), self._dtype)
        self.loadings_ = in_dtype(components.loadings * scale[:, None], self._dtype)
        noise = components.noise * scale**2
        self.noise_variance_ = in_dtype(self._shape_noise(noise), self._dtype)
        parts = low_rank(params.components.loadings, params.components.noise)
        self.latent_covariances_ = in_dtype(parts.covariances, self._dtype)

    def _summary(self) -> dict[str, Any]:
        summary = super()._summary()
        if self._bayes:
            del summary["training weight"], summary["log-likelihood per row"]
            summary["components in use"] = self.effective_components_
            summary["objective per row"] = self.lower_bound_
        return summary

    def _check_state(self) -> None:
        if not self._fits(self._model(self.n_features_in_)):
            raise ValueError("parameters of another shape than the settings declare")
        super()._check_state()
