"""Records as a few arrays, and back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold import store
from mixfold.contracts import Array, record
from mixfold.engine.stacked import Stacked, stack_records, unstack_records
from mixfold.testing.compare import require_same


@record
@dataclass(frozen=True, slots=True)
class StackedInner:
    counts: Array
    name: str = "a"


@record
@dataclass(frozen=True, slots=True)
class StackedOuter:
    means: Array
    inner: tuple[StackedInner, ...]
    alpha: float
    n: int
    flag: bool
    nothing: Array | None = None


SHARED = np.arange(3.0)


def _records(n: int, ragged: bool) -> tuple[StackedOuter, ...]:
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 4, n) if ragged else np.full(n, 2)
    return tuple(
        StackedOuter(
            rng.normal(size=(k, 3)).astype(np.float32),
            (StackedInner(rng.integers(0, 9, k)), StackedInner(SHARED, "".join(["b", "c"]))),
            float(rng.normal()), i, bool(i % 2),
        )
        for i, k in enumerate(sizes.tolist())
    )  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 2, 30])
@pytest.mark.parametrize("ragged", [False, True])
def test_records_come_back_from_a_file_in_all_bits(n: int, ragged: bool, tmp_path: Path) -> None:
    records = _records(n, ragged)
    stored = stack_records(records)
    store.write(tmp_path / "file", "example", stored)
    back = unstack_records(store.read(tmp_path / "file"))
    require_same("records", back, records)
    if n == 30:
        assert isinstance(stored[0], Stacked)
        assert len(store.describe(tmp_path / "file")["arrays"]) < 20
        # what all share is not repeated
        assert sum(column is None for column in stored[0].columns) == 4
        for one, same in zip(back, records, strict=True):
            assert one.means.dtype == np.float32 and one.means.shape == same.means.shape
            assert type(one.alpha) is float and type(one.n) is int and type(one.flag) is bool


@pytest.mark.parametrize(
    "other",
    [
        {"means": np.zeros(3)},  # another number of dimensions
        {"means": np.zeros((2, 3))},  # another type
        {"nothing": SHARED},
        {"inner": ()},
        {"inner": (StackedInner(SHARED, "x"), StackedInner(SHARED, "bc"))},  # another word
        {"alpha": np.array(1.0)},
    ],
)
def test_records_of_several_makes_stay_as_they_are(other: Any) -> None:
    first, second, *_ = _records(5, False)
    records = (first, second, type(first)(**{**{f: getattr(first, f) for f in first.__slots__}, **other}))  # fmt: skip  # noqa: E501
    assert stack_records(records) == records
    require_same("records", unstack_records(stack_records(records)), records)
