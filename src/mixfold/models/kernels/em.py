"""Kernel PCA by EM: probabilistic PCA whose loadings are combinations B of features.

The E step is one product with the kernel matrix and the M step a regression of size d. The span of
the latents is that of a power iteration, whatever the noise; exact axes are taken out of it at
the end (``ritz``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, qr, svd

from mixfold.contracts import Array, Block, Context, Pilot, RowRandom, Stats, Update, record
from mixfold.math.krylov import Eigenpairs
from mixfold.models.kernels.centred import CentredGram


@record
@dataclass(frozen=True, slots=True)
class Combinations:
    """Loadings as combinations of the centred features of the rows, (N, d)."""

    B: Array


@dataclass(frozen=True)
class KernelProduct(Stats):
    """(G U)' of some tiles, for the centred combinations U; ``rows`` are counted."""

    values: Array
    rows: float


@dataclass(frozen=True, slots=True)
class KernelEM:
    """The model that the engine fits; the blocks of its source are the strips of ``gram``.

    With ``tol`` above zero it says itself when the axes are found: when the residuals of the
    eigenpairs in the span are less than that share of their values. The likelihood cannot tell, as
    small parts of it are lost in the rounding of the whole.
    """

    gram: CentredGram
    n_components: int
    noise: float
    trace: float
    dimension: int
    tol: float = 0.0

    # ------------------------------------------------ start

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> Combinations:
        return self.start_from_latents(rng.standard_normal((self.gram.size, self.n_components)))

    def start_from_latents(self, Z: Array) -> Combinations:
        """Where latents Z lead to."""
        return Combinations(Z @ np.linalg.pinv(Z.T @ Z))

    # ------------------------------------------------ steps

    def prepare(self, params: Combinations) -> Array:
        return np.ascontiguousarray(self.gram.before(params.B).T)

    def expect(self, reading: Array, block: Block, rng: RowRandom) -> KernelProduct:
        return KernelProduct(self.gram.gram.strip_times(reading, block), float(block.n_rows))

    def _solve_posterior(
        self, params: Combinations, stats: KernelProduct
    ) -> tuple[Array, Array, Array]:
        """A = K B, M = B'A + noise I, and A M^-1, the posterior means."""
        A = self.gram.after(stats.values.T)
        M = params.B.T @ A + self.noise * np.eye(self.n_components)
        M = (M + M.T) / 2
        return A, M, cho_solve(cho_factor(M), A.T).T

    def update(
        self, params: Combinations, stats: KernelProduct, context: Context
    ) -> Update[Combinations]:
        A, M, Z = self._solve_posterior(params, stats)
        if self.tol and worst_residual(params.B, A, self.gram.size * self.noise) <= self.tol:
            return Update(params)  # the same: there is nothing to gain
        C = self.gram.size * self.noise * np.linalg.inv(M) + Z.T @ Z
        return Update(Combinations(np.linalg.solve(C, Z.T).T))

    def objective(self, params: Combinations, stats: KernelProduct) -> float:
        """The log-likelihood of the features."""
        A, M, Z = self._solve_posterior(params, stats)
        n, left = self.gram.size, self.dimension - self.n_components
        rest = (self.trace - float((A * Z).sum())) / self.noise
        logs = self.dimension * np.log(2 * np.pi) + left * np.log(self.noise)
        return -0.5 * float(n * (logs + np.linalg.slogdet(M)[1]) + rest)

    def total_weight(self, stats: KernelProduct) -> float:
        return stats.rows

    def entropy(self, stats: KernelProduct) -> float:
        return 0.0

    # ------------------------------------------------ coordinates

    def coordinates(self, params: Combinations) -> Array:
        return params.B.ravel()

    def from_coordinates(self, params: Combinations, vector: Array) -> Combinations | None:
        if not np.isfinite(vector).all():
            return None
        return Combinations(vector.reshape(params.B.shape))

    def derivatives(self, params: Combinations, stats: KernelProduct) -> None:
        return None


def worst_residual(B: Array, A: Array, least: float) -> float:
    """The largest relative residual of the eigenpairs in span(B), from A = K B.

    Residuals of values below ``least`` are relative to that: the noise drives their axes to zero.
    """
    left, lengths, turn = svd(B, full_matrices=False)
    real = lengths > 1e-10 * lengths[0]
    Q, product = left[:, real], A @ (turn[real].T / lengths[real])
    T = Q.T @ product
    values, Y = np.linalg.eigh((T + T.T) / 2)
    residuals = np.linalg.norm(product @ Y - (Q @ Y) * values, axis=0)
    return float((residuals / np.maximum(values, least)).max(initial=0.0))


def ritz(gram: CentredGram, B: Array, passes: int, converged: bool) -> Eigenpairs:
    """The best eigenpairs in the span of one more product with the kernel matrix."""
    lengths = np.linalg.norm(B, axis=0)
    Q = qr(gram.times(B / np.where(lengths > 0, lengths, 1.0)), mode="economic")[0]
    product = gram.times(Q)
    T = Q.T @ product
    values, turn = np.linalg.eigh((T + T.T) / 2)
    values, turn = values[::-1], turn[:, ::-1]
    return Eigenpairs(np.maximum(values, 0.0), Q @ turn, passes + 2, converged)
