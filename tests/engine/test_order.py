"""Whether batches are samples of the same rows: the test and its error rate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import hypergeom

from mixfold.contracts import Block
from mixfold.engine.order import (
    ERROR,
    OrderCheck,
    Shift,
    Tally,
    _log_chance,
    begin_check,
    look_at_batch,
    tally,
)
from mixfold.engine.sources import open_source


def run(X, size, weight=None) -> tuple[OrderCheck, Shift | None, int]:
    """The check after all rows, what it has found, and after how many rows."""
    check = None
    for first in range(0, X.shape[0], size):
        part = X[first : first + size]
        w = None if weight is None else weight[first : first + size]
        check = check or begin_check(open_source(part, weight=w))
        dense = not sparse.issparse(part)
        block = Block(part, weight=w, complete=dense and not np.isnan(part).any())
        check, shift = look_at_batch(check, tally(check, block))
        if shift is not None:
            return check, shift, first + size
    return check, None, X.shape[0]


def test_the_bound_is_one_of_the_exact_probability():
    """Of a draw without replacement, which is what the last rows are; in both directions."""
    for n1, n2, k in ((200, 40, 90), (500, 7, 13), (30, 30, 30), (1000, 200, 3)):
        for k2 in range(max(0, k - n1), min(n2, k) + 1):
            before, last = (Tally(np.array([a]), np.array([b])) for a, b in (
                (float(k - k2), float(n1)), (float(k2), float(n2))
            ))  # fmt: skip
            law = hypergeom(n1 + n2, k, n2)
            # the side on which it is, doubled as both are looked at
            exact = 2 * (law.sf(k2 - 1) if k2 / n2 >= k / (n1 + n2) else law.cdf(k2))
            assert np.exp(_log_chance(before, last)[0]) >= exact * (1 - 1e-9)


@pytest.mark.parametrize("size", [5, 40, 300])
def test_rows_in_random_order_are_hardly_ever_said_to_be_in_another(size):
    """Six standard errors above the error rate, for columns of all kinds."""
    found, n_streams = 0, 600
    for seed in range(n_streams):
        rng = np.random.default_rng(seed)
        n = 1200
        X = np.column_stack(
            [
                rng.normal(size=n),
                rng.lognormal(0, 3, n),
                rng.poisson(0.02, n),
                rng.integers(0, 2, n),
                8 * rng.integers(0, 3, n) + rng.normal(size=n),
                np.where(rng.random(n) < 0.3, np.nan, rng.standard_t(2, n)),
            ]
        )
        found += run(X, size)[1] is not None
    assert found <= n_streams * ERROR + 6 * np.sqrt(n_streams * ERROR)


@pytest.mark.parametrize("size", [5, 40, 300])
def test_sorted_rows_are_noticed_soon(size):
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 600)
    X = np.column_stack([rng.normal(size=1800), 8 * group + rng.normal(size=1800)])
    check, shift, rows = run(X, size)
    assert shift is not None and shift.column == 1 and check.noticed
    assert 600 < rows <= 600 + max(150, 2 * size)
    # what is told is what was there
    first = X[: shift.before[1], 1] > shift.level
    assert shift.before[0] == first.sum()
    last = X[shift.before[1] : rows, 1] > shift.level
    assert shift.last == (last.sum(), last.size)


def test_a_slow_drift_is_noticed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 1)) + np.linspace(0, 1, 5000)[:, None]
    assert run(X, 50)[1] is not None


def test_a_late_change_is_noticed_after_a_long_stream():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20000, 1)), 3 + rng.normal(size=(2600, 1))])
    _, shift, rows = run(X, 100)
    assert shift is not None and rows <= 20000 + 1000


def test_sparse_rows_are_counted_as_dense_ones():
    rng = np.random.default_rng(1)
    X = rng.poisson(rng.gamma(0.5, 2, 7), (300, 7)).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    weight = rng.integers(0, 3, 300).astype(float)
    check = begin_check(open_source(sparse.csr_array(np.nan_to_num(X[:90]))))
    dense = tally(check, Block(X, weight=weight, complete=False))
    kept = np.where(np.isnan(X) | (X != 0), X, 0.0)
    stored = sparse.csr_array(kept)
    other = tally(check, Block(stored, weight=weight, complete=False))
    np.testing.assert_array_equal(dense.above, other.above)
    np.testing.assert_array_equal(dense.seen, other.seen)
    # whatever they weigh, rows that count do so once
    used = X[weight > 0]
    np.testing.assert_array_equal(dense.seen, (~np.isnan(used)).sum(axis=0))


def test_levels_halve_columns_of_two_values():
    X = np.column_stack([np.r_[np.zeros(30), np.ones(70)], np.r_[np.zeros(70), np.ones(30)]])
    check = begin_check(open_source(X))
    np.testing.assert_array_equal(tally(check, Block(X)).above, [70, 30])


def test_statistics_of_blocks_add_up():
    X = np.random.default_rng(0).normal(size=(100, 3))
    check = begin_check(open_source(X))
    parts = tally(check, Block(X[:37])) + tally(check, Block(X[37:]))
    np.testing.assert_array_equal(parts.above, tally(check, Block(X)).above)
