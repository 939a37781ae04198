"""Which kernel the parameters of an estimator mean, once its columns are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array
from mixfold.estimators.shell import constraints as rule
from mixfold.math.kernels import (
    CallableKernel,
    CosineKernel,
    Kernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    RbfKernel,
)

KERNELS = ("linear", "rbf", "poly", "cosine", "laplacian", "precomputed")
KERNEL_RULES: rule.Constraints = {
    "kernel": (rule.one_of(KERNELS), rule.function("of two matrices of rows")),
    "gamma": (rule.nothing(), rule.one_of(["scale"]), rule.number(0, open_end=True)),
    "degree": (rule.integer(1),),
    "coef0": (rule.number(0),),
}


def kernel_of(
    kernel: str | Callable[[Any, Any], Any], gamma: Any, degree: int, coef0: float, X: Any
) -> Kernel:
    """The kernel of the rows X (dense or CSR).

    ``gamma`` None is one over the number of columns; 'scale' is divided by the variance of all
    entries, too. Not for a kernel matrix that is given ('precomputed').
    """
    if callable(kernel):
        return CallableKernel(kernel)
    chosen = _KERNELS[kernel](_width(gamma, X), degree, coef0)
    # far from zero a distance by scalar products would lose its digits
    return chosen if sparse.issparse(X) else chosen.centred(np.asarray(X.mean(axis=0)))


def _width(gamma: Any, X: Any) -> float:
    if gamma is None:
        return 1.0 / X.shape[1]
    if gamma != "scale":
        return float(gamma)
    variance = _variance(X)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _variance(X: Any) -> float:
    if not sparse.issparse(X):
        return float(np.var(X, dtype=np.float64))
    mean = float(X.mean())
    return float(X.multiply(X).mean()) - mean**2


_KERNELS: dict[str, Callable[[float, int, float], Kernel]] = {
    "linear": lambda gamma, degree, coef0: LinearKernel(),
    "rbf": lambda gamma, degree, coef0: RbfKernel(gamma),
    "poly": lambda gamma, degree, coef0: PolynomialKernel(int(degree), gamma, float(coef0)),
    "cosine": lambda gamma, degree, coef0: CosineKernel(),
    "laplacian": lambda gamma, degree, coef0: LaplacianKernel(gamma),
}


def check_square(G: Array) -> None:
    """Refuse what is no kernel matrix."""
    if G.shape[0] != G.shape[1]:
        raise ValueError(
            "with kernel='precomputed' X is the kernel matrix of all pairs of rows and must be "
            f"square; got shape {G.shape}"
        )
    if not _is_symmetric(G):
        raise ValueError(
            "the kernel matrix is not symmetric: give k(x_i, x_j) for all pairs, or (G + G.T) / 2"
        )


def _is_symmetric(G: Array, tile: int = 512) -> bool:
    """Up to rounding; a tile at a time, without copies of the whole."""
    largest = max(float(G.max(initial=0.0)), -float(G.min(initial=0.0)))
    for i in range(0, len(G), tile):
        for j in range(0, i + 1, tile):
            below, above = G[i : i + tile, j : j + tile], G[j : j + tile, i : i + tile].T
            if not np.allclose(below, above, rtol=1e-5, atol=1e-8 * largest):
                return False
    return True
