"""How many independent rows a table counts for, in information criteria.

A weight is a frequency: weight 2 is the row twice, and the weights add up to the number of rows.
Where that is not what weights are (they add up to one; rows are copies of each other), a criterion
weighs likelihood and parameters wrongly, and ``n_effective`` says how many rows there really are.
"""

from __future__ import annotations

from numbers import Real

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.estimators.shell.base import warn
from mixfold.families.component import dense_rows

Totals = tuple[float, float, float]
# weights that add up to more than this many times the rows are told of
_FAR_ABOVE = 10.0
# a table with fewer different rows than this may well have each of them several times
_FEW_ROWS = 20


def effective_totals(totals: Totals, n_effective: float | None) -> Totals:
    """Log-likelihood, weight and entropy of rows that are worth ``n_effective`` rows.

    Raises
    ------
    ValueError
        If ``n_effective`` is not a number above one.
    """
    total, weight, entropy = totals
    if n_effective is None:
        return totals
    if isinstance(n_effective, bool) or not isinstance(n_effective, Real) or not n_effective > 1:
        raise ValueError(
            "n_effective is the number of independent rows that the table is worth, a number "
            f"above 1; got {n_effective!r}"
        )
    ratio = float(n_effective) / weight
    return total * ratio, float(n_effective), entropy * ratio


def parameter_cost(weight: float) -> float:
    """What BIC charges for a parameter: ln N, with a warning where that is nothing or less."""
    if weight <= 1:
        warn(
            f"the weights of the rows add up to {weight:.3g}, and BIC takes them for so many rows, "
            "for which parameters cost nothing; give weights that say how often a row counts, or "
            "n_effective, the number of independent rows",
            UserWarning,
        )
    return float(np.log(weight))


def describe_weight(weight: float, n_rows: int) -> str | None:
    """A sentence about weights that are hardly frequencies; None if they may be."""
    if n_rows <= weight * (1 + 1e-9) and weight <= _FAR_ABOVE * n_rows:
        return None
    return (
        f"The weights of the {n_rows:,} rows add up to {weight:.6g}, and criteria take the table "
        "for so many rows: more weight favours more groups, next to none favours them, too. If the "
        f"weights only say how much rows count beside each other, set n_effective={n_rows} "
        "(--n-effective on the command line)"
    )


def describe_copies(hashes: Array) -> str | None:
    """A sentence about a table in which every row occurs several times; None if it is not so.

    ``hashes`` (n,) are those of ``hash_rows``.
    """
    counts = np.unique(hashes, return_counts=True)[1]
    times = int(np.gcd.reduce(counts)) if len(counts) else 1
    if times < 2 or len(counts) < _FEW_ROWS:
        return None
    n = len(hashes) // times
    return (
        f"Every row occurs {times} times, or a multiple of that: criteria take copies for "
        f"{times} times the evidence and find more groups. If they are no independent rows, remove "
        f"the copies, or set n_effective={n} (--n-effective on the command line)"
    )


def hash_rows(block: Block) -> Array:
    """A number for each row of positive weight, the same for the same entries."""
    X = dense_rows(block.X)
    X = X if block.weight is None else X[block.weight > 0]
    X = np.ascontiguousarray(np.where(np.isnan(X), np.inf, X) + 0.0, dtype=np.float64)
    hashed = np.zeros(len(X), np.uint64)
    for column in X.view(np.uint64).T:
        hashed = (hashed ^ column) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(29)
    return hashed
