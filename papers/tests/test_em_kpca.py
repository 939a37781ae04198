"""Solvers of kernel PCA side by side: errors by hand, claims, the picture, real texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from scipy.linalg import subspace_angles

from papers import em_kpca
from papers.em_kpca import Outcome
from papers.frame.run import reproduce, show_nothing
from papers.frame.table import Table
from papers.shared import subspaces

pytestmark = pytest.mark.slow  # a published table, run small

SMALL = em_kpca.Size(rows=(60, 120), axes=(3, 6), fixed=120, repeats=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of a few topics, and images of a few shapes, in files of the real kind."""
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("kernels")
    topics = rng.dirichlet(np.full(60, 0.1), 8)
    words = sparse.csr_array(rng.poisson(20 * topics[rng.integers(8, size=150)]))
    np.savez(path / em_kpca.WORDS.name, data=words.data, indices=words.indices,
             indptr=words.indptr, shape=words.shape)  # fmt: skip
    shapes = rng.integers(0, 200, (5, 40))
    images = shapes[rng.integers(5, size=150)] + rng.integers(0, 56, (150, 40))
    np.savez(path / em_kpca.DIGITS.name, X=images.astype(np.uint8))
    return path


@pytest.fixture(scope="module")
def small(folder: Path) -> Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(em_kpca, "QUICK", SMALL)
        return em_kpca.run(folder, True, 0, show_nothing)


# ------------------------------------------------ measures


def test_the_error_is_the_sine_of_the_largest_angle(rng: np.random.Generator) -> None:
    A, B = rng.normal(size=(2, 30, 4))
    exact = np.sin(subspace_angles(A, B).max())
    assert subspaces.measure_span_error(A, B) == pytest.approx(exact, rel=1e-10)
    assert subspaces.measure_span_error(A @ rng.normal(size=(4, 4)), A) < 1e-12
    # too few axes cannot be right, more of them can
    assert subspaces.measure_span_error(A[:, :3], A) == pytest.approx(1)
    assert subspaces.measure_span_error(np.hstack([A, B]), A) < 1e-12


def test_rows_are_in_another_order_in_each_repeat_and_the_kernel_is_that_of_the_rows(
    folder: Path,
) -> None:
    for load in (em_kpca.load_texts, em_kpca.load_images):
        first, second = (load(folder, 100, np.random.default_rng(seed)) for seed in (0, 1))
        again = load(folder, 100, np.random.default_rng(0))
        G = first.gram(50)
        assert G.shape == (50, 50)
        np.testing.assert_array_equal(G, again.gram(50))
        assert np.abs(G - second.gram(50)).max() > 0.1
        np.testing.assert_allclose(np.diagonal(G), 1, atol=1e-12)
        np.testing.assert_allclose(G[:20, :20], first.gram(20), atol=1e-12)


def test_a_file_of_too_few_rows_is_refused(folder: Path) -> None:
    for load in (em_kpca.load_texts, em_kpca.load_images):
        with pytest.raises(ValueError, match=r"at least 400 rows; it has 150"):
            load(folder, 400, np.random.default_rng(0))


def test_beyond_the_dense_rows_krylov_is_the_reference(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    G = em_kpca.load_images(folder, 100, np.random.default_rng(0)).gram(100)
    by_dense = em_kpca.measure_solvers(G, 4, 0)
    monkeypatch.setattr(em_kpca, "DENSE_ROWS", 50)
    without = em_kpca.measure_solvers(G, 4, 0)
    assert set(by_dense) - set(without) == {"dense"}
    for name, outcome in without.items():
        assert outcome.error == pytest.approx(by_dense[name].error, abs=1e-7)


# ------------------------------------------------ the table


def test_every_solver_at_every_place(small: Table) -> None:
    places = [(60, 6), (120, 6), (120, 3)]
    names = [f"{data}, N = {n}, d = {d}" for data in ("Reuters, linear", "MNIST, rbf")
             for n, d in places]  # fmt: skip
    assert list(small.rows) == [f"{what}: {name}" for what in ("CPU s", "error") for name in names]
    assert len(small.cells) == 2 * len(names) * len(em_kpca.SOLVERS)
    assert all(len(cell.values) == SMALL.repeats for cell in small.cells)
    for name in names:
        errors = {c.name: small.cell(f"error: {name}", c.name) for c in small.columns}
        for solver in ("krylov", "arpack", "dense"):
            cell = errors[solver]
            assert cell is not None and max(cell.values) < 1e-6, (name, solver)
        chebyshev = errors["chebyshev"]
        assert chebyshev is not None and max(chebyshev.values) < 1e-3


def test_a_file_that_is_missing_is_left_out_and_told(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (folder / em_kpca.DIGITS.name).read_bytes()
    (tmp_path / em_kpca.DIGITS.name).write_bytes(content)
    monkeypatch.setattr(em_kpca, "QUICK", em_kpca.Size((60,), (3,), 60, 1))
    table = reproduce(em_kpca.EXPERIMENT, tmp_path, quick=True).table
    assert table.rows == ("CPU s: MNIST, rbf, N = 60, d = 3", "error: MNIST, rbf, N = 60, d = 3")
    assert any(em_kpca.WORDS.name in note for note in table.notes)
    (tmp_path / em_kpca.DIGITS.name).unlink()
    with pytest.raises(FileNotFoundError, match=em_kpca.WORDS.name):
        reproduce(em_kpca.EXPERIMENT, tmp_path, quick=True)


def test_the_picture_has_time_and_error_of_both(small: Table) -> None:
    figure = Figure(layout="constrained")
    assert small.draw is not None
    small.draw(figure)
    assert len(figure.axes) == 8
    titles = [ax.get_title() for ax in figure.axes]
    assert titles[0] == "Reuters, linear: time, d = 6"
    assert titles[7] == "MNIST, rbf: error, N = 120"
    for ax, points in zip(figure.axes, (2, 2) * 4, strict=True):
        assert ax.get_yscale() == "log"
        assert {len(line.get_xdata()) for line in ax.lines if len(line.get_xdata())} == {points}  # type: ignore[arg-type]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(em_kpca.SOLVERS)


# ------------------------------------------------ claims

SIZE = em_kpca.Size((1000, 2000, 4000), (10, 20, 50), 2000, 1)


def _results(
    power: float, em_error: float, krylov_error: float, arpack: float, krylov: float = 0.5
) -> em_kpca.Results:
    def outcomes(n: int, d: int) -> dict[str, list[Outcome]]:
        work = 1e-8 * n**power * d
        return {
            em_kpca.AS_PUBLISHED: [Outcome(work, em_error)],
            em_kpca.CONVERGED: [Outcome(9 * work, 0.01)],
            "krylov": [Outcome(krylov * work, krylov_error)],
            "arpack": [Outcome(arpack * work, 1e-12)],
        }

    return {("rows", n, d): outcomes(n, d) for n, d in (*SIZE.places(4000), (3000, 20), (3500, 20))}


def test_powers_are_those_of_the_times() -> None:
    results = _results(2.0, 0.5, 1e-8, 3.0)
    assert em_kpca.fit_exponents("rows", em_kpca.AS_PUBLISHED, results, SIZE) == pytest.approx(
        (2.0, 1.0)
    )
    results = _results(2.5, 0.5, 1e-8, 3.0)
    assert em_kpca.fit_exponents("rows", "krylov", results, SIZE) == pytest.approx((2.5, 1.0))


def test_claims_hold_and_fail() -> None:
    good = em_kpca._check_claims(_results(2.0, 0.5, 1e-8, 3.0), SIZE)
    assert [check.holds for check in good] == [True] * 6
    bad = em_kpca._check_claims(_results(3.0, 0.01, 1e-5, 0.3, krylov=10.0), SIZE)
    assert [check.holds for check in bad] == [False] * 6
    assert "0 of 3 runs" in bad[3].detail and "N^3.00 d^1.00" in bad[2].detail


def test_times_of_few_rows_are_not_compared() -> None:
    few = {
        place: found for place, found in _results(2.0, 0.5, 1e-8, 3.0).items() if place[1] < 3000
    }
    assert len(em_kpca._check_claims(few, SIZE)) == 3


def test_the_largest_table_is_all_rows() -> None:
    assert em_kpca.FULL.places(3972)[:4] == ((500, 50), (1000, 50), (2000, 50), (3972, 50))
    assert em_kpca.FULL.places(3972)[4:] == tuple((3000, d) for d in (10, 20, 30, 40, 50))


# ------------------------------------------------ real texts


def test_twenty_steps_are_too_few_for_texts(shared_data: Callable[[str], Path]) -> None:
    folder = shared_data(em_kpca.WORDS.name).parent
    table = em_kpca.load_texts(folder, 600, np.random.default_rng(0))
    found = em_kpca.measure_solvers(table.gram(600), 50, 0)
    assert found[em_kpca.AS_PUBLISHED].error > em_kpca.LARGE_ERROR
    assert found["krylov"].error < em_kpca.SMALL_ERROR
    assert found["randomized"].error > 1e-3
