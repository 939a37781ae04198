"""Probabilistic PCA in closed form, from the spectrum of the covariance."""

from __future__ import annotations

import numpy as np

from mixfold.families.factor import FactorParams
from mixfold.math.frame import Frame
from mixfold.math.spectrum import log_likelihood, noise_variance
from mixfold.models.factors.spectral import Spectrum
from mixfold.models.mixtures.mixture import MixtureParams


def _floor(spectrum: Spectrum, floor: float) -> float:
    """The least noise variance, in data units."""
    mean = spectrum.total_variance / len(spectrum.mean)
    return floor * (mean if mean > 0 else 1.0)


def closed_form(spectrum: Spectrum, floor: float) -> MixtureParams:
    """The maximum of the likelihood under a floor relative to the mean variance of a column."""
    size = len(spectrum.mean)
    values, total = spectrum.values, spectrum.total_variance
    noise = noise_variance(values, total, size, _floor(spectrum, floor))
    scale = np.sqrt(total / size) if total > 0 else 1.0
    loadings = spectrum.vectors * np.sqrt(np.maximum(values - noise, 0.0)) / scale
    frame = Frame(spectrum.mean, np.full(size, scale))
    means = np.zeros((1, size))
    params = FactorParams(frame, means, loadings[None], np.full((1, size), noise / scale**2))
    return MixtureParams(np.ones(1), params)


def log_likelihood_of(spectrum: Spectrum, floor: float) -> float:
    """Per unit of weight, at the closed form."""
    size = len(spectrum.mean)
    return log_likelihood(spectrum.values, spectrum.total_variance, size, _floor(spectrum, floor))
