"""The classifier by steepest ascent: the scheme of Tabaghi (2016), kept for comparison.

Some EM steps of the components with the classifier fixed, then some steps of the classifier along
its gradient with the components fixed, each halved until the objective does not fall, and so on.
By Fisher's identity the gradient is that of the expected regression of the scores, whose sums EM
has anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Context, Event, Update, record
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedParams, SupervisedStats
from mixfold.models.outputs.probit_labels import ProbitLabels, ProbitParams, ProbitSums

# a step this much shorter than the first is not worth a pass
_SHORTEST = 1e-10


@record
@dataclass(frozen=True, slots=True)
class Ascent:
    """Where a step of the classifier came from, its objective and gradient there."""

    outputs: ProbitParams
    gradient: ProbitParams
    objective: float


@record
@dataclass(frozen=True, slots=True)
class GradientParams(SupervisedParams):
    """Parameters, and where in a cycle they are.

    ``stage`` counts the steps of the cycle that were taken, ``step`` is the length of the next
    ascent, ``begun`` the objective with which the cycle began.
    """

    stage: int = 0
    step: float = 1.0
    begun: float = -np.inf
    ascent: Ascent | None = None


@dataclass(frozen=True)
class GradientModel(LabelledModel):
    """As ``LabelledModel`` with ``em_steps`` of the components, then ``ascents``, by turns.

    ``tol``: gain of a cycle, per unit of weight, that ends a fit.
    """

    em_steps: int = 5
    ascents: int = 5
    tol: float = 1e-6

    def update(
        self, params: SupervisedParams, stats: SupervisedStats, context: Context
    ) -> Update[SupervisedParams]:
        here = self.objective(params, stats)
        now = _staged(params)
        if now.ascent is not None:
            if not here >= now.ascent.objective:
                return self._shorter(now, now.ascent)
            now = replace(now, ascent=None, step=2.0 * now.step, stage=now.stage + 1)
        now = replace(now, stage=now.stage % self.cycle)
        if now.stage == 0:
            if here - now.begun < self.tol * stats.weight:
                return Update(params)
            now = replace(now, begun=here)
        if now.stage < self.em_steps:
            return self._em_step(now, stats, context)
        ascent = Ascent(now.outputs, self._slope(stats, now.outputs), here)
        return Update(_tried(now, ascent, now.step), monotone=False)

    @property
    def cycle(self) -> int:
        return self.em_steps + self.ascents

    def _em_step(
        self, now: GradientParams, stats: SupervisedStats, context: Context
    ) -> Update[SupervisedParams]:
        components, touched = self.family.estimate(stats.components, now.components)
        told = tuple(
            Event("floor", self.family.floor_words(int(k)), context.iteration, int(k))
            for k in np.flatnonzero(touched)
        )
        weights = self.mixing.posterior(stats.counts)
        fresh = replace(now, weights=weights, components=components, stage=now.stage + 1)
        # a cycle is judged as a whole, above: steps of two kinds have no common rate
        return Update(fresh, told, monotone=False)

    def _slope(self, stats: SupervisedStats, outputs: ProbitParams) -> ProbitParams:
        """The gradient per labelled row: a step of 1 then suits tables of any length."""
        gradient = classifier_gradient(self.labels, stats.outputs, outputs)
        labelled = max(float(stats.outputs.count.sum()), np.finfo(float).tiny)
        return ProbitParams(gradient.weights / labelled, gradient.biases / labelled)

    def _shorter(self, now: GradientParams, ascent: Ascent) -> Update[SupervisedParams]:
        """After an ascent that did not gain: half of it, or none."""
        if now.step >= _SHORTEST:
            return Update(_tried(now, ascent, 0.5 * now.step), monotone=False)
        back = replace(now, outputs=ascent.outputs, ascent=None, step=1.0, stage=self.cycle)
        return Update(back, monotone=False)

    def settled(self, params: SupervisedParams, objective: float) -> SupervisedParams:
        """The better of a point with this objective and the one that it came from."""
        now = _staged(params)
        behind = now.ascent is not None and now.ascent.objective > objective
        outputs = now.ascent.outputs if behind and now.ascent is not None else now.outputs
        return SupervisedParams(now.weights, now.components, outputs)


def classifier_gradient(
    labels: ProbitLabels, sums: ProbitSums, params: ProbitParams
) -> ProbitParams:
    """Slopes of the objective in the weights and biases at which the sums were made."""
    gram, target = sums.gram, sums.target
    if not labels.own:
        gram, target = gram.sum(axis=0, keepdims=True), target.sum(axis=0, keepdims=True)
    both = np.concatenate([params.weights, params.biases[..., None]], axis=-1)
    slope = target - np.einsum("kcij,kcj->kci", gram, both)
    return ProbitParams(slope[..., :-1] - labels.ridge * params.weights, slope[..., -1])


def _tried(now: GradientParams, ascent: Ascent, step: float) -> GradientParams:
    start, slope = ascent.outputs, ascent.gradient
    outputs = ProbitParams(start.weights + step * slope.weights, start.biases + step * slope.biases)
    return replace(now, outputs=outputs, step=step, ascent=ascent)


def _staged(params: SupervisedParams) -> GradientParams:
    if isinstance(params, GradientParams):
        return params
    return GradientParams(params.weights, params.components, params.outputs)
