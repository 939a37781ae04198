"""Oracles for samplers of Bayesian mixtures: do they draw from the right distribution?

``law`` enumerates the partitions of a few rows, and ``agree`` compares draws with it. The joint law
of rows and unknowns can be simulated in two ways, forwards and by transitions in turn (Geweke
2004): compare ``features`` of both with ``same_means``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import chi2

from mixfold.contracts import Array, Block, Pilot
from mixfold.engine.random import RowKeys
from mixfold.models.mixtures.bayes_mixture import BayesMixture
from mixfold.models.mixtures.inference import Gibbs, Point

Partition = tuple[int, ...]
_BATCHES = 30


def whole(X: Array, **fields: Any) -> Block:
    """A table as one block."""
    return Block(X, complete=not np.isnan(X).any(), **fields)


def pilot_of(X: Array) -> Pilot:
    """A sample that is the whole table."""
    seen = (~np.isnan(X)).sum(axis=0).astype(float)
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    return Pilot(whole(X), len(X), float(len(X)), seen, low, high)


def mixture_to_sample(
    family: Any, mixing: Any, pilot: Pilot, n_components: int = 3
) -> BayesMixture:
    """A mixture to sample from, with the prior that a sample suggests, and that stays."""
    plain = BayesMixture(n_components, family, mixing, inference=Gibbs())
    start: Any = plain.initialise(pilot, np.random.default_rng(0))
    return replace(plain, prior=start.prior)


@dataclass(frozen=True)
class Placed:
    """A mixture whose rows are in components that are known.

    Parameters
    ----------
    model : BayesMixture
        With a prior.
    pilot : Pilot
        Settles the frame of the prior.
    """

    model: BayesMixture
    pilot: Pilot

    @cached_property
    def start(self) -> Any:
        """Parameters to begin with."""
        return self._point.initialise(self.pilot, np.random.default_rng(0))

    @cached_property
    def _point(self) -> BayesMixture:
        return replace(self.model, inference=Point())

    @cached_property
    def _reading(self) -> Any:
        return self._point.prepare(self.start)

    def stats(self, X: Array, labels: Any) -> Any:
        return self._point.expect(self._reading, whole(X, y=np.asarray(labels)), RowKeys(0))

    def posterior(self, moments: Any) -> Any:
        """Of the components."""
        frame = self.start.components.frame
        return self.model.conjugate.posterior(moments, self.model.prior, frame)

    def evidence(self, X: Array, labels: Any) -> float:
        """ln p(rows | components)."""
        moments, frame = self.stats(X, labels).components, self.start.components.frame
        return self.model.conjugate.evidence(moments, self.model.prior, frame)

    def without_rows(self) -> Any:
        """The posterior of components that have no rows: the prior."""
        X = np.asarray(self.pilot.block.X)
        return self.posterior(self.stats(X, np.zeros(len(X), int)).components.zero())


def canonical(labels: Iterable[int]) -> Partition:
    """Labels in order of appearance: the same for the same partition.

    Examples
    --------
    >>> canonical([7, 2, 7])
    (0, 1, 0)
    """
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(label), len(seen)) for label in labels)


def law(
    n: int, n_labels: int, log_weight: Callable[[Partition], float], *, labelled: bool
) -> dict[Partition, float]:
    """Probabilities of the partitions of n rows, from ``log_weight`` of each labelling, or of each
    partition as ``canonical`` has it."""
    logs: dict[Partition, list[float]] = {}
    for labels in product(range(n_labels), repeat=n):
        partition = canonical(labels)
        if labelled or labels == partition:
            logs.setdefault(partition, []).append(log_weight(labels))
    sums = {partition: logsumexp(values) for partition, values in logs.items()}
    total = logsumexp(list(sums.values()))
    return {partition: float(np.exp(value - total)) for partition, value in sums.items()}


def agree(draws: Iterable[Iterable[int]], law: dict[Partition, float]) -> None:
    """Require that labels drawn follow a law, by Pearson's test at a level of 1e-4.

    Draws should be nearly independent. Cells that expect less than five are put together.
    """
    found = Counter(canonical(labels) for labels in draws)
    strange = set(found) - set(law)
    assert not strange, f"partitions of probability zero were drawn: {strange}"
    n = sum(found.values())
    cells = [[key] for key, share in law.items() if n * share >= 5]
    rest = [key for key, share in law.items() if n * share < 5]
    if n * sum(law[key] for key in rest) >= 5:
        cells.append(rest)
    else:
        cells[0].extend(rest)
    expected = np.array([n * sum(law[key] for key in cell) for cell in cells])
    seen = np.array([sum(found[key] for key in cell) for cell in cells])
    assert len(cells) > 3 and max(law.values()) < 0.9, f"this law proves nothing: {law}"
    statistic = float(((seen - expected) ** 2 / expected).sum())
    limit = float(chi2.ppf(1 - 1e-4, len(cells) - 1))
    assert statistic < limit, f"chi-square {statistic:.1f} of {len(cells)} cells: over {limit:.1f}"


def features(X: Array, labels: Any, alpha: float, unit: Array) -> list[float]:
    """Of rows, components and concentration; blind to labels, and with tails that means allow.

    ``unit`` (n, D) are rows whose means and deviations the entries are measured in.
    """
    labels = np.asarray(labels)
    U = np.arctan((X - unit.mean(axis=0)) / (unit.std(axis=0) + 1e-9))
    together = float(labels[0] == labels[1])
    counts = np.bincount(labels)
    of_labels = [np.count_nonzero(counts), counts.max(), together]
    of_rows = [U.mean(), np.abs(U).mean(), np.abs(U[0] - U[1]).mean(), (U[0] * U[-1]).mean()]
    both = [together * float(np.abs(U[0] - U[1]).mean())]
    return [float(np.log(alpha)), *map(float, of_labels), *map(float, of_rows), *both]


def same_means(chain: Any, independent: Any) -> None:
    """Require means within 4.5 standard errors; those of a chain are by means of its batches."""
    chain, independent = np.asarray(chain, float), np.asarray(independent, float)
    length = len(chain) // _BATCHES * _BATCHES
    batches = chain[:length].reshape(_BATCHES, -1, chain.shape[1]).mean(axis=1)
    error = batches.var(axis=0, ddof=1) / _BATCHES
    error += independent.var(axis=0, ddof=1) / len(independent)
    z = (batches.mean(axis=0) - independent.mean(axis=0)) / np.sqrt(error)
    assert np.abs(z).max() < 4.5, f"features differ by {z.round(1)} standard errors"
