"""A Gaussian mixture of the columns that are left when those that others determine are set aside.

Rows go in and come out with all columns. The density is that of the remaining columns; a row that
breaks the rule of a column that was set aside, by t standard deviations, loses t^2 / (2 floor).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Context, Pilot, RowRandom, Update
from mixfold.families.component import dense_rows
from mixfold.families.gaussian import GaussianFamily, GaussianParams
from mixfold.math.dependent_columns import DependentColumns
from mixfold.math.frame import Frame
from mixfold.models.mixtures.given_start import GivenStart
from mixfold.models.mixtures.mixture import Mixture, MixtureParams, MixtureReading, MixtureStats


@dataclass(frozen=True)
class MixtureOfRemainingColumns(Mixture):
    """A mixture whose parameters speak of the columns ``columns.kept``, its rows of all columns."""

    columns: DependentColumns | None = None

    @property
    def _columns(self) -> DependentColumns:
        assert self.columns is not None
        return self.columns

    @property
    def _gaussian(self) -> GaussianFamily:
        assert isinstance(self.family, GaussianFamily)
        return self.family

    def _remaining(self, block: Block) -> Block:
        if not isinstance(block.X, np.ndarray) and block.complete:
            return replace(block, X=block.X[:, self._columns.kept])
        return replace(block, X=self._columns.remaining(dense_rows(block.X)))

    def _remaining_pilot(self, pilot: Pilot) -> Pilot:
        kept = self._columns.kept
        return replace(
            pilot,
            block=self._remaining(pilot.block),
            observed=pilot.observed[kept],
            minimum=pilot.minimum[kept],
            maximum=pilot.maximum[kept],
        )

    # ------------------------------------------------ fitting

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> MixtureParams:
        return super().initialise(self._remaining_pilot(pilot), rng, attempt)

    def rearrangements(
        self, params: MixtureParams, pilot: Pilot, rng: np.random.Generator
    ) -> Iterator[MixtureParams]:
        return _on_remaining_columns(self).rearrangements(params, self._remaining_pilot(pilot), rng)

    def unions(self, fits: Sequence[MixtureParams], pilot: Pilot) -> Iterator[MixtureParams]:
        return _on_remaining_columns(self).unions(fits, self._remaining_pilot(pilot))

    def frame_for(self, pilot: Pilot) -> Frame:
        return super().frame_for(self._remaining_pilot(pilot))

    def expect(self, reading: MixtureReading, block: Block, rng: RowRandom) -> MixtureStats:
        return super().expect(reading, self._remaining(block), rng)

    def update(
        self, params: MixtureParams, stats: MixtureStats, context: Context
    ) -> Update[MixtureParams]:
        if context.pilot is not None:
            context = replace(context, pilot=self._remaining_pilot(context.pilot))
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
        rest = self._remaining(block)
        # what rows break of the dependence is the same for all components
        log_joint, base = self._separate(reading, rest, super().log_joint(reading, rest))
        return log_joint, base - 0.5 * broken.sum(axis=1)

    def impute(self, reading: MixtureReading, block: Block, rng: RowRandom, *, draw: bool) -> Array:
        rest = super().impute(reading, self._remaining(block), rng, draw=draw)
        X = dense_rows(block.X)
        return np.where(np.isnan(X), self._columns.expand(rest), X)

    def sample(
        self, params: MixtureParams, n: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        rest, labels = super().sample(params, n, rng)
        return self._columns.expand(rest), labels

    def point_components(self, params: MixtureParams) -> GaussianParams:
        return expand_components(self._gaussian, params.components, self._columns)

    def condition(self, params: MixtureParams, known: Array, values: Array) -> MixtureParams:
        everything = MixtureParams(params.weights, self.point_components(params))
        return _on_remaining_columns(self).condition(everything, known, values)


def _on_remaining_columns(model: MixtureOfRemainingColumns) -> Mixture:
    """The same mixture for rows that have its own columns only."""
    return Mixture(
        model.n_components, model.family, model.mixing, model.start, model.given, model.reseed
    )


def expand_components(
    family: GaussianFamily, components: GaussianParams, columns: DependentColumns
) -> GaussianParams:
    """The components with all columns; given the others, one set aside has the least variance."""
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
