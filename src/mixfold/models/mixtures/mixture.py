"""The generic mixture: any family of components, any prior of the mixing weights.

z ~ pi,   x | z = k ~ p(x | theta_k)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
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
    Shares,
    Source,
    Stats,
    Update,
    record,
)
from mixfold.families.component import ComponentFamily, Scores, dense_rows
from mixfold.math.frame import Frame, same_frame
from mixfold.math.lifted import Sums
from mixfold.math.seeding import distinct, fill_by_cluster
from mixfold.math.softmax import choose, clamp, entropies, normalise
from mixfold.mixing.free import FreeWeights
from mixfold.mixing.protocol import Mixing
from mixfold.models.mixtures.far_rows import separate_far_rows
from mixfold.models.mixtures.floor_events import floor_events
from mixfold.models.mixtures.given_start import GivenStart
from mixfold.models.mixtures.outliers import lone, may_be_outliers, tell_of_outliers
from mixfold.models.mixtures.rearrangements import rearrangements
from mixfold.models.mixtures.repair import (
    find_empty_components,
    least_counts,
    repair_empty_components,
)
from mixfold.models.mixtures.rows import (
    informative,
    take_rows,
    tiles,
    with_labels,
    without_empty_rows,
)
from mixfold.models.mixtures.starts import KMeansStart, Sample, Start
from mixfold.models.mixtures.unions import unions

# beyond this a coordinate is no parameter but the overflow of an extrapolation
COORDINATE_LIMIT = 1e4


@record
@dataclass(frozen=True, slots=True)
class MixtureParams:
    """Mixing weights (K,) and the parameters of the components."""

    weights: Shares
    components: Any

    @property
    def n_components(self) -> int:
        return len(self.weights)


@dataclass(frozen=True, slots=True)
class MixtureReading:
    log_weights: Array
    components: Any


@record
@dataclass(frozen=True)
class MixtureStats(Stats):
    """``counts`` (K,) of the mixing, moments of the family, and the parts of the objective."""

    counts: Array
    components: Any
    log_likelihood: float
    entropy: float
    weight: float


@record
@dataclass(frozen=True, slots=True)
class MixtureMetric:
    """Inverse information of the complete data in the coordinates of a mixture."""

    expected: Array
    components: Metric

    def solve(self, gradient: Array) -> Array:
        K = len(self.expected)
        weights = gradient[:K] / np.maximum(self.expected, np.finfo(float).tiny)
        return np.concatenate([weights, self.components.solve(gradient[K:])])


@dataclass(frozen=True, slots=True)
class Started:
    """The rows of a start, their view without holes, weighted responsibilities (n, K), and the
    weight of all the rows that they stand for."""

    X: Array
    U: Array
    resp: Array
    total_weight: float


@dataclass(frozen=True)
class Mixture:
    """A mixture model: what an engine needs to fit it, and nothing of a particular fit."""

    # whether weights or components have a prior; the objective is the log-likelihood if not
    has_prior: ClassVar[bool] = False

    n_components: int
    family: ComponentFamily
    mixing: Mixing[Any] = field(default_factory=FreeWeights)
    start: Start = field(default_factory=KMeansStart)
    given: GivenStart = field(default_factory=GivenStart)
    reseed: bool = True

    # ------------------------------------------------ start

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> MixtureParams:
        if self.given.complete:
            return self._with_given(self.frame_for(pilot), None)
        frame, X, U, sample = self._start_rows(pilot)
        resp = self.start(sample, self.n_components, rng, attempt) * sample.weight[:, None]
        return self._first(frame, Started(X, fill_by_cluster(U, resp), resp, pilot.total_weight))

    def _start_rows(self, pilot: Pilot) -> tuple[Frame, Array, Array, Sample]:
        """What the starts of one fit share: distinct rows, their frame and their view."""
        kept = pilot.block.known.get("start")
        if kept is not None and kept[0] is self.family:
            found: tuple[Frame, Array, Array, Sample] = kept[1]
            return found
        block = with_labels(informative(pilot.block), self.n_components)
        X, weight, labels = distinct(self.family.start_rows(block.X), block.weights(), block.y)
        frame = self._frame(pilot, X, weight)
        U = self.family.view(frame, X)
        found = frame, X, U, Sample(np.nan_to_num(U, nan=0.0), weight, labels)
        pilot.block.known["start"] = self.family, found
        return found

    def rearrangements(
        self, params: MixtureParams, pilot: Pilot, rng: np.random.Generator
    ) -> Iterator[MixtureParams]:
        """Other starts, made of a fit with two components merged and one split."""
        return rearrangements(self, params, pilot, rng)

    def unions(self, fits: Sequence[MixtureParams], pilot: Pilot) -> Iterator[MixtureParams]:
        """Other starts, made of the components of several fits."""
        return unions(self, fits, pilot)

    def from_shares(self, params: MixtureParams, rows: Started) -> MixtureParams:
        """Parameters of rows that are shared, as those of a fit in other respects."""
        return self._first(params.components.frame, rows)

    def _first(self, frame: Frame, rows: Started) -> MixtureParams:
        """The parameters of a start."""
        components = self.family.from_rows(frame, rows.X, rows.U, rows.resp)
        counts = rows.resp.sum(axis=0)
        weights = self.mixing.posterior(counts + 1e-3 * counts.sum() / self.n_components)
        params = MixtureParams(weights, components)
        return params if self.given.free else self._with_given(frame, params)

    def _with_given(self, frame: Frame, free: MixtureParams | None) -> MixtureParams:
        given = self.given
        weights = given.weights
        if weights is None:
            assert free is not None
            weights = free.weights
        components = given.components(self.family, frame, None if free is None else free.components)
        return MixtureParams(weights, components)

    def _frame(self, pilot: Pilot, X: Array, weight: Array) -> Frame:
        return self.family.frame(X, weight, pilot.maximum - pilot.minimum)

    def frame_for(self, pilot: Pilot) -> Frame:
        """The frame of a fit that starts from this sample."""
        block = informative(pilot.block)
        return self._frame(pilot, self.family.start_rows(block.X), block.weights())

    def change_frame(self, params: MixtureParams, pilot: Pilot) -> MixtureParams:
        """The same mixture in the frame of other data."""
        frame = self.frame_for(pilot)
        if same_frame(frame, params.components.frame):
            return params
        return MixtureParams(params.weights, self.family.change_frame(params.components, frame))

    def with_current_priors(self, params: MixtureParams) -> MixtureParams:
        """Parameters of an earlier fit under the priors of this model, which has none."""
        return params

    def with_prior(self, source: Source, executor: Executor, pilot: Pilot, rng: RowRandom) -> Self:
        """The model with a prior made of all rows, where it needs one that is not given."""
        return self

    def accepts(self, params: Any, n_features: int) -> bool:
        """Whether parameters are of the kind and the sizes of this model."""
        sizes = (params.n_components, params.components.n_features)
        return isinstance(params, MixtureParams) and sizes == (self.n_components, n_features)

    @property
    def can_extrapolate(self) -> bool:
        """Whether steps may be accelerated: an extrapolation would move fixed weights, too."""
        return isinstance(self.mixing, FreeWeights)

    # ------------------------------------------------ E step

    def prepare(self, params: MixtureParams) -> MixtureReading:
        return MixtureReading(self.mixing.mode(params.weights), self.family.mode(params.components))

    def expect(self, reading: MixtureReading, block: Block, rng: RowRandom) -> MixtureStats:
        block = with_labels(without_empty_rows(block), self.n_components)
        fused = self._fused_pass(reading, block)
        if fused is not None:
            moments, sums = fused
            found = MixtureStats(
                sums.moments[:, 0], moments, sums.log_likelihood, sums.entropy, sums.weight
            )
            if not sums.left_out.size:
                return found
            return found + self._expect_tile(reading, take_rows(block, sums.left_out), rng)
        per_row = self.family.workspace_per_row(self.n_components, block.X.shape[1])
        width = self.family.numbers_of_row(block, reading.components)
        parts = (self._expect_tile(reading, tile, rng) for tile in tiles(block, per_row, width))
        total = next(parts)
        for part in parts:
            total = total + part
        return total

    def _fused_pass(self, reading: MixtureReading, block: Block) -> tuple[Any, Sums] | None:
        return self.family.fused_pass(block, reading.components, reading.log_weights)

    def _expect_tile(self, reading: MixtureReading, tile: Block, rng: RowRandom) -> MixtureStats:
        scores = self.family.scores(tile, reading.components)
        log_joint, base = self._separate(reading, tile, scores.log_density + reading.log_weights)
        log_total, resp = normalise(clamp(log_joint, tile.y))
        log_total += base
        weight = tile.weights()
        weighted = self._shares(resp, tile, rng) * weight[:, None]
        return MixtureStats(
            weighted.sum(axis=0),
            self.family.moments(scores, weighted, reading.components),
            float(weight @ log_total),
            float(weight @ entropies(resp)),
            float(weight.sum()),
        )

    def _shares(self, resp: Array, tile: Block, rng: RowRandom) -> Array:
        """Responsibilities as the statistics are to see them."""
        return resp

    def log_joint(self, reading: MixtureReading, block: Block) -> Array:
        """log pi_k p(x_n | k), (n, K)."""
        log_density = self.family.log_density(block, reading.components)
        far = np.flatnonzero(np.isnan(log_density).any(axis=1))
        if far.size:  # products of entries overflowed: differences from the means may not
            X = np.asarray(dense_rows(block.X)[far], dtype=float)
            with np.errstate(over="ignore", invalid="ignore"):
                again = self.family.scores(Block(X, complete=block.complete), reading.components)
            log_density[far] = np.where(np.isnan(again.log_density), -np.inf, again.log_density)
        return log_density + reading.log_weights

    def log_joint_and_base(self, reading: MixtureReading, block: Block) -> tuple[Array, Array]:
        """``log_joint`` less a number of each row, and that number (n,): shares are made of the
        first, which has the digits that the sum of both would lose far from all components."""
        return self._separate(reading, block, self.log_joint(reading, block))

    def _separate(
        self, reading: MixtureReading, block: Block, log_joint: Array
    ) -> tuple[Array, Array]:
        parts = reading.components, reading.log_weights
        return separate_far_rows(self.family, block, *parts, log_joint)

    # ------------------------------------------------ M step

    def update(
        self, params: MixtureParams, stats: MixtureStats, context: Context
    ) -> Update[MixtureParams]:
        components, touched = self.family.estimate(stats.components, params.components)
        weights = self.mixing.posterior(stats.counts)
        outliers = tell_of_outliers(self.family, lambda: components, stats, context)
        alone = lone(outliers, len(stats.counts))
        events = floor_events(self.family, components, touched & ~alone, stats.counts, context)
        events += outliers
        fresh = MixtureParams(weights, components)
        empty = find_empty_components(self, params, stats.counts, context)
        empty = empty[~alone[empty]]  # a row that is alone has nowhere else to go
        if empty.size:
            return repair_empty_components(self, fresh, empty, events, context)
        return Update(fresh, events)

    def step_together(
        self, several: Sequence[MixtureParams], block: Block, context: Context
    ) -> list[tuple[MixtureStats, Update[MixtureParams] | None]] | None:
        """``expect`` and ``update`` of several parameters, over all rows: one E step and one M step
        of the components of all of them.

        An update is None where more has to be seen to than the step (a component at its floor, or
        without rows, or with a row far away). None for all where it is not offered.
        """
        if type(self).expect is not Mixture.expect or type(self).update is not Mixture.update:
            return None
        family, block = self.family, with_labels(without_empty_rows(block), self.n_components)
        stacked = family.stack([params.components for params in several])
        if stacked is None:
            return None
        log_weights = np.stack([self.mixing.mode(params.weights) for params in several])
        found = family.grouped_pass(block, family.mode(stacked), log_weights)
        if found is None:
            return None
        moments, sums = found
        fresh, touched = family.estimate(moments, stacked)
        parts = family.unstack(fresh, moments, len(several))
        counts = np.stack([part.count[:, 0] for _, part in parts])
        least = least_counts(self, counts[0], context)
        shares = np.stack([params.weights for params in several])
        special = touched.reshape(counts.shape) | ((counts <= least) & (shares > 0))
        awkward = special.any(axis=1) | may_be_outliers(stacked.frame, counts, context)
        return [
            (
                MixtureStats(count, part, s.log_likelihood, s.entropy, s.weight),
                None if odd else Update(MixtureParams(self.mixing.posterior(count), components)),
            )
            for (components, part), s, count, odd in zip(parts, sums, counts, awkward, strict=True)
        ]

    def objective(self, params: MixtureParams, stats: MixtureStats) -> float:
        return stats.log_likelihood - self.family.penalty(params.components)

    def total_weight(self, stats: MixtureStats) -> float:
        return stats.weight

    def entropy(self, stats: MixtureStats) -> float:
        return stats.entropy

    def n_free(self, n_features: int) -> int:
        return self.family.n_free(self.n_components, n_features) + self.mixing.n_free(
            self.n_components
        )

    # ------------------------------------------------ using a fit

    @property
    def row_family(self) -> ComponentFamily:
        """The family of rows with all columns; a model may have set some of them aside."""
        return self.family

    def narrow(self, block: Block) -> Block:
        """The columns that the parameters speak of."""
        return block

    def widen(self, rows: Array) -> Array:
        """All columns of rows of those that the parameters speak of."""
        return rows

    def plug_in(self, params: MixtureParams) -> tuple[Mixture, MixtureParams]:
        """The mixture without priors at the point estimate of the parameters."""
        return self, params

    def prepare_point(self, params: MixtureParams) -> tuple[Mixture, MixtureReading]:
        """The model that scores rows at the point estimate, and its reading."""
        return self, self.prepare(params)

    def point_components(self, params: MixtureParams) -> Any:
        """The parameters of the components at their point estimate."""
        return params.components

    def log_row_density(
        self, reading: MixtureReading, posteriors: tuple[Any, ...], block: Block
    ) -> Array:
        """Log density of the rows (n,); a model with priors averages over the posteriors."""
        log_joint, base = self.log_joint_and_base(reading, block)
        return normalise(log_joint)[0] + base

    def permute_components(self, params: Any, which: Array) -> Any:
        """The parameters with components in a better order; without priors they stay."""
        return params

    def describe_posterior(self, params: MixtureParams) -> dict[str, Any]:
        """What a prior adds to the published attributes, by name."""
        return {}

    def only_used(self, params: MixtureParams) -> Mixture:
        """The model of the components in use, of which parameters are counted."""
        return self

    def impute(self, reading: MixtureReading, block: Block, rng: RowRandom, *, draw: bool) -> Array:
        """The rows with missing entries filled: conditional means, or one conditional draw."""
        per_row = self.family.workspace_per_row(self.n_components, block.X.shape[1])
        parts = tiles(block, per_row, block.X.shape[1])
        return np.concatenate([self._impute_block(reading, part, rng, draw) for part in parts])

    def _impute_block(
        self, reading: MixtureReading, block: Block, rng: RowRandom, draw: bool
    ) -> Array:
        X = dense_rows(block.X).copy()
        lacking = np.flatnonzero(np.isnan(X).any(axis=1))
        if lacking.size == 0:
            return X
        scores = self.family.scores(Block(X[lacking], complete=False), reading.components)
        rows = Block(X[lacking], complete=False)
        log_joint = scores.log_density + reading.log_weights
        _, resp = normalise(self._separate(reading, rows, log_joint)[0])
        frame = reading.components.frame
        if draw:
            U = self._draw(scores, resp, reading, block.rows, lacking, rng)
        else:
            U = self.family.fill_missing(scores, resp, reading.components)
        filled = frame.leave(U)
        holes = np.isnan(X[lacking])
        X[lacking] = np.where(holes, filled, X[lacking])
        return X

    def _draw(
        self, scores: Scores, resp: Array, reading: MixtureReading, rows: slice, lacking: Array,
        rng: RowRandom,
    ) -> Array:  # fmt: skip
        n_features = reading.components.frame.origin.size
        size = self.family.normals_per_row(n_features)
        chosen = choose(resp, rng.uniform(rows)[lacking, 0])
        # column 0 chose the component: a normal made of the same bits would follow the choice
        normals = rng.normal(rows, size + 1)[lacking, 1:]
        U = np.empty((len(lacking), n_features))
        for k in np.unique(chosen):
            mine = chosen == k
            U[mine] = self.family.complete_rows(scores, reading.components, int(k), normals)[mine]
        return U

    def sample(
        self, params: MixtureParams, n: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """n rows and the components they came from."""
        labels = np.searchsorted(np.cumsum(params.weights)[:-1], rng.random(n), side="right")
        return self.family.draw_rows(params.components, labels, rng), labels

    def condition(self, params: MixtureParams, known: Array, values: Array) -> MixtureParams:
        """The mixture of the other columns given values of the known ones."""
        log_density, components = self.family.condition(params.components, known, values)
        log_joint = (self.mixing.mode(params.weights) + log_density)[None]
        if self.family.takes_missing:  # values may be far from all components
            row = np.full((1, params.components.n_features), np.nan)
            row[0, known] = values
            log_joint, _ = self._separate(
                self.prepare(params), Block(row, complete=False), log_joint
            )
        return MixtureParams(normalise(log_joint)[1][0], components)

    # ------------------------------------------------ batches

    def row_weight(self, stats: MixtureStats) -> float:
        return stats.weight

    def additive(self, stats: Any) -> Any:
        """Statistics about the origin of the frame: those of other passes can be added to them."""
        return replace(stats, components=self.family.about_frame(stats.components))

    def normalised(self, stats: MixtureStats) -> MixtureStats:
        """Statistics per unit of weight, about the origin of the frame: what schedules blend."""
        normalised: MixtureStats = self.additive(stats).scale(1.0 / stats.weight)
        return normalised

    # ------------------------------------------------ extrapolation

    def coordinates(self, params: MixtureParams) -> Array:
        log_weights = np.log(np.maximum(params.weights, 1e-300))
        return np.concatenate([log_weights, self.family.coordinates(params.components)])

    def derivatives(
        self, params: MixtureParams, stats: MixtureStats
    ) -> tuple[Array, MixtureMetric] | None:
        gradient, metric = self.family.derivatives(params.components, stats.components)
        expected = stats.counts.sum() * params.weights
        by_weight = stats.counts - expected
        return np.concatenate([by_weight, gradient]), MixtureMetric(expected, metric)

    def from_coordinates(self, params: MixtureParams, vector: Array) -> MixtureParams | None:
        K = params.n_components
        # coordinates are logarithms, or lengths in units of the data's spread
        if not np.abs(vector[K:]).max() < COORDINATE_LIMIT:
            return None
        _, weights = normalise(vector[None, :K])
        weights = np.where(params.weights > 0, weights[0], 0.0)
        components = self.family.from_coordinates(params.components, vector[K:])
        return MixtureParams(weights / weights.sum(), components)
