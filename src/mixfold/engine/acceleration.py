"""Extrapolation of the fixed-point iteration x -> M(x) in the model's own coordinates.

A rule looks at the points visited so far and proposes where to go instead of M(x), or nothing. It
may propose nonsense: the loop keeps a proposal only if the objective rose, asks again after a
failure, and takes the plain step when the rule gives up. So the fit stays monotone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from mixfold.contracts import Array, Metric, record


@record
@dataclass(frozen=True, slots=True)
class Point:
    """A visited point.

    ``image`` is M(x); ``plain`` says that x was itself the image of its predecessor; ``gradient``
    and ``metric`` are None if the model does not offer them.
    """

    x: Array
    image: Array
    objective: float
    plain: bool
    gradient: Array | None = None
    metric: Metric | None = None


@record
@dataclass(frozen=True, slots=True)
class Proposal:
    """Where to go, and which fraction of the rule's full step that is."""

    x: Array
    step: float = 1.0


@record
@dataclass(frozen=True, slots=True)
class Failure:
    """A proposal from the last point that lowered the objective."""

    step: float
    objective: float


class Acceleration(Protocol):
    @property
    def memory(self) -> int:
        """How many points the rule looks back."""
        ...

    def propose(self, points: Sequence[Point], failures: Sequence[Failure]) -> Proposal | None: ...


@dataclass(frozen=True, slots=True)
class Squarem:
    """Squared extrapolation (Varadhan and Roland, 2008, step length S3)."""

    memory: int = 2

    def propose(self, points: Sequence[Point], failures: Sequence[Failure]) -> Proposal | None:
        if len(points) < 2 or not points[-1].plain or len(failures) > 1:
            return None
        start, middle = points[-2], points[-1]
        step = start.image - start.x
        curve = (middle.image - middle.x) - step
        size = np.linalg.norm(curve)
        length = float(np.linalg.norm(step) / size) if size > 0 else 1.0
        shrink = 0.25 ** len(failures)
        length = 1 + (length - 1) * shrink  # 1 is the plain step
        if not length > 1:
            return None
        return Proposal(start.x + 2 * length * step + length**2 * curve, shrink)


@dataclass(frozen=True, slots=True)
class QuasiNewton:
    """L-BFGS that starts from the curvature of the complete data, i.e. from an EM step.

    The gradient comes with the statistics of the E step (Fisher's identity), so a step costs one
    pass.
    """

    memory: int = 15
    max_failures: int = 3

    def propose(self, points: Sequence[Point], failures: Sequence[Failure]) -> Proposal | None:
        here = points[-1]
        if here.gradient is None or here.metric is None or len(failures) > self.max_failures:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # refused by the next line
            direction = _ascent(points)
            slope = float(here.gradient @ direction)
        if not (np.isfinite(slope) and slope > 0):
            return None
        step = _shorter(here.objective, slope, failures[-1]) if failures else 1.0
        return Proposal(here.x + step * direction, step)


def _ascent(points: Sequence[Point]) -> Array:
    """The two-loop recursion for a maximum, over the pairs with positive curvature.

    Both loops are solved as triangular systems in the products s_i'y_j (Byrd, Nocedal and Schnabel,
    1994): a few products of matrices instead of two calls for each pair.
    """
    here = points[-1]
    assert here.gradient is not None and here.metric is not None
    S, Y = _pairs(points)
    if not len(S):
        return here.metric.solve(here.gradient)
    products = S @ Y.T
    own = np.diagonal(products)
    alpha = lapack.dtrtrs(products, S @ here.gradient)[0]
    q = here.metric.solve(here.gradient - alpha @ Y)
    q = q * (own[-1] / (Y[-1] @ here.metric.solve(Y[-1])))
    change = lapack.dtrtrs(products, own * alpha - Y @ q, trans=1)[0]
    return np.asarray(q + change @ S)


def _pairs(points: Sequence[Point]) -> tuple[Array, Array]:
    """Steps s and what the slope fell by on them y, (m, P) each, where s'y > 0."""
    size = points[-1].x.size
    known = [(p.x, p.gradient) for p in points if p.gradient is not None]
    S = np.array([b - a for (a, _), (b, _) in pairwise(known)]).reshape(-1, size)
    Y = np.array([g - h for (_, g), (_, h) in pairwise(known)]).reshape(-1, size)
    product, sizes = (np.einsum("ip,ip->i", *pair) for pair in ((S, Y), (S, S)))
    curved = product > 1e-10 * np.sqrt(sizes * np.einsum("ip,ip->i", Y, Y))
    return (S, Y) if curved.all() else (S[curved], Y[curved])


def _shorter(objective: float, slope: float, failure: Failure) -> float:
    """The maximiser of the parabola through the value and slope here and the failed value."""
    t = failure.step
    bend = 2 * (objective + slope * t - failure.objective)
    best = slope * t**2 / bend if np.isfinite(bend) and bend > 0 else 0.0
    return float(np.clip(best, 0.1 * t, 0.5 * t))


ACCELERATIONS: dict[str, Acceleration] = {
    "squarem": Squarem(),
    "quasi-newton": QuasiNewton(),
}
