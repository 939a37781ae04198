"""Real outputs: y = V_k z + m_k + noise. Any entry may be missing.

An output view of ``weight`` v counts each output v times: p(y | z)^v. With many more columns than
outputs the labels are else drowned by the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, NotNegative, Stats, constant, record
from mixfold.families.factor.inferred_latents import Inference
from mixfold.families.factor.records import Latents
from mixfold.math.symmetric import LOG_2PI
from mixfold.models.outputs.output_sums import (
    back,
    find_observed,
    forward,
    output_latents,
    patterns,
    times,
    weighted_gram,
)
from mixfold.models.outputs.outputs import Latent, Replicate

_TINY = float(np.finfo(float).tiny)
# rows that show the same outputs: with fewer than so many it is quicker to take each by itself
_FEW = 4


@record
@dataclass(frozen=True, slots=True)
class GaussianOutputParams:
    """``loadings`` (K, L, d), ``means`` (K, L), ``noise`` variances (K, L)."""

    loadings: Array
    means: Array
    noise: NotNegative


@record
@dataclass(frozen=True)
class GaussianOutputSums(Stats):
    """Per component and output: latents of the rows that show it, and sums of e, e^2 and e z.

    e = y - V z - m is what the parameters of the pass, ``loadings`` V and ``means`` m, leave
    unexplained: next to nothing cancels where that is little. Where rows show all outputs or none,
    one entry of the latents, (K, 1, ...), stands for all.
    """

    latents: Latents
    first: Array
    squares: Array
    cross: Array
    loadings: Array = constant()  # noqa: RUF009 (it makes a field)
    means: Array = constant()  # noqa: RUF009 (it makes a field)


@record
@dataclass(frozen=True, slots=True)
class GaussianOutputMetric:
    """Inverse information of the complete data: blocks for each row of loadings, else diagonal."""

    inverse: Array
    means: Array
    noise: Array

    def solve(self, gradient: Array) -> Array:
        shape = (*self.means.shape, self.inverse.shape[-1])
        size, more = int(np.prod(shape)), self.means.size
        loadings = (self.inverse @ gradient[:size].reshape(shape)[..., None])[..., 0]
        return np.concatenate(
            [
                loadings.ravel(),
                gradient[size : size + more] / self.means.ravel(),
                gradient[size + more :] / self.noise,
            ]
        )


@dataclass(frozen=True)
class GaussianOutputs:
    """Gaussian outputs.

    Parameters
    ----------
    weight : float
        How often each output counts.
    each : bool
        Whether each output has a noise of its own; otherwise one is for all.
    fixed_noise : float, optional
        The noise variance, if it is not to be learned.
    floor : float
        Smallest noise variance.
    common : bool
        Whether the components share their noise. A component in which an output is always the
        same would else have none, and its rows an endless likelihood.
    share : float
        How much of a labelled row is read with its outputs, in [0, 1].
    unlabelled : float
        How often a row of which no output is known counts.
    n_outputs : int
    units : tuple of float, optional
        Each output is that many of the units in which densities are told.
    variance : float
        Of an output, on average: the unit of a prior of the loadings.
    """

    weight: float = 1.0
    each: bool = False
    fixed_noise: float | None = None
    floor: float = 1e-10
    common: bool = True
    share: float = 1.0
    unlabelled: float = 1.0
    n_outputs: int = 1
    units: tuple[float, ...] | None = None
    variance: float = 1.0

    @property
    def tied(self) -> bool:
        return False

    def unknown(self, n_rows: int) -> Array:
        return np.full((n_rows, self.n_outputs), np.nan)

    def read(self, params: GaussianOutputParams, covariances: Array) -> GaussianOutputParams:
        return params

    # ------------------------------------------------ E step

    def workspace_per_row(self, y: Array, n_components: int, n_factors: int) -> int:
        if find_observed(y).whole:  # the spread of the latents is the same for all rows
            return n_components * (4 * n_factors + 2 * self.n_outputs)
        return n_components * ((n_factors + 1) ** 2 + 4 * self.n_outputs)

    def replicates(
        self, y: Array, latent: Latent, reading: GaussianOutputParams
    ) -> Sequence[Replicate]:
        work = find_observed(y)
        seen = work.seen
        labelled = seen.any(axis=1)
        share = np.where(labelled, self.share, 0.0)
        if work.whole and len(latent.covariances) == 1:
            # rows without outputs are computed along: their share is zero
            everything = np.ones((1, y.shape[1]), bool)
            log_p, z, spread = self._posterior(np.nan_to_num(y), latent, reading, everything)
        else:
            log_p, z, spread = self._posterior_by_pattern(y, seen, latent, reading)
        alone = np.where(labelled, 1.0 - share, self.unlabelled)
        rest = Replicate(alone, np.zeros(log_p.shape), latent, None)
        return (Replicate(share, log_p, Latent(z, spread), work), rest)

    def _posterior_by_pattern(
        self, y: Array, seen: Array, latent: Latent, reading: GaussianOutputParams
    ) -> tuple[Array, Array, Array]:
        """ln p(y | x, k), means and covariances of z, for rows that show different outputs."""
        n, K, d = latent.means.shape
        found = list(patterns(seen))
        if len(latent.covariances) > 1 or len(found) * _FEW > n:
            return self._posterior(y, latent, reading, seen)
        log_p, means = np.zeros((n, K)), np.empty((n, K, d))
        spread = np.empty((n, K, d, d))
        for pattern, rows in found:
            part = Latent(latent.means[rows], latent.covariances)
            own = self._posterior(y[rows], part, reading, pattern[None])
            log_p[rows], means[rows], spread[rows] = own
        return log_p, means, spread

    def _posterior(
        self, y: Array, latent: Latent, params: GaussianOutputParams, seen: Array
    ) -> tuple[Array, Array, Array]:
        """ln p(y | x, k), mean and covariance of z given x and the outputs ``seen`` (1 or n, L)."""
        V = params.loadings
        # an output that is not seen is one of endless noise
        certain = seen[:, None] * (self.weight / params.noise)
        precision = np.linalg.inv(latent.covariances)
        A = precision + weighted_gram(certain, V)
        cov = np.linalg.inv(A)
        deviation = np.where(seen[:, None], y[:, None] - params.means, 0.0)
        target = times(precision, latent.means) + forward(deviation * certain, V)
        z = times(cov, target)
        left = deviation - back(z, V)
        away = z - latent.means
        quadratic = (left**2 * certain).sum(axis=2) + (away * times(precision, away)).sum(axis=2)
        log_det = np.linalg.slogdet(A)[1] - np.linalg.slogdet(precision)[1]
        log_noise = np.log(params.noise)
        if self.units is not None:
            log_noise = log_noise + 2 * np.log(self.units)
        size = self.weight * (seen @ (LOG_2PI + log_noise).T)
        return -0.5 * (size + log_det + quadratic), z, cov

    def sums(
        self,
        y: Array,
        replicates: Sequence[Replicate],
        resp: Sequence[Array],
        reading: GaussianOutputParams,
    ) -> GaussianOutputSums:
        replicate, r = replicates[0], resp[0]
        V, z = reading.loadings, replicate.latent.means
        seen = replicate.work.seen[:, None]
        error = np.where(seen, y[:, None] - back(z, V) - reading.means, 0.0)
        weighted = r[..., None] * error
        latents, spread = output_latents(replicate, r)
        uncertain = (V[..., None, :] @ spread)[..., 0, :]
        return GaussianOutputSums(
            latents,
            weighted.sum(axis=0),
            (weighted * error).sum(axis=0) + (uncertain * V).sum(axis=-1),
            np.moveaxis(weighted, 0, 2) @ np.swapaxes(z, 0, 1) - uncertain,
            V,
            reading.means,
        )

    def without_reference(self, sums: GaussianOutputSums) -> GaussianOutputSums:
        """Sums of y, y^2 and y z: with y = e + V z + m, from those of e."""
        V, m, latents = sums.loadings, sums.means, sums.latents
        explained = np.broadcast_to(latents.first, V.shape) * V
        spread = (V[..., None, :] @ latents.second)[..., 0, :]
        predicted = explained.sum(axis=-1)
        squares = sums.squares + (V * (2 * sums.cross + spread)).sum(axis=-1)
        return GaussianOutputSums(
            latents,
            sums.first + predicted + m * latents.count,
            squares + m * (2 * (sums.first + predicted) + m * latents.count),
            sums.cross + spread + m[..., None] * latents.first,
            np.zeros_like(V),
            np.zeros_like(m),
        )

    # ------------------------------------------------ M step

    def update(
        self,
        sums: GaussianOutputSums,
        params: GaussianOutputParams,
        relevance: Array | None = None,
    ) -> GaussianOutputParams:
        rows = sums.latents.count
        count = np.maximum(rows, _TINY)
        mean_z, mean_e = sums.latents.first / count[..., None], sums.first / count
        zz = sums.latents.second / count[..., None, None]
        zz = zz - mean_z[..., :, None] * mean_z[..., None, :]
        ez = sums.cross / count[..., None] - mean_e[..., None] * mean_z
        known = rows > 0
        zz = np.where(known[..., None, None], zz, np.eye(zz.shape[-1]))
        if relevance is None:
            change = np.linalg.solve(zz, ez[..., None])[..., 0]
            gain = (change * ez).sum(axis=-1)
        else:
            change = self._shrunk_change(zz, ez, sums, params, relevance)
            gain = (change * (2 * ez - times_each(zz, change))).sum(axis=-1)
        shift = mean_e - (change * mean_z).sum(axis=-1)
        left = sums.squares - count * (mean_e**2 + gain)
        return GaussianOutputParams(
            np.where(known[..., None], sums.loadings + change, params.loadings),
            np.where(known, sums.means + shift, params.means),
            self._noise(left, np.broadcast_to(rows, left.shape), params),
        )

    def _shrunk_change(
        self,
        zz: Array,
        ez: Array,
        sums: GaussianOutputSums,
        params: GaussianOutputParams,
        relevance: Array,
    ) -> Array:
        """What the loadings of highest posterior density have beyond those of the pass."""
        count = np.maximum(self.weight * np.broadcast_to(sums.latents.count, ez.shape[:2]), _TINY)
        own = (params.noise / count)[..., None] * relevance[:, None] / self.variance
        matrix = zz + own[..., None] * np.eye(own.shape[-1])
        return np.asarray(np.linalg.solve(matrix, (ez - own * sums.loadings)[..., None])[..., 0])

    def squares_of(self, params: GaussianOutputParams) -> Array:
        V = params.loadings
        return np.asarray(np.swapaxes(V, 1, 2) @ V / self.variance)

    def n_loadings(self, params: GaussianOutputParams) -> int:
        return int(params.loadings.shape[1])

    def _noise(self, left: Array, count: Array, params: GaussianOutputParams) -> Array:
        if self.fixed_noise is not None:
            return np.full_like(params.noise, self.fixed_noise)
        axes = ((0,) if self.common else ()) + (() if self.each else (1,))
        left, count = left.sum(axis=axes, keepdims=True), count.sum(axis=axes, keepdims=True)
        noise = np.maximum(left / np.maximum(count, _TINY), self.floor)
        return np.where(count > 0, np.broadcast_to(noise, params.noise.shape), params.noise)

    def transform_latents(
        self, params: GaussianOutputParams, mean: Array, root: Array
    ) -> GaussianOutputParams:
        shape = params.loadings.shape[::2]
        shift = np.einsum("kld,kd->kl", params.loadings, np.broadcast_to(mean, shape))
        return replace(params, loadings=params.loadings @ root, means=params.means + shift)

    def rescaled(
        self, params: GaussianOutputParams, ratio: Array, shift: Array
    ) -> GaussianOutputParams:
        """The same view of outputs y' = ratio y + shift, (L,) each."""
        noise = params.noise * ratio**2
        if not self.each:  # one noise for all, in the new units too
            noise = np.broadcast_to(noise.mean(axis=1, keepdims=True), noise.shape).copy()
        return GaussianOutputParams(
            params.loadings * ratio[:, None], params.means * ratio + shift, noise
        )

    def penalty(self, params: GaussianOutputParams) -> float:
        return 0.0

    def information(self, params: GaussianOutputParams) -> Array:
        scaled = params.loadings * (self.weight / params.noise)[..., None]
        return np.swapaxes(scaled, 1, 2) @ params.loadings

    def coordinates(self, params: GaussianOutputParams) -> Array:
        """Loadings, means and, unless it is given, standard deviations of the noise."""
        parts = [params.loadings.ravel(), params.means.ravel()]
        if self.fixed_noise is None:
            parts.append(np.sqrt(self._drop_copies(params.noise)).ravel())
        return np.concatenate(parts)

    def from_coordinates(self, params: GaussianOutputParams, vector: Array) -> GaussianOutputParams:
        """The inverse of ``coordinates``; ``params`` lends the shapes."""
        size, more = params.loadings.size, params.means.size
        loadings = vector[:size].reshape(params.loadings.shape)
        means = vector[size : size + more].reshape(params.means.shape)
        noise = params.noise
        if self.fixed_noise is None:
            own = np.maximum(vector[size + more :] ** 2, self.floor)
            own = own.reshape(self._drop_copies(noise).shape)
            noise = np.broadcast_to(own, noise.shape).copy()
        return GaussianOutputParams(loadings, means, noise)

    def derivatives(
        self,
        params: GaussianOutputParams,
        sums: GaussianOutputSums,
        relevance: Array | None = None,
    ) -> tuple[Array, GaussianOutputMetric]:
        """From the sums of a pass at ``params``: e is what these leave unexplained."""
        psi, latents = params.noise, sums.latents
        certain = self.weight / psi
        slopes = certain[..., None] * sums.cross
        if relevance is not None:
            slopes = slopes - relevance[:, None] / self.variance * params.loadings
        parts = [slopes.ravel(), (certain * sums.first).ravel()]
        count = np.broadcast_to(latents.count, psi.shape)
        information = np.zeros(0)
        if self.fixed_noise is None:
            axes = ((0,) if self.common else ()) + (() if self.each else (1,))
            left = (certain * sums.squares - self.weight * count).sum(axis=axes, keepdims=True)
            deviation = np.sqrt(self._drop_copies(psi))
            slope = left / deviation
            # noise that is held at the floor has nowhere to go
            low = deviation**2 <= self.floor * (1 + 1e-9)
            parts.append(np.where(low & (slope < 0), 0.0, slope).ravel())
            total = self.weight * count.sum(axis=axes, keepdims=True)
            information = np.maximum(2 * total / deviation**2, _TINY).ravel()
        size = latents.second.shape[-1]
        trace = np.trace(latents.second, axis1=-2, axis2=-1)[..., None, None]
        ridge = (_TINY + 1e-12 * trace / max(size, 1)) * np.eye(size)
        second = latents.second + ridge
        if relevance is not None:
            own = relevance[:, None] / (self.variance * certain[..., None])
            second = second + own[..., None] * np.eye(size)
        inverse = np.linalg.inv(second) / certain[..., None, None]
        metric = GaussianOutputMetric(inverse, np.maximum(certain * count, _TINY), information)
        return np.concatenate(parts), metric

    def _drop_copies(self, noise: Array) -> Array:
        """One copy of each variance of (K, L)."""
        return np.asarray(noise[: 1 if self.common else None, : None if self.each else 1])

    def n_free(self, n_components: int, n_factors: int) -> int:
        noise = self._drop_copies(np.empty((n_components, self.n_outputs))).size
        free = noise if self.fixed_noise is None else 0
        return n_components * self.n_outputs * (n_factors + 1) + free

    # ------------------------------------------------ prediction

    def predict(self, params: GaussianOutputParams, latent: Latent) -> Array:
        """E[y | x, k] (n, K, L)."""
        return back(latent.means, params.loadings) + params.means

    def variances(self, params: GaussianOutputParams, latent: Latent) -> Array:
        """Var[y | x, k] (1 or n, K, L), noise included."""
        V = params.loadings
        return np.asarray((V @ latent.covariances * V).sum(axis=-1) + params.noise)

    def covariances(self, params: GaussianOutputParams, latent: Latent) -> Array:
        """Cov[y | x, k] (1 or n, K, L, L), noise included."""
        V = params.loadings
        noise = params.noise[..., None] * np.eye(V.shape[1])
        return np.asarray(V @ latent.covariances @ np.swapaxes(V, 1, 2) + noise)


def as_inference(replicate: Replicate, resp: Array) -> Inference:
    """A replicate with its responsibilities, as the columns' own sums want it."""
    return Inference(resp, replicate.latent.means, replicate.latent.covariances)


def times_each(matrices: Array, rows: Array) -> Array:
    """Matrices (K, 1 or L, d, d) times rows (K, L, d)."""
    return np.asarray((matrices @ rows[..., None])[..., 0])
