"""Predictions and scores of a mixture, one block of rows at a time."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.math.softmax import entropies, log_normalised, normalise
from mixfold.models.mixtures.mixture import Mixture, MixtureReading
from mixfold.models.mixtures.rows import without_empty_rows


def match_dtype(values: Array, block: Block) -> Array:
    """float32 in, float32 out, unless finite values do not fit into it."""
    with np.errstate(over="ignore"):
        found = values.astype(block.X.dtype, copy=False)
    if found is values or np.isfinite(found).all():
        return found
    return values if (np.isinf(found) & np.isfinite(values)).any() else found


def labels(model: Mixture, reading: MixtureReading, block: Block) -> Array:
    found: Array = np.argmax(model.log_joint_and_base(reading, block)[0], axis=1)
    return found


def probabilities(model: Mixture, reading: MixtureReading, block: Block) -> Array:
    return match_dtype(normalise(model.log_joint_and_base(reading, block)[0])[1], block)


def log_probabilities(model: Mixture, reading: MixtureReading, block: Block) -> Array:
    joint, _ = model.log_joint_and_base(reading, block)
    return match_dtype(log_normalised(joint), block)


def log_density(model: Mixture, reading: MixtureReading, block: Block) -> Array:
    joint, base = model.log_joint_and_base(reading, block)
    return match_dtype(normalise(joint)[0] + base, block)


def block_totals(model: Mixture, reading: MixtureReading, block: Block) -> Array:
    block = without_empty_rows(block)
    joint, base = model.log_joint_and_base(reading, block)
    log_total, resp = normalise(joint)
    weight = block.weights()
    return np.array([weight @ (log_total + base), weight.sum(), weight @ entropies(resp)])
