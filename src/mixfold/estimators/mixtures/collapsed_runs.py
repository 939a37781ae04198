"""Chains of the collapsed sampler: rows gathered in memory, sweeps, what is kept of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from mixfold.contracts import Array, Block, Source
from mixfold.engine.chain import Chain, Sweeps, Watcher, run_chain
from mixfold.engine.random import RowKeys
from mixfold.engine.state import Task
from mixfold.models.mixtures.bayes_mixture import BayesMixture
from mixfold.models.mixtures.collapsed import CollapsedSampler
from mixfold.models.mixtures.urns.urn import MOST_ENTRIES

# apart from the streams of starts, of blocked chains and of partitions
_STREAM = 11
# rows that are scored together
_ROWS = 4096


def run_collapsed_chain(
    task: Task,
    sweeps: Sweeps,
    number: int,
    watch: Watcher | None = None,
    *,
    process: bool,
    proposals: int = 0,
) -> Chain:
    """One chain, from the start that a blocked chain has.

    Parameters
    ----------
    task : Task
        Its model is a ``BayesMixture``, its source small enough to be held.
    sweeps : Sweeps
    number : int
        Of the chain: each has random numbers of its own.
    watch : callable, optional
    process : bool
        Whether there is any number of clusters: a Dirichlet process.
    proposals : int
        Splits and mergers that are proposed in each sweep.

    Raises
    ------
    ValueError
        If the rows cannot be gathered, or the family cannot be integrated out.
    """
    model = task.model
    assert isinstance(model, BayesMixture) and task.pilot is not None
    block = gather_rows(task.source)
    sampler = CollapsedSampler(model, block, task.pilot, process=process, proposals=proposals)

    def step(sweep: int, keep: bool) -> tuple[Any, Array | None, Array]:
        rng = np.random.default_rng([task.seed % 2**63, number, sweep, _STREAM])
        sampler.sweep(rng)
        if not keep:
            return None, None, sampler.summarise_sweep()
        return sampler.params(), sampler.draw_labels(rng), sampler.summarise_sweep()

    sampler.start(_first_labels(task, block, number))
    return run_chain(step, sweeps, number, watch)


def _first_labels(task: Task, block: Block, number: int) -> Array:
    """Where the rows are in the first E step of a blocked chain: n_components clusters or less."""
    model: Any = task.model
    rng = np.random.default_rng([task.seed % 2**63, number, 4])
    reading = model.prepare(model.initialise(task.pilot, rng, number))
    keys = RowKeys(task.seed, 0, _STREAM + number)
    parts = (block.part(i, i + _ROWS) for i in range(0, block.n_rows, _ROWS))
    return np.concatenate([model.draw_assignments(reading, part, keys) for part in parts])


def gather_rows(source: Source, most: int = MOST_ENTRIES) -> Block:
    """All rows of a source as one block; sparse ones stay sparse.

    Raises
    ------
    ValueError
        If their number is not known, or there are more than ``most`` (stored) entries.
    """
    rule = "inference='collapsed' visits the rows one by one and holds them in memory"
    remedy = "Fit a sample of the rows, or use inference='gibbs' or 'vb', which read blocks"
    n_rows = source.n_samples
    if n_rows is None:
        name = type(source).__name__
        raise ValueError(f"{rule}, and {name} does not say how many there are. {remedy}")
    blocks, entries = [], 0
    for block in source.blocks():
        sparse = issparse(block.X)
        entries = entries + block.X.nnz if sparse else n_rows * source.n_features
        if entries > most:
            raise ValueError(
                f"{rule}: they may have {most} {'stored ' if sparse else ''}entries, got {n_rows} "
                f"x {source.n_features}{' with more than that' if sparse else ''}. {remedy}"
            )
        blocks.append(block)
    return _join_blocks(blocks)


def _join_blocks(blocks: list[Block]) -> Block:
    X = [block.X for block in blocks]
    labels = [block.y for block in blocks if block.y is not None]
    weighed = any(block.weight is not None for block in blocks)
    return Block(
        vstack(X, format="csr") if issparse(X[0]) else np.concatenate(X),
        y=np.concatenate(labels) if labels else None,
        weight=np.concatenate([block.weights() for block in blocks]) if weighed else None,
        complete=all(block.complete for block in blocks),
    )
