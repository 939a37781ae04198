"""A product of families: each part of the columns has its own, independent given the component.

    p(x | k) = prod over parts of p(x_part | theta_k,part)

Everything is asked of the parts and added up. Numbers, counts, yes or no, and categories can stand
in one table, each with missing entries where its family allows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, record
from mixfold.families.component import Scores, Trust
from mixfold.families.product.records import (
    Held,
    ProductMoments,
    ProductParams,
    ProductReading,
    join_columns,
    split_vector,
)
from mixfold.families.product.rows import columns_of, frame_of_columns
from mixfold.families.product.steps import ProductSteps
from mixfold.math.lifted import Sums


@record
@dataclass(frozen=True)
class PlainProduct(ProductSteps):
    """A product of families; parameters are those of ``ProductSteps``."""

    # ------------------------------------------------ E step

    def mode(self, params: ProductParams) -> ProductReading:
        triples = zip(self.parts, params.columns, params.parts, strict=True)
        parts = tuple(part.family.mode(own) if c.size else None for part, c, own in triples)
        return ProductReading(params.frame, params.columns, parts)

    def scores(self, tile: Block, reading: ProductReading) -> Scores:
        found = tuple(
            family.scores(columns_of(tile, columns), part)
            for family, columns, part in self.live(reading)
        )
        return Scores(reduce(np.add, (one.log_density for one in found)), found)

    def log_density(self, block: Block, reading: ProductReading) -> Array:
        found = (
            family.log_density(columns_of(block, columns), part)
            for family, columns, part in self.live(reading)
        )
        return reduce(np.add, found)

    def trust(self, reading: ProductReading, dtype: np.dtype[Any]) -> Trust:
        found = [family.trust(part, dtype) for family, _, part in self.live(reading)]
        return Trust(sum(one.ceiling for one in found), min(one.depth for one in found))

    def log_ratios(self, block: Block, reading: ProductReading, reference: int) -> Array:
        found = (
            family.log_ratios(columns_of(block, columns), part, reference)
            for family, columns, part in self.live(reading)
        )
        return reduce(np.add, found)

    def moments(self, scores: Scores, resp: Array, reading: ProductReading) -> ProductMoments:
        pairs = zip(scores.work, self.live(reading), strict=True)
        return ProductMoments(
            tuple(family.moments(own, resp, part) for own, (family, _, part) in pairs)
        )

    def fused_pass(
        self, block: Block, reading: ProductReading, log_weights: Array
    ) -> tuple[ProductMoments, Sums] | None:
        live = list(self.live(reading))
        if len(live) > 1:  # responsibilities need the scores of all parts
            return None
        ((family, columns, part),) = live
        result = family.fused_pass(columns_of(block, columns), part, log_weights)
        return None if result is None else (ProductMoments((result[0],)), result[1])

    def about_frame(self, moments: ProductMoments) -> ProductMoments:
        if len(moments.parts) != len(self.parts):
            raise ValueError("components given some columns cannot be fitted further")
        pairs = zip(self.parts, moments.parts, strict=True)
        return ProductMoments(tuple(part.family.about_frame(own) for part, own in pairs))

    # ------------------------------------------------ using a fit

    def normals_per_row(self, n_features: int) -> int:
        return sum(part.family.normals_per_row(len(part.columns)) for part in self.parts)

    def _normals(self, held: Held | ProductReading, normals: Array) -> list[Array]:
        sizes = (family.normals_per_row(columns.size) for family, columns, _ in self.live(held))
        return split_vector(normals, tuple(sizes))

    def complete_rows(
        self, scores: Scores, reading: ProductReading, component: int, normals: Array | None
    ) -> Array:
        live = list(self.live(reading))
        shares = [None] * len(live) if normals is None else self._normals(reading, normals)
        parts = tuple(
            family.complete_rows(own, part, component, share)
            for (family, _, part), own, share in zip(live, scores.work, shares, strict=True)
        )
        return join_columns(tuple(columns for _, columns, _ in live), parts)

    def fill_missing(self, scores: Scores, resp: Array, reading: ProductReading) -> Array:
        live = list(self.live(reading))
        parts = tuple(
            family.fill_missing(own, resp, part)
            for (family, _, part), own in zip(live, scores.work, strict=True)
        )
        return join_columns(tuple(columns for _, columns, _ in live), parts)

    def condition(
        self, params: ProductParams, known: Array, values: Array
    ) -> tuple[Array, ProductParams]:
        rest = np.setdiff1d(np.arange(params.n_features), known)
        given = np.full(params.n_features, np.nan)
        given[known] = values
        total = np.zeros(params.n_components)
        columns, parts = list(params.columns), list(params.parts)
        for i, (part, own) in enumerate(zip(self.parts, params.columns, strict=True)):
            seen = np.flatnonzero(~np.isnan(given[own]))
            if seen.size:
                log_density, parts[i] = part.family.condition(parts[i], seen, given[own][seen])
                total += log_density
            columns[i] = np.searchsorted(rest, own[np.isin(own, rest)])
        frame = frame_of_columns(params.frame, rest)
        return total, ProductParams(frame, tuple(columns), tuple(parts))

    def sample(self, params: ProductParams, labels: Array, normals: Array) -> Array:
        live = list(self.live(params))
        shares = self._normals(params, normals)
        rows = tuple(
            family.sample(part, labels, share)
            for (family, _, part), share in zip(live, shares, strict=True)
        )
        return join_columns(tuple(columns for _, columns, _ in live), rows)

    def draw_rows(self, params: ProductParams, labels: Array, rng: np.random.Generator) -> Array:
        live = list(self.live(params))
        rows = tuple(family.draw_rows(part, labels, rng) for family, _, part in live)
        return join_columns(tuple(columns for _, columns, _ in live), rows)
