"""What a shell asks of a model beyond ``contracts.Model``, which is all that the engine needs.

The engine fits any ``Model``. An estimator also scores rows, goes on from an earlier fit, learns
batches, draws and completes rows. Each of these abilities is a protocol: a shell is typed against
those that it uses, and a new model implements those that it can offer.

========================  =============================================  =========================
protocol                  adds                                           for
========================  =============================================  =========================
``DensityModel``          ``log_joint``, ``n_free``                      scores, criteria, labels
``ContinuableModel``      ``change_frame``                                   ``warm_start``
``StreamedModel``         ``row_weight``, ``additive``                   ``partial_fit``
``SamplingModel``         ``sample``                                     ``sample``
``CompletingModel``       ``impute``, ``condition``                      ``impute``, ``condition``
``PrescribedModel``       ``given``                                      starts set by parameters
========================  =============================================  =========================
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from mixfold.contracts import Array, Block, Model, P, Pilot, R, RowRandom, S
from mixfold.contracts import StreamedModel as StreamedModel
from mixfold.models.mixtures.given_start import GivenStart

ParamsIn = TypeVar("ParamsIn", contravariant=True)
ReadingIn = TypeVar("ReadingIn", contravariant=True)


@runtime_checkable
class DensityModel(Model[P, R, S], Protocol[P, R, S]):
    """A density of rows that is a mixture, of one component or many."""

    @property
    def n_components(self) -> int: ...

    def log_joint(self, reading: R, block: Block) -> Array:
        """log pi_k p(x_n | k), (n, K), of the observed entries of each row."""
        ...

    def n_free(self, n_features: int) -> int:
        """How many numbers are learned, for information criteria."""
        ...


@runtime_checkable
class ContinuableModel(Protocol[P]):
    """A model whose fit can begin with parameters that were fitted to other data."""

    def change_frame(self, params: P, pilot: Pilot) -> P:
        """The same density, in the units that suit these data; the same object if it has them."""
        ...


@runtime_checkable
class SamplingModel(Protocol[ParamsIn]):
    """A model that draws rows."""

    def sample(self, params: ParamsIn, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """n rows, and the components that they came from."""
        ...


@runtime_checkable
class CompletingModel(Protocol[ParamsIn, ReadingIn]):
    """A model that knows the conditional distributions of its columns."""

    def impute(self, reading: ReadingIn, block: Block, rng: RowRandom, *, draw: bool) -> Array:
        """The rows with missing entries filled: conditional means, or one conditional draw."""
        ...

    def condition(self, params: ParamsIn, known: Array, values: Array) -> Any:
        """The parameters of the other columns, given values of the ``known`` ones."""
        ...


@runtime_checkable
class PrescribedModel(Protocol):
    """A model part of whose start may be given by the user."""

    @property
    def given(self) -> GivenStart: ...
