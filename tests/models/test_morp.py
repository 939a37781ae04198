"""MORP against the matrices of its papers, written out; and the views it stands on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh

from mixfold.contracts import Array
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.sources import open_source
from mixfold.math.kernels import LinearKernel, PolynomialKernel, RbfKernel
from mixfold.models.factors.spectral_sums import MissingEntries
from mixfold.models.kernels.linear_readout import fit_readout
from mixfold.models.kernels.morp import check_spanned, inverse_form, max_form
from mixfold.models.kernels.views import (
    dual_thin,
    landmark_thin,
    primal_thin,
    thin_svd_of_kernel_matrix,
)
from mixfold.models.kernels.views import thin_svd as limits

RNG = np.random.default_rng(3)
ONE = ThreadExecutor(1)
X = RNG.normal(size=(40, 6)) * [3, 2, 1, 1, 0.5, 0.3] + 4
Y = X[:, 2:4] @ RNG.normal(size=(2, 3)) + 0.3 * RNG.normal(size=(40, 3))
NEW = RNG.normal(size=(9, 6)) + 4
RBF = RbfKernel(0.3)


def centring(n: int) -> Array:
    return np.eye(n) - 1 / n


def view(rows: Any, y: Array, solver: str, kernel: Any = None, weight: Any = None) -> Any:
    source = open_source(rows, y=y - np.average(y, axis=0, weights=weight), weight=weight)
    if solver == "primal":
        return primal_thin(source, ONE)
    if solver == "landmarks":
        return landmark_thin(source, ONE, kernel or LinearKernel(), rows)
    return dual_thin(source, ONE, lambda _: kernel or LinearKernel())


def same_up_to_sign(found: Array, wanted: Array, atol: float = 1e-8) -> None:
    assert found.shape == wanted.shape
    turn = np.sign((found * wanted).sum(axis=0))
    np.testing.assert_allclose(found * turn, wanted, atol=atol * np.abs(wanted).max())


# ------------------------------------------------ views


@pytest.mark.parametrize("solver", ["primal", "dual", "landmarks"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_view_is_the_singular_value_decomposition_of_the_centred_table(
    solver: str, offset: float
) -> None:
    thin = view(X + offset, Y, solver)
    U, s, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(thin.values, s**2, rtol=1e-8)
    Yc = Y - Y.mean(axis=0)
    np.testing.assert_allclose(np.abs(thin.outputs), np.abs(U.T @ Yc), atol=1e-8)
    np.testing.assert_allclose(thin.squares, (Yc**2).sum(axis=0))
    same_up_to_sign(thin.reader(np.eye(6))(X + offset), U * s)
    same_up_to_sign(thin.reader(np.eye(6)[:, :2])(NEW + offset), (NEW - X.mean(axis=0)) @ Vt[:2].T)


@pytest.mark.parametrize("solver", ["dual", "landmarks"])
@pytest.mark.parametrize("kernel", [RBF, PolynomialKernel(2, 0.5, 1.0)], ids=["rbf", "poly"])
def test_a_view_of_a_kernel_has_its_products(solver: str, kernel: Any) -> None:
    thin = view(X, Y, solver, kernel)
    both = np.vstack([X, NEW])
    F = thin.reader(np.eye(len(thin.values)))(both)
    G = kernel.block(both, both)
    centred = np.eye(49) - np.outer(np.ones(49), np.r_[np.full(40, 1 / 40), np.zeros(9)])
    Gc = centred @ G @ centred.T
    np.testing.assert_allclose((F @ F.T)[:40], Gc[:40], atol=1e-7 * np.abs(Gc).max())
    assert thin.trace == pytest.approx(np.trace(Gc[:40, :40]))


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_weights_are_repetitions(solver: str) -> None:
    weight = RNG.integers(0, 4, 40).astype(float)
    again = np.repeat(np.arange(40), weight.astype(int))
    thin, plain = view(X, Y, solver, weight=weight), view(X[again], Y[again], solver)
    assert thin.weight == plain.weight == len(again)
    np.testing.assert_allclose(thin.values, plain.values[: len(thin.values)], rtol=1e-9)
    np.testing.assert_allclose(np.abs(thin.outputs), np.abs(plain.outputs), atol=1e-8)
    np.testing.assert_allclose(thin.squares, plain.squares)
    same_up_to_sign(thin.reader(np.eye(6))(NEW), plain.reader(np.eye(6))(NEW))


@pytest.mark.parametrize("solver", ["primal", "dual", "landmarks"])
def test_sparse_rows_are_never_made_dense(solver: str, monkeypatch: Any) -> None:
    rows = np.where(RNG.random((40, 6)) < 0.5, X, 0.0)
    wanted = view(rows, Y, solver)

    for kind in (sparse.csr_array, sparse.csc_array):
        plain = kind.toarray

        def guarded(self: Any, *args: Any, plain: Any = plain, **more: Any) -> Any:
            assert sorted(self.shape) != [6, 40], "the rows were made dense"
            return plain(self, *args, **more)

        monkeypatch.setattr(kind, "toarray", guarded)
    csr = sparse.csr_array(rows)
    found = view(csr, Y, solver)
    np.testing.assert_allclose(found.values, wanted.values, rtol=1e-9)
    same_up_to_sign(found.reader(np.eye(6))(csr), wanted.reader(np.eye(6))(rows))


@pytest.mark.parametrize("rows", [1, 7, 40])
def test_blocks_do_not_matter(rows: int) -> None:
    class Cut:
        def __init__(self, source: Any) -> None:
            self.source = source
            self.n_samples, self.n_features = source.n_samples, source.n_features
            self.feature_names, self.dtype = None, source.dtype

        def blocks(self, max_rows: int | None = None) -> Any:
            return self.source.blocks(rows)

    source = open_source(X, y=Y - Y.mean(axis=0))
    whole, cut = primal_thin(source, ONE), primal_thin(Cut(source), ThreadExecutor(2))
    np.testing.assert_allclose(cut.values, whole.values, rtol=1e-12)
    G = RBF.block(X, X)
    given = thin_svd_of_kernel_matrix(Cut(open_source(G, y=Y - Y.mean(axis=0))), ONE, np.arange(40))
    np.testing.assert_allclose(given.values, view(X, Y, "dual", RBF).values, rtol=1e-6)
    np.testing.assert_allclose(
        np.abs(given.reader(np.eye(39))(G)), np.abs(view(X, Y, "dual", RBF).reader(np.eye(39))(X)),
        atol=1e-6,
    )  # fmt: skip


def test_what_has_no_view_is_refused(monkeypatch: Any) -> None:
    with pytest.raises(ValueError, match="no variance to project on"):
        view(np.ones((5, 2)), np.arange(10.0).reshape(5, 2), "primal")
    holed = X.copy()
    holed[3, 1] = np.nan
    for solver in ("primal", "dual"):
        with pytest.raises(MissingEntries, match=r"missing entries \(NaN\).*impute"):
            view(holed, Y, solver)
    monkeypatch.setattr(limits, "LARGEST", 5)
    for solver, what in (("primal", "6 columns"), ("dual", "40 rows")):
        with pytest.raises(ValueError, match=rf"{what} are too many.*landmarks"):
            view(X, Y, solver)


# ------------------------------------------------ form='max'


@pytest.mark.parametrize("beta", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_the_largest_form_is_the_generalised_problem_of_the_columns(
    beta: float, gamma: float
) -> None:
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    K = (1 - beta) * Xc @ Xc.T + beta * Yc @ Yc.T
    lam, W = eigh(Xc.T @ K @ Xc, Xc.T @ Xc + gamma * np.eye(6))
    wanted = Xc @ W[:, ::-1][:, :3] * np.sqrt(lam[::-1][:3])
    for solver in ("primal", "dual"):
        thin = view(X, Y, solver)
        axes = max_form(thin.values, thin.outputs, beta, gamma, 3)
        np.testing.assert_allclose(axes.values, lam[::-1][:3], rtol=1e-8)
        same_up_to_sign(thin.reader(axes.weights)(X), wanted)


def test_the_largest_form_in_wide_tables_is_that_of_the_columns() -> None:
    wide = RNG.normal(size=(15, 30))
    y = wide[:, :2] + 0.1 * RNG.normal(size=(15, 2))
    Xc, Yc = wide - wide.mean(axis=0), y - y.mean(axis=0)
    K = 0.5 * Xc @ Xc.T + 0.5 * Yc @ Yc.T
    lam, W = eigh(Xc.T @ K @ Xc, Xc.T @ Xc + 0.7 * np.eye(30))
    for solver in ("primal", "dual"):
        thin = view(wide, y, solver)
        axes = max_form(thin.values, thin.outputs, 0.5, 0.7, 2)
        wanted = Xc @ W[:, ::-1][:, :2] * np.sqrt(lam[::-1][:2])
        same_up_to_sign(thin.reader(axes.weights)(wide), wanted)


@pytest.mark.parametrize("gamma", [0.0, 0.2])
def test_the_largest_form_with_a_kernel_is_that_of_the_kernel_matrix(gamma: float) -> None:
    H = centring(40)
    G, Yc = H @ RBF.block(X, X) @ H, H @ Y
    w, V = np.linalg.eigh(G)
    w, V = w[1:], V[:, 1:]  # one direction is lost to the mean
    s = np.sqrt(w / (w + gamma))
    M = s[:, None] * (0.6 * np.diag(w) + 0.4 * V.T @ Yc @ Yc.T @ V) * s
    lam, E = np.linalg.eigh(M)
    A = V @ (E / np.sqrt(w * (w + gamma))[:, None])[:, :-4:-1] * np.sqrt(lam[:-4:-1])
    thin = view(X, Y, "dual", RBF)
    axes = max_form(thin.values, thin.outputs, 0.4, gamma, 3)
    k = RBF.block(NEW, X)
    kc = (k - RBF.block(X, X).mean(axis=0)) @ H
    same_up_to_sign(thin.reader(axes.weights)(NEW), kc @ A)
    same_up_to_sign(thin.reader(axes.weights)(X), G @ A)


def test_without_outputs_it_is_kernel_pca_and_without_inputs_partial_least_squares() -> None:
    H = centring(40)
    w, V = np.linalg.eigh(H @ RBF.block(X, X) @ H)
    thin = view(X, Y, "dual", RBF)
    axes = max_form(thin.values, thin.outputs, 0.0, 0.0, 4)
    same_up_to_sign(thin.reader(axes.weights)(X), V[:, :-5:-1] * np.sqrt(w[:-5:-1]))
    # orthonormalised PLS: score vectors are orthonormal and span the fitted values
    thin = view(X, Y, "primal")
    axes = max_form(thin.values, thin.outputs, 1.0, 0.0, 6)
    assert len(axes.values) == 3  # as many as outputs
    Z = thin.reader(axes.weights / np.sqrt(axes.values))(X)
    np.testing.assert_allclose(Z.T @ Z, np.eye(3), atol=1e-9)
    fitted = np.linalg.lstsq(X - X.mean(axis=0), Y - Y.mean(axis=0))[0]
    fitted = (X - X.mean(axis=0)) @ fitted
    np.testing.assert_allclose(Z @ (Z.T @ fitted), fitted, atol=1e-9)
    assert axes.outputs.sum() == pytest.approx(1.0)


def test_very_smooth_scores_are_along_the_axes_of_the_covariance_with_the_joint_kernel() -> None:
    thin = view(X, Y, "dual", RBF)
    w, C = thin.values, thin.outputs
    crossed = np.sqrt(w)[:, None] * C
    leading = np.linalg.eigh(0.5 * np.diag(w**2) + 0.5 * crossed @ crossed.T)[1][:, -1]
    smooth = max_form(w, C, 0.5, 1e9, 1).weights[:, 0]
    assert abs(smooth @ leading) / np.linalg.norm(smooth) == pytest.approx(1.0, abs=1e-6)
    # the inverse form forgets the outputs
    smooth = inverse_form(w, C, 0.5, 1e9, 0.1, 1).weights[:, 0]
    assert abs(smooth[0]) / np.linalg.norm(smooth) == pytest.approx(1.0, abs=1e-6)


# ------------------------------------------------ form='inverse'


def literal_inverse(
    G: Array, y: Array, beta: float, gamma: float, ridge: float, size: int
) -> tuple[Array, Array]:
    """Eigenvalues and coefficients, from the matrices of N rows themselves."""
    a, n = 1 - beta, len(G)
    q = 1 / a + gamma
    T = np.linalg.solve(G + ridge * np.eye(n), y)
    S = (1 + a * gamma) * (a / beta) * np.eye(y.shape[1]) + a * gamma * y.T @ T
    lam, Z = np.linalg.eigh((G + y @ np.linalg.solve(S, y.T)) / q)
    lam, Z = lam[: -size - 1 : -1], Z[:, : -size - 1 : -1]
    return lam, (Z + T @ np.linalg.solve(S, y.T @ Z)) / (lam * q) * np.sqrt(lam)


@pytest.mark.parametrize("gamma", [0.0, 0.8])
@pytest.mark.parametrize("beta", [0.2, 0.7])
def test_the_inverse_form_is_that_of_the_kernel_matrix(beta: float, gamma: float) -> None:
    H = centring(40)
    G, Yc = H @ RBF.block(X, X) @ H, H @ Y
    lam, A = literal_inverse(G, Yc, beta, gamma, 0.05, 3)
    thin = view(X, Y, "dual", RBF)
    check_spanned(thin.outputs, thin.squares)
    axes = inverse_form(thin.values, thin.outputs, beta, gamma, 0.05, 3)
    np.testing.assert_allclose(axes.values, lam, rtol=1e-8)
    kc = (RBF.block(NEW, X) - RBF.block(X, X).mean(axis=0)) @ H
    same_up_to_sign(thin.reader(axes.weights)(NEW), kc @ A)


@pytest.mark.parametrize("gamma", [0.0, 0.8])
def test_the_inverse_form_solves_the_problem_of_the_paper(gamma: float) -> None:
    """X'X w = lambda (X'K^-1 X + gamma I) w, in coordinates that span all rows but their mean."""
    thin = view(X, Y, "dual", RBF)
    w, C, beta = thin.values, thin.outputs, 0.4
    root = np.sqrt(w)
    inverse = np.linalg.inv((1 - beta) * np.diag(w) + beta * C @ C.T)
    Q = root[:, None] * inverse * root + gamma * np.eye(len(w))
    lam, W = eigh(np.diag(w), Q)
    axes = inverse_form(w, C, beta, gamma, 1e-13, 2)  # (outputs interpolated)
    np.testing.assert_allclose(axes.values, lam[:-3:-1], rtol=1e-6)
    same_up_to_sign(axes.weights, W[:, :-3:-1], atol=1e-5)


def test_the_simplified_algorithm_extends_the_eigenvectors_of_the_joint_kernel() -> None:
    H, beta, ridge = centring(40), 0.4, 0.03
    G, Yc = H @ RBF.block(X, X) @ H, H @ Y
    lam, Z = np.linalg.eigh((1 - beta) * G + beta * Yc @ Yc.T)
    lam, Z = lam[:-3:-1], Z[:, :-3:-1]
    kc = (RBF.block(NEW, X) - RBF.block(X, X).mean(axis=0)) @ H
    guess = kc @ np.linalg.solve(G + ridge * np.eye(40), Yc)
    wanted = ((1 - beta) * kc @ Z + beta * guess @ Yc.T @ Z) / np.sqrt(lam)
    thin = view(X, Y, "dual", RBF)
    axes = inverse_form(thin.values, thin.outputs, beta, 0.0, ridge, 2)
    same_up_to_sign(thin.reader(axes.weights)(NEW), wanted)


@pytest.mark.parametrize("gamma", [0.0, 2.0])
def test_the_inverse_form_without_outputs_is_kernel_pca_up_to_scale(gamma: float) -> None:
    thin = view(X, Y, "dual", RBF)
    axes = inverse_form(thin.values, thin.outputs, 0.0, gamma, 0.1, 3)
    same_up_to_sign(axes.weights, np.eye(39)[:, :3] / np.sqrt(1 + gamma))


def test_the_inverse_form_is_refused_where_it_would_be_pca() -> None:
    thin = view(X, Y + RNG.normal(size=Y.shape), "primal")
    with pytest.raises(ValueError, match=r"span the outputs.*left over.*form='max'"):
        check_spanned(thin.outputs, thin.squares)
    same = view(X, X[:, :2] @ [[1.0, 2.0], [0.0, 1.0]], "primal")
    check_spanned(same.outputs, same.squares)


# ------------------------------------------------ reading outputs off scores


def test_outputs_are_read_off_the_rows_in_which_they_are_known() -> None:
    Z, weight = RNG.normal(size=(30, 2)), RNG.integers(0, 3, 30).astype(float)
    y = Z @ [[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]] + [5.0, 0.0, 0.0] + 0.1 * RNG.normal(size=(30, 3))
    y[:10, 1] = np.nan
    y[5:20, 2] = np.nan
    found = fit_readout(Z, y, weight, 0.0)
    for column in range(3):
        rows = ~np.isnan(y[:, column]) & (weight > 0)
        root = np.sqrt(weight[rows])[:, None]
        design = np.column_stack([np.ones(rows.sum()), Z[rows]])
        wanted = np.linalg.lstsq(root * design, root[:, 0] * y[rows, column])[0]
        np.testing.assert_allclose(found.intercept[column], wanted[0], rtol=1e-6)
        np.testing.assert_allclose(found.slopes[:, column], wanted[1:], rtol=1e-6, atol=1e-8)
    y[:, 0] = np.nan
    assert np.isnan(fit_readout(Z, y, weight, 0.0)(Z)[:, 0]).all()
