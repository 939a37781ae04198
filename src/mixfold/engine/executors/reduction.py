"""Sums of blocks in a binary tree ordered by index, so that every executor gives the same bits.

The leaves are numbered by block. Two neighbours are added only if together they fill an
aligned range ``[m 2^k, (m + 1) 2^k)``, so the shape of the tree depends on the number of
leaves alone. Threads feed one ``TreeSum`` leaf by leaf; a cluster sums ranges of leaves
where they live and joins the ranges: both give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from mixfold.contracts import Stats

S = TypeVar("S", bound=Stats)


class TreeSum(Generic[S]):
    """The sum over the consecutive leaves ``start, ..., stop - 1``, not yet closed.

    Holds one partial sum per aligned range: at most ``2 log2(n)`` of them, and
    ``log2(n)`` when ``start`` is zero.

    Parameters
    ----------
    start : int
        Index of the first leaf among all leaves of the pass.
    """

    __slots__ = ("_nodes", "start", "stop")

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.stop = start
        self._nodes: list[tuple[int, S]] = []  # (level, sum), in index order

    def add(self, value: S) -> None:
        """Append the next leaf."""
        self._push(0, value)

    def extend(self, other: TreeSum[S]) -> None:
        """Append all the leaves of ``other``, which must begin where this sum ends."""
        if other.start != self.stop:
            raise ValueError(
                f"leaves are missing: a sum that ends at {self.stop} cannot be followed "
                f"by one that begins at {other.start}; join them in index order"
            )
        for level, value in other._nodes:
            self._push(level, value)

    def result(self) -> S:
        """Close the tree: what is left is added from the small end.

        Raises
        ------
        ValueError
            If there were no leaves, or the first one is missing.
        """
        if self.start != 0:
            raise ValueError(f"leaves 0 to {self.start - 1} are missing from the sum")
        if not self._nodes:
            raise ValueError("the data gave no blocks: there are no rows to sum over")
        (_, total), *rest = reversed(self._nodes)
        for _, value in rest:
            total = value + total
        return total

    def _push(self, level: int, value: S) -> None:
        nodes = self._nodes
        first = self.stop
        self.stop += 1 << level
        # Odd at this level: the left sibling, if it belongs to this sum, is on top.
        while (first >> level) & 1 and nodes and nodes[-1][0] == level:
            value = nodes.pop()[1] + value
            first -= 1 << level
            level += 1
        nodes.append((level, value))


def tree_sum(values: Iterable[S]) -> S:
    """Sum of ``values`` in the tree that every executor uses."""
    total: TreeSum[S] = TreeSum()
    for value in values:
        total.add(value)
    return total.result()
