"""What a block of rows adds to the sums that codebook and classifier are learned from."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block
from mixfold.math.softmax_regression import bound_linear_term, bound_value_and_gradient, log_losses
from mixfold.models.networks.factorization.records import Layer

# residuals that are less, as a share of all squares, are summed one by one
_FEW_DIGITS = 1e-4


def dense_rows(X: Any) -> Array:
    """The rows of a block as float64; sparse ones become dense, a block at a time."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def centred_rows(block: Block, layer: Layer) -> tuple[Array, bool]:
    """Dense rows less the bias, and whether no entry is missing."""
    centred = dense_rows(block.X) - layer.bias
    return centred, block.complete or not np.isnan(centred).any()


def row_sums(layer: Layer, F: Array, centred: Array, weight: Array, shift: Array) -> dict[str, Any]:
    """Second moments of codes and rows: of rows about the bias, then moved by ``shift``."""
    weighted = F * weight[:, None]
    gram, cross = weighted.T @ F, weighted.T @ centred
    spread = float(weight @ np.einsum("ij,ij->i", centred, centred))
    A = layer.codebook
    squares = spread + float((A * (gram[:-1, :-1] @ A - 2.0 * cross[:-1])).sum())
    if squares < _FEW_DIGITS * spread:
        residual = centred - F[:, :-1] @ A
        squares = float(weight @ np.einsum("ij,ij->i", residual, residual))
    spread += float(2.0 * cross[-1] @ shift + gram[-1, -1] * (shift @ shift))
    moved = cross + gram[:, -1:] * shift
    return {"gram": gram, "cross": moved, "squares": squares, "spread": spread}


def known_labels(layer: Layer, y: Array | None) -> Array | None:
    return None if y is None or layer.classifier is None else np.asarray(y, np.int64)


def label_sums(layer: Layer, F: Array, y: Array | None, weight: Array) -> dict[str, Any]:
    """The sums over labelled rows, zero where there are none."""
    H, C = F.shape[1], layer.head()[0].shape[1]
    none = {"known": np.zeros((H, H)), "truth": np.zeros((H, C)), "pull": np.zeros((H, C))}
    if y is None or not (y >= 0).any():
        return {**none, "loss": 0.0, "ground": 0.0}
    rows = np.flatnonzero(y >= 0)
    F, labels, weight = F[rows], y[rows], weight[rows]
    W = np.vstack(layer.head())
    losses, errors = log_losses(F @ W, labels)
    weighted = F * weight[:, None]
    known = weighted.T @ F
    truth = weighted.T @ np.eye(C)[labels]
    pull = bound_linear_term(W, known, -weighted.T @ errors)
    loss = float(weight @ losses)
    ground = loss - bound_value_and_gradient(W, known, pull)[0]
    return {"known": known, "truth": truth, "pull": pull, "loss": loss, "ground": ground}
