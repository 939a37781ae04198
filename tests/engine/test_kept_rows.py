"""Rows of a stream that are kept: once each, within a bound, and as moments where these suffice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Array
from mixfold.engine.kept_rows import KeptRows, keep_rows
from mixfold.engine.sources import open_source
from mixfold.models.outputs.compressed_rows import WeightedRows, compress_rows


def unknown(n: int) -> Array:
    return np.full((n, 1), np.nan)


def keep(kept: KeptRows | None, X: object, y: Array | None = None, **more: object) -> KeptRows:
    found = keep_rows(kept, open_source(X, y=y, **more), unknown)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_rows_that_come_again_add_weight(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 1))
    X[3, 1] = y[5] = np.nan
    kept = keep(None, X[:25], y[:25])
    kept = keep(kept, X[20:], y[20:], weight=np.full(20, 2.0))
    rows, outputs = kept.with_holes()
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(outputs, y)
    np.testing.assert_array_equal(kept.weight, np.repeat([1.0, 3.0, 2.0], [20, 5, 15]))
    assert kept.n_added == 40 and not kept.settled
    again = keep(kept, X[:7], y[:7])
    assert again.settled and again.n_added == 40 and len(again.X) == 40
    # another y makes another row, and weight zero makes none
    assert len(keep(kept, X[:1]).X) == 41
    assert len(keep(kept, X[:2] + 1, y[:2], weight=np.array([0.0, 1.0])).X) == 41


def test_sparse_rows_are_kept_dense_and_many_are_not_kept(rng: np.random.Generator) -> None:
    X = sparse.random_array((30, 5), density=0.3, rng=rng, format="csr")
    kept = keep(None, X)
    assert {tuple(row) for row in kept.X} == {tuple(row) for row in X.toarray()}
    wide = sparse.csr_array((3, 400_000))
    assert keep_rows(None, open_source(wide), unknown) is None


@pytest.mark.parametrize("n", [30, 400])
def test_compressed_rows_have_the_same_moments(rng: np.random.Generator, n: int) -> None:
    X, y = rng.normal(size=(n, 4)) + 1e6, rng.normal(size=(n, 2))
    X[:, 3] = 7.0
    y[::3] = np.nan
    X[5, 0] = y[7, 1] = np.nan
    weight = rng.integers(1, 4, size=n).astype(float)
    few = compress_rows(WeightedRows(X, y, weight))
    assert len(few.X) <= (n if n < 50 else 2 * (6 + 4) + 2)
    for labelled in (True, False):
        sums = []
        for rows in (WeightedRows(X, y, weight), few):
            whole = ~np.isnan(rows.X).any(axis=1)
            seen = ~np.isnan(rows.y)
            chosen = whole & (seen.all(axis=1) if labelled else ~seen.any(axis=1))
            table = np.hstack([rows.X, np.nan_to_num(rows.y)])[chosen]
            own = rows.weight[chosen]
            mean = own @ table / own.sum()
            sums.append((own.sum(), mean, (table - mean).T @ ((table - mean) * own[:, None])))
        for a, b in zip(*sums, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-5)
    np.testing.assert_array_equal(np.sort(few.X[np.isnan(few.X).any(axis=1)]), np.sort(X[[5]]))


def test_rows_are_looked_at_when_they_have_grown() -> None:
    kept = keep(None, np.arange(16.0)[:, None])
    assert kept.wants_look and kept.wants_start
    kept = kept.after_look(True)
    assert not kept.wants_look and not kept.wants_start
    assert not keep(kept, np.array([[20.0]])).wants_look
    assert keep(kept, np.array([[20.0], [21.0]])).wants_look
    assert keep(kept, np.arange(20.0, 36.0)[:, None]).wants_start
    grown = keep(kept, np.array([[20.0], [21.0]]))
    assert not grown.wants_start and keep(grown, np.array([[20.0]])).wants_start
