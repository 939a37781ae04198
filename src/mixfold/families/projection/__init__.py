"""Gaussian components on one plane that all of them share: one idea per file, put together in
``family`` (points) and ``bayes`` (posteriors)."""

from mixfold.families.projection.bayes import BayesProjectedGaussian
from mixfold.families.projection.family import ProjectedGaussian
from mixfold.families.projection.plane import PLANE_UPDATES
from mixfold.families.projection.records import Plane, ProjectionParams, ProjectionSums

__all__ = [
    "PLANE_UPDATES",
    "BayesProjectedGaussian",
    "Plane",
    "ProjectedGaussian",
    "ProjectionParams",
    "ProjectionSums",
]
