"""What is remembered of each row from pass to pass: codes, and what is wanted beside them.

A row of the memory is [codes (H), length of the next step, label, weight]; the length only for
rules that make steps, the label (-1: unknown) and its weight only where there is a classifier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.math.softmax_regression import LabelledRows
from mixfold.models.networks.factorization.records import Layer


@dataclass(frozen=True, slots=True)
class KnownCodes:
    """Codes (n, H) of the last pass, and the length of the next step of each row (n,) or None."""

    phi: Array
    steps: Array | None


def pack_codes(
    layer: Layer, phi: Array, steps: Array | None, y: Array | None, weight: Array
) -> Array:
    """What is to be remembered of rows, (n, width)."""
    columns = [phi] if steps is None else [phi, steps]
    if layer.classifier is not None:
        columns += [np.full(len(phi), -1.0) if y is None else y, weight]
    return phi if len(columns) == 1 else np.column_stack(columns)


def unpack_codes(layer: Layer, known: Array | None) -> KnownCodes | None:
    """The codes, and steps if there are any."""
    if known is None:
        return None
    H = layer.n_codes
    stepping = known.shape[1] > H + (0 if layer.classifier is None else 2)
    return KnownCodes(known[:, :H], known[:, H] if stepping else None)


def select_labelled(n_codes: int, known: Array) -> LabelledRows:
    """Of rows that are remembered those with a label that counts."""
    labels, weight = known[:, -2].astype(np.int64), known[:, -1]
    rows = np.flatnonzero((labels >= 0) & (weight > 0))
    return LabelledRows(known[rows, :n_codes], labels[rows], weight[rows])
