"""Markov chains: the loop of passes that samplers run instead of a climb.

The model and the executors are those of a climb. Random numbers are keyed by chain, sweep and row,
so the same seed gives the same draws for any blocks, threads or cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from mixfold.contracts import Array, Context, record
from mixfold.engine.budget import NEVER, Deadline
from mixfold.engine.random import RowKeys
from mixfold.engine.stacked import stack_records, unstack_records
from mixfold.engine.state import Task

# apart from the streams of the pilot and of imputation
_STREAM = 7


class Sampler(Protocol):
    """What a model offers beyond ``Model`` to be sampled."""

    def draw_assignments(self, reading: Any, block: Any, rng: Any) -> Array:
        """The components that ``expect`` draws for the rows of a block."""
        ...

    def summarise_sweep(self, params: Any, stats: Any) -> Array:
        """Quantities of a sweep that do not depend on the labels of the components."""
        ...


@dataclass(frozen=True, slots=True)
class Sweeps:
    """How long to sample: ``burn_in`` sweeps are thrown away, then each ``thin``-th is kept.

    Labels are kept of each ``label_stride``-th of those: they take memory.
    """

    n_draws: int = 500
    burn_in: int = 500
    thin: int = 1
    label_stride: int = 1
    deadline: Deadline = NEVER

    @property
    def n_sweeps(self) -> int:
        return self.burn_in + self.n_draws * self.thin

    def is_kept(self, sweep: int) -> bool:
        return sweep >= self.burn_in and (sweep - self.burn_in + 1) % self.thin == 0


@record
@dataclass(frozen=True, slots=True)
class Chain:
    """What was kept: parameters (each made of the assignments of its sweep), labels (S, n), traces
    of every sweep after the burn-in (T, q), why it ended, and after how many sweeps."""

    params: tuple[Any, ...]
    labels: Array
    traces: Array
    reason: str = "done"
    n_sweeps: int = 0


@record
@dataclass(frozen=True, slots=True)
class ChainSoFar:
    """Where a chain stands after some sweeps: what it has kept, and the parameters to go on with.

    ``labels`` and ``traces`` are those of ``Chain``, one by one.
    """

    params: tuple[Any, ...] = ()
    labels: tuple[Array, ...] = ()
    traces: tuple[Array, ...] = ()
    n_sweeps: int = 0
    point: Any = None


@record
@dataclass(frozen=True, slots=True)
class Sampled:
    """Where a fit by sampling stands, as a checkpoint holds it: chains that are done, and the next.

    Parameters of draws are stacked, labels and traces of the chain under way are one array each: a
    file names each of its arrays, and thousands of draws are too many names.
    """

    seed: int
    chains: tuple[Chain, ...] = ()
    under_way: ChainSoFar | None = None
    reason: str = ""


def pack_chain(chain: Chain) -> Chain:
    """A chain that is done, as a checkpoint holds it."""
    return replace(chain, params=stack_records(chain.params))


def unpack_chain(stored: Chain) -> Chain:
    return replace(stored, params=unstack_records(stored.params))


def pack_under_way(now: ChainSoFar) -> ChainSoFar:
    """A chain under way, as a checkpoint holds it."""
    return replace(
        now,
        params=stack_records(now.params),
        labels=(np.stack(now.labels),) if now.labels else (),
        traces=(np.stack(now.traces),) if now.traces else (),
    )


def unpack_under_way(stored: ChainSoFar) -> ChainSoFar:
    return replace(
        stored,
        params=unstack_records(stored.params),
        labels=tuple(stored.labels[0]) if stored.labels else (),
        traces=tuple(stored.traces[0]) if stored.traces else (),
    )


Watcher = Callable[[int, int, Array], None]
# told after each sweep how to get where the chain then stood, at any later time
Keeper = Callable[[Callable[[], ChainSoFar]], None]
# a sweep of a number, and whether it is kept: parameters and labels (None if it is not), trace
Step = Callable[[int, bool], tuple[Any, Array | None, Array]]


def run_chain(
    step: Step,
    sweeps: Sweeps,
    number: int,
    watch: Watcher | None = None,
    keeper: Keeper | None = None,
    begun: ChainSoFar | None = None,
) -> Chain:
    """Sweep after sweep. Ctrl-C or the deadline end the chain with what it has, if any.

    A deadline within the burn-in ends it there: the next sweep is kept, and is the only one.
    ``begun`` is where the chain goes on from.
    """
    begun = begun or ChainSoFar()
    kept, labels, traces = list(begun.params), list(begun.labels), list(begun.traces)
    reason, n_sweeps = "done", begun.n_sweeps
    for sweep in range(begun.n_sweeps, sweeps.n_sweeps):
        late = sweeps.deadline.has_passed
        try:
            params, drawn, trace = step(sweep, late or sweeps.is_kept(sweep))
            if late or sweep >= sweeps.burn_in:
                traces.append(trace)
            if drawn is not None:
                if len(kept) % sweeps.label_stride == 0:
                    small = drawn.max(initial=0) < 2**16
                    labels.append(drawn.astype(np.uint16 if small else np.uint32))
                kept.append(params)
            if watch is not None:
                watch(number, sweep, trace)
            if keeper is not None and not late:
                # lists are copied when that is asked for: after each sweep it would take n^2 time
                sizes = (len(kept), len(labels), len(traces))
                keeper(partial(_so_far, kept, labels, traces, sizes, sweep + 1, params))
        except KeyboardInterrupt:
            if not kept:
                raise
            reason = "interrupted"
            break
        n_sweeps = sweep + 1
        if kept and sweeps.deadline.has_passed:
            reason = "time_budget"
            break
    return Chain(tuple(kept), np.stack(labels), np.stack(traces), reason, n_sweeps)


def _so_far(
    kept: list[Any],
    labels: list[Array],
    traces: list[Array],
    sizes: tuple[int, int, int],
    n_sweeps: int,
    point: Any,
) -> ChainSoFar:
    """What the lists held when they had these sizes; they only grow."""
    a, b, c = sizes
    return ChainSoFar(tuple(kept[:a]), tuple(labels[:b]), tuple(traces[:c]), n_sweeps, point)


def sample_chain(
    task: Task,
    params: Any,
    sweeps: Sweeps,
    number: int,
    watch: Watcher | None = None,
    keeper: Keeper | None = None,
    begun: ChainSoFar | None = None,
) -> Chain:
    """Sweep from ``params``: blocks of rows at a time, each given all parameters."""
    if begun is not None:
        params = begun.point

    def step(sweep: int, keep: bool) -> tuple[Any, Array | None, Array]:
        nonlocal params
        params, drawn, trace = _sweep(task, params, number, sweep, keep)
        return params, drawn, trace

    return run_chain(step, sweeps, number, watch, keeper, begun)


def _sweep(
    task: Task, params: Any, number: int, sweep: int, keep: bool
) -> tuple[Any, Array | None, Array]:
    """The next parameters, the labels of the rows if they are kept, and the trace."""
    model: Any = task.model
    reading = model.prepare(params)
    keys = RowKeys(task.seed, sweep, _STREAM + number)
    stats = task.executor.map_reduce(partial(model.expect, reading, rng=keys), task.source)
    drawn = None
    if keep:
        assigned = partial(model.draw_assignments, reading, rng=keys)
        drawn = np.concatenate(list(task.executor.map_rows(assigned, task.source)))
    rng = np.random.default_rng([task.seed % 2**63, number, sweep, 8])
    trace = model.summarise_sweep(params, stats)
    return model.update(params, stats, Context(task.pilot, rng, sweep)).params, drawn, trace
