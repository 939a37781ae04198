"""The shell of a density: fitting, scoring, imputing, whatever its components are."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Executor, Pilot, Source
from mixfold.engine.acceleration import ACCELERATIONS, Acceleration
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import RowKeys, seed_from
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.base import warn
from mixfold.estimators.shell.constraints import check_count
from mixfold.estimators.shell.fitting import FIRST_BATCH_STEPS, FittingEstimator
from mixfold.models.mixtures.mixture import Mixture, MixtureReading, MixtureStats

# the stream of random numbers of imputation, apart from that of fits
_IMPUTE_STREAM = 2


class DensityEstimator(DensityMixin, FittingEstimator):
    """Base of estimators whose model is a mixture, of one component or many."""

    @abstractmethod
    def _model(self, n_features: int) -> Mixture: ...

    @abstractmethod
    def _fits(self, model: Mixture) -> bool:
        """Whether the parameters at hand are of the shapes that the settings ask for."""

    # ------------------------------------------------ fitting

    def _acceleration(self) -> Acceleration | None:
        if self.acceleration is None:
            return None
        return ACCELERATIONS["quasi-newton" if self.acceleration == "auto" else self.acceleration]

    def _continued(self, model: Mixture, pilot: Pilot) -> dict[str, Any]:
        if not (self.warm_start and hasattr(self, "_params") and self._fits(model)):
            return {}
        start = model.reframed(self._params, pilot)
        same_frame = start is self._params
        return {"start": start, "earlier": getattr(self, "_climb", None) if same_frame else None}

    def _climbed(
        self, model: Mixture, source: Source, executor: Executor, pilot: Pilot, plan: Plan
    ) -> Fit:
        result = super()._climbed(model, source, executor, pilot, plan)
        empty, total = pilot.total_weight - result.weight, pilot.total_weight
        if empty > 1e-9 * total:
            rows = f"{empty:g} of the {total:g} rows"
            weighed = f"rows of weight {empty:g} (all rows together weigh {total:g})"
            warn(
                f"{rows if total == pilot.total_rows else weighed} have no observed entry: they "
                "say nothing about the model, which is fitted to the others",
                UserWarning,
            )
        return result

    def _keep(self, result: Fit, source: Source, seed: int, quiet: bool) -> None:
        self._climb = result.climb if self.warm_start else None
        self._total: tuple[float, float, float] | None = (
            result.objective,
            result.weight,
            result.entropy,
        )
        super()._keep(result, source, seed, quiet)

    def _learn(self, source: Source, changed: str, first: bool) -> None:
        """One more batch, the first of which makes the start; ``changed`` names what may not."""
        if first:
            self._fit(source, min(self.max_iter, FIRST_BATCH_STEPS))
        elif not self._fits(self._model(self.n_features_in_)):
            raise ValueError(
                f"{changed} changed since the last batch; clone the estimator to begin a new stream"
            )
        self._learn_batch(source, first)

    def _publish_batch(self, model: Mixture, stats: MixtureStats) -> None:
        batch = model.normalised(stats)
        self._total = None  # a stream is not kept
        self.lower_bound_ = batch.log_likelihood

    # ------------------------------------------------ asking

    def _reading(self) -> tuple[Mixture, MixtureReading]:
        check_is_fitted(self)
        model = self._model(self.n_features_in_)
        return model, model.prepare(self._params)

    def _ask(self, X: Any, answer: Any) -> Array:
        return self._stacked(X, partial(answer, *self._reading()))

    def score_samples(self, X: Any) -> Array:
        """Log density of the observed entries of each row."""
        return self._ask(X, predictions.log_density)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood per row (per unit of weight)."""
        total, weight, _ = self._totals(X, sample_weight)
        return self._dtype_of(X)(total / weight)

    def _dtype_of(self, X: Any) -> Any:
        return np.float32 if getattr(X, "dtype", None) == np.float32 else float

    def _totals(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        """Log-likelihood, weight and entropy of responsibilities, of X or of the training data."""
        check_is_fitted(self)
        if X is None:
            if self._total is None:
                raise ValueError(
                    "the rows of a stream, or of a conditioned mixture, are not kept: give X"
                )
            return self._total
        model, reading = self._reading()
        parts = self._rows(
            X, partial(predictions.block_totals, model, reading), weight=sample_weight
        )
        total = np.sum([part for part in parts], axis=0)
        if total[1] == 0:
            raise ValueError("X has no row of positive weight with an observed entry")
        return float(total[0]), float(total[1]), float(total[2])

    def _n_parameters(self) -> int:
        return self._model(self.n_features_in_).n_free(self.n_features_in_)

    def bic(self, X: Any = None, sample_weight: Any = None) -> float:
        """Bayesian information criterion, the lower the better. X=None: of the training data."""
        total, weight, _ = self._totals(X, sample_weight)
        return -2 * total + self._n_parameters() * float(np.log(weight))

    def aic(self, X: Any = None, sample_weight: Any = None) -> float:
        """Akaike information criterion, the lower the better. X=None: of the training data."""
        total, _, _ = self._totals(X, sample_weight)
        return -2 * total + 2 * self._n_parameters()

    def _generator(self, n_samples: int, random_state: Any) -> np.random.Generator:
        """Random numbers for draws: the estimator's own stream, which goes on, or a given seed."""
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        if random_state is not None:
            return np.random.default_rng(seed_from(random_state))
        seed, calls = self._stream
        self._stream = (seed, calls + 1)
        return np.random.default_rng([seed % 2**63, calls, 3])

    def impute(self, X: Any, method: str = "mean", random_state: Any = None) -> Array:
        """Fill the missing entries of X.

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
        if method not in ("mean", "draw"):
            raise ValueError(f"method must be 'mean' or 'draw', got {method!r}")
        model, reading = self._reading()
        keys = RowKeys(seed_from(random_state), 0, _IMPUTE_STREAM)
        return self._stacked(X, partial(model.impute, reading, rng=keys, draw=method == "draw"))

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _copy_fit(self, other: DensityEstimator) -> None:
        """Take over how another fit ended; the parameters, and so their likelihood, are others."""
        for name in ("_dtype", "_stream", "converged_", "stop_reason_", "n_iter_", "events_"):
            setattr(self, name, getattr(other, name))
        self._total, self.lower_bound_ = None, float("nan")
        self._publish_params()

    def _summary(self) -> dict[str, Any]:
        return {
            "log-likelihood per row": self.lower_bound_,
            "training weight": None if self._total is None else self._total[1],
            "converged": getattr(self, "converged_", False),
            "iterations": self.n_iter_,
        }
