"""How codes are found in a pass: the minimum, or one adaptive step of each row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mixfold.contracts import Array
from mixfold.math.adaptive import GROWTH, HALVINGS, LONGEST
from mixfold.math.softmax_regression import log_losses
from mixfold.models.networks.factorization.codes import CodeProblem
from mixfold.models.networks.factorization.remembered import KnownCodes

# how far from the ends of their range codes begin: an entry at zero would stay there
_INSIDE = 1e-3
# no source is further away; its square is a number
_FAR = 1e100


@dataclass(frozen=True, slots=True)
class Asked:
    """Rows less the bias, their labels, what is ``known`` of the last pass, or None; whether they
    are ``complete``, and whether this is the ``first`` pass."""

    problem: CodeProblem
    centred: Array
    y: Array | None
    known: KnownCodes | None
    complete: bool
    first: bool

    def minimum(self, start: Array | None = None) -> Array:
        return self.problem.solve_centred(self.centred, self.y, start, self.complete)


class SourceRule(Protocol):
    """Codes of the rows of a block, and the steps that are to be remembered with them."""

    def infer(self, rows: Asked) -> tuple[Array, Array | None]: ...


@dataclass(frozen=True, slots=True)
class Minimised:
    """The codes of least cost: the problem is convex."""

    def infer(self, rows: Asked) -> tuple[Array, Array | None]:
        return rows.minimum(None if rows.known is None else rows.known.phi), None


@dataclass(frozen=True, slots=True)
class GradientSources:
    """s - size (dE/ds), for each row as far as its own part of E does not rise."""

    size: float = 1e-2

    def infer(self, rows: Asked) -> tuple[Array, Array | None]:
        return _take_step(self, rows)

    def mover(self, problem: CodeProblem, X: Array, y: Array | None, phi: Array) -> Mover:
        s = problem.link.inverse(phi)
        slope = smooth_slope(problem, X, y, phi) * problem.link.slope(phi)
        slope += problem.alpha * np.sign(s)

        def move(rows: Array, sizes: Array) -> Array:
            moved = s[rows] - sizes[:, None] * slope[rows]
            with np.errstate(over="ignore"):
                return _clip_to_box(problem, moved)

        return move


@dataclass(frozen=True, slots=True)
class MultiplicativeSources:
    """s times a power of the ratio of the negative to the positive part of the gradient."""

    size: float = 1.0

    def infer(self, rows: Asked) -> tuple[Array, Array | None]:
        return _take_step(self, rows)

    def mover(self, problem: CodeProblem, X: Array, y: Array | None, phi: Array) -> Mover:
        s, seen = problem.link.inverse(phi), ~np.isnan(X)
        A, b, s2 = problem.layer.codebook, problem.layer.bias, problem.sigma2
        down = np.where(seen, X, 0.0) @ A.T / s2
        up = np.where(seen, phi @ A + b, 0.0) @ A.T / s2 + problem.alpha / problem.link.slope(phi)
        labels = _labels(problem, y)
        if labels is not None:
            V, v = problem.layer.head()
            rows = np.flatnonzero(labels >= 0)
            errors = log_losses(phi[rows] @ V + v, labels[rows])[1]
            down[rows] += V[:, labels[rows]].T
            up[rows] += errors @ V.T + V[:, labels[rows]].T
        ratio = np.where(up > 0, down / np.where(up > 0, up, 1.0), 1.0)

        def move(rows: Array, sizes: Array) -> Array:
            with np.errstate(over="ignore"):
                return _clip_to_box(problem, s[rows] * ratio[rows] ** sizes[:, None])

        return move


Mover = Callable[[Array, Array], Array]


class _Stepping(Protocol):
    @property
    def size(self) -> float: ...

    def mover(self, problem: CodeProblem, X: Array, y: Array | None, phi: Array) -> Mover: ...


def _take_step(rule: _Stepping, asked: Asked) -> tuple[Array, Array | None]:
    problem, y, known = asked.problem, asked.y, asked.known
    if known is None or known.steps is None:
        phi = asked.minimum()
        if asked.first:
            span = _INSIDE * min(1.0, problem.link.upper - problem.link.lower)
            phi = np.clip(phi, problem.link.lower + span, problem.link.upper - span)
        return phi, np.full(len(phi), rule.size)
    X = asked.centred + problem.layer.bias
    phi, sizes = known.phi.copy(), known.steps.copy()
    before = row_energies(problem, X, y, phi)
    move = rule.mover(problem, X, y, phi)
    rows = np.arange(len(phi))
    for _ in range(HALVINGS):
        new = move(rows, sizes[rows])
        labels = None if y is None else y[rows]
        better = row_energies(problem, X[rows], labels, new) <= before[rows]
        phi[rows[better]] = new[better]
        sizes[rows[better]] = np.minimum(sizes[rows[better]] * GROWTH, LONGEST)
        rows = rows[~better]
        sizes[rows] *= 0.5
        if not rows.size:
            break
    return phi, sizes


def _clip_to_box(problem: CodeProblem, s: Array) -> Array:
    """Codes of sources, the nearest ones of the box; also of a step that was much too long."""
    link = problem.link
    s = np.clip(s, -_FAR, _FAR)
    if link.lower == 0.0:
        s = np.maximum(s, 0.0)
    return np.clip(link.value(s), link.lower, link.upper)


def _labels(problem: CodeProblem, y: Array | None) -> Array | None:
    if y is None or problem.layer.classifier is None:
        return None
    return np.asarray(y, np.int64)


def smooth_slope(problem: CodeProblem, X: Array, y: Array | None, phi: Array) -> Array:
    """dE/dphi of the terms of reconstruction and label."""
    A, b = problem.layer.codebook, problem.layer.bias
    residual = phi @ A + b - X
    slope = np.where(np.isnan(residual), 0.0, residual) @ A.T / problem.sigma2
    labels = _labels(problem, y)
    if labels is not None:
        V, v = problem.layer.head()
        rows = np.flatnonzero(labels >= 0)
        slope[rows] += log_losses(phi[rows] @ V + v, labels[rows])[1] @ V.T
    return np.asarray(slope)


def row_energies(problem: CodeProblem, X: Array, y: Array | None, phi: Array) -> Array:
    """The part of E that each row has: reconstruction, sources and label."""
    A, b = problem.layer.codebook, problem.layer.bias
    residual = phi @ A + b - X
    residual[np.isnan(residual)] = 0.0
    energy = 0.5 / problem.sigma2 * (residual**2).sum(axis=1)
    if problem.alpha > 0:
        energy += problem.alpha * problem.link.cost(phi).sum(axis=1)
    labels = _labels(problem, y)
    if labels is not None:
        V, v = problem.layer.head()
        rows = np.flatnonzero(labels >= 0)
        energy[rows] += log_losses(phi[rows] @ V + v, labels[rows])[0]
    return np.asarray(energy)
