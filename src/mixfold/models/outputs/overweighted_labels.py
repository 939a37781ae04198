"""Labels that count more than once: a trade-off above 1.

The objective, sum log p(x) + tradeoff * log P(y | x), then holds log p(x) with a negative weight
and EM has no bound of it. The extended Baum-Welch step adds to the statistics those of ``kappa``
rows that are what the model believes already: the larger kappa, the smaller the step, and a small
enough one gains. So the steps are tentative (``contracts.Update``) with a length of the weight of
all rows over kappa: the engine takes back those that lower the objective and asks for shorter ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, Context, Event, Metric, Pilot, Update
from mixfold.families.factor import FactorParams
from mixfold.families.factor.records import FactorSums, Latents
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedMetric, SupervisedParams, SupervisedStats

# weight of all rows over that of the added ones: the longest step, and one called impossible
_LONGEST, _SHORTEST = 1e3, 1e-9
# EM steps on the sample, labels counting once, before they count more
_WARM_STEPS = 30


@dataclass(frozen=True)
class OverweightedLabelModel(LabelledModel):
    """As ``LabelledModel``, for a trade-off above 1: its steps are tentative."""

    def initialise(
        self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0
    ) -> SupervisedParams:
        once = LabelledModel(
            self.n_components,
            self.family,
            replace(self.labels, tradeoff=1.0),
            self.start,
            self.mixing,
        )
        params = once.initialise(pilot, rng, attempt)
        context = Context(pilot, rng)
        for _ in range(_WARM_STEPS):
            stats = once.expect(once.prepare(params), pilot.block, _NoDraws())
            params = once.update(params, stats, context).params
        return params

    def update(
        self, params: SupervisedParams, stats: SupervisedStats, context: Context
    ) -> Update[SupervisedParams]:
        """The longest step that the context allows and whose M step has a solution."""
        length = min(context.length, _LONGEST)
        while length >= _SHORTEST:
            found = self._damped_step(params, stats, stats.weight / length)
            if found is not None:
                return Update(found, self._floor_events(params, context), length=length)
            length *= 0.5
        return Update(params)

    def _floor_events(self, params: SupervisedParams, context: Context) -> tuple[Event, ...]:
        """Floors of the point that a step leaves: the step itself may be taken back."""
        low = (params.components.noise <= self.family.floor).any(axis=1)
        return tuple(
            Event("floor", self.family.floor_message(int(k)), context.iteration, int(k))
            for k in np.flatnonzero(low)
        )

    def _damped_step(
        self, params: SupervisedParams, stats: SupervisedStats, kappa: float
    ) -> SupervisedParams | None:
        """The M step with kappa added rows; None if it has no solution."""
        counts = stats.counts + kappa * params.weights
        if not (counts[params.weights > 0] > 0).all():
            return None
        sums = stats.components + expected_sums(params, stats.components).scale(kappa)
        relevance = self.relevances(params)
        try:
            components, _ = self.family.estimate(sums, params.components, relevance)
        except np.linalg.LinAlgError:
            return None
        if not all(
            np.isfinite(v).all() for v in (components.means, components.loadings, components.noise)
        ):
            return None
        outputs = self.outputs.update(stats.outputs, params.outputs, relevance)
        weights = self.mixing.posterior(np.maximum(counts, 0.0))
        return self.turned(SupervisedParams(weights, components, outputs))

    def derivatives(
        self, params: SupervisedParams, stats: SupervisedStats
    ) -> tuple[Array, Metric] | None:
        """The gradient, with the information of rows that are what the model believes.

        Of the statistics themselves, in which rows have negative shares, it need not be positive.
        """
        found = super().derivatives(params, stats)
        assert found is not None
        gradient, metric = found
        assert isinstance(metric, SupervisedMetric)
        sums = expected_sums(params, stats.components).scale(stats.weight)
        columns = self.family.derivatives(params.components, sums, self.relevances(params))[1]
        return gradient, replace(metric, components=columns)


def expected_sums(params: SupervisedParams, like: FactorSums) -> FactorSums:
    """Expected statistics of one row that the model draws itself, about the origin of ``like``."""
    old: FactorParams = params.components
    share = params.weights[:, None]
    away = old.means - like.origin
    power = away**2 + (old.loadings**2).sum(axis=2) + old.noise
    identity = np.eye(old.n_factors) * params.weights[:, None, None]
    latents = Latents(params.weights, np.zeros((len(share), old.n_factors)), identity)
    return FactorSums(
        share * away,
        share * power,
        share[..., None] * old.loadings,
        latents,
        latents,
        like.seen.zero(),
        like.origin,
    )


class _NoDraws:
    """Random numbers for a model that asks for none."""

    def uniform(self, rows: slice, per_row: int = 1) -> Array:
        raise TypeError("the E step of a factor model with labels draws nothing")

    def normal(self, rows: slice, per_row: int = 1) -> Array:
        raise TypeError("the E step of a factor model with labels draws nothing")
