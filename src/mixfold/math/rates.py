"""Learning rates of mini-batch training as functions of its progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mixfold.contracts import record


@record
@dataclass(frozen=True, slots=True)
class Position:
    """Where training by mini-batches stands.

    ``epoch`` and ``step`` (within the epoch) count from 0. ``share`` of the whole training that is
    done lies in [0, 1); in a stream, which has no end, it stays 0.
    """

    epoch: int = 0
    step: int = 0
    share: float = 0.0


class Rate(Protocol):
    """A number that depends on the position."""

    def at(self, position: Position) -> float: ...


@record
@dataclass(frozen=True, slots=True)
class Constant:
    """The same all the time."""

    value: float

    def at(self, position: Position) -> float:
        return self.value


@record
@dataclass(frozen=True, slots=True)
class Dropped:
    """``value``, and ``factor`` times it once ``after`` of the training is done."""

    value: float
    factor: float = 0.2
    after: float = 0.6

    def at(self, position: Position) -> float:
        return self.value * (self.factor if position.share >= self.after else 1.0)


@record
@dataclass(frozen=True, slots=True)
class Linear:
    """From ``first`` straight to ``last``."""

    first: float
    last: float = 0.0

    def at(self, position: Position) -> float:
        return self.first + position.share * (self.last - self.first)


@record
@dataclass(frozen=True, slots=True)
class Switched:
    """``first`` for ``epochs`` epochs, then ``then``."""

    first: float
    then: float
    epochs: int

    def at(self, position: Position) -> float:
        return self.first if position.epoch < self.epochs else self.then
