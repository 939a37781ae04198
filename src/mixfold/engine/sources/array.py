"""Blocks of numpy arrays, in memory or mapped from a ``.npy`` file."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from mixfold.contracts import SMALL_BLOCK, Array, Block
from mixfold.engine.sources.checks import FLOAT64, check_shape, column_label, float_dtype
from mixfold.engine.sources.readahead import read_ahead
from mixfold.engine.sources.rows import RowSource
from mixfold.engine.sources.weights_and_labels import Sides

# The kernel maps whole neighbourhoods of a page that is touched.
_READ_AROUND = 2**22


class ArraySource(RowSource):
    """An ndarray. Blocks of float32 and float64 arrays are views, other types are converted."""

    def __init__(
        self, X: Array, sides: Sides, complete: bool | None = None, first_row: int = 0
    ) -> None:
        shape = check_shape(X.shape)
        check_type(X)
        super().__init__(shape, float_dtype(X.dtype), None, sides, complete, first_row)
        self._X = X
        self._as_is = _usable(X, self.dtype)
        self._whole: Block | None = None

    def _blocks(self, rows: int) -> Iterator[Block]:
        """A table of one small block gives the same one in every pass, with what is known of it."""
        if self.n_samples > rows or self.n_samples >= SMALL_BLOCK:
            yield from super()._blocks(rows)
            return
        if self._whole is None:
            self._whole = next(super()._blocks(rows))
        yield self._whole

    def _take(self, first: int, last: int) -> Array:
        part = self._X[first:last]
        if self._as_is:
            return part
        if part.dtype == object:
            return _numbers(part, self._first_row + first)
        return np.array(part, dtype=self.dtype, order="C")


class MappedSource(RowSource):
    """A memory-mapped array. Blocks are copied and their pages given back, so memory stays small.

    Parameters
    ----------
    X : numpy.memmap
    sides : Sides
    path : str, optional
        The ``.npy`` file, if the map can be opened again from it (pickling then costs nothing).
    complete : bool or None
    """

    def __init__(
        self,
        X: np.memmap[Any, Any],
        sides: Sides,
        path: str | None = None,
        complete: bool | None = None,
    ) -> None:
        shape = check_shape(X.shape)
        check_type(X)
        super().__init__(shape, float_dtype(X.dtype), None, sides, complete)
        self._X: np.memmap[Any, Any] | None = X
        self._path = path

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._path is not None:
            state["_X"] = None
        return state

    def _take(self, first: int, last: int) -> Array:
        if self._X is None:
            self._X = open_npy(str(self._path))
        part = self._X[first:last]
        copy = np.empty(part.shape, dtype=self.dtype)
        if part.strides[0] >= part.strides[1]:
            copy[...] = part
            give_back(part)
        else:  # column by column, as the block is spread over the whole file
            for j in range(part.shape[1]):
                copy[:, j] = part[:, j]
                give_back(part[:, j], margin=_READ_AROUND)
        return copy

    def _blocks(self, rows: int) -> Iterator[Block]:
        return read_ahead(lambda: super(MappedSource, self)._blocks(rows))


def open_npy(path: str) -> np.memmap[Any, Any]:
    """Map a ``.npy`` file for reading."""
    try:
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} is not a .npy file that can be mapped, or it is truncated ({error}). "
            "Write it with numpy.save from an array of numbers."
        ) from error
    if not isinstance(X, np.memmap):  # a .npz under another name
        raise ValueError(f"{path} is an archive of arrays; save one array with numpy.save.")
    return X


def give_back(part: Array, margin: int = 0) -> None:
    """Tell the kernel that the pages under ``part`` of a map can leave this process.

    ``margin`` bytes before and after go too.

    They stay in the page cache. A private (copy-on-write) map is left alone: there the
    pages may hold changes that exist nowhere else.
    """
    mapped = getattr(part, "_mmap", None)
    if mapped is None or getattr(part, "mode", "c") == "c" or not hasattr(mapped, "madvise"):
        return
    base = np.frombuffer(mapped, dtype=np.uint8).__array_interface__["data"][0]
    low, high = np.lib.array_utils.byte_bounds(part)
    page = mmap.PAGESIZE
    # Pages that the next block shares stay.
    first = -(-max(0, low - base - margin) // page) * page
    last = min(len(mapped), high - base + margin) // page * page
    if last > first:
        mapped.madvise(mmap.MADV_DONTNEED, first, last - first)


def as_array(X: Any) -> Array:
    """Nested lists, masked arrays and anything with ``__array__`` as an ndarray."""
    if isinstance(X, np.matrix):
        raise TypeError("np.matrix is not supported. Convert it with np.asarray(X).")
    if isinstance(X, np.ma.MaskedArray):
        check_type(X.data)
        return np.ma.filled(X.astype(float_dtype(X.dtype)), np.nan)
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X cannot be read as a table of numbers: {error}.") from error


def is_path(X: Any) -> bool:
    """Whether ``X`` names a file or folder."""
    return isinstance(X, (str, os.PathLike))


def _usable(X: Array, dtype: np.dtype[Any]) -> bool:
    """Whether kernels can read the array where it lies: native floats, one unit stride."""
    unit = X.itemsize in X.strides and min(X.strides) > 0
    return X.dtype == dtype and X.dtype.isnative and X.flags.aligned and unit


def check_type(X: Array) -> None:
    kind = X.dtype.kind
    if kind == "c":
        raise ValueError(
            f"Complex data not supported: X has type {X.dtype}. "
            "Give real and imaginary parts as columns."
        )
    if kind in "SU":
        first = X.reshape(-1)[:1].tolist()
        raise ValueError(
            f"X must hold numbers, got text such as {first[0]!r} (type {X.dtype}). Convert it with "
            "X.astype(float), or encode categories as numbers first."
        )
    if kind not in "fiubO":
        raise TypeError(f"X must hold numbers, got type {X.dtype}. Convert it to float first.")


def _numbers(part: Array, start: int) -> Array:
    """An object array as float64; text is refused even if it looks like a number."""
    try:
        texts = [isinstance(value, (str, bytes)) for value in part.flat]
        if any(texts):
            row, column = np.argwhere(np.reshape(texts, part.shape))[0]
            raise ValueError(
                f"{column_label(column, None)} row {start + row} of X is the text "
                f"{part[row, column]!r}; X must hold numbers. Convert or encode the column first."
            )
        return np.array(part, dtype=FLOAT64, order="C")
    except TypeError as error:
        raise TypeError(f"X must hold numbers; in rows from {start} on: {error}.") from error
