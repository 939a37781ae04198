"""The beta divergences, and the functions that bound them from above.

    d(x | v) = (x^b + (b - 1) v^b - b x v^(b - 1)) / (b (b - 1))

with the limits x ln(x / v) - x + v at b = 1 (Kullback-Leibler) and x / v - ln(x / v) - 1 at b = 0
(Itakura-Saito); b = 2 is (x - v)^2 / 2. They are the Bregman divergences of powers of x, and up to
constants minus the log-likelihood of Tweedie distributions of mean v.

With v = sum_h phi_h a_h, all not negative, d is bounded by a sum of functions of one phi_h each,
which touch it at phi' (Fevotte and Idier, 2011):

    push phi^c / c - pull phi^(e + 1) / (e + 1) + constant,   c = max(b, 1),  e = min(b - 2, 0),
    push = sum a v'^(b - 1) / phi'^(c - 1),   pull = sum a x v'^(b - 2) / phi'^e.

``push`` and ``pull`` are sums over entries, of which each may have a phi' of its own. The bound is
convex in phi, so its minimum over a range is (pull / push)^(1 / (c - 1 - e)), drawn into the range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from mixfold.contracts import Array

LOSSES = {"squared": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}
# nearer than this, a power is its limit: the formula would lose more digits than that changes
_NEAR = 1e-7


@dataclass(frozen=True, slots=True)
class BetaDivergence:
    """One of them, by its power b."""

    power: float

    @property
    def needs_positive(self) -> bool:
        """Whether it is infinite at x = 0, whatever v is."""
        return self.power < _NEAR

    @property
    def is_convex(self) -> bool:
        """Whether it is convex in v, for every x."""
        return 1.0 <= self.power <= 2.0

    def value(self, x: Array, v: Array) -> Array:
        """d(x | v), entry by entry; v > 0."""
        b = self.power
        if abs(b - 1.0) < _NEAR:
            return np.asarray(xlogy(x, x / v) - x + v)
        if abs(b) < _NEAR:
            return np.asarray(x / v - np.log(x / v) - 1.0)
        if b == 2.0:
            return np.asarray(0.5 * (x - v) ** 2)
        found = x**b + (b - 1.0) * v**b - b * x * v ** (b - 1.0)
        return np.asarray(found / (b * (b - 1.0)))

    def slopes(self, x: Array, v: Array) -> tuple[Array, Array]:
        """The positive and the negative part of dd/dv: v^(b - 1) and x v^(b - 2)."""
        b = self.power
        if b == 2.0:
            return v, x
        if b == 1.0:
            return np.ones_like(v), x / v
        up = v ** (b - 1.0)
        return up, x * (up / v)

    # ------------------------------------------------ the bound

    @property
    def exponents(self) -> tuple[float, float]:
        """c - 1 and e, of the derivative push phi^(c - 1) - pull phi^e."""
        return max(self.power, 1.0) - 1.0, min(self.power - 2.0, 0.0)

    def bound_sums(self, up: Array, down: Array, at: Array) -> tuple[Array, Array]:
        """push and pull from the sums of a v^(b - 1) and a x v^(b - 2), about phi' = ``at``."""
        c1, e = self.exponents
        return up * at**-c1 if c1 else up, down * at**-e if e else down

    def step(self, up: Array, down: Array, at: Array) -> Array:
        """Where the bounds about ``at`` are least, from the sums themselves: at (down / up)^w.

        A penalty weight * phi adds its weight to ``up``: it is bounded likewise.
        """
        c1, e = self.exponents
        known = up > 0
        ratio = np.where(known, down / np.where(known, up, 1.0), 1.0)
        return np.asarray(at * (ratio if c1 - e == 1.0 else ratio ** (1.0 / (c1 - e))))

    def penalty(self, weight: float, at: Array) -> Array | float:
        """What the penalty weight * phi adds to push: it is bounded likewise."""
        c1 = self.exponents[0]
        return weight * at**-c1 if c1 and weight else weight

    def bound_value(self, push: Array, pull: Array, at: Array) -> float:
        """The sum of the bounds, without their constants."""
        c1, e = self.exponents
        value = (push * at ** (c1 + 1.0)).sum() / (c1 + 1.0)
        if e == -1.0:
            return float(value - (pull * np.log(at)).sum())
        return float(value - (pull * at ** (e + 1.0)).sum() / (e + 1.0))

    def bound_minimum(self, push: Array, pull: Array, at: Array) -> Array:
        """Where the bounds are least; ``at`` where there is nothing to go by."""
        c1, e = self.exponents
        known = push > 0
        ratio = pull / np.where(known, push, 1.0)
        if c1 - e != 1.0:
            ratio = ratio ** (1.0 / (c1 - e))
        return np.asarray(np.where(known, ratio, at))


def check_range(X: Array, divergence: BetaDivergence) -> None:
    """Refuse entries where the loss has no value; NaN is missing."""
    lowest = float(np.nanmin(X, initial=np.inf))
    if lowest < 0:
        raise ValueError(
            f"Negative values in data: X holds {lowest:g}, but the loss of this model is one of "
            "rows that are not negative"
        )
    if lowest == 0 and divergence.needs_positive:
        raise ValueError(
            f"X holds 0, where the loss of the power {divergence.power:g} is infinite whatever the "
            "model says; use loss='kullback-leibler' or another power above 0, mark these entries "
            "as missing (NaN), or add a small number to X"
        )
