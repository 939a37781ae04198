"""The prior that all rows suggest: one pass with one component before a fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Block, Executor, Pilot, RowRandom, Source
from mixfold.math.frame import Frame
from mixfold.models.mixtures.mixture import Mixture, MixtureReading, MixtureStats
from mixfold.models.mixtures.starts import RandomStart


def total_moments(
    model: Mixture, source: Source, executor: Executor, pilot: Pilot, keys: RowRandom
) -> tuple[Frame, Any]:
    """The frame of a fit, and the moments of all rows as one component."""
    one = Mixture(1, model.family, start=RandomStart())
    params = one.initialise(
        replace(pilot, block=_drop_labels(pilot.block)), np.random.default_rng(0)
    )
    stats = executor.map_reduce(partial(_expect, one, one.prepare(params), keys), source)
    return params.components.frame, one.family.about_frame(stats.components)


def _expect(one: Mixture, reading: MixtureReading, keys: RowRandom, block: Block) -> MixtureStats:
    return one.expect(reading, _drop_labels(block), keys)


def _drop_labels(block: Block) -> Block:
    """Labels tell components apart, and here is one."""
    return replace(block, y=None)
