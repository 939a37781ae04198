"""Sources of rows, rows from sources, and classes, by a trained stack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, record
from mixfold.math.link_functions import Link
from mixfold.math.softmax import log_shares
from mixfold.models.networks.factorization.codes import codes
from mixfold.models.networks.factorization.records import Layer
from mixfold.models.networks.source_inference import climb_layers, settle
from mixfold.models.networks.stack import DecoderEnergy, Energy, MapEnergy, decode

# CSR rows with missing entries that are made dense at a time
FILLED_ROWS = 1024
# how sources were trained together, and so are inferred
ENERGIES: dict[str, type[MapEnergy] | type[DecoderEnergy]] = {
    "map": MapEnergy,
    "decoder": DecoderEnergy,
}


@record
@dataclass(frozen=True, slots=True)
class StackParams:
    """Layers from the data upward, with what their sources cost.

    ``reading`` is 'layers' (each layer is inferred from the one below), 'map' or 'decoder'.
    """

    layers: tuple[Layer, ...]
    link: Link
    alpha: tuple[float, ...]
    sigma2: tuple[float, ...]
    reading: str = "layers"

    def energy(self) -> Energy:
        return ENERGIES[self.reading](self.link, self.sigma2)

    def below(self, depth: int) -> StackParams:
        """The lowest ``depth`` layers only."""
        return replace(
            self,
            layers=self.layers[:depth],
            alpha=self.alpha[:depth],
            sigma2=self.sigma2[:depth],
        )


def sources_of(params: StackParams, X: Array) -> tuple[Array, ...]:
    """Sources (n, H_l) of all layers without labels; NaN in X is missing."""
    link = params.link
    found = climb_layers(params.layers, link, X, params.alpha, params.sigma2)
    if params.reading == "layers":
        return found
    energy = params.energy()
    start = [found[number] for number in energy.free(len(params.layers))]
    settled = settle(energy, params.layers, link, params.alpha, X, start)
    if params.reading == "map":
        return settled
    out = [settled[-1]]
    for layer in params.layers[:0:-1]:
        out.insert(0, link.value(out[0]) @ layer.codebook + layer.bias)
    return tuple(out)


def rows_of(params: StackParams, sources: Array, depth: int | None = None) -> Array:
    """Rows (n, D) decoded from sources of layer ``depth``, counted from 1; None is the top."""
    return decode(params.link, params.layers[:depth], sources)


def fill_missing(params: StackParams, X: Any) -> Any:
    """X with its missing entries as the first layer reconstructs them; X itself if it has none.

    In CSR rows, which stay CSR, stored NaN is missing; what is not stored is a zero that was seen.
    """
    if sparse.issparse(X):
        return _fill_stored(params, X)
    rows = np.flatnonzero(np.isnan(X).any(axis=1))
    if not rows.size:
        return X
    first = params.layers[0].without_head()
    phi = codes(first, params.link, X[rows], params.alpha[0], params.sigma2[0])
    out, some = X.copy(), X[rows]
    out[rows] = np.where(np.isnan(some), phi @ first.codebook + first.bias, some)
    return out


def _fill_stored(params: StackParams, X: Any) -> Any:
    places = np.flatnonzero(np.isnan(X.data))
    if not places.size:
        return X
    out = X.copy()
    row_of = np.searchsorted(X.indptr, places, side="right") - 1
    rows, at = np.unique(row_of, return_inverse=True)
    for i in range(0, len(rows), FILLED_ROWS):
        some = rows[i : i + FILLED_ROWS]
        filled = fill_missing(params, X[some].toarray())
        here = (at >= i) & (at < i + FILLED_ROWS)
        out.data[places[here]] = filled[at[here] - i, X.indices[places[here]]]
    return out


def class_log_probabilities(params: StackParams, top: Array) -> Array:
    """ln P(class | sources of the top layer), (n, C)."""
    weights, intercept = params.layers[-1].head()
    scores = params.link.value(top) @ weights + intercept
    return log_shares(scores)
