"""Densities of independent sources: mean zero, variance one, heavier tails than a normal.

Each is a mixture of normals of different variance, so that ln p(s) is bounded from below by a
parabola that touches it at s' (half-quadratic bounds; the weight is the expected precision):

    ln p(s) >= ln p(s') - weight(s') (s^2 - s'^2) / 2,   weight(s) = -d ln p(s) / ds / s
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import k1e

from mixfold.contracts import Array


class SourceDensity(ABC):
    """Base of the densities."""

    @abstractmethod
    def log_density(self, s: Array) -> Array:
        """ln p(s), entry by entry."""

    @abstractmethod
    def weight(self, s: Array) -> Array:
        """-d ln p(s) / ds / s, entry by entry."""

    @abstractmethod
    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array: ...


@dataclass(frozen=True, slots=True)
class Laplace(SourceDensity):
    """p(s) proportional to exp(-sqrt(2 (s^2 + e^2))): the peak is rounded over e standard
    deviations, where a parabola would be infinitely narrow."""

    rounding: float = 1e-3

    def log_density(self, s: Array) -> Array:
        e, rate = self.rounding, np.sqrt(2.0)
        whole = np.log(2.0 * e * k1e(rate * e)) - rate * e  # k1e(x) is K_1(x) exp(x)
        return np.asarray(-rate * np.sqrt(s * s + e * e) - whole)

    def weight(self, s: Array) -> Array:
        return np.asarray(np.sqrt(2.0) / np.sqrt(s * s + self.rounding**2))

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.laplace(scale=np.sqrt(0.5), size=shape)


@dataclass(frozen=True, slots=True)
class Logistic(SourceDensity):
    """p(s) = 1 / (4 r cosh(s / 2r)^2), r = sqrt(3) / pi."""

    def log_density(self, s: Array) -> Array:
        r = np.sqrt(3.0) / np.pi
        return np.asarray(-np.log(4.0 * r) - 2.0 * _log_cosh(s / (2.0 * r)))

    def weight(self, s: Array) -> Array:
        r = np.sqrt(3.0) / np.pi
        return np.asarray(_tanh_ratio(s / (2.0 * r)) / (2.0 * r * r))

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.logistic(scale=np.sqrt(3.0) / np.pi, size=shape)


@dataclass(frozen=True, slots=True)
class HyperbolicSecant(SourceDensity):
    """p(s) = 1 / (2 cosh(pi s / 2)); its score is a tanh."""

    def log_density(self, s: Array) -> Array:
        return np.asarray(-np.log(2.0) - _log_cosh(0.5 * np.pi * s))

    def weight(self, s: Array) -> Array:
        return np.asarray(0.25 * np.pi**2 * _tanh_ratio(0.5 * np.pi * s))

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return np.asarray(2.0 / np.pi * np.arcsinh(np.tan(np.pi * (rng.random(shape) - 0.5))))


SOURCES: dict[str, SourceDensity] = {
    "laplace": Laplace(),
    "logistic": Logistic(),
    "cosh": HyperbolicSecant(),
}


def _log_cosh(t: Array) -> Array:
    size = np.abs(t)
    return np.asarray(size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0))


def _tanh_ratio(t: Array) -> Array:
    """tanh(t) / t."""
    small = np.abs(t) < 1e-4
    return np.where(small, 1.0 - t * t / 3.0, np.tanh(t) / np.where(small, 1.0, t))
