"""Probabilistic clustering and dimensionality reduction for real tables."""

from mixfold.estimators.gaussian_mixture import GaussianMixture
from mixfold.estimators.kmeans import KMeans
from mixfold.store import load

__version__ = "0.1.0"

__all__ = ["GaussianMixture", "KMeans", "load"]
