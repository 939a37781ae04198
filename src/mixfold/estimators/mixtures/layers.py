"""How a nested mixture grows: the rows of each leaf get a mixture of their own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from mixfold.contracts import Array, Event, Executor, Pilot, Source
from mixfold.engine.loop import Fit, Plan, fit, pilot_size
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.progress import Progress
from mixfold.engine.sources.part import part_of
from mixfold.families.component import dense_rows
from mixfold.families.gaussian import GaussianFamily
from mixfold.math.seeding import distinct
from mixfold.models.mixtures import nested
from mixfold.models.mixtures.framed import FramedMixture
from mixfold.models.mixtures.mixture import MixtureParams
from mixfold.models.mixtures.rows import informative
from mixfold.models.mixtures.starts import Start

# the stream of random numbers of the cells, apart from that of fits
_CELL_STREAM = 5
# what a climb gets whose time is up: one pass
_NO_TIME = 1e-9


def for_size(plan: Plan, size: int) -> Plan:
    """One component needs no choice of a start."""
    return plan if size > 1 else replace(plan, n_init=1, n_candidates=1)


@dataclass
class Layers:
    """A tree of mixtures while it grows: leaves so far, and what the fits on the way said.

    ``plan`` is that of a fit of several components; ``deadline`` is for all of them together.
    """

    source: Source
    executor: Executor
    family: GaussianFamily
    start: Start
    plan: Plan
    deadline: float
    verbose: tuple[int, int]
    params: MixtureParams
    paths: Array
    fits: list[Fit] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def grow(self, sizes: Sequence[int]) -> None:
        """One more layer: each leaf of cell k is split into ``sizes[k]``."""
        labels = self._labels()
        layer = self.paths.shape[1]
        children = [
            self._split(node, labels == node, sizes[cell], self._seed(layer, node))
            for node, cell in enumerate(self.paths[:, 0])
        ]
        self.params = nested.joined(self.params.weights, children, self.family)
        self.paths = nested.grown(self.paths, [child.n_components for child in children])

    def finish(self, pilot: Pilot, max_iter: int) -> Fit:
        """EM of all leaves as one flat mixture, which can only raise the likelihood.

        ``max_iter=0`` only measures it.
        """
        # a leaf that loses its rows is not moved to others: the likelihood could fall
        model = replace(self._model(self.params.n_components), reseed=False)
        plan = replace(self.plan, max_iter=max_iter)
        return self._fit(model, self.source, plan, pilot, start=self.params)

    def _model(self, size: int) -> FramedMixture:
        frame = self.params.components.frame
        return FramedMixture(size, self.family, start=self.start, frame=frame)

    def _fit(
        self, model: FramedMixture, source: Source, plan: Plan, pilot: Pilot,
        start: MixtureParams | None = None,
    ) -> Fit:  # fmt: skip
        budget = self.deadline - time.monotonic()
        if np.isfinite(budget):
            plan = replace(plan, time_budget=max(budget, _NO_TIME))
        progress = Progress(*self.verbose)
        done = fit(model, source, self.executor, plan, start=start, pilot=pilot, progress=progress)
        if done.reason == "interrupted":  # meant for the whole: what is left gets one pass each
            self.deadline = 0.0
        return done

    # ------------------------------------------------ cells

    def _labels(self) -> Array:
        """The leaf of each row, by its highest probability; -1 for rows that say nothing."""
        model = self._model(self.params.n_components)
        task = partial(nested.row_labels, model, model.prepare(self.params))
        return np.concatenate(list(self.executor.map_rows(task, self.source)))

    def _seed(self, *key: int) -> int:
        words = np.random.SeedSequence([self.plan.seed % 2**63, _CELL_STREAM, *key])
        return int(words.generate_state(1, np.uint64)[0])

    def _split(self, node: int, chosen: Array, size: int, seed: int) -> MixtureParams:
        whole = nested.only(self.params, node, self.family)
        if not chosen.any():
            self._tell(node, "few", "has no rows and stays one component")
            return whole
        rows = part_of(self.source, chosen)
        pilot = draw_pilot(rows, self.executor, pilot_size(rows, size), seed)
        if not pilot.observed.all():
            column = int(np.argmin(pilot.observed))
            self._tell(node, "few", f"has no entry in column {column} and stays one component")
            return whole
        size = self._affordable(node, pilot, size)
        plan = for_size(replace(self.plan, seed=seed), size)
        done = self._fit(self._model(size), rows, plan, pilot)
        self.fits.append(done)
        for event in done.events:
            self._tell(node, event.kind, event.message, event.iteration)
        return nested.by_weight(done.params, self.family)

    def _affordable(self, node: int, pilot: Pilot, size: int) -> int:
        """No more components than distinct rows."""
        block = informative(pilot.block)
        count = len(distinct(dense_rows(block.X), block.weights(), None)[0])
        if count < size:
            self._tell(node, "few", f"has {count} distinct rows and so {count} components")
        return min(size, count)

    def _tell(self, node: int, kind: str, message: str, iteration: int = -1) -> None:
        place = ".".join(map(str, self.paths[node]))
        self.events.append(Event(kind, f"cell {place}: {message}", iteration))
