"""The rows of a block as the views take them: complete, and in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.models.factors.spectral_sums import MissingEntries


def whole_rows(block: Block) -> Any:
    """Rows (n, D), dense or CSR, of float64: products lose too many digits in float32."""
    if not block.complete:
        raise MissingEntries(
            f"X has missing entries (NaN), the first in rows {block.rows.start} to "
            f"{block.rows.stop - 1}, but kernels need complete rows; fill them first, by "
            "mixfold.PPCA(...).fit(X).impute(X) say"
        )
    return block.X.astype(np.float64, copy=False)


def outputs_of(block: Block) -> Array:
    """Outputs (n, L) beside the rows; none if nothing stands there."""
    return np.zeros((block.n_rows, 0)) if block.y is None else np.asarray(block.y, np.float64)
