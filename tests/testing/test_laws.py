"""The laws themselves: each passes on what is right and names itself on what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Block, Update
from mixfold.families import DiagonalGaussian, FullGaussian
from mixfold.families.gaussian import DiagonalMetric
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing import Case, laws
from mixfold.testing.tables import clustered_table

K, D = 2, 2


def _case(model: Any, **sides: Any) -> Case:
    return Case(model, clustered_table(80, D, 3, seed=1), **sides)


def test_the_suite_passes_on_a_model_that_is_right() -> None:
    laws.check_model(_case(Mixture(K, FullGaussian())), n_labels=K)


# ------------------------------------------------ models with one mistake each


class BlockCounter(Mixture):
    """Adds something per block instead of per row."""

    def expect(self, reading: Any, block: Block, rng: Any) -> Any:
        stats = super().expect(reading, block, rng)
        return replace(stats, log_likelihood=stats.log_likelihood + 1e-3)


class WeightForgetter(Mixture):
    def expect(self, reading: Any, block: Block, rng: Any) -> Any:
        return super().expect(reading, replace(block, weight=None), rng)


class WeightSquarer(Mixture):
    """Weight zero is absence here, but weight two is four rows."""

    def expect(self, reading: Any, block: Block, rng: Any) -> Any:
        return super().expect(reading, replace(block, weight=block.weights() ** 2), rng)


class LabelForgetter(Mixture):
    def expect(self, reading: Any, block: Block, rng: Any) -> Any:
        return super().expect(reading, replace(block, y=None), rng)


class Overstepping(Mixture):
    """An M step that goes twice as far as it should."""

    def update(self, params: Any, stats: Any, context: Any) -> Update[Any]:
        fresh = super().update(params, stats, context).params
        old = params.components.means
        means = old + 2.5 * (fresh.components.means - old)
        return Update(replace(fresh, components=replace(fresh.components, means=means)))


class Unseeded(Mixture):
    def initialise(self, pilot: Any, rng: Any, attempt: int = 0) -> Any:
        params = super().initialise(pilot, rng, attempt)
        shift = np.random.default_rng().normal(size=params.components.means.shape)
        means = params.components.means + 0.1 * shift
        return replace(params, components=replace(params.components, means=means))


class Meddler(Mixture):
    def update(self, params: Any, stats: Any, context: Any) -> Update[Any]:
        update = super().update(params, stats, context)
        stats.components.first[0] += 1e-3
        return update


class WrongSign(Mixture):
    def derivatives(self, params: Any, stats: Any) -> Any:
        gradient, metric = super().derivatives(params, stats)
        gradient[K] *= -1
        return gradient, metric


class HalfGradient(Mixture):
    def derivatives(self, params: Any, stats: Any) -> Any:
        gradient, metric = super().derivatives(params, stats)
        gradient[-1] /= 2
        return gradient, metric


class IndefiniteMetric(Mixture):
    def derivatives(self, params: Any, stats: Any) -> Any:
        gradient, _ = super().derivatives(params, stats)
        return gradient, _Flat(np.r_[-1.0, np.ones(gradient.size - 1)])


@dataclass(frozen=True)
class _Flat(DiagonalMetric):
    def solve(self, gradient: Any) -> Any:
        return gradient * self.information


class LopsidedMetric(Mixture):
    def derivatives(self, params: Any, stats: Any) -> Any:
        gradient, _ = super().derivatives(params, stats)
        return gradient, _Lopsided(np.ones(gradient.size))


@dataclass(frozen=True)
class _Lopsided(DiagonalMetric):
    def solve(self, gradient: Any) -> Any:
        out = gradient.copy()
        out[0] += 0.1 * gradient[1]
        return out


class Transposed(Mixture):
    """Reads the means in another order than it writes them."""

    def from_coordinates(self, params: Any, vector: Any) -> Any:
        back = super().from_coordinates(params, vector)
        assert back is not None
        return replace(back, components=replace(back.components, means=back.components.means.T))


MISTAKES: list[tuple[type[Mixture], str, str]] = [
    (BlockCounter, "block invariance", "block invariance"),
    (WeightForgetter, "weight zero is absence", "weight zero is absence"),
    (WeightForgetter, "weight two is repetition", "weight two is repetition"),
    (WeightSquarer, "weight two is repetition", "weight two is repetition"),
    (Overstepping, "monotone objective", "monotone objective"),
    (Unseeded, "repeatable", "repeatable start"),
    (Meddler, "pure functions", "pure functions"),
    (WrongSign, "gradient", "gradient"),
    (HalfGradient, "gradient", "gradient"),
    (IndefiniteMetric, "gradient", "metric is positive"),
    (LopsidedMetric, "gradient", "metric is symmetric"),
    (Transposed, "coordinates round trip", "coordinates round trip"),
]


@pytest.mark.parametrize(
    ("model", "law", "named"), MISTAKES, ids=[f"{m.__name__}, {law}" for m, law, _ in MISTAKES]
)
def test_a_mistake_is_found_and_named(model: type[Mixture], law: str, named: str) -> None:
    with pytest.raises(AssertionError, match=f"law '{named}'"):
        laws.MODEL_LAWS[law](_case(model(K, DiagonalGaussian())))


def test_forgotten_labels_are_found() -> None:
    with pytest.raises(AssertionError, match="law 'labels clamp'"):
        laws.labels_clamp(_case(LabelForgetter(K, DiagonalGaussian())), K)


def test_a_start_in_data_units_is_found() -> None:
    class Unscaled(DiagonalGaussian):
        def frame(self, X: Any, weight: Any, spread: Any = None) -> Any:
            frame = super().frame(X, weight)
            return replace(frame, scale=np.ones_like(frame.scale))

    with pytest.raises(AssertionError, match="law 'shift and scale'"):
        laws.equivariance(_case(Mixture(K, Unscaled())), np.zeros(D), np.array([1e4, 1.0]))


def test_a_counted_column_of_nothing_is_found() -> None:
    case = _case(Mixture(K, FullGaussian()))
    params = case.after(1)
    # removing another column than the one that is hidden
    rest = replace(params, components=laws.without_column(FullGaussian(), params.components, 1))
    with pytest.raises(AssertionError, match="law 'a missing column is no column'"):
        laws.missing_column(case, params, Mixture(K, FullGaussian()), rest, 0)


def test_skipping_needs_a_law_and_a_reason() -> None:
    case = _case(WrongSign(K, DiagonalGaussian()))
    laws.check_model(case, skip={"gradient": "checked elsewhere"})
    with pytest.raises(AssertionError, match="gradient"):
        laws.check_model(case)
    with pytest.raises(ValueError, match="'gradients', which is no law; the laws are"):
        laws.check_model(case, skip={"gradients": "typo"})
    with pytest.raises(ValueError, match="must say why 'gradient' does not apply"):
        laws.check_model(case, skip={"gradient": " "})
