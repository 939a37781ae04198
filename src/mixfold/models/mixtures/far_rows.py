"""Shares of rows that are far from all components.

The log density of a row 1e8 standard deviations away is -5e15, and a double of that size has no
digit left for the log odds of two components, which may be 0.3. For such rows the odds are made of
differences of the parameters (``log_ratios`` of a family) and kept apart from the density.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.component import ComponentFamily, dense_rows


def separate_far_rows(
    family: ComponentFamily, block: Block, reading: Any, log_weights: Array, log_joint: Array
) -> tuple[Array, Array]:
    """log pi_k p(x_n | k) (n, K) less a number of each row, and that number (n,), which is 0 for
    all rows but those far away."""
    base = np.zeros(len(log_joint))
    least = family.trust(reading, block.X.dtype).least
    if least == -np.inf:
        return log_joint, base
    far = np.flatnonzero(~(log_joint.max(axis=1) > least))
    if not far.size:
        return log_joint, base
    X = np.asarray(dense_rows(block.X[far]), dtype=float)
    rows = Block(X, complete=block.complete)
    with np.errstate(over="ignore", invalid="ignore"):
        ratios, reference = _log_odds(family, rows, reading, log_weights, log_joint[far])
        scores = family.scores(rows, reading).log_density + log_weights
    log_joint = log_joint.copy()
    log_joint[far] = ratios
    base[far] = np.nan_to_num(scores[np.arange(len(far)), reference], nan=-np.inf, neginf=-np.inf)
    return log_joint, base


def _log_odds(
    family: ComponentFamily, rows: Block, reading: Any, log_weights: Array, log_joint: Array
) -> tuple[Array, Array]:
    """Log odds (n, K) against the most probable component of each row, and which that is (n,)."""
    ratios = np.empty_like(log_joint)
    reference = np.argmax(np.nan_to_num(log_joint, nan=-np.inf), axis=1)
    reference[log_weights[reference] == -np.inf] = np.argmax(log_weights)
    open_rows = np.arange(len(ratios))
    for _ in log_weights:  # the component that seemed best may not be
        for k in np.unique(reference[open_rows]):
            mine = open_rows[reference[open_rows] == k]
            part = replace(rows, X=rows.X[mine])
            ratios[mine] = family.log_ratios(part, reading, int(k))
            ratios[mine] += log_weights - log_weights[k]
        best = np.argmax(np.nan_to_num(ratios, nan=-np.inf, posinf=np.inf), axis=1)
        better = ratios[np.arange(len(best)), best] > 0
        open_rows = np.flatnonzero(better & (best != reference))
        if not open_rows.size:
            break
        reference[open_rows] = best[open_rows]
    return ratios, reference
