"""Rows of a matrix as small images: their shape, how many stand side by side, their colours."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mixfold.contracts import Array

Scale = Literal["shared", "own"] | tuple[float, float]


def image_stack(name: str, value: Any, shape: tuple[int, int], order: str) -> Array:
    """The rows of a matrix as images, of shape (n, height, width)."""
    if len(shape) != 2 or min(shape) < 1:
        raise ValueError(f"shape must be (height, width), both at least 1; got {shape!r}.")
    if hasattr(value, "toarray"):
        raise TypeError(f"{name} must be dense; got a sparse matrix. Pass rows with .toarray().")
    matrix = np.asarray(value, dtype=float)
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n, height * width), an image in each row; got {matrix.shape}."
            + (" For a single image pass images[None]." if matrix.ndim == 1 else "")
        )
    height, width = shape
    if matrix.shape[1] != height * width:
        raise ValueError(
            f"shape: {height} x {width} is {height * width} pixels, but {name} has "
            f"{matrix.shape[1]} columns. Pass the (height, width) of an image."
        )
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F'; got {order!r}.")
    if order == "F":
        return matrix.reshape(-1, width, height).transpose(0, 2, 1)
    return matrix.reshape(-1, height, width)


def side_by_side(columns: int | None, n: int, shape: tuple[int, int]) -> int:
    """How many of n images stand in a row; by default the sheet is a little wider than high."""
    if columns is None:
        return max(1, min(n, round(np.sqrt(1.5 * n * shape[0] / shape[1]))))
    if columns < 1:
        raise ValueError(f"columns must be at least 1; got {columns}.")
    return min(columns, max(1, n))


def colour_ends(stack: Array, scale: Any) -> list[tuple[float, float]]:
    """Values of the darkest and the lightest colour of each image."""
    if len(stack) == 0:
        raise ValueError("There is no image to draw: the matrix has no rows.")
    if not isinstance(scale, str):
        low, high = map(float, scale)
        if not low < high:
            raise ValueError(f"scale must be (low, high) with low < high; got {scale!r}.")
        return [(low, high)] * len(stack)
    if scale not in ("shared", "own"):
        raise ValueError(f"scale must be 'shared', 'own' or (low, high); got {scale!r}.")
    known = np.isfinite(stack)
    axes = (1, 2) if scale == "own" else (0, 1, 2)
    low = np.min(stack, axis=axes, keepdims=True, where=known, initial=np.inf)
    high = np.max(stack, axis=axes, keepdims=True, where=known, initial=-np.inf)
    ends = np.where(low <= high, [low, high], [[[[0.0]]], [[[1.0]]]])[..., 0, 0]
    return [(float(a), float(b)) for a, b in np.broadcast_to(ends, (2, len(stack))).T]
