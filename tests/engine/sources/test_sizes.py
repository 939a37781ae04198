"""The size of a block."""

from __future__ import annotations

import pytest

from mixfold.engine.sources.sizes import block_rows, cuts


@pytest.mark.parametrize(
    ("n", "width", "rows"),
    [
        (10, 3, 1024),
        (65_536, 4, 1024),
        (200_000, 64, 3125),
        (10**6, 16, 15_625),
        (10**9, 16, 16_384),
        (10**9, 128, 8192),
        (10**6, 10**5, 256),
        (None, 16, 16_384),
        (None, 1024, 1024),
    ],
)
def test_size_of_a_block_depends_on_the_shape_only(n: int | None, width: int, rows: int) -> None:
    assert block_rows(n, width) == rows
    assert block_rows(n, width, max_rows=77) == 77


def test_cuts_cover_the_rows() -> None:
    assert list(cuts(7, 3)) == [(0, 3), (3, 6), (6, 7)]
    assert list(cuts(6, 3)) == [(0, 3), (3, 6)]
