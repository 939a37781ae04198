"""Tables of so many columns that a covariance of all of them takes minutes or more."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import typer

WIDEST = 2000  # columns; each step costs the cube of their number, per component
_DENSE = ("full", "tied")


def check_width(n_features: int, estimator: Any, chosen: Collection[str]) -> None:
    """A usage error where nobody asked for the dense covariances of very many columns.

    ``chosen`` are the parameters that the user gave: a covariance type among them is meant.
    """
    kind = getattr(estimator, "covariance_type", None)
    if n_features <= WIDEST or kind not in _DENSE or "covariance_type" in chosen:
        return
    entries = n_features * (n_features + 1) // 2
    raise typer.BadParameter(
        f"the table has {n_features} columns: a {kind} covariance of them has {entries:,} entries "
        "and takes minutes or hours. Add --set covariance_type=diag, or use --model "
        f"mixture-of-ppca --factors 2; --set covariance_type={kind} does it all the same.",
        param_hint="FILE",
    )
