"""How many independent rows a table counts for, in information criteria.

A weight is a frequency: weight 2 is the row twice, and the weights add up to the number of rows.
Where that is not what weights are (they add up to one; rows are copies of each other), a criterion
weighs likelihood and parameters wrongly, and ``n_effective`` says how many rows there really are.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Pilot
from mixfold.estimators.shell.base import warn

Totals = tuple[float, float, float]
# weights that add up to more than this many times the rows are told of; where evidence chooses a
# size also those that add up to less than the rows over this
_FAR_ABOVE = 10.0
# a table with fewer different rows than this may well have each of them several times
_FEW_ROWS = 20
# a column tells rows apart if it has so many values per different row, and if of the steps in which
# its values are recorded at most so many are occupied
_NEARLY, _OCCUPIED = 0.9, 0.02


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


def warn_about_evidence(what: str, pilot: Pilot) -> None:
    """Warn where evidence decides a size: of weights that are hardly frequencies, and of tables in
    which every row is copied.

    ``what`` is the setting that lets it. Copies are looked for in tables that fit into the pilot.
    """
    weight, n_rows = pilot.total_weight, pilot.total_rows
    words = None
    if not n_rows / _FAR_ABOVE <= weight <= _FAR_ABOVE * n_rows:
        words = (
            f"the weights of the {n_rows:,} rows add up to {weight:.6g}, and {what} takes the "
            "table for so many rows: more weight favours more components, axes or factors. If the "
            "weights only say how much rows count beside each other, divide them by their mean"
        )
    elif pilot.block.n_rows == n_rows:
        words = describe_copies(hash_rows(pilot.block), None, what)
    if words is not None:
        warn(words, UserWarning)


def describe_copies(
    hashes: Array, rows: Callable[[], Array] | None, what: str | None = None
) -> str | None:
    """A sentence about rows that are copies of others; None if there are few, or if equal rows
    are what such a table has.

    Either every row occurs a multiple of some times; or most rows have an equal, and some column of
    measurements says that they cannot have met by chance (``_tells_apart``).

    Parameters
    ----------
    hashes : ndarray of shape (n,)
        Those of ``hash_rows``.
    rows : callable or None
        Gives the rows (n, D) themselves, or a sample of them. None: only tables in which every
        row occurs several times are told of.
    what : str, optional
        The setting of a fit that chooses a size; None is a search, whose criteria know
        ``n_effective``.
    """
    counts = np.unique(hashes, return_counts=True)[1]
    different = len(counts)
    if different < _FEW_ROWS:
        return None
    times = int(np.gcd.reduce(counts))
    remove = "If they are no independent rows, remove the copies"
    if what is None:
        n_effective = len(hashes) // times if times > 1 else different
        takes, advice = (
            "criteria take",
            f"find more groups. {remove}, or set n_effective={n_effective} (--n-effective on the "
            "command line)",
        )
    else:
        takes, advice = f"{what} takes", f"finds more components, axes or factors. {remove}"
    if times > 1:
        return (
            f"Every row occurs {times} times, or a multiple of that: {takes} copies for "
            f"{times} times the evidence and {advice}"
        )
    repeated = int((counts > 1).sum())
    # twice as many rows repeated as not: a few answers that many rows share (all zero) do not count
    many = repeated >= max(_FEW_ROWS, (different - repeated) / 2)
    if rows is None or not many or not _tells_apart(rows()):
        return None
    share = counts[counts > 1].sum() / len(hashes)
    return (
        f"{share:.0%} of the rows are equal to another row in every column ({different:,} of "
        f"{len(hashes):,} rows are different): {takes} copies for independent evidence and "
        f"{advice}"
    )


def _tells_apart(X: Array) -> bool:
    """Whether some column is so fine that rows which are equal in it must be copies.

    Codes and counts (whole numbers), and measurements that are recorded in few steps, repeat by
    themselves. A column that tells has another value in nearly each of the different rows, and of
    the steps in which its middle values are recorded nearly all are empty: rows that are drawn
    anew would fall between those that were seen.
    """
    different = np.unique(np.where(np.isnan(X), np.inf, X), axis=0)
    for column in different.T:
        seen = column[np.isfinite(column)]
        values = np.unique(seen)
        if len(values) < max(_FEW_ROWS, _NEARLY * len(seen)):
            continue
        middle = values[len(values) // 10 : len(values) - len(values) // 10]
        step = _step_of(middle)
        whole = bool((values == np.round(values)).all())
        if not whole and len(middle) * step <= _OCCUPIED * (middle[-1] - middle[0]):
            return True
    return False


def _step_of(values: Array) -> float:
    """The step in which rising values are recorded; 0 if they are not multiples of their least
    difference."""
    gaps = np.diff(values)
    step = float(gaps.min())
    places = gaps / step
    return step if np.allclose(places, np.round(places), rtol=0, atol=0.01) else 0.0


def _hash_sparse_rows(X: Any) -> Array:
    """Sums of a number for each entry that is not zero, by its column and value."""
    values = np.where(np.isnan(X.data), np.inf, X.data).astype(np.float64)
    places = (X.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03)
    mixed = (values.view(np.uint64) ^ places) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed[values == 0] = 0
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def hash_rows(block: Block) -> Array:
    """A number for each row of positive weight, the same for the same entries."""
    X = block.X if block.weight is None else block.X[np.flatnonzero(block.weight > 0)]
    if sparse.issparse(X):
        return _hash_sparse_rows(X.tocsr())
    X = np.ascontiguousarray(np.where(np.isnan(X), np.inf, X) + 0.0, dtype=np.float64)
    hashed = np.zeros(len(X), np.uint64)
    for column in X.view(np.uint64).T:
        hashed = (hashed ^ column) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(29)
    return hashed
