"""The prior that all rows suggest: one pass with one component before a fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Block, Executor, Pilot, RowRandom, Source
from mixfold.math.frame import Frame
from mixfold.models.mixtures.mixture import Mixture, MixtureReading, MixtureStats
from mixfold.models.mixtures.outliers import bulk_of_rows, near_rows, without_far_rows
from mixfold.models.mixtures.starts import RandomStart


def total_moments(
    model: Mixture, source: Source, executor: Executor, pilot: Pilot, keys: RowRandom
) -> tuple[Frame, Any]:
    """The frame of a fit, and the moments of all rows as one component.

    Rows far away from most others are left out: a prior that follows one row suits no other.
    """
    one = Mixture(1, model.family, start=RandomStart())
    pilot = replace(pilot, block=_drop_labels(pilot.block))
    bulk = bulk_of_rows(model.family.bulk, pilot)
    # missing entries are filled as the other rows see them
    near = replace(pilot, block=near_rows(pilot.block, bulk))
    params = one.change_frame(one.initialise(near, np.random.default_rng(0)), pilot)
    task = partial(_expect, one, one.prepare(params), bulk, keys)
    stats = executor.map_reduce(task, source)
    return params.components.frame, one.family.about_frame(stats.components)


def _expect(
    one: Mixture, reading: MixtureReading, bulk: Frame | None, keys: RowRandom, block: Block
) -> MixtureStats:
    return one.expect(reading, without_far_rows(_drop_labels(block), bulk), keys)


def _drop_labels(block: Block) -> Block:
    """Labels tell components apart, and here is one."""
    return replace(block, y=None)
