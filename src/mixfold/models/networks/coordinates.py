"""The coordinates in which a network is trained: rows near zero, in a common unit.

Steps down a gradient, and l2, depend on units: rows in millionths would need weights that no
penalty allows, rows far from zero weights that cancel. One unit for all columns keeps their order
of importance, which codebooks have, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array
from mixfold.math.frame import Frame, frame_of, uniform
from mixfold.models.networks.records import Network

# standard deviations in a unit, about: that of pixels between 0 and 1 is a quarter, and l2 means
# for any rows what it means for those
DEVIATIONS = 4.0
# rows that are moved at once
TILE = 4096


def coordinates_of(X: Any, weight: Array) -> Frame:
    """Means of the columns and one unit for all of them; NaN is missing.

    Columns that reach zero, or change sign, stay about zero: so sparse rows stay sparse, and are
    seen as dense ones are.
    """
    if sparse.issparse(X):
        variance = _sparse_variances(X, weight)
        varies = variance > 0
        scale = np.sqrt(variance[varies].mean()) if varies.any() else 1.0
        return Frame(np.zeros(X.shape[1]), np.full(X.shape[1], _unit(scale)))
    frame = uniform(frame_of(X, weight))
    reaches = (X <= 0).any(axis=0) & (X >= 0).any(axis=0)
    unit = _unit(float(frame.scale[0]))
    return Frame(np.where(reaches, 0.0, frame.origin), np.full(X.shape[1], unit))


def _unit(deviation: float) -> float:
    """A power of two: entries keep all their digits."""
    return float(2.0 ** np.round(np.log2(DEVIATIONS * deviation)))


def _sparse_variances(X: Any, weight: Array) -> Array:
    share = weight / weight.sum()
    mean = np.asarray(share @ X).ravel()
    squares = np.asarray(share @ X.multiply(X)).ravel()
    rounding = 64 * np.finfo(float).eps * squares
    return np.where(squares - mean**2 > rounding, squares - mean**2, 0.0)


def rows_in_frame(frame: Frame, X: Any, dtype: np.dtype[np.floating]) -> Any:
    """Rows in these coordinates, a few at a time: no second table in double precision."""
    if sparse.issparse(X):
        return (X / frame.scale[0]).astype(dtype)
    out = np.empty(X.shape, dtype)
    for i in range(0, len(X), TILE):
        out[i : i + TILE] = frame.enter(X[i : i + TILE])
    return out


def network_in_data_units(frame: Frame, network: Network) -> Network:
    """The network that says of rows what this one says of rows in the coordinates."""
    first = network.weights[0] / frame.scale[:, None]
    bias = network.biases[0] - frame.origin @ first
    return Network((first, *network.weights[1:]), (bias, *network.biases[1:]), network.units)
