"""The Bayesian mixture: priors on weights and components, one posterior, three readings of it.

pi ~ mixing prior,   theta_k ~ conjugate prior,   z ~ pi,   x | z = k ~ p(x | theta_k)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import (
    Array,
    Block,
    Context,
    Executor,
    Metric,
    Pilot,
    RowRandom,
    Source,
    Update,
)
from mixfold.families.component import ComponentFamily, dense_rows
from mixfold.families.conjugate import ConjugateFamily
from mixfold.math.frame import Frame, same_frame
from mixfold.math.lifted import Sums
from mixfold.math.softmax import choose, clamp, entropies, normalise
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.mixing.protocol import Mixing
from mixfold.mixing.sticks import stick_order
from mixfold.models.mixtures.bayes_records import TRACES as TRACES
from mixfold.models.mixtures.bayes_records import BayesParams as BayesParams
from mixfold.models.mixtures.bayes_records import BayesStats as BayesStats
from mixfold.models.mixtures.inference import INFERENCES, Inference, Variational
from mixfold.models.mixtures.merge_split import IN_USE, proposals
from mixfold.models.mixtures.mixture import (
    Mixture,
    MixtureParams,
    MixtureReading,
    MixtureStats,
    Started,
)
from mixfold.models.mixtures.outliers import tell_of_outliers
from mixfold.models.mixtures.prior_pass import total_moments
from mixfold.models.mixtures.rows import tiles, with_labels


@dataclass(frozen=True)
class BayesMixture(Mixture):
    """A mixture with priors.

    Parameters
    ----------
    mixing : Mixing
        Prior of the weights.
    inference : Inference
        How the posterior is read.
    prior : record of the family, optional
        By default made of the first sample of the rows.
    learn_prior : bool
        Whether the prior of the components follows them (type-II maximum likelihood), once they
        have been fitted under the given one; where parameters are drawn, it is drawn as well.
    """

    has_prior: ClassVar[bool] = True

    mixing: Mixing[Any] = field(default_factory=SymmetricDirichlet)
    inference: Inference = field(default_factory=Variational)
    prior: Any = None
    learn_prior: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.family, ConjugateFamily):
            raise ValueError(
                f"the family {self.family.name!r} has no conjugate prior, which a BayesMixture "
                "needs; use Mixture, which is fitted by maximum likelihood"
            )
        if self.inference.reading not in self.family.readings:
            raise ValueError(
                f"the family {self.family.name!r} offers the readings "
                f"{', '.join(self.family.readings)}; inference {self.inference.name!r} needs "
                f"{self.inference.reading!r}"
            )
        if self.learn_prior and self.inference.reading == "mode":
            raise ValueError(
                "learn_prior maximises the bound of variational Bayes, or draws the prior with the "
                f"components; inference {self.inference.name!r} does neither. Use inference 'vb' "
                "or 'gibbs', or leave learn_prior out"
            )
        if self.learn_prior and self.n_components == 1 and not self.inference.drawn:
            raise ValueError(
                "a prior cannot be learned from one component: it would become its posterior; use "
                "n_components >= 2 or leave learn_prior out"
            )

    @property
    def conjugate(self) -> ConjugateFamily:
        assert isinstance(self.family, ConjugateFamily)
        return self.family

    def alpha_of(self, params: BayesParams) -> float | None:
        """The concentration of the weights, if they have one."""
        alpha: float | None = getattr(params.mixing, "alpha", None)
        return alpha

    # ------------------------------------------------ start

    def _first(self, frame: Frame, rows: Started) -> Any:
        moments = self.sample_moments(frame, rows, rows.resp)
        prior = self.prior
        if prior is None:
            everyone = rows.resp.sum(axis=1, keepdims=True)
            prior = self.conjugate.prior(frame, self.sample_moments(frame, rows, everyone))
        # the sample stands for all rows
        share = rows.total_weight / max(rows.resp.sum(), np.finfo(float).tiny)
        components = self.conjugate.posterior(moments.scale(share), prior, frame)
        counts = rows.resp.sum(axis=0) * share
        state = self.mixing.posterior(counts)
        return BayesParams(state, components, prior, counts, self.mixing.mean(state))

    def from_shares(self, params: Any, rows: Started) -> Any:
        first = replace(self, prior=params.prior)._first(params.components.frame, rows)
        return replace(first, learning=params.learning)

    def sample_moments(self, frame: Frame, rows: Started, resp: Array) -> Any:
        """Statistics of a sample with given shares; holes are filled as its clusters see them."""
        reading = self.family.mode(self.family.from_rows(frame, rows.X, rows.U, resp))
        block = Block(rows.X, complete=not np.isnan(rows.X).any())
        per_row = self.family.workspace_per_row(resp.shape[1], rows.X.shape[1])
        total, first = None, 0
        for tile in tiles(block, per_row, rows.X.shape[1]):
            scores = self.family.scores(tile, reading)
            part = self.family.moments(scores, resp[first : first + tile.n_rows], reading)
            total, first = part if total is None else total + part, first + tile.n_rows
        return total

    def change_frame(self, params: Any, pilot: Pilot) -> Any:
        frame, old = self.frame_for(pilot), params.components.frame
        if same_frame(frame, old):
            return params
        return replace(
            params,
            components=self.conjugate.change_frame_of_posterior(params.components, frame),
            prior=self.conjugate.change_frame_of_prior(params.prior, old, frame),
        )

    def with_prior(self, source: Source, executor: Executor, pilot: Pilot, rng: RowRandom) -> Self:
        if self.prior is not None:
            return self
        frame, total = total_moments(self, source, executor, pilot, rng)
        return replace(self, prior=self.conjugate.prior(frame, total))

    def accepts(self, params: Any, n_features: int) -> bool:
        sizes = (params.n_components, params.components.n_features)
        return isinstance(params, BayesParams) and sizes == (self.n_components, n_features)

    @property
    def can_extrapolate(self) -> bool:
        return False

    def with_current_priors(self, params: Any) -> Any:
        """Parameters of an earlier fit, under the priors of this model where it learns none."""
        alpha = self.alpha_of(params) if self.mixing.learn_alpha else None
        state = self.mixing.posterior(params.counts, alpha, params.mixing)
        prior = params.prior if self.learn_prior or self.prior is None else self.prior
        return replace(
            params,
            mixing=state,
            prior=prior,
            weights=self.mixing.mean(state),
            learning=params.learning and self.learn_prior,
        )

    # ------------------------------------------------ E step

    def prepare(self, params: Any) -> MixtureReading:
        return MixtureReading(*self.inference.read(self, params))

    def expect(self, reading: MixtureReading, block: Block, rng: RowRandom) -> BayesStats:
        found = super().expect(reading, block, rng)
        parts = (found.counts, found.components, found.log_likelihood, found.entropy, found.weight)
        filled = self.family.augments and not (block.complete or self.inference.drawn)
        hidden = self._hidden(reading, found) if filled else 0.0
        return BayesStats(*parts, hidden)

    def _hidden(self, reading: MixtureReading, stats: MixtureStats) -> float:
        """What the log-likelihood has beyond the average over assignments and filled entries."""
        joint = _log_prob_of_counts(stats.counts, reading.log_weights)
        joint += self.conjugate.average(stats.components, reading.components)
        return stats.log_likelihood - stats.entropy - joint

    def _fused_pass(self, reading: MixtureReading, block: Block) -> tuple[Any, Sums] | None:
        return None if self.inference.drawn else super()._fused_pass(reading, block)

    def _shares(self, resp: Array, tile: Block, rng: RowRandom) -> Array:
        if not self.inference.drawn:
            return resp
        chosen = choose(resp, rng.uniform(tile.rows)[:, 0])
        return np.asarray((chosen[:, None] == np.arange(resp.shape[1])).astype(float))

    def _expect_tile(self, reading: MixtureReading, tile: Block, rng: RowRandom) -> MixtureStats:
        if tile.complete or not (self.inference.drawn and self.family.augments):
            return super()._expect_tile(reading, tile, rng)
        log_joint, base = self.log_joint_and_base(reading, tile)
        log_total, resp = normalise(clamp(log_joint, tile.y))
        chosen = choose(resp, rng.uniform(tile.rows)[:, 0])
        done = super()._expect_tile(reading, self._draw_missing(reading, tile, chosen, rng), rng)
        weight = tile.weights()
        # of what was observed: what was drawn says nothing new
        return replace(
            done,
            log_likelihood=float(weight @ (log_total + base)),
            entropy=float(weight @ entropies(resp)),
        )

    def _draw_missing(
        self, reading: MixtureReading, tile: Block, chosen: Array, rng: RowRandom
    ) -> Block:
        """The tile with its holes drawn, and each row in the component that was drawn for it."""
        X = np.array(dense_rows(tile.X), dtype=float)
        lacking = np.flatnonzero(np.isnan(X).any(axis=1))
        scores = self.family.scores(Block(X[lacking], complete=False), reading.components)
        n_normals = self.family.normals_per_row(X.shape[1])
        # column 0 chose the component
        normals = rng.normal(tile.rows, n_normals + 1)[lacking, 1:]
        for k in np.unique(chosen[lacking]):
            filled = self.family.complete_rows(scores, reading.components, int(k), normals)
            mine = chosen[lacking] == k
            X[lacking[mine]] = reading.components.frame.leave(filled[mine])
        return replace(tile, X=X, y=chosen, complete=True)

    def draw_assignments(self, reading: MixtureReading, block: Block, rng: RowRandom) -> Array:
        """The components that a sampler's E step draws for the rows with these random numbers."""
        block = with_labels(block, self.n_components)
        log_joint, _ = self.log_joint_and_base(reading, block)
        _, resp = normalise(clamp(log_joint, block.y))
        return choose(resp, rng.uniform(block.rows)[:, 0])

    # ------------------------------------------------ M step

    def update(self, params: Any, stats: MixtureStats, context: Context) -> Update[Any]:
        state = self.mixing.posterior(stats.counts, self.alpha_of(params), params.mixing)
        if self.mixing.learn_alpha:
            alpha = self.inference.alpha(self, state, context.rng)
            state = self.mixing.posterior(stats.counts, alpha, state)
        components = self.conjugate.update_posterior(
            params.components, stats.components, params.prior
        )
        prior = params.prior
        if params.learning:
            prior = self.conjugate.empirical(components, prior)
        if self.learn_prior and self.inference.drawn:
            prior = self.draw_prior(components, stats.counts, prior, context.rng)
            components = self.conjugate.update_posterior(components, stats.components, prior)
        seed = int(context.rng.integers(2**63)) if self.inference.drawn else 0
        weights = self.mixing.mean(state)
        fresh = BayesParams(state, components, prior, stats.counts, weights, seed, params.learning)
        if self.inference.drawn:
            return Update(fresh)
        point = partial(self.conjugate.point, components)
        return Update(fresh, tell_of_outliers(self.family, point, stats, context))

    def draw_prior(
        self, components: Any, counts: Array, prior: Any, rng: np.random.Generator
    ) -> Any:
        """A prior given the rows of each component: parameters of those that have rows are drawn,
        the prior given them, and they are forgotten again."""
        assert self.prior is not None, "what a prior is drawn about"
        used = self.conjugate.keep_posterior(components, np.flatnonzero(counts > 0))
        return self.conjugate.draw_prior(self.conjugate.draw(used, rng), prior, self.prior, rng)

    def strength(self, prior: Any) -> float:
        """For the trace of a prior that is drawn; NaN of one that stays."""
        return self.conjugate.log_strength(prior) if self.learn_prior else float("nan")

    def objective(self, params: Any, stats: Any) -> float:
        return self.inference.objective(self, params, stats)

    def free_energy(self, params: Any, stats: BayesStats) -> float:
        """The objective at these parameters with the responsibilities that made the statistics,
        whatever parameters those came from."""
        log_weights, components = self.inference.read(self, params)
        joint = _log_prob_of_counts(stats.counts, log_weights)
        joint += self.conjugate.average(stats.components, components)
        return joint + stats.entropy + stats.hidden - self.inference.penalty(self, params)

    def next_stage(self, params: Any) -> Any:
        """The posterior that was fitted under the given prior, with a prior that now follows it.

        Before, while the components are still alike, the prior would become that of their common
        centre, from which none of them could leave any more.
        """
        return replace(params, learning=True) if self.learn_prior and not params.learning else None

    def rearrangements(self, params: Any, pilot: Pilot, rng: np.random.Generator) -> Iterator[Any]:
        """None: ``moves`` of a whole fit merge and split as the evidence wants."""
        return iter(())

    def moves(
        self, params: Any, stats: MixtureStats, pilot: Pilot, rng: np.random.Generator
    ) -> Iterator[Any]:
        """Merged and split components: where a climb may go on (see ``merge_split``)."""
        return proposals(self, params, stats, pilot, rng)

    def components_in_use(self, stats: MixtureStats) -> int:
        """Of an E step: those with more than half a row."""
        return int(np.count_nonzero(stats.counts > IN_USE))

    def summarise_sweep(self, params: Any, stats: MixtureStats) -> Array:
        """Of a sweep: log joint, components in use, alpha, largest share, entropy of the sizes, ln
        of the strength of the prior."""
        shares = stats.counts / stats.counts.sum()
        used = shares[shares > 0]
        alpha = self.alpha_of(params)
        return np.array(
            [
                self.objective(params, stats),
                used.size,
                np.nan if alpha is None else alpha,
                used.max(),
                -(used * np.log(used)).sum(),
                self.strength(params.prior),
            ]
        )

    # ------------------------------------------------ using a fit

    def plug_in(self, params: Any) -> tuple[Mixture, MixtureParams]:
        point = self.conjugate.point(params.components)
        return Mixture(params.n_components, self.family), MixtureParams(params.weights, point)

    def prepare_point(self, params: Any) -> tuple[Mixture, MixtureReading]:
        point = replace(self._with_size_of(params), inference=INFERENCES["em"], learn_prior=False)
        return point, point.prepare(params)

    def condition_predictive(
        self, params: BayesParams, known: Array, values: Array
    ) -> tuple[ComponentFamily, Any]:
        """The predictive density of the other columns given values of some: joint over marginal.

        Returns a family, and the mixture of its components: a posterior with fixed weights or,
        where the family has no posterior of its own, parameters.
        """
        log_density, family, given = self.conjugate.condition_predictive(
            params.components, known, values
        )
        with np.errstate(divide="ignore"):
            log_joint = np.log(params.weights) + log_density
        weights = normalise(log_joint[None])[1][0]
        if not isinstance(family, ConjugateFamily):
            return family, MixtureParams(weights, given)
        return family, BayesParams(weights, given, None, params.counts, weights)

    def point_components(self, params: Any) -> Any:
        return self.conjugate.point(params.components)

    def log_row_density(
        self, reading: MixtureReading, posteriors: tuple[Any, ...], block: Block
    ) -> Array:
        logs = [
            np.logaddexp.reduce(self._with_size_of(one).log_predictive(one, block), axis=1)
            for one in posteriors
        ]
        averaged: Array = np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))
        return averaged

    def _with_size_of(self, params: BayesParams) -> BayesMixture:
        """The model with as many components as the parameters."""
        if params.n_components == self.n_components:
            return self
        return replace(self, n_components=params.n_components, learn_prior=False)

    def describe_posterior(self, params: Any) -> dict[str, Any]:
        used = params.counts > IN_USE
        return {
            "counts": params.counts,
            "active": used,
            "effective_components": int(np.count_nonzero(used)),
            "alpha": self.alpha_of(params),
            "stick_order": stick_order(params.mixing),
        }

    def only_used(self, params: Any) -> Mixture:
        used = int(np.count_nonzero(params.counts > IN_USE))
        return replace(self, n_components=used, learn_prior=False)

    def permute_components(self, params: Any, which: Array) -> Any:
        """The same mixture with its components in another order, if their prior allows it."""
        state = self.mixing.select(params.mixing, which)
        if state is None:
            return params
        return replace(
            params,
            mixing=state,
            components=self.conjugate.keep_posterior(params.components, which),
            counts=params.counts[which],
            weights=params.weights[which],
        )

    def log_predictive(self, params: BayesParams, block: Block) -> Array:
        """log E[pi_k] E[p(x | theta_k)], (n, K)."""
        per_row = self.family.workspace_per_row(self.n_components, block.X.shape[1])
        parts = tiles(block, per_row, block.X.shape[1])
        densities = [self.conjugate.log_predictive(params.components, part) for part in parts]
        with np.errstate(divide="ignore"):
            return np.concatenate(densities) + np.log(params.weights)

    def sample(self, params: Any, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        labels = np.searchsorted(np.cumsum(params.weights)[:-1], rng.random(n), side="right")
        return self.conjugate.sample_predictive(params.components, labels, rng), labels

    # ------------------------------------------------ extrapolation: none is offered

    def coordinates(self, params: Any) -> Array:
        raise TypeError("the posterior of a mixture is not extrapolated")

    def from_coordinates(self, params: Any, vector: Array) -> Any:
        return None

    def derivatives(self, params: Any, stats: Any) -> tuple[Array, Metric] | None:  # type: ignore[override]
        return None


def _log_prob_of_counts(counts: Array, log_weights: Array) -> float:
    """sum_k N_k ln pi_k, where a weight of zero has no rows."""
    counted = counts > 0
    return float(counts[counted] @ log_weights[counted])
