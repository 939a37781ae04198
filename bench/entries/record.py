"""One line of the table of all models: what is drawn, what is fitted, and who judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Data:
    """Rows to fit (with classes or outputs), and others of the same law that judge."""

    X: Any
    y: Any = None
    test: Any = None
    test_y: Any = None


def parted(X: Any, n: int, y: Any = None) -> Data:
    """The first ``n`` rows to fit, the others to judge."""
    if y is None:
        return Data(X[:n], test=X[n:])
    return Data(X[:n], y[:n], X[n:], y[n:])


@dataclass(frozen=True)
class Judge:
    """A number that the same code computes for both libraries.

    ``up``: more is better.
    """

    name: str
    of: Callable[[Any, Data], float]
    up: bool = True

    @property
    def label(self) -> str:
        return f"{self.name} {'↑' if self.up else '↓'}"


# parameters of an estimator, or what makes them of the data (a start, say)
Settings = Mapping[str, Any] | Callable[[Data], Mapping[str, Any]]


@dataclass(frozen=True)
class Entry:
    """A model of ours, ``peer`` (``module:class``) or None, and what is equal for both.

    ``kind`` tells two lines of one model apart; ``remark`` says what the peer is, if not the same
    model.
    """

    model: str
    problem: str
    compared: str
    draw: Callable[[int], Data]
    judge: Judge
    ours: Settings
    peer: str | None = None
    theirs: Settings = field(default_factory=dict)
    sizes: tuple[int, ...] = (5_000, 10_000, 20_000)
    quick: tuple[int, ...] = (300, 600)
    kind: str = ""
    remark: str = ""

    @property
    def name(self) -> str:
        return f"{self.model}, {self.kind}" if self.kind else self.model

    @property
    def peer_name(self) -> str:
        if self.peer is None:
            return "none"
        name = self.peer.split(":")[1]
        return f"{name} ({self.remark})" if self.remark else name

    @property
    def estimators(self) -> dict[str, str]:
        """Where the class of ``ours``, and of ``theirs`` if there is a peer, is found."""
        ours = {"ours": f"mixfold:{self.model}"}
        return ours if self.peer is None else {**ours, "theirs": self.peer}

    def settings(self, side: str, data: Data) -> dict[str, Any]:
        wanted = self.ours if side == "ours" else self.theirs
        return dict(wanted(data) if callable(wanted) else wanted)
