"""A product of families that all have a conjugate prior has one: the product of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, cast

import numpy as np

from mixfold.contracts import Array, Block, record
from mixfold.families.component import ComponentFamily
from mixfold.families.conjugate import ConjugateFamily
from mixfold.families.product.family import PlainProduct
from mixfold.families.product.records import (
    Part,
    ProductMoments,
    ProductParams,
    ProductPosterior,
    ProductPrior,
    ProductReading,
    join_columns,
)
from mixfold.families.product.rows import columns_of, frame_of_columns
from mixfold.math.frame import Frame


@record
@dataclass(frozen=True)
class ProductFamily(PlainProduct, ConjugateFamily):  # type: ignore[override]  # readings of parts
    """A product whose parts are all conjugate families."""

    def __post_init__(self) -> None:
        super().__post_init__()
        others = [p.family.name for p in self.parts if not isinstance(p.family, ConjugateFamily)]
        if others:
            raise TypeError(
                "every part of a ProductFamily must have a conjugate prior, and "
                f"{', '.join(others)} has none; use PlainProduct, which is for EM alone"
            )

    def _each(self, *records: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """Family and columns of each part, with its place in each of the tuples."""
        families = tuple(cast(ConjugateFamily, part.family) for part in self.parts)
        return zip(families, self.columns, *records, strict=True)

    # ------------------------------------------------ prior and posterior

    def prior(self, frame: Frame, total: ProductMoments) -> ProductPrior:
        return ProductPrior(
            tuple(f.prior(frame_of_columns(frame, c), own) for f, c, own in self._each(total.parts))
        )

    def describe_prior(self, prior: ProductPrior, frame: Frame) -> dict[str, Any]:
        """A dict for each part, by the name of its family."""
        return {
            f.name: f.describe_prior(own, frame_of_columns(frame, c))
            for f, c, own in self._each(prior.parts)
        }

    def posterior(
        self, moments: ProductMoments, prior: ProductPrior, frame: Frame
    ) -> ProductPosterior:
        parts = [
            f.posterior(own, before, frame_of_columns(frame, c))
            for f, c, own, before in self._each(moments.parts, prior.parts)
        ]
        return ProductPosterior(frame, self.columns, tuple(parts))

    def keep_posterior(self, posterior: ProductPosterior, which: Array) -> ProductPosterior:
        parts = (f.keep_posterior(q, which) for f, _, q in self._each(posterior.parts))
        return replace(posterior, parts=tuple(parts))

    def change_frame_of_prior(self, prior: ProductPrior, old: Frame, new: Frame) -> ProductPrior:
        parts = [
            f.change_frame_of_prior(before, frame_of_columns(old, c), frame_of_columns(new, c))
            for f, c, before in self._each(prior.parts)
        ]
        return ProductPrior(tuple(parts))

    def change_frame_of_posterior(
        self, posterior: ProductPosterior, frame: Frame
    ) -> ProductPosterior:
        parts = [
            f.change_frame_of_posterior(q, frame_of_columns(frame, c))
            for f, c, q in self._each(posterior.parts)
        ]
        return replace(posterior, frame=frame, parts=tuple(parts))

    # ------------------------------------------------ readings

    def point(self, posterior: ProductPosterior) -> ProductParams:
        parts = tuple(f.point(q) for f, _, q in self._each(posterior.parts))
        return ProductParams(posterior.frame, posterior.columns, parts)

    def expected_reading(self, posterior: ProductPosterior) -> ProductReading:
        parts = tuple(f.expected_reading(q) for f, _, q in self._each(posterior.parts))
        return ProductReading(posterior.frame, posterior.columns, parts)

    def draw(self, posterior: ProductPosterior, rng: np.random.Generator) -> ProductParams:
        parts = tuple(f.draw(q, rng) for f, _, q in self._each(posterior.parts))
        return ProductParams(posterior.frame, posterior.columns, parts)

    # ------------------------------------------------ parts of the objectives

    def kl(self, posterior: ProductPosterior, prior: ProductPrior) -> float:
        pairs = self._each(posterior.parts, prior.parts)
        return float(sum(f.kl(q, before) for f, _, q, before in pairs))

    def log_prior(self, params: ProductParams, prior: ProductPrior) -> float:
        pairs = self._each(params.parts, prior.parts)
        return float(sum(f.log_prior(own, before) for f, _, own, before in pairs))

    def evidence(self, moments: ProductMoments, prior: ProductPrior, frame: Frame) -> float:
        found = (
            f.evidence(own, before, frame_of_columns(frame, c))
            for f, c, own, before in self._each(moments.parts, prior.parts)
        )
        return float(sum(found))

    def average(self, moments: ProductMoments, reading: ProductReading) -> float:
        pairs = self._each(moments.parts, reading.parts)
        return float(sum(f.average(own, read) for f, _, own, read in pairs))

    def empirical(self, posterior: ProductPosterior, prior: ProductPrior) -> ProductPrior:
        pairs = self._each(posterior.parts, prior.parts)
        return ProductPrior(tuple(f.empirical(q, before) for f, _, q, before in pairs))

    def draw_prior(
        self,
        params: ProductParams,
        prior: ProductPrior,
        given: ProductPrior,
        rng: np.random.Generator,
    ) -> ProductPrior:
        each = self._each(params.parts, prior.parts, given.parts)
        return ProductPrior(tuple(f.draw_prior(own, *q, rng) for f, _, own, *q in each))

    def log_strength(self, prior: ProductPrior) -> float:
        return float(np.mean([f.log_strength(own) for f, _, own in self._each(prior.parts)]))

    # ------------------------------------------------ prediction

    def log_predictive(self, posterior: ProductPosterior, block: Block) -> Array:
        triples = self._each(posterior.parts)
        return reduce(np.add, (f.log_predictive(q, columns_of(block, c)) for f, c, q in triples))

    def condition_predictive(
        self, posterior: ProductPosterior, known: Array, values: Array
    ) -> tuple[Array, ComponentFamily, Any]:
        n_features = posterior.n_features
        rest = np.setdiff1d(np.arange(n_features), known)
        given = np.full(n_features, np.nan)
        given[known] = values
        total = np.zeros(posterior.n_components)
        kept: list[Part] = []
        records: list[Any] = []
        for family, own, q in self._each(posterior.parts):
            seen = np.flatnonzero(~np.isnan(given[own]))
            left = np.searchsorted(rest, own[np.isin(own, rest)])
            if seen.size == len(own):
                total += family._log_predictive_of(q, seen, given[own])
                continue
            if seen.size:
                part, family, q = family.condition_predictive(q, seen, given[own][seen])
                total += part
            kept.append(Part(tuple(left.tolist()), family))
            records.append(q)
        if not all(isinstance(part.family, ConjugateFamily) for part in kept):
            raise ValueError(
                "a table cannot be conditioned on some, but not all, columns of a part of known "
                "covariance with its parameters averaged out; fit it with inference='em' and no "
                "prior"
            )
        columns = tuple(np.asarray(part.columns) for part in kept)
        remaining = frame_of_columns(posterior.frame, rest)
        given_rest = ProductPosterior(remaining, columns, tuple(records))
        return total, ProductFamily(parts=tuple(kept)), given_rest

    def sample_predictive(
        self, posterior: ProductPosterior, labels: Array, rng: np.random.Generator
    ) -> Array:
        rows = [f.sample_predictive(q, labels, rng) for f, _, q in self._each(posterior.parts)]
        return join_columns(posterior.columns, tuple(rows))
