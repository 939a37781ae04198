"""The shell of mixtures with priors: variational Bayes, MAP, and what chains leave behind."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Executor, Pilot, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import RowKeys
from mixfold.engine.schedules import Accumulated, Stepwise
from mixfold.estimators import answers
from mixfold.estimators.mixture import CANDIDATES, MixtureEstimator
from mixfold.families.component import ComponentFamily
from mixfold.math.frame import Frame
from mixfold.mixing.free import FreeWeights
from mixfold.models.bayes_mixture import BayesMixture, BayesParams
from mixfold.models.inference import INFERENCES
from mixfold.models.merge_split import IN_USE
from mixfold.models.mixture import Mixture, MixtureParams, MixtureReading, MixtureStats
from mixfold.models.prior_pass import total_moments


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
        family = self._model(source.n_features).family
        if type(family).check is not ComponentFamily.check:
            names = getattr(self, "feature_names_in_", None)
            for _ in executor.map_rows(partial(_checked, family, names), source):
                pass
        return executor, seed, pilot

    def _check_rows(self, n_rows: int) -> None:
        """With priors there may be more components than rows."""
        if not isinstance(self._model(self.n_features_in_), BayesMixture):
            super()._check_rows(n_rows)

    def _informed(
        self, model: Mixture, source: Source, executor: Executor, pilot: Pilot, seed: int
    ) -> Mixture:
        """The model with its prior, made of all rows where the settings leave it open."""
        if not isinstance(model, BayesMixture):
            return model
        frame, total = total_moments(model, source, executor, pilot, RowKeys(seed))
        return replace(model, prior=self._prior(model, frame, total))

    def _prior(self, model: BayesMixture, frame: Frame, total: Any) -> Any:
        return model.conjugate.prior(frame, total)

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
            self.evidence_bound_ = float(result.objective)

    def _order(self, params: BayesParams) -> Array:
        """The order in which the components are published."""
        return np.argsort(-params.weights, kind="stable")

    def _fits(self, model: Mixture) -> bool:
        wanted = BayesParams if isinstance(model, BayesMixture) else None
        same = isinstance(self._params, BayesParams) == (wanted is not None)
        components = self._params.components
        shape = (self.n_components, self.n_features_in_)
        return same and (self._params.n_components, components.n_features) == shape

    # ------------------------------------------------ streams

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

    def _bayes(self) -> BayesMixture | None:
        """The model, if it has priors."""
        model, _ = self._reading()
        return model if isinstance(model, BayesMixture) else None

    def score_samples(self, X: Any) -> Array:
        """Log density of the observed entries of each row, the parameters averaged out."""
        model = self._bayes()
        if model is None:
            return super().score_samples(X)
        return self._stacked(X, partial(predictive, model, self._averaged()))

    def _averaged(self) -> tuple[BayesParams, ...]:
        """Posteriors over which densities are averaged."""
        return (self._params,)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log density per row (per unit of weight)."""
        model = self._bayes()
        if model is None:
            return super().score(X, y, sample_weight)
        task = partial(_scored, model, self._averaged())
        total, weight = np.sum(list(self._rows(X, task, weight=sample_weight)), axis=0)
        if weight == 0:
            raise ValueError("X has no row of positive weight")
        return self._dtype_of(X)(total / weight)

    def _totals(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        """Of the plug-in density, which is what information criteria are about."""
        model = self._bayes()
        if model is None or X is None:
            return super()._totals(X, sample_weight)
        point = replace(model, inference=INFERENCES["em"])
        task = partial(answers.block_totals, point, point.prepare(self._params))
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
        components = params.components
        if isinstance(model, BayesMixture):
            components = model.conjugate.point(components)
            self.counts_ = params.counts
            self.active_ = params.counts > IN_USE
            self.effective_components_ = int(np.count_nonzero(self.active_))
            self.alpha_ = model.alpha_of(params)
        self.weights_ = params.weights.astype(self._dtype)
        for name, value in model.family.describe(components).items():
            setattr(self, f"{name}_", _typed(value, self._dtype))

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


def _typed(value: Any, dtype: str) -> Any:
    if isinstance(value, list | tuple):
        return [_typed(part, dtype) for part in value]
    return np.asarray(value).astype(dtype)


def _checked(family: ComponentFamily, names: Array | None, block: Block) -> None:
    family.check(block, names)


def predictive(model: BayesMixture, posteriors: tuple[BayesParams, ...], block: Block) -> Array:
    """Log density of the rows of a block, averaged over posteriors."""
    logs = [
        np.logaddexp.reduce(_for(model, params).log_predictive(params, block), axis=1)
        for params in posteriors
    ]
    return answers.shaped(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)), block)


def _scored(model: BayesMixture, posteriors: tuple[BayesParams, ...], block: Block) -> Array:
    """Log density of the rows of a block, summed by weight, and their weight."""
    weight = block.weights()
    return np.array([weight @ predictive(model, posteriors, block), weight.sum()])


def _for(model: BayesMixture, params: BayesParams) -> BayesMixture:
    """The model with as many components as the parameters."""
    if params.n_components == model.n_components:
        return model
    return replace(model, n_components=params.n_components, learn_prior=False)


def point_reading(model: BayesMixture, params: BayesParams) -> tuple[Mixture, MixtureReading]:
    """The plug-in density: weights and parameters at their point."""
    point = replace(_for(model, params), inference=INFERENCES["em"])
    return point, point.prepare(params)
