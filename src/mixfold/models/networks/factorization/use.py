"""Codes, reconstructions and classes of rows by a fitted layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, Block, Stats
from mixfold.math.beta_divergence import BetaDivergence
from mixfold.math.link_functions import Link
from mixfold.math.softmax import normalise
from mixfold.models.networks.factorization.codes import SWEEPS, CodeProblem
from mixfold.models.networks.factorization.divergence import DivergenceCodes
from mixfold.models.networks.factorization.records import Layer
from mixfold.models.networks.factorization.sums import dense_rows


@dataclass(frozen=True)
class ResidualSums(Stats):
    """Weighted losses of observed entries (half their squares), and the weight of the rows."""

    loss: float
    weight: float


@dataclass(frozen=True, slots=True)
class Encoder:
    """Codes of rows without their labels; picklable. No ``divergence``: the loss is squared."""

    layer: Layer
    link: Link
    alpha: float
    sigma2: float
    tol: float
    divergence: BetaDivergence | None = None

    def codes(self, block: Block) -> Array:
        return self.problem().solve(dense_rows(block.X))

    def problem(self, most: int = SWEEPS) -> CodeProblem | DivergenceCodes:
        """What the codes solve, by at most so many sweeps."""
        layer, link, alpha = self.layer.without_head(), self.link, self.alpha
        if self.divergence is None:
            return CodeProblem(layer, link, alpha, self.sigma2, self.tol, most)
        return DivergenceCodes(layer, link, alpha, self.sigma2, self.divergence, self.tol, most)

    def sources(self, block: Block) -> Array:
        return self.link.inverse(self.codes(block))

    def rows(self, block: Block) -> Array:
        return np.asarray(self.codes(block) @ self.layer.codebook + self.layer.bias)

    def residuals(self, block: Block) -> ResidualSums:
        X, V, weight = dense_rows(block.X), self.rows(block), block.weights()
        seen = ~np.isnan(X)
        X, V = np.where(seen, X, 1.0), np.where(seen, V, 1.0)
        losses = (self.divergence or BetaDivergence(2.0)).value(X, V)
        return ResidualSums(float(weight @ losses.sum(axis=1)), float(weight.sum()))

    def logits(self, block: Block) -> Array:
        V, v = self.layer.head()
        return np.asarray(self.codes(block) @ V + v)

    def shares(self, block: Block) -> Array:
        return normalise(self.logits(block))[1]

    def classes(self, block: Block) -> Array:
        return np.asarray(self.logits(block).argmax(axis=1))


def small_share(values: Array, t: float, relative: bool) -> float:
    """Mean share of the entries of a row that are less than t (times the largest of the row)."""
    sizes = np.abs(values)
    limit = t * sizes.max(axis=1, keepdims=True) if relative else t
    return float((sizes < limit).mean()) if sizes.size else float("nan")


def hoyer(values: Array) -> float:
    """Mean of (sqrt n - |a|_1 / |a|_2) / (sqrt n - 1) of rows: 0 if all are equal, 1 if one is."""
    n = values.shape[1]
    length = np.sqrt((values**2).sum(axis=1))
    full = length > 0
    if n < 2 or not full.any():
        return float("nan")
    ratio = np.abs(values[full]).sum(axis=1) / length[full]
    return float(((np.sqrt(n) - ratio) / (np.sqrt(n) - 1)).mean())
