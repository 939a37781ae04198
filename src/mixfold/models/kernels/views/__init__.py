"""Views: centred coordinates of rows in the space of features of a kernel, decomposed.

A table F (N, r) of centred coordinates is V diag(sqrt(values)) U'. Models of several views need the
values and the products V'Y alone, whether U was found in the columns (primal), in the coordinates
of landmarks, or from products of all pairs of rows (dual).
"""

from mixfold.models.kernels.views.dual import dual_thin
from mixfold.models.kernels.views.landmarks import given_thin, landmark_thin
from mixfold.models.kernels.views.primal import primal_thin
from mixfold.models.kernels.views.projections import KernelProjection, LinearProjection, Projection
from mixfold.models.kernels.views.thin import Thin

__all__ = [
    "KernelProjection",
    "LinearProjection",
    "Projection",
    "Thin",
    "dual_thin",
    "given_thin",
    "landmark_thin",
    "primal_thin",
]
