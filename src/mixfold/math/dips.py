"""Clusters that the rows prove: components stay apart only where the density between them dips.

Two components are one cluster unless rows show that the density falls between them and rises again.
The evidence is a count: of the rows in two windows of equal size, one at the lower of the two peaks
and one in the valley between, at least half lie in the valley if there is no dip, so that

    P(n_valley or fewer | n_valley + n_peak rows) <= P(Binomial(n_valley + n_peak, 1/2) <= n_valley)

is a p-value for "no dip". Components are joined in the order of the density at the pass between
them, the highest first, as a falling flood would separate them; a pair of clusters is joined at its
highest pass, unless the dip is proven there. Joining K components takes at most K - 1 unproven
tests, so that a level of alpha / (K - 1) for each makes the probability of any false separation at
most alpha.

A narrow component on the flank of a wide one has no dip, and rows of one are hardly ever taken for
rows of the other. So components also stay apart if the rows prove, at the same level, that they
share fewer rows than the two halves of a flat density would, each taken as a Gaussian.

If nothing is proven anywhere, the rows do not tell pieces of one group from groups that overlap.
Then the two explanations are weighed: by the one, the share of the rows of two windows that lie in
the valley is that of two Gaussians; by the other, the density has no dip and it is a half. If the
rows of all pairs are likelier by the second, it is one cluster; else components stay what they are,
apart from those that share so many rows that even two Gaussians would have a single peak. Neither
explanation is preferred, so that both errors are possible, and both become rare as rows become
many.

Two or three components that are joined without a proof may be groups that overlap, too. They are
named unless the rows are 1 / alpha times likelier without a dip.

Where the pass lies, and which windows are compared, comes from the fitted mixture: the pass of two
components is the lowest point of their ridgeline (Ray and Lindsay, The topography of multivariate
normal mixtures, 2005), which holds all modes and saddles of the pair. The rows themselves decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree
from scipy.special import betainc, chdtri, erfc, ndtr

from mixfold.contracts import Array
from mixfold.math.merging import SparseShares

# points of a ridgeline at which the density is looked at, and of some ridgelines together
_POINTS, _TOGETHER = 17, 4000
# windows reach at most so many standard deviations from the lower peak
_REACH = 2.0
# windows that do not lie on one line compare densities only roughly: the pass between clusters of
# several components has to be this much lower than they are
_FAR_RATIO = 0.8
# components of a cluster that are at least so high beside its highest have windows of their own
_HIGH = 0.5
# rows of a Gaussian outside of its window
_OUTSIDE = 0.5
# share of the rows of half a flat density that is nearer to the other half if each half is a
# Gaussian: their means are sqrt(12) standard deviations apart
FLAT = 0.5 * float(erfc(np.sqrt(1.5)))
# share of the rows of a Gaussian that is nearer to another one, two standard deviations away: if it
# is more, the two have a single peak
ONE_PEAK = float(ndtr(-1.0))
# up to so many components every pair is looked at, beyond those that overlap most
_ALL_PAIRS, _NEAREST = 60, 12
# a dip of mixture and rows that is as deep as this, and that the rows do not prove, is worth a word
_DEEP = 0.5
# so few components of a cluster may be groups that overlap; more are pieces of one that is bent
_FEW = 3


class Counts(NamedTuple):
    """Rows in the window of the lower peak and in that of the valley, and what they prove.

    ``expected`` is the share of them in the valley if both components are Gaussians.
    """

    n_peak: float = 0.0
    n_valley: float = 0.0
    p_value: float = 1.0
    expected: float = 0.0


class Doubt(NamedTuple):
    """Two components that are joined, though the mixture has a dip between them."""

    one: int
    other: int
    counts: Counts


class Pass(NamedTuple):
    """The lowest point on the way from component i to j: log density, share of the way, place.

    The way is direct if no third component has the highest density anywhere on it.
    """

    i: int
    j: int
    height: float
    share: float
    point: Array
    direct: bool


@dataclass(frozen=True, slots=True)
class ProvenClusters:
    """The cluster of each component, (K,), and where the rows do not tell.

    ``proven`` is False if no pair is proven to be apart, and the clusters are those of overlapping
    Gaussians. ``undecided`` are clusters of two or three components that explain the rows in
    windows nearly as well by themselves.
    """

    labels: Array
    doubts: list[Doubt]
    proven: bool = True
    undecided: list[list[int]] = field(default_factory=list)


def dip_p_value(n_valley: float, n_peak: float, ratio: float = 1.0) -> float:
    """Probability of so few rows in the valley if its density is ``ratio`` of the peak's, or more.

    Counts may be sums of weights: the binomial distribution is continued between whole numbers.
    """
    if n_peak <= 0:
        return 1.0
    return float(betainc(n_peak, n_valley + 1.0, 1.0 / (1.0 + ratio)))


def share_p_value(taken: float, mass: float, share: float = FLAT) -> float:
    """Probability of so few rows taken for another component's if ``share`` of them are, or more.

    Parameters
    ----------
    taken : float
        Mass of the rows of a component that are given to the other one.
    mass : float
        Mass of all its rows.
    """
    if mass <= taken:
        return 1.0
    return float(betainc(mass - taken, taken + 1.0, 1.0 - share))


def projected_dip(t: Array, left: Array, right: Array) -> Counts:
    """The dip of rows on a line, between two components that they belong to by weight.

    Parameters
    ----------
    t : ndarray of shape (n,)
        Where the rows are.
    left, right : ndarray of shape (n,)
        Weight of each row in the two components.
    """
    one, two = _moments(t, left), _moments(t, right)
    if one is None or two is None:
        return Counts()
    (W1, m1, s1), (W2, m2, s2) = one, two
    gap = abs(m2 - m1)
    if gap == 0 or not np.isfinite(gap):
        return Counts()
    s1, s2 = max(s1, 1e-3 * gap), max(s2, 1e-3 * gap)
    grid = np.linspace(m1, m2, 401)
    density = W1 / s1 * _bell((grid - m1) / s1) + W2 / s2 * _bell((grid - m2) / s2)
    valley = int(np.argmin(density))
    first, last = int(np.argmax(density[: valley + 1])), valley + int(np.argmax(density[valley:]))
    if not first < valley < last:
        return Counts()
    low = first if density[first] <= density[last] else last
    spread = s1 if low == first else s2
    reach = min(abs(grid[valley] - grid[first]), abs(grid[last] - grid[valley])) / 2
    reach = min(reach, _REACH * spread)
    both = left + right
    n_peak = float(both[np.abs(t - grid[low]) <= reach].sum())
    n_valley = float(both[np.abs(t - grid[valley]) <= reach].sum())
    # the mixture has chosen the two windows, among all that lie side by side
    places = (gap + _REACH * (s1 + s2)) / (2 * reach) - 1.0
    p_value = min(1.0, dip_p_value(n_valley, n_peak) * max(places, 1.0))
    masses = [
        W1 * _bell_mass(at - m1, reach, s1) + W2 * _bell_mass(at - m2, reach, s2)
        for at in (grid[valley], grid[low])
    ]
    return Counts(n_peak, n_valley, p_value, masses[0] / (masses[0] + masses[1]))


def _moments(t: Array, weight: Array) -> tuple[float, float, float] | None:
    total = float(weight.sum())
    if total <= 0:
        return None
    mean = float(weight @ t / total)
    return total, mean, float(np.sqrt(weight @ (t - mean) ** 2 / total))


def _bell_mass(at: float, reach: float, spread: float) -> float:
    """Share of a Gaussian within ``reach`` of a place."""
    return float(ndtr((at + reach) / spread) - ndtr((at - reach) / spread))


def _bell(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z**2))


# ---------------------------------------------------- components of numbers


class Landscape:
    """Components in space: where they are, how wide, and the density at points."""

    def __init__(
        self,
        X: Array,
        shares: SparseShares,
        weight: Array,
        log_density: Callable[[Array], Array],
    ) -> None:
        self.X, self.weight = X, weight
        self.columns = weighted_columns(shares, weight)
        self.scale = _spread(X, weight)
        self._unit = X / self.scale
        self._places = KDTree(self._unit)  # of rows, so that windows need not look at all of them
        self._log_density = log_density
        found = [self._locate(rows, values) for rows, values in self.columns]
        self.means = np.array([mean for mean, _ in found])
        self.covariances = np.array([cov for _, cov in found])
        self.precisions = np.linalg.inv(self.covariances)
        self.log_dets = np.linalg.slogdet(self.covariances)[1]
        self.heights = self.log_density(self.means)

    def log_density(self, points: Array) -> Array:
        """Log density of the mixture at points in units of the columns."""
        return np.asarray(self._log_density(points * self.scale), dtype=float)

    def _locate(self, rows: Array, values: Array) -> tuple[Array, Array]:
        """Mean and covariance of the rows of a component; few rows lean on its variances."""
        X, total = self._unit[rows], values.sum()
        if total <= 0:
            D = self._unit.shape[1]
            return np.zeros(D), np.eye(D)
        mean = values @ X / total
        apart = X - mean
        scatter = (apart * values[:, None]).T @ apart
        D = X.shape[1]
        variances = np.diag(scatter) / total
        floor = 1e-8 + 1e-6 * variances.mean()
        prior = np.diag(variances + floor) * (0.5 * (D + 1))
        return mean, (scatter + prior) / (total + 0.5 * (D + 1)) + floor * np.eye(D)

    def ridgelines(self, pairs: Array) -> Array:
        """Points of the ridgelines of pairs of components, (pairs, points, D)."""
        share = np.linspace(0.0, 1.0, _POINTS)[None, :, None, None]
        i, j = pairs[:, 0], pairs[:, 1]
        P, Q = self.precisions[i][:, None], self.precisions[j][:, None]
        a = np.einsum("pab,pb->pa", self.precisions[i], self.means[i])[:, None, :, None]
        b = np.einsum("pab,pb->pa", self.precisions[j], self.means[j])[:, None, :, None]
        points = np.linalg.solve((1 - share) * P + share * Q, (1 - share) * a + share * b)
        return np.asarray(points[..., 0])

    def told_apart(self, i: int, j: int) -> float:
        """P-value of "the two share as many rows as the halves of a flat density", either way."""
        _, left, right = join_columns(self.columns[i], self.columns[j])
        worst = 0.0
        for own, other in ((left, right), (right, left)):
            taken = float(own[other > own].sum())
            worst = max(worst, share_p_value(taken, float(own.sum())))
        return worst

    def find_passes(self, pairs: Array) -> list[Pass]:
        """The lowest points on the ways between pairs of components."""
        found = []
        near: dict[int, set[int]] = {}  # components in a pair with one
        for i, j in pairs.tolist():
            near.setdefault(i, {i}).add(j)
            near.setdefault(j, {j}).add(i)
        for part in np.array_split(pairs, max(1, len(pairs) * _POINTS // _TOGETHER)):
            lines = self.ridgelines(part)
            flat = lines.reshape(-1, lines.shape[2])
            values = self.log_density(flat).reshape(lines.shape[:2])
            among = sorted(set().union(*(near[k] for k in np.unique(part).tolist())))
            owner = self._strongest(flat, among).reshape(lines.shape[:2])
            direct = ((owner == part[:, :1]) | (owner == part[:, 1:])).all(axis=1)
            low = np.argmin(values, axis=1)
            for p, (i, j) in enumerate(part.tolist()):
                share, height = float(low[p]) / (_POINTS - 1), float(values[p, low[p]])
                found.append(Pass(i, j, height, share, lines[p, low[p]], bool(direct[p])))
        return found

    def _strongest(self, points: Array, among: list[int]) -> Array:
        """Which of some components has the highest density, by weight, at each point."""
        best = np.full(len(points), -np.inf)
        owner = np.zeros(len(points), dtype=np.intp)
        for k in among:
            apart = points - self.means[k]
            distance = np.einsum("nd,nd->n", apart @ self.precisions[k], apart)
            log = np.log(self.columns[k][1].sum()) - 0.5 * (distance + self.log_dets[k])
            higher = log > best
            best[higher], owner[higher] = log[higher], k
        return owner

    def dip_of_pair(self, i: int, j: int) -> Counts:
        """The dip between two components on the line that tells them apart best."""
        axis = np.linalg.solve(
            self.covariances[i] + self.covariances[j], self.means[j] - self.means[i]
        )
        rows, left, right = join_columns(self.columns[i], self.columns[j])
        return projected_dip(self._unit[rows] @ axis, left, right)

    def dip_of_clusters(self, members: list[int], at: Pass) -> Counts:
        """Rows around the high components of a cluster against those around a pass.

        Windows are ellipsoids of equal volume, in the shapes of the components.
        """
        D = self._unit.shape[1]
        top = max(members, key=lambda k: (self.heights[k], -k))
        high = [k for k in members if self.heights[k] >= self.heights[top] + np.log(_HIGH)]
        precision = (1 - at.share) * self.precisions[at.i] + at.share * self.precisions[at.j]
        log_det = -np.linalg.slogdet(precision)[1]
        radius = float(chdtri(D, _OUTSIDE))
        volume = np.mean(self.log_dets[high])
        n_peak = 0.0
        for k in high:
            scaled = radius * np.exp((volume - self.log_dets[k]) / D)
            n_peak += self._count(self.means[k], self.precisions[k], scaled)
        scaled = radius * np.exp((volume - log_det) / D)
        n_valley = self._count(at.point, precision, scaled)
        return Counts(n_peak, n_valley, dip_p_value(n_valley, n_peak, _FAR_RATIO / len(high)))

    def _count(self, centre: Array, precision: Array, radius: float) -> float:
        """Weight of the rows in an ellipsoid."""
        longest = np.sqrt(radius / np.linalg.eigvalsh(precision)[0])
        near = self._places.query_ball_point(centre, 1.01 * longest, return_sorted=True)
        apart = self._unit[near] - centre
        inside = np.einsum("nd,nd->n", apart @ precision, apart) <= radius
        return float(self.weight[near][inside].sum())


def prove_by_density(land: Landscape, overlap: Array, alpha: float) -> ProvenClusters:
    """Clusters of components of numbers, by the dips between them.

    Parameters
    ----------
    land : Landscape
    overlap : ndarray of shape (P, 3)
        Pairs of components that share rows, and how much; beyond 60 components only the nearest
        are looked at.
    alpha : float
        Probability of separating what has no dip.
    """
    K = len(land.columns)
    used = np.array([values.sum() > 0 for _, values in land.columns])
    pairs = _choose_pairs(K, used, overlap)
    if not len(pairs):
        return ProvenClusters(np.arange(K), [])
    joined, doubts = Joined(K, land.heights), []
    looked_at: list[tuple[int, Counts]] = []
    level = alpha / max(1, int(used.sum()) - 1)
    passes = land.find_passes(pairs)
    # the direct ways first; then those of components that have none
    linked = {k for at in passes if at.direct for k in (at.i, at.j)}
    for at in sorted(passes, key=lambda at: (not at.direct, -round(at.height, 9), at.i, at.j)):
        if not at.direct and at.i in linked and at.j in linked:
            continue
        a, b = joined.find(at.i), joined.find(at.j)
        if a == b or joined.apart(a, b):
            continue
        lower = min(joined.peak(a), joined.peak(b), key=lambda k: (land.heights[k], k))
        depth = at.height - land.heights[lower]
        tests = []
        if at.direct:
            tests.append(land.dip_of_pair(at.i, at.j))
        alone = len(joined.members(a)) == len(joined.members(b)) == 1
        if depth < np.log(_FAR_RATIO) and not (alone and at.direct):
            sides = [land.dip_of_clusters(joined.members(c), at) for c in (a, b)]
            tests.append(max(sides, key=lambda c: c.p_value))  # a dip is one from both sides
        p_values = [counts.p_value for counts in tests]
        if at.direct:
            p_values.append(land.told_apart(at.i, at.j))
        if p_values and min(p_values) * len(p_values) <= level:
            joined.set_apart(a, b)
            continue
        # the first test, of a direct way, compares two windows
        if at.direct:
            looked_at.append((at.i, tests[0]))
        if at.direct and depth < np.log(_DEEP) and tests[0].n_valley < _DEEP * tests[0].n_peak:
            doubts.append(Doubt(at.i, at.j, tests[0]))
        joined.join(a, b)
    labels = joined.labels()
    if len(np.unique(labels[used])) == 1 and weigh_gaussians([c for _, c in looked_at]) >= 0:
        overlapping = _join_single_peaks(K, overlap)
        if len(np.unique(overlapping[used])) > 1:
            return ProvenClusters(overlapping, [], proven=False)
    undecided = []
    for label in np.unique(labels[used]).tolist():
        members = np.flatnonzero((labels == label) & used)
        own = [counts for i, counts in looked_at if labels[i] == label]
        if 1 < len(members) <= _FEW and weigh_gaussians(own) > np.log(alpha):
            undecided.append(members.tolist())
    return ProvenClusters(labels, doubts, undecided=undecided)


def weigh_gaussians(looked_at: list[Counts]) -> float:
    """Log-likelihood of the rows in windows if components are Gaussians, less that of no dip.

    Without a dip each row is in the valley with probability a half, or more; windows of components
    whose sum has one peak say nothing.
    """
    some = [c for c in looked_at if 0 < c.expected < 1]
    return float(
        sum(
            c.n_valley * np.log(2 * c.expected) + c.n_peak * np.log(2 * (1 - c.expected))
            for c in some
        )
    )


def _join_single_peaks(K: int, overlap: Array) -> Array:
    """Components that overlap so much that even two Gaussians would have one peak."""
    joined = Joined(K, np.zeros(K))
    for i, j, level in overlap:
        a, b = joined.find(int(i)), joined.find(int(j))
        if level > ONE_PEAK and a != b:
            joined.join(a, b)
    return joined.labels()


# ---------------------------------------------------- components of anything


def prove_by_odds(
    shares: SparseShares, weight: Array, overlap: Array, alpha: float
) -> ProvenClusters:
    """Clusters of any components, by the dip of the log odds of the two clusters of a pair.

    Parameters
    ----------
    shares : SparseShares
    weight : ndarray of shape (n,)
    overlap : ndarray of shape (P, 3)
        Pairs of components that share rows, and how much: the order in which they are looked at.
    alpha : float
    """
    K = shares.n_components
    columns = [Column(*parts) for parts in log_columns(shares)]
    mass = np.array([column.weigh(weight).sum() for column in columns])
    used = mass > 0
    pairs = _choose_pairs(K, used, overlap)
    size = {(int(i), int(j)): v for i, j, v in overlap}
    value = np.array([size.get((i, j), 0.0) for i, j in pairs.tolist()])
    least = np.minimum(*mass[pairs.T]) if len(pairs) else value
    joined, doubts = Joined(K, mass), []
    level = alpha / max(1, int(used.sum()) - 1)
    # where nothing is shared, the heavier ones first
    for number in np.lexsort((np.arange(len(pairs)), -np.round(least, 6), -np.round(value, 9))):
        i, j = pairs[number].tolist()
        a, b = joined.find(i), joined.find(j)
        if a == b or joined.apart(a, b):
            continue
        counts = _dip_of_odds(columns[a], columns[b], weight)
        if counts.p_value <= level:
            joined.set_apart(a, b)
            continue
        if counts.n_valley < _DEEP * counts.n_peak:
            doubts.append(Doubt(i, j, counts))
        columns[a] = columns[a] + columns[b]
        joined.join(a, b)
    return ProvenClusters(joined.labels(), doubts)


class Column(NamedTuple):
    """Rows with a share of a cluster, ascending, and the logarithms of the shares."""

    rows: Array
    logs: Array

    def weigh(self, weight: Array) -> Array:
        return np.asarray(np.exp(self.logs) * weight[self.rows])

    def at(self, rows: Array, otherwise: float) -> Array:
        """Logarithms at rows of which those of the column are a part."""
        out = np.full(len(rows), otherwise)
        out[np.searchsorted(rows, self.rows)] = self.logs
        return out

    def __add__(self, other: Column) -> Column:  # type: ignore[override]
        rows = np.union1d(self.rows, other.rows)
        return Column(rows, np.logaddexp(self.at(rows, -np.inf), other.at(rows, -np.inf)))


def _dip_of_odds(one: Column, two: Column, weight: Array) -> Counts:
    rows = np.union1d(one.rows, two.rows)
    floor = min(float(one.logs.min()), float(two.logs.min()))
    left, right = one.at(rows, floor), two.at(rows, floor)
    return projected_dip(right - left, np.exp(left) * weight[rows], np.exp(right) * weight[rows])


# ---------------------------------------------------- shared


class Joined:
    """Clusters of components that were joined, their peaks, and pairs that were set apart."""

    def __init__(self, n: int, heights: Array) -> None:
        self._root = list(range(n))
        self._peak = list(range(n))
        self._members = [[k] for k in range(n)]
        self._heights = heights
        self._apart: list[set[int]] = [set() for _ in range(n)]

    def find(self, k: int) -> int:
        while self._root[k] != k:
            self._root[k] = self._root[self._root[k]]
            k = self._root[k]
        return k

    def peak(self, a: int) -> int:
        """The highest component of a cluster."""
        return self._peak[a]

    def members(self, a: int) -> list[int]:
        return self._members[a]

    def apart(self, a: int, b: int) -> bool:
        return b in self._apart[a]

    def set_apart(self, a: int, b: int) -> None:
        self._apart[a].add(b)
        self._apart[b].add(a)

    def join(self, a: int, b: int) -> None:
        if self._heights[self._peak[b]] > self._heights[self._peak[a]]:
            self._peak[a] = self._peak[b]
        self._root[b] = a
        self._members[a] += self._members[b]
        for other in self._apart[b]:
            self._apart[other].discard(b)
            self.set_apart(a, other)

    def labels(self) -> Array:
        return np.array([self.find(k) for k in range(len(self._root))], dtype=np.intp)


def weighted_columns(shares: SparseShares, weight: Array) -> list[tuple[Array, Array]]:
    """For each component the rows with a share of it, ascending, and the weighted shares."""
    return [(rows, np.exp(logs) * weight[rows]) for rows, logs in log_columns(shares)]


def log_columns(shares: SparseShares) -> list[tuple[Array, Array]]:
    """For each component the rows with a share of it, ascending, and the logs of the shares."""
    rows = shares.row_numbers()
    order = np.argsort(shares.components, kind="stable")
    cuts = np.searchsorted(shares.components[order], np.arange(1, shares.n_components))
    return list(zip(np.split(rows[order], cuts), np.split(shares.logs[order], cuts), strict=True))


def join_columns(one: tuple[Array, Array], two: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """Rows of either of two components, and their weight in each."""
    rows = np.union1d(one[0], two[0])
    left, right = np.zeros(len(rows)), np.zeros(len(rows))
    left[np.searchsorted(rows, one[0])] = one[1]
    right[np.searchsorted(rows, two[0])] = two[1]
    return rows, left, right


def _choose_pairs(K: int, used: Array, overlap: Array) -> Array:
    """Pairs of components to look at: all of few, of many those that overlap most."""
    if K <= _ALL_PAIRS:
        pairs = np.argwhere(np.triu(np.ones((K, K), dtype=bool), 1))
        return np.asarray(pairs[used[pairs].all(axis=1)])
    both = np.concatenate([overlap, overlap[:, [1, 0, 2]]])
    order = np.lexsort((both[:, 1], -both[:, 2], both[:, 0]))
    both = both[order]
    starts = np.searchsorted(both[:, 0], np.arange(K))
    place = np.arange(len(both)) - starts[both[:, 0].astype(int)]
    pairs = np.unique(np.sort(both[place < _NEAREST, :2].astype(int), axis=1), axis=0)
    return np.asarray(pairs[used[pairs].all(axis=1)])


def _spread(X: Array, weight: Array) -> Array:
    """Standard deviations of columns; one where a column is constant."""
    total = weight.sum()
    mean = weight @ X / total
    spread = np.sqrt(weight @ (X - mean) ** 2 / total)
    return np.where(spread > 0, spread, 1.0)
