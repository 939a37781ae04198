"""The components of several mixtures, of which as many are kept as one of them has.

The densities of all J components at n rows are held fixed, so that only weights are left to learn:

    f(x_n) = sum_j a_j p_j(x_n),    a_j >= 0,    sum_j a_j = 1

The log-likelihood of a is concave. Components that several mixtures have in common share their
rows, and all but one of them can go without a loss; so backward elimination aligns the mixtures and
prunes their union at once.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array

# steps of the weights of the union before components go, and of those that are left after each
FIRST_STEPS, NEXT_STEPS = 10, 1
# of the largest density of a row, and of the weights: what counts as nothing
_LEAST = 1e-100


def choose_components(log_density: Array, weight: Array, n_components: int) -> tuple[Array, Array]:
    """Components of a union that describe weighted rows about as well as all do.

    The component whose rows lose least by going to the others goes, one after another.

    Parameters
    ----------
    log_density : ndarray of shape (n, J)
    weight : ndarray of shape (n,)
    n_components : int
        How many to keep, at most J.

    Returns
    -------
    chosen : ndarray of shape (n_components,)
        Which, in rising order.
    a : ndarray of shape (n_components,)
        Their weights.
    """
    largest = log_density.max(axis=1, keepdims=True)
    densities = np.exp(log_density - np.where(np.isfinite(largest), largest, 0.0))
    union = _Union(np.maximum(densities, _LEAST), weight / weight.sum())
    a = union.reweight(np.full(log_density.shape[1], 1 / log_density.shape[1]), FIRST_STEPS)
    live = np.arange(len(a))
    losses = [(union.without(a, place)[0], place) for place in range(len(a))]
    heapq.heapify(losses)
    while len(live) > n_components:
        place = _least_loss(union, a, live, losses)
        a = np.delete(union.without(a, place)[1], place)
        live = np.delete(live, place)
        union = _Union(np.delete(union.densities, place, axis=1), union.rows)
        a = union.reweight(a, NEXT_STEPS)
    return live, a


@dataclass(frozen=True, slots=True)
class _Union:
    """Densities (n, J), each row relative to its largest, and the shares of the rows (n,)."""

    densities: Array
    rows: Array

    def reweight(self, a: Array, steps: int) -> Array:
        """Weights after some steps of EM."""
        for _ in range(steps):
            a = np.maximum(a * (self.densities.T @ (self.rows / (self.densities @ a))), _LEAST)
        return a

    def without(self, a: Array, place: int) -> tuple[float, Array]:
        """What the mean log-likelihood loses without a component, and the weights then: each of
        the others takes of its rows what it has of the others' share in them."""
        total = self.densities @ a
        own = self.densities[:, place] * a[place]
        others = np.where(np.arange(len(a)) == place, 0.0, a)
        rest = self.densities @ others
        others = others * (1 + self.densities.T @ (self.rows * own / total / rest))
        return float(self.rows @ np.log(total / (self.densities @ others))), others


def _least_loss(union: _Union, a: Array, live: Array, losses: list[tuple[float, int]]) -> int:
    """The place of the component that loses least. What was found when there were others is too
    little for it now, so only those that may be the least are looked at again."""
    while True:
        _, j = heapq.heappop(losses)
        place = int(np.searchsorted(live, j))
        loss = union.without(a, place)[0]
        if not losses or loss <= losses[0][0]:
            return place
        heapq.heappush(losses, (loss, j))
