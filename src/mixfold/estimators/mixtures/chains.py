"""Running the chains of a mixture that is fitted by sampling, and what is made of their draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Context, Executor, Source
from mixfold.engine.budget import Deadline
from mixfold.engine.chain import (
    Chain,
    ChainSoFar,
    Sampled,
    Sweeps,
    Watcher,
    pack_chain,
    pack_under_way,
    sample_chain,
    unpack_chain,
    unpack_under_way,
)
from mixfold.engine.checkpoints import Checkpoint, going_on
from mixfold.engine.progress import Progress
from mixfold.engine.random import RowKeys
from mixfold.engine.stacked import mean_record
from mixfold.engine.state import Task
from mixfold.estimators.mixtures.collapsed_runs import run_collapsed_chain
from mixfold.math.partitions import canonical, point_partition
from mixfold.models.mixtures.bayes_mixture import TRACES, BayesMixture, BayesParams
from mixfold.models.mixtures.inference import INFERENCES

# labels of draws may take this much memory
LABEL_BYTES = 2**28
_POINT = INFERENCES["em"]


def check_unit_weights(inference: str, executor: Executor, source: Source) -> None:
    """Refuse weights other than 0 and 1: a sampler draws one component for each row."""
    for row in executor.map_rows(_find_other_weight, source):
        if row is not None:
            raise ValueError(
                f"inference={inference!r} draws one component for each row: sample_weight "
                f"must be 0 or 1, row {row[0]} has {row[1]:g}. Repeat the row, or use "
                "inference='vb'"
            )


def run_chains(
    task: Task,
    sweeps: Sweeps,
    n_chains: int,
    *,
    collapsed: bool,
    process: bool,
    proposals: int,
    time_budget: float | None,
    verbose: tuple[int, int],
    checkpoint: Checkpoint | None = None,
) -> list[Chain]:
    """Chains one after another, fewer if they are interrupted.

    With a ``checkpoint`` they go on where they were: a blocked chain after its last sweep, a
    collapsed one from its beginning, which is a function of seed and number.

    Parameters
    ----------
    task : Task
        Its model is a ``BayesMixture``.
    sweeps : Sweeps
    n_chains : int
    collapsed : bool
        Whether parameters are integrated out, or drawn with the labels.
    process : bool
        Whether the number of components is not bounded; read by the collapsed sampler only.
    proposals : int
        Splits and mergers that the collapsed sampler proposes in each sweep.
    time_budget : float, optional
        Seconds for all of them together.
    verbose : tuple of (verbose, verbose_interval)
    """
    assert task.pilot is not None
    share = None if time_budget is None else time_budget / n_chains
    label_bytes = 2 * task.pilot.total_rows * sweeps.n_draws * n_chains
    stride = max(1, -(-label_bytes // LABEL_BYTES))
    saved = _read_saved(checkpoint, task)
    with Progress(*verbose) as progress, going_on(checkpoint, saved):
        stored = saved or Sampled(task.seed)
        chains, begun = [unpack_chain(chain) for chain in stored.chains], stored.under_way
        for number in range(len(chains), n_chains):
            watch = partial(_show_sweep, progress, sweeps.n_sweeps, 100 * verbose[1])
            plan = replace(sweeps, label_stride=stride, deadline=Deadline.after(share))
            keeper = _Keeper(checkpoint, task.seed, stored.chains, begun)
            try:
                if collapsed:
                    chain = run_collapsed_chain(
                        task, plan, number, watch, process=process, proposals=proposals
                    )
                else:
                    chain = _sample(task, plan, number, watch, keeper, begun)
                chains.append(chain)
            except KeyboardInterrupt:
                keeper.write()
                if not chains:  # nothing was drawn yet
                    raise
                chains[-1] = replace(chains[-1], reason="interrupted")
                break
            begun = None
            if chain.reason != "done":
                keeper.write()
                checkpoint = None  # a fit that goes on does so from there
            if chain.reason == "interrupted":
                break
            if checkpoint is not None:
                stored = replace(stored, chains=(*stored.chains, pack_chain(chain)), under_way=None)
                checkpoint.offer(stored)
    if checkpoint is not None and chains[-1].reason == "done":
        checkpoint.finish(stored)
    return chains


def _sample(
    task: Task, plan: Sweeps, number: int, watch: Watcher, keeper: _Keeper, begun: ChainSoFar | None
) -> Chain:
    """A blocked chain, from its beginning or from where it was."""
    assert task.pilot is not None
    rng = np.random.default_rng([task.seed % 2**63, number, 4])
    start = task.model.initialise(task.pilot, rng, number)
    so_far = None if begun is None else unpack_under_way(begun)
    return sample_chain(task, start, plan, number, watch, keeper.offer, so_far)


class _Keeper:
    """Writes where a fit stands to its checkpoint, if there is one.

    ``chains`` and ``begun`` are as a file holds them.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None,
        seed: int,
        chains: tuple[Chain, ...],
        begun: ChainSoFar | None,
    ) -> None:
        self._checkpoint = checkpoint
        self._standing = _Standing(seed, chains, begun)

    def offer(self, now: Callable[[], ChainSoFar]) -> None:
        self._standing = replace(self._standing, under_way=now)
        if self._checkpoint is not None:
            self._checkpoint.offer(self._standing)

    def write(self) -> None:
        if self._checkpoint is not None:
            self._checkpoint.write(self._standing)


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where a fit stands; of the chain under way, how to get that, or what a file held."""

    seed: int
    chains: tuple[Chain, ...]
    under_way: Callable[[], ChainSoFar] | ChainSoFar | None
    reason: str = ""


def _pack(now: _Standing | Sampled) -> Sampled:
    """As a file holds it."""
    if isinstance(now, Sampled):
        return now
    under_way = now.under_way
    if callable(under_way):
        under_way = pack_under_way(under_way())
    return Sampled(now.seed, now.chains, under_way)


def _read_saved(checkpoint: Checkpoint | None, task: Task) -> Sampled | None:
    """Where the fit of the checkpoint stood, if there is one."""
    if checkpoint is None:
        return None
    assert task.pilot is not None
    saved: Sampled | None = checkpoint.read()
    checkpoint.check(saved, task.pilot)
    checkpoint.pack = _pack
    return None if saved is None else _with_all_traces(saved)


def _with_all_traces(saved: Sampled) -> Sampled:
    """Chains of earlier versions have fewer traces: what is not known of them is NaN."""
    chains = tuple(replace(chain, traces=_widen(chain.traces)) for chain in saved.chains)
    under_way = saved.under_way
    if under_way is not None:
        under_way = replace(under_way, traces=tuple(map(_widen, under_way.traces)))
    return replace(saved, chains=chains, under_way=under_way)


def _widen(traces: Array) -> Array:
    lacking = len(TRACES) - traces.shape[-1]
    return np.pad(traces, ((0, 0), (0, lacking)), constant_values=np.nan) if lacking else traces


def find_agreed_partition(draws: Array, seed: int) -> Array:
    """The draw of labels, (draws, n), that the others agree with best; clusters by size."""
    rng = np.random.default_rng([seed % 2**63, 9])
    # a draw itself: single-row moves would make clusters of undecided rows
    return _number_by_size(point_partition(draws, refine=False, rng=rng))


def keep_known_numbers(labels: Array, executor: Executor, source: Source) -> Array:
    """Clusters of rows of known components get their numbers, the others what is left."""
    known = np.concatenate(list(executor.map_rows(_read_known, source)))
    names = np.full(labels.max() + 1, -1)
    names[labels[known >= 0]] = known[known >= 0]
    left = np.setdiff1d(np.arange(names.size + known.max() + 1), names)
    names[names < 0] = left[: np.count_nonzero(names < 0)]
    return names[labels]


def posterior_given_labels(task: Task, labels: Array, chains: list[Chain]) -> BayesParams:
    """The posterior when the component of each row is known, under the mean of the priors that
    were drawn, if they were."""
    n_clusters = int(labels.max()) + 1
    assert isinstance(task.model, BayesMixture) and task.pilot is not None
    model = replace(task.model, n_components=n_clusters, learn_prior=False)
    if task.model.learn_prior:
        drawn = [params.prior for chain in chains for params in chain.params]
        model = replace(model, prior=mean_record(drawn))
    start = model.initialise(task.pilot, np.random.default_rng(0))
    reading = replace(model, inference=_POINT).prepare(start)
    given = partial(_expect_given, model, reading, labels)
    stats = task.executor.map_reduce(given, task.source)
    context = Context(task.pilot, np.random.default_rng(0))
    fixed: BayesParams = model.update(start, stats, context).params
    return fixed


def thin_draws(draws: list[BayesParams], most: int) -> tuple[BayesParams, ...]:
    """At most so many of the draws, evenly spaced."""
    chosen = np.unique(np.linspace(0, len(draws) - 1, min(most, len(draws))).astype(int))
    return tuple(draws[i] for i in chosen)


def _number_by_size(labels: Array) -> Array:
    """Labels from 0 in order of decreasing size."""
    labels = canonical(labels)
    counts = np.bincount(labels)
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return rank[labels]


def _read_known(block: Block) -> Array:
    """The known components of the rows, -1 where they are not known."""
    return np.full(block.n_rows, -1) if block.y is None else np.asarray(block.y, np.int64)


def _show_sweep(
    progress: Progress, total: int, interval: int, number: int, sweep: int, trace: Array
) -> None:
    """A line about one sweep of a chain."""
    line = f"chain {number + 1}  sweep {sweep + 1} of {total}  components {trace[1]:.0f}"
    progress.say(f"{line}  log joint {trace[0]:.2f}", (sweep + 1) % interval == 0)


def _find_other_weight(block: Block) -> tuple[int, float] | None:
    """The first row whose weight is neither 0 nor 1."""
    if block.weight is None:
        return None
    odd = np.flatnonzero((block.weight != 0) & (block.weight != 1))
    return (block.start + int(odd[0]), float(block.weight[odd[0]])) if odd.size else None


def _expect_given(model: BayesMixture, reading: Any, labels: Array, block: Block) -> Any:
    """Statistics of rows with known components."""
    known = replace(block, y=labels[block.rows])
    return replace(model, inference=_POINT).expect(reading, known, RowKeys(0))
