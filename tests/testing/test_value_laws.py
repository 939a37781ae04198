"""Laws of statistics, samplers, files and of comparison itself: right and wrong examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Stats
from mixfold.testing import laws
from mixfold.testing.compare import require_same

# ------------------------------------------------ algebra


@dataclass(frozen=True)
class Sums(Stats):
    total: np.ndarray
    count: float


def _sums(*values: float) -> Sums:
    return Sums(np.array(values), float(len(values)))


def test_sums_are_a_monoid() -> None:
    laws.monoid([_sums(1, 2), _sums(0.1, -5), _sums(7, 1e-3)])


class Averaging(Sums):
    def __add__(self, other: Any) -> Any:
        return type(self)((self.total + other.total) / 2, self.count + other.count)


class LeftLeaning(Sums):
    def __add__(self, other: Any) -> Any:
        return type(self)(self.total, self.count + other.count)


class Unscaled(Sums):
    def scale(self, factor: float) -> Any:
        return self


class FullZero(Sums):
    def zero(self) -> Any:
        return type(self)(self.total * 0, 1.0)


@pytest.mark.parametrize(
    ("kind", "named"),
    [(Averaging, "associative"), (LeftLeaning, "commutative"), (Unscaled, "zero is of no rows"),
     (FullZero, "neutral element")],
)  # fmt: skip
def test_no_monoid(kind: Callable[..., Sums], named: str) -> None:
    parts = [kind(np.array([v, 2.0]), 1.0) for v in (1.0, 3.0, -7.0)]
    with pytest.raises(AssertionError, match=f"law '{named}'"):
        laws.monoid(parts)


# ------------------------------------------------ samplers


def _normal(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(n, 2)) * [1.0, 2.0] + [5, -1]


def _log_density(scale: tuple[float, float], centre: tuple[float, float] = (5, -1)) -> Any:
    def density(X: np.ndarray) -> np.ndarray:
        U = (X - centre) / scale
        return -0.5 * (U**2).sum(axis=1) - np.log(2 * np.pi) - np.log(scale).sum()

    return density


def test_samplers() -> None:
    covariance = np.diag([1.0, 4.0])
    entropy = 1 + np.log(2 * np.pi) + np.log(2)
    laws.sampler_moments(_normal, np.array([5.0, -1]), covariance)
    laws.sampler_slopes(_normal, _log_density((1, 2)))
    laws.sampler_entropy(_normal, _log_density((1, 2)), -entropy)
    with pytest.raises(AssertionError, match="law 'sampler has its moments': mean"):
        laws.sampler_moments(_normal, np.array([5.0, -0.8]), covariance)
    with pytest.raises(AssertionError, match="law 'sampler has its moments': covariance"):
        laws.sampler_moments(_normal, np.array([5.0, -1]), np.diag([1.0, 2.0]))
    with pytest.raises(AssertionError, match="law 'sampler has its density': slope moment"):
        laws.sampler_slopes(_normal, _log_density((1, 4)))
    with pytest.raises(AssertionError, match="law 'sampler has its density': mean slope"):
        laws.sampler_slopes(_normal, _log_density((1, 2), (5.2, -1)))
    with pytest.raises(AssertionError, match="law 'sampler has its entropy'"):
        laws.sampler_entropy(_normal, _log_density((1, 2)), -entropy + 0.1)


# ------------------------------------------------ comparison and suites


def test_comparison_is_strict_without_tolerance() -> None:
    require_same("x", {"a": (1.0, np.ones(2))}, {"a": (1.0, np.ones(2))})
    require_same("x", np.array([np.nan, 1.0]), np.array([np.nan, 1.0]))
    for other in (np.ones(2, np.float32), np.ones((1, 2)), np.array([1.0, np.nextafter(1, 2)])):
        with pytest.raises(AssertionError, match="law 'x'"):
            require_same("x", other, np.ones(2))
    with pytest.raises(AssertionError, match="law 'x'"):
        require_same("x", (1.0, 2.0), (1.0,))


def test_comparison_with_tolerance() -> None:
    require_same("x", np.array([1.0, 1e-14]), np.array([1.0, 0.0]), 1e-12)
    require_same("x", np.array([1e6]), np.array([1e6 + 1e-7]), 1e-12)
    with pytest.raises(AssertionError, match=r"value\[1\] differs by 0.5"):
        require_same("x", [1.0, 2.0], [1.0, 2.5], 1e-3)
    with pytest.raises(AssertionError):
        require_same("x", np.array([np.inf]), np.array([1.0]), 1e-3)
    with pytest.raises(AssertionError):
        require_same("x", np.array([np.nan]), np.array([1.0]), 1e-3)


def test_a_value_that_is_no_record_cannot_be_stored() -> None:
    laws.stored_identity({"means": np.eye(2), "name": "x", "parts": (1, 2.5, None)})
    with pytest.raises(TypeError):
        laws.stored_identity(_sums(1.0))
