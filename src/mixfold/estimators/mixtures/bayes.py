"""The shell of mixtures with priors: variational Bayes, MAP, and what chains leave behind."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Executor, Pilot, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import RowKeys
from mixfold.engine.schedules import Accumulated, Stepwise
from mixfold.estimators.mixtures.mixture import CANDIDATES, MixtureEstimator
from mixfold.estimators.shell import predictions
from mixfold.families.component import ComponentFamily
from mixfold.math.frame import Frame
from mixfold.mixing.free import FreeWeights
from mixfold.models.mixtures.bayes_mixture import BayesMixture, BayesParams
from mixfold.models.mixtures.inference import INFERENCES
from mixfold.models.mixtures.merge_split import IN_USE
from mixfold.models.mixtures.mixture import (
    Mixture,
    MixtureParams,
    MixtureReading,
    MixtureStats,
)
from mixfold.models.mixtures.prior_pass import total_moments
from mixfold.models.mixtures.rows import without_empty_rows


class BayesEstimator(MixtureEstimator):
    """Base of estimators whose model may be a Bayesian mixture. Subclasses say which."""

    @abstractmethod
    def _model(self, n_features: int) -> Mixture: ...

    # ------------------------------------------------ fitting

    def _training_source(self, X: Any, weight: Any, labels: Any) -> Source:
        self._labelled = labels is not None
        return super()._training_source(X, weight, labels)

    def _survey(self, source: Source) -> tuple[Executor, int, Pilot]:
        executor, seed, pilot = super()._survey(source)
        self._check_support(executor, source)
        return executor, seed, pilot

    def _entry_check(self) -> Callable[[Block], None] | None:
        """What refuses entries that no component can produce; None if all can be."""
        family = self._model(self.n_features_in_).family
        if type(family).check is ComponentFamily.check:
            return None
        return partial(_check_entries, family, getattr(self, "feature_names_in_", None))

    def _check_support(self, executor: Executor, source: Source) -> None:
        check = self._entry_check()
        if check is not None:
            deque(executor.map_rows(check, source), maxlen=0)

    def _check_rows(self, n_rows: int) -> None:
        """With priors there may be more components than rows."""
        if not isinstance(self._model(self.n_features_in_), BayesMixture):
            super()._check_rows(n_rows)

    def _informed(
        self, model: Mixture, source: Source, executor: Executor, pilot: Pilot, seed: int
    ) -> Mixture:
        """The model with its prior, made of all rows where the settings leave it open."""
        if not isinstance(model, BayesMixture) or model.prior is not None:
            return model
        frame, total = total_moments(model, source, executor, pilot, RowKeys(seed))
        return replace(model, prior=self._prior(model, frame, total))

    def _prior(self, model: BayesMixture, frame: Frame, total: Any) -> Any:
        return model.conjugate.prior(frame, total)

    def _climbed(
        self, model: Mixture, source: Source, executor: Executor, pilot: Pilot, plan: Plan
    ) -> Fit:
        # first of all, since an earlier fit goes on under this prior
        model = self._informed(model, source, executor, pilot, plan.seed)
        return super()._climbed(model, source, executor, pilot, plan)

    def _continued(self, model: Mixture, pilot: Pilot) -> dict[str, Any]:
        found = super()._continued(model, pilot)
        if not found or not isinstance(model, BayesMixture):
            return found
        # under another prior the objective is another, and the earlier climb is forgotten
        return {**found, "start": model.renewed(found["start"])}

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        model = self._model(self.n_features_in_)
        bayes = isinstance(model, BayesMixture)
        free = not bayes and isinstance(model.mixing, FreeWeights)
        several = self._start_name() == "kmeans" and self.n_components > 1
        movable = bayes and self.merge_split and not self._labelled
        return Plan(
            tol=self.tol,
            max_iter=self.max_iter if max_iter is None else max_iter,
            n_init=self.n_init,
            n_candidates=CANDIDATES if several and model.given.free else 1,
            # an extrapolation would move weights that are fixed, too
            acceleration=self._acceleration() if free else None,
            time_budget=self.time_budget,
            batch_size=self.batch_size if max_iter is None else None,
            moves=2 * self.n_components if movable and max_iter is None else 0,
            seed=seed,
        )

    @abstractmethod
    def _start_name(self) -> str:
        """Which of the rules of starting is used."""

    def _keep(self, result: Fit, source: Source, seed: int, quiet: bool) -> None:
        model = self._model(source.n_features)
        fixed = self._labelled or self.warm_start or quiet
        if isinstance(model, BayesMixture) and not fixed:
            ordered = model.ordered(result.params, self._order(result.params))
            result = replace(result, params=ordered)
        super()._keep(result, source, seed, quiet)
        if isinstance(model, BayesMixture):
            self._total = None  # the objective is not the log-likelihood
        self.__dict__.pop("evidence_bound_", None)
        if isinstance(model, BayesMixture) and model.inference.reading == "expected":
            self.evidence_bound_ = float(result.objective)
        self._kept_kind = self._kind()

    def _order(self, params: BayesParams) -> Array:
        """The order in which the components are published."""
        return np.argsort(-params.weights, kind="stable")

    @abstractmethod
    def _kind(self) -> str:
        """Settings without which parameters mean something else."""

    def _fits(self, model: Mixture) -> bool:
        same = isinstance(self._params, BayesParams) == isinstance(model, BayesMixture)
        params, shape = self._params, (self.n_components, self.n_features_in_)
        right = (params.n_components, params.components.n_features) == shape
        return same and right and self._same_kind()

    def _same_kind(self) -> bool:
        return getattr(self, "_kept_kind", None) in (None, self._kind())

    # ------------------------------------------------ streams

    def _learn_batch(self, source: Source, first: bool) -> None:
        if not first:  # the survey of the first has looked
            self._check_support(self._executor(source), source)
        super()._learn_batch(source, first)

    def _scheduled(self, model: Mixture, stats: MixtureStats, first: bool) -> Any:
        if not isinstance(model, BayesMixture):
            return super()._scheduled(model, stats, first)
        if self.total_weight is None:
            batch = replace(stats, components=model.family.about_frame(stats.components))
            self._schedule = Accumulated(batch) if first else self._schedule.blend(batch)
            return self._schedule.stats
        batch = model.normalised(stats)
        self._schedule = Stepwise(batch) if first else self._schedule.blend(batch)
        return self._schedule.stats.scale(float(self.total_weight))

    # ------------------------------------------------ asking

    def _rows(self, X: Any, task: Callable[[Block], Any], **sides: Any) -> Iterator[Any]:
        check = self._entry_check()
        return super()._rows(
            X, task if check is None else partial(_check_then, check, task), **sides
        )

    def _reading(self) -> Any:
        check_is_fitted(self)
        if not self._same_kind():
            raise ValueError(
                f"{type(self).__name__} was fitted with other settings ({self._kept_kind}) than it "
                f"has now ({self._kind()}); fit it again"
            )
        return super()._reading()

    def _bayes(self) -> BayesMixture | None:
        """The model, if it has priors."""
        model = self._reading()[0]
        return model if isinstance(model, BayesMixture) else None

    def score_samples(self, X: Any) -> Array:
        """Log density of the observed entries of each row, the parameters averaged out."""
        model = self._bayes()
        if model is None:
            return super().score_samples(X)
        return self._stacked(X, partial(log_predictive, model, self._averaged()))

    def _averaged(self) -> tuple[BayesParams, ...]:
        """Posteriors over which densities are averaged."""
        return (self._params,)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log density per row (per unit of weight)."""
        model = self._bayes()
        if model is None:
            return super().score(X, y, sample_weight)
        parts = self._rows(
            X, partial(_sum_log_predictive, model, self._averaged()), weight=sample_weight
        )
        total, weight = np.sum(list(parts), axis=0)
        if weight == 0:
            raise ValueError("X has no row of positive weight with an observed entry")
        return self._dtype_of(X)(total / weight)

    def _totals(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        """Of the plug-in density, which is what information criteria are about."""
        model = self._bayes()
        if model is None or X is None:
            return super()._totals(X, sample_weight)
        point = replace(model, inference=INFERENCES["em"])
        task = partial(predictions.block_totals, point, point.prepare(self._params))
        total = np.sum(list(self._rows(X, task, weight=sample_weight)), axis=0)
        return float(total[0]), float(total[1]), float(total[2])

    def _plug_in(self) -> tuple[Mixture, Any]:
        model = self._model(self.n_features_in_)
        if not isinstance(model, BayesMixture):
            return model, self._params
        params = self._params
        point = model.conjugate.point(params.components)
        return Mixture(params.n_components, model.family), MixtureParams(params.weights, point)

    def _n_parameters(self) -> int:
        """Of the components in use: the others are not part of the density that was found."""
        model = self._model(self.n_features_in_)
        if isinstance(model, BayesMixture):
            model = replace(model, n_components=self.effective_components_, learn_prior=False)
        return model.n_free(self.n_features_in_)

    # ------------------------------------------------ results

    def _publish_params(self) -> None:
        model = self._model(self.n_features_in_)
        params = self._params
        if isinstance(model, BayesMixture):
            self.counts_ = params.counts
            self.active_ = params.counts > IN_USE
            self.effective_components_ = int(np.count_nonzero(self.active_))
            self.alpha_ = model.alpha_of(params)
        self.weights_ = params.weights.astype(self._dtype)
        for name, value in model.family.describe(self._components(model)).items():
            setattr(self, f"{name}_", as_dtype(value, self._dtype))

    def _components(self, model: Mixture) -> Any:
        """The components, at the point of their posterior if they have one."""
        components = self._params.components
        return model.conjugate.point(components) if isinstance(model, BayesMixture) else components

    def _summary(self) -> dict[str, Any]:
        summary = super()._summary()
        if isinstance(self._params, BayesParams):
            del summary["training weight"], summary["log-likelihood per row"]
            summary["components in use"] = self.effective_components_
            summary["objective per row"] = self.lower_bound_
        return summary

    def _declared_shape(self) -> tuple[int, int]:
        """Components and columns of the parameters, as a file must have them."""
        return self.n_components, self.n_features_in_

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
    return np.asarray(value).astype(dtype)


def _check_entries(family: ComponentFamily, names: Array | None, block: Block) -> None:
    """Refuse entries of a block that no component can produce."""
    family.check(block, names)


def _check_then(check: Callable[[Block], None], task: Callable[[Block], Any], block: Block) -> Any:
    """The result of a task for rows that pass a check; those without weight are left out."""
    check(block)
    if block.weight is None or (block.weight > 0).all():
        return task(block)
    keep = np.flatnonzero(block.weight > 0)
    return task(replace(block, X=block.X[keep], weight=block.weight[keep]))


def log_predictive(model: BayesMixture, posteriors: tuple[BayesParams, ...], block: Block) -> Array:
    """Log density of the rows of a block, averaged over posteriors."""
    logs = [
        np.logaddexp.reduce(_with_size(model, params).log_predictive(params, block), axis=1)
        for params in posteriors
    ]
    return predictions.shaped(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)), block)


def _sum_log_predictive(
    model: BayesMixture, posteriors: tuple[BayesParams, ...], block: Block
) -> Array:
    """Log density of the rows of a block, summed by weight, and their weight."""
    block = without_empty_rows(block)
    weight = block.weights()
    if not weight.any():
        return np.zeros(2)
    return np.array([weight @ log_predictive(model, posteriors, block), weight.sum()])


def _with_size(model: BayesMixture, params: BayesParams) -> BayesMixture:
    """The model with as many components as the parameters."""
    if params.n_components == model.n_components:
        return model
    return replace(model, n_components=params.n_components, learn_prior=False)


def prepare_point(model: BayesMixture, params: BayesParams) -> tuple[Mixture, MixtureReading]:
    """The plug-in density: weights and parameters at their point."""
    point = replace(_with_size(model, params), inference=INFERENCES["em"])
    return point, point.prepare(params)
