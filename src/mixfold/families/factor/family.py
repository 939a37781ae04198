"""Components with a few factors each: probabilistic PCA, factor analysis, and their mixtures.

    z ~ N(0, I_d),   x | z, k ~ N(W_k z + mu_k, Psi_k),   Psi_k diagonal

What the components share, and whether the columns of one do, is said by ``noise`` and
``loadings``. No D x D matrix is made, whatever D.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, record
from mixfold.families.component import Scores, Trust, dense_rows
from mixfold.families.factor import complete, incomplete
from mixfold.families.factor.incomplete import IncompleteRows
from mixfold.families.factor.reading import FactorReading, factor_trust, read
from mixfold.families.factor.records import FactorParams, FactorSums, change_origin
from mixfold.families.factor.stacked_products import can_lift
from mixfold.families.factor.steps import FactorSteps
from mixfold.math.frame import Frame
from mixfold.math.lifted import Sums
from mixfold.math.low_rank import conditional, draw, log_density_ratios
from mixfold.math.missing import patterns_of
from mixfold.math.symmetric import unpack

# numbers that the general route may hold at a time: 32 MB
TILE_NUMBERS = 2**22


@dataclass(frozen=True, slots=True)
class Work:
    """A tile in frame coordinates: ``whole`` rows with whitened latents, and the ``lacking``."""

    U: Array
    whole: Array
    latents: Array
    lacking: Array
    rows: IncompleteRows | None


@dataclass(frozen=True, slots=True)
class Posterior:
    """Of the latents: log densities (n, K), means (n, K, d), covariances if they were asked for:
    (K, d, d) or, where entries are missing, (n, K, d, d)."""

    log_density: Array
    means: Array
    covariances: Array | None = None


@record
@dataclass(frozen=True)
class FactorFamily(FactorSteps):
    """Factor components; parameters are those of ``FactorSteps``."""

    # ------------------------------------------------ E step

    def mode(self, params: FactorParams) -> FactorReading:
        return read(params, self.noise.isotropic, self.has_missing)

    def fused_pass(
        self, block: Block, reading: FactorReading, log_weights: Array
    ) -> tuple[FactorSums, Sums] | None:
        if not can_lift(block, reading):
            return None
        return complete.lifted_pass(block, reading, log_weights)

    def log_density(self, block: Block, reading: FactorReading) -> Array:
        if can_lift(block, reading):
            return complete.lifted_scores(block, reading)[0]
        tiles = self._tiles(block, len(reading.means))
        return np.concatenate([self.scores(tile, reading).log_density for tile in tiles])

    def _tiles(self, block: Block, n_components: int) -> Iterator[Block]:
        """Parts of a block that the general route can hold the posteriors of."""
        per_row = self.workspace_per_row(n_components, block.X.shape[1])
        rows = max(64, TILE_NUMBERS // per_row)
        for first in range(0, block.n_rows, rows):
            yield block.part(first, first + rows)

    def scores(self, tile: Block, reading: FactorReading) -> Scores:
        U = reading.frame.enter(dense_rows(tile.X))
        lacks = np.zeros(len(U), bool) if tile.complete else np.isnan(U).any(axis=1)
        whole, lacking = np.flatnonzero(~lacks), np.flatnonzero(lacks)
        out = np.empty((len(U), len(reading.means)))
        out[whole], latents = complete.careful_scores(U[whole], reading)
        rows = None
        if lacking.size:
            out[lacking], rows = incomplete.incomplete_scores(U[lacking], reading)
        return Scores(out, Work(U, whole, latents, lacking, rows))

    def trust(self, reading: FactorReading, dtype: np.dtype[Any]) -> Trust:
        return factor_trust(reading, dtype)

    def log_ratios(self, block: Block, reading: FactorReading, reference: int) -> Array:
        U = reading.frame.enter(dense_rows(block.X))
        out = np.empty((len(U), len(reading.means)))
        patterns = patterns_of(U)
        for p, missing in enumerate(patterns.missing):
            rows = patterns.order[patterns.start[p] : patterns.start[p + 1]]
            seen = np.flatnonzero(~missing)
            loadings, noise = reading.loadings[:, seen], reading.noise[:, seen]
            out[rows] = log_density_ratios(
                U[rows][:, seen], reading.means[:, seen], loadings, noise, reference
            )
        return out

    def moments(self, scores: Scores, resp: Array, reading: FactorReading) -> FactorSums:
        work: Work = scores.work
        whole = work.whole
        sums = complete.careful_sums(work.U[whole], work.latents, resp[whole], reading)
        if work.rows is None:
            return sums
        self._check_incomplete()
        return sums + incomplete.incomplete_sums(work.rows, resp[work.lacking], reading)

    def _check_incomplete(self) -> None:
        """Refuse to learn from rows with missing entries if there were to be none."""
        if not self.has_missing:
            raise ValueError(
                "a row has missing entries, and the model was told that there are none; "
                "make its family with has_missing=True, or begin the fit with the rows that "
                "have some"
            )

    def about_frame(self, moments: FactorSums) -> FactorSums:
        return change_origin(moments, np.zeros_like(moments.origin))

    # ------------------------------------------------ using a fit

    def posterior(
        self, block: Block, reading: FactorReading, covariances: bool = False
    ) -> Posterior:
        """What the rows say about their latents, under each component."""
        same = reading.parts.covariances if covariances else None
        if can_lift(block, reading):
            log_density, a = complete.lifted_scores(block, reading)
            return Posterior(log_density, _unwhiten(a, reading), same)
        parts = [
            self._tile_posterior(tile, reading, covariances and not block.complete)
            for tile in self._tiles(block, len(reading.means))
        ]
        each = [part.covariances for part in parts if part.covariances is not None]
        return Posterior(
            np.concatenate([part.log_density for part in parts]),
            np.concatenate([part.means for part in parts]),
            np.concatenate(each) if each else same,
        )

    def _tile_posterior(self, tile: Block, reading: FactorReading, covariances: bool) -> Posterior:
        scores = self.scores(tile, reading)
        work: Work = scores.work
        means = np.empty((len(work.U), *reading.parts.back.shape[:2]))
        means[work.whole] = _unwhiten(work.latents, reading)
        if work.rows is not None:
            means[work.lacking] = work.rows.z
        if not covariances:
            return Posterior(scores.log_density, means)
        each = np.broadcast_to(
            reading.parts.covariances, (len(means), *reading.parts.back.shape)
        ).copy()
        if work.rows is not None:
            each[work.lacking] = unpack(work.rows.covariance, means.shape[-1])
        return Posterior(scores.log_density, means, each)

    def complete_rows(
        self, scores: Scores, reading: FactorReading, component: int, normals: Array | None
    ) -> Array:
        work: Work = scores.work
        out = work.U.copy()
        if work.rows is None:
            return out
        rows, k = work.rows, component
        z = rows.z[:, k]
        size = z.shape[1]
        noise: Array | float = 0.0
        if normals is not None:
            own = normals[work.lacking]
            roots = np.linalg.cholesky(unpack(rows.covariance[:, k], size))
            z = z + np.einsum("nij,nj->ni", roots, own[:, out.shape[1] :])
            noise = own[:, : out.shape[1]] * np.sqrt(reading.noise[k])
        filled = reading.means[k] + z @ reading.loadings[k].T + noise
        out[work.lacking] = np.where(rows.mask > 0, rows.U, filled)
        return out

    def condition(
        self, params: FactorParams, known: Array, values: Array
    ) -> tuple[Array, FactorParams]:
        frame = params.frame
        rest = np.setdiff1d(np.arange(params.n_features), known)
        given = (values - frame.origin[known]) / frame.scale[known]
        log_density, means, loadings = conditional(
            params.loadings, params.noise, params.means, known, given
        )
        remaining = Frame(frame.origin[rest], frame.scale[rest])
        return log_density, FactorParams(remaining, means, loadings, params.noise[:, rest])

    def sample(self, params: FactorParams, labels: Array, normals: Array) -> Array:
        rows = draw(params.loadings, params.noise, params.means, labels, normals)
        return params.frame.leave(rows)


def _unwhiten(a: Array, reading: FactorReading) -> Array:
    """E[z | x] (n, K, d) of whitened latents."""
    return np.asarray(np.einsum("kij,nkj->nki", reading.parts.back, a))
