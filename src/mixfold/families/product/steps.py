"""Parameters of a product of families: everything is asked of the parts and put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.component import ComponentFamily
from mixfold.families.product.records import (
    Held,
    Part,
    ProductMetric,
    ProductMoments,
    ProductParams,
    ProductReading,
    split_vector,
)
from mixfold.families.product.rows import columns_of, frame_of_columns, take_columns
from mixfold.math.frame import Frame


@dataclass(frozen=True)
class ProductSteps(ComponentFamily):
    """Families of the parts of a table; floors are theirs.

    Parameters
    ----------
    parts : tuple of Part
        Every column in exactly one of them.
    """

    floor: float = field(default=1e-6, kw_only=True)
    parts: tuple[Part, ...] = ()

    name: ClassVar[str] = "product"

    def __post_init__(self) -> None:
        columns = [column for part in self.parts for column in part.columns]
        if not self.parts or not all(part.columns for part in self.parts):
            raise ValueError(
                "a product of families needs at least one part, and each part at least one "
                f"column; got {[list(part.columns) for part in self.parts]}"
            )
        if sorted(columns) != list(range(len(columns))):
            raise ValueError(
                "every column, from 0, must be in exactly one part of a product of families; got "
                f"{[list(part.columns) for part in self.parts]}"
            )

        if any(isinstance(part.family, ProductSteps) for part in self.parts):
            raise TypeError(
                "a part of a product of families cannot be a product itself; list its parts instead"
            )

    # facts of a product follow from its parts: they are of the object, not of the class

    @property
    def readings(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those that all parts offer."""
        first, *others = (part.family.readings for part in self.parts)
        return tuple(name for name in first if all(name in other for other in others))

    @property
    def augments(self) -> bool:  # type: ignore[override]
        return any(part.family.augments for part in self.parts)

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        return all(part.family.takes_missing for part in self.parts)

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]
        return all(part.family.takes_sparse for part in self.parts)

    @property
    def key(self) -> Any:
        return [(part.family.key, part.columns) for part in self.parts]

    @property
    def columns(self) -> tuple[Array, ...]:
        return tuple(np.array(part.columns, np.int64) for part in self.parts)

    def live(self, held: Held | ProductReading) -> Iterator[tuple[ComponentFamily, Array, Any]]:
        """Family, columns and record of each part that has columns left."""
        for part, columns, value in zip(self.parts, held.columns, held.parts, strict=True):
            if columns.size:
                yield part.family, columns, value

    def _replace_parts(self, params: ProductParams, parts: list[Any]) -> ProductParams:
        """Other parameters of the parts that have columns left."""
        fresh = iter(parts)
        old = zip(params.columns, params.parts, strict=True)
        return replace(params, parts=tuple(next(fresh) if c.size else p for c, p in old))

    def with_maxima(self, maximum: Array, occurring: Any = None) -> Self:
        parts = []
        for part in self.parts:
            codes = None if occurring is None else tuple(occurring[d] for d in part.columns)
            family = part.family.with_maxima(maximum[list(part.columns)], codes)
            parts.append(replace(part, family=family))
        return replace(self, parts=tuple(parts))

    def for_columns(self, which: Array, n_features: int) -> Self:
        """The parts that have some of the columns, which are numbered anew."""
        parts = []
        for part, columns in zip(self.parts, self.columns, strict=True):
            kept = np.flatnonzero(np.isin(columns, which))
            if kept.size:
                places = np.searchsorted(which, columns[kept]).tolist()
                parts.append(Part(tuple(places), part.family.for_columns(kept, columns.size)))
        return replace(self, parts=tuple(parts))

    def workspace_per_row(self, n_components: int, n_features: int) -> int:
        return sum(
            part.family.workspace_per_row(n_components, len(part.columns)) for part in self.parts
        )

    def numbers_of_row(self, block: Block, reading: ProductReading) -> int:
        return sum(
            family.numbers_of_row(columns_of(block, columns), part)
            for family, columns, part in self.live(reading)
        )

    # ------------------------------------------------ parameters

    def bulk(self, X: Array, weight: Array) -> Frame:
        origin, scale = np.empty(X.shape[1]), np.empty(X.shape[1])
        for part, columns in zip(self.parts, self.columns, strict=True):
            bulk = part.family.bulk(take_columns(X, columns), weight)
            origin[columns], scale[columns] = bulk.origin, bulk.scale
        return Frame(origin, scale)

    def entries(self, moments: ProductMoments, counts: Array) -> Array:
        out = np.empty((len(counts), sum(columns.size for columns in self.columns)))
        for part, columns, own in zip(self.parts, self.columns, moments.parts, strict=True):
            out[:, columns] = part.family.entries(own, counts)
        return out

    def extent(self, params: ProductParams) -> Array:
        out = np.zeros(params.means.shape)
        for family, columns, own in self.live(params):
            out[:, columns] = family.extent(own)
        return out

    def frame(self, X: Array, weight: Array, spread: Array | None = None) -> Frame:
        origin, scale = np.empty(X.shape[1]), np.empty(X.shape[1])
        for part, columns in zip(self.parts, self.columns, strict=True):
            own = None if spread is None else spread[columns]
            frame = part.family.frame(take_columns(X, columns), weight, own)
            origin[columns], scale[columns] = frame.origin, frame.scale
        return Frame(origin, scale)

    def check(self, block: Block, names: Array | None) -> None:
        for part, columns in zip(self.parts, self.columns, strict=True):
            # positions in the whole table serve as names where there are none
            own = columns.astype(str) if names is None else np.asarray(names)[columns]
            part.family.check(columns_of(block, columns), own)

    def view(self, frame: Frame, X: Array) -> Array:
        return np.concatenate(self._views(frame, X), axis=1)

    def _views(self, frame: Frame, X: Array) -> list[Array]:
        """The view of each part; columns of all parts weigh about the same in distances."""
        views = []
        for part, columns in zip(self.parts, self.columns, strict=True):
            view = part.family.view(frame_of_columns(frame, columns), take_columns(X, columns))
            if _starts_from_rows(part.family):
                view = view * np.sqrt(columns.size / _total_variance(view))
            views.append(view)
        return views

    def from_rows(self, frame: Frame, X: Array, U: Array, resp: Array) -> ProductParams:
        sizes = tuple(view.shape[1] for view in self._views(frame, X[:1]))
        parts = [
            part.family.from_rows(
                frame_of_columns(frame, columns), take_columns(X, columns), view, resp
            )
            for part, columns, view in zip(
                self.parts, self.columns, split_vector(U, sizes), strict=True
            )
        ]
        return ProductParams(frame, self.columns, tuple(parts))

    def from_sample(self, frame: Frame, U: Array, resp: Array) -> ProductParams:
        parts = [
            part.family.from_sample(
                frame_of_columns(frame, columns), take_columns(U, columns), resp
            )
            for part, columns in zip(self.parts, self.columns, strict=True)
        ]
        return ProductParams(frame, self.columns, tuple(parts))

    def change_frame(self, params: ProductParams, frame: Frame) -> ProductParams:
        parts = [
            family.change_frame(part, frame_of_columns(frame, columns))
            for family, columns, part in self.live(params)
        ]
        return replace(self._replace_parts(params, parts), frame=frame)

    def estimate(
        self, moments: ProductMoments, previous: ProductParams
    ) -> tuple[ProductParams, Array]:
        found = [
            family.estimate(own, part)
            for own, (family, _, part) in zip(moments.parts, self.live(previous), strict=True)
        ]
        touched = np.any([touched for _, touched in found], axis=0)
        return self._replace_parts(previous, [params for params, _ in found]), touched

    def floor_message(self, component: int) -> str:
        words = dict.fromkeys(part.family.floor_message(component) for part in self.parts)
        return ", or ".join(words)

    def describe(self, params: ProductParams) -> dict[str, Any]:
        """``means`` of all columns; what else parts publish, as a list where several do."""
        found: dict[str, list[Any]] = {}
        for family, _, part in self.live(params):
            for name, value in family.describe(part).items():
                found.setdefault(name, []).append(value)
        lists = {name: values if len(values) > 1 else values[0] for name, values in found.items()}
        return {**lists, "means": params.frame.leave(params.means)}

    def n_free(self, n_components: int, n_features: int) -> int:
        return sum(part.family.n_free(n_components, len(part.columns)) for part in self.parts)

    def n_settled(self, n_components: int, only: Array) -> int:
        return sum(
            part.family.n_settled(n_components, only[list(part.columns)]) for part in self.parts
        )

    def least_rows(self, n_components: int) -> Array:
        each = [part.family.least_rows(n_components) for part in self.parts]
        return np.asarray(np.max(each, axis=0))

    def coordinates(self, params: ProductParams) -> Array:
        return np.concatenate([family.coordinates(part) for family, _, part in self.live(params)])

    def from_coordinates(self, params: ProductParams, vector: Array) -> ProductParams:
        live = list(self.live(params))
        sizes = tuple(family.coordinates(part).size for family, _, part in live)
        parts = [
            family.from_coordinates(part, piece)
            for (family, _, part), piece in zip(live, split_vector(vector, sizes), strict=True)
        ]
        return self._replace_parts(params, parts)

    def derivatives(
        self, params: ProductParams, moments: ProductMoments
    ) -> tuple[Array, ProductMetric]:
        found = [
            family.derivatives(part, own)
            for own, (family, _, part) in zip(moments.parts, self.live(params), strict=True)
        ]
        sizes = tuple(gradient.size for gradient, _ in found)
        metric = ProductMetric(sizes, tuple(metric for _, metric in found))
        return np.concatenate([gradient for gradient, _ in found]), metric

    def place(self, params: ProductParams, where: Array, points: Array) -> ProductParams:
        parts = [
            family.place(part, where, points[:, columns])
            for family, columns, part in self.live(params)
        ]
        return self._replace_parts(params, parts)

    def select(self, params: ProductParams, which: Array) -> ProductParams:
        pairs = zip(self.parts, params.parts, strict=True)
        return replace(params, parts=tuple(part.family.select(own, which) for part, own in pairs))


def _starts_from_rows(family: ComponentFamily) -> bool:
    """Whether parameters are made of the rows rather than of their view, which may be stretched."""
    return type(family).from_rows is not ComponentFamily.from_rows


def _total_variance(view: Array) -> float:
    """Of the observed entries, summed over columns."""
    seen = ~np.isnan(view)
    count = np.maximum(seen.sum(axis=0), 1)
    centred = np.where(seen, view - np.where(seen, view, 0.0).sum(axis=0) / count, 0.0)
    total = float(np.sum((centred**2).sum(axis=0) / count))
    return total if total > 0 else float(view.shape[1])
