"""Split and merge proposals for the collapsed sampler: many rows change their cluster at once.

Single rows cannot cross a valley: on the way from one cluster to two all partitions may be worse. A
proposal takes two rows i and j at random (Jain and Neal, 2004). If they sit together, their cluster
is split: i opens a new one, j stays, and the others are shared between the two; if they do not,
their clusters are merged. It is accepted with probability

    min(1, P(z*, x) q(z | z*) / (P(z, x) q(z* | z)))

A merger can be made in one way. A split is made by a restricted Gibbs scan of the others, over the
two clusters alone, from a launch state; q is the product of the probabilities of its draws. The
launch state, too, is made of i and j alone, without a look at how the others sit: one after the
other they join either, by the predictive density given those before (as in Dahl, 2005, whose
proposal this is), and then one scan is made that does not count. So the reverse of a merger has the
q of a scan from a launch state of the same law, which is forced to end in the clusters there are.

Of K components, slots have names: a split chooses one of the E empty ones, and q has 1 / E.

References
----------
S. Jain, R. M. Neal (2004). A split-merge Markov chain Monte Carlo procedure for the Dirichlet
process mixture model. Journal of Computational and Graphical Statistics 13, 158-182.

D. B. Dahl (2005). Sequentially-allocated merge-split sampler for conjugate and nonconjugate
Dirichlet process mixture models. Technical report, Texas A&M University.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from mixfold.contracts import Array

# scans of a launch state, after rows have joined one by one
SCANS = 1


class Tables(Protocol):
    """Rows at tables, as the collapsed sampler holds them."""

    labels: Array
    counts: Array

    def place(self, row: int, slot: int) -> None:
        """A row that sits nowhere sits down."""
        ...

    def lift(self, row: int) -> None:
        """A row leaves its slot, in which others stay."""
        ...

    def vacate(self, slots: tuple[int, ...], rows: Array) -> None:
        """All ``rows`` of some slots leave them."""
        ...

    def log_odds(self, row: int, one: int, two: int) -> float:
        """ln of the odds that a row that sits nowhere joins ``two`` and not ``one``, if it joins
        either; both have rows."""
        ...

    def log_joint_of(self, slots: tuple[int, ...]) -> float:
        """ln P(z, x) but for what the other slots, which stay as they are, have in it."""
        ...

    def open_slot(self, uniform: float) -> tuple[int, float]:
        """An empty slot and ln of the number of those it was chosen from, 0 if slots have no
        names; -1 if there is none."""
        ...

    def log_choices(self) -> float:
        """ln of the number of slots that a split can choose from."""
        ...


def propose(tables: Tables, rows: Array, known: Array, rng: np.random.Generator) -> bool:
    """One proposal; whether it was accepted.

    Parameters
    ----------
    tables : Tables
        Left as they were if it was not.
    rows : int array
        That may move.
    known : bool array (n,)
        Rows that stay: clusters with one of them are left alone.
    rng : Generator
    """
    if len(rows) < 2:
        return False
    i, j = (int(row) for row in rng.choice(rows, 2, replace=False))
    one, two = int(tables.labels[i]), int(tables.labels[j])
    both = np.flatnonzero((tables.labels == one) | (tables.labels == two))
    if known[both].any():
        return False
    others = rng.permutation(both[(both != i) & (both != j)])
    if one == two:
        return _split(tables, i, j, others, rng)
    return _merge(tables, i, j, others, rng)


def _split(tables: Tables, i: int, j: int, others: Array, rng: np.random.Generator) -> bool:
    old = int(tables.labels[j])
    new, log_choices = tables.open_slot(rng.random())
    if new < 0:
        return False
    before = tables.log_joint_of((old,))
    _launch(tables, i, j, others, (new, old), rng)
    log_q = _scan(tables, others, (new, old), rng.random(len(others)))
    after = tables.log_joint_of((new, old))
    if _accept(after - before - log_q + log_choices, rng):
        return True
    _seat(tables, i, j, others, (new, old), np.full(len(others), old), old)
    return False


def _merge(tables: Tables, i: int, j: int, others: Array, rng: np.random.Generator) -> bool:
    pair = int(tables.labels[i]), int(tables.labels[j])
    wanted = tables.labels[others].copy()
    before = tables.log_joint_of(pair)
    _launch(tables, i, j, others, pair, rng)
    log_q = _scan(tables, others, pair, None, wanted)
    _seat(tables, i, j, others, pair, np.full(len(others), pair[1]), pair[1])
    after = tables.log_joint_of(pair[1:])
    if _accept(after - before + log_q - tables.log_choices(), rng):
        return True
    _seat(tables, i, j, others, pair, wanted, pair[0])
    return False


def _accept(log_ratio: float, rng: np.random.Generator) -> bool:
    return math.log(1 - rng.random()) < log_ratio


def _launch(
    tables: Tables, i: int, j: int, others: Array, pair: tuple[int, int], rng: np.random.Generator
) -> None:
    """i alone in the first slot, j in the second, the others where their draws lead."""
    _empty(tables, i, j, others, pair)
    tables.place(i, pair[0])
    tables.place(j, pair[1])
    for row, uniform in zip(others.tolist(), rng.random(len(others)).tolist(), strict=True):
        second = uniform < _chance(tables.log_odds(row, *pair))
        tables.place(row, pair[1] if second else pair[0])
    for _ in range(SCANS):
        _scan(tables, others, pair, rng.random(len(others)))


def _scan(
    tables: Tables,
    others: Array,
    pair: tuple[int, int],
    uniforms: Array | None,
    wanted: Array | None = None,
) -> float:
    """Each of the others sits down again at one of two slots, by a draw or where it is ``wanted``;
    ln of the probability of that."""
    log_q = 0.0
    for n, row in enumerate(others.tolist()):
        tables.lift(row)
        odds = tables.log_odds(row, *pair)
        if wanted is not None:
            second = bool(wanted[n] == pair[1])
        else:
            assert uniforms is not None
            second = bool(uniforms[n] < _chance(odds))
        log_q -= _log1p_exp(-odds if second else odds)
        tables.place(row, pair[1] if second else pair[0])
    return log_q


def _seat(
    tables: Tables, i: int, j: int, others: Array, pair: tuple[int, int], where: Array, of_i: int
) -> None:
    """The rows of a pair of slots sit as told; j in the second."""
    _empty(tables, i, j, others, pair)
    for row, slot in zip((i, j, *others.tolist()), (of_i, pair[1], *where.tolist()), strict=True):
        tables.place(row, slot)


def _empty(tables: Tables, i: int, j: int, others: Array, pair: tuple[int, int]) -> None:
    tables.vacate(pair, np.concatenate([[i, j], others]))


def _log1p_exp(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _chance(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0
