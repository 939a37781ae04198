"""A normal law of one variable, weighed by a function of it between 0 and 1, by quadrature.

With t ~ N(0, 1) and the score u = q + s t, the tilted law has the density

    p(t) = N(t; 0, 1) psi(q + s t) / c,    c = E[psi(q + s t)]

It is tabulated at the nodes of Gauss-Legendre panels, as logarithms, so that c may be as small as
a double allows. Where psi or a derivative of it jumps there has to be the end of a panel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import log_expit, logsumexp

from mixfold.contracts import Array
from mixfold.math.symmetric import LOG_2PI

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def _partial_integrals() -> Array:
    """B with (B f)_i the integral from -1 to node i of the polynomial that has f at the nodes."""
    size = len(_NODES)
    values = np.polynomial.legendre.legvander(_NODES, size)  # (nodes, 0..size)
    odd = 2 * np.arange(size) + 1
    coefficients = (odd / 2)[:, None] * (values[:, :size] * _WEIGHTS[:, None]).T
    below = np.column_stack([np.full(size, -1.0), values[:, : size - 1]])  # P_{-1} = -1 at n = 0
    return np.asarray(((values[:, 1:] - below) / odd) @ coefficients)


_UP_TO_NODE = _partial_integrals()
# beyond so many standard deviations the standard normal density is zero as a double
REACH = 38.0
# of a law that is at least as narrow as the standard normal one, about its mode
_NARROW = 14.0
# panels towards an end at which psi changes quickly: the finest is 2^-30 of the reach
_LEVELS = 30

LogSquash = Callable[[Array], Array]


def log_cauchit(u: Array) -> Array:
    """ln(1/2 + arctan(u) / pi), the distribution function of Cauchy's law."""
    return np.asarray(np.log(np.arctan2(1.0, -u) / np.pi))


@dataclass(frozen=True, slots=True)
class TiltedNormal:
    """Points t in order, their shares, the distribution function at them, and ln c."""

    points: Array
    shares: Array
    below: Array
    log_normaliser: float

    @property
    def mean(self) -> float:
        """E[t]."""
        return float(self.shares @ self.points)

    @property
    def variance(self) -> float:
        """Var[t]."""
        return float(self.shares @ (self.points - self.mean) ** 2)

    def draw(self, uniforms: Array) -> Array:
        """t by inversion of the distribution function between the nodes."""
        # of points that no uniform tells apart the last one: where there is nothing, its end
        highest = np.maximum.accumulate(self.below)
        kept = np.flatnonzero(np.append(np.diff(np.floor(highest * 2.0**50)) > 0, True))
        inverse = PchipInterpolator(highest[kept], self.points[kept])
        return np.asarray(inverse(np.clip(uniforms, highest[kept[0]], highest[kept[-1]])))


def tilt(
    log_squash: LogSquash, q: float, s: float, ends: Array, mode: float | None
) -> TiltedNormal:
    """The tilted law of t.

    Parameters
    ----------
    log_squash : callable
        ln psi of scores.
    q, s : float
        Mean and standard deviation of the score, s > 0.
    ends : ndarray
        Scores at which psi, or what is left of it, changes quickly or jumps.
    mode : float or None
        Of t, if psi is log-concave: then all lies near it. None: within ``REACH`` of zero.
    """
    centre, reach = (0.0, REACH) if mode is None else (mode, _NARROW)
    edges = [centre + np.linspace(-reach, reach, 2 * int(reach) + 1)]
    steps = 2 * reach * 0.5 ** np.arange(_LEVELS)
    for end in (np.asarray(ends, float) - q) / s:
        edges += [end - steps, np.array([end]), end + steps]
    cut = np.unique(np.concatenate(edges))
    cut = cut[(cut >= centre - reach) & (cut <= centre + reach)]
    half = np.diff(cut)[:, None] / 2
    t = (cut[:-1, None] + half + half * _NODES).ravel()
    log_parts = np.log((half * _WEIGHTS).ravel()) - 0.5 * (t**2 + LOG_2PI) + log_squash(q + s * t)
    log_c = float(logsumexp(log_parts))
    shares = np.exp(log_parts - log_c) if np.isfinite(log_c) else np.zeros_like(t)
    panels = shares.reshape(-1, len(_NODES))
    before = np.cumsum(panels.sum(axis=1)) - panels.sum(axis=1)
    below = (before[:, None] + (panels / _WEIGHTS) @ _UP_TO_NODE.T).ravel()
    return TiltedNormal(t, shares, below, log_c)


def logistic_mode(q: float, s: float, sign: float) -> float:
    """The t at which N(t; 0, 1) / (1 + exp(-sign (q + s t))) is largest, by bisection."""

    def slope(t: float) -> float:
        return -t + sign * s * float(np.exp(log_expit(-sign * (q + s * t))))

    low, high = (0.0, s) if sign > 0 else (-s, 0.0)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return 0.5 * (low + high)
