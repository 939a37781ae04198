"""One multivariate t distribution by maximum likelihood: a population with heavy tails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from mixfold.contracts import Array

_LEAST, _MOST = np.log(0.5), np.log(200.0)
_FURTHEST = 1e50  # in median deviations: squares and their ratios stay within range


@dataclass(frozen=True, slots=True)
class Student:
    """t_nu(mean, scatter): degrees of freedom, and the log-likelihood of the rows."""

    mean: Array
    scatter: Array
    freedom: float
    log_likelihood: float

    @property
    def n_parameters(self) -> int:
        D = len(self.mean)
        return D + D * (D + 1) // 2 + 1


def fit_student(X: Array, weight: Array, max_iter: int = 200, tol: float = 1e-6) -> Student | None:
    """Fit by EM with the degrees of freedom from the likelihood itself (ECME).

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Complete rows.
    weight : ndarray of shape (n,)

    Returns
    -------
    Student, or None if the rows span fewer dimensions than they have columns, half of the entries
    of a column are the same, or a row is 1e50 times as far away as half of them
    """
    total, D = weight.sum(), X.shape[1]
    centre = np.median(X, axis=0)
    unit = np.median(np.abs(X - centre), axis=0)
    if (unit == 0).any():  # half of the entries are the same: the likelihood has no maximum
        return None
    with np.errstate(over="ignore"):
        U = (X - centre) / unit
    if np.abs(U).max() > _FURTHEST:
        return None
    mean, scatter, freedom, last = np.zeros(D), np.eye(D), 5.0, -np.inf
    for _ in range(max_iter):
        factor = _cholesky(scatter)
        if factor is None:
            return None
        distances = (np.linalg.solve(factor, (U - mean).T) ** 2).sum(axis=0)
        log_det = 2 * np.log(np.diag(factor)).sum()
        freedom = _best_freedom(distances, weight, D)
        value = _log_likelihood(freedom, distances, weight, D) - 0.5 * total * log_det
        if value - last < tol * total:
            break
        last = value
        share = weight * (freedom + D) / (freedom + distances)
        mean = share @ U / share.sum()
        centred = U - mean
        scatter = (centred * share[:, None]).T @ centred / total
    value -= total * np.log(unit).sum()
    return Student(centre + mean * unit, scatter * unit[:, None] * unit, freedom, float(value))


def _best_freedom(distances: Array, weight: Array, D: int) -> float:
    found = minimize_scalar(
        lambda log_nu: -_log_likelihood(float(np.exp(log_nu)), distances, weight, D),
        bounds=(_LEAST, _MOST),
        method="bounded",
    )
    return float(np.exp(found.x))


def _log_likelihood(nu: float, distances: Array, weight: Array, D: int) -> float:
    """Without the determinant of the scatter."""
    constant = gammaln((nu + D) / 2) - gammaln(nu / 2) - D / 2 * np.log(nu * np.pi)
    return float(weight.sum() * constant - (nu + D) / 2 * (weight @ np.log1p(distances / nu)))


def _cholesky(matrix: Array) -> Array | None:
    try:
        return np.asarray(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return None
