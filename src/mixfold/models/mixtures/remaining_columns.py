"""A mixture of the columns that are left when those that others determine are set aside.

Rows go in and come out with all columns. The density is that of the remaining columns; a row that
breaks the rule of a column that was set aside, by t standard deviations, loses t^2 / (2 floor).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Context, Pilot, RowRandom, Update
from mixfold.families.component import ComponentFamily, dense_rows
from mixfold.families.factor import FactorFamily, FactorParams
from mixfold.families.gaussian import GaussianFamily, GaussianParams
from mixfold.families.product import PlainProduct
from mixfold.families.product.records import ProductParams
from mixfold.families.product.rows import frame_of_columns
from mixfold.math.dependent_columns import DependentColumns
from mixfold.math.frame import Frame
from mixfold.models.mixtures.given_start import GivenStart
from mixfold.models.mixtures.mixture import Mixture, MixtureParams, MixtureReading, MixtureStats


@dataclass(frozen=True)
class MixtureOfRemainingColumns(Mixture):
    """A mixture whose parameters speak of the columns ``columns.kept``, its rows of all columns.

    ``family`` is that of the columns kept, ``whole`` that of all; None if they are the same.
    """

    columns: DependentColumns | None = None
    whole: ComponentFamily | None = None

    @property
    def _columns(self) -> DependentColumns:
        assert self.columns is not None
        return self.columns

    @property
    def row_family(self) -> ComponentFamily:
        return self.family if self.whole is None else self.whole

    def narrow(self, block: Block) -> Block:
        return replace(block, X=RemainingColumns(self._columns)(block.X))

    def widen(self, rows: Array) -> Array:
        return self._columns.expand(rows)

    # ------------------------------------------------ fitting

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> MixtureParams:
        return super().initialise(remaining_pilot(pilot, self._columns), rng, attempt)

    def rearrangements(
        self, params: MixtureParams, pilot: Pilot, rng: np.random.Generator
    ) -> Iterator[MixtureParams]:
        pilot = remaining_pilot(pilot, self._columns)
        return _on_remaining_columns(self).rearrangements(params, pilot, rng)

    def unions(self, fits: Sequence[MixtureParams], pilot: Pilot) -> Iterator[MixtureParams]:
        return _on_remaining_columns(self).unions(fits, remaining_pilot(pilot, self._columns))

    def frame_for(self, pilot: Pilot) -> Frame:
        return super().frame_for(remaining_pilot(pilot, self._columns))

    def expect(self, reading: MixtureReading, block: Block, rng: RowRandom) -> MixtureStats:
        return super().expect(reading, self.narrow(block), rng)

    def update(
        self, params: MixtureParams, stats: MixtureStats, context: Context
    ) -> Update[MixtureParams]:
        if context.pilot is not None:
            context = replace(context, pilot=remaining_pilot(context.pilot, self._columns))
        return _on_remaining_columns(self).update(params, stats, context)

    def n_free(self, n_features: int) -> int:
        return super().n_free(len(self._columns.kept))

    def accepts(self, params: Any, n_features: int) -> bool:
        return super().accepts(params, len(self._columns.kept))

    # ------------------------------------------------ using a fit

    def log_joint(self, reading: MixtureReading, block: Block) -> Array:
        log_joint, base = self.log_joint_and_base(reading, block)
        return np.asarray(log_joint + base[:, None])

    def log_joint_and_base(self, reading: MixtureReading, block: Block) -> tuple[Array, Array]:
        unit = np.sqrt(self.family.floor) * self._columns.scale
        with np.errstate(over="ignore"):
            broken = (self._columns.deviations(dense_rows(block.X)) / unit) ** 2
        rest = self.narrow(block)
        # what rows break of the dependence is the same for all components
        log_joint, base = self._separate(reading, rest, super().log_joint(reading, rest))
        return log_joint, base - 0.5 * broken.sum(axis=1)

    def impute(self, reading: MixtureReading, block: Block, rng: RowRandom, *, draw: bool) -> Array:
        rest = super().impute(reading, self.narrow(block), rng, draw=draw)
        X = dense_rows(block.X)
        return np.where(np.isnan(X), self._columns.expand(rest), X)

    def sample(
        self, params: MixtureParams, n: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        rest, labels = super().sample(params, n, rng)
        return self._columns.expand(rest), labels

    def point_components(self, params: MixtureParams) -> Any:
        return expand_components(self.family, self.row_family, params.components, self._columns)

    def columns_given(self, known: Array, values: Array) -> DependentColumns | None:
        """The columns that the parameters of ``condition`` do not speak of."""
        found = self._columns.given(known, values)
        return None if found is None else found[1]

    def condition(self, params: MixtureParams, known: Array, values: Array) -> MixtureParams:
        mixture, found = _on_remaining_columns(self), self._columns.given(known, values)
        if found is not None:
            told = np.flatnonzero(~np.isnan(found[0]))
            return mixture.condition(params, told, found[0][told]) if told.size else params
        if not (isinstance(self.family, GaussianFamily) and self.family.matrix):
            raise ValueError(
                "the values of the known columns determine all others, or only a sum of some; "
                "leave out those that are functions of other columns (events_ lists what was set "
                "aside), or know fewer columns"
            )
        everything = MixtureParams(params.weights, self.point_components(params))
        return mixture.condition(everything, known, values)


@dataclass(frozen=True, slots=True)
class RemainingColumns:
    """Rows of all columns to those of the columns kept; picklable."""

    columns: DependentColumns

    def __call__(self, X: Any) -> Any:
        # entries of sparse rows that are missing were made dense before
        if not isinstance(X, np.ndarray) and not np.isnan(X.data).any():
            return X[:, self.columns.kept]
        return self.columns.remaining(dense_rows(X))


def remaining_pilot(pilot: Pilot, columns: DependentColumns) -> Pilot:
    """What a fit of the columns kept knows of the data."""
    kept = columns.kept
    block = replace(pilot.block, X=RemainingColumns(columns)(pilot.block.X))
    return replace(
        pilot,
        block=block,
        observed=pilot.observed[kept],
        minimum=pilot.minimum[kept],
        maximum=pilot.maximum[kept],
    )


def _on_remaining_columns(model: MixtureOfRemainingColumns) -> Mixture:
    """The same mixture for rows that have its own columns only."""
    return Mixture(
        model.n_components, model.family, model.mixing, model.start, model.given, model.reseed
    )


# ---------------------------------------------------- components with all columns


def expand_components(
    family: ComponentFamily, whole: ComponentFamily, components: Any, columns: DependentColumns
) -> Any:
    """The components of ``family`` with all columns, of ``whole``.

    Given the others, a column that was set aside has the least variance.
    """
    if isinstance(family, GaussianFamily):
        return _expand_gaussian(family, components, columns)
    if isinstance(family, FactorFamily):
        return _expand_factors(family, components, columns)
    assert isinstance(family, PlainProduct)
    assert isinstance(whole, PlainProduct)
    return _expand_product(family, whole, components, columns)


def _expand_gaussian(
    family: GaussianFamily, components: GaussianParams, columns: DependentColumns
) -> GaussianParams:
    frame = components.frame
    D, kept, aside = columns.n_features, columns.kept, columns.aside
    origin, scale = columns.expand(frame.origin[None])[0], np.empty(D)
    scale[kept], scale[aside] = frame.scale, columns.scale
    means = columns.expand(frame.leave(components.means))
    covariances = family.covariances(components)
    if not _has_columns(type(family)):
        scale[:] = frame.scale[0]  # spheres have one scale
    else:
        spread, own = np.zeros((D, len(kept))), np.zeros(D)
        spread[kept], spread[aside] = np.eye(len(kept)), columns.coefficients
        own[aside] = family.floor * columns.scale**2
        if family.matrix:
            covariances = spread @ covariances @ spread.T + np.diag(own)
        else:
            covariances = covariances @ (spread**2).T + own
    made: GaussianParams = family.from_covariances(Frame(origin, scale), means, covariances)
    return made


def _expand_factors(
    family: FactorFamily, components: FactorParams, columns: DependentColumns
) -> FactorParams:
    """Loadings and variances of all columns; that the noise of a copy is that of its original is
    more than they can say."""
    frame = components.frame
    origin, scale = columns.expand(frame.origin[None])[0], np.empty(columns.n_features)
    scale[columns.kept] = frame.scale
    scale[columns.aside] = columns.scale if family.scales_columns else frame.scale[0]
    whole = Frame(origin, scale)
    means = whole.enter(columns.expand(frame.leave(components.means)))
    ratio = columns.coefficients * frame.scale / scale[columns.aside, None]
    size = components.loadings.shape[-1]
    loadings = np.empty((*means.shape, size))
    loadings[:, columns.kept] = components.loadings
    loadings[:, columns.aside] = ratio @ components.loadings
    noise = np.empty(means.shape)
    noise[:, columns.kept] = components.noise
    noise[:, columns.aside] = components.noise @ (ratio**2).T + family.floor
    if family.noise.isotropic:  # one variance for all columns: that of those kept
        noise[:] = components.noise[:, :1]
    return FactorParams(whole, means, loadings, noise)


def _expand_product(
    family: PlainProduct, whole: PlainProduct, components: ProductParams, columns: DependentColumns
) -> ProductParams:
    frame = components.frame
    origin, scale = columns.expand(frame.origin[None])[0], np.empty(columns.n_features)
    scale[columns.kept], scale[columns.aside] = frame.scale, columns.scale
    all_columns = Frame(origin, scale)
    parts = []
    rest = iter(zip(family.parts, components.parts, strict=True))
    for part, where in zip(whole.parts, whole.columns, strict=True):
        has = np.isin(where, columns.kept)
        own = next(rest)[1] if has.any() else None
        if has.all():
            parts.append(own)
            continue
        parts.append(_expand_part(part.family, where, all_columns, family, components, columns))
    return ProductParams(all_columns, whole.columns, tuple(parts))


def _expand_part(
    own: ComponentFamily, where: Array, frame: Frame, family: PlainProduct,
    components: ProductParams, columns: DependentColumns,
) -> GaussianParams:  # fmt: skip
    """One part of Gaussians, some of whose columns follow from those of it or of another part."""
    assert isinstance(own, GaussianFamily)
    K, D = components.n_components, columns.n_features
    rules = np.zeros((D, len(columns.kept)))
    rules[columns.kept], rules[columns.aside] = np.eye(len(columns.kept)), columns.coefficients
    rules = rules[where]
    used = np.flatnonzero(rules.any(axis=0))
    covariance = np.zeros((K, len(used), len(used)))
    for part, places, params in zip(family.parts, family.columns, components.parts, strict=True):
        mine = np.isin(used, places)
        if mine.any():
            assert isinstance(part.family, GaussianFamily)
            at = [int(np.flatnonzero(places == u)[0]) for u in used[mine]]
            dense = _dense(part.family.covariances(params), part.family, K, len(places))
            covariance[np.ix_(np.arange(K), mine, mine)] = dense[:, at][:, :, at]
    spread = rules[:, used]
    aside = np.isin(where, columns.aside)
    found = spread @ covariance @ spread.T
    least = np.zeros(len(where))
    least[aside] = own.floor * frame.scale[where[aside]] ** 2
    found += np.diag(least)
    place = frame_of_columns(frame, where)
    means = columns.expand(components.frame.leave(components.means))[:, where]
    if not _has_columns(type(own)):
        place = Frame(place.origin, np.full(len(where), place.scale[0]))
        seen = ~aside if (~aside).any() else aside
        shaped = np.diagonal(found, axis1=1, axis2=2)[:, seen].mean(axis=1)
    else:
        shaped = found if own.matrix else np.diagonal(found, axis1=1, axis2=2)
    shape = own.scatter_shape(K, len(where))
    if shape != shaped.shape:  # one for all components
        shaped = shaped.mean(axis=0)
    made: GaussianParams = own.from_covariances(place, means, shaped)
    return made


def _dense(covariances: Array, family: GaussianFamily, K: int, D: int) -> Array:
    """Covariances of any shape as matrices (K, D, D)."""
    if family.matrix:
        return np.broadcast_to(covariances, (K, D, D))
    if not _has_columns(type(family)):
        covariances = np.asarray(covariances)[..., None]
    return np.asarray(np.broadcast_to(covariances, (K, D))[:, None] * np.eye(D))


# ---------------------------------------------------- starts


def restrict_given(
    given: GivenStart, family: GaussianFamily, columns: DependentColumns
) -> GivenStart:
    """A prescribed start without the columns that were set aside."""
    means = None if given.means is None else given.means[:, columns.kept]
    covariances = given.covariances
    if covariances is not None:
        covariances = select_columns(type(family), covariances, columns.kept)
    return GivenStart(given.weights, means, covariances)


def select_columns(family: type[GaussianFamily], covariances: Array, kept: Array) -> Array:
    """Covariances, in the shape of a family, of some of the columns."""
    if not _has_columns(family):
        return covariances
    covariances = covariances[..., kept]
    return covariances[..., kept, :] if family.matrix else covariances


def _has_columns(family: type[GaussianFamily]) -> bool:
    """Whether the columns have variances of their own."""
    return family.scatter_shape(1, 2) != family.scatter_shape(1, 3)
