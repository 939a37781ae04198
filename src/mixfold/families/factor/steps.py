"""How factor components start, and their M step; the family itself is in ``family``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from mixfold.contracts import Array
from mixfold.families.component import ComponentFamily
from mixfold.families.factor import start
from mixfold.families.factor.gradients import FactorMetric, gradient_and_metric
from mixfold.families.factor.loadings import Loadings, OwnLoadings
from mixfold.families.factor.noise import DiagonalNoise, Noise
from mixfold.families.factor.priors import LoadingsPrior, NoisePrior, turn_to_axes
from mixfold.families.factor.records import FactorParams, FactorSums, change_origin
from mixfold.families.factor.regression import (
    Regression,
    latent_prior,
    regression,
    residual_squares,
    solve_rows,
)
from mixfold.math.frame import Frame, frame_about_zero, frame_of, uniform, widen_constant_columns
from mixfold.math.symmetric import roots_of

_TINY = float(np.finfo(float).tiny)
_LARGE = 1e100


@dataclass(frozen=True)
class FactorSteps(ComponentFamily):
    """Factor components, as far as they are estimated.

    Parameters
    ----------
    factors : tuple of int
        Factors of each component; a single one is for all.
    noise, loadings
        What entries and components share.
    has_missing : bool
        Whether rows with missing entries will be learned from.
    fixed_means : bool
        All means are zero, in data coordinates.
    expand : bool
        Whether an M step also lets the prior of the latents vary and then absorbs it (PX-EM):
        far faster where the noise is small, but statistics of earlier passes are then in other
        latent coordinates.
    loadings_prior : LoadingsPrior, optional
        Of the loadings, which are then those of the highest posterior density.
    noise_prior : NoisePrior, optional
        Of the noise.
    """

    factors: tuple[int, ...] = (1,)
    noise: Noise = field(default_factory=DiagonalNoise)
    loadings: Loadings = field(default_factory=OwnLoadings)
    has_missing: bool = False
    fixed_means: bool = False
    expand: bool = True
    loadings_prior: LoadingsPrior | None = None
    noise_prior: NoisePrior | None = None

    name: ClassVar[str] = "factor"

    def __post_init__(self) -> None:
        if self.loadings_prior is not None and self.loadings.tied:
            raise ValueError(
                "a prior of the loadings needs components with loadings of their own; leave "
                "'loadings' out of tied"
            )

    @property
    def size(self) -> int:
        """d: factors of the component that has most."""
        return max(self.factors)

    @property
    def scales_columns(self) -> bool:
        return self.noise.scales_columns

    def workspace_per_row(self, n_components: int, n_features: int) -> int:
        return 4 * n_features + n_components * (self.size + 1) ** 2

    def normals_per_row(self, n_features: int) -> int:
        return n_features + self.size

    def _own(self, n_components: int) -> Array:
        """Factors (K,) of each component."""
        return np.broadcast_to(np.array(self.factors), (n_components,))

    def least_rows(self, n_components: int) -> Array:
        return self._own(n_components) + 2.0 if n_components > 1 else np.zeros(1)

    def n_free(self, n_components: int, n_features: int) -> int:
        means = 0 if self.fixed_means else n_components * n_features
        return means + self._n_free_covariances(n_components, n_features)

    def n_free_beside_outputs(self, n_components: int, n_features: int) -> int:
        """Free parameters where outputs look at the latents as well: only rotations are hidden."""
        means = 0 if self.fixed_means else n_components * n_features
        loadings = int(self.loadings.n_free_each(self._own(n_components), n_features).sum())
        return means + loadings + self.noise.n_free(n_components, n_features)

    def _n_free_covariances(self, n_components: int, n_features: int) -> int:
        """Dimensions in which the covariances can vary: the rank of their Jacobian.

        More factors than can be identified add nothing: own covariances have at most D (D + 1) / 2
        dimensions each; with common loadings the entries off the diagonal are common, too.
        """
        K, D = n_components, n_features
        most = D * (D + 1) // 2
        noise = self.noise.n_free(1, D)
        loadings = np.minimum(self.loadings.n_free_each(self._own(K), D), most)
        if self.loadings.tied:
            common = int(loadings[0])
            if noise == D and not self.noise.tied:
                return K * D + min(common, most - D)
            own = 0 if self.noise.tied else (K - 1) * noise
            return min(common + noise, most) + own
        if self.noise.tied:
            return int(loadings.sum() + min(noise, (most - loadings).sum()))
        return int(np.minimum(loadings + noise, most).sum())

    # ------------------------------------------------ parameters

    def frame(self, X: Array, weight: Array, spread: Array | None = None) -> Frame:
        # rows about a fixed mean may stand for moments: none of them is an outlier
        zero = self.fixed_means
        frame = frame_about_zero(X, weight) if zero else frame_of(X, weight, robust=True)
        if not self.scales_columns:
            return uniform(frame)
        return frame if spread is None else widen_constant_columns(frame, X, spread)

    def change_frame(self, params: FactorParams, frame: Frame) -> FactorParams:
        ratio = params.frame.scale / frame.scale
        means = frame.enter(params.frame.leave(params.means))
        loadings, noise = params.loadings * ratio[:, None], params.noise * ratio**2
        return FactorParams(frame, means, loadings, noise)

    def extent(self, params: FactorParams) -> Array:
        variances = (params.loadings**2).sum(axis=-1) + params.noise
        return np.asarray(np.sqrt(variances) * params.frame.scale)

    def from_sample(self, frame: Frame, U: Array, resp: Array) -> FactorParams:
        fixed = np.zeros(U.shape[1]) if self.fixed_means else None
        axes_of = start.pooled_axes if self.loadings.tied else start.component_axes
        all_axes = axes_of(U, resp, self.size, fixed)
        means = np.stack([axes.mean for axes in all_axes])
        pairs = [
            start.loadings_and_noise(axes, int(own), self.size)
            for axes, own in zip(all_axes, self._own(len(means)), strict=True)
        ]
        loadings = np.stack([pair[0] for pair in pairs])
        noise = np.empty_like(means)
        for k, (weight, (_, mean_noise)) in enumerate(zip(resp.T, pairs, strict=True)):
            weight = weight if weight.any() else resp.sum(axis=1)
            mine = weight > 0
            variances = weight[mine] @ (U[mine] - means[k]) ** 2 / weight.sum()
            noise[k] = start.column_noise(variances, loadings[k], mean_noise)
        # a few rows say little about one column: half of the noise is that of all components
        noise = 0.5 * (noise + resp.sum(axis=0) @ noise / resp.sum())
        shared = self.noise.gather(noise) / self.noise.gather(np.ones_like(noise))
        noise = self.noise.spread(np.maximum(shared, self.floor), noise.shape)
        return FactorParams(frame, means, loadings, noise)

    def estimate(
        self, moments: FactorSums, previous: FactorParams, relevance: Array | None = None
    ) -> tuple[FactorParams, Array]:
        """``relevance`` (K or 1, d): precisions of the loadings, if outputs have a part in them."""
        fit = regression(moments, self.fixed_means)
        if self.loadings_prior is None:
            loadings = self.loadings.estimate(fit, previous.noise)
        else:
            relevance = self._relevances(previous) if relevance is None else relevance
            loadings = shrunk_loadings(fit, previous.noise, relevance)
        noise, low = self._noise(fit, loadings, previous)
        prior_mean, prior = latent_prior(moments.rows, self.fixed_means)
        shift = -fit.z + prior_mean[:, None] if self.expand else -fit.z
        means = moments.origin + fit.x + (loadings * shift).sum(axis=-1)
        if self.expand and self.size:
            if self.loadings_prior is None:
                loadings = loadings @ self._root(prior, moments.rows.count)
            else:  # the prior wants their lengths as they are
                loadings = loadings @ turn_to_axes(self.squares_of(loadings))
        params = FactorParams(previous.frame, means, loadings, noise)
        return self._keep_unseen_entries(params, fit, previous), np.asarray(low.any(axis=1))

    def _noise(
        self, fit: Regression, loadings: Array, previous: FactorParams
    ) -> tuple[Array, Array]:
        """Noise under the floor's constraint, and which entries are at it."""
        shape = previous.noise.shape
        if self.noise.held:
            return previous.noise, np.zeros(shape, bool)
        count = np.broadcast_to(fit.count, shape)
        total = self.noise.gather(count)
        left = self.noise.gather(residual_squares(fit, loadings))
        if self.noise_prior is not None:
            total, left = self._with_noise_prior(total, left, previous.frame)
        pooled = left / np.maximum(total, _TINY)
        known = self.noise.spread(total > 0, shape)
        noise = self.noise.spread(np.maximum(pooled, self.floor), shape)
        low = self.noise.spread(pooled < self.floor, shape) & known
        return np.where(known, noise, previous.noise), low

    # ------------------------------------------------ priors

    def squares_of(self, loadings: Array) -> Array:
        """Products (K or 1, d, d) of the columns of loadings in units of the columns."""
        both = np.swapaxes(loadings, 1, 2) @ loadings
        if self.loadings_prior is not None and self.loadings_prior.common:
            return np.asarray(both.sum(axis=0, keepdims=True))
        return np.asarray(both)

    def entries_of_factor(self, params: FactorParams) -> int:
        """Loadings that share a precision."""
        common = self.loadings_prior is not None and self.loadings_prior.common
        return params.n_features * (params.n_components if common else 1)

    def _relevances(self, params: FactorParams) -> Array:
        assert self.loadings_prior is not None
        squares = self.loadings_prior.pool((params.loadings**2).sum(axis=1))
        return self.loadings_prior.relevances(squares, self.entries_of_factor(params))

    def _with_noise_prior(self, count: Array, squares: Array, frame: Frame) -> tuple[Array, Array]:
        """Counts and sums of squares of each noise variance, with the rows of its prior."""
        prior = self.noise_prior
        assert prior is not None
        own = self.noise.over_columns(prior.squares(frame.scale)[None])
        share = own / self.noise.over_columns(np.ones((1, frame.scale.size)))
        return count + prior.rows, squares + share

    def penalty(self, params: FactorParams) -> float:
        """-ln p of the loadings and of the noise, but for constants."""
        found = self.penalty_of_noise(params)
        if self.loadings_prior is None:
            return found
        squares = self.loadings_prior.pool((params.loadings**2).sum(axis=1))
        return found + self.loadings_prior.penalty(squares, self.entries_of_factor(params))

    def penalty_of_noise(self, params: FactorParams) -> float:
        if self.noise_prior is None:
            return 0.0
        noise = self.noise.drop_copies(params.noise)
        zero = np.zeros_like(noise)
        count, squares = self._with_noise_prior(zero, zero, params.frame)
        return 0.5 * float((count * np.log(noise) + squares / noise).sum())

    def _root(self, prior: Array, count: Array) -> Array:
        """Factors (K, d, d) of the latent covariances; the identity where there are no rows."""
        empty = (count <= 0)[:, None, None]
        prior = np.where(empty, np.eye(self.size), prior)
        return roots_of(self.loadings.pool_covariances(prior, count))

    def _keep_unseen_entries(
        self, params: FactorParams, fit: Regression, previous: FactorParams
    ) -> FactorParams:
        """Components without rows stay; entries that a component never saw are those of all."""
        lost = fit.count <= 0
        if not lost.any():
            return params
        empty: Array = np.asarray(lost.all(axis=1))
        unseen = np.broadcast_to(lost, params.means.shape) & ~empty[:, None]
        weight = np.where(np.broadcast_to(lost, unseen.shape), 0.0, fit.count)
        total = weight.sum(axis=0)
        pooled = (weight * params.means).sum(axis=0) / np.maximum(total, _TINY)
        means = np.where(unseen & (total > 0), pooled, params.means)
        loadings = params.loadings
        if not self.loadings.tied:
            loadings = np.where(empty[:, None, None], previous.loadings, loadings)
        return FactorParams(
            params.frame,
            np.where(empty[:, None], previous.means, means),
            loadings,
            np.where(empty[:, None], previous.noise, params.noise),
        )

    def floor_message(self, component: int) -> str:
        return (
            f"noise of component {component} reached the floor of {self.floor:g} relative to the "
            "data (a Heywood case: a column that the factors explain wholly, duplicated or too "
            "few rows, or collinear columns)"
        )

    def place(self, params: FactorParams, where: Array, points: Array) -> FactorParams:
        means, loadings, noise = params.means.copy(), params.loadings.copy(), params.noise.copy()
        rest = np.setdiff1d(np.arange(len(means)), where)
        own = self._own(len(means))
        for k, point in zip(where, points, strict=True):
            if rest.size:  # a neighbour's shape, with the factors that this one may have
                near = rest[np.argmin(((means[rest] - point) ** 2).sum(axis=1))]
                loadings[k], noise[k] = loadings[near], noise[near]
                loadings[k, :, own[k] :] = 0.0
            if not self.fixed_means:
                means[k] = point
        return FactorParams(params.frame, means, loadings, noise)

    def select(self, params: FactorParams, which: Array) -> FactorParams:
        # as many factors as the one of these that has most, as ``restricted`` counts them
        loadings = params.loadings[which][:, :, : self.restricted(which).size]
        return FactorParams(params.frame, params.means[which], loadings, params.noise[which])

    def restricted(self, which: Array) -> Self:
        if len(self.factors) == 1:
            return self
        return replace(self, factors=tuple(self.factors[k] for k in which))

    # ------------------------------------------------ extrapolation

    def coordinates(self, params: FactorParams) -> Array:
        """Means, loadings, and standard deviations of the noise.

        Where the likelihood grows as a variance goes to zero (a Heywood case), its root is at an
        ordinary maximum; its logarithm would have no end.
        """
        parts = [self.loadings.drop_copies(params.loadings)]
        if not self.noise.held:
            parts.append(np.sqrt(self.noise.drop_copies(params.noise)))
        if not self.fixed_means:
            parts.insert(0, params.means)
        return np.concatenate([part.ravel() for part in parts])

    def from_coordinates(self, params: FactorParams, vector: Array) -> FactorParams:
        own = self.loadings.drop_copies(params.loadings)
        start_at = 0 if self.fixed_means else params.means.size
        means = params.means if self.fixed_means else vector[:start_at].reshape(params.means.shape)
        free = np.arange(self.size) < self._own(len(params.means))[:, None, None]
        loadings = vector[start_at : start_at + own.size].reshape(own.shape)
        loadings = np.where(free, np.broadcast_to(loadings, params.loadings.shape), 0.0)
        if self.noise.held:
            return FactorParams(params.frame, means, loadings, params.noise)
        shared = np.maximum(vector[start_at + own.size :] ** 2, self.floor)
        noise = shared.reshape(self.noise.drop_copies(params.noise).shape)
        spread = self.noise.spread(noise, params.noise.shape)
        return FactorParams(params.frame, means, loadings, spread)

    def derivatives(
        self, params: FactorParams, moments: FactorSums, relevance: Array | None = None
    ) -> tuple[Array, FactorMetric]:
        """``relevance`` is as in ``estimate``."""
        sums = change_origin(moments, params.means)
        if self.loadings_prior is not None and relevance is None:
            relevance = self._relevances(params)
        gradient, metric = gradient_and_metric(
            params, sums, self.noise, self.loadings, self.fixed_means, self.floor, relevance
        )
        if self.noise_prior is not None and not self.noise.held:
            variance = self.noise.drop_copies(params.noise)
            zero = np.zeros_like(variance)
            count, squares = self._with_noise_prior(zero, zero, params.frame)
            slope = (squares / variance - count) / np.sqrt(variance)
            gradient[gradient.size - slope.size :] += slope.ravel()
        return gradient, metric


def shrunk_loadings(fit: Regression, noise: Array, relevance: Array) -> Array:
    """Loadings of highest posterior density, (Cov[zz] + noise / n diag(relevance))^-1 Cov[zx]."""
    with np.errstate(over="ignore"):  # bounded below
        ridge = noise / np.maximum(np.broadcast_to(fit.count, noise.shape), _TINY)
    if fit.zz.shape[1] == 1 and (ridge == ridge[:, :1]).all():
        ridge = ridge[:, :1]
    precision = np.broadcast_to(relevance, (len(noise), relevance.shape[-1]))
    # of factors that are gone and of components without rows: the product stays a float
    own = np.minimum(ridge, _LARGE)[..., None] * np.minimum(precision, _LARGE)[:, None]
    zz = fit.zz + own[..., None] * np.eye(own.shape[-1])
    return solve_rows(zz, fit.xz)
