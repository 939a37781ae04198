"""Collapsed Gibbs sampling: the components of rows alone, weights and parameters integrated out.

A sweep visits the rows in random order. Each leaves its cluster and sits down again,

    p(z_n = k | others) ~ (N_k + prior) p(x_n | rows of k),    new cluster: alpha p(x_n | prior)

which is algorithm 3 of Neal (2000) for a Dirichlet process, and its finite relative otherwise.
Before that, clusters may be split and merged as wholes (``split_merge``).

References
----------
R. M. Neal (2000). Markov chain sampling methods for Dirichlet process mixture models. Journal of
Computational and Graphical Statistics 9, 249-265.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Pilot
from mixfold.math.cluster_draws import draw_cluster
from mixfold.models.mixtures.bayes_mixture import BayesMixture, BayesParams
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.mixtures.partition_priors import PartitionPrior, partition_prior_of
from mixfold.models.mixtures.rows import informative, tiles, with_labels, without_empty_rows
from mixfold.models.mixtures.split_merge import propose
from mixfold.models.mixtures.starts import RandomStart
from mixfold.models.mixtures.urns import Urn, urns_of

# rows that come and go leave rounding behind: all is counted afresh after so many sweeps
REBUILT_AFTER = 100


class CollapsedSampler:
    """The state of one chain.

    Parameters
    ----------
    model : BayesMixture
        With a conjugate family; its ``prior``, or by default that which the rows suggest.
    block : Block
        All rows. Those with a known component stay there, those without weight count nowhere.
    pilot : Pilot
    process : bool
        Whether there is any number of clusters, rather than ``model.n_components``.
    proposals : int, default=0
        Proposals in each sweep to split a cluster or to merge two.

    Attributes
    ----------
    labels : int64 ndarray (n,)
        Slots, -1 for rows that do not count.
    counts : ndarray
        Rows of each slot.
    alpha : float
    accepted : int
        Proposals that were.
    """

    def __init__(
        self,
        model: BayesMixture,
        block: Block,
        pilot: Pilot,
        *,
        process: bool,
        proposals: int = 0,
    ) -> None:
        self._model = model
        self._process, self._proposals, self.accepted = process, proposals, 0
        self._masses_at, self._own = (0, 0.0), np.zeros(0)
        self._seating: PartitionPrior = partition_prior_of(model.mixing, process=process)
        block = with_labels(without_empty_rows(block), model.n_components)
        _check_weights(block)
        self._block, self._used = block, informative(block)
        self._rows = np.flatnonzero(block.weights() > 0)
        self._known = np.full(block.n_rows, -1) if block.y is None else block.y
        self._prepare(block, pilot)
        self.alpha = self._seating.first_alpha
        self.labels = np.full(block.n_rows, -1, np.int64)
        self._sweeps = 0
        self._resize(model.n_components)

    def _prepare(self, block: Block, pilot: Pilot) -> None:
        """Frame, prior, and urns without rows."""
        family = self._model.conjugate
        # labels tell components apart, and here is one
        alone = replace(pilot, block=replace(pilot.block, y=None))
        one = Mixture(1, family, start=RandomStart()).initialise(alone, np.random.default_rng(0))
        self._one, self._frame = one.components, one.components.frame
        self._total = self._moments(np.zeros(len(self._rows), np.int64), 1)
        prior = self._model.prior
        self._given = family.prior(self._frame, self._total) if prior is None else prior
        self._set_prior(self._given)

    def _set_prior(self, prior: Any) -> None:
        """Urns of this prior without rows, rows by themselves, and what of the log evidence no
        partition changes."""
        family, block = self._model.conjugate, self._block
        self._prior = prior
        self._urns: tuple[Urn, ...] = urns_of(family, block, prior, self._frame)
        self.counts = np.zeros(0)
        self._resize(1)
        self._fresh = np.zeros(block.n_rows)
        for row in range(block.n_rows):
            self._score(row, np.ones(1), self._fresh[row : row + 1])
        for row in self._rows.tolist():
            self._put(row, 0)
        gain = sum(urn.gain(self.counts) for urn in self._urns)
        self._base = family.evidence(self._total, prior, self._frame) - gain
        self._clear()

    # ------------------------------------------------ slots

    def _resize(self, n_slots: int) -> None:
        if n_slots <= len(self.counts):
            return
        for urn in self._urns:
            urn.resize(n_slots)
        self.counts = np.concatenate([self.counts, np.zeros(n_slots - len(self.counts))])
        self._scores, self._alone = np.zeros(n_slots), np.zeros(n_slots)

    def _score(self, row: int, counts: Array, out: Array) -> None:
        for urn in self._urns:
            urn.score(row, counts, out)

    def _put(self, row: int, slot: int) -> None:
        self.counts[slot] += 1
        for urn in self._urns:
            urn.put(row, slot)

    def _take(self, row: int, slot: int) -> None:
        """``labels`` says no longer that the row is there."""
        self.counts[slot] -= 1
        if self.counts[slot] == 0:
            for urn in self._urns:
                urn.clear(slot)
            return
        for urn in self._urns:
            if urn.take(row, slot):
                self._refill(urn, slot)

    def _refill(self, urn: Urn, slot: int) -> None:
        urn.clear(slot)
        for row in np.flatnonzero(self.labels == slot).tolist():
            urn.put(row, slot)

    def _clear(self) -> None:
        for slot in range(len(self.counts)):
            for urn in self._urns:
                urn.clear(slot)
        self.counts[:] = 0

    def _rebuild(self) -> None:
        self._clear()
        for row in self._rows.tolist():
            self._put(row, int(self.labels[row]))

    # ------------------------------------------------ sweeps

    def start(self, labels: Array) -> None:
        """Rows sit down at ``labels`` (n,), from 0 (to n_components - 1 unless there may be any
        number of clusters), or where they are known."""
        self._resize(int(labels.max(initial=0)) + 1)
        self.labels[self._rows] = np.where(self._known >= 0, self._known, labels)[self._rows]
        self._rebuild()

    def sweep(self, rng: np.random.Generator) -> None:
        """Splits and mergers, every row once, then alpha and the prior."""
        self._sweeps += 1
        free = self._rows[self._known[self._rows] < 0]
        for _ in range(self._proposals):
            self.accepted += propose(self, free, self._known >= 0, rng)
        self._visit(rng)
        self.alpha = self._seating.draw_alpha(self.counts, self.alpha, rng)
        if self._model.learn_prior:
            self._draw_prior(rng)
        if self._sweeps % REBUILT_AFTER == 0:
            self._rebuild()

    def _draw_prior(self, rng: np.random.Generator) -> None:
        family, n_slots = self._model.conjugate, len(self.counts)
        moments = self._moments(self.labels[self._rows], n_slots)
        components = family.posterior(moments, self._prior, self._frame)
        model = replace(self._model, prior=self._given)
        self._set_prior(model.draw_prior(components, self.counts, self._prior, rng))
        self._resize(n_slots)
        self._rebuild()

    def _visit(self, rng: np.random.Generator) -> None:
        """Rows that are not known, in random order."""
        order = rng.permutation(self._rows[self._known[self._rows] < 0])
        uniforms = rng.random(len(order))
        own, fresh_mass = self._seating.masses(len(self.counts), self.alpha)
        for row, uniform in zip(order.tolist(), uniforms.tolist(), strict=True):
            slot = int(self.labels[row])
            self.labels[row] = -1
            self._take(row, slot)
            slot = self._draw_slot(row, own, fresh_mass, uniform)
            if slot < 0:
                slot = self._open()
                own, _ = self._seating.masses(len(self.counts), self.alpha)
            self.labels[row] = slot
            self._put(row, slot)

    def _draw_slot(self, row: int, own: Array, fresh_mass: float, uniform: float) -> int:
        """The slot for a row that is in none; -1 is a new one."""
        self._score(row, self.counts, self._scores)
        fresh = self._fresh[row]
        return int(draw_cluster(self._scores, self.counts, own, fresh, fresh_mass, uniform))

    def _open(self) -> int:
        """A slot without rows."""
        slot = int(np.argmin(self.counts))
        if self.counts[slot] > 0:
            slot = len(self.counts)
            self._resize(2 * slot)
        return slot

    # ------------------------------------------------ splits and mergers: ``Tables``

    def place(self, row: int, slot: int) -> None:
        self.labels[row] = slot
        self._put(row, slot)

    def lift(self, row: int) -> None:
        slot = int(self.labels[row])
        self.labels[row] = -1
        self._take(row, slot)

    def vacate(self, slots: tuple[int, ...], rows: Array) -> None:
        self.labels[rows] = -1
        for slot in slots:
            self.counts[slot] = 0
            for urn in self._urns:
                urn.clear(slot)

    def log_odds(self, row: int, one: int, two: int) -> float:
        alone, own = self._alone, self._own_masses()
        alone[one], alone[two] = self.counts[one], self.counts[two]
        mass = (alone[two] + own[two]) / (alone[one] + own[one])
        self._score(row, alone, self._scores)
        gap = float(self._scores[two] - self._scores[one])
        self._scores[one] = self._scores[two] = alone[one] = alone[two] = 0.0
        return 0.0 if math.isnan(gap) else gap + math.log(mass)

    def log_joint_of(self, slots: tuple[int, ...]) -> float:
        rows = sum(urn.gain(self._only(slots)) for urn in self._urns)
        return rows + self._seating.log_prob(self.counts, self.alpha)

    def open_slot(self, uniform: float) -> tuple[int, float]:
        if self._process:
            return self._open(), 0.0
        free = np.flatnonzero((self.counts == 0) & (self._own_masses() > 0))
        if not free.size:
            return -1, 0.0
        return int(free[int(uniform * free.size)]), math.log(free.size)

    def log_choices(self) -> float:
        if self._process:
            return 0.0
        return math.log(np.count_nonzero((self.counts == 0) & (self._own_masses() > 0)))

    def _only(self, slots: tuple[int, ...]) -> Array:
        """The counts of some slots, as if there were no others."""
        alone = np.zeros_like(self.counts)
        for slot in slots:
            alone[slot] = self.counts[slot]
        return alone

    def _own_masses(self) -> Array:
        """What is added to the rows of each slot; kept while alpha is."""
        if self._masses_at != (len(self.counts), self.alpha):
            self._masses_at = len(self.counts), self.alpha
            self._own = self._seating.masses(*self._masses_at)[0]
        return self._own

    # ------------------------------------------------ what a sweep leaves

    def log_joint(self) -> float:
        """ln P(z | alpha) + ln p(x | z)."""
        rows = self._base + sum(urn.gain(self.counts) for urn in self._urns)
        return rows + self._seating.log_prob(self.counts, self.alpha)

    def summarise_sweep(self) -> Array:
        """Log joint, clusters, alpha, largest share, entropy of the sizes, strength of the prior:
        as ``TRACES`` says."""
        shares = self.counts[self.counts > 0] / self.counts.sum()
        entropy = -(shares * np.log(shares)).sum()
        strength = self._model.strength(self._prior)
        return np.array(
            [self.log_joint(), shares.size, self.alpha, shares.max(), entropy, strength]
        )

    def draw_labels(self, rng: np.random.Generator) -> Array:
        """Components (n,) as ``params`` numbers them; a draw for rows that do not count."""
        labels = self.labels.copy()
        own, fresh_mass = self._seating.masses(len(self.counts), self.alpha)
        place, last = self._places()
        for row in np.flatnonzero(labels < 0).tolist():
            slot = int(self._known[row])
            if slot < 0 or place[slot] < 0:
                slot = self._draw_slot(row, own, fresh_mass, rng.random())
            labels[row] = slot
        return np.where(labels < 0, last, place[labels])

    def _places(self) -> tuple[Array, int]:
        """The components of slots, -1 for none, and the last component."""
        shown, spare = self._seating.list_components(self.counts)
        place = np.full(len(self.counts), -1)
        place[shown] = np.arange(len(shown))
        return place, len(shown) + spare - 1

    def params(self) -> BayesParams:
        """The posterior given the partition: of each cluster and, of a process, of a new one."""
        place, last = self._places()
        counts = np.bincount(place[self.labels[self._rows]], minlength=last + 1).astype(float)
        moments = self._moments(place[self.labels[self._rows]], last + 1)
        family = self._model.conjugate
        components = family.posterior(moments, self._prior, self._frame)
        state = self._seating.weights(self.counts, self.alpha)
        weights = self._model.mixing.mean(state)
        return BayesParams(state, components, self._prior, counts, weights)

    def _moments(self, labels: Array, n_components: int) -> Any:
        """Statistics of the rows that count when they are divided like this."""
        family = self._model.conjugate
        like = family.select(self._one, np.zeros(n_components, np.int64))
        reading = family.mode(like)
        block, first, total = self._used, 0, None
        per_row = family.workspace_per_row(n_components, block.X.shape[1])
        for tile in tiles(block, per_row, family.numbers_of_row(block, reading)):
            part = labels[first : first + tile.n_rows, None] == np.arange(n_components)
            scores = family.scores(replace(tile, weight=None), reading)
            moments = family.moments(scores, part.astype(float), reading)
            total, first = moments if total is None else total + moments, first + tile.n_rows
        return total


def _check_weights(block: Block) -> None:
    weight = block.weights()
    odd = np.flatnonzero((weight != 0) & (weight != 1))
    if odd.size:
        raise ValueError(
            "a row has one component or none: sample_weight must be 0 or 1 for "
            f"inference='collapsed', row {block.start + int(odd[0])} has {weight[odd[0]]:g}. "
            "Repeat the row, or use inference='vb'"
        )
    if not (weight > 0).any():
        raise ValueError("no row has a positive weight and an observed entry: nothing to sample")
