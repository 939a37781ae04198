"""Labels that count more than once: a trade-off above 1.

The objective, sum log p(x) + tradeoff * log P(y | x), then holds log p(x) with a negative weight
and EM has no bound of it. The extended Baum-Welch step adds to the statistics those of ``kappa``
rows that are what the model believes already: the larger kappa, the smaller the step, and a small
enough one gains. The engine takes every step as it comes, so the parameters carry where they came
from: an update that finds that the objective fell goes back there and doubles kappa.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, Context, Event, Pilot, Update, record
from mixfold.families.factor import FactorParams
from mixfold.families.factor.records import FactorSums, Latents
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedParams, SupervisedStats

# of the weight of all rows: what kappa is at least, and where a step is called impossible
_LEAST, _MOST = 1e-3, 1e9
# how kappa falls after a step that gained, and grows after one that did not
_EASE, _BRAKE = 0.7, 2.0
# steps in a row of next to no gain that end a fit
_QUIET = 3
# EM steps on the sample, labels counting once, before they are stressed
_WARM_STEPS = 30


@record
@dataclass(frozen=True, slots=True)
class Trail:
    """Where a step came from: the point, its statistics and objective, and what the step was."""

    point: SupervisedParams
    stats: SupervisedStats
    objective: float
    kappa: float
    quiet: int = 0


@record
@dataclass(frozen=True, slots=True)
class StressedParams(SupervisedParams):
    """Parameters with the step that led to them; ``done`` if there is nowhere to go."""

    trail: Trail | None = None
    done: bool = False


@dataclass(frozen=True)
class StressedModel(LabelledModel):
    """As ``LabelledModel``, for a trade-off above 1.

    ``tol``: gain of a step, per unit of weight, that is next to nothing.
    """

    tol: float = 1e-6

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
        return _stressed(params)

    def update(
        self, params: SupervisedParams, stats: SupervisedStats, context: Context
    ) -> Update[SupervisedParams]:
        here = self.objective(params, stats)
        now = params if isinstance(params, StressedParams) else _stressed(params)
        trail = now.trail
        if now.done:
            return Update(params)
        if trail is None:
            return self._step(Trail(_plain(now), stats, here, stats.weight), context)
        if not here >= trail.objective:
            if trail.kappa > _MOST * stats.weight:
                return Update(replace(_stressed(trail.point), done=True), monotone=False)
            return self._step(replace(trail, kappa=_BRAKE * trail.kappa), context)
        gained = here - trail.objective
        quiet = trail.quiet + 1 if gained < self.tol * stats.weight else 0
        if quiet >= _QUIET:
            return Update(params)
        kappa = max(_EASE * trail.kappa, _LEAST * stats.weight)
        return self._step(Trail(_plain(now), stats, here, kappa, quiet), context)

    def settled(self, params: SupervisedParams, objective: float) -> SupervisedParams:
        """The better of a point with this objective and the one that it came from."""
        trail = getattr(params, "trail", None)
        if trail is not None and trail.objective > objective:
            params = trail.point
        return _plain(params)

    def _step(self, trail: Trail, context: Context) -> Update[SupervisedParams]:
        """The step that a trail describes; with a larger kappa if its M step has no solution."""
        found = self._maximised(trail)
        while found is None and trail.kappa <= _MOST * trail.stats.weight:
            trail = replace(trail, kappa=_BRAKE * trail.kappa)
            found = self._maximised(trail)
        if found is None:
            return Update(replace(_stressed(trail.point), done=True), monotone=False)
        return Update(
            replace(_stressed(found), trail=trail), self._floors(trail, context), monotone=False
        )

    def _floors(self, trail: Trail, context: Context) -> tuple[Event, ...]:
        """Told of the point that a step leaves, which is kept; the step may be taken back."""
        low = (trail.point.components.noise <= self.family.floor).any(axis=1)
        return tuple(
            Event("floor", self.family.floor_words(int(k)), context.iteration, int(k))
            for k in np.flatnonzero(low)
        )

    def _maximised(self, trail: Trail) -> SupervisedParams | None:
        """The M step with kappa imagined rows; None if there is none."""
        point, stats = trail.point, trail.stats
        counts = stats.counts + trail.kappa * point.weights
        if not (counts[point.weights > 0] > 0).all():
            return None
        sums = stats.components + imagined(point, stats.components).scale(trail.kappa)
        try:
            components, _ = self.family.estimate(sums, point.components)
        except np.linalg.LinAlgError:
            return None
        if not all(
            np.isfinite(v).all() for v in (components.means, components.loadings, components.noise)
        ):
            return None
        outputs = self.outputs.update(stats.outputs, point.outputs)
        weights = self.mixing.posterior(np.maximum(counts, 0.0))
        return SupervisedParams(weights, components, outputs)


def imagined(params: SupervisedParams, like: FactorSums) -> FactorSums:
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


def _stressed(params: SupervisedParams) -> StressedParams:
    return StressedParams(params.weights, params.components, params.outputs)


def _plain(params: SupervisedParams) -> SupervisedParams:
    return SupervisedParams(params.weights, params.components, params.outputs)


class _NoDraws:
    """Random numbers for a model that asks for none."""

    def uniform(self, rows: slice, per_row: int = 1) -> Array:
        raise TypeError("the E step of a factor model with labels draws nothing")

    def normal(self, rows: slice, per_row: int = 1) -> Array:
        raise TypeError("the E step of a factor model with labels draws nothing")
