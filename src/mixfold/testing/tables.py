"""Small asymmetric tables and components for laws, so that errors do not cancel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from mixfold.contracts import Array
from mixfold.families.gaussian import GaussianFamily, GaussianParams
from mixfold.math.frame import Frame


def clustered_table(
    n: int = 150,
    n_features: int = 3,
    n_clusters: int = 3,
    missing: float = 0.0,
    dtype: DTypeLike = np.float64,
    seed: int = 0,
) -> Array:
    """Overlapping clusters of unequal size and shape in columns of unequal units.

    A share ``missing`` of the entries is NaN; a few rows then lack every entry.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.dirichlet(np.arange(1, n_clusters + 1) * 4.0)
    labels = rng.choice(n_clusters, n, p=sizes)
    centres = 3 * rng.standard_normal((n_clusters, n_features))
    mixing = rng.standard_normal((n_clusters, n_features, n_features)) / 2 + np.eye(n_features)
    noise = np.einsum("nde,ne->nd", mixing[labels], rng.standard_normal((n, n_features)))
    units = 2.0 ** np.arange(n_features) / 2
    X = (centres[labels] + noise) * units + 5 * np.arange(n_features)
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
        X[[n // 3, n // 2]] = np.nan
    return np.asarray(X, dtype)


def typical_components(
    family: GaussianFamily, n_components: int, n_features: int, seed: int = 0, **frame: Any
) -> GaussianParams:
    """Components of a Gaussian family with nothing symmetric about them.

    ``frame`` may give ``origin`` and ``scale``; spheres keep one scale for all columns.
    """
    rng = np.random.default_rng(seed)
    origin = np.asarray(frame.get("origin", rng.normal(size=n_features) * 10))
    scale = np.asarray(frame.get("scale", rng.uniform(0.5, 3.0, n_features)))
    shape = family.scatter_shape(n_components, n_features)
    if family.matrix:
        roots = rng.standard_normal(shape) / 2 + np.eye(n_features)
        scatter = roots @ np.swapaxes(roots, -1, -2) + 0.1 * np.eye(n_features)
    else:
        scatter = np.asarray(rng.uniform(0.2, 2.0, shape))
    if n_features not in family.scatter_shape(-1, n_features):
        scale = np.full(n_features, scale[0])
    return GaussianParams(
        Frame(origin, scale), rng.normal(size=(n_components, n_features)), scatter
    )
