"""The law of models that remember rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Context, Stats
from mixfold.engine.executors.reduction import tree_sum
from mixfold.engine.executors.row_memory import HeldRows, KnownRows, LocalParts
from mixfold.testing.case import Case, with_complete_flag
from mixfold.testing.compare import require, require_same
from mixfold.testing.shrinking import shrinks

LAW = "memory of rows"


@shrinks
def remembered_rows(case: Case, n_steps: int = 4) -> None:
    """What is remembered of a row does not depend on the block that it came in.

    Statistics and steps do not either, and a pass at other parameters that is not accepted changes
    nothing. Models that remember nothing keep this law by that.
    """
    if not getattr(case.model, "remembers_rows", False):
        return
    whole = case.block
    wanted = _run(case, [whole], n_steps)
    rng = np.random.default_rng(case.seed)
    inner = np.sort(rng.choice(np.arange(2, whole.n_rows), whole.n_rows // 4, replace=False))
    for cuts in (np.linspace(0, whole.n_rows, 4).astype(int), [0, 1, *inner, whole.n_rows]):
        blocks = [with_complete_flag(whole.part(a, b)) for a, b in pairwise(cuts)]
        found = _run(case, blocks, n_steps)
        for step, (one, other) in enumerate(zip(found, wanted, strict=True)):
            what = f"of {len(blocks)} blocks in step {step}"
            require_same(LAW, one[0], other[0], 100 * case.rtol, f"statistics {what}")
            same_kind = (one[1] is None) == (other[1] is None)
            require(same_kind, LAW, f"rows {what} are remembered in one cutting only")
            if one[1] is not None and other[1] is not None:
                require_same(LAW, one[1], other[1], 100 * case.rtol, f"rows {what}")


def _run(case: Case, blocks: list[Block], n_steps: int) -> list[tuple[Stats, Array | None]]:
    """Statistics and what is remembered of all rows, of each step."""
    model: Any = case.model
    memory = HeldRows(0, sum(block.n_rows for block in blocks))
    params, state, found = case.start(), None, []
    before = None
    for step in range(n_steps):
        if before is not None:  # at parameters that the fit has left: not accepted
            _pass(case, before, blocks, memory, state)
            require(memory.state is state, LAW, f"step {step}: a pass counts before it is accepted")
        stats = _pass(case, params, blocks, memory, state)
        memory.accept()
        state = memory.state
        found.append((stats, None if state is None else state.values.copy()))
        rows = None if state is None else LocalParts(state.split())
        rng = np.random.default_rng([case.seed, step])
        context = Context(case.pilot(), rng, step + 1, rows=rows)
        before, params = params, model.update(params, stats, context).params
    return found


def _pass(
    case: Case, params: Any, blocks: list[Block], memory: HeldRows, state: KnownRows | None
) -> Any:
    model: Any = case.model
    memory.resume(state)
    reading = model.prepare(params)
    return tree_sum(model.expect(reading, block, case.keys, memory) for block in blocks)
