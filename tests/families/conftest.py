"""Every Gaussian family by name, with a table and responsibilities to try it on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mixfold.contracts import Block
from mixfold.families import GAUSSIAN, GaussianFamily
from mixfold.families.gaussian import GaussianParams, Moments
from mixfold.math.softmax import clamp, entropies, normalise

General = Callable[[Block, GaussianParams, np.ndarray], tuple[Moments, tuple[float, float, float]]]


@pytest.fixture(params=sorted(GAUSSIAN))
def family(request: pytest.FixtureRequest) -> GaussianFamily:
    return GAUSSIAN[request.param]()


@pytest.fixture
def general(family: GaussianFamily) -> General:
    """One pass by the route that takes any block: moments, and the parts of the objective."""

    def run(
        block: Block, params: GaussianParams, log_weights: np.ndarray
    ) -> tuple[Moments, tuple[float, float, float]]:
        reading = family.mode(params)
        scores = family.scores(block, reading)
        total, resp = normalise(clamp(scores.log_density + log_weights, block.y))
        w = block.weights()
        moments = family.moments(scores, resp * w[:, None], reading)
        return moments, (float(w @ total), float(w @ entropies(resp)), float(w.sum()))

    return run
