"""WHAT one component of a mixture looks like: one family per file.

``GAUSSIAN`` maps the names users know to the classes.
"""

from mixfold.families.diagonal import DiagonalGaussian
from mixfold.families.full import FullGaussian
from mixfold.families.gaussian import GaussianFamily
from mixfold.families.spherical import SphericalGaussian
from mixfold.families.tied import TiedGaussian
from mixfold.families.tied_diagonal import TiedDiagonalGaussian
from mixfold.families.tied_spherical import TiedSphericalGaussian

GAUSSIAN: dict[str, type[GaussianFamily]] = {
    "full": FullGaussian,
    "tied": TiedGaussian,
    "diag": DiagonalGaussian,
    "spherical": SphericalGaussian,
    "tied-diag": TiedDiagonalGaussian,
    "tied-spherical": TiedSphericalGaussian,
}

__all__ = [
    "GAUSSIAN",
    "DiagonalGaussian",
    "FullGaussian",
    "GaussianFamily",
    "SphericalGaussian",
    "TiedDiagonalGaussian",
    "TiedGaussian",
    "TiedSphericalGaussian",
]
