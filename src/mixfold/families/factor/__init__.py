"""Factor components: one idea per file, put together in ``family``."""

from mixfold.families.factor.family import FactorFamily, Posterior
from mixfold.families.factor.loadings import OwnLoadings, TiedLoadings
from mixfold.families.factor.noise import DiagonalNoise, IsotropicNoise, Noise
from mixfold.families.factor.records import FactorParams

__all__ = [
    "DiagonalNoise",
    "FactorFamily",
    "FactorParams",
    "IsotropicNoise",
    "Noise",
    "OwnLoadings",
    "Posterior",
    "TiedLoadings",
]
