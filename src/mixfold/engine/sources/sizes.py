"""How many rows a block has. Depends on the data's shape only, never on the number of threads."""

from __future__ import annotations

from collections.abc import Iterator

# A pass makes about 64 blocks: enough for threads to share evenly, few enough to schedule.
_BLOCKS, _LEAST, _MOST = 64, 1024, 16384
# Entries of a block (8 MB in double precision), unless that would leave it very few rows.
_ENTRIES, _FLOOR = 2**20, 256


def block_rows(n_samples: int | None, width: float, max_rows: int | None = None) -> int:
    """Rows of a block.

    Parameters
    ----------
    n_samples : int or None
        Rows of the data set; None when a stream has not been counted.
    width : float
        Numbers stored per row.
    max_rows : int, optional
        Overrides everything else.

    Returns
    -------
    int

    Examples
    --------
    >>> from mixfold.engine.sources.sizes import block_rows
    >>> block_rows(1_000_000, 16), block_rows(1_000_000, 10_000), block_rows(10, 3, max_rows=4)
    (15625, 256, 4)
    """
    if max_rows is not None:
        if max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {max_rows}")
        return int(max_rows)
    rows = _MOST if n_samples is None else min(max(-(-n_samples // _BLOCKS), _LEAST), _MOST)
    return min(rows, max(_FLOOR, int(_ENTRIES / max(width, 1.0))))


def cuts(n_samples: int, rows: int) -> Iterator[tuple[int, int]]:
    """First and last row of each block."""
    for first in range(0, n_samples, rows):
        yield first, min(first + rows, n_samples)
