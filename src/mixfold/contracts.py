"""The value types and protocols in which the rooms of the library meet. No mathematics.

Read this file first: a model is a pair of pure functions, ``Block -> Stats`` and
``Stats -> params``; everything else (memory, threads, files, clusters, restarts,
checkpoints) is written once against the protocols below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# Arrays of records by what they hold; a file in which they hold anything else is refused.
Positive = Annotated[Array, "positive"]
NotNegative = Annotated[Array, "not negative"]
Shares = Annotated[Array, "shares"]  # of one: not negative, and in the last axis they sum to one
P = TypeVar("P")
R = TypeVar("R")
S = TypeVar("S", bound="Stats")
C = TypeVar("C", bound=type)

# ------------------------------------------------------------------ records

RECORDS: dict[str, type] = {}


def record(cls: C) -> C:
    """Allow a frozen dataclass to be written to, and rebuilt from, a model file.

    The registry is the loader's allow-list: a file can name nothing else. Files call a record by
    the name of its class, or by ``record_name`` if the class itself defines one.
    """
    name = record_name(cls)
    if RECORDS.setdefault(name, cls) is not cls:
        raise TypeError(
            f"two records are called {name!r}: {RECORDS[name].__module__}.{name} and one of "
            f"{cls.__module__}. Give one of them a record_name of its own"
        )
    return cls


def record_name(cls: type) -> str:
    """What model files call a record."""
    return str(vars(cls).get("record_name", cls.__name__))


def is_record(value: Any) -> bool:
    """Whether a model file can hold the value as a record."""
    return RECORDS.get(record_name(type(value))) is type(value)


def constant(**kwargs: Any) -> Any:
    """A field of a ``Stats`` that all summands share (an origin, say) and that is not added."""
    return field(metadata={"constant": True}, **kwargs)


V = TypeVar("V")


def changed(value: V, **fields_: Any) -> V:
    """``dataclasses.replace`` of a value whose fields are all set by its constructor, in a tenth of
    the time: state changes several times in a pass, and a pass over a small table is short."""
    names = _NAMES.get(type(value))
    if names is None:
        names = _NAMES[type(value)] = tuple(f.name for f in fields(value))  # type: ignore[arg-type]
    made = object.__new__(type(value))
    keep = object.__setattr__
    for name in names:
        keep(made, name, fields_.pop(name) if name in fields_ else getattr(value, name))
    if fields_:
        raise TypeError(f"{type(value).__name__} has no field {next(iter(fields_))!r}")
    return made


_NAMES: dict[type, tuple[str, ...]] = {}

# ------------------------------------------------------------------ data

# Rows of a block from which on kernels are worth loading: the least of a table that makes several
SMALL_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Block:
    """Some consecutive rows of the data: the unit of scheduling.

    Attributes
    ----------
    X : ndarray of shape (n, D), float32 or float64, or a CSR matrix
        NaN marks a missing entry.
    start : int
        Global index of the first row.
    y : ndarray of shape (n, ...), optional
        Labels; -1 (or NaN for real outputs) marks an unknown one.
    weight : float64 ndarray of shape (n,), optional
        None means that every row has weight one.
    complete : bool
        True when X is known to hold no NaN.
    known : dict
        What was computed of these rows and is asked for in every pass; a source gives the block of
        a small table again and again. Never more than the rows and settings say.
    """

    X: Any
    start: int = 0
    y: Array | None = None
    weight: Array | None = None
    complete: bool = True
    known: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def rows(self) -> slice:
        return slice(self.start, self.start + self.n_rows)

    @property
    def is_small(self) -> bool:
        """Whether numpy visits the rows about as fast as a kernel would, which has to be loaded or
        compiled first. The rows of the block decide, so that it is the same everywhere."""
        return self.n_rows < SMALL_BLOCK

    def weights(self) -> Array:
        """The weights as an array, ones where none were given."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def part(self, first: int, last: int) -> Block:
        """The rows ``first:last`` of this block, as a block."""
        return replace(
            self,
            X=self.X[first:last],
            start=self.start + first,
            y=None if self.y is None else self.y[first:last],
            weight=None if self.weight is None else self.weight[first:last],
        )


@runtime_checkable
class Source(Protocol):
    """Re-iterable blocks of one data set. Shape, dtype and finiteness are checked here."""

    @property
    def n_samples(self) -> int | None:
        """Number of rows; None while a stream (CSV) has not been read once."""
        ...

    @property
    def n_features(self) -> int: ...

    @property
    def feature_names(self) -> tuple[str, ...] | None: ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: what ``Block.X`` holds."""
        ...

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        """The blocks in row order. The same ``max_rows`` gives the same blocks every time."""
        ...


# ------------------------------------------------------------------ statistics


@dataclass(frozen=True)
class Stats:
    """Additive statistics: a commutative monoid over blocks of rows.

    Subclasses are frozen dataclasses whose fields are arrays, floats or ``Stats``.
    """

    def _map(self, change: Callable[[str, Any], Any]) -> Self:
        return replace(
            self,
            **{
                f.name: change(f.name, getattr(self, f.name))
                for f in fields(self)
                if not f.metadata.get("constant")
            },
        )

    def __add__(self, other: Self) -> Self:
        return self._map(lambda name, value: value + getattr(other, name))

    def __sub__(self, other: Self) -> Self:
        return self._map(lambda name, value: value - getattr(other, name))

    def scale(self, factor: float) -> Self:
        """Every additive field times ``factor``: rows that weigh ``factor`` as much."""
        return self._map(
            lambda _, value: value.scale(factor) if isinstance(value, Stats) else value * factor
        )

    def zero(self) -> Self:
        """The neutral element of the same shape."""
        return self._map(lambda _, value: value.zero() if isinstance(value, Stats) else value * 0)


# ------------------------------------------------------------------ random numbers


class RowRandom(Protocol):
    """Random numbers keyed by (seed, iteration, global row): blocks do not matter."""

    def uniform(self, rows: slice, per_row: int = 1) -> Array:
        """Uniforms in (0, 1) of shape (n_rows, per_row)."""
        ...

    def normal(self, rows: slice, per_row: int = 1) -> Array:
        """Standard normals of shape (n_rows, per_row)."""
        ...


# ------------------------------------------------------------------ what is known of each row


class RowMemory(Protocol):
    """A state of each row, which lies beside the rows: what a pass leaves for the next one.

    A pass recalls what the last accepted one has kept, and keeps its own. What it keeps counts
    once it is accepted; a pass that is rejected, or interrupted, leaves no trace. Rows are
    recalled by their global numbers, so that the cutting of blocks does not matter.
    """

    def recall(self, rows: slice) -> Array | None:
        """What is known of these rows, (n, ...), not to be written to; None if nothing is."""
        ...

    def keep(self, rows: slice, value: Array) -> None:
        """Keep ``value`` (n, ...) for the next pass: a row of it has one shape and type in all."""
        ...

    def accept(self) -> None:
        """The pass under way counts."""
        ...

    def forget(self) -> None:
        """Nothing is known of any row."""
        ...


class RowParts(Protocol):
    """What the last accepted pass has kept, in parts of consecutive rows, where they lie."""

    def map(self, change: Callable[[Any], Any]) -> RowParts:
        """Each part changed; picklable ``change``."""
        ...

    def sum(self, task: Callable[[Any], S]) -> S:
        """Sum of ``task(part)``, added in an index-ordered tree; picklable ``task``."""
        ...


# ------------------------------------------------------------------ models


@record
@dataclass(frozen=True, slots=True)
class Event:
    """Something a user should know of: a floored covariance, a re-seeded component."""

    kind: str
    message: str
    iteration: int = -1
    component: int = -1


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Pilot:
    """A seeded sample of the rows with summaries of all of them, drawn before a fit.

    ``block`` is a uniform sample without replacement of the rows of positive weight
    (all of them when they are few), in row order. ``total_rows``, ``total_weight``,
    ``observed`` (rows of positive weight with an entry, per column), ``minimum`` and
    ``maximum`` (per column, NaN if never observed) speak of the whole data set.
    """

    block: Block
    total_rows: int
    total_weight: float
    observed: Array
    minimum: Array
    maximum: Array


@dataclass(frozen=True, slots=True)
class Context:
    """What an M step may look at besides statistics.

    In a stream ``batch`` holds the statistics of the last batch alone, and ``rate`` its share in
    those that were blended.

    ``length`` is for models with tentative steps (see ``Update``): how long the next one may be,
    where 1 is the model's own idea of a step. 0 means that steps of any length lowered the
    objective: the model makes another kind of step, or returns the parameters as they are.

    ``rows`` is for models that remember rows (see ``RowMemory``): what was kept in the pass that
    the statistics come from. None where nothing is remembered: in batches, say.
    """

    pilot: Pilot | None
    rng: np.random.Generator
    iteration: int = 0
    events: tuple[Event, ...] = ()
    batch: Any = None
    rate: float = 1.0
    length: float = 1.0
    rows: RowParts | None = None


@dataclass(frozen=True, slots=True)
class Update(Generic[P]):
    """New parameters, and what happened to get them.

    ``monotone`` is False when a repair (re-seeding, dropping) may lower the objective: what earlier
    steps gained says nothing about those to come. A step with a ``length`` (at most that of the
    context) is tentative: the engine keeps it only if the objective did not fall, and otherwise
    goes back and asks for a shorter one.
    """

    params: P
    events: tuple[Event, ...] = ()
    monotone: bool = True
    length: float | None = None


@runtime_checkable
class StreamedModel(Protocol):
    """What a model offers beyond ``Model`` to be learned batch by batch."""

    def row_weight(self, stats: Any) -> float:
        """Weight of the rows that statistics were summed over."""
        ...

    def additive(self, stats: Any) -> Any:
        """Statistics in a form that can be added to those that other parameters have given."""
        ...


@runtime_checkable
class RememberingModel(Protocol):
    """What a model says beyond ``Model`` to be given a memory of rows.

    Its ``expect`` is called as ``expect(reading, block, rng, memory)`` in the passes of a fit, and
    without a memory elsewhere (batches of a stream). All other models are never given one.
    """

    @property
    def remembers_rows(self) -> bool: ...


class Metric(Protocol):
    """A positive definite matrix M in the coordinates of a model; a record, so it can be stored."""

    def solve(self, gradient: Array) -> Array:
        """M^-1 gradient: for the information of the complete data, about an EM step."""
        ...


class Model(Protocol[P, R, S]):
    """WHAT is fitted. Pure: no data, no loop, no state."""

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> P:
        """A start, from a sample of the rows. ``attempt`` counts the starts of one fit."""
        ...

    def prepare(self, params: P) -> R:
        """What the E step reads (factorised covariances, say): made once per pass."""
        ...

    def expect(self, reading: R, block: Block, rng: RowRandom) -> S:
        """Statistics of the latents of one block, additive over blocks."""
        ...

    def update(self, params: P, stats: S, context: Context) -> Update[P]: ...

    def objective(self, params: P, stats: S) -> float:
        """What the fit maximises, for all rows, from ``expect`` at ``params`` summed."""
        ...

    def total_weight(self, stats: S) -> float: ...

    def entropy(self, stats: S) -> float:
        """Entropy of the discrete latents, for ICL; 0 if there are none."""
        ...

    def coordinates(self, params: P) -> Array:
        """The free parameters as one unconstrained vector, for extrapolation."""
        ...

    def from_coordinates(self, params: P, vector: Array) -> P | None:
        """The inverse of ``coordinates``; ``params`` lends the constants.

        None if no parameters have these coordinates (they are not finite, say).
        """
        ...

    def derivatives(self, params: P, stats: S) -> tuple[Array, Metric] | None:
        """Gradient of the objective in ``coordinates``, and a metric to measure it by.

        By Fisher's identity it costs no pass of its own. None: not offered.
        """
        ...


# ------------------------------------------------------------------ executors


class Executor(Protocol):
    """WHERE the rows are visited. Parameters go out, statistics come back."""

    def map_reduce(self, task: Callable[[Block], S], source: Source) -> S:
        """Sum of ``task(block)``, added in an index-ordered tree."""
        ...

    def map_rows(self, task: Callable[[Block], Any], source: Source) -> Iterator[Any]:
        """``task(block)`` for each block, in row order."""
        ...
