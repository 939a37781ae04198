"""MORP with a loss of the outputs in place of their squared error.

With score vectors Z = V diag(s) E, s^2 = w / (w + gamma) and E'E = I, of the centred coordinates
F = V diag(sqrt(w)) of the rows, the fit makes least

    (1 - beta) (sum of w - tr Z'Gx Z) + beta sum_l a_l (2 / c_l) (loss of column l + c_l penalty_l)

over E, coefficients B (d, L) of the functions eta = Z B, and intercepts. The first term is what the
scores leave of the inputs; penalty_l = gamma/2 |(w + gamma)^-1/2 E B_l|^2 measures, as the
constraint of ``max_form`` does, how smooth eta_l is; c_l is the curvature of the loss. With the
squared loss |y - eta|^2 / 2 this is ``max_form`` itself. Any other loss lies below its quadratic
bound at the last parameters, which is the squared loss of working outputs: each step is one
of ``max_form`` for these, and never raises the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, Block, Context, Pilot, RowRandom, Stats, Update, record
from mixfold.models.kernels.morp import max_directions
from mixfold.models.kernels.output_losses import OutputLoss


@record
@dataclass(frozen=True, slots=True)
class WorkingOutputs:
    """V'Y (r, L) of the working outputs Y, intercepts (K,), and what follows from V'Y.

    That is eigenvalues (d,), directions E (r, d) and coefficients B (d, L).
    """

    products: Array
    intercepts: Array
    values: Array
    directions: Array
    coefficients: Array


@dataclass(frozen=True, slots=True)
class Reading:
    """Coefficients (r, L) of the coordinates F, and intercepts."""

    slopes: Array
    intercepts: Array


@dataclass(frozen=True)
class LossSums(Stats):
    """F'G (r, L) for gradients G, their sums by intercept (K,), losses by set (S,), and weight."""

    cross: Array
    gradients: Array
    losses: Array
    weight: float


@dataclass(frozen=True, slots=True)
class LossMORP:
    """The model; blocks hold coordinates F (n, r) and targets of all sets side by side.

    ``w`` (r,) are eigenvalues of Gx and ``roots`` (r,) lengths of the columns of F, which are equal
    to sqrt(w) but for a factor. ``scales`` (S,) say how much the loss of each set counts.
    """

    w: Array
    roots: Array
    losses: tuple[OutputLoss, ...]
    sizes: tuple[int, ...]
    scales: Array
    beta: float
    gamma: float
    n_components: int

    # ------------------------------------------------ pieces of the sets

    def _columns(self) -> list[slice]:
        ends = np.cumsum(self.sizes)
        return [
            slice(int(end - size), int(end)) for end, size in zip(ends, self.sizes, strict=True)
        ]

    def _intercepts(self) -> list[slice]:
        counts = [len(loss.owner) for loss in self.losses]
        ends = np.cumsum(counts)
        return [slice(int(end - n), int(end)) for end, n in zip(ends, counts, strict=True)]

    def _curvatures(self) -> Array:
        """Of the columns (L,): as many margins as a column has, as much more it bends."""
        return np.concatenate([
            loss.curvature * np.bincount(loss.owner, minlength=size)
            for loss, size in zip(self.losses, self.sizes, strict=True)
        ])  # fmt: skip

    def _steepness(self) -> Array:
        """The curvature of the margin of each intercept (K,)."""
        return np.concatenate([np.full(len(one.owner), one.curvature) for one in self.losses])

    def _stress(self) -> Array:
        """How much a squared error of each column counts (L,), beside beta."""
        return np.repeat(self.scales, self.sizes) * self._curvatures() / 2

    # ------------------------------------------------ start and steps

    def initialise(
        self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0
    ) -> WorkingOutputs:
        return self.start_from(pilot.block)

    def start_from(self, rows: Block) -> WorkingOutputs:
        """No function of the rows yet: intercepts alone."""
        assert rows.y is not None
        parts = [
            loss.start(rows.y[:, columns], rows.weights())
            for loss, columns in zip(self.losses, self._columns(), strict=True)
        ]
        return self._solve(np.zeros((len(self.w), sum(self.sizes))), np.concatenate(parts))

    def _solve(self, products: Array, intercepts: Array) -> WorkingOutputs:
        C = products * np.sqrt(self._stress())
        values, E = max_directions(self.w, C, self.beta, self.gamma, self.n_components)
        return WorkingOutputs(products, intercepts, values, E, E.T @ (self._shrunk * products))

    @property
    def _shrunk(self) -> Array:
        return np.asarray(np.sqrt(self.w / (self.w + self.gamma)))[:, None]

    def prepare(self, params: WorkingOutputs) -> Reading:
        V = self._shrunk * (params.directions @ params.coefficients)
        return Reading(V / self.roots[:, None], params.intercepts)

    def expect(self, reading: Reading, block: Block, rng: RowRandom) -> LossSums:
        assert block.y is not None
        F, weight = np.asarray(block.X, np.float64), block.weights()
        eta = F @ reading.slopes
        G, lost, sums = np.zeros_like(eta), [], []
        for loss, columns, own in zip(
            self.losses, self._columns(), self._intercepts(), strict=True
        ):
            each, slopes = loss.evaluate(
                eta[:, columns], reading.intercepts[own], block.y[:, columns]
            )
            lost.append(float(weight @ each))
            sums.append(weight @ slopes)
            np.add.at(G[:, columns].T, loss.owner, slopes.T)
        weighted = weight[:, None] * G
        return LossSums(F.T @ weighted, np.concatenate(sums), np.array(lost), float(weight.sum()))

    def update(
        self, params: WorkingOutputs, stats: LossSums, context: Context
    ) -> Update[WorkingOutputs]:
        reached = self._shrunk * (params.directions @ params.coefficients)
        moved = stats.cross / self.roots[:, None] / self._curvatures()
        turned = stats.gradients / stats.weight / self._steepness()
        return Update(self._solve(reached - moved, params.intercepts - turned))

    def objective(self, params: WorkingOutputs, stats: LossSums) -> float:
        E, B = params.directions, params.coefficients
        kept = float(((self._shrunk**2)[:, 0] * self.w) @ (E**2).sum(axis=1))
        smooth = ((E / np.sqrt(self.w + self.gamma)[:, None]) @ B) ** 2
        penalty = self.gamma * float(smooth.sum(axis=0) @ self._stress())
        lost = (1 - self.beta) * (float(self.w.sum()) - kept)
        return -lost - self.beta * (float(self.scales @ stats.losses) + penalty)

    def total_weight(self, stats: LossSums) -> float:
        """The objective is that of the whole, in which rows have shares."""
        return 1.0

    def entropy(self, stats: LossSums) -> float:
        return 0.0

    # ------------------------------------------------ coordinates

    def coordinates(self, params: WorkingOutputs) -> Array:
        return np.concatenate([params.products.ravel(), params.intercepts])

    def from_coordinates(self, params: WorkingOutputs, vector: Array) -> WorkingOutputs | None:
        if not np.isfinite(vector).all():
            return None
        size = params.products.size
        return self._solve(vector[:size].reshape(params.products.shape), vector[size:])

    def derivatives(self, params: WorkingOutputs, stats: LossSums) -> None:
        return None
