"""The mixture under linear transformations as the engine fits it.

f(x) = sum_k pi_k N(Omega_k x; mu_k, Sigma_k) is no density of x: it is constant along the null
space of Omega_k, and its level depends on the scale of Omega_k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from mixfold.contracts import Array, Block, Context, Event, Pilot, RowRandom, Update
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.mlit.records import (
    Iterates,
    Moments,
    Transformed,
    TransformSums,
    moments_of,
)
from mixfold.models.mixtures.mlit.rules import Rule

LOG_2PI = float(np.log(2 * np.pi))
# draws parameters to begin with
Start = Callable[[Pilot, np.random.Generator], Transformed]
# a component with less weight than this is put back to its start
_EMPTY = 1e-6


@dataclass(frozen=True, slots=True)
class TransformedReading:
    """Rows of all components whitened at once: (K d, D) and (K d,), and constants (K,)."""

    whiten: Array
    shift: Array
    constant: Array
    origin: Array


@dataclass(frozen=True, slots=True)
class TransformedMixture:
    """``first`` is the start, or draws one; ``tol`` ends a fit whose score no longer moves by that
    much per row.

    ``keep`` says whether all iterates are wanted.
    """

    rule: Rule
    ridge: float
    first: Transformed | Start
    origin: Array
    tol: float = 0.0
    keep: bool = True

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> Iterates:
        start = self.first
        return Iterates(start if isinstance(start, Transformed) else start(pilot, rng))

    # ------------------------------------------------ E step

    def prepare(self, params: Iterates) -> TransformedReading:
        return read(params.now, self.rule.offset(params.now.covariances, self.ridge), self.origin)

    def expect(self, reading: TransformedReading, block: Block, rng: RowRandom) -> TransformSums:
        X = np.asarray(block.X, np.float64)
        weight = block.weights()
        log_f, shares = normalise(log_joint(reading, X))
        shares = shares * weight[:, None]
        rows = X - self.origin
        second = np.stack([(rows * shares[:, k : k + 1]).T @ rows for k in range(shares.shape[1])])
        score = float(weight @ log_f)
        return TransformSums(shares.sum(axis=0), shares.T @ rows, second, score,
                             float(weight.sum()), self.origin)  # fmt: skip

    # ------------------------------------------------ M step

    def update(self, params: Iterates, stats: TransformSums, context: Context) -> Update[Iterates]:
        scores = (*params.scores, stats.score)
        if self._still(scores, stats.weight):
            return Update(params)
        parts, events, counts = [], [], stats.count.copy()
        for k in range(len(params.now.weights)):
            moved, lost = self._update_component(params.now, stats, k, context.iteration)
            parts.append(moved)
            if lost:  # with its share, without which it could have no row
                counts[k] = self._known_start().weights[k] * stats.weight
                events.append(Event("empty", _LOST.format(k), context.iteration, k))
        stacked = (np.stack(part) for part in zip(*parts, strict=True))
        now = Transformed(counts / counts.sum(), *stacked)
        past = (*params.past, params.now) if self.keep else ()
        scores = scores if self.keep else ()
        steady = self.rule.monotone and not events
        return Update(Iterates(now, past, scores), tuple(events), monotone=steady)

    def _still(self, scores: tuple[float, ...], weight: float) -> bool:
        moved = len(scores) > 1 and abs(scores[-1] - scores[-2])
        return self.tol > 0 and len(scores) > 1 and moved <= self.tol * weight

    def _update_component(
        self, now: Transformed, sums: TransformSums, k: int, step: int
    ) -> tuple[tuple[Array, Array, Array], bool]:
        """Omega, mean and covariance of a component; whether it was put back to its start.

        Where rows are too few to say anything of their spread, the transformation stays; a rule
        whose objective must not fall leaves the component as it is.
        """
        few = sums.count[k] < now.means.shape[1] + 1
        if few and self.rule.monotone:
            return _part(now, k), False
        if sums.count[k] <= _EMPTY * sums.weight / len(sums.count):
            return _part(self._known_start(), k), True
        moments, omega = moments_of(sums, k), now.transforms[k]
        if few:
            moments = replace(moments, covariance=moments.of_all)
        else:
            omega = self.rule.move(omega, now.means[k], now.covariances[k], moments, step)
        return (omega, *law(omega, moments, self.ridge)), False

    def _known_start(self) -> Transformed:
        """Where a component that was lost begins anew; a rule that draws its start loses none."""
        assert isinstance(self.first, Transformed)
        return self.first

    def objective(self, params: Iterates, stats: TransformSums) -> float:
        return stats.score

    def total_weight(self, stats: TransformSums) -> float:
        return stats.weight

    def entropy(self, stats: TransformSums) -> float:
        return 0.0

    def coordinates(self, params: Iterates) -> Array:
        """Steps of this model are not extrapolated."""
        return np.empty(0)

    def from_coordinates(self, params: Iterates, vector: Array) -> None:
        return None

    def derivatives(self, params: Iterates, stats: TransformSums) -> None:
        return None


def _part(params: Transformed, k: int) -> tuple[Array, Array, Array]:
    return params.transforms[k], params.means[k], params.covariances[k]


_LOST = "component {} was left by all rows and put back to its start"


def law(omega: Array, moments: Moments, ridge: float) -> tuple[Array, Array]:
    """Mean and covariance of the transformed rows."""
    covariance = omega @ moments.covariance @ omega.T
    return omega @ moments.mean, (covariance + covariance.T) / 2 + ridge * np.eye(len(omega))


def read(params: Transformed, offset: Array, origin: Array) -> TransformedReading:
    """What scores rows: u = L^-1 (Omega x - mu) of all components by one product."""
    whiten, shift, constant = [], [], []
    d = params.means.shape[1]
    for k, (omega, mean) in enumerate(zip(params.transforms, params.means, strict=True)):
        try:
            L = cholesky(params.covariances[k], lower=True)
        except LinAlgError as error:
            raise ValueError(
                f"the covariance of component {k} is singular under its transformation; give ridge "
                "a positive value, or fewer n_dims"
            ) from error
        both = np.column_stack([omega, mean - omega @ origin])
        solved = solve_triangular(L, both, lower=True, check_finite=False)
        whiten.append(solved[:, :-1])
        shift.append(solved[:, -1])
        constant.append(-0.5 * d * LOG_2PI - float(np.log(np.diagonal(L)).sum()))
    with np.errstate(divide="ignore"):
        log_weights = np.log(params.weights)
    total = np.array(constant) + log_weights + offset
    return TransformedReading(np.concatenate(whiten), np.concatenate(shift), total, origin)


def log_joint(reading: TransformedReading, X: Array) -> Array:
    """log pi_k N(Omega_k x; mu_k, Sigma_k), (n, K)."""
    U = (X - reading.origin) @ reading.whiten.T
    U -= reading.shift
    U *= U
    squares = U.reshape(len(X), len(reading.constant), -1).sum(axis=2)
    return np.asarray(reading.constant - 0.5 * squares)
