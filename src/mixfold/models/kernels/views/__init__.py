"""Views: centred coordinates of rows in the space of features of a kernel, decomposed.

A table F (N, r) of centred coordinates is V diag(sqrt(values)) U'. Models of several views need the
values and the products V'Y alone, whether U was found in the columns (primal), in the coordinates
of landmarks, or from products of all pairs of rows (dual).
"""

from mixfold.models.kernels.views.dual import dual_thin
from mixfold.models.kernels.views.landmarks import landmark_thin, thin_svd_of_kernel_matrix
from mixfold.models.kernels.views.primal import primal_thin
from mixfold.models.kernels.views.projections import KernelProjection, LinearProjection, Projection
from mixfold.models.kernels.views.thin_svd import ThinSVD

__all__ = [
    "KernelProjection",
    "LinearProjection",
    "Projection",
    "ThinSVD",
    "dual_thin",
    "landmark_thin",
    "primal_thin",
    "thin_svd_of_kernel_matrix",
]
