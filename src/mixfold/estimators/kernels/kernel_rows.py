"""Rows that a kernel can take: complete, a square matrix of products, nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Source
from mixfold.estimators.kernels.kernel_choice import check_square
from mixfold.models.factors.spectral_sums import MissingEntries
from mixfold.models.kernels.known import Collected


def knows_its_kernel(model: Any) -> bool:
    """Whether k(x, x) can be computed."""
    return bool(model.kernel != "precomputed")


@contextmanager
def complete_entries() -> Iterator[None]:
    """Say what to do about missing entries."""
    try:
        yield
    except MissingEntries as error:
        raise ValueError(
            f"X contains NaN ({error}), and a kernel needs complete rows. Fill them first, for "
            "example by mixfold.PPCA(n_components).fit(X).impute(X)."
        ) from None


def checked_square(rows: Collected) -> Collected:
    """A kernel matrix among rows of positive weight."""
    G = rows.X
    if len(rows.chosen) == G.shape[1]:
        G = G[:, rows.chosen]
    check_square(G)
    return Collected(G, rows.weight, rows.chosen, rows.total)


def own_rows(X: Any, source: Source) -> Any:
    """Rows that nobody else can change."""
    if sparse.issparse(X):
        return X
    views = X.base is not None or X is getattr(source, "_X", None)
    return np.array(X, order="C") if views else X
