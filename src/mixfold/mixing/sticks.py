"""Mixing weights by a truncated stick-breaking process."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaln, psi

from mixfold.contracts import Array, Positive, record
from mixfold.math.dirichlet import log_beta_draw
from mixfold.math.gamma_law import expected_log, gamma_kl, log_gamma_draw
from mixfold.mixing.concentration import check_alpha, check_hyper, clip_alpha, require_hyper


@record
@dataclass(frozen=True, slots=True)
class StickWeights:
    """V_k ~ Beta(``first_k``, ``second_k``), k < K, posterior to a prior of ``alpha``.

    A learned alpha is itself distributed: gamma with shape s1 + K - 1 and mean ``alpha``.
    ``order`` (K,) says which component stands at each stick; None is their own order.
    """

    first: Positive
    second: Positive
    alpha: float
    order: Array | None = None


@dataclass(frozen=True)
class StickBreaking:
    """pi_k = V_k prod_{j<k} (1 - V_j), V_k ~ Beta(1, alpha) for k < K, and V_K = 1.

    A Dirichlet process cut off after K - 1 sticks; the last component takes what is left.

    Parameters
    ----------
    alpha : float, default 1.0
    learn_alpha : bool, default False
        With ``hyper`` alpha has a gamma posterior (exact under VB and Gibbs sampling) whose mean
        is reported; without, a maximum-likelihood estimate.
    hyper : (float, float) or None, default (1.0, 1.0)
        Shape and rate of the gamma prior of alpha if it is learned; None is a flat one (no draws).
    reorder : bool, default False
        Let larger components stand first where that is better, as it mostly is. Not for samplers:
        it is no transition.
    """

    alpha: float = 1.0
    learn_alpha: bool = False
    hyper: tuple[float, float] | None = (1.0, 1.0)
    reorder: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        object.__setattr__(self, "hyper", check_hyper(self.hyper))

    def posterior(
        self, counts: Array, alpha: float | None = None, like: StickWeights | None = None
    ) -> StickWeights:
        counts = np.asarray(counts, float)
        alpha = self.alpha if alpha is None else float(alpha)
        order = None if like is None else like.order
        standing = counts if order is None else counts[order]
        better = self.order(standing, alpha)
        if better is not None:
            order, standing = (better if order is None else order[better]), standing[better]
        return replace(_break_sticks(standing, alpha), order=order)

    def select(self, state: StickWeights, which: Array) -> StickWeights:
        """The same sticks with the components in another order."""
        order = np.arange(len(which)) if state.order is None else state.order
        place = np.empty(len(which), np.int64)
        place[which] = np.arange(len(which))
        return replace(state, order=place[order])

    def mode(self, state: StickWeights) -> Array:
        """ln pi at V_k = g_1 / (g_1 + g_2): the maximum with respect to prod dV / (V (1 - V))."""
        total = state.first + state.second
        return _combine_sticks(
            np.log(state.first / total), np.log(state.second / total), state.order
        )

    def expected_log_weights(self, state: StickWeights) -> Array:
        both = psi(state.first + state.second)
        return _combine_sticks(psi(state.first) - both, psi(state.second) - both, state.order)

    def draw(self, state: StickWeights, rng: np.random.Generator) -> Array:
        return _combine_sticks(*log_beta_draw(state.first, state.second, rng), state.order)

    def mean(self, state: StickWeights) -> Array:
        return np.exp(self.mode(state))

    def kl(self, state: StickWeights) -> float:
        """To the prior; for a learned alpha jointly with its own divergence from ``hyper``."""
        both = psi(state.first + state.second)
        broken, left = psi(state.first) - both, psi(state.second) - both
        entropy_part = -betaln(state.first, state.second)
        entropy_part += (state.first - 1) * broken + (state.second - 1) * left
        return float(entropy_part.sum()) - self._prior_part(state, float(left.sum()))

    def log_prior(self, state: StickWeights) -> float:
        """sum_k [ln V_k + alpha ln(1 - V_k)]; with all that depends on alpha if it is learned."""
        total = state.first + state.second
        broken, left = np.log(state.first / total), np.log(state.second / total)
        plain = float((broken + state.alpha * left).sum())
        if not self.learn_alpha:
            return plain
        # from a density in dV to one in dV / (V (1 - V)), whose maximum is the mode
        rest = float(left.sum())
        return self._prior_part(state, rest) + float(broken.sum()) + rest

    def log_prob(self, counts: Array, alpha: float | None = None) -> float:
        alpha = self.alpha if alpha is None else float(alpha)
        state = _break_sticks(np.asarray(counts, float), alpha)
        return float((betaln(state.first, state.second) + math.log(state.alpha)).sum())

    def update_alpha(self, state: StickWeights, log_weights: Array | None = None) -> float:
        """E alpha of its gamma posterior; without ``hyper`` the maximum-likelihood estimate."""
        if not self.learn_alpha:
            return state.alpha
        # pi_K is what all the breaks left: its logarithm is sum ln(1 - V_k)
        left = float(
            (self.expected_log_weights(state) if log_weights is None else log_weights)[_last(state)]
        )
        shape, rate = self.hyper or (0.0, 0.0)
        shape, rate = shape + len(state.first), rate - left
        if shape == 0:  # one component and a flat prior: nothing to learn from
            return state.alpha
        return clip_alpha(shape / rate)

    def draw_alpha(
        self, state: StickWeights, log_weights: Array, rng: np.random.Generator
    ) -> float:
        """Exact: gamma with shape s1 + K - 1 and rate s2 - ln pi_K."""
        if not self.learn_alpha:
            return state.alpha
        shape, rate = require_hyper(self.hyper)
        log_draw = float(log_gamma_draw(shape + len(log_weights) - 1, rng))
        return clip_alpha(math.exp(log_draw - math.log(rate - float(log_weights[_last(state)]))))

    def order(self, counts: Array, alpha: float | None = None) -> Array | None:
        """The components by decreasing counts if the bound rises for it; else None.

        At the best state counts @ expected - kl is ``log_prob`` (up to what no order changes).
        """
        if not self.reorder:
            return None
        counts = np.asarray(counts)
        order = np.argsort(-counts, kind="stable")
        before = self.log_prob(counts, alpha)
        after = self.log_prob(counts[order], alpha)
        # by more than rounding: no to and fro between equals
        return order if after > before + 1e-9 * (1 + abs(before)) else None

    def n_free(self, n_components: int) -> int:
        return n_components - 1

    def _prior_part(self, state: StickWeights, left: float) -> float:
        """E ln p(V | alpha), less the divergence of a learned alpha, for left = sum E ln(1 - V)."""
        sticks = len(state.first)
        if not self.learn_alpha or self.hyper is None:
            return sticks * math.log(state.alpha) + (state.alpha - 1) * left
        shape = self.hyper[0] + sticks
        rate = shape / state.alpha
        log_alpha = float(expected_log(shape, rate))
        divergence = float(gamma_kl(shape, rate, *self.hyper))
        return sticks * log_alpha + (state.alpha - 1) * left - divergence


def stick_order(state: object) -> Array | None:
    """The component at each stick, from the first stick on; None of weights without sticks."""
    if not isinstance(state, StickWeights):
        return None
    return np.arange(len(state.first) + 1) if state.order is None else np.asarray(state.order)


def truncation_mass(n_components: int, alpha: float) -> float:
    """Mean weight of the last component under the prior: (alpha / (1 + alpha))^(K - 1).

    Above about 0.05 the truncation shapes the answer: use more components or a smaller alpha.

    Examples
    --------
    >>> round(truncation_mass(4, 1.0), 12)
    0.125
    """
    return math.exp(-(n_components - 1) * math.log1p(1 / alpha))


def _break_sticks(counts: Array, alpha: float) -> StickWeights:
    """The sticks after rows were counted, in their order."""
    later = np.cumsum(counts[:0:-1])[::-1]  # sum_{j>k} N_j, k < K: never a difference
    return StickWeights(1 + counts[:-1], alpha + later, alpha)


def _combine_sticks(broken: Array, left: Array, order: Array | None) -> Array:
    """ln pi (K,) from ln V and ln(1 - V) (K - 1,), or from their expectations."""
    rest = np.concatenate([[0.0], np.cumsum(left)])
    rest[:-1] += broken
    if order is None:
        return rest
    placed = np.empty_like(rest)
    placed[order] = rest
    return placed


def _last(state: StickWeights) -> int:
    """The component at the last stick."""
    return -1 if state.order is None else int(state.order[-1])
