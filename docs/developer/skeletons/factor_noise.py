"""A skeleton for a part of the factor model: a rule of which columns share a noise variance.

It is multi-view factor analysis: columns come in groups (views, instruments, batches of questions),
factors are common to all of them, and the noise has one variance per group:

    z ~ N(0, I),    x_d | z, k ~ N(w_kd'z + mu_kd, psi_k,g(d)),    g(d): the group of column d

One group is probabilistic PCA (``IsotropicNoise``), a group for each column is factor analysis
(``DiagonalNoise``). Copy the file, change what is numbered, and give the object to
``FactorFamily(noise=...)``. What the tests in ``tests/docs/test_skeleton_noise.py`` ask of it
should hold for yours as well: they run all laws, with and without missing entries.

References
----------
A. Klami, S. Virtanen, E. Leppaaho, S. Kaski (2015). Group factor analysis. IEEE Transactions on
Neural Networks and Learning Systems 26, 2136-2147.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array, record
from mixfold.families.factor.noise import Noise


# 1. A frozen dataclass with the settings of the rule; ``@record`` lets a model file hold it.
#    ``tied`` (the components have the same noise) and ``held`` (it is given) are inherited.
@record
@dataclass(frozen=True)
class GroupedNoise(Noise):
    """One variance for each group of columns.

    Parameters
    ----------
    groups : tuple of int
        The group of each column: 0, 1, ..., each number at least once.
    """

    groups: tuple[int, ...] = ()

    # 2. Two facts. The columns of a group share an absolute variance, so they must be measured in
    #    one unit: they are not scaled apart. And the variance is not the same in all columns, so
    #    the squares of each column have to be summed by themselves.
    scales_columns: ClassVar[bool] = False
    isotropic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if sorted(set(self.groups)) != list(range(len(set(self.groups)))):
            raise ValueError(
                "groups must number the groups of the columns 0, 1, ... without a gap, got "
                f"{self.groups!r}"
            )

    # 3. Which columns share a variance: (K, D) values summed within each of them.
    def over_columns(self, values: Array) -> Array:
        member = np.equal.outer(self.groups, np.arange(self.n_columns(values.shape[1])))
        return np.asarray(values @ member.astype(float))

    # 4. How many variances a component has: BIC counts them.
    def n_columns(self, n_features: int) -> int:
        if n_features != len(self.groups):
            raise ValueError(
                f"groups must have one number for each of the {n_features} columns, got "
                f"{len(self.groups)}"
            )
        return max(self.groups) + 1

    # 5. There and back: the variance of each group at its columns, and one copy of each.
    def spread(self, shared: Array, shape: tuple[int, int]) -> Array:
        return np.broadcast_to(shared[:, list(self.groups)], shape).copy()

    def drop_copies(self, noise: Array) -> Array:
        first = [self.groups.index(group) for group in range(self.n_columns(noise.shape[1]))]
        kept = noise[:1] if self.tied else noise
        return np.asarray(kept[:, first])
