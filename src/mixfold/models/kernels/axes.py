"""Principal axes in the space of features: eigenpairs of the centred kernel matrix.

An axis u = Phi_c' S v / sqrt(lambda) is a combination of the features of the known rows, and the
score of a row is phi_c(x)'u. Probabilistic PCA gives the rest of the space one noise variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, NotNegative, record
from mixfold.math.chebyshev import filtered_eigenpairs
from mixfold.math.krylov import Eigenpairs, leading_eigenpairs
from mixfold.math.largest import largest_pairs
from mixfold.math.signs import signs
from mixfold.models.kernels.centred import Centre, CentredGram
from mixfold.models.kernels.feature_gaussian import FeatureGaussian, noise_variance

# eigenvalues below this share of the largest are rounding
NEGLIGIBLE = 1e-12
# eigenvalues below this many units of the last place of the raw ones are, too
_ULPS = 4

Watch = Callable[[int, float], bool]


@record
@dataclass(frozen=True, slots=True)
class KernelAxes(FeatureGaussian):
    """Eigenvalues (d,), coefficients (N, d) of centred products, and the law around them.

    ``values`` belong to the kernel matrix: over ``n_rows`` they are variances. ``trace`` is the sum
    of all of them, ``dimension`` that of the space in which noise is.
    """

    values: NotNegative
    coefficients: Array
    centre: Centre
    trace: float
    n_rows: int
    dimension: int
    noise: float

    def scores(self, K: Array) -> Array:
        """Of new rows, from their raw products with the known rows; K is overwritten."""
        return np.asarray(self.centre.rows(K) @ self.coefficients.astype(K.dtype))


def dense_eigenpairs(
    apply: Callable[[Array], Array],
    size: int,
    k: int,
    rng: np.random.Generator,
    *,
    tol: float = 0.0,
    max_passes: int = 1,
    start: Array | None = None,
    watch: Watch | None = None,
) -> Eigenpairs:
    """All eigenpairs of the whole matrix, of which the first k are given: the plain way."""
    S = apply(np.eye(size))
    S = (S + S.T) / 2
    values, vectors = largest_pairs(S, k)
    return Eigenpairs(np.maximum(values, 0.0), vectors, 1, True)


SOLVERS: dict[str, Callable[..., Eigenpairs]] = {
    "krylov": leading_eigenpairs,
    "chebyshev": filtered_eigenpairs,
    "dense": dense_eigenpairs,
}


def kernel_axes(
    gram: CentredGram, pairs: Eigenpairs, dimension: int | None, noise: float | None = None
) -> KernelAxes:
    """What eigenpairs of the centred kernel matrix say; those without variance are left out.

    ``dimension`` of the space of features, None if it has no bound: then noise is where the rows
    can be, in N - 1 dimensions.
    """
    trace, n = max(gram.trace(), 0.0), gram.size
    kept = pairs.values > max(NEGLIGIBLE * trace, _rounding(gram))
    values = pairs.values[kept]
    vectors = pairs.vectors[:, kept]
    # the sign by which the largest score is positive
    vectors = vectors * signs(_per(gram.roots)[:, None] * vectors)
    coefficients = gram.roots[:, None] * vectors / np.sqrt(values)
    total = max(n - 1, len(values), 1) if dimension is None else dimension
    law = noise_variance(values, trace, n, total) if noise is None else float(noise)
    return KernelAxes(values, coefficients, gram.centre(), trace, n, total, law)


def has_variance(gram: CentredGram) -> bool:
    """Whether the features differ by more than rounding."""
    return gram.trace() > _rounding(gram)


def _rounding(gram: CentredGram) -> float:
    """What centring leaves of the raw products where there is nothing."""
    unit = float(np.finfo(gram.gram.X.dtype).eps)
    return _ULPS * unit * gram.size * float(np.abs(gram.gram.diagonal()) @ gram.shares)


def scores_of_known_rows(axes: KernelAxes) -> Array:
    """Scores of the rows that the axes are combinations of, without another product."""
    weight = axes.n_rows * axes.centre.shares
    return np.asarray(_per(weight)[:, None] * axes.coefficients * axes.values)


def eigenvectors(axes: KernelAxes) -> Array:
    """Of the centred kernel matrix (N, d), as the solver gave them."""
    roots = np.sqrt(axes.n_rows * axes.centre.shares)
    return np.asarray(_per(roots)[:, None] * axes.coefficients * np.sqrt(axes.values))


def _per(roots: Array) -> Array:
    """1 / roots; 0 for rows without weight."""
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
