"""Probabilistic clustering and dimensionality reduction for real tables.

The public names are imported when they are first used, so that ``mixfold --help`` and the workers
of a cluster start quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixfold.estimators.base import DegenerateWarning as DegenerateWarning
    from mixfold.estimators.gaussian_mixture import GaussianMixture as GaussianMixture
    from mixfold.estimators.kmeans import KMeans as KMeans
    from mixfold.store import load as load

__version__ = "0.1.0"

_HOMES = {
    "DegenerateWarning": "mixfold.estimators.base",
    "GaussianMixture": "mixfold.estimators.gaussian_mixture",
    "KMeans": "mixfold.estimators.kmeans",
    "load": "mixfold.store",
}

__all__ = ["DegenerateWarning", "GaussianMixture", "KMeans", "load"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mixfold' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
