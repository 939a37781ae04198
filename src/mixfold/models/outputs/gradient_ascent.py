"""The classifier by steepest ascent: the scheme of Tabaghi (2016), kept for comparison.

Some EM steps of the components with the classifier fixed, then some steps of the classifier along
its gradient with the components fixed, and so on. Steps of the classifier are tentative
(``contracts.Update``): the engine halves them until the objective does not fall.
By Fisher's identity the gradient is that of the expected regression of the scores, whose sums EM
has anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Context, Event, Update, record
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedParams, SupervisedStats
from mixfold.models.outputs.probit_labels import ProbitParams


@record
@dataclass(frozen=True, slots=True)
class GradientParams(SupervisedParams):
    """Parameters, and where in a cycle they are.

    ``stage`` counts the steps of the cycle that were taken, ``begun`` is the objective with which
    the cycle began.
    """

    stage: int = 0
    begun: float = -np.inf


@dataclass(frozen=True)
class GradientModel(LabelledModel):
    """As ``LabelledModel`` with ``em_steps`` of the components, then ``ascents``, by turns.

    ``tol``: gain of a cycle, per unit of weight, that ends a fit. A cycle is judged as a whole:
    steps of two kinds have no common rate, so that all of them are ``monotone=False``.
    """

    em_steps: int = 5
    ascents: int = 5
    tol: float = 1e-6

    def update(
        self, params: SupervisedParams, stats: SupervisedStats, context: Context
    ) -> Update[SupervisedParams]:
        now = _with_stage(params)
        if now.stage >= self.em_steps and context.length > 0:
            return self._ascend(now, stats, context.length)
        if now.stage == 0 or now.stage >= self.em_steps:  # also if no ascent gains: a new cycle
            here = self.objective(params, stats)
            if here - now.begun < self.tol * stats.weight:
                return Update(params)
            now = replace(now, stage=0, begun=here)
        return self._em_step(now, stats, context)

    def _ascend(
        self, now: GradientParams, stats: SupervisedStats, length: float
    ) -> Update[SupervisedParams]:
        """A step of the classifier along its gradient; the engine takes it back if it falls."""
        slope, start = self._slope(stats, now.outputs), now.outputs
        outputs = ProbitParams(
            start.weights + length * slope.weights, start.biases + length * slope.biases
        )
        stage = (now.stage + 1) % (self.em_steps + self.ascents)
        fresh = replace(now, outputs=outputs, stage=stage)
        return Update(fresh, monotone=False, length=length)

    def _em_step(
        self, now: GradientParams, stats: SupervisedStats, context: Context
    ) -> Update[SupervisedParams]:
        components, touched = self.family.estimate(stats.components, now.components)
        told = tuple(
            Event("floor", self.family.floor_message(int(k)), context.iteration, int(k))
            for k in np.flatnonzero(touched)
        )
        weights = self.mixing.posterior(stats.counts)
        fresh = replace(now, weights=weights, components=components, stage=now.stage + 1)
        return Update(fresh, told, monotone=False)

    def _slope(self, stats: SupervisedStats, outputs: ProbitParams) -> ProbitParams:
        """The gradient per labelled row: a step of 1 then suits tables of any length."""
        gradient = self.labels.gradient(outputs, stats.outputs)
        # where hardly a row counts, the ridge alone says how far its slope goes
        least = max(self.labels.ridge, np.finfo(float).tiny)
        labelled = max(float(stats.outputs.count.sum()), least)
        return ProbitParams(gradient.weights / labelled, gradient.biases / labelled)


def without_stage(params: SupervisedParams) -> SupervisedParams:
    """The parameters alone, without where in a cycle they are."""
    return SupervisedParams(params.weights, params.components, params.outputs)


def _with_stage(params: SupervisedParams) -> GradientParams:
    if isinstance(params, GradientParams):
        return params
    return GradientParams(params.weights, params.components, params.outputs)
