"""Nested mixtures: leaves grouped into cells, in layers.

p(x) = sum_k a_k sum_j b_j|k p(x | theta_kj)

As a density it is the flat mixture of all leaves with weights a_k b_j|k. What is added is the tree:
row l of ``paths`` says which component leaf l is in each layer, counted within its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.gaussian import GaussianFamily
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.mixture import Mixture, MixtureParams, MixtureReading
from mixfold.models.mixtures.rows import without_empty_rows


def by_weight(params: MixtureParams, family: GaussianFamily) -> MixtureParams:
    """The same mixture, its components in order of falling weight."""
    order = np.argsort(-params.weights, kind="stable")
    return MixtureParams(params.weights[order], family.select(params.components, order))


def only(params: MixtureParams, node: int, family: GaussianFamily) -> MixtureParams:
    """One component as a mixture of its own."""
    return MixtureParams(np.ones(1), family.select(params.components, np.array([node])))


def flatten_mixture(
    weights: Array, children: Sequence[MixtureParams], family: GaussianFamily
) -> MixtureParams:
    """One mixture of the components of several, each of which has a weight.

    All are in one frame. A scatter that components share is averaged by weight: it is the pooled
    scatter about the means of all components.
    """
    shares = [weight * child.weights for weight, child in zip(weights, children, strict=True)]
    parts = [child.components for child in children]
    if shares_scatter(family):
        scatter = np.tensordot(weights, np.stack([part.scatter for part in parts]), 1)
    else:
        scatter = np.concatenate([part.scatter for part in parts])
    means = np.concatenate([part.means for part in parts])
    return MixtureParams(np.concatenate(shares), replace(parts[0], means=means, scatter=scatter))


def shares_scatter(family: GaussianFamily) -> bool:
    """Whether one covariance serves all components."""
    return family.scatter_shape(1, 1) == family.scatter_shape(2, 1)


def extend_paths(paths: Array, sizes: Sequence[int]) -> Array:
    """The paths after each leaf was split into some: one more column."""
    within = np.concatenate([np.arange(size) for size in sizes])
    return np.column_stack([np.repeat(paths, sizes, axis=0), within])


def cell_starts(paths: Array) -> Array:
    """The first leaf of each cell of the top layer; leaves stand in the order of the cells."""
    return np.flatnonzero(np.diff(paths[:, 0], prepend=-1))


def pool_weights(weights: Array, paths: Array) -> tuple[Array, list[Array]]:
    """a_k of the cells, and b_j|k of the leaves in each."""
    starts = cell_starts(paths)
    a = np.add.reduceat(weights, starts)
    groups = np.split(weights, starts[1:])
    # a cell that lost its weight has leaves nevertheless
    shares = [
        g / w if w > 0 else np.full(len(g), 1 / len(g)) for g, w in zip(groups, a, strict=True)
    ]
    return a, shares


def log_cells(model: Mixture, reading: MixtureReading, block: Block, starts: Array) -> Array:
    """log a_k p(x_n | cell k) (n, K), less a number of each row that is far away."""
    joint, _ = model.log_joint_and_base(reading, block)
    ends = np.append(starts[1:], joint.shape[1])
    parts = [normalise(joint[:, i:j])[0] for i, j in zip(starts, ends, strict=True)]
    return np.stack(parts, axis=1)


def row_labels(model: Mixture, reading: MixtureReading, block: Block) -> Array:
    """The most probable component of each row; -1 for rows without weight or without an entry."""
    speaks = without_empty_rows(block).weights() > 0
    labels = np.argmax(model.log_joint_and_base(reading, block)[0], axis=1)
    return np.where(speaks, labels, -1).astype(np.int32)
