"""Laws of rows: any split, any order, weights, repetition, labels."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import islice, pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from mixfold.contracts import Array, Block
from mixfold.testing.case import Case, with_complete_flag
from mixfold.testing.compare import require, require_same
from mixfold.testing.shrinking import shrinks


@shrinks
def block_invariance(case: Case, n_steps: int = 2) -> None:
    """1, 7 or many uneven blocks, in any order: the same statistics and the same step."""
    params, whole = case.after(n_steps), case.block
    wanted = case.stats(params, whole)
    step = case.update(params, wanted).params
    rng = np.random.default_rng(case.seed)
    for cuts in _cuts(whole.n_rows, rng):
        blocks = [with_complete_flag(whole.part(a, b)) for a, b in pairwise(cuts)]
        parts = [case.stats(params, block) for block in blocks]
        for order in (np.arange(len(parts)), rng.permutation(len(parts))):
            total = reduce(lambda a, b: a + b, [parts[i] for i in order])
            what = f"statistics of {len(parts)} blocks"
            require_same("block invariance", total, wanted, case.rtol, what)
            again = case.update(params, total).params
            require_same("block invariance", again, step, 100 * case.rtol, f"step after {what}")


def _cuts(n_rows: int, rng: np.random.Generator) -> list[Array]:
    inner = rng.choice(np.arange(2, n_rows), min(n_rows // 4, 40), replace=False)
    uneven = np.concatenate([[0, 1], np.sort(inner), [n_rows]])  # the first block is one row
    return [np.array([0, n_rows]), np.linspace(0, n_rows, 8).astype(int), uneven]


@shrinks
def zero_weight_is_absence(case: Case, n_steps: int = 2) -> None:
    """Rows of weight zero change nothing, whatever they hold."""
    block = case.block
    gone = np.random.default_rng(case.seed).random(block.n_rows) < 0.3
    weight = np.where(gone, 0.0, block.weights())
    X = block.X
    if not sparse.issparse(X):
        X = X.copy()
        X[gone] = X[gone][:, ::-1] * 3  # finite, but not what the model has seen
    with_zeros = with_complete_flag(replace(block, X=X, weight=weight))
    without = _rows(block, np.flatnonzero(~gone))
    _same_lesson("weight zero is absence", case, n_steps, with_zeros, without)
    start_with = replace(case, X=with_zeros.X, weight=weight)
    start_without = replace(case, X=without.X, weight=without.weight, y=without.y)
    require_same(
        "weight zero is absence",
        start_with.start(), start_without.start(), case.rtol, "start",
    )  # fmt: skip


@shrinks
def weight_two_is_repetition(case: Case, n_steps: int = 2) -> None:
    """A row of weight two is the row twice, in the statistics and in the start."""
    block = case.block
    twice = np.random.default_rng(case.seed).random(block.n_rows) < 0.4
    weight = block.weights() * np.where(twice, 2.0, 1.0)
    heavy = replace(block, weight=weight)
    repeated = _rows(block, np.repeat(np.arange(block.n_rows), np.where(twice, 2, 1)))
    law = "weight two is repetition"
    _same_lesson(law, case, n_steps, heavy, repeated)
    weighted = replace(case, weight=weight).start()
    doubled = replace(case, X=repeated.X, weight=repeated.weight, y=repeated.y).start()
    require_same(law, weighted, doubled, case.rtol, "start")


@shrinks
def labels_clamp(case: Case, n_labels: int, n_steps: int = 2, n_rows: int = 5) -> None:
    """Summed over what a label may be, the joint density of row and label is that of the row.

    And a row whose latents are known has no entropy.
    """
    # without weights: a weight multiplies the logarithm of a density
    params, block = case.after(n_steps), replace(case.block, y=None, weight=None)
    unknown = np.full(block.n_rows, -1)
    open_labels = case.stats(params, replace(block, y=unknown))
    require_same("label -1 is no label", open_labels, case.stats(params, block), case.rtol)
    singles = (with_complete_flag(block.part(row, row + 1)) for row in range(block.n_rows))
    # a row with nothing observed says nothing, whatever its label
    weighing = (one for one in singles if case.model.total_weight(case.stats(params, one)) > 0)
    for one in islice(weighing, n_rows):
        free = case.objective(params, one)
        joint = [_objective_with_label(case, params, one, label) for label in range(n_labels)]
        gap = abs(float(logsumexp(joint)) - free)
        message = f"row {one.start}: labels sum to {logsumexp(joint):.12g}, without one {free:.12g}"
        require(gap <= case.rtol * max(1.0, abs(free)), "labels clamp", message)


def _objective_with_label(case: Case, params: Any, one: Block, label: int) -> float:
    stats = case.stats(params, replace(one, y=np.array([label])))
    entropy = case.model.entropy(stats)
    require(entropy == 0, "labels clamp", f"the entropy of a labelled row is {entropy}")
    return case.model.objective(params, stats)


def _same_lesson(law: str, case: Case, n_steps: int, one: Block, other: Block) -> None:
    params = case.after(n_steps)
    a, b = case.stats(params, one), case.stats(params, other)
    require_same(law, a, b, case.rtol, "statistics")
    step, wanted = case.update(params, a).params, case.update(params, b).params
    require_same(law, step, wanted, 100 * case.rtol, "step")


def _rows(block: Block, index: Array) -> Block:
    return with_complete_flag(
        replace(
            block,
            X=block.X[index],
            y=None if block.y is None else block.y[index],
            weight=None if block.weight is None else block.weight[index],
        )
    )
