"""Models of the mixing weights: one prior per file."""

from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.mixing.fixed import FixedWeights
from mixfold.mixing.free import FreeWeights
from mixfold.mixing.protocol import Mixing
from mixfold.mixing.sticks import StickBreaking

__all__ = ["FixedWeights", "FreeWeights", "Mixing", "StickBreaking", "SymmetricDirichlet"]
