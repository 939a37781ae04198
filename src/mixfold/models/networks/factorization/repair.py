"""Move unused sources to rows that are reconstructed badly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixfold.contracts import Array, Context, Event
from mixfold.models.networks.factorization.codes import CodeProblem
from mixfold.models.networks.factorization.records import Layer

# of what a source explains on average: less is nothing
_NOTHING = 1e-10
# residuals that are less, as a share of the squares of a row, need no source
_EXPLAINED = 1e-6
# rows of the pilot that are looked at
_ROWS = 2000


def dead_units(layer: Layer, gram: Array, known: tuple[Event, ...]) -> Array:
    """Sources that explain no variance and were not moved before."""
    weight = gram[-1, -1]
    variance = np.diagonal(gram)[:-1] / weight - (gram[:-1, -1] / weight) ** 2
    explained = np.maximum(variance, 0.0) * (layer.codebook**2).sum(axis=1)
    moved = [e.component for e in known if e.kind == "reseed"]
    dead = explained <= _NOTHING * explained.mean()
    dead[[h for h in moved if h >= 0]] = False
    return np.flatnonzero(dead)


def reseed_sources(
    layer: Layer, dead: Array, problem: CodeProblem, X: Array, nonneg: bool, context: Context
) -> tuple[Layer, tuple[Event, ...]]:
    """The layer with rows of the codebook at the largest residuals of rows X of the pilot."""
    X = X[:_ROWS]
    residual = X - problem.solve(X) @ layer.codebook - layer.bias
    residual = np.nan_to_num(np.maximum(residual, 0.0) if nonneg else residual)
    size = (residual**2).sum(axis=1)
    worst = np.argsort(-size, kind="stable")[: len(dead)]
    total = np.nansum((X - layer.bias) ** 2) / len(X)
    worst = worst[size[worst] > _EXPLAINED * total]
    dead = dead[: len(worst)]
    norms = np.linalg.norm(layer.codebook, axis=1)
    norm = float(np.median(norms[norms > 0])) if (norms > 0).any() else 1.0
    codebook = layer.codebook.copy()
    codebook[dead] = residual[worst] * (norm / np.sqrt(size[worst]))[:, None]
    events = tuple(
        Event("reseed", f"source {h} explained nothing and was moved to a row that is "
              "reconstructed badly", context.iteration, int(h))
        for h in dead
    )  # fmt: skip
    return replace(layer, codebook=codebook), events
