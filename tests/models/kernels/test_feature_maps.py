"""Coordinates of features by landmarks, axes in them, and the rows that models keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.contracts import Array, Block
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.executors.features import FeatureExecutor
from mixfold.engine.sources import open_source
from mixfold.engine.sources.features import FeatureSource
from mixfold.math.kernels import LaplacianKernel, LinearKernel, PolynomialKernel, RbfKernel
from mixfold.models.factors.spectral import principal_axes
from mixfold.models.factors.spectral_sums import MissingEntries
from mixfold.models.kernels.known_rows import KnownRows, collect_rows, stack_blocks
from mixfold.models.kernels.maps import GivenMap, PlainMap, inverse_root, landmark_map
from mixfold.models.kernels.primal import SumDiagonal, primal_axes

kinds = pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])


@pytest.fixture
def rows(rng: np.random.Generator) -> Array:
    X = rng.normal(size=(70, 4))
    X[rng.random(X.shape) < 0.3] = 0.0
    return X


@kinds
@pytest.mark.parametrize(
    "kernel", [RbfKernel(0.3), LaplacianKernel(0.2), PolynomialKernel(2, 1.0, 1.0)], ids=repr
)
def test_products_of_coordinates_are_those_of_projections(
    kernel: Any, kind: Any, rows: Array
) -> None:
    landmarks = rows[:40]
    features = landmark_map(kernel, kind(landmarks))
    F = features(kind(rows))
    assert F.shape == (70, features.size)
    K, Kmm = kernel.block(rows, landmarks), kernel.block(landmarks, landmarks)
    expected = K @ np.linalg.pinv(Kmm, rcond=1e-10, hermitian=True) @ K.T
    np.testing.assert_allclose(F @ F.T, expected, atol=1e-6)
    np.testing.assert_allclose(F[:40] @ F[:40].T, Kmm, atol=1e-6)  # exact in the span
    assert ((F**2).sum(axis=1) <= kernel.diagonal(rows) + 1e-8).all()


def test_equal_landmarks_are_one(rows: Array) -> None:
    features = landmark_map(RbfKernel(0.3), np.repeat(rows[:10], 3, axis=0))
    assert features.size == 10


def test_a_map_of_given_products(rows: Array) -> None:
    kernel = RbfKernel(0.3)
    G, columns = kernel.block(rows, rows), np.arange(5, 30)
    given = GivenMap(columns, inverse_root(G[np.ix_(columns, columns)]))
    np.testing.assert_allclose(given(G), landmark_map(kernel, rows[5:30])(rows), atol=1e-12)
    assert given.size == 25


def test_a_kernel_of_zeros_is_refused() -> None:
    with pytest.raises(ValueError, match=r"zero .* for all pairs of rows"):
        inverse_root(np.zeros((3, 3)))


@pytest.mark.parametrize("plain", [True, False])
def test_axes_in_coordinates(plain: bool, rows: Array) -> None:
    kernel: Any = LinearKernel() if plain else RbfKernel(0.3)
    features: Any = PlainMap(4) if plain else landmark_map(kernel, rows[:30])
    source, executor = open_source(rows), ThreadExecutor(1)
    mapped = FeatureSource(source, features, features.size)
    spectrum = principal_axes(mapped, FeatureExecutor(executor), 3, rng=np.random.default_rng(0))
    total = executor.map_reduce(SumDiagonal(_Diagonal(kernel)), source).total
    axes = primal_axes(spectrum, None if plain else total / 70, kernel.dimension(4))
    F = features(rows)
    about = F - F.mean(axis=0)
    values = np.linalg.svd(about, compute_uv=False) ** 2
    np.testing.assert_allclose(axes.values, values[:3], rtol=1e-9)
    scores = axes.scores(F)
    np.testing.assert_allclose(scores.T @ scores, np.diag(values[:3]), atol=1e-9)
    whole = kernel.diagonal(rows).sum() - 70 * (F.mean(axis=0) ** 2).sum()
    assert axes.trace == pytest.approx(whole)
    space = 4 if plain else 69
    assert axes.noise == pytest.approx((whole - values[:3].sum()) / 70 / (space - 3))
    squares = axes.squares(F, kernel.diagonal(rows))
    assert squares.sum() == pytest.approx(whole)
    if plain:
        thin = sparse.csr_array(F)
        np.testing.assert_allclose(axes.scores(thin), scores, atol=1e-12)
        np.testing.assert_allclose(axes.squares(thin, kernel.diagonal(rows)), squares, atol=1e-12)


class _Diagonal:
    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, block: Block) -> Array:
        return np.asarray(self.kernel.diagonal(block.X))


# ------------------------------------------------ rows


@kinds
def test_rows_are_collected_with_their_weights(kind: Any, rows: Array) -> None:
    weight = np.r_[np.zeros(5), np.ones(30), np.full(35, 2.0)]
    found = collect_rows(open_source(kind(rows), weight=weight), ThreadExecutor(1))
    X = found.X.toarray() if sparse.issparse(found.X) else found.X
    np.testing.assert_array_equal(X, rows[5:])
    np.testing.assert_array_equal(found.weights(), weight[5:])
    np.testing.assert_array_equal(found.chosen, weight > 0)
    even = collect_rows(open_source(kind(rows), weight=np.full(70, 3.0)), ThreadExecutor(1))
    assert even.weight is None and even.total == 210
    np.testing.assert_array_equal(even.weights(), np.full(70, 3.0))


@kinds
def test_known_rows_are_what_they_were(kind: Any, rows: Array) -> None:
    known = KnownRows.of(kind(rows))
    assert len(known) == 70 and known.n_columns == 4
    assert sparse.issparse(known.matrix) == (kind is sparse.csr_array)
    np.testing.assert_array_equal(known.matrix @ np.eye(4), rows)
    both = stack_blocks([kind(rows[:20]), kind(rows[20:])])
    np.testing.assert_array_equal(both @ np.eye(4), rows)


def test_missing_entries_cannot_be_collected(rows: Array) -> None:
    rows[3, 1] = np.nan
    with pytest.raises(MissingEntries):
        collect_rows(open_source(rows), ThreadExecutor(1))
