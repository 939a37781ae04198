"""Records of a product of families: those of its parts, and the columns of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixfold.contracts import Array, Metric, Stats, record
from mixfold.families.component import ComponentFamily
from mixfold.math.frame import Frame


@record
@dataclass(frozen=True)
class Part:
    """Some columns of a table, by position, and the family of their entries."""

    columns: tuple[int, ...]
    family: ComponentFamily


class Held:
    """What holds a frame of all columns, and the columns and the record of each part.

    A part whose columns are all known, after conditioning on them, has none left.
    """

    __slots__ = ()

    frame: Frame
    columns: tuple[Array, ...]
    parts: tuple[Any, ...]

    @property
    def n_features(self) -> int:
        return int(self.frame.origin.size)

    @property
    def n_components(self) -> int:
        return int(next(len(part.means) for part in self.parts))

    @property
    def means(self) -> Array:
        """(K, D) in the coordinates of the frame."""
        return join_columns(self.columns, tuple(part.means for part in self.parts))


@record
@dataclass(frozen=True, slots=True)
class ProductParams(Held):
    """Parameters of the parts; their frames are those columns of ``frame``."""

    frame: Frame
    columns: tuple[Array, ...]
    parts: tuple[Any, ...]


@record
@dataclass(frozen=True, slots=True)
class ProductPosterior(Held):
    """Posteriors of the parts."""

    frame: Frame
    columns: tuple[Array, ...]
    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ProductReading:
    """Readings of the parts; None for one without columns."""

    frame: Frame
    columns: tuple[Array, ...]
    parts: tuple[Any, ...]


@record
@dataclass(frozen=True, slots=True)
class ProductPrior:
    """Priors of the parts."""

    parts: tuple[Any, ...]


@record
@dataclass(frozen=True)
class ProductMoments(Stats):
    """Statistics of the parts that have columns."""

    parts: tuple[Any, ...]

    def __add__(self, other: Self) -> Self:
        return type(self)(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    def __sub__(self, other: Self) -> Self:
        return type(self)(tuple(a - b for a, b in zip(self.parts, other.parts, strict=True)))

    def _each(self, change: Callable[[Any], Any]) -> Self:
        return type(self)(tuple(change(part) for part in self.parts))

    def scale(self, factor: float) -> Self:
        return self._each(lambda part: part.scale(factor))

    def zero(self) -> Self:
        return self._each(lambda part: part.zero())


@record
@dataclass(frozen=True, slots=True)
class ProductMetric:
    """Parts do not interact: one metric after the other, each of so many coordinates."""

    sizes: tuple[int, ...]
    parts: tuple[Metric, ...]

    def solve(self, gradient: Array) -> Array:
        pieces = split_vector(gradient, self.sizes)
        return np.concatenate(
            [metric.solve(piece) for metric, piece in zip(self.parts, pieces, strict=True)]
        )


def split_vector(vector: Array, sizes: tuple[int, ...]) -> list[Array]:
    """The consecutive pieces, of these sizes, of the last axis."""
    ends = np.cumsum(sizes)
    pairs = zip(ends - np.asarray(sizes), ends, strict=True)
    return [vector[..., first:last] for first, last in pairs]


def join_columns(columns: tuple[Array, ...], parts: tuple[Array, ...]) -> Array:
    """The columns (n, len(columns[i])) of each part in their places."""
    out = np.empty((len(parts[0]), sum(c.size for c in columns)))
    for where, values in zip(columns, parts, strict=True):
        out[:, where] = values
    return out
