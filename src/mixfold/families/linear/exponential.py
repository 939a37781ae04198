"""Waiting times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from mixfold.families.linear.gamma import Gamma


@dataclass(frozen=True)
class Exponential(Gamma):
    """x_d | k ~ exponential(rate beta_kd), beta_kd ~ gamma(a, rate b). NaN is missing.

    A gamma law of shape one.

    Parameters
    ----------
    a, b : float or array (D,), optional
        The prior; by default a = 1 and b that makes its mean the rate of the column.
    """

    shape: Any = field(default=1.0, init=False)

    name: ClassVar[str] = "exponential"
