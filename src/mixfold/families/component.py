"""What a mixture asks of a family of components, whatever their distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import Array, Block, Metric
from mixfold.math.frame import Frame, bulk_of, frame_of, widen_constant_columns
from mixfold.math.lifted import FeatureMap, Sums


@dataclass(frozen=True, slots=True)
class Scores:
    """Log densities (n, K) of the rows of a tile, and what the M step can use again."""

    log_density: Array
    work: Any


@dataclass(frozen=True, slots=True)
class Trust:
    """Up to which distance scores can be subtracted from each other.

    ``ceiling`` is the largest log density that a row can have; a row whose largest one is lower
    by more than ``depth`` is so far from all components that rounding could change its shares.
    """

    ceiling: float
    depth: float

    @property
    def least(self) -> float:
        """The largest log density of a row must be above this."""
        return self.ceiling - self.depth


EVERYWHERE = Trust(0.0, np.inf)


@dataclass(frozen=True)
class ComponentFamily(ABC):
    """A family of components. Parameters, statistics and readings are the family's own records.

    Parameters hold ``frame``, ``means`` (K, D) in its coordinates, and ``n_features``.

    Parameters
    ----------
    floor : float
        Smallest variance in any direction, relative to the data's own (frame coordinates).
    """

    floor: float = 1e-6

    name: ClassVar[str]
    # how the E step can read the components: at a "mode", and where there is a conjugate prior
    # also "expected" (variational Bayes) or at a "draw" (Gibbs sampling)
    readings: ClassVar[tuple[str, ...]] = ("mode",)
    # what users can do where a reading is not offered
    remedy: ClassVar[str] = "use inference='em'"
    # whether a sampler must draw the missing entries, because columns depend on each other
    augments: ClassVar[bool] = False
    # whether rows may have missing entries, and whether they may be sparse (which is full of zeros)
    takes_missing: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = True

    def workspace_per_row(self, n_components: int, n_features: int) -> int:
        """What the general E step holds for a row with missing entries."""
        return n_components * n_features

    def numbers_of_row(self, block: Block, reading: Any) -> int:
        """What the general E step holds for a complete row: sparse rows are made dense."""
        return int(block.X.shape[1])

    # ------------------------------------------------ settings

    @property
    def key(self) -> Any:
        """What tells families apart whose parameters do not fit each other."""
        return self.name

    @property
    def needs_codes(self) -> bool:
        """Whether the codes that occur in the columns have to be counted before a fit."""
        return False

    def with_maxima(self, maximum: Array, occurring: Any = None) -> Self:
        """The family told the largest entry (D,) of each column, if it must know them.

        ``occurring`` has the codes of each column that occur; None if they are not known.
        """
        return self

    def n_settled(self, n_components: int, only: Array) -> int:
        """Parameters that are no choice, since each of some columns holds one value alone.

        ``only`` (D,) is that value, -1 where a column varies. A column of counts that is zero
        throughout has the rate 0 in every component, at the end of its range, as a code that
        never occurs has the share 0: it tells nothing apart, and BIC is not to pay for it.
        """
        return 0

    def for_columns(self, which: Array, n_features: int) -> Self:
        """The family of some of the columns: settings that have one entry per column are cut."""
        kept = np.arange(n_features)[which]
        cut: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if not f.init:
                continue
            if isinstance(value, list | tuple):  # entries may be arrays, of any lengths
                if len(value) == n_features:
                    cut[f.name] = type(value)(value[j] for j in kept)
            elif np.shape(value) == (n_features,):
                cut[f.name] = np.asarray(value)[kept]
        return replace(self, **cut)

    # ------------------------------------------------ parameters

    def frame(self, X: Array, weight: Array, spread: Array | None = None) -> Frame:
        """The coordinates for a fit that starts from this (dense) sample.

        ``spread`` (D,) is that of all rows: a column that varies only outside the sample has a
        scale of its own.
        """
        frame = frame_of(X, weight, robust=True)
        return frame if spread is None else widen_constant_columns(frame, X, spread)

    def check(self, block: Block, names: Array | None) -> None:  # noqa: B027 (all is allowed)
        """Raise a ValueError, naming row and column, for entries that no component can produce.

        ``names`` are those of the columns, if they have any.
        """

    def start_rows(self, X: Any) -> Array:
        """The rows of a sample as the array (n, any) that a start is made of; NaN is missing."""
        return dense_rows(X)

    def view(self, frame: Frame, X: Array) -> Array:
        """Rows as points (n, any) whose distances mean something, for starts; NaN is missing."""
        return frame.enter(X)

    def from_rows(self, frame: Frame, X: Array, U: Array, resp: Array) -> Any:
        """Parameters from a sample: its rows, their ``view`` without holes, responsibilities."""
        return self.from_sample(frame, U, resp)

    @abstractmethod
    def change_frame(self, params: Any, frame: Frame) -> Any:
        """The same components in other coordinates."""

    @abstractmethod
    def estimate(self, moments: Any, previous: Any) -> tuple[Any, Array]:
        """The maximum-likelihood M step under the floor, and which components touched it."""

    def floor_message(self, component: int) -> str:
        """What is told when a component touched the floor."""
        return (
            f"the covariance of component {component} reached the floor of {self.floor:g} "
            "relative to the data (duplicated rows, too few rows, or collinear columns)"
        )

    def has_few_rows(self, params: Any, counts: Array, n_rows: float) -> Array:
        """Which components (K,), with ``counts`` of ``n_rows`` rows, may be at the floor because
        some rows happen to lie so that they have no spread. By default any."""
        return np.ones(len(counts), bool)

    def bulk(self, X: Array, weight: Array) -> Frame:
        """Where most rows of a sample are: what tells components that rows far away have taken.

        The scale of a column in which distances mean nothing is infinite.
        """
        return bulk_of(X, weight)

    def entries(self, moments: Any, counts: Array) -> Array:
        """Weight of the entries behind each mean, (K, D) or (K, 1) if all columns have the same;
        ``counts`` (K,) is that of the rows."""
        return counts[:, None]

    def extent(self, params: Any) -> Array:
        """How far rows of each component are from its mean (K, D), in data coordinates; 0 where
        that is settled by the mean, or is the same for all components."""
        return np.zeros(params.means.shape)

    def shared_extent(self, params: Any) -> Array | None:
        """The same (D,) where all components share it."""
        return None

    @abstractmethod
    def from_sample(self, frame: Frame, U: Array, resp: Array) -> Any:
        """Parameters from a complete sample with given responsibilities (n, K)."""

    def describe(self, params: Any) -> dict[str, Any]:
        """The parameters in data coordinates, by the names under which they are published."""
        return {"means": params.frame.leave(params.means)}

    @abstractmethod
    def n_free(self, n_components: int, n_features: int) -> int:
        """Number of free parameters of the components."""

    def penalty(self, params: Any) -> float:
        """What priors of the components take from the objective: -ln p, but for a constant."""
        return 0.0

    def least_rows(self, n_components: int) -> Array:
        """Rows (K,) that a component needs; one that has fewer is moved to other rows."""
        return np.zeros(n_components)

    @abstractmethod
    def coordinates(self, params: Any) -> Array: ...

    @abstractmethod
    def from_coordinates(self, params: Any, vector: Array) -> Any: ...

    @abstractmethod
    def derivatives(self, params: Any, moments: Any) -> tuple[Array, Metric]:
        """Gradient of the log likelihood in ``coordinates``; the metric of the complete data."""

    @abstractmethod
    def place(self, params: Any, where: Array, points: Array) -> Any:
        """Components ``where`` moved to ``points`` with a typical covariance."""

    @abstractmethod
    def select(self, params: Any, which: Array) -> Any:
        """Only the components ``which``."""

    def restricted(self, which: Array) -> Self:
        """The family of only the components ``which``, where components differ in kind."""
        return self

    # ------------------------------------------------ E step

    @abstractmethod
    def mode(self, params: Any) -> Any:
        """The reading of point estimates: factors and the lifted form."""

    @abstractmethod
    def scores(self, tile: Block, reading: Any) -> Scores:
        """Log densities of a tile of rows of any kind."""

    @abstractmethod
    def log_density(self, block: Block, reading: Any) -> Array:
        """Log densities (n, K) of a block by the fastest route that is exact for it."""

    def lift_complete_rows(self, reading: Any) -> tuple[FeatureMap, Array] | None:
        """Features of a complete row and log densities as rows over them, where that is exact."""
        return None

    def trust(self, reading: Any, dtype: Any) -> Trust:
        """How far from all components the scores of rows of this type can be relied on."""
        return EVERYWHERE

    def log_ratios(self, block: Block, reading: Any, reference: int) -> Array:
        """ln p(x | k) - ln p(x | reference) (n, K), also of rows so far away that both logarithms
        are too large to have digits left for it. By default by subtraction."""
        scores = self.scores(block, reading).log_density
        return np.asarray(scores - scores[:, reference, None])

    @abstractmethod
    def moments(self, scores: Scores, resp: Array, reading: Any) -> Any:
        """Additive statistics of a tile for weighted responsibilities (n, K)."""

    @abstractmethod
    def fused_pass(self, block: Block, reading: Any, log_weights: Array) -> tuple[Any, Sums] | None:
        """Both at once over a whole block by the fast kernel; None if the block is not for it.

        Rows that the kernel is not to be trusted with are named in ``Sums.left_out``."""

    def stack(self, params: Sequence[Any]) -> Any:
        """The components of several mixtures in one frame, one after the other; None if a pass
        over all of them at once is not offered."""
        return None

    def unstack(self, params: Any, moments: Any, n_groups: int) -> list[tuple[Any, Any]]:
        """Parameters and moments of all components as those of each mixture."""
        raise TypeError(f"{self.name} components are not stacked")

    def grouped_pass(
        self, block: Block, reading: Any, log_weights: Array
    ) -> tuple[Any, list[Sums]] | None:
        """``fused_pass`` of several mixtures at once, with ``log_weights`` (C, K): the moments of
        all components, sums of each mixture; None if the block is not for it."""
        return None

    @abstractmethod
    def about_frame(self, moments: Any) -> Any:
        """The same moments about the origin of the frame, so that passes can be blended."""

    # ------------------------------------------------ using a fit

    def normals_per_row(self, n_features: int) -> int:
        """Standard normals that a draw of one row takes."""
        return n_features

    @abstractmethod
    def complete_rows(
        self, scores: Scores, reading: Any, component: int, normals: Array | None
    ) -> Array:
        """Rows in frame coordinates with missing entries at their conditional mean under one
        component, or at a conditional draw made of standard normals (n, ``normals_per_row``)."""

    def fill_missing(self, scores: Scores, resp: Array, reading: Any) -> Array:
        """Rows in frame coordinates with missing entries at the best guess of all components, which
        share the rows by ``resp`` (n, K): their conditional mean, where a mean is a value."""
        used = np.flatnonzero(resp.max(axis=0) > 0)
        parts = (resp[:, k, None] * self.complete_rows(scores, reading, int(k), None) for k in used)
        return reduce(np.add, parts)

    @abstractmethod
    def condition(self, params: Any, known: Array, values: Array) -> tuple[Array, Any]:
        """Log density (K,) of known columns and the components of the others given them."""

    @abstractmethod
    def sample(self, params: Any, labels: Array, normals: Array) -> Array:
        """Rows of the given components from standard normals, in data coordinates."""

    def draw_rows(self, params: Any, labels: Array, rng: np.random.Generator) -> Array:
        """Rows of the given components, in data coordinates."""
        size = self.normals_per_row(params.n_features)
        return self.sample(params, labels, rng.standard_normal((len(labels), size)))


def dense_rows(X: Any) -> Array:
    """A tile as an ordinary array."""
    return np.asarray(X.toarray()) if hasattr(X, "toarray") else np.asarray(X)
