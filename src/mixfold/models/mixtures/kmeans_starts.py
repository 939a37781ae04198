"""Where the centres of k-means start: rules that see a sample of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from mixfold.contracts import Array, Block
from mixfold.math.frame import Frame, bulk_of, far_rows, frame_of, uniform
from mixfold.math.seeding import distinct, lloyd, plus_plus, squared_distances

# entries of a sparse sample once it is dense; as many as the centres have are allowed anyway
_ENTRIES = 2**23


@dataclass(frozen=True, slots=True)
class SampleRows:
    """Distinct rows of a sample in frame coordinates, with missing entries at the origin.

    ``columns`` says which columns U holds; in all others every row is zero. None means all.
    """

    frame: Frame
    U: Array
    weight: Array
    columns: Array | None = None

    def whole(self, points: Array) -> Array:
        """Points in the coordinates of U as points in all columns."""
        if self.columns is None:
            return points
        full = np.zeros((len(points), len(self.frame.origin)))
        full[:, self.columns] = points
        return full

    @property
    def variance(self) -> float:
        """Total variance of the rows, without those far away; 1 if they are all equal."""
        near = ~far_rows(self.U, bulk_of(self.U, self.weight))
        U, w = self.U[near], self.weight[near] / self.weight[near].sum()
        total = float(w @ ((U - w @ U) ** 2).sum(axis=1))
        return total if total > 0 else 1.0


def sample_rows(block: Block, n_centres: int, rng: np.random.Generator) -> SampleRows:
    """The rows of a pilot as starts and scales need them."""
    if issparse(block.X):
        return _sparse_rows(block, n_centres, rng)
    X, weight = _order_distinct_rows(block.X, block.weights())
    U = (frame := _on_grid(frame_of(X, weight, robust=True))).enter(X)
    return SampleRows(frame, np.where(np.isnan(U), 0.0, U), weight)


def _sparse_rows(block: Block, n_centres: int, rng: np.random.Generator) -> SampleRows:
    """Only columns with entries are made dense, and of very wide tables only some of the rows."""
    X: Any = block.X.copy()
    X.data[np.isnan(X.data)] = 0.0
    columns = np.unique(X.indices)
    within = max(_ENTRIES // max(len(columns), 1), 2 * n_centres)
    index = np.arange(X.shape[0])
    if len(index) > within:
        index = np.sort(rng.choice(index, within, replace=False))
    dense = X[index][:, columns].toarray() if len(columns) else np.zeros((len(index), 1), X.dtype)
    columns = columns if len(columns) else np.zeros(1, np.int64)
    rows, weight = _order_distinct_rows(dense, block.weights()[index])
    # the data's own coordinates: nothing of the size of the centres is then moved in every block
    frame = Frame(np.zeros(X.shape[1]), np.ones(X.shape[1]))
    return SampleRows(frame, rows.astype(np.float64), weight, columns)


def _order_distinct_rows(X: Array, weight: Array) -> tuple[Array, Array]:
    """Distinct rows in the order of their first columns: float32 and float64 draw the same ones."""
    rows, total, _ = distinct(X, weight, None)
    order = np.lexsort(rows[:, 3::-1].T)
    return rows[order], total[order]


def _power_of_two(size: Any) -> Any:
    return 2.0 ** np.round(np.log2(size))


def _on_grid(frame: Frame) -> Frame:
    """The frame with one scale for all columns, scale and origin being binary numbers nearby.

    Entering it then rounds nothing that the data do not round themselves: sums of whole numbers
    stay exact, and rows at equal distance of two centres are so for any blocks.
    """
    step = _power_of_two(frame.scale)
    return Frame(np.round(frame.origin / step) * step, _power_of_two(uniform(frame).scale))


class CentreStart(Protocol):
    """A rule of starting."""

    def __call__(self, rows: SampleRows, n_centres: int, rng: np.random.Generator) -> Array:
        """Centres (K, D) in frame coordinates."""
        ...


@dataclass(frozen=True, slots=True)
class PlusPlusCentres:
    """Greedy k-means++ among the rows of the sample."""

    def __call__(self, rows: SampleRows, n_centres: int, rng: np.random.Generator) -> Array:
        return rows.whole(plus_plus(rows.U, rows.weight, n_centres, rng))


@dataclass(frozen=True, slots=True)
class RandomCentres:
    """Distinct rows of the sample, drawn in proportion to their weight."""

    def __call__(self, rows: SampleRows, n_centres: int, rng: np.random.Generator) -> Array:
        share = rows.weight / rows.weight.sum()
        n = len(share)
        chosen = rng.choice(n, min(n, n_centres), replace=False, p=share)
        # fewer rows than centres: some are taken twice
        more = rng.choice(n, n_centres - len(chosen), p=share)
        return rows.whole(rows.U[np.concatenate([chosen, more])])


@dataclass(frozen=True, slots=True)
class GivenCentres:
    """Centres prescribed in data coordinates."""

    points: Array

    def __call__(self, rows: SampleRows, n_centres: int, rng: np.random.Generator) -> Array:
        return rows.frame.enter(self.points)


@dataclass(frozen=True, slots=True)
class CandidateCentres:
    """k-means of weighted candidates in data coordinates: the end of k-means||.

    Candidates stand for all rows, so starts are compared on them rather than on the sample.
    """

    points: Array
    weight: Array
    n_steps: int = 10

    def __call__(self, rows: SampleRows, n_centres: int, rng: np.random.Generator) -> Array:
        U = rows.frame.enter(self.points)
        shape = (n_centres, U.shape[1])
        tries = [self._refine_by_lloyd(U, n_centres, rng) for _ in range(n_attempts(*shape))]
        return min(tries, key=lambda c: float(self.weight @ squared_distances(U, c).min(axis=1)))

    def _refine_by_lloyd(self, U: Array, n_centres: int, rng: np.random.Generator) -> Array:
        start = plus_plus(U, self.weight, n_centres, rng)
        return lloyd(U, self.weight, start, self.n_steps)[1]


def n_attempts(n_centres: int, n_features: int) -> int:
    """Starts worth comparing before one is followed.

    With many centres starts hardly differ; of wide rows a sample costs as much as all of them.
    """
    return max(1, min(4, 256 // n_centres, 2**18 // (n_centres * n_features)))


CENTRE_STARTS: dict[str, CentreStart] = {
    "k-means++": PlusPlusCentres(),
    "k-means||": PlusPlusCentres(),  # once oversampled: CandidateCentres
    "random": RandomCentres(),
}
