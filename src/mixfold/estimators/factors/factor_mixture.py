"""What MixtureOfPPCA and MixtureOfFactorAnalyzers share: all but the noise of their columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.loop import Plan
from mixfold.estimators.factors.mixed_latents import MixedLatents
from mixfold.estimators.mixtures.mixture import MixtureEstimator
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.fitting import FITTING_RULES
from mixfold.families.factor import FactorFamily, OwnLoadings, TiedLoadings
from mixfold.families.factor.noise import Noise
from mixfold.math.low_rank import low_rank
from mixfold.models.factors.factor_starts import FACTOR_STARTS, FactorStart
from mixfold.models.mixtures.mixture import Mixture

_TIED = ("loadings", "noise")


def _is_tied(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(name in _TIED for name in value)


def _is_factors(value: Any) -> bool:
    counts = value if isinstance(value, list | tuple | np.ndarray) else [value]
    whole = rule.integer(0)
    return len(counts) > 0 and all(whole.holds(count) for count in counts)


class FactorMixture(MixedLatents, MixtureEstimator):
    """Base of MixtureOfPPCA and MixtureOfFactorAnalyzers, which say what noise they have.

    ``fit``, ``partial_fit`` and the questions about components are those of every mixture
    (MixtureEstimator); latents are those of every model with several planes (MixedLatents).
    """

    _shape_names: ClassVar[str] = "n_components or n_factors"
    _constraints: ClassVar[rule.Constraints] = {
        **FITTING_RULES,
        "n_components": (rule.integer(1),),
        "n_factors": (rule.Rule("an int >= 0, or one for each component", _is_factors),),
        "tied": (rule.Rule("some of ('loadings', 'noise')", _is_tied),),
        "noise_floor": (rule.number(0),),
        "n_init": (rule.integer(1),),
        "init_params": (rule.one_of(FACTOR_STARTS),),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_holes", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_",
        "lower_bound_", "lower_bounds_", "events_", "_dtype", "_stream", "_schedule",
    )  # fmt: skip

    def __init__(
        self,
        n_components: int = 1,
        n_factors: Any = 1,
        *,
        tied: tuple[str, ...] = (),
        tol: float = 1e-6,
        noise_floor: float = 1e-6,
        max_iter: int = 500,
        n_init: int = 1,
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
        self.tol = tol
        self.noise_floor = noise_floor
        self.max_iter = max_iter
        self.n_init = n_init
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

    # ------------------------------------------------ the model and how it is run

    @property
    def _factors(self) -> tuple[int, ...]:
        """``n_factors`` as numbers: one for all components, or one for each."""
        return tuple(int(n) for n in np.atleast_1d(self.n_factors))

    def _family(self, expand: bool = True, holes: bool | None = None) -> FactorFamily:
        """The density of the rows of a component, from the settings."""
        return FactorFamily(
            floor=max(float(self.noise_floor), 1e-14),
            factors=self._factors,
            noise=self._noise("noise" in self.tied),
            loadings=TiedLoadings() if "loadings" in self.tied else OwnLoadings(),
            holes=getattr(self, "_holes", False) if holes is None else holes,
            expand=expand,
        )

    def _model(self, n_features: int) -> Mixture:
        return Mixture(self.n_components, self._family(), start=self._start())

    def _start(self) -> FactorStart:
        """How rows are first shared, by ``init_params``."""
        return FACTOR_STARTS[self.init_params](max(self._factors))

    def _stream_model(self, n_features: int) -> Mixture:
        """The model of stepwise EM, whose statistics of batches may be blended."""
        return Mixture(self.n_components, self._family(expand=False, holes=True))

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

    def _check_rows(self, n_rows: int) -> None:
        """Refuse more components or factors than the data allow; called by ``_survey``."""
        super()._check_rows(n_rows)
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

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        one = self.n_components == 1
        return Plan(
            tol=self.tol,
            max_iter=self.max_iter if max_iter is None else max_iter,
            n_init=1 if one else self.n_init,
            n_candidates=1 if one else self._start().n_candidates,
            acceleration=self._acceleration(),
            time_budget=self.time_budget,
            seed=seed,
        )

    def _fits(self, model: Mixture) -> bool:
        """Whether the parameters at hand have the components and factors of the settings.

        Where components have different numbers of factors, the columns of loadings that a
        component lacks are zero.
        """
        shape = (self.n_components, self.n_features_in_, max(self._factors))
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
        components = params.components
        scale = components.frame.scale
        self.weights_ = params.weights.astype(self._dtype)
        self.means_ = components.frame.leave(components.means).astype(self._dtype)
        self.loadings_ = (components.loadings * scale[:, None]).astype(self._dtype)
        noise = components.noise * scale**2
        self.noise_variance_ = self._shape_noise(noise).astype(self._dtype)
        parts = low_rank(components.loadings, components.noise)
        self.latent_covariances_ = parts.covariances.astype(self._dtype)

    def _check_state(self) -> None:
        if not self._fits(self._model(self.n_features_in_)):
            raise ValueError("parameters of another shape than the settings declare")
        super()._check_state()
