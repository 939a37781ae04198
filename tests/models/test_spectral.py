"""Principal axes: the same by every solver, whatever the shape, type and place of the data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles

from mixfold.contracts import Array
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.sources import open_source
from mixfold.math.spectrum import Bic, Evidence, Fraction
from mixfold.models.factors import spectral, spectral_rows
from mixfold.models.factors.spectral import Spectrum, choose_solver, principal_axes
from mixfold.models.factors.spectral_sums import MissingEntries
from mixfold.testing.storage import stored_identity

SOLVERS = ["covariance", "gram", "randomized"]


def axes(X: Any, size: Any, *, weight: Any = None, threads: int = 1, **options: Any) -> Spectrum:
    rng = np.random.default_rng(0)
    source = open_source(X, weight=weight)
    return principal_axes(source, ThreadExecutor(threads), size, rng=rng, **options)


def table(rng: np.random.Generator, n: int = 300, D: int = 40, d: int = 6) -> Array:
    W = rng.normal(size=(D, d)) * np.linspace(5, 2, d)
    return np.asarray(rng.normal(size=(n, d)) @ W.T + rng.normal(size=(n, D)) + 2.0)


def dense(X: Array, weight: Array | None = None, center: bool = True) -> tuple[Array, Array, Array]:
    """Mean, eigenvalues and vectors of the weighted covariance, in decreasing order."""
    w = np.ones(len(X)) if weight is None else weight
    mean = np.average(X, axis=0, weights=w) if center else np.zeros(X.shape[1])
    S = ((X - mean) * w[:, None]).T @ (X - mean) / w.sum()
    values, vectors = np.linalg.eigh(S)
    return mean, values[::-1], vectors[:, ::-1]


def check(found: Spectrum, X: Array, k: int, tol: float = 1e-9, **options: Any) -> None:
    mean, values, vectors = dense(np.asarray(X, float), **options)
    np.testing.assert_allclose(found.mean, mean, rtol=tol, atol=tol)
    np.testing.assert_allclose(found.values, values[:k], rtol=tol, atol=tol * values[0])
    assert found.total_variance == pytest.approx(values.sum(), rel=max(tol, 1e-11))
    assert found.vectors.shape == (X.shape[1], k)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-9)
    assert np.sin(subspace_angles(found.vectors, vectors[:, :k])[0]) < max(2e-5, 100 * tol)
    largest = np.abs(found.vectors).argmax(axis=0)
    assert np.all(found.vectors[largest, range(k)] > 0)


# ------------------------------------------------ one answer


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kind", ["plain", "weights", "sparse", "sparse weights", "columns first"])
def test_solvers_agree_with_the_dense_matrix(
    kind: str, center: bool, solver: str, rng: np.random.Generator
) -> None:
    X = table(rng)
    if "sparse" in kind:
        X = np.where(rng.random(X.shape) < 0.5, 0.0, X) * np.linspace(0.5, 3, 40)
    weight = rng.integers(0, 4, len(X)).astype(float) if "weights" in kind else None
    rows: Any = sparse.csr_array(X) if "sparse" in kind else X
    if kind == "columns first":
        rows = np.asfortranarray(X)
    found = axes(rows, 5, weight=weight, center=center, solver=solver)
    check(found, X, 5, weight=weight, center=center)
    assert found.solver == solver and found.converged
    assert found.weight == (len(X) if weight is None else weight.sum())
    assert found.n_rows == (len(X) if weight is None else (weight > 0).sum())


@pytest.mark.parametrize("solver", SOLVERS)
def test_single_precision(solver: str, rng: np.random.Generator) -> None:
    X = table(rng).astype(np.float32)
    check(axes(X, 5, solver=solver), X, 5, tol=1e-6)
    far = X + np.float32(300)
    check(axes(far, 5, solver=solver), far, 5, tol=2e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(20, 60), (60, 20), (3, 8), (1, 4), (5, 1)])
def test_more_axes_than_rank(solver: str, shape: tuple[int, int], rng: np.random.Generator) -> None:
    X = rng.normal(size=shape)
    found = axes(X, shape[1], solver=solver)
    _, values, _ = dense(X)
    np.testing.assert_allclose(found.values, np.maximum(values, 0), atol=1e-10)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(shape[1]), atol=1e-9)
    S = (found.vectors * found.values) @ found.vectors.T
    np.testing.assert_allclose(S, np.cov(X.T, bias=True).reshape(S.shape), atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_variance(solver: str) -> None:
    found = axes(np.full((30, 4), 1e8 + 0.3), 2, solver=solver)
    np.testing.assert_allclose(found.mean, 1e8 + 0.3, rtol=1e-15)
    np.testing.assert_allclose(found.values, 0.0, atol=1e-12)
    assert 0 <= found.total_variance < 1e-12
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(2), atol=1e-9)


# ------------------------------------------------ far from zero


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_offset_moves_nothing_but_the_mean(solver: str, rng: np.random.Generator) -> None:
    X = np.round(table(rng), 3)
    near, far = axes(X, 5, solver=solver), axes(X + 1e8, 5, solver=solver)
    np.testing.assert_allclose(far.mean - 1e8, near.mean, atol=1e-6)
    np.testing.assert_allclose(far.values, near.values, rtol=1e-6)
    assert far.total_variance == pytest.approx(near.total_variance, rel=1e-6)
    assert np.sin(subspace_angles(near.vectors, far.vectors)[0]) < 1e-5


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_far_column_of_a_sparse_table(solver: str, rng: np.random.Generator) -> None:
    X = np.where(rng.random((300, 40)) < 0.5, 0.0, np.round(table(rng), 3))
    far = X.copy()
    X[:, 7] = np.round(rng.normal(size=300), 3)
    far[:, 7] = X[:, 7] + 1e8
    one, other = (axes(sparse.csr_array(A), 5, solver=solver) for A in (X, far))
    np.testing.assert_allclose(other.values, one.values, rtol=1e-6)
    assert other.total_variance == pytest.approx(one.total_variance, rel=1e-6)
    assert np.sin(subspace_angles(one.vectors, other.vectors)[0]) < 1e-5


@pytest.mark.parametrize("solver", ["covariance", "randomized"])
def test_first_rows_that_mislead(solver: str, rng: np.random.Generator) -> None:
    X = np.round(table(rng, n=3000, D=12), 3) + 1e8
    X[:600] = 0.0  # no hint of where the others are
    weight = np.r_[np.zeros(600), np.ones(2400)]
    found = axes(X, 3, weight=weight, solver=solver)
    true = axes(X[600:] - 1e8, 3, solver="covariance")
    np.testing.assert_allclose(found.values, true.values, rtol=1e-6)
    assert found.passes >= 2


def test_a_given_origin_is_used(rng: np.random.Generator) -> None:
    X = table(rng) + 1e8
    found = axes(X, 3, solver="covariance", origin=X[0])
    assert found.passes == 1
    np.testing.assert_allclose(found.values, axes(X - 1e8, 3).values, rtol=1e-6)


# ------------------------------------------------ blocks, threads


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_and_blocks_do_not_matter(solver: str, rng: np.random.Generator) -> None:
    X = table(rng, n=1100, D=30)  # two blocks
    one, two = axes(X, 4, solver=solver), axes(X, 4, solver=solver, threads=2)
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.vectors, two.vectors)
    check(one, X, 4)


def test_rows_of_few_blocks_and_narrow_panels(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spectral_rows, "PANEL", 1)
    X = table(rng, n=50, D=200)
    check(axes(X, 4, solver="gram"), X, 4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_tables_stay_sparse(
    solver: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = sparse.random_array((150, 400), density=0.02, rng=rng, format="csr")
    sizes = []
    plain = sparse.csr_array.toarray

    def watched(self: Any, *args: Any, **kwargs: Any) -> Array:
        sizes.append(self.shape)
        return np.asarray(plain(self, *args, **kwargs))

    monkeypatch.setattr(sparse.csr_array, "toarray", watched)
    found = axes(X, 3, solver=solver)
    assert (150, 400) not in sizes and all(rows != 150 or cols in (0, 150) for rows, cols in sizes)
    monkeypatch.undo()
    check(found, X.toarray(), 3)


# ------------------------------------------------ how many axes


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("rule", [Fraction(0.6), Fraction(0.9), Bic()])
def test_rules_choose_the_same_with_every_solver(
    solver: str, rule: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spectral, "FIRST_AXES", 4)
    X = table(rng, n=250, D=200, d=10)
    _, values, _ = dense(X)
    expected = rule(values, values.sum(), 200, 250.0)
    found = axes(X, rule, solver=solver)
    assert len(found.values) == expected
    check(found, X, expected)


def test_axes_are_doubled_until_the_rule_is_content(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spectral, "FIRST_AXES", 2)
    X = table(rng, n=400, D=300, d=12)
    asked: list[int] = []

    class Ten:
        whole = False

        def __call__(self, values: Array, total: float, n_features: int, weight: float) -> int:
            asked.append(len(values))
            assert total == pytest.approx(X.var(axis=0).sum())
            assert (n_features, weight) == (300, 400.0)
            return min(10, len(values))

    found = axes(X, Ten(), solver="randomized")
    assert asked == [2, 4, 8, 16]
    assert found.solver == "randomized"
    check(found, X, 10)


def test_a_rule_that_wants_nearly_all_gets_an_exact_solver(rng: np.random.Generator) -> None:
    X = rng.normal(size=(300, 250))
    found = axes(X, Fraction(0.95), solver="randomized")
    assert found.solver == "covariance"
    check(found, X, len(found.values))
    assert axes(X.T, Fraction(0.95), solver="randomized").solver == "gram"


def test_evidence_sees_the_whole_spectrum(rng: np.random.Generator) -> None:
    X = table(rng, n=400, D=30, d=5)
    assert len(axes(X, Evidence()).values) == 5


@pytest.mark.slow
def test_frey_faces(shared_data: Callable[[str], Path]) -> None:
    X = np.load(shared_data("frey_face.npz"))["X"].astype(float)
    assert len(axes(X, Fraction(0.99)).values) == 203
    assert len(axes(X, Fraction(0.99), center=False).values) == 10


# ------------------------------------------------ which solver


@pytest.mark.parametrize(
    "n, D, size, solver",
    [
        (60_000, 784, 20, "covariance"),
        (5_000, 10_000, 20, "randomized"),
        (372, 3_072, 18, "gram"),
        (1_000_000, 10, 3, "covariance"),
        (50, 10_000, 49, "gram"),
        (50, 10_000, 200, "gram"),
        (100_000, 5_000, 20, "randomized"),
        (100_000, 2_500, 2_400, "covariance"),
        (10_000, 1_500, Fraction(0.9), "covariance"),
        (1_500, 10_000, Bic(), "gram"),
        (50_000, 5_000, Bic(), "randomized"),
        (50_000, 5_000, Evidence(), "covariance"),
        (None, 2_000, 20, "covariance"),
        (None, 5_000, 20, "randomized"),
    ],
)
def test_choice_by_shape(n: int | None, D: int, size: Any, solver: str) -> None:
    assert choose_solver(n, D, size) == solver


def test_a_spectrum_is_stored(rng: np.random.Generator) -> None:
    stored_identity(axes(table(rng), 3))


def test_auto_is_one_of_them(rng: np.random.Generator) -> None:
    assert axes(table(rng), 5).solver == "covariance"
    assert axes(table(rng, n=30, D=200), 5).solver == "gram"


# ------------------------------------------------ mistakes


def test_mistakes_are_refused(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    X = table(rng, n=30, D=10)
    with pytest.raises(ValueError, match=r"solver must be one of auto, covariance.* got 'svd'"):
        axes(X, 2, solver="svd")
    for size in (0, 11):
        with pytest.raises(ValueError, match=f"from 1 to the number of columns, 10; got {size}"):
            axes(X, size)
    monkeypatch.setattr(spectral, "LARGEST", 5)
    with pytest.raises(ValueError, match=r"10 columns are too many .*at most 5"):
        axes(X, 2, solver="covariance")
    with pytest.raises(ValueError, match=r"30 rows are too many .*at most 5"):
        axes(X, 2, solver="gram")


@pytest.mark.parametrize("solver", SOLVERS)
def test_missing_entries_are_refused(solver: str, rng: np.random.Generator) -> None:
    X = table(rng, n=2000)
    X[1500, 3] = np.nan
    with pytest.raises(MissingEntries, match="lack entries"):
        axes(X, 2, solver=solver)


def test_passes_that_are_too_few_are_reported(rng: np.random.Generator) -> None:
    found = axes(rng.normal(size=(600, 500)), 20, solver="randomized")  # nothing but noise
    assert not found.converged and found.passes == 12
    _, values, _ = dense(rng.normal(size=(600, 500)))
    assert found.values.sum() > 0.9 * values[:20].sum()
