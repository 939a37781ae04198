"""Merging the components of a mixture into clusters, by the rows that they would take for others'.

Two components describe one cluster if rows of one are often given to the other. With
responsibilities r_nj of rows n and clusters j, weights w_n, and the most probable cluster l_n,

    q(i | j) = sum_n w_n r_nj [l_n = i] / sum_n w_n r_nj

is the directly estimated probability that a row of j is taken for one of i (Hennig, Methods for
merging Gaussian mixture components, 2010). The pair with the largest max(q(i | j), q(j | i)) is
merged, whose responsibilities add; labels and q are those of the clusters that are left.

A row speaks of few components, so what is kept is sparse: the largest entries of each row and those
that are not negligible. Entries are logarithms, so that clusters which lie so far apart that their
overlap underflows are still merged with the nearer one first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, record

# entries of a row that are kept whatever their size, and the size above which all are
KEPT = 32
NEGLIGIBLE = 1e-6
# levels and masses that agree in so many digits are equal: sums depend on the order of the rows
_DIGITS = 10


@record
@dataclass(frozen=True)
class MergeTree:
    """The merges of K components, in their order.

    Components are 0 to K - 1; merge t makes the cluster K + t, as in scipy.

    Attributes
    ----------
    left, right : ndarray of shape (K - 1,), int
        The two clusters of each merge, the heavier first.
    level : ndarray of shape (K - 1,)
        The directly estimated misclassification probability at which they were merged, or that
        of an earlier merge if that was smaller: levels do not rise, so that a cut through the
        tree is a set of clusters.
    size : ndarray of shape (K - 1,), int
        Components of the new cluster.
    mass : ndarray of shape (K,)
        Weight of the rows of each component, by its responsibilities.
    """

    left: Array
    right: Array
    level: Array
    size: Array
    mass: Array

    @property
    def n_components(self) -> int:
        return len(self.mass)

    @property
    def n_used(self) -> int:
        """Components that have a share of some row."""
        return int(np.count_nonzero(self.mass > 0))

    def count_above(self, threshold: float) -> int:
        """Clusters that are left if merges of a level above the threshold are made."""
        return self.n_components - int(np.count_nonzero(self.level > threshold))

    def cut(self, n_clusters: int) -> Array:
        """The cluster of each component when ``n_clusters`` are left, (K,); heaviest first."""
        return order_by_mass(self._roots(self.n_components - n_clusters), self.mass)

    def _roots(self, n_merges: int) -> Array:
        """For each component the cluster that it is part of after the first merges."""
        K = self.n_components
        parent = np.arange(2 * K - 1 if K else 0)
        for t in range(n_merges):
            parent[[self.left[t], self.right[t]]] = K + t
        for node in range(len(parent) - 1, -1, -1):  # parents have larger numbers
            parent[node] = parent[parent[node]]
        return np.asarray(parent[:K])

    def linkage(self) -> Array:
        """The tree as scipy draws it, (K - 1, 4): two clusters, height 1 - level, components."""
        columns = (self.left, self.right, 1.0 - self.level, self.size)
        return np.stack([np.asarray(c, dtype=float) for c in columns], axis=1)


def order_by_mass(labels: Array, mass: Array) -> Array:
    """Labels as 0, 1, ... by falling mass; those of equal mass by their first component."""
    values, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    total = _rounded(np.bincount(numbers, weights=mass, minlength=len(values)))
    rank = np.empty(len(values), dtype=np.intp)
    rank[np.lexsort((first, -total))] = np.arange(len(values))
    return np.asarray(rank[numbers])


@dataclass(frozen=True, slots=True)
class SparseShares:
    """Logarithms of responsibilities, row after row; what is not kept is zero.

    Attributes
    ----------
    starts : ndarray of shape (n + 1,)
        Where the entries of each row begin, as in a CSR matrix.
    components : ndarray of shape (n_entries,)
    logs : ndarray of shape (n_entries,)
    """

    starts: Array
    components: Array
    logs: Array
    n_components: int

    @property
    def n_rows(self) -> int:
        return len(self.starts) - 1

    def row_numbers(self) -> Array:
        """The row of each entry."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.starts))


def keep_shares(log_shares: Array) -> SparseShares:
    """The entries of some rows that are kept: the 32 largest of a row, and all above 1e-6."""
    n, K = log_shares.shape
    kept = np.isfinite(log_shares)
    if K > KEPT:
        least = np.partition(log_shares, K - KEPT, axis=1)[:, K - KEPT]
        kept &= (log_shares >= least[:, None]) | (log_shares > np.log(NEGLIGIBLE))
    rows, components = np.nonzero(kept)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    logs = np.asarray(log_shares[kept], dtype=float)
    return SparseShares(starts, components.astype(np.int32), logs, K)


def join_shares(parts: Iterable[SparseShares]) -> SparseShares:
    """The rows of several parts, one after the other."""
    parts = list(parts)
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    return SparseShares(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.components for part in parts]),
        np.concatenate([part.logs for part in parts]),
        parts[0].n_components,
    )


def merge_components(
    shares: SparseShares,
    weight: Array | None = None,
    groups: Array | None = None,
    *,
    whole: bool = True,
) -> MergeTree:
    """The tree of merges of all components into one cluster.

    Parameters
    ----------
    shares : SparseShares
        Log-responsibilities of rows.
    weight : ndarray of shape (n,), optional
        Weights of the rows, at least zero.
    groups : ndarray of shape (K,), int, optional
        Components of different groups are merged only when each group is one cluster.
    whole : bool, default=True
        False: only when no group has clusters left of which more than one row in a million is
        taken for the other's. A group of parts that share nothing need not be one cluster.

    Returns
    -------
    MergeTree
        Components without a share of any row come first, at level 1: nothing is lost by merging
        them. They join the cluster that they overlap most, or the heaviest. Clusters that do not
        overlap at all join the heaviest, at level 0, the lightest first. Where levels are equal
        the heavier clusters are merged first, so the tree does not depend on the order of the
        components, save that of components which no sum tells apart.
    """
    return _Merging(shares, weight, groups).run(whole)


def component_overlaps(shares: SparseShares, weight: Array | None = None) -> Array:
    """Pairs i < j of components and max(q(i | j), q(j | i)), (P, 3); pairs without are left out."""
    n, K = shares.n_rows, shares.n_components
    rows = shares.row_numbers()
    values = np.exp(shares.logs)
    weighted = values if weight is None else values * np.asarray(weight, dtype=float)[rows]
    mass = np.bincount(shares.components, weights=weighted, minlength=K)
    label, _ = _largest_shares(shares.starts, shares.components, values, n)
    pairs = label[rows] * K + shares.components
    found, numbers = np.unique(pairs, return_inverse=True)
    i, j = found // K, found % K
    taken = np.bincount(numbers, weights=weighted, minlength=len(found))
    share = np.divide(taken, mass[j], out=np.zeros_like(taken), where=mass[j] > 0)
    kept = (i != j) & (share > 0)
    low, high = np.minimum(i, j)[kept], np.maximum(i, j)[kept]
    both, numbers = np.unique(low * K + high, return_inverse=True)
    top = np.zeros(len(both))
    np.maximum.at(top, numbers, share[kept])
    return np.stack([both // K, both % K, top], axis=1)


# ---------------------------------------------------- the merges


class _Merging:
    """The clusters that are left, and who is taken for whom. Numbers are those of content."""

    def __init__(
        self, shares: SparseShares, weight: Array | None, groups: Array | None = None
    ) -> None:
        K, n = shares.n_components, shares.n_rows
        rows = shares.row_numbers()
        values = np.exp(shares.logs)
        weights = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
        weighted = values * weights[rows]
        mass = np.bincount(shares.components, weights=weighted, minlength=K)
        square = np.bincount(shares.components, weights=weighted * values, minlength=K)
        # components by what they hold: their numbers say nothing
        self._order = np.lexsort((np.arange(K), -_rounded(square), -_rounded(mass)))
        rank = np.empty(K, dtype=np.int32)
        rank[self._order] = np.arange(K)

        self._K = K
        self._starts, self._logs, self._weighted = shares.starts, shares.logs, weighted
        self._entries = rank[shares.components]
        self._weights = weights
        # by cluster: rows with a share and their shares; the smallest of its components
        by_cluster = np.argsort(self._entries, kind="stable")
        cuts = np.searchsorted(self._entries[by_cluster], np.arange(1, K))
        self._rows = dict(enumerate(np.split(rows[by_cluster], cuts)))
        self._shares = dict(enumerate(np.split(values[by_cluster], cuts)))
        self._first = dict(enumerate(range(K)))
        self._mass = dict(enumerate(mass[self._order].tolist()))
        self._size = dict.fromkeys(range(K), 1)
        self._all_mass = mass
        own = np.zeros(K, dtype=int) if groups is None else np.asarray(groups)
        self._group = dict(enumerate(own[self._order].tolist()))
        # where each component is now, by content number
        self._home = np.arange(K)
        self._members = {k: [k] for k in range(K)}
        self._label, self._best = _largest_shares(self._starts, self._entries, values, n)
        self._taken: dict[int, dict[int, float]] = {}  # by label i: mass of j's rows
        self._by_column: dict[int, set[int]] = {k: set() for k in range(K)}
        self._merges: list[tuple[int, int, float, int]] = []
        self._heap: list[tuple[float, int, int, int, int]] = []
        self._levels: dict[tuple[int, int], float] = {}

    def run(self, whole: bool) -> MergeTree:
        self._count_all()
        self._join_empty()
        if whole:
            self._merge_groups()
        else:
            self._merge_pairs(NEGLIGIBLE)
        if len(self._mass) > 1:
            self._group = dict.fromkeys(self._group, 0)
            self._merge_groups()
        return self._tree()

    def _merge_groups(self) -> None:
        """Merge all clusters of a group, for each group."""
        self._merge_pairs(0.0)
        self._merge_by_logs()
        self._merge_the_rest()

    def _merge_pairs(self, above: float) -> None:
        """Merge pairs of a group while there is one of a level above this."""
        for i, row in self._taken.items():
            for j in row:
                self._note_pair(i, j)
        while (pair := self._nearest(above)) is not None:
            self._merge(*pair)

    # ------------------------------------------------ who is taken for whom

    def _count_all(self) -> None:
        """The mass of each cluster's rows by the label of the rows."""
        if not len(self._entries):
            return
        labels = np.repeat(self._label, np.diff(self._starts))
        pairs = labels.astype(np.int64) * self._K + self._entries
        found, numbers = np.unique(pairs, return_inverse=True)
        sums = np.bincount(numbers, weights=self._weighted)
        for pair, value in zip(found.tolist(), sums.tolist(), strict=True):
            self._set_taken(pair // self._K, pair % self._K, value)

    def _set_taken(self, i: int, j: int, value: float) -> None:
        if value > 0:
            self._taken.setdefault(i, {})[j] = value
            self._by_column[j].add(i)

    def _count_label(self, i: int) -> None:
        """Count one label anew, after it has lost rows."""
        before = self._taken.pop(i, {})
        for j in before:
            self._by_column[j].discard(i)
        rows = self._rows[i]
        for j, value in self._sums(rows[self._label[rows] == i]):
            self._set_taken(i, j, value)
        for j in before.keys() | self._taken.get(i, {}).keys():
            self._note_pair(i, j)

    def _sums(self, rows: Array) -> Iterator[tuple[int, float]]:
        """Mass of each cluster in some rows."""
        lengths = self._starts[rows + 1] - self._starts[rows]
        if not lengths.sum():
            return iter(())
        ends = np.cumsum(lengths)
        at = np.arange(ends[-1]) + np.repeat(self._starts[rows] - (ends - lengths), lengths)
        found, numbers = np.unique(self._home[self._entries[at]], return_inverse=True)
        sums = np.bincount(numbers, weights=self._weighted[at])
        return zip(found.tolist(), sums.tolist(), strict=True)

    def _level(self, i: int, j: int) -> float:
        one = self._taken.get(i, {}).get(j, 0.0)
        two = self._taken.get(j, {}).get(i, 0.0)
        return max(_share(one, self._mass[j]), _share(two, self._mass[i]))

    def _note_pair(self, i: int, j: int) -> None:
        """Put a pair whose level has changed in line."""
        if i == j or self._group[i] != self._group[j]:
            return
        pair = (i, j) if self._first[i] < self._first[j] else (j, i)
        level = round_digits(self._level(i, j))
        if self._levels.get(pair) != level:
            self._levels[pair] = level
            if level > 0:
                # equal levels: the pair of the heavier clusters
                first = self._first
                heapq.heappush(self._heap, (-level, first[pair[0]], first[pair[1]], *pair))

    def _nearest(self, above: float) -> tuple[int, int, float] | None:
        while self._heap and -self._heap[0][0] > above:
            entry = heapq.heappop(self._heap)
            pair = entry[3:]
            if self._levels.get(pair) == -entry[0]:
                return (*pair, self._level(*pair))
        return None

    # ------------------------------------------------ merges

    def _merge(self, a: int, b: int, level: float) -> None:
        """Make one cluster of two, of which a has the heavier component."""
        c = self._K + len(self._merges)
        if self._mass[b] > self._mass[a]:
            a, b = b, a
        self._merges.append((a, b, level, self._size[a] + self._size[b]))
        self._first[c] = min(self._first.pop(a), self._first.pop(b))
        self._mass[c] = self._mass.pop(a) + self._mass.pop(b)
        self._size[c] = self._size.pop(a) + self._size.pop(b)
        self._group[c] = self._group.pop(a)
        del self._group[b]
        few, many = sorted((self._members.pop(a), self._members.pop(b)), key=len)
        self._home[few] = c
        self._home[many] = c
        self._members[c] = many + few
        touched = self._add_taken(a, b, c)
        losers = self._add_rows(a, b, c)
        for i in losers:
            self._count_label(i)
        for j in touched | self._by_column[c] | self._taken.get(c, {}).keys():
            if j in self._mass:
                self._note_pair(c, j)

    def _add_taken(self, a: int, b: int, c: int) -> set[int]:
        """Rows and columns of the table of labels add."""
        near: set[int] = set()
        for x, y in ((a, b), (b, a)):
            for j in {*self._taken.get(x, {}), *self._by_column[x]} - {x, y}:
                self._levels.pop((x, j), None)
                self._levels.pop((j, x), None)
                near.add(j)
        self._levels.pop((a, b), None)
        self._levels.pop((b, a), None)
        self._by_column[c] = set()
        for x in (a, b):
            for j, value in self._taken.pop(x, {}).items():
                self._by_column[j].discard(x)
                self._add_to(c, c if j in (a, b) else j, value)
        for x in (a, b):
            for i in self._by_column.pop(x):
                self._add_to(c if i in (a, b) else i, c, self._taken[i].pop(x))
        return near

    def _add_to(self, i: int, j: int, value: float) -> None:
        self._set_taken(i, j, self._taken.get(i, {}).get(j, 0.0) + value)

    def _add_rows(self, a: int, b: int, c: int) -> list[int]:
        """Shares of rows add, some change their label; the labels that have lost rows."""
        rows = np.concatenate([self._rows.pop(a), self._rows.pop(b)])
        shares = np.concatenate([self._shares.pop(a), self._shares.pop(b)])
        rows, numbers = np.unique(rows, return_inverse=True)
        shares = np.bincount(numbers, weights=shares, minlength=len(rows))
        self._rows[c], self._shares[c] = rows, shares
        labels, best = self._label[rows], self._best[rows]
        own = (labels == a) | (labels == b)
        won = np.flatnonzero(~own & (shares >= best))
        equal = shares[won] == best[won]
        if equal.any():  # of equal shares that of the heavier component wins
            first = np.array([self._first[i] for i in labels[won].tolist()])
            won = won[~equal | (first > self._first[c])]
        losers: list[int] = np.unique(labels[won]).tolist()
        gained = rows[won]
        mine = np.concatenate([rows[own], gained])
        self._label[mine] = c
        self._best[mine] = np.concatenate([shares[own], shares[won]])
        for j, value in self._sums(gained):
            self._add_to(c, j, value)
        return losers

    # ------------------------------------------------ clusters that hardly overlap

    def _join_empty(self) -> None:
        """Components without a share join the one they overlap most, by logarithms."""
        empty = [k for k in range(self._K) if self._mass[k] == 0]
        if not empty or len(empty) == self._K:
            return
        overlap = self._log_overlaps()
        for k in empty:
            near = {i: v for (i, j), v in overlap.items() if j == k and i != k and i not in empty}
            host = max(near, key=lambda i: (near[i], -i)) if near else 0
            self._merge(int(self._home[host]), int(self._home[k]), 1.0)

    def _log_overlaps(self) -> dict[tuple[int, int], float]:
        """log sum_n w_n r_nj [l_n = i], of clusters i and j that are left; finite ones alone."""
        if not len(self._entries):
            return {}
        rows = np.repeat(np.arange(len(self._label)), np.diff(self._starts))
        with np.errstate(divide="ignore"):
            logs = self._logs + np.log(self._weights)[rows]
        size = self._K + len(self._merges)
        pairs = self._label[rows].astype(np.int64) * size + self._home[self._entries]
        kept = np.isfinite(logs)
        found, numbers = np.unique(pairs[kept], return_inverse=True)
        top = np.full(len(found), -np.inf)
        np.maximum.at(top, numbers, logs[kept])
        sums = np.bincount(numbers, weights=np.exp(logs[kept] - top[numbers]), minlength=len(found))
        values = top + np.log(sums)
        return {
            (pair // size, pair % size): value
            for pair, value in zip(found.tolist(), values.tolist(), strict=True)
        }

    def _merge_by_logs(self) -> None:
        """Clusters whose overlap underflows: no label changes, so that logarithms add."""
        table = self._log_overlaps() if len(self._mass) > 1 else {}
        near: dict[int, dict[int, float]] = {k: {} for k in self._mass}  # by j: of i
        for (i, j), value in table.items():
            if i != j and self._group[i] == self._group[j]:
                near[j][i] = value
        heap: list[tuple[float, int, int, int, int]] = []
        levels: dict[tuple[int, int], float] = {}

        def note(i: int, j: int) -> None:
            pair = (i, j) if self._first[i] < self._first[j] else (j, i)
            one = near[j].get(i, -np.inf) - _log(self._mass[j])
            two = near[i].get(j, -np.inf) - _log(self._mass[i])
            levels[pair] = round_digits(max(one, two))
            heapq.heappush(heap, (-levels[pair], self._first[pair[0]], self._first[pair[1]], *pair))

        for j, row in near.items():
            for i in row:
                note(i, j)
        while heap:
            entry = heapq.heappop(heap)
            a, b = entry[3:]
            if levels.get((a, b)) != -entry[0]:
                continue
            self._merge(a, b, 0.0)
            c = self._K + len(self._merges) - 1
            joined: dict[int, float] = {}
            for x in (a, b):
                for i, value in near.pop(x).items():
                    joined[i] = float(np.logaddexp(joined.get(i, -np.inf), value))
            near[c] = {i: v for i, v in joined.items() if i not in (a, b)}
            for row in near.values():
                both = [row.pop(x) for x in (a, b) if x in row]
                if both:
                    row[c] = float(np.logaddexp.reduce(both))
            levels = {p: v for p, v in levels.items() if a not in p and b not in p}
            for j in {*near[c], *(j for j, row in near.items() if c in row)}:
                note(c, j)

    def _merge_the_rest(self) -> None:
        """What does not overlap at all: the lightest joins the heaviest."""
        groups: dict[int, list[int]] = {}
        for k in sorted(self._mass, key=self._first.__getitem__):
            groups.setdefault(self._group[k], []).append(k)
        for own in groups.values():
            own.sort(key=lambda k: (round_digits(self._mass[k]), -self._first[k]))
            heavy = own.pop()
            for light in own:
                self._merge(heavy, light, 0.0)
                heavy = self._K + len(self._merges) - 1

    def _tree(self) -> MergeTree:
        numbers = np.concatenate([self._order, np.arange(self._K, max(2 * self._K - 1, 0))])
        pairs = np.array([m[:2] for m in self._merges], dtype=np.intp).reshape(-1, 2)
        level = np.array([m[2] for m in self._merges], dtype=float)
        return MergeTree(
            numbers[pairs[:, 0]],
            numbers[pairs[:, 1]],
            np.minimum.accumulate(np.minimum(level, 1.0)) if len(level) else level,
            np.array([m[3] for m in self._merges], dtype=np.intp),
            self._all_mass,
        )


def _largest_shares(starts: Array, entries: Array, values: Array, n: int) -> tuple[Array, Array]:
    """The component of the largest share of each row, the heavier of equal ones, and the share."""
    label, best = np.full(n, -1, dtype=np.int64), np.full(n, -1.0)
    rows = np.repeat(np.arange(n), np.diff(starts))
    order = np.lexsort((entries, -values, rows))
    used = np.flatnonzero(np.diff(starts))
    first = order[starts[used]]
    label[used], best[used] = entries[first], values[first]
    return label, best


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _log(value: float) -> float:
    return float(np.log(value)) if value > 0 else -np.inf


def round_digits(value: float) -> float:
    """To so many significant digits that the order in which rows were added is forgotten."""
    return float(f"{value:.{_DIGITS}e}")


def _rounded(values: Array) -> Array:
    return np.array([round_digits(v) for v in np.asarray(values, dtype=float).tolist()])
