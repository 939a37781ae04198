"""Link functions from sources s to codes f(s), with the proximal step of the L1 penalty.

In the coordinate t = (phi - centre) / half the cost |f^-1(phi)| is an even function (of ``Ratio``:
a function of t >= 0) that is convex, with the derivative

    gain / ((1 - a t) (1 - b t)),   t > 0,

so that one formula serves all four: identity (a, b) = (0, 0), ratio (1, 1), tanh and logistic
(1, -1). Sums of |s| are convex in phi, though not smooth at phi = f(0).
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from mixfold.contracts import Array, record
from mixfold.math.compiled import kernel

# sources of the maps that saturate stay within this
FURTHEST = 4.0
# codes of the ratio stay within this
_NEAR_ONE = 1.0 - 1e-6
_NEWTON = 60


class Link(ABC):
    """Base of the maps.

    Attributes
    ----------
    lower, upper : float
        Box of the codes: without a penalty a code may want to be at the end of its range, where
        the source is infinite.
    centre : float
        f(0).
    half : float
        Half the range of a symmetric map, the unit of the coordinate t.
    poles : tuple of float
        a and b of the derivative of the cost.
    gain : float
        The derivative of the cost in t, at t = 0+.
    """

    lower: float
    upper: float
    centre: ClassVar[float] = 0.0
    half: ClassVar[float] = 1.0
    gain: ClassVar[float] = 1.0
    poles: ClassVar[tuple[float, float]]

    @abstractmethod
    def value(self, s: Array) -> Array:
        """f(s)."""

    @abstractmethod
    def inverse(self, phi: Array) -> Array:
        """f^-1(phi) of codes in the box; those outside count as its ends."""

    @abstractmethod
    def slope(self, phi: Array) -> Array:
        """f'(s) as a function of phi = f(s)."""

    def cost(self, phi: Array) -> Array:
        """|f^-1(phi)|."""
        return np.abs(self.inverse(phi))

    def numbers(self) -> Array:
        """What the kernels read: centre, half, gain / half^2, a, b, lower, upper."""
        gain = self.gain / self.half**2
        return np.array([self.centre, self.half, gain, *self.poles, self.lower, self.upper])

    def shrink(self, u: Array, tau: float | Array) -> Array:
        """The phi of the box that minimises (phi - u)^2 / 2 + tau cost(phi), entry by entry."""
        u = np.asarray(u, float)
        flat = np.ascontiguousarray(u).ravel()
        taus = np.ascontiguousarray(np.broadcast_to(np.asarray(tau, float), u.shape)).ravel()
        out = np.empty(flat.size)
        _shrink_all(flat, taus, self.numbers(), out)
        return out.reshape(u.shape)


@record
@dataclass(frozen=True, slots=True)
class Identity(Link):
    """phi = s; ``lower`` = 0 makes the sources non-negative."""

    lower: float = -np.inf
    upper: float = np.inf
    poles: ClassVar[tuple[float, float]] = (0.0, 0.0)

    def value(self, s: Array) -> Array:
        return np.array(s, dtype=float)

    def inverse(self, phi: Array) -> Array:
        return np.clip(phi, self.lower, self.upper)

    def slope(self, phi: Array) -> Array:
        return np.ones_like(phi)


@record
@dataclass(frozen=True, slots=True)
class Ratio(Link):
    """phi = s / (1 + s) of sources s >= 0: saturating."""

    lower: float = 0.0
    upper: float = _NEAR_ONE
    poles: ClassVar[tuple[float, float]] = (1.0, 1.0)

    def value(self, s: Array) -> Array:
        return np.asarray(s / (1.0 + s))

    def inverse(self, phi: Array) -> Array:
        phi = np.clip(phi, self.lower, self.upper)
        return np.asarray(phi / (1.0 - phi))

    def slope(self, phi: Array) -> Array:
        return np.asarray((1.0 - phi) ** 2)


@record
@dataclass(frozen=True, slots=True)
class Logistic(Link):
    """phi = 1 / (1 + exp(-s)): codes are positive though sources are free."""

    lower: float = float(expit(-FURTHEST))
    upper: float = float(expit(FURTHEST))
    centre: ClassVar[float] = 0.5
    half: ClassVar[float] = 0.5
    gain: ClassVar[float] = 2.0
    poles: ClassVar[tuple[float, float]] = (1.0, -1.0)

    def value(self, s: Array) -> Array:
        return np.asarray(expit(s))

    def inverse(self, phi: Array) -> Array:
        return np.asarray(logit(np.clip(phi, self.lower, self.upper)))

    def slope(self, phi: Array) -> Array:
        return np.asarray(phi * (1.0 - phi))


@record
@dataclass(frozen=True, slots=True)
class Tanh(Link):
    """phi = tanh(s)."""

    lower: float = -float(np.tanh(FURTHEST))
    upper: float = float(np.tanh(FURTHEST))
    poles: ClassVar[tuple[float, float]] = (1.0, -1.0)

    def value(self, s: Array) -> Array:
        return np.asarray(np.tanh(s))

    def inverse(self, phi: Array) -> Array:
        return np.asarray(np.arctanh(np.clip(phi, self.lower, self.upper)))

    def slope(self, phi: Array) -> Array:
        return np.asarray((1.0 - phi) * (1.0 + phi))


LINKS: dict[str, Link] = {
    "identity": Identity(),
    "saturating": Ratio(),
    "logistic": Logistic(),
    "tanh": Tanh(),
}


# ------------------------------------------------------------------ kernels


@kernel
def _root(u, tau, a, b, top):
    """The t in (0, top] with t - u + tau / ((1 - a t)(1 - b t)) = 0, for u > tau > 0.

    The left side is convex and increasing, so Newton's steps from the right do not overshoot.
    ``top`` if the root is beyond it.
    """
    t = min(u - tau, top)
    if a != 0.0:
        # (1 - b t) <= max(1, 1 - b) gives a quadratic equation whose root is further right
        gap, c = 1.0 - u, 4.0 * tau / max(1.0, 1.0 - b)
        far = np.sqrt(gap * gap + c)
        t = min(t, 1.0 - (0.5 * (gap + far) if gap > 0.0 else 0.5 * c / (far - gap)))
    for _ in range(_NEWTON):
        p, q = 1.0 - a * t, 1.0 - b * t
        pull = tau / (p * q)
        left = t - u + pull
        if left <= 0.0 and t == top:
            break
        step = left / (1.0 + pull * (a / p + b / q))
        t = min(t - step, top)
        if abs(step) <= 1e-15 * max(t, 1e-3):
            break
    return max(t, 0.0)


@kernel
def shrink_one(u, tau, numbers):
    """The proximal step of one entry; see ``Link.numbers``."""
    centre, half = numbers[0], numbers[1]
    t = (u - centre) / half
    if tau > 0.0:
        scaled = tau * numbers[2]
        size = abs(t)
        if size <= scaled:
            t = 0.0
        else:
            top = (numbers[6] - centre) / half
            size = _root(size, scaled, numbers[3], numbers[4], top)
            t = size if t > 0.0 else -size
    return min(max(centre + half * t, numbers[5]), numbers[6])


@kernel
def _shrink_all(u, tau, numbers, out):
    for i in range(u.size):
        out[i] = shrink_one(u[i], tau[i], numbers)
