"""What BayesianGaussianMixture and Mixture share: models that may have priors.

Whether there is a prior is the model's affair (``BayesMixture`` or ``Mixture`` of
``models/mixtures``): both answer the same questions, so nothing here tells them apart.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Executor, Source
from mixfold.engine.loop import Fit
from mixfold.engine.schedules import Accumulated, Stepwise
from mixfold.estimators.mixtures.mixture import MixtureEstimator
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    Survey,
    WarmStart,
    learn_one_batch,
)
from mixfold.families.component import ComponentFamily
from mixfold.models.mixtures.bayes_mixture import BayesMixture, BayesParams
from mixfold.models.mixtures.mixture import Mixture, MixtureReading
from mixfold.models.mixtures.rows import without_empty_rows


class BayesEstimator(MixtureEstimator):
    """Base of BayesianGaussianMixture and of Mixture with its presets."""

    @abstractmethod
    def _model(self, n_features: int) -> Mixture: ...

    # ------------------------------------------------ fitting

    def _check_entries(self, family: ComponentFamily, executor: Executor, source: Source) -> None:
        """Refuse entries that no component can produce, in one pass over the rows."""
        check = self._entry_check(family)
        if check is not None:
            deque(executor.map_rows(check, source), maxlen=0)

    def _entry_check(self, family: ComponentFamily) -> Callable[[Block], None] | None:
        """What refuses entries that no component can produce; None if all can be."""
        if type(family).check is ComponentFamily.check:
            return None
        return partial(_check_block, family, getattr(self, "feature_names_in_", None))

    def _warm_start(self, model: Mixture, survey: Survey) -> WarmStart:
        warm = super()._warm_start(model, survey)
        if warm.params is None:
            return warm
        # under another prior the objective is another, and the earlier climb is forgotten
        return replace(warm, params=model.with_current_priors(warm.params))

    def _store_density_fit(self, fit: Fit, survey: Survey) -> None:
        super()._store_density_fit(fit, survey)
        if self._model(survey.source.n_features).has_prior:
            self._total = None  # the objective is not the log-likelihood
        self.__dict__.pop("evidence_bound_", None)
        self.__dict__.pop("effective_components_trace_", None)
        if fit.sizes:
            self.effective_components_trace_ = list(fit.sizes[1:])
        self._kept_kind = self._kind()

    @abstractmethod
    def _kind(self) -> str:
        """Settings without which parameters mean something else."""

    def _fits(self, model: Mixture) -> bool:
        return model.accepts(self._params, self.n_features_in_) and self._same_kind()

    def _same_kind(self) -> bool:
        return getattr(self, "_kept_kind", None) in (None, self._kind())

    def _most_steps(self, first_batch: bool) -> int:
        """Iterations of a fit. The first batch of a stream gets few, unless a prior is learned from
        it: for that its components have to be told apart first."""
        few = first_batch and not self.learn_prior
        most: int = self.max_iter
        return min(most, FIRST_BATCH_STEPS) if few else most

    # ------------------------------------------------ streams

    def _learn_batch(self, source: Source, first: bool) -> None:
        model = self._model(self.n_features_in_)
        if not first:  # the fit to the first batch has looked
            self._check_entries(model.row_family, self._executor(source), source)
        if not model.has_prior:
            self._learn_batch_by_em(model, source, first)
            return
        # by default all rows so far count alike, and each once
        begin = Accumulated() if self.total_weight is None else Stepwise()
        schedule = begin if first else self._schedule
        self.__dict__.pop("effective_components_trace_", None)
        learned = learn_one_batch(self, model, source, schedule, self.total_weight)
        if learned is not None:
            self._publish_batch(learned)

    # ------------------------------------------------ asking

    def _rows(self, X: Any, task: Callable[[Block], Any], **sides: Any) -> Iterator[Any]:
        check = self._entry_check(self._model(self.n_features_in_).row_family)
        return super()._rows(
            X, task if check is None else partial(_check_then, check, task), **sides
        )

    def _reading(self) -> tuple[Mixture, MixtureReading]:
        self._check_settings_of_fit()
        return super()._reading()

    def _condition(self, known: Array, values: Array) -> Any:
        """Of the density that ``score_samples`` has, unless that is averaged over draws."""
        self._check_settings_of_fit()
        model = self._model(self.n_features_in_)
        rest = np.setdiff1d(np.arange(self.n_features_in_), known)
        if not isinstance(model, BayesMixture) or model.inference.drawn:
            return super()._condition(known, values)
        if "expected" not in model.family.readings:  # a mode is all that is known of the posterior
            return super()._condition(known, values)
        family, params = model.condition_predictive(self._params, known, values)
        other = self._for_columns_of(family, rest)
        if isinstance(params, BayesParams):
            other.set_params(weights=params.weights.tolist(), inference="vb")
        other._params = params
        return other

    @abstractmethod
    def _for_columns_of(self, family: ComponentFamily, rest: Array) -> Any:
        """An estimator for some of the columns, whose components are of the given family."""

    def _check_settings_of_fit(self) -> None:
        """Refuse questions after settings were changed that parameters depend on."""
        check_is_fitted(self)
        if not self._same_kind():
            raise ValueError(
                f"{type(self).__name__} was fitted with other settings ({self._kept_kind}) than it "
                f"has now ({self._kind()}); fit it again"
            )

    def _posteriors(self) -> tuple[Any, ...]:
        """Posteriors over which densities are averaged."""
        return (self._params,)

    def score_samples(self, X: Any) -> Array:
        """Log density of the observed entries of each row, the parameters averaged out."""
        task = partial(_log_density, *self._reading(), self._posteriors())
        return self._concatenate_rows(X, task)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log density per row (per unit of weight)."""
        if X is None:
            return super().score(X, y, sample_weight)
        task = partial(_sum_log_density, *self._reading(), self._posteriors())
        total, weight = np.sum(list(self._rows(X, task, weight=sample_weight)), axis=0)
        if weight == 0:
            raise ValueError("X has no row of positive weight with an observed entry")
        found: float = self._dtype_of(X)(total / weight)
        return found

    def _totals(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        """Of the plug-in density, which is what information criteria are about."""
        self._check_settings_of_fit()
        if X is None:
            return super()._totals(X, sample_weight)
        model, reading = self._model(self.n_features_in_).prepare_point(self._params)
        return self._sum_rows(X, model, reading, sample_weight)

    def _n_parameters(self) -> int:
        """Of the components in use: the others are not part of the density that was found."""
        model = self._model(self.n_features_in_).only_used(self._params)
        return model.n_free(self.n_features_in_)

    # ------------------------------------------------ results

    def _publish_params(self) -> None:
        model, params = self._model(self.n_features_in_), self._params
        for name, value in model.describe_posterior(params).items():
            setattr(self, f"{name}_", value)
        self.weights_ = in_dtype(params.weights, self._dtype)
        for name, value in model.row_family.describe(model.point_components(params)).items():
            setattr(self, f"{name}_", as_dtype(value, self._dtype))

    def _summary(self) -> dict[str, Any]:
        summary = super()._summary()
        if self._model(self.n_features_in_).has_prior:
            del summary["training weight"], summary["log-likelihood per row"]
            summary["components in use"] = self.effective_components_
            summary["objective per row"] = self.lower_bound_
        return summary

    def _declared_shape(self) -> tuple[int, int]:
        """Components and columns of the parameters, as a file must have them."""
        return self.n_components, self._n_modelled

    def _check_state(self) -> None:
        shape, params = self._declared_shape(), self._params
        if (params.n_components, params.components.n_features) != shape:
            raise ValueError(f"parameters that are not of the declared shape {shape}")
        self._publish_params()


def as_dtype(value: Any, dtype: str) -> Any:
    """Published arrays, and lists and dicts of them, in the type of the data."""
    if isinstance(value, dict):
        return {name: as_dtype(part, dtype) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_dtype(part, dtype) for part in value]
    return in_dtype(value, dtype)


def _check_block(family: ComponentFamily, names: Array | None, block: Block) -> None:
    """Refuse entries of a block that no component can produce."""
    family.check(block, names)


def _check_then(check: Callable[[Block], None], task: Callable[[Block], Any], block: Block) -> Any:
    """The result of a task for rows that pass a check; those without weight are left out."""
    check(block)
    if block.weight is None or (block.weight > 0).all():
        return task(block)
    keep = np.flatnonzero(block.weight > 0)
    return task(replace(block, X=block.X[keep], weight=block.weight[keep]))


def _log_density(
    model: Mixture, reading: MixtureReading, posteriors: tuple[Any, ...], block: Block
) -> Array:
    """Log density of the rows of a block, averaged over posteriors where there are any."""
    return predictions.match_dtype(model.log_row_density(reading, posteriors, block), block)


def _sum_log_density(
    model: Mixture, reading: MixtureReading, posteriors: tuple[Any, ...], block: Block
) -> Array:
    """Log density of the rows of a block, summed by weight, and their weight."""
    block = without_empty_rows(block)
    weight = block.weights()
    if not weight.any():
        return np.zeros(2)
    return np.array([weight @ _log_density(model, reading, posteriors, block), weight.sum()])
