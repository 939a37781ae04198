"""Rows that are covariance matrices: Wishart laws with learned mean and degrees of freedom.

    x = the lower triangle of W, row by row (w11, w21, w22, w31, ...): d (d + 1) / 2 columns
    W | k ~ Wishart(S_k, nu_k),   mean M_k = nu_k S_k,   nu_k > d - 1

    ln p(W) = (nu - d - 1) / 2 ln|W| - tr(S^-1 W) / 2
              - nu / 2 ln|S| - nu d / 2 ln 2 - ln G_d(nu / 2)

is linear in W and ln|W|. The best M is the mean of the rows whatever nu is, and nu is the root of
sum_i psi((nu + 1 - i) / 2) - d ln(nu / 2) = E ln|W| - ln|M|. Mean and degrees of freedom tell
nothing of each other, which is why the coordinates are the Cholesky factor of M and ln(nu - d + 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtri, multigammaln, ndtri, polygamma, psi

from mixfold.contracts import Array, Block, Metric, record
from mixfold.families.component import dense_rows
from mixfold.families.dense import DenseMetric, slopes
from mixfold.families.exponential.pseudo_rows import PseudoRowsFamily, with_statistics
from mixfold.families.exponential.records import LinearMoments, LinearParams
from mixfold.families.exponential.support import column_name, refuse_sparse, require_positive
from mixfold.math.frame import Frame, bulk_of
from mixfold.math.roots import decreasing_root
from mixfold.math.symmetric import factorise, from_log_cholesky, log_cholesky

# of nu - d + 1
_LEAST_DEGREES = 1e-8
# an eigenvalue below this part of the largest one is rounding
_LEAST_EIGENVALUE = 1e-13


@record
@dataclass(frozen=True, slots=True)
class WishartMetric:
    """Information of means, as of a Gaussian scatter of ``nu`` rows each, and of ln(nu - d + 1)."""

    means: DenseMetric
    degrees: Array

    def solve(self, gradient: Array) -> Array:
        K, size = self.means.factors.shape[:2]
        parts = gradient.reshape(K, -1)
        none = np.zeros(K * size)
        by_mean = self.means.solve(np.concatenate([none, parts[:, :-1].ravel()]))[K * size :]
        known = self.degrees > 1e-300
        by_degrees = np.divide(
            parts[:, -1], self.degrees, out=np.zeros_like(self.degrees), where=known
        )
        return np.column_stack([by_mean.reshape(K, -1), by_degrees]).ravel()


@record
@dataclass(frozen=True)
class Wishart(PseudoRowsFamily):
    """W | k ~ Wishart of mean M_k and nu_k degrees of freedom: rows are covariance matrices.

    A row is the lower triangle of a matrix, row by row: ``W[:, i, j]`` with
    ``i, j = np.tril_indices(d)``. NaN is not allowed.

    Parameters
    ----------
    floor : float
        Least relative variance: nu is at most 1 / floor.
    rows : float
        How many rows the prior is worth.
    degrees : float, optional
        Of the Wishart law of these pseudo-rows, more than d - 1.
    mean : array (d, d), optional
        Its mean. By default both are those of all rows.
    """

    degrees: Any = None
    mean: Any = None

    name: ClassVar[str] = "wishart"
    takes_missing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self.degrees, "degrees")
        if (self.degrees is None) != (self.mean is None):
            raise ValueError(
                "degrees and mean say one Wishart law, that of the prior: give both or neither, "
                f"got degrees={self.degrees!r} and mean={self.mean!r}"
            )
        if self.mean is not None:
            _check_mean(self.mean, self.degrees)

    def column_constants(self, n_features: int) -> Array:
        _side(n_features)
        return np.ones(n_features)

    def n_free(self, n_components: int, n_features: int) -> int:
        return n_components * (n_features + 1)

    def workspace_per_row(self, n_components: int, n_features: int) -> int:
        return n_components + 2 * n_features

    # ------------------------------------------------ rows

    def fault(self, x: Array, size: Array) -> Array:
        return np.isinf(x)

    def rule(self, size: float) -> str:
        return "must hold finite entries of a matrix"

    def check(self, block: Block, names: Array | None) -> None:
        refuse_sparse(block, self.name, "dense matrices")
        _refuse_missing(block, names)
        super().check(block, names)
        values = np.linalg.eigvalsh(matrices(np.nan_to_num(np.asarray(block.X, float))))
        low = values[:, 0] <= _LEAST_EIGENVALUE * np.abs(values).max(axis=1)
        odd = np.flatnonzero(low & (block.weights() > 0))
        if odd.size:
            row = int(odd[0])
            raise ValueError(
                "the family 'wishart' takes rows that are positive definite matrices, as lower "
                f"triangles (w11, w21, w22, ...); row {block.start + row} has the eigenvalue "
                f"{values[row, 0]:g}. Add a little to its diagonal, or take covariances of more "
                "rows than columns"
            )

    def expand_block(self, block: Block, size: Array) -> Block:
        _refuse_missing(block, None)
        X = dense_rows(block.X).astype(float)
        odd = ~np.isfinite(X).all(axis=1)
        if odd.any():
            X[odd] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return with_statistics(block, np.column_stack([X, np.linalg.slogdet(matrices(X))[1]]))

    def bulk(self, X: Array, weight: Array) -> Frame:
        return bulk_of(X, weight)

    def points(self, X: Array) -> Array:
        """Matrix logarithms, by columns, in which no unit counts (the log-Euclidean distance)."""
        values, vectors = np.linalg.eigh(matrices(np.asarray(X, float)))
        logs = np.log(np.maximum(values, np.finfo(float).tiny))
        whole = (vectors * logs[:, None, :]) @ np.swapaxes(vectors, 1, 2)
        i, j = np.tril_indices(whole.shape[1])
        return np.asarray(whole[:, i, j] * np.where(i == j, 1.0, np.sqrt(2.0)))

    # ------------------------------------------------ components: theta is (log Cholesky, ln)

    def _read(self, theta: Array) -> tuple[Array, Array]:
        """Means (K, d, d) and degrees of freedom (K,)."""
        size = _side(theta.shape[1] - 1)
        return from_log_cholesky(theta[:, :-1], size), np.exp(theta[:, -1]) + size - 1

    def clip_coordinates(self, theta: Array, size: Array) -> Array:
        theta = np.array(theta)
        theta[:, -1] = np.clip(theta[:, -1], np.log(_LEAST_DEGREES), -np.log(self.floor))
        return theta

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        return triangles(self._read(theta)[0])

    def linear(self, theta: Array, size: Array) -> tuple[Array, Array]:
        means, nu = self._read(theta)
        size_of_matrix = means.shape[1]
        factors, whiten = factorise(means)
        precisions = whiten @ np.swapaxes(whiten, 1, 2)
        log_det = 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        i, j = np.tril_indices(size_of_matrix)
        by_entry = -nu[:, None] * precisions[:, i, j] * np.where(i == j, 0.5, 1.0)
        slope = np.column_stack([by_entry, 0.5 * (nu - size_of_matrix - 1)])
        offset = np.zeros_like(slope)
        offset[:, 0] = 0.5 * nu * (size_of_matrix * np.log(nu / 2) - log_det)
        offset[:, 0] -= multigammaln(nu / 2, size_of_matrix)
        return slope, offset

    def expected(self, theta: Array, size: Array) -> Array:
        means, nu = self._read(theta)
        side = means.shape[1]
        log_det = np.linalg.slogdet(means)[1]
        return np.column_stack([triangles(means), log_det + _psi_gap(nu, side)])

    def best(self, mean: Array, size: Array) -> tuple[Array, Array]:
        means = matrices(mean[:, :-1])
        side = means.shape[1]
        factors, _ = factorise(means)
        log_det = 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        gap = mean[:, -1] - log_det

        def balance(t: Array) -> tuple[Array, Array]:
            nu = np.exp(t) + side - 1
            return gap - _psi_gap(nu, side), -np.exp(t) * _psi_slope(nu, side)

        high = -np.log(self.floor)
        log_degrees = decreasing_root(
            balance, np.full(gap.shape, np.log(side)), np.log(_LEAST_DEGREES), high
        )
        return np.column_stack([log_cholesky(factors), log_degrees]), log_degrees >= high

    def at_floor(self, params: LinearParams) -> Array:
        return np.asarray(params.theta[:, -1] >= -np.log(self.floor) - 1e-9)

    def floor_message(self, component: int) -> str:
        return (
            f"the degrees of freedom of component {component} reached the bound of 1 / "
            f"{self.floor:g} (duplicated matrices, or too few)"
        )

    def slopes(self, params: LinearParams, moments: LinearMoments) -> tuple[Array, Metric]:
        means, nu = self._read(params.theta)
        K, side = means.shape[:2]
        known, count = factorise(means), moments.count[:, 0]
        total = matrices(moments.first[:, :-1])
        by_entry, metric = slopes(known, count * nu, np.zeros((K, side)), nu[:, None, None] * total)
        whiten = known[1]
        trace = np.einsum("kde,kdf,kfe->k", whiten, total, whiten)
        log_det = np.linalg.slogdet(means)[1]
        gap = moments.first[:, -1] - count * (log_det + _psi_gap(nu, side) - side) - trace
        stretch = nu - side + 1
        by_degrees = 0.5 * stretch * gap
        stuck = self.at_floor(params) & (by_degrees > 0)
        information = 0.5 * count * stretch**2 * _psi_slope(nu, side)
        gradient = np.column_stack(
            [by_entry[K * side :].reshape(K, -1), np.where(stuck, 0.0, by_degrees)]
        )
        return gradient, WishartMetric(metric, information)

    def describe(self, params: LinearParams) -> dict[str, Any]:
        means, nu = self._read(params.theta)
        return {"means": params.means, "degrees": nu, "scales": means / nu[:, None, None]}

    def centre(self, n_features: int) -> Array | None:
        if self.mean is None:
            return None
        side, mean = _side(n_features), np.asarray(self.mean, float)
        if mean.shape != (side, side):
            raise ValueError(
                f"mean of the prior is a matrix of {len(mean)} x {len(mean)}, and the {n_features} "
                f"columns are triangles of {side} x {side} matrices. Give a matrix of that size"
            )
        factor, _ = factorise(mean[None])
        return np.append(log_cholesky(factor)[0], np.log(float(self.degrees) - side + 1))

    def describe_centre(self, theta: Array) -> dict[str, Any]:
        means, nu = self._read(theta)
        return {"degrees": float(nu[0]), "mean": means[0]}

    # ------------------------------------------------ using a fit

    def condition(
        self, params: LinearParams, known: Array, values: Array
    ) -> tuple[Array, LinearParams]:
        raise ValueError(
            "a Wishart mixture cannot be conditioned on some of its columns: a row is one matrix, "
            "and some of its entries are none. Leave out whole rows and columns of the matrices, "
            "which leaves Wishart laws, and fit those"
        )

    def posterior_of_columns(self, posterior: LinearParams, which: Array) -> LinearParams:
        self.condition(posterior, which, which)
        raise AssertionError

    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        matrix, nu = self._read(theta)
        i, j = np.tril_indices(matrix.shape[1])
        # Bartlett's triangle: roots of chi-squares on the diagonal, normals below it
        root = np.sqrt(chdtri(nu[:, None] - i[i == j], 1 - uniforms[:, i == j]))
        below = np.zeros_like(matrix)
        below[:, i, j] = ndtri(uniforms)
        on = np.arange(matrix.shape[1])
        below[:, on, on] = root
        return self._made_of(below, matrix, nu)

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        matrix, nu = self._read(theta)
        below = np.tril(rng.standard_normal(matrix.shape), -1)
        on = np.arange(matrix.shape[1])
        squares = 2 * rng.standard_gamma((nu[:, None] - on) / 2)
        below[:, on, on] = np.sqrt(np.maximum(squares, np.finfo(float).tiny))
        return self._made_of(below, matrix, nu)

    def _made_of(self, below: Array, means: Array, nu: Array) -> Array:
        factors, _ = factorise(means)
        root = factors @ below / np.sqrt(nu)[:, None, None]
        return triangles(root @ np.swapaxes(root, 1, 2))


def matrices(rows: Array) -> Array:
    """Symmetric matrices (n, d, d) of rows (n, d (d + 1) / 2) that are their lower triangles."""
    side = _side(rows.shape[1])
    i, j = np.tril_indices(side)
    out = np.empty((len(rows), side, side))
    out[:, i, j] = rows
    out[:, j, i] = rows
    return out


def triangles(whole: Array) -> Array:
    """The lower triangles, row by row."""
    i, j = np.tril_indices(whole.shape[1])
    return np.asarray(whole[:, i, j])


def _side(n_features: int) -> int:
    side = int((np.sqrt(8 * n_features + 1) - 1) / 2 + 0.5)
    if side * (side + 1) // 2 != n_features:
        raise ValueError(
            "the family 'wishart' takes rows that are the lower triangles of d x d matrices, "
            f"d (d + 1) / 2 = 1, 3, 6, 10, ... columns; got {n_features}. Make them by W[:, i, j] "
            "with i, j = np.tril_indices(d)"
        )
    return side


def _psi_gap(nu: Array, side: int) -> Array:
    """E ln|W| - ln|E W|."""
    halves = (nu[:, None] - np.arange(side)) / 2
    return np.asarray((psi(halves) - np.log(nu / 2)[:, None]).sum(axis=1))


def _psi_slope(nu: Array, side: int) -> Array:
    halves = (nu[:, None] - np.arange(side)) / 2
    return np.asarray(0.5 * polygamma(1, halves).sum(axis=1) - side / nu)


def _check_mean(mean: Any, degrees: Any) -> None:
    array = np.asarray(mean, float)
    square = array.ndim == 2 and array.shape[0] == array.shape[1]
    good = square and np.isfinite(array).all() and np.allclose(array, array.T, rtol=1e-8, atol=0)
    if not good or np.linalg.eigvalsh(array)[0] <= 0:
        raise ValueError(
            f"mean of the prior must be a positive definite matrix (d, d), got {mean!r}"
        )
    if np.ndim(degrees) or float(degrees) <= len(array) - 1:
        raise ValueError(
            f"degrees of the prior must be one number above d - 1 = {len(array) - 1}: fewer are "
            f"no law of {len(array)} x {len(array)} matrices; got {degrees!r}"
        )


def _refuse_missing(block: Block, names: Any) -> None:
    if block.complete:
        return
    lacking = np.isnan(dense_rows(block.X)) & (block.weights() > 0)[:, None]
    if lacking.any():
        row, column = (int(i) for i in np.argwhere(lacking)[0])
        raise ValueError(
            f"the family 'wishart' allows no missing entries; column {column_name(names, column)} "
            f"of row {block.start + row} is NaN: a matrix without it has no determinant. Fill or "
            "drop such rows."
        )
